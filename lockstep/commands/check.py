"""`lockstep check`: everything a run needs, looked at; what is wrong, with its cure."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from pipeline.errors import (
    CatalogRefused,
    CatalogUnavailable,
    ConfigurationError,
    LakeUnavailable,
    LockstepError,
    MirrorRefused,
    OperatorNeeded,
)
from pipeline.preflight import Finding, KeptMirror, SourceEvidence, pause_from_now, preflight
from pipeline.runs.context import Unwatched
from pipeline.runs.reshaping import hashed
from pipeline.shown import listed, shown
from resources.lake.paths import LakePath, ObjectPath

if TYPE_CHECKING:
    from pipeline.runs.context import Workplace
    from pipeline.table import TableName
    from pipeline.table_state import TableState
    from resources.adapters import Adapters
    from resources.config import Settings, SourceSettings

_START = "the next start"

_WIDTH: Final = 100
_INDENT: Final = " " * 11
_MARK: Final = {"ok": "  ok       ", "warning": "  warning  ", "refusal": "  refusal  "}
_GRAVEST: Final = ("refusal", "warning", "ok")
_MOST: Final = 5
"""Cures named of a finding that many tables share."""


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """0 when no line is a refusal, else the most serious refusal's own exit code."""
    payload: dict[str, Any] = {}
    with context.adapters() as adapters:
        machine = machine_findings(adapters, context.settings)
        _show(context, "this machine", machine)
        codes = [_code(machine)]
        for source in context.sources(arguments.source):
            findings = source_findings(adapters, context.settings, source)
            _show(context, source.name, findings)
            codes.append(_code(findings))
            payload[source.name] = {"findings": findings}
    return Outcome(
        exits.most_serious(codes), {"machine": {"findings": machine}, "sources": payload}
    )


def machine_findings(adapters: Adapters, settings: Settings) -> list[Finding]:
    """What a run needs besides its servers: the lake's folder, and Java with Delta's jars or a
    Spark elsewhere."""
    lake = settings.lake_path()
    findings = [_tried("lake", lambda: _lake(lake))]
    if not settings.spark_server:
        findings = [_tried("java", _java), _tried("delta", lambda: _jars(lake)), *findings]
    if settings.spark_server or settings.spark_cluster:
        findings.append(_tried("spark", lambda: _spark(adapters, settings)))
    if settings.file.lineage is not None:
        findings.append(_tried("lineage", lambda: _lineage(settings)))
    if settings.notify:
        findings.append(_tried("notify", lambda: _notify(settings)))
    if settings.file.catalog is not None:
        findings.append(_catalog(adapters))
    return findings


def source_findings(
    adapters: Adapters, settings: Settings, source: SourceSettings
) -> list[Finding]:
    """The server first: while it refuses us, no ledger is made. What it refuses for a
    privilege or a setting is looked at closely all the same."""
    reached = _tried("server", lambda: _server(adapters, source.name))
    if reached.error is not None and not isinstance(reached.error, OperatorNeeded):
        return [reached]
    ledger = None if reached.error else _tried("ledger", lambda: _ledger(adapters, settings))
    try:
        findings = _preflight(
            adapters, settings, source, known=ledger is not None and ledger.error is None
        )
        if ledger is not None and ledger.error is None:
            work = adapters.workplace(source.name, Unwatched())
            _note_tables(settings, work)
            findings = (*_lake_findings(work), *findings)
            if not any(finding.error for finding in findings):
                findings = (*findings, next_start_finding(work))
    except LockstepError as error:
        findings = (_refusal("source", error),)
    told = {type(finding.error) for finding in findings}
    # A rule's refusal of the same kind is the more exact one: it names the GRANT.
    first = [] if reached.error and type(reached.error) in told else [reached]
    return [*first, *([ledger] if ledger else []), *findings]


def _preflight(
    adapters: Adapters, settings: Settings, source: SourceSettings, *, known: bool
) -> tuple[Finding, ...]:
    """`known`: the ledger can say which tables there are."""
    server = adapters.server(source.name)
    states = adapters.ledger().table_states(source.name) if known else {}
    partial = adapters.ledger().partial(source.name) if known else ()
    plan = source.plan()
    looked = SourceEvidence(
        server.survey(),
        plan.patterns,
        pause=pause_from_now(source.schedule),
        partial=partial,
        mirrors=list(_mirrors(adapters, states.values())),
        keep=settings.keep(),
        reading=plan.snapshot,
        passes=plan.passes,
        policies_of=plan.policies_of,
        settings=plan.tables,
        known=set(states),
        names=plan.mirrors,
        shaping=plan.shaping(settings.privacy_key()),
        shaped=[*hashed(adapters.ledger(), source.name, plan.patterns)] if known else (),
    )
    return preflight(server, looked, states)


