"""What lockstep.toml says of starts, ends and another server: each mistake by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.config.load import parse_settings

SOURCE = """\
[[sources]]
name = "shop"
host = "127.0.0.1"
user = "lockstep"
password = "env:SHOP_PASSWORD"
tables = ["shop.*"]
"""
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

STARTS = {
    "yesterday": "is not a place in time; expected 2026-11-01T06:00:00Z, binlog.000012:4567",
    "Earliest": "is not a place in time; expected 2026-11-01T06:00:00Z, binlog.000012:4567",
    "binlog.000012": "expected binlog.000012:4567 or binlog.000012@2026-11-01T06:00:00Z",
    "binlog.000012:": "is not an offset",
    "binlog.000012:-4": "is not an offset",
    "2026-11-01T06:00:00": "in which time zone; expected 2026-11-01T06:00:00Z",
    "2026-11-01 06:00": "is not a moment; expected 2026-11-01T06:00:00Z",
    "2026-11-31T06:00:00Z": "is not in the calendar",
    "binlog.000012@06:00": "is not a moment; expected 2026-11-01T06:00:00Z",
    "gtid:": "is empty; expected gtid:<uuid>:1-5",
    "gtid:1-5": "<uuid>:1-5",
    f"gtid:{UUID}:5-1": "1-5",
    f"{UUID}:1-5": "expected it after gtid:",
    "run:0f3c1d2e": "`lockstep start-at run:0f3c1d2e --source NAME --reason …`",
}

REST = {
    "no bytes": ("[sources.bounds]\nmax_bytes = 0\n", "line 8: 'max_bytes' must be more than zero"),
    "no bytes in words": (
        '[sources.bounds]\nmax_bytes = "0GiB"\n',
        "line 8: 'max_bytes' must be more than zero",
    ),
    "a size that is none": (
        '[sources.bounds]\nmax_bytes = "a lot"\n',
        "line 8: 'a lot' is not a size such as 512MiB or 4GiB",
    ),
    "no transactions": (
        "[sources.bounds]\nmax_transactions = 0\n",
        "line 8: 'max_transactions' must be more than zero",
    ),
    "fewer than no transactions": (
        "[sources.bounds]\nmax_transactions = -1\n",
        "line 8: 'max_transactions' must be more than zero",
    ),
    "no time": (
        "[sources.bounds]\nmax_seconds = 0\n",
        "line 8: 'max_seconds' must be more than zero",
    ),
    "no number": (
        "[sources.bounds]\nmax_seconds = nan\n",
        "line 8: 'max_seconds' must be more than zero",
    ),
    "a budget that is misspelt": (
        "[sources.bounds]\nmax_byte = 5\n",
        "line 8: unknown key 'max_byte'; did you mean 'max_bytes'?",
    ),
    "a standby without a host": (
        "[sources.standby]\nport = 3307\n",
        "line 7: the source's standby lacks 'host'",
    ),
    "a standby's key that is misspelt": (
        '[sources.standby]\nhots = "127.0.0.1"\nhost = "127.0.0.1"\n',
        "line 8: unknown key 'hots'; did you mean 'host'?",
    ),
    "a standby's start that is none": (
        '[sources.standby]\nhost = "127.0.0.1"\nstart = "2026-11-01T06:00:00"\n',
        "line 9: '2026-11-01T06:00:00' does not say in which time zone; expected "
        "2026-11-01T06:00:00Z, or with an offset as in 2026-11-01T08:00:00+02:00",
    ),
    "a standby's UUID that is none": (
        '[sources.standby]\nhost = "127.0.0.1"\nserver_uuid = "shop-2"\n',
        "line 9: 'server_uuid' must be what the server shows for SELECT @@server_uuid, in lower "
        "case, or server-id:<number> for MariaDB",
    ),
    "a replica that is no address": (
        '[sources.snapshot]\nread_from = "db3:no"\n',
        "line 8: 'db3:no' is neither a host nor a host with a port such as db2:3306",
    ),
    "a policy that is none": (
        'on_source_changed = "gtid"\n',
        "line 7: 'on_source_changed' must be 'refuse' or 'timestamp'",
    ),
    "less than no interval": (
        "fallback_interval = -60\n",
        "line 7: 'fallback_interval' must not be less than zero",
    ),
    "less than no interval in words": (
        'fallback_interval = "-60s"\n',
        "line 7: '-60s' is not a duration such as 60s or 5m",
    ),
    "an interval that is none": (
        'fallback_interval = "abc"\n',
        "line 7: 'abc' is not a duration such as 60s or 5m",
    ),
}


def refused(text: str) -> ConfigurationError:
    """The one error, exit code 2, with a hint."""
    with pytest.raises(ConfigurationError) as caught:
        parse_settings(text, Path("/project/lockstep.toml"))
    assert caught.value.recovery.exit_code == 2
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(("text", "form"), STARTS.items())
def test_a_start_that_is_none_names_the_form(text: str, form: str) -> None:
    """Its line, and what was expected in its place."""
    error = refused(SOURCE + f'start = "{text}"\n')
    assert error.message.startswith("lockstep.toml: line 7: ")
    assert form in error.message


@pytest.mark.parametrize(("addition", "sentence"), REST.values(), ids=REST.keys())
def test_a_mistake_is_told_by_its_key(addition: str, sentence: str) -> None:
    """Budgets, standbys and policies: the line, the key, and what it must be."""
    told = refused(SOURCE + addition).message
    assert told in (f"lockstep.toml: {sentence}.", f"lockstep.toml: {sentence}")


@pytest.mark.parametrize(("text", "expected"), [("600", 600), ('"10m"', 600), ("1.5", 1.5)])
def test_a_budget_of_time_may_be_a_duration(text: str, expected: float) -> None:
    """`max_seconds` of a run is written as that of a snapshot is."""
    addition = f"[sources.bounds]\nmax_seconds = {text}\n"
    settings = parse_settings(SOURCE + addition, Path("/project/lockstep.toml"))
    assert settings.source("shop").plan().budget.max_seconds == expected


@pytest.mark.parametrize(
    ("addition", "expected"),
    [
        ("fallback_interval = 0\n", 0),
        ("fallback_interval = 90\n", 90),
        ('fallback_interval = "5m"\n', 300),
    ],
)
def test_an_interval_in_seconds_or_words(addition: str, expected: int) -> None:
    """None at all is a choice, too."""
    settings = parse_settings(SOURCE + addition, Path("/project/lockstep.toml"))
    policies = settings.source("shop").plan().start_policies
    assert policies.fallback_interval.total_seconds() == expected
