"""The tests' object store: moto's S3, alone and over connections that stay.

    python -m tests.lake.object_server PORT

Belongs here: serving it. Does not: starting it (`tests.fix_objects`), faults (`tests.lake.faults`).
moto's own command asks for each request which of its two hundred services is meant, and ends each
connection behind the answer: a third of what a request costs.
"""

from __future__ import annotations

import sys

from moto.moto_server.werkzeug_app import MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple


class _KeptConnection(MotoRequestHandler):
    protocol_version = "HTTP/1.1"


if __name__ == "__main__":
    run_simple(
        "127.0.0.1",
        int(sys.argv[1]),
        create_backend_app("s3"),
        threaded=True,
        request_handler=_KeptConnection,
    )