def _mirrors(adapters: Adapters, states: Iterable[TableState]) -> Iterator[KeptMirror]:
    """Those that are in the lake and can be read; what else is wrong with one is told apart."""
    mirrors = adapters.lake().mirrors
    for state in states:
        with suppress(LakeUnavailable, MirrorRefused):
            retention = mirrors.retention(state.mirror)
            if retention is not None:
                yield KeptMirror(state.table, mirrors.path(state.mirror), retention)


def next_start_finding(work: Workplace) -> Finding:
    """Where the next run begins, or why it would not; a gap is warned of."""
    from lockstep.commands.plan import start_line
    from pipeline.runs.inspecting.plan import next_start

    try:
        start = next_start(work)
    except LockstepError as error:
        return _refusal(_START, error)
    if start.gap_tables:
        hint = (
            f"`lockstep plan --source {work.source.name}` shows more; another place can be chosen"
        )
        tables = ", ".join(start.gap_tables)
        sentence = f"{start_line(start)}; changes of {tables} may be missing after it"
        return Finding("warning", _START, sentence, hint, topic=_START)
    return Finding("ok", _START, start_line(start), topic=_START)


def _tried(subject: str, ask: Callable[[], str]) -> Finding:
    """What `ask` says, as a line; its refusal, as a line too."""
    try:
        return Finding("ok", subject, ask())
    except LockstepError as error:
        return _refusal(subject, error)


def _refusal(subject: str, error: LockstepError) -> Finding:
    return Finding("refusal", subject, error.message, error.hint, error)


def _java() -> str:
    from resources.lake.java import java_or_refuse

    java = java_or_refuse(os.environ)
    return f"Java {java.major}, {java.program}"


def _jars(lake: LakePath) -> str:
    from resources.lake.jars import DELTA, S3, class_path, jars_folder

    lists = (DELTA, S3) if isinstance(lake, ObjectPath) else (DELTA,)
    folder = jars_folder(sys.prefix)
    return f"{sum(len(class_path(folder, list_)) for list_ in lists)} jars are set up"


def _spark(adapters: Adapters, settings: Settings) -> str:
    told = f"{adapters.lake().prove()}; it sees the lake, commits once, and nothing too late"
    if settings.spark_server and isinstance(settings.lake_path(), ObjectPath):
        told += "; uploads that a killed run began stay: let the store expire them"
    return told


def _catalog(adapters: Adapters) -> Finding:
    """One that is down is no refusal: runs go on, and catch up."""

    def ask() -> str:
        registry = adapters.registry()
        assert registry is not None, "there is a [catalog]"
        return registry.catalog.require_ready()

    finding = _tried("catalog", ask)
    if isinstance(finding.error, CatalogUnavailable | CatalogRefused):
        return Finding("warning", "catalog", f"{finding.sentence}; runs go on", finding.hint)
    return finding


def _lake(path: LakePath) -> str:
    """The store keeps its word, or the nearest folder that exists can be written; leaves nothing
    behind."""
    if isinstance(path, ObjectPath):
        from resources.lake.trial import require_conditional_writes

        require_conditional_writes(path)
        return f"{path}; its store takes conditional writes"
    nearest = next(folder for folder in (path, *path.parents) if folder.exists())
    if not nearest.is_dir():
        raise ConfigurationError(f"{nearest} is not a folder.", hint="correct path under [lake]")
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise LakeUnavailable(
            f"{nearest} cannot be written.", hint="make it writable, or correct path under [lake]"
        ) from error
    return f"{path}; mirrors need Delta readers that support deletion vectors"


def _notify(settings: Settings) -> str:
    """Each address is one that apprise knows; nobody is told anything."""
    from resources.apprise.sending import require_address

    for reference in settings.notify:
        require_address(settings.notify_url(reference), reference)
    return f"what needs a person is told to {', '.join(settings.notify)}"


def _lineage(settings: Settings) -> str:
    """Asks nobody: a backend that is away is no matter of a run."""
    from resources.openlineage.sending import open_client

    kind = open_client(settings.lineage_transport()).transport.kind
    return f"OpenLineage events go by the client's transport {kind!r}"


def _server(adapters: Adapters, source: str) -> str:
    facts = adapters.server(source).facts()
    return f"{facts.flavour} {facts.version}, {facts.server_uuid}, log ends at {facts.head}"


def _ledger(adapters: Adapters, settings: Settings) -> str:
    adapters.ledger().require_writable()
    embedded = settings.ledger_dsn() == "embedded"
    return f"embedded, {settings.state_folder / 'ledger'}" if embedded else "your Postgres"


