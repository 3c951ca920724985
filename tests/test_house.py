"""The rules of the house hold, and each of them notices when it is broken."""

from __future__ import annotations

import ast
import gc
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
STATEMENTS = REPOSITORY / "resources" / "postgres"
PACKAGES = ("demo", "lockstep", "assets", "resources", "pipeline")

# Per contract, one file that breaks it: where it stands and what it imports.
OFFENCES = {
    "one-direction": ("resources/offence.py", "import lockstep.assets.names"),
    "inside-the-pipeline": ("pipeline/values/position.py", "import lockstep.pipeline.run"),
    "inside-a-run": ("pipeline/run/context.py", "import lockstep.pipeline.run.capture"),
    "inside-the-log": (
        "pipeline/binlog/stream/rules.py",
        "import lockstep.pipeline.binlog.rows.maps",
    ),
    "demo-last": ("lockstep/offence.py", "import demo.shop"),
    "commands-last": ("lockstep/printing.py", "import lockstep.commands.status"),
    "no-circle": ("assets/names.py", "import lockstep.assets.runs"),
    "two-paths": ("pipeline/resultset/packets.py", "import lockstep.pipeline.binlog.values"),
    "systems-apart": ("resources/mysql/offence.py", "import lockstep.resources.postgres"),
    "configuration-apart": ("resources/config/offence.py", "import lockstep.pipeline.run"),
    "mysql-fence": ("resources/lake/offence.py", "import pymysql"),
    "postgres-fence": ("lockstep/offence.py", "import psycopg2"),
    "lake-fence": ("assets/offence.py", "import pyspark"),
    "apprise-fence": ("assets/offence.py", "import apprise"),
    "openlineage-fence": ("assets/offence.py", "import openlineage.client"),
    "hive-fence": ("assets/offence.py", "import pymetastore"),
    "run-without-dagster": ("assets/run_page.py", "import dagster"),
    "dagster-fence": ("resources/postgres/offence.py", "import dagster"),
}

# Per contract that has a place for each module of a folder, that folder.
LAYERED = {
    "one-direction": "lockstep",
    "inside-the-pipeline": "pipeline",
    "inside-a-run": "pipeline/run",
    "inside-the-log": "pipeline/binlog",
}


def contracts() -> dict[str, str]:
    """Contract id → its sentence."""
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        rules = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return {rule["id"]: rule["name"] for rule in rules}


