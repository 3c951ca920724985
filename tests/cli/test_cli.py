"""Exit codes, words and the one JSON object, whatever happens inside a command."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lockstep import exits
from lockstep.cli import main
from lockstep.commands import init, status
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.values.errors import (
    LedgerUnavailable,
    LockstepError,
    PositionPurged,
    Recovery,
    SourceBusy,
)

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

Status = Callable[[Callable[[], Outcome]], None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a configuration, and a password that must not show."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LOCKSTEP_CONFIG", raising=False)
    monkeypatch.setenv("SHOP_PASSWORD", "canary-7788")
    (tmp_path / "lockstep.toml").write_text(FILE)
    return tmp_path


@pytest.fixture
def status_does(monkeypatch: pytest.MonkeyPatch) -> Status:
    """Let `lockstep status` do something else."""

    def replace(act: Callable[[], Outcome]) -> None:
        def perform(_: argparse.Namespace, __: CommandContext) -> Outcome:
            return act()

        monkeypatch.setattr(status, "perform", perform)

    return replace


def raising(error: BaseException) -> Callable[[], Outcome]:
    def act() -> Outcome:
        raise error

    return act


def printed(capfd: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    """Standard output as the one object it must be, and standard error."""
    out, err = capfd.readouterr()
    return json.loads(out), err


@pytest.mark.parametrize(
    ("codes", "told"),
    [
        ([], 0),
        ([0, 6], 6),
        ([6, 4], 4),
        ([4, 3], 3),
        ([3, 5], 5),
        ([5, 2], 2),
        ([2, 1], 1),
        ([1, 130], 130),
        ([130, 143], 143),
    ],
)
def test_the_most_serious_code_is_told(codes: list[int], told: int) -> None:
    """143, 130, 1, 2, 5, 3, 4, 6, 0, in any order of the sources."""
    assert exits.most_serious(codes) == exits.most_serious(reversed(codes)) == told


def test_every_code_has_a_place_in_the_order() -> None:
    """Those of the module, and those that an error leads to."""
    codes = {code for name, code in vars(exits).items() if name.isupper() and type(code) is int}
    codes |= {recovery.exit_code for recovery in Recovery}
    assert len(codes) == 9
    assert {exits.most_serious([code]) for code in codes} == codes


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SourceBusy("Busy: \x1b[2J.", hint="wait"), 3),
        (LedgerUnavailable("Away.", hint="start it"), 3),
        (PositionPurged("Gone.", hint="restore it"), 5),
    ],
)
def test_a_refusal_is_a_sentence_a_hint_and_a_code(
    folder: Path,
    status_does: Status,
    capfd: pytest.CaptureFixture[str],
    error: LockstepError,
    code: int,
) -> None:
    """For people on standard error, without control characters, and the same as JSON."""
    status_does(raising(error))
    assert main(["status", "--json"]) == code
    told, text = printed(capfd)
    assert text == f"{error.message}\nhint: {error.hint}\n".replace("\x1b", r"\x1b")
    assert told == {
        "error": {"kind": type(error).__name__, "message": error.message, "hint": error.hint},
        "exit_code": code,
    }


def test_standard_output_holds_the_object_alone(
    folder: Path, status_does: Status, capfd: pytest.CaptureFixture[str]
) -> None:
    """What libraries and other processes print goes to standard error."""

    def noisy() -> Outcome:
        print("a library")
        os.write(1, b"a descriptor\n")
        subprocess.run([sys.executable, "-c", "print('a process')"], check=True)
        return Outcome(0, {"answer": 42})

    status_does(noisy)
    assert main(["--json", "status"]) == 0
    told, text = printed(capfd)
    assert told == {"answer": 42, "exit_code": 0}
    assert {"a library", "a descriptor", "a process"} <= set(text.split("\n"))


def test_answers_go_to_standard_output_and_notes_beside_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was asked for can be piped; with --json the notes are what people get."""

    def perform(_: argparse.Namespace, context: CommandContext) -> Outcome:
        context.say("an [answer]")
        context.note("a [note]")
        return Outcome(0, {"answer": 42})

    monkeypatch.setattr(status, "perform", perform)
    assert main(["status"]) == 0
    assert capfd.readouterr() == ("an [answer]\n", "a [note]\n")
    assert main(["status", "--json"]) == 0
    told, text = printed(capfd)
    assert (told, text) == ({"answer": 42, "exit_code": 0}, "a [note]\n")


