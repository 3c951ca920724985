"""A store on loopback that does what networks and stores do at times: answers get lost, requests
are refused for a while, connections end inside.

Belongs here: passing requests on, and the faults. Does not: the store (`tests.fix_objects`).
"""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Fault(Enum):
    """What happens to a request."""

    LOST_ANSWER = auto()
    """It is carried out, and the connection ends."""
    CUT = auto()
    """The connection ends before the store hears of it."""
    SLOW_DOWN = auto()
    """The store is busy: 503."""


_PASSED = frozenset({"connection", "keep-alive", "transfer-encoding"})


Plan = Callable[[str, str], Fault | None]


@dataclass
class Faults:
    """`plan` is asked for each request, by method and path; None passes it on."""

    upstream: int
    plan: Plan = lambda method, path: None
    requests: Counter[str] = field(default_factory=Counter)
    done: list[tuple[str, str, Fault]] = field(default_factory=list)

    @contextmanager
    def planned(self, plan: Plan) -> Iterator[None]:
        before, self.plan = self.plan, plan
        try:
            yield
        finally:
            self.plan = before


def once(method: str, part: str, fault: Fault, times: int = 1) -> Plan:
    """That fault for the first requests of a method whose path has this part."""
    left = [times]
    turn = threading.Lock()

    def plan(asked: str, path: str) -> Fault | None:
        with turn:
            if asked == method and part in path and left[0]:
                left[0] -= 1
                return fault
        return None

    return plan


@contextmanager
def serving(port: int, upstream: int) -> Iterator[Faults]:
    """Listens on a port and passes on to another."""
    faults = Faults(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except ConnectionError:
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is told."""

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            faults.requests[self.command] += 1
            fault = faults.plan(self.command, self.path)
            if fault is not None:
                faults.done.append((self.command, self.path, fault))
            if fault is Fault.SLOW_DOWN:
                answer = b"<Error><Code>SlowDown</Code><Message>busy</Message></Error>"
                self.send_response(503)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                return
            if fault is Fault.CUT:
                self.close_connection = True
                self.connection.close()
                return
            store = http.client.HTTPConnection("127.0.0.1", faults.upstream, timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _PASSED}
            store.request(self.command, self.path, body, headers)
            answered = store.getresponse()
            content = answered.read()
            if fault is Fault.LOST_ANSWER:
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answered.status)
            for name, value in answered.getheaders():
                if name.lower() not in _PASSED | {"content-length"}:
                    self.send_header(name, value)
            length = answered.getheader("Content-Length") if self.command == "HEAD" else None
            self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield faults
    finally:
        server.shutdown()
        server.server_close()
