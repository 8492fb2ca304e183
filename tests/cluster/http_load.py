"""Sends requests to an HTTP server at a fixed rate until a file exists, and counts the statuses.

Usage: http_load.py ADDRESS HOST RATE END_FILE. Prints `SENT FAILED SLOWEST_MS STATUS=COUNT...`; a failed request is one
without the status 200.
"""
import collections
import http.client
import os
import sys
import threading
import time

address, host, rate, end_file = sys.argv[1:]
THREADS = 8
statuses = collections.Counter()
slowest = 0.0
lock = threading.Lock()


def send(first):
    global slowest
    connection, number = None, first
    begin = time.monotonic()
    while not os.path.exists(end_file):
        time.sleep(max(0.0, begin + number / float(rate) - time.monotonic()))
        sent = time.monotonic()
        try:
            connection = connection or http.client.HTTPConnection(address, timeout=10)
            connection.request("GET", "/", headers={"host": host})
            reply = connection.getresponse()
            reply.read()
            status = str(reply.status)
        except (OSError, http.client.HTTPException) as error:
            status, connection = type(error).__name__, None
        with lock:
            statuses[status] += 1
            slowest = max(slowest, time.monotonic() - sent)
        number += THREADS


threads = [threading.Thread(target=send, args=(first,)) for first in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sent = statuses.total()
print(sent, sent - statuses["200"], round(slowest * 1000), *(f"{name}={count}" for name, count in sorted(statuses.items())))
