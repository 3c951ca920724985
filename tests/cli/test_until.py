"""`--until` and what is wrong with it: told at once, before anything is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.cli import main

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
FILE = """\
[[sources]]
name = "shop"
host = "127.0.0.1"
port = 1
user = "lockstep"
password = "env:SHOP_PASSWORD"
tables = ["shop.*"]
start = "earliest"
"""


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("yesterday", "is not a place in time; expected 2026-11-01T06:00:00Z"),
        ("binlog.000012", "expected binlog.000012:4567"),
        ("binlog.000012:x", "is not an offset"),
        ("2026-11-01", "is not a moment; expected 2026-11-01T06:00:00Z"),
        ("2026-11-01T06:00:00", "in which time zone; expected 2026-11-01T06:00:00Z"),
        ("2026-11-01T25:00:00+01:00", "is not in the calendar"),
        (f"{UUID}:1-5", "expected it after gtid:"),
        (f"gtid:{UUID}", "<uuid>:1-5"),
        ("gtid:0-1", "<uuid>:1-5"),
        ("run:", "as in run:0f3c1d2e"),
        ("snapshot", "a way to start, not a place in time"),
        ("earliest", "where the log begins: nothing ends there"),
    ],
)
def test_an_end_that_is_none_names_the_form(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    text: str,
    form: str,
) -> None:
    """2, one sentence with the form, the hint where the forms are; nothing is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP_PASSWORD", "canary")
    (tmp_path / "lockstep.toml").write_text(FILE)
    assert main(["run", "--until", text]) == 2
    told = capfd.readouterr().err
    assert told.startswith("--until: ")
    assert form in told
    assert told.endswith("hint: `lockstep run --help`\n")
    assert [path.name for path in tmp_path.iterdir()] == ["lockstep.toml"]