def verdicts(house: Path) -> dict[str, str]:
    """Contract id → KEPT or BROKEN, as import-linter says in that folder."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"]
    said = subprocess.run(
        [*command, "--no-logo"],
        cwd=house,
        env={"PYTHONPATH": str(house), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    text = re.sub(r"\s+", " ", said)
    found = {
        i: re.search(re.escape(name) + r" (KEPT|BROKEN)", text) for i, name in contracts().items()
    }
    return {i: match[1] if match else said for i, match in found.items()}


def spoil(house: Path, contract: str) -> None:
    """One import that breaks the contract."""
    place, offence = OFFENCES[contract]
    with (house / place).open("a") as file:
        file.write(f"\n{offence}\n")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the packages that a test may spoil."""
    for package in PACKAGES:
        shutil.copytree(
            REPOSITORY / package,
            tmp_path / package,
            symlinks=True,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_import_rule_is_kept_and_notices_its_offence(house: Path) -> None:
    """The packages as they are break none; a new module without a place breaks the layers it
    stands in, a circle in a folder without layers the rule against circles, and one offending
    import per contract each of them."""
    kept = dict.fromkeys(contracts(), "KEPT")
    assert verdicts(house) == kept
    newcomers = [house / folder / "newcomer.py" for folder in LAYERED.values()]
    for newcomer in newcomers:
        newcomer.write_text('"""New."""\n')
    spoil(house, "no-circle")
    assert verdicts(house) == kept | dict.fromkeys([*LAYERED, "no-circle"], "BROKEN")
    for newcomer in newcomers:
        newcomer.unlink()
    for offence in (one for one in OFFENCES if one != "no-circle"):
        spoil(house, offence)
    assert verdicts(house) == dict.fromkeys(OFFENCES, "BROKEN")


def test_the_locks_name_no_host_pin_everything_and_agree() -> None:
    """Every requirement of a lock has one version and hashes, and no address; runs have the
    versions that the tests have, and nothing that only tests need."""
    pins = []
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (REPOSITORY / name).read_text()
        entries = re.findall(
            r"^\S+?==\S+(?: ;.*)?(?= \\\n    --hash=sha256:[0-9a-f]{64})", text, re.M
        )
        named = re.findall(r"^[A-Za-z0-9]\S*", text, re.M)
        assert (len(entries), "://" in text, "index-url" in text) == (len(named), False, False)
        pins.append({re.sub(r"\[.*?\]", "", entry) for entry in entries})
    runs, developers = pins
    assert runs < developers
    assert not {"pytest", "moto", "duckdb", "connectorx"} & {pin.split("==")[0] for pin in runs}


def test_modules_say_what_belongs_in_them() -> None:
    """Every module that holds code opens with a docstring."""
    files = [f for package in PACKAGES for f in (REPOSITORY / package).rglob("*.py")]
    mute = [
        str(f.relative_to(REPOSITORY))
        for f in files
        if (text := f.read_text().strip()) and not text.startswith('"""')
    ]
    assert mute == []


OWN = ("benchmarks", "demo", "lockstep", "tests")


@cache
def syntax(text: str) -> ast.Module:
    """A module's text, which several rules look at. It stays, and so nobody looks for garbage
    among its nodes, which takes three times as long as they do."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.freeze()
        gc.enable()


def of_others(tree: ast.Module) -> set[str]:
    """The names under which a module knows something of another library."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported = node.module or ""
            names = {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            imported = node.names[0].name
            names = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        else:
            continue
        if imported.partition(".")[0] not in OWN:
            found |= names
    return found


def assigned(node: ast.AST) -> list[ast.expr]:
    """What an assignment, or the end of a name, changes."""
    if isinstance(node, ast.Assign | ast.Delete):
        return list(node.targets)
    return [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign) else []


def meddles(text: str) -> bool:
    """Whether a module changes what belongs to another library, or knows Dagster from inside."""
    tree = syntax(text)
    theirs = of_others(tree)
    dagsters = {name for name in theirs if name in ("dg", "dagster")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
            return True
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in dagsters:
            if node.attr.startswith("_"):
                return True
            continue
        for target in assigned(node):
            owner = target.value if isinstance(target, ast.Attribute) else None
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Call):
                owner = target.value.args[0] if target.value.args else None  # vars(…)["name"]
            while isinstance(owner, ast.Attribute):
                owner = owner.value
            if isinstance(owner, ast.Name) and owner.id in theirs:
                return True
    return re.search(r"dagster(_\w+)?\._|from dagster\S* import .*\b_\w", text) is not None


def test_nothing_of_other_libraries_is_changed_or_known_from_inside() -> None:
    """Dagster's public names alone are used, and what is imported stays as it is; each way to break
    that is noticed."""
    assert modules_that("", meddles) == set()
    for offence in (
        "from dagster._core import storage",
        'module = "dagster._core.storage"',
        "import dagster as dg\ndg._core",
        "from pyspark import SparkContext\nSparkContext._gateway = None",
        "import gc\nvars(gc)['collect'] = None",
        "import logging\nlogging.Logger.handle: object = None",
        "setattr(object, 'name', 1)",
    ):
        assert meddles(offence), offence
    assert not meddles("import os\nos.environ['A'] = 'b'\nfound = os.environ\nfound.x = 1")


PRIVATE_PAGE = REPOSITORY / "docs/decisions/private-interfaces.md"

# Public although their names look otherwise: Python's manual has it.
DOCUMENTED = {"_exit"}

# Of Spark's and Delta's packages, what their manuals name; of Hadoop's, what it marks as private.
JAVA_CLASS = re.compile(r"org\.apache\.(?:spark|hadoop\.fs)(?:\.[a-z]\w*)*\.[A-Z][\w$]*")
DOCUMENTED_IN_JAVA = {
    "org.apache.spark.sql.SaveMode",
    "org.apache.spark.sql.SparkSession",
    "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
PRIVATE_IN_HADOOP = {
    f"org.apache.hadoop.fs.{name}" for name in ("ChecksumFs", "DelegateToFileSystem")
}


def private_in_java(text: str) -> set[str]:
    """The classes that a text names and that are not for others."""
    named = set(JAVA_CLASS.findall(text)) - DOCUMENTED_IN_JAVA
    return {name for name in named if ".hadoop." not in name} | (named & PRIVATE_IN_HADOOP)


def private_names(text: str) -> set[str]:
    """What a module uses of other libraries that is not for others: attributes and imports that
    begin with an underscore, also as strings, and classes of Java."""
    found = set()
    for node in ast.walk(syntax(text)):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") not in ("self", "cls"):
            found.add(node.attr)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            if modules[0].partition(".")[0] not in OWN:
                found |= {part for module in modules for part in module.split(".")}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
            found |= {getattr(argument, "value", "") for argument in node.args[1:2]}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= private_in_java(node.value)
    return {name for name in found - DOCUMENTED if re.match(r"_[^_]|org\.", str(name))}


def test_every_private_name_of_others_stands_on_its_page() -> None:
    """With the file that uses it, and none that is used no longer; each way to use one is
    noticed."""
    rows = re.findall(r"^\| `(\S+)` \| (.+?) \| .+\.\s*\|$", PRIVATE_PAGE.read_text(), re.M)
    told = {(file, name) for file, names in rows for name in re.findall(r"`(.+?)`", names)}
    used = {
        (str(file.relative_to(REPOSITORY)), name)
        for package in PACKAGES
        for kind, names in (("*.py", private_names), ("*.java", private_in_java))
        for file in (REPOSITORY / package).rglob(kind)
        for name in names(file.read_text())
    }
    assert used == told
    for offence in (
        "from hashlib import _Hash",
        "import dagster._core",
        "session._jvm",
        "getattr(session, '_jvm')",
        "connection()._sock.close()",
        "java_class(jvm, 'org.apache.spark.sql.delta.DeltaLog')",
        "java_class(jvm, f'org.apache.spark.sql.delta.DeltaOperations${name}')",
    ):
        assert private_names(offence), offence
    assert not private_names(
        "self._jvm\nfrom __future__ import annotations\nos._exit(0)\na.__dict__"
    )


# The command that shows what was decided.
MAY_ASK_FOR_DECISIONS = {
    "lockstep/commands/status.py",
    "pipeline/ports/ledger.py",  # how runs ended, and what they left unproven: values, not words
}

# The value itself, who keeps it, and who puts it into lines.
MAY_NAME_RECORDED_DECISIONS = {
    "pipeline/values/decisions.py",
    "pipeline/ports/ledger.py",
    "resources/postgres/decisions.py",
    "lockstep/commands/status.py",
}


def asks_for_decisions(text: str) -> bool:
    """Whether a module calls, or hands on, the `decisions` of anything but itself."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "decisions"
        and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        for node in ast.walk(syntax(text))
    )


def names(text: str, *wanted: str) -> bool:
    """Whether a module's code has one of these names, however it came to it."""
    return any(
        getattr(node, field, None) in wanted
        for node in ast.walk(syntax(text))
        for field in ("id", "attr", "name", "arg")
    )


def looks_into_decisions(statements: str) -> set[str]:
    """The queries about decisions that have a rule, or facts."""
    _, *parts = re.split(r"^-- name: (\w+)$", statements, flags=re.M)
    asked = re.compile(r"\b(rule|facts)\b|\bd\.\*|select \* from lockstep\.decisions")
    return {
        name
        for name, text in zip(parts[::2], parts[1::2], strict=True)
        if "lockstep.decisions" in text and asked.search(text)
    }


def modules_that(word: str, holds: Callable[[str], bool]) -> set[str]:
    """Of those that have the word at all."""
    return {
        str(file.relative_to(REPOSITORY))
        for package in PACKAGES
        for file in (REPOSITORY / package).rglob("*.py")
        if word in (text := file.read_text()) and holds(text)
    }


def test_the_audit_trail_is_only_shown() -> None:
    """Nothing that decides asks what was decided before in words: what counts is a column."""
    assert modules_that("decisions", asks_for_decisions) == MAY_ASK_FOR_DECISIONS
    recorded = "RecordedDecision"
    named = modules_that(recorded, lambda text: names(text, recorded))
    assert named == MAY_NAME_RECORDED_DECISIONS
    statements = "".join(file.read_text() for file in sorted(STATEMENTS.glob("*.sql")))
    # `start_decision`: the end of the log that a batch's start saw, as a value (`LogEnd`).
    assert looks_into_decisions(statements) == {"decide", "decisions", "start_decision"}


WORDS_OF_DECISIONS = ("Decision", "RecordedDecision", "decision", "decisions")


def test_how_a_source_stands_is_not_judged_by_decisions() -> None:
    """Nothing of `pipeline.status` looks at one, nor what gathers for it."""
    judges = [
        *(REPOSITORY / "pipeline" / "status").rglob("*.py"),
        REPOSITORY / "pipeline" / "run" / "status" / "status.py",
    ]
    assert [file.name for file in judges if names(file.read_text(), *WORDS_OF_DECISIONS)] == []


def test_reading_the_audit_trail_is_noticed() -> None:
    """A call, a method handed on, a name however it is imported, and a query that looks into the
    facts."""
    for offence in ("work.ledger.decisions('shop')", "ask = ledger.decisions"):
        assert asks_for_decisions(offence)
    for offence in (
        "from lockstep.pipeline.values.decisions import RecordedDecision",
        "from lockstep.pipeline.values import decisions as d",
        "kind = one.decision.kind",
        "def told(decision): ...",
        "last: Decision",
    ):
        assert names(offence, *WORDS_OF_DECISIONS)
    queries = {
        "trusted": "select from lockstep.decisions d where d.facts->>'gtid_mode' = 'ON'",
        "kinds": "select d.rule from lockstep.batches join lockstep.decisions d on true",
        "rules": "select rule from lockstep.decisions",
        "whole": "select b.id, d.* from lockstep.batches b join lockstep.decisions d on true",
        "all": "select * from lockstep.decisions where id = 1",
    }
    text = "".join(f"-- name: {name}\n{query}\n" for name, query in queries.items())
    assert looks_into_decisions(text) == set(queries)
