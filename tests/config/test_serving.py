"""Which Spark Connect server `lockstep spark serve` starts, and which it refuses to start."""

from __future__ import annotations

import pytest

from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.lake.spark.serving import server_to_start


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_of_this_machine_with_a_token_is_started(host: str) -> None:
    """At the address to which runs connect."""
    server = server_to_start({"remote": f"sc://{host}:15002", "token": "secret"})
    assert str(server) == f"sc://{host}:15002"


@pytest.mark.parametrize(
    ("remote", "token", "refusal"),
    [
        ("sc://127.0.0.1:15002", None, "would serve every account"),
        ("sc://127.0.0.1:15002", "", "would serve every account"),
        ("sc://spark.example.com:15002", "secret", "is on another machine"),
        ("sc://[::1]:15002", "secret", "at which no server is started"),
        ("sc://127.0.0.2:15002", "secret", "at which no server is started"),
    ],
)
def test_other_servers_are_refused(remote: str, token: str | None, refusal: str) -> None:
    """An empty token is none, and runs would look in vain at an address without a server."""
    settings = {"remote": remote} | ({} if token is None else {"token": token})
    with pytest.raises(ConfigurationError, match=refusal):
        server_to_start(settings)
