"""What parts of the tier ask in one process: an API server with its token, and the metrics of entail."""
import base64
import http.client
import json
import re
import ssl
import sys
import time


class Api:
    """A connection to an API server that is kept."""

    def __init__(self, kubeconfig):
        text = open(kubeconfig).read()
        self.host, self.port = re.search(r'server: "https://([^:]+):(\d+)"', text).groups()
        self.token = re.search(r'token: "([^"]+)"', text)[1]
        ca = base64.b64decode(re.search(r"certificate-authority-data: ([\w+/=]+)", text)[1]).decode()
        self.context = ssl.create_default_context(cadata=ca)
        self.connection = None

    def ask(self, method, path, body=None, form="application/json"):
        """The status and the answer."""
        if self.connection is None:
            self.connection = http.client.HTTPSConnection(self.host, int(self.port), context=self.context, timeout=60)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = form
            body = json.dumps(body)
        try:
            self.connection.request(method, path, body, headers)
            answer = self.connection.getresponse()
            text = answer.read()
        except OSError:
            self.connection = None
            raise
        return answer.status, json.loads(text) if text.startswith(b"{") else text.decode()

    def do(self, method, path, body=None, form="application/json"):
        """The answer, or the end of the program."""
        status, answer = self.ask(method, path, body, form)
        if status >= 300:
            sys.exit(f"{method} {path}: {status} {answer}")
        return answer

    def merge(self, path, body):
        return self.do("PATCH", path, body, "application/merge-patch+json")


class Admin:
    """A connection to entail's admin port that is kept, for as long as entail does: it ends one that asks nothing."""

    def __init__(self, address):
        self.connection = http.client.HTTPConnection(address, timeout=30)

    def get(self, path):
        try:
            answer = self.ask(path)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.connection.close()
            answer = self.ask(path)
        return answer.status, answer.read().decode()

    def ask(self, path):
        self.connection.request("GET", path)
        return self.connection.getresponse()

    def metrics(self):
        """Samples by name and labels, as they are written."""
        found = {}
        for line in self.get("/metrics")[1].splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                found[name] = float(value)
        return found

    def generation(self):
        """That of the snapshot that look-ups are answered from now; metrics may be a quarter of a second old."""
        lines = self.get("/readyz")[1].splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("generation ")))

    def quiet(self):
        """The metrics once nothing has been published for a second and a half."""
        last = self.metrics()
        for _ in range(20):
            time.sleep(1.5)
            now = self.metrics()
            if total(now, "entail_snapshot_generation") == total(last, "entail_snapshot_generation"):
                return now
            last = now
        sys.exit("entail goes on publishing")


def total(metrics, name):
    """The sum of a metric over all labels."""
    return sum(value for sample, value in metrics.items() if sample.split("{")[0] == name)


def by_label(metrics, name):
    """A metric by its labels as they are written."""
    return {sample[len(name):]: value for sample, value in metrics.items() if sample.split("{")[0] == name}


def check(name, fits, found=""):
    """Says a check for the part to count: `ok NAME`, or `no NAME: FOUND`."""
    print(f"ok {name}" if fits else f"no {name}: {found}", flush=True)


if __name__ == "__main__":
    # api.py ADMIN METRIC: the sum of one metric, for the shell.
    print(f"{total(Admin(sys.argv[1]).metrics(), sys.argv[2]):.3f}")
