"""A backend that answers with the headers it was sent. Usage: backend.py PORT_FILE: where to write its port."""

import http.server
import json
import os
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one piece: else each answer waits for an acknowledgement of the head, 40 ms.
    wbufsize = -1

    def do_GET(self):
        body = json.dumps(self.headers.items()).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_port))
os.replace(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