def _note_tables(settings: Settings, work: Workplace) -> None:
    """Tables found now are declared at Dagster's next reload."""
    from assets.catalogue import CatalogueEntry, update_catalogue
    from pipeline.changes.layout import changelog_path, mirror_path
    from pipeline.runs.mirror_places import meetings

    source, states = work.source, work.ledger.table_states(work.source.name)
    present = [t.name for t in work.server.tables() if source.patterns.matches(t.name)]
    met = meetings(work, states, present).keys() - states.keys()
    entries = [
        CatalogueEntry(
            name.database,
            name.name,
            states[name].mirror
            if name in states
            else mirror_path(source.name, source.mirror_name(name)),
            states[name].changelog if name in states else changelog_path(source.name, name),
        )
        for name in present
        if name not in met
    ]
    update_catalogue(settings.state_folder, source.name, entries, complete=True)


def _lake_findings(work: Workplace) -> tuple[Finding, ...]:
    """Whether ledger and lake belong together, and what somebody else did to mirrors and
    changelogs."""
    from pipeline.runs.agreement.claim import lake_trouble
    from pipeline.runs.agreement.lake_logs import astray, moved_changelogs
    from pipeline.runs.mirror_places import former_places, moves

    if (error := lake_trouble(work)) is not None:
        return (_refusal("lake", error),)
    return (
        *(
            Finding("warning", str(one.table), f"the next run quarantines it: {one.why}", one.hint)
            for one in astray(work)
        ),
        *(Finding("warning", str(one.table), one.why, one.hint) for one in moved_changelogs(work)),
        *(_moves(work, *one) for one in moves(work).reloaded.items()),
        *(
            Finding("ok", "lake", f"{folder} is kept for its versions", topic="former mirrors")
            for folder in former_places(work.ledger, work.source.name)
        ),
    )


def _moves(work: Workplace, table: TableName, name: TableName) -> Finding:
    from lockstep.commands.plan import price_told
    from pipeline.runs.wanted import estimates_of, origin_of

    state = work.ledger.table_states(work.source.name)[table]
    origin = origin_of(work, state, files=False)
    cost = "from its changelog, and reads no row from MySQL"
    if isinstance(origin, str):
        told = price_told(estimates_of(work, [table])[table])
        cost = f"and reads the table from MySQL{told}; {origin}"
    return Finding(
        "warning",
        str(table),
        f"its mirror is called {name} by the settings: the next run writes all its rows there, "
        f"{cost}",
        f"`lockstep plan --source {work.source.name}` shows all that the run would do",
    )


def _code(findings: Iterable[Finding]) -> int:
    return exits.most_serious(
        finding.error.recovery.exit_code if finding.error else exits.OPERATOR
        for finding in findings
        if finding.level == "refusal"
    )


def _show(context: CommandContext, about: str, findings: Sequence[Finding]) -> None:
    context.say(about)
    context.say(*finding_lines(findings))


# -- how findings are shown ----------------------------------------------------------------


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Refusals and warnings with their cures, then what is fine, a line a topic, then how
    many of each there are."""
    for level in ("refusal", "warning"):
        for group in _alike(finding for finding in findings if finding.level == level):
            yield from _fault(group)
    yield from _fine([finding for finding in findings if finding.level == "ok"])
    yield f"  {counted(findings)}"


def counted(findings: Iterable[Finding]) -> str:
    """`1 refusal, 3 warnings, 40 ok`; levels without a finding are left out."""
    levels = [finding.level for finding in findings]
    words = []
    for level in _GRAVEST:
        count = levels.count(level)
        if count:
            plural = "s" if count > 1 and level != "ok" else ""
            words.append(f"{count} {level}{plural}")
    return ", ".join(words)


def _alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Findings that say the same of different tables."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.topic, finding.sentence), []).append(finding)
    return groups.values()


def _fault(group: list[Finding]) -> Iterator[str]:
    first = group[0]
    subjects = listed([finding.subject for finding in group])
    yield f"{_MARK[first.level]}{shown(subjects)}: {shown(first.sentence)}"
    hints = list(dict.fromkeys(finding.hint for finding in group if finding.hint))
    for hint in hints[:_MOST]:
        yield f"{_INDENT}hint: {shown(hint)}"
    if len(hints) > _MOST:
        yield f"{_INDENT}      and {len(hints) - _MOST} more such; --json has them all"


def _fine(findings: Sequence[Finding]) -> Iterator[str]:
    topics: dict[str, list[str]] = {}
    for finding in findings:
        topics.setdefault(finding.topic or finding.subject, []).append(finding.sentence)
    for topic, sentences in topics.items():
        text = f"{topic}: {'; '.join(dict.fromkeys(sentences))}"
        yield from textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=_MARK["ok"],
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
