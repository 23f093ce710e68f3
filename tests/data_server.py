#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/data_server.py FOLDER - serves FOLDER on a port of its own choosing, which it prints.

The first part of a path says how the server behaves:

    /good/NAME     as it should, ranges and all
    /plain/NAME    as if it had never heard of ranges
    /cut/NAME      every answer ends in the middle: after a third of the file at most
    /cutonce/NAME  likewise, after half of what was asked for, but only for the first request of NAME
    /stall/NAME    closes without an answer
    /wrong/NAME    a byte in the middle is another one
    /long/NAME     a byte too many
    /short/NAME    a byte too few
    /offset/NAME   ranges begin at another byte than was asked for
    /moved/NAME    is at /good/NAME
    /slow/NAME     two bytes per second

Asked as a proxy, it plays any host. Every request is a line in FOLDER/requests: host of a proxy, kind,
name, range. It ends when its standard input does.
"""
import http.server
import os
import sys
import threading
import time

folder = sys.argv[1]
seen = set()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def body_of(self, kind, name):
        with open(os.path.join(folder, os.path.basename(name)), "rb") as file:
            body = file.read()
        if kind == "wrong":
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1:]
        elif kind == "long":
            body += b"x"
        elif kind == "short":
            body = body[:-1]
        return body

    def do_GET(self):
        host, _, path = self.path.rpartition("//")[2].partition("/")
        kind, _, name = path.partition("/")
        asked = self.headers.get("Range", "")
        with open(os.path.join(folder, "requests"), "a") as log:
            log.write(f"{host or '-'} {kind} {name} {asked}\n")
        self.close_connection = kind in ("cut", "cutonce", "stall")
        if kind == "stall":
            return
        if kind == "moved":
            self.send_response(302)
            self.send_header("Location", f"/good/{name}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        try:
            body = self.body_of(kind, name)
        except OSError:
            self.send_error(404)
            return
        self.answer(kind, name, body, asked)

    def answer(self, kind, name, body, asked):
        begin = 0
        if asked.startswith("bytes=") and kind != "plain":
            begin = int(asked[6:].split("-")[0])
            if begin >= len(body):
                self.send_error(416)
                return
            if kind == "offset":
                begin -= 1
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        sent = body[begin:]
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        if kind == "cut":
            sent = sent[:len(body) // 3]
        elif kind == "cutonce" and name not in seen:
            seen.add(name)
            sent = sent[:len(sent) // 2]
        for at in range(0, len(sent), 2 if kind == "slow" else max(1, len(sent))):
            self.wfile.write(sent[at:at + 2] if kind == "slow" else sent)
            if kind == "slow":
                time.sleep(1)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *args):
        pass  # clients that leave early are the point


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