def ended(folder: Path, program: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """`lockstep status` in a process of its own, with another status."""
    code = (
        "import os, signal, sys, time\n"
        "from lockstep import cli\n"
        "from lockstep.commands import status\n"
        "from lockstep.context import Outcome\n"
        f"def perform(arguments, desk):\n{textwrap.indent(program, '    ')}\n"
        "status.perform = perform\n"
        "sys.exit(cli.main(['status', *sys.argv[1:]]))\n"
    )
    command = [sys.executable, "-c", code, *options.pop("arguments", [])]
    return subprocess.run(
        command,
        cwd=folder,
        text=True,
        timeout=60,
        check=False,
        **{"stderr": subprocess.PIPE, **options},
    )


def test_a_reader_who_goes_away_is_no_defect(folder: Path) -> None:
    """`lockstep status | head -1`: the command ends as it would have."""
    reading, writing = os.pipe()
    os.close(reading)
    program = "for _ in range(9): desk.say('x' * 9999)\nreturn Outcome(6, {'a': 'x' * 99999})"
    for arguments in ([], ["--json"]):
        done = ended(folder, program, stdout=writing, arguments=arguments)
        assert (done.returncode, done.stderr) == (6, "")
    os.close(writing)


@pytest.mark.thin
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "program",
    [
        "os.kill(os.getpid(), {number})\ntime.sleep(60)",
        "try:\n    os.kill(os.getpid(), {number})\n    time.sleep(60)\n"
        "except KeyboardInterrupt:\n    pass\ndesk.raise_if_signalled()",
    ],
    ids=["at once", "caught on its way"],
)
def test_a_signal_ends_a_command_with_a_sentence(
    folder: Path, program: str, number: signal.Signals, code: int
) -> None:
    """Also where a library caught it on its way."""
    done = ended(
        folder, program.format(number=int(number)), stdout=subprocess.PIPE, arguments=["--json"]
    )
    kind = "terminated" if code == 143 else "interrupted"
    assert done.returncode == code, done.stderr
    told = json.loads(done.stdout)
    assert (told["exit_code"], told["error"]["message"]) == (code, kind)
    assert done.stderr.splitlines()[0] == kind


def test_a_job_in_the_background_hears_sigterm(folder: Path) -> None:
    """A shell has it ignore SIGINT: that is kept, and is not SIGTERM."""
    program = (
        "os.kill(os.getpid(), signal.SIGINT)\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(60)"
    )
    ignoring = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    done = ended(folder, program, stdout=subprocess.PIPE, preexec_fn=ignoring)
    assert done.returncode == 143, done.stderr


