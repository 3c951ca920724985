"""What can be typed, and what is refused before anything heavy is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

import pytest

from lockstep.arguments import author_of, parse_table_name, reason_of
from lockstep.grammar import UsageError, parse
from lockstep.pipeline.values.table import TableName

REPOSITORY = Path(__file__).resolve().parents[2]
HEAVY = {"dagster", "numba", "pyarrow", "pydantic", "psycopg2", "pymysql", "pyspark", "rich"}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "frobnicate",
        "--config",
        "run --sauce x",
        "read",
        "init --port x",
        "start-at x",
        "schema",
        "resume",
        "resume --reason",
        "--json resume a.b --nonsense",
        "pause a.b",
        "reload a.b",
        "recover --back-to 3 --start-over",
        "pause a.b --schema f --reason x",
    ],
)
def test_what_cannot_be_read_is_a_usage_error(line: str) -> None:
    """One sentence and the help that applies; no SystemExit of argparse's own."""
    with pytest.raises(UsageError) as caught:
        parse(line.split())
    assert re.fullmatch(r"`lockstep.* --help`", caught.value.hint)
    if "resume" in line:
        assert caught.value.hint == "`lockstep resume --help`"


@pytest.mark.parametrize(
    ("command", "option", "meaning"),
    [
        ("init", "--port", "a port"),
        ("recover", "--back-to", "the number of a batch"),
        ("verify", "--sample", "a number of rows"),
    ],
)
@pytest.mark.parametrize("typed", ["x", "0", "-3", "1_0", "٣"])
def test_a_number_that_cannot_be_is_told_with_its_meaning(
    command: str, option: str, meaning: str, typed: str
) -> None:
    """Python's int() takes more than people mean, and its complaint speaks of types."""
    with pytest.raises(UsageError) as caught:
        parse([command, f"{option}={typed}"])
    assert caught.value.message == f"{option}: {typed!r} is not {meaning}."


@pytest.mark.parametrize(("typed", "meant"), [("stauts", "status"), ("--json varify", "verify")])
def test_an_unknown_command_is_told_the_one_that_was_meant(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"did you mean '{meant}'") as caught:
        parse(typed.split())
    assert caught.value.hint == f"`lockstep {meant} --help`"


@pytest.mark.parametrize(
    "line", ["--config f --json run", "run --config f --json", "--json run --config f"]
)
def test_global_options_stand_on_either_side(line: str) -> None:
    """Before the command or after it."""
    parsed = parse(line.split())
    assert (parsed.command, parsed.config, parsed.json) == ("run", "f", True)


def test_a_tables_name_is_divided_at_its_first_dot() -> None:
    """What follows belongs to the table."""
    assert parse_table_name("shop.a.b") == TableName("shop", "a.b")
    for text in ("shop", "shop.", ".a"):
        with pytest.raises(UsageError):
            parse_table_name(text)


def test_an_account_without_a_name_is_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs as any user."""

    def no_entry(_: int) -> NoReturn:
        raise KeyError("getpwuid(): uid not found")

    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    line = "pause a.b --reason x"
    assert author_of(parse(line.split())) == f"uid {os.getuid()}"


@pytest.mark.parametrize("line", ["start-at latest", "pause a.b", "recover"])
def test_a_blank_reason_is_none(line: str) -> None:
    with pytest.raises(UsageError, match="--reason is empty") as caught:
        reason_of(parse([*line.split(), "--reason", " "]))
    assert caught.value.hint == f"`lockstep {line.split()[0]} --help`"


def test_help_imports_nothing_heavy() -> None:
    """`--help` and a refusal load none of the drivers, Dagster, pydantic or rich."""
    program = (
        "import sys\nfrom lockstep.cli import main\n"
        "assert main(['replay']) == 2\n"
        "for asked in ('--help', '--version'):\n"
        "    try:\n        main([asked])\n"
        "    except SystemExit as left:\n        assert left.code == 0\n"
        f"assert not {HEAVY!r} & sys.modules.keys(), {HEAVY!r} & sys.modules.keys()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"lockstep {version('lockstep')}\n")


def test_what_people_read_with_does_not_load_what_status_needs() -> None:
    """That is most of Lockstep, and takes longer than such a command."""
    program = (
        "import sys\nfrom lockstep.commands import read, tables, versions\n"
        "assert 'lockstep.commands.status' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True)


def test_a_shell_completes_what_can_be_typed() -> None:
    """Bash, with the script as it is printed: a command, and an option of one."""
    asked = "; ".join(
        f"COMP_WORDS=(lockstep {typed}) COMP_CWORD={count}; _shtab_lockstep; echo ${{COMPREPLY[*]}}"
        for typed, count in (("reloa", 1), ("metrics --out", 2))
    )
    done = subprocess.run(
        ["bash", "-c", f'eval "$({sys.executable} -m lockstep.cli completion bash)"; {asked}'],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["reload", "--output"]


def test_a_reason_and_an_author_in_another_encoding_are_text() -> None:
    """The ledger has no bytes that are not UTF-8, as a terminal in Latin-1 types them."""
    text = b"caf\xe9, one day".decode("utf-8", "surrogateescape")
    arguments = parse(["pause", "shop.orders", "--reason", text, "--author", text])
    assert arguments.reason == arguments.author == "caf\\udce9, one day"
