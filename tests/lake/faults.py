"""A store on loopback that does what networks and stores do at times: answers get lost, requests
are refused for a while, connections end inside.

Belongs here: passing requests on, and the faults. Does not: the store (`tests.fix_objects`).

It runs in a process of its own: delta-rs keeps Python's lock while it waits for an answer. It is
told what to do by way of its own port, under `/_faults`.
"""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Fault(StrEnum):
    """What happens to a request."""

    LOST_ANSWER = "lost answer"
    """It is carried out, and the connection ends."""
    CUT = "cut"
    """The connection ends before the store hears of it."""
    SLOW_DOWN = "slow down"
    """The store is busy: 503."""
    HELD = "held"
    """It waits until the plan ends."""
    EXPIRED = "expired"
    """The credentials were good until now: 400."""
    SKEWED = "skewed"
    """This machine's clock is wrong: 403."""
    CONFLICT = "conflict"
    """The store is asked for the same name by two at once, and will not say which is first: 409."""
    ELSEWHERE = "elsewhere"
    """The bucket is in another region: 301."""


_ANSWERS = {
    Fault.SLOW_DOWN: (503, "SlowDown", "Please reduce your request rate."),
    Fault.CONFLICT: (
        409,
        "ConditionalRequestConflict",
        "The conditional request cannot succeed due to a conflicting operation.",
    ),
    Fault.EXPIRED: (400, "ExpiredToken", "The provided token has expired."),
    Fault.SKEWED: (
        403,
        "RequestTimeTooSkewed",
        "The difference between the request time and the server's time is too large.",
    ),
    Fault.ELSEWHERE: (301, "PermanentRedirect", "The bucket must be addressed elsewhere."),
}


@dataclass(frozen=True, slots=True)
class Faults:
    """Tells the store what to do."""

    port: int

    @contextmanager
    def planned(self, method: str, part: str, fault: Fault, times: int = 1) -> Iterator[None]:
        """That fault for the first requests of a method whose path has this part; any method if
        empty, any number if -1."""
        self._ask("POST", [method, part, fault, times])
        try:
            yield
        finally:
            self._ask("DELETE")

    def done(self) -> list[str]:
        """The requests that something happened to, as `METHOD path`."""
        return list(self._ask("GET")["done"])

    def requests(self, agent: str = "") -> list[str]:
        """All so far of clients whose name has this part, as `METHOD path`; the GET of a listing
        is a `LIST`."""
        return [told for name, told in self._ask("GET")["requests"] if agent in name]

    def _ask(self, method: str, told: object = None) -> Any:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as asked:
            asked.request(method, "/_faults", json.dumps(told))
            return json.loads(asked.getresponse().read())


class _Plan:
    """What is to happen, and what did."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._method, self._part, self._fault, self._left = "", "", "", 0
        self.done: list[str] = []
        self.requests: list[tuple[str, str]] = []
        self.released = threading.Event()

    def begin(self, method: str, part: str, fault: str, times: int) -> None:
        with self._turn:
            self._method, self._part, self._fault, self._left = method, part, fault, times
            self.released = threading.Event()

    def end(self) -> None:
        with self._turn:
            self._left = 0
            self.released.set()

    def fault(self, method: str, path: str, agent: str) -> Fault | None:
        with self._turn:
            listing = method == "GET" and "list-type=" in path
            self.requests.append((agent, f"{'LIST' if listing else method} {path}"))
            if not self._left or self._method not in ("", method) or self._part not in path:
                return None
            self._left -= 1
            self.done.append(f"{method} {path}")
            return Fault(self._fault)


def serve(port: int, upstream: int) -> None:
    """Listen on a port and pass on to another, for ever."""
    plan = _Plan()

    class Handler(_Handler):
        pass

    Handler.plan, Handler.upstream = plan, upstream
    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    server.serve_forever()


_PASSED = frozenset({"connection", "keep-alive", "transfer-encoding"})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits 40 ms for the headers' acknowledgement
    plan: _Plan
    upstream: int

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing is told."""

    def _asked(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/_faults":
            self._told(body)
            return
        fault = self.plan.fault(self.command, self.path, self.headers.get("User-Agent", ""))
        if fault in _ANSWERS:
            status, code, words = _ANSWERS[fault]
            answer = f"<Error><Code>{code}</Code><Message>{words}</Message></Error>"
            self._answer(status, {}, answer.encode())
            return
        if fault is Fault.HELD:
            self.plan.released.wait()
        if fault is Fault.CUT:
            self._hang_up()
            return
        status, headers, content = self._passed_on(body)
        if fault is Fault.LOST_ANSWER:
            self._hang_up()
        else:
            self._answer(status, headers, content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _asked

    def _told(self, body: bytes) -> None:
        if self.command == "POST":
            self.plan.begin(*json.loads(body))
        if self.command == "DELETE":
            self.plan.end()
        told = {"done": self.plan.done, "requests": self.plan.requests}
        self._answer(200, {}, json.dumps(told).encode())

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _passed_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _PASSED}
        with closing(http.client.HTTPConnection("127.0.0.1", self.upstream, timeout=60)) as store:
            store.request(self.command, self.path, body, headers)
            answered = store.getresponse()
            content = answered.read()
        told = {k: v for k, v in answered.getheaders() if k.lower() not in _PASSED}
        return answered.status, told, content

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        length = str(len(content))
        for name, value in headers.items():
            if name.lower() != "content-length":
                self.send_header(name, value)
            elif self.command == "HEAD":
                length = value
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


if __name__ == "__main__":
    serve(int(sys.argv[1]), int(sys.argv[2]))