def test_a_defect_leaves_a_report_without_secrets(
    folder: Path, status_does: Status, capfd: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, one sentence, and a file with the traceback to send."""
    status_does(raising(RuntimeError("went wrong with canary-7788")))
    assert main(["status", "--json"]) == 1
    told, text = printed(capfd)
    (report,) = (folder / ".lockstep" / "reports").iterdir()
    assert told["error"]["hint"] == f"send us {report}"
    assert "RuntimeError: went wrong with …" in report.read_text()
    assert "canary-7788" not in text + report.read_text()


def test_a_secret_is_masked_although_another_is_missing(
    folder: Path, status_does: Status, capfd: pytest.CaptureFixture[str]
) -> None:
    """A password of another source, the ledger's address, or the key of [privacy]."""
    shed = FILE.replace("shop", "shed").replace("SHOP_PASSWORD", "SHED_PASSWORD")
    ledger = '[ledger]\ndsn = "env:LEDGER_DSN"\n[privacy]\nkey = "file:key"\n'
    (folder / "key").write_text("canary-99")
    (folder / "lockstep.toml").write_text(FILE + shed + ledger)
    status_does(raising(RuntimeError("went wrong with canary-7788 and canary-99")))
    assert main(["status", "--json"]) == 1
    (report,) = (folder / ".lockstep" / "reports").iterdir()
    assert "RuntimeError: went wrong with … and …" in report.read_text()


MORE_SECRETS = (
    """\
[lake.options]
secret_access_key = "env:CANARY"
""",
    """\
[notify]
urls = ["env:CANARY"]
""",
    """\
[lineage.transport]
type = "http"
auth = {type = "api_key", apiKey = "env:CANARY"}
""",
    """\
[spark]
remote = "env:CANARY"
""",
    """\
[lake]
unknown = "env:CANARY"
""",
)


@pytest.mark.parametrize("section", MORE_SECRETS)
def test_whatever_a_reference_stands_for_is_masked(
    section: str, folder: Path, status_does: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whichever section it is, and even if the file has a mistake."""
    monkeypatch.setenv("CANARY", "canary-1234")
    with (folder / "lockstep.toml").open("a") as config:
        config.write(section)
    status_does(raising(RuntimeError("went wrong with canary-1234")))
    assert main(["status"]) == 1
    (report,) = (folder / ".lockstep" / "reports").iterdir()
    assert "RuntimeError: went wrong with …" in report.read_text()


def test_a_wrong_file_is_2_and_opens_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every command refuses before it makes anything."""
    (folder / "lockstep.toml").write_text(FILE + "colour = 1\n")
    for command in (["check"], ["tables"], ["run"], ["status"], ["verify"], ["read", "a.b"]):
        assert main([*command, "--json"]) == 2
        assert printed(capfd)[0]["error"]["kind"] == "ConfigurationError"
    assert sorted(path.name for path in folder.iterdir()) == ["lockstep.toml"]


def test_an_unknown_source_is_2(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The hint names the sources there are."""
    assert main(["status", "--source", "shed"]) == 2
    assert "hint: choose one of: shop" in capfd.readouterr().err


def test_a_server_that_is_away_is_told_by_check(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One refusal line with its cure, exit code 3; no ledger and no lake are made."""
    assert main(["check", "--json"]) == 3
    told, _ = printed(capfd)
    (finding,) = told["sources"]["shop"]["findings"]
    assert (finding["level"], finding["subject"]) == ("refusal", "server")
    assert finding["hint"]
    assert sorted(path.name for path in folder.iterdir()) == ["lockstep.toml"]


def test_a_lake_that_cannot_be_looked_for_is_told_by_check(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A refusal, not a defect, as for a folder inside one that may not be searched."""
    with (folder / "lockstep.toml").open("a") as config:
        config.write(f'[lake]\npath = "{"x" * 300}"\n')
    assert main(["check", "--json"]) == 3
    findings = printed(capfd)[0]["machine"]["findings"]
    (lake,) = [finding for finding in findings if finding["subject"] == "lake"]
    assert lake["sentence"].endswith("cannot be written: File name too long.")


def test_a_missing_secret_is_told_before_anything_is_made(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A run without its password: exit code 2, no ledger, no Dagster home, no lake."""
    monkeypatch.delenv("SHOP_PASSWORD")
    assert main(["run", "--json"]) == 2
    assert printed(capfd)[0]["sources"]["shop"]["error"]["kind"] == "SecretMissing"
    assert sorted(path.name for path in folder.iterdir()) == ["lockstep.toml"]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("yesterday", "is not a place in time; expected 2026-11-01T06:00:00Z"),
        ("earliest", "where the log begins: nothing ends there"),
        ("", "'' is not a place in time"),
    ],
)
def test_an_end_that_is_none_names_the_form(
    folder: Path, capfd: pytest.CaptureFixture[str], text: str, form: str
) -> None:
    """2, one sentence with the form, the hint where the forms are; nothing is made."""
    assert main(["run", "--until", text]) == 2
    told = capfd.readouterr().err
    assert told.startswith("--until: ")
    assert form in told
    assert told.endswith("hint: `lockstep run --help`\n")
    assert [path.name for path in folder.iterdir()] == ["lockstep.toml"]


def test_lockstep_config_names_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without --config, the variable; without both, ./lockstep.toml."""
    monkeypatch.setenv("LOCKSTEP_CONFIG", str(folder / "other.toml"))
    assert main(["status"]) == 2
    assert "other.toml" in capfd.readouterr().err


def options(**given: object) -> argparse.Namespace:
    chosen: dict[str, object] = {
        "name": None,
        "host": None,
        "port": 3306,
        "user": None,
        "password": None,
        "tls": None,
        "tables": None,
        "exclude": [],
        "start": "earliest",
        "schedule": None,
        "lake": "lake",
        "ledger": "embedded",
    }
    return argparse.Namespace(**{**chosen, **given})


@pytest.mark.parametrize(
    ("host", "tls"), [("127.0.0.1", "off"), ("localhost", "off"), ("db", "verify")]
)
def test_init_encrypts_what_leaves_this_machine(host: str, tls: str) -> None:
    text = init.configuration_text(options(name="x", host=host, user="me", tables=["x.*"]), None)
    assert tomllib.loads(text)["sources"][0]["tls"] == tls


def test_init_writes_what_was_given() -> None:
    """The options, and defaults for the rest: a file that is valid as it stands."""
    text = init.configuration_text(
        options(
            name="shop", host="db", user="me", tables=["shop.*", 'a"\x7f.*'], schedule="0 * * * *"
        ),
        None,
    )
    assert tomllib.loads(text) == {
        "lake": {"path": "lake"},
        "ledger": {"dsn": "embedded"},
        "sources": [
            {
                "name": "shop",
                "host": "db",
                "port": 3306,
                "user": "me",
                "password": "env:SHOP_PASSWORD",
                "tls": "verify",
                "tables": ["shop.*", 'a"\u007f.*'],
                "start": "earliest",
                "schedule": "0 * * * *",
            }
        ],
    }


def test_init_keeps_what_the_example_explains() -> None:
    """Every comment of the example is in the file, in its place."""
    text = init.configuration_text(options(name="x", host="db", user="me", tables=["x.*"]), None)
    example = (Path(__file__).resolve().parents[2] / "lockstep.toml").read_text()
    written, shown = (re.findall(r"# .*", one)[1:] for one in (text, example))
    assert [re.sub(".*#", "", one) for one in written] == [re.sub(".*#", "", one) for one in shown]


def test_init_asks_for_what_is_open() -> None:
    """Each question has a default; what was given is not asked."""
    asked = []

    def ask(question: str, default: str) -> str:
        asked.append(question)
        return default

    text = init.configuration_text(options(host="db"), ask)
    assert 'host = "db"' in text
    assert 'tables = ["shop.*"]' in text
    assert not any("host" in question for question in asked)


def test_init_keeps_an_existing_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It refuses, and the file is as it was."""
    assert main(["init", "--host", "db", "--user", "me", "--tables", "a.*"]) == 2
    assert (folder / "lockstep.toml").read_text() == FILE


def test_init_writes_nothing_that_is_wrong(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A literal password is refused before the file is made."""
    with Path(os.devnull).open() as nobody:
        monkeypatch.setattr(sys, "stdin", nobody)
        line = ["init", "--host", "db", "--user", "me", "--tables", "a.*", "--password", "secret"]
        assert main([*line, "--config", "new.toml"]) == 2
    assert not (folder / "new.toml").exists()
    assert "a literal secret is refused" in capfd.readouterr().err
