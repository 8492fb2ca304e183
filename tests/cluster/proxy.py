"""A proxy in front of an API server, over plain HTTP, that fails for one resource on demand.

Usage: proxy.py KUBECONFIG PORT_FILE MODE_FILE LOG_FILE. The mode is read for each request: `none`, `swallow RESOURCE`
(requests for lists of it are never answered) or `cut RESOURCE` (they end within the first object). The log has a line
for each request: the method and the path with its query.
"""
import base64
import http.client
import http.server
import re
import ssl
import sys
import threading
import urllib.parse

kubeconfig, port_file, mode_file, log_file = sys.argv[1:]
text = open(kubeconfig).read()
host, port = re.search(r'server: "https://([^:]+):(\d+)"', text).groups()
ca = base64.b64decode(re.search(r"certificate-authority-data: ([\w+/=]+)", text)[1]).decode()
context = ssl.create_default_context(cadata=ca)
log = open(log_file, "a", buffering=1)
forever = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def pass_on(self):
        print(self.command, self.path, file=log)
        mode, _, resource = open(mode_file).read().strip().partition(" ")
        url = urllib.parse.urlsplit(self.path)
        reads_list = "sendInitialEvents=true" in url.query or "watch=true" not in url.query
        is_hit = bool(resource) and url.path.endswith("/" + resource) and reads_list
        if is_hit and mode == "swallow":
            forever.wait()
        length = int(self.headers.get("content-length") or 0)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
        upstream = http.client.HTTPSConnection(host, int(port), context=context)
        try:
            upstream.request(self.command, self.path, self.rfile.read(length), headers)
            answer = upstream.getresponse()
            self.send_response(answer.status)
            self.send_header("content-type", answer.getheader("content-type") or "text/plain")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(65536):
                if is_hit and mode == "cut":
                    piece = piece[:100]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                if is_hit and mode == "cut":
                    self.close_connection = True
                    return
            self.wfile.write(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException):
            self.close_connection = True
        finally:
            upstream.close()

    do_GET = do_POST = pass_on


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
with open(port_file, "w") as file:
    file.write(str(server.server_port))
server.serve_forever()
