"""Talks to Envoy and reads what it logged.

Usage:
  talk.py config FILE OLD=NEW...            the file with each OLD, which stands in it once, replaced
  talk.py listener ADMIN                    the address of Envoy's one listener, once Envoy is ready
  talk.py ask ADDRESS HOST PATH [NAME:VALUE...]
                                            a request: its status and what the backend saw of x-entail-retries
  talk.py logged FILE PATH                  what the access log says of the one request of a path
  talk.py edits ADDRESS FILE REQUESTS EDITS edits a policy while requests arrive: checks, a line each
"""

import http.client
import json
import os
import re
import sys
import threading
import time

HEADER = "x-entail-retries"
PAY = ("cart.shop.example", "/pay")


def config(path, *pairs):
    text = open(path).read()
    for pair in pairs:
        old, new = pair.split("=", 1)
        if text.count(old) != 1:
            sys.exit(f"{path}: `{old}` stands there {text.count(old)} times")
        text = text.replace(old, new)
    print(text, end="")


def listener(admin):
    connection = http.client.HTTPConnection(admin, timeout=2)
    connection.request("GET", "/ready")
    reply = connection.getresponse()
    if reply.status != 200:
        sys.exit(reply.read().decode())
    reply.read()
    connection.request("GET", "/listeners?format=json")
    told = json.load(connection.getresponse())
    address = told["listener_statuses"][0]["local_address"]["socket_address"]
    print(f"{address['address']}:{address['port_value']}")


def once(connection, host, path, headers=()):
    """A request: its status, and the values of our header that reached the backend."""
    connection.putrequest("GET", path, skip_host=True)
    connection.putheader("host", host)
    for name, value in headers:
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read()
    if reply.status != 200:
        return reply.status, []
    return reply.status, [value for name, value in json.loads(body) if name.lower() == HEADER]


def ask(address, host, path, *headers):
    connection = http.client.HTTPConnection(address, timeout=5)
    status, values = once(connection, host, path, [header.split(":", 1) for header in headers])
    print(status, *(values or ["-"]))


def strings(node):
    """All texts of a JSON value."""
    if isinstance(node, dict):
        for value in node.values():
            yield from strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from strings(value)
    elif isinstance(node, str):
        yield node


def fields(node, name):
    """The values of all fields of a name, wherever they stand; a spec may also be there as JSON in a string."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == name:
                yield value
            yield from fields(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from fields(value, name)
    elif isinstance(node, str) and node.startswith("{"):
        try:
            yield from fields(json.loads(node), name)
        except ValueError:
            pass


def plain(value):
    """A number of a Struct is a double: Envoy writes whole ones without a point."""
    return str(int(value)) if isinstance(value, (int, float)) and value == int(value) else str(value)


def logged(file, path):
    """`CODE DETAILS ROUTE PATH RETRIES TIMEOUT` of the one line; `-` for what is not there."""
    end = time.monotonic() + 5
    while True:
        lines = [json.loads(line) for line in open(file) if line.endswith("\n")]
        found = [line for line in lines if line["path"] == path]
        if found or time.monotonic() > end:
            break
        time.sleep(0.02)
    if len(found) != 1:
        sys.exit(f"{len(found)} lines about {path}")
    line = found[0]
    policies = line["policies"]
    names = sorted({text for text in strings(policies) if re.match("gateways/[^ ]*$", text)})
    values = [",".join(sorted({plain(value) for value in fields(policies, name)})) or "-"
              for name in ("numRetries", "requestTimeout")]
    print(line["code"], line["details"], line["route"] or "-", ",".join(names) or "-", *values)


class Load:
    """Requests of the rule `pay`, a few at a time, until they are enough and the edits are done."""

    def __init__(self, address, enough):
        self.address = address
        self.enough = enough
        self.lock = threading.Lock()
        self.seen = []  # (began, ended, status, value)
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(4)]
        for thread in self.threads:
            thread.start()

    def run(self):
        connection = http.client.HTTPConnection(self.address, timeout=5)
        while not self.is_over.is_set() or len(self.seen) < self.enough:
            began = time.monotonic()
            try:
                status, values = once(connection, *PAY)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                status, values = type(error).__name__, []
            value = int(values[0]) if len(values) == 1 and values[0].isdigit() else None
            with self.lock:
                self.seen.append((began, time.monotonic(), status, value))
            time.sleep(0.02)

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join()


def backwards(seen):
    """How many requests show an older value though they began after a newer one had been answered."""
    count = 0
    ends = sorted((ended, value) for _, ended, _, value in seen if value is not None)
    position, newest = 0, 0
    for began, _, _, value in sorted(seen):
        while position < len(ends) and ends[position][0] < began:
            newest = max(newest, ends[position][1])
            position += 1
        if value is not None and value < newest:
            count += 1
    return count


def edits(address, file, requests, times):
    text = open(file).read()
    old = "retry: {numRetries: 0}"
    if text.count(old) != 1:
        sys.exit(f"{file}: `{old}` stands there {text.count(old)} times")
    load = Load(address, int(requests))
    connection = http.client.HTTPConnection(address, timeout=5)
    waits, late = [], []
    for edit in range(1, int(times) + 1):
        value = 100 + edit
        # A file takes its place in one step, from outside of the folder that is watched.
        new = os.path.dirname(os.path.dirname(file)) + "/edited.yaml"
        with open(new, "w") as out:
            out.write(text.replace(old, f"retry: {{numRetries: {value}}}"))
        os.replace(new, file)
        began = time.monotonic()
        while True:
            status, values = once(connection, *PAY)
            waited = time.monotonic() - began
            if values == [str(value)]:
                waits.append(waited)
                break
            if waited > 1:
                late.append(f"{value}: {status} {values}")
                break
            time.sleep(0.002)
        time.sleep(0.05)
    load.end()
    failed = [one for one in load.seen if one[2] != 200 or one[3] is None]
    verdict(not late, f"each of {times} edits is seen within a second", late)
    if waits:
        waits.sort()
        print(f"edit to request: median {waits[len(waits) // 2] * 1000:.0f} ms, longest {waits[-1] * 1000:.0f} ms")
    count = len(load.seen)
    verdict(not failed and count >= int(requests), f"of {count} requests meanwhile none fails", failed[:5])
    verdict(not backwards(load.seen), "no request shows an older value than one before it", backwards(load.seen))


def verdict(good, name, found):
    print(f"ok {name}" if good else f"no {name}: {found}")


if __name__ == "__main__":
    verbs = {verb.__name__: verb for verb in (config, listener, ask, logged, edits)}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])
