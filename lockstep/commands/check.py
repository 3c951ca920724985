"""`lockstep check`: check everything that a run needs, and say how to cure what is
wrong."""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from lockstep import exits
from lockstep.context import CommandContext, Outcome
from lockstep.pipeline.check import (
    Finding,
    MirrorEvidence,
    SourceEvidence,
    longest_pause_from_now,
    preflight,
    recorded_columns,
)
from lockstep.pipeline.ports.mirrors import Mirrors
from lockstep.pipeline.run.agreement.changelog_files import changelogs_of
from lockstep.pipeline.run.left_out import states_of_next_run
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.reshaping import versions_under_present_key
from lockstep.pipeline.values.errors import (
    CatalogRefused,
    CatalogUnavailable,
    ConfigurationError,
    LakeUnavailable,
    LockstepError,
    MirrorRefused,
    OperatorNeeded,
)
from lockstep.pipeline.values.shown import name_list, pluralize, printable
from lockstep.resources.lake.store.paths import LakePath, ObjectPath

if TYPE_CHECKING:
    from lockstep.pipeline.model.table_state import TableState
    from lockstep.pipeline.run.context import RunPorts
    from lockstep.pipeline.values.table import TableName
    from lockstep.resources.adapters import Adapters
    from lockstep.resources.config import Settings, SourceSettings

_START_SUBJECT = "the next start"

_LINE_WIDTH: Final = 100
_INDENT: Final = " " * 11
_LEVELS: Final = ("refusal", "warning", "ok")
_MAX_HINTS: Final = 5
"""Largest number of hints that are printed for a finding that many tables share."""


def perform(arguments: argparse.Namespace, context: CommandContext) -> Outcome:
    """Print the findings. The exit code is 0, or that of the most serious refusal."""
    payload: dict[str, Any] = {}
    with context.adapters() as adapters:
        machine = machine_findings(adapters, context.settings)
        _show_findings(context, "this machine", machine)
        codes = [_exit_code(machine)]
        for source in context.sources(arguments.source):
            findings = source_findings(adapters, context.settings, source)
            _show_findings(context, source.name, findings)
            codes.append(_exit_code(findings))
            payload[source.name] = {"findings": findings}
    return Outcome(
        exits.most_serious(codes), {"machine": {"findings": machine}, "sources": payload}
    )


def machine_findings(adapters: Adapters, settings: Settings) -> list[Finding]:
    """Check what a run needs besides the sources: the lake, Java with Delta's jars or a
    Spark elsewhere, and the configured services."""
    lake = settings.lake_path()
    findings = [_try_check("lake", lambda: _check_lake(lake))]
    if not settings.has_spark_server:
        findings = [
            _try_check("java", _check_java),
            _try_check("delta", lambda: _check_jars(lake)),
            *findings,
        ]
    if settings.has_spark_server or settings.has_spark_cluster:
        findings.append(_try_check("spark", lambda: _check_spark(adapters, settings)))
    if settings.file.lineage is not None:
        findings.append(_try_check("lineage", lambda: _check_lineage(settings)))
    if settings.notify_references:
        findings.append(_try_check("notify", lambda: _check_notify(settings)))
    if settings.file.catalog is not None:
        findings.append(_catalog_finding(adapters))
    return findings


def source_findings(
    adapters: Adapters, settings: Settings, source: SourceSettings
) -> list[Finding]:
    """Check the server, then the ledger, the tables and the lake. If the server refuses
    the connection, nothing else is checked, and no ledger is created. If only a
    privilege or a setting is wrong, the rest of the server is still checked."""
    server_finding = _try_check("server", lambda: _check_server(adapters, source.name))
    server_error = server_finding.error
    if server_error is not None and not isinstance(server_error, OperatorNeeded):
        return [server_finding]
    ledger_findings: list[Finding] = []
    if server_error is None:
        ledger_findings = [_try_check("ledger", lambda: _check_ledger(adapters, settings))]
    has_ledger = any(finding.error is None for finding in ledger_findings)
    try:
        findings = _preflight(adapters, settings, source, has_ledger=has_ledger)
        if has_ledger:
            ports = adapters.ports(source.name, SilentProgress())
            declare_tables(settings, ports)
            findings = (*_lake_findings(ports), *findings)
            if not any(finding.error for finding in findings):
                findings = (*findings, next_start_finding(ports))
    except LockstepError as error:
        findings = (_refusal_finding("source", error),)
    error_types = {type(finding.error) for finding in findings}
    # If a rule refuses with the same type of error, only the rule's finding is shown,
    # because it says more, such as the missing GRANT.
    is_repeated = server_error is not None and type(server_error) in error_types
    server_findings = [] if is_repeated else [server_finding]
    return [*server_findings, *ledger_findings, *findings]


def _preflight(
    adapters: Adapters, settings: Settings, source: SourceSettings, *, has_ledger: bool
) -> tuple[Finding, ...]:
    server, plan = adapters.server(source.name), source.plan()
    evidence = SourceEvidence(
        server.survey(),
        plan,
        longest_pause=longest_pause_from_now(source.schedule),
        keep_versions=settings.version_retention(),
        shaping=plan.shaping(settings.privacy_key()),
    )
    states: Mapping[TableName, TableState] = {}
    if has_ledger:
        ledger = adapters.ledger()
        states = states_of_next_run(ledger, source.name, plan.patterns)
        evidence = replace(
            evidence,
            extents=ledger.partial_tables(source.name),
            mirrors=[*_readable_mirrors(adapters, source.name, states.values())],
            ledger_tables=set(states),
            shaped_versions=[
                *versions_under_present_key(
                    ledger, source.name, plan.patterns, ledger.uncleared_values(source.name)
                )
            ],
            recorded_columns=recorded_columns(ledger, plan),
        )
    return preflight(server, evidence, states)


def _readable_mirrors(
    adapters: Adapters, source: str, states: Iterable[TableState]
) -> Iterator[MirrorEvidence]:
    """Yield the mirrors whose Delta logs can be read. Other checks report the rest."""
    mirrors = adapters.lake().mirrors
    for state in states:
        with suppress(LakeUnavailable, MirrorRefused):
            retention = mirrors.retention(state.mirror)
            if retention is not None:
                # A stopped table's mirror may be unreadable: that may be why it stopped.
                reason = _reason_unreadable(mirrors, state.mirror) if state.is_complete else None
                yield MirrorEvidence(
                    state.table,
                    mirrors.path(state.mirror),
                    retention,
                    reason,
                    _reason_changelog_unreadable(mirrors, source, state),
                )


def _reason_changelog_unreadable(mirrors: Mirrors, source: str, state: TableState) -> str | None:
    """Return why a changelog of the table cannot be read as a whole; None if each can
    be. A changelog whose Delta log cannot be read is reported by other checks."""
    with suppress(LakeUnavailable, MirrorRefused):
        for changelog in changelogs_of(source, [state]):
            reason = _reason_unreadable(mirrors, changelog.folder)
            if reason is not None:
                return reason
    return None


def _reason_unreadable(mirrors: Mirrors, folder: str) -> str | None:
    version = mirrors.version(folder)
    return None if version is None else mirrors.reason_unreadable(folder, version)


def next_start_finding(ports: RunPorts) -> Finding:
    """Return a finding about the start of the next run: its place, a gap, or a refusal."""
    from lockstep.commands.plan import start_line
    from lockstep.pipeline.run.status.plan import next_start

    try:
        start = next_start(ports)
    except LockstepError as error:
        return _refusal_finding(_START_SUBJECT, error)
    if start.gap_tables:
        hint = (
            f"`lockstep plan --source {ports.source.name}` shows more; `lockstep start-at PLACE "
            "--reason …` chooses another place"
        )
        tables = ", ".join(start.gap_tables)
        sentence = f"{start_line(start)}; changes of {tables} before it may be missing"
        return Finding("warning", _START_SUBJECT, sentence, hint, topic=_START_SUBJECT)
    return Finding("ok", _START_SUBJECT, start_line(start), topic=_START_SUBJECT)


def _try_check(subject: str, check: Callable[[], str]) -> Finding:
    """Return the sentence that `check` returns as a finding, or the error that it
    raises as a refusal."""
    try:
        return Finding("ok", subject, check())
    except LockstepError as error:
        return _refusal_finding(subject, error)


def _refusal_finding(subject: str, error: LockstepError) -> Finding:
    return Finding("refusal", subject, error.message, error.hint, error)


def _check_java() -> str:
    from lockstep.resources.lake.spark.java import require_java

    java = require_java(os.environ)
    return f"Java {java.major}, {java.program}"


def _check_jars(lake: LakePath) -> str:
    from lockstep.resources.lake.spark.jars import class_path, jars_folder, locks_of

    folder = jars_folder(sys.prefix)
    return f"{sum(len(class_path(folder, lock)) for lock in locks_of(lake))} jars are set up"


def _check_spark(adapters: Adapters, settings: Settings) -> str:
    spark_name = adapters.lake().try_spark()
    sentence = f"{spark_name}; it sees the lake, and refuses repeated and outdated commits"
    if settings.has_spark_server and isinstance(settings.lake_path(), ObjectPath):
        sentence += "; uploads that a killed run began remain: let the store expire them"
    return sentence


def _catalog_finding(adapters: Adapters) -> Finding:
    """Check the catalog. If it is down, that is only a warning, because later runs
    register the mirrors."""

    def check() -> str:
        registry = adapters.registry()
        assert registry is not None, "there is a [catalog]"
        return registry.catalog.probe()

    finding = _try_check("catalog", check)
    if isinstance(finding.error, CatalogUnavailable | CatalogRefused):
        return Finding("warning", "catalog", f"{finding.sentence}; runs go on", finding.hint)
    return finding


def _check_lake(path: LakePath) -> str:
    """Check that an object store refuses conflicting writes, or that the folder of a
    local lake (or its nearest existing parent) can be written and has hard links.
    Nothing is left in the lake."""
    from lockstep.resources.lake.trial import require_conditional_writes, require_hard_links

    if isinstance(path, ObjectPath):
        require_conditional_writes(path)
        return f"{path}; its store takes conditional writes"
    try:
        nearest = next(folder for folder in (path, *path.parents) if folder.exists())
        if not nearest.is_dir():
            raise ConfigurationError(
                f"{nearest} is not a folder.", hint="correct path under [lake]"
            )
        require_hard_links(nearest)
    except OSError as error:
        raise LakeUnavailable(
            f"{path} cannot be written: {error.strerror or error}.",
            hint="make it writable, or correct path under [lake]",
        ) from error
    return f"{path}; mirrors need Delta readers that support deletion vectors"


def _check_notify(settings: Settings) -> str:
    """Check that apprise understands each address, without sending anything."""
    from lockstep.resources.apprise import require_address

    for reference in settings.notify_references:
        require_address(settings.notify_url(reference), reference)
    return f"what needs a person is sent to {', '.join(settings.notify_references)}"


def _check_lineage(settings: Settings) -> str:
    """Check the settings without asking the backend, on which no run depends."""
    from lockstep.resources.openlineage.sending import open_client

    kind = open_client(settings.lineage_transport()).transport.kind
    return f"OpenLineage events are sent by the client's transport {kind!r}"


def _check_server(adapters: Adapters, source: str) -> str:
    facts = adapters.server(source).facts()
    return f"{facts.flavour} {facts.version}, {facts.server_uuid}, log ends at {facts.head}"


def _check_ledger(adapters: Adapters, settings: Settings) -> str:
    adapters.ledger().require_writable()
    is_embedded = settings.ledger_dsn() == "embedded"
    return f"embedded, {settings.state_folder / 'ledger'}" if is_embedded else "your Postgres"


def declare_tables(settings: Settings, ports: RunPorts) -> None:
    """Write the list of tables that Dagster declares when it next loads the
    definitions."""
    from lockstep.assets.state_files import note_write_errors
    from lockstep.assets.table_list import TableEntry, table_entries, update_table_list
    from lockstep.pipeline.mirror.layout import changelog_path, mirror_path
    from lockstep.pipeline.run.mirror_folders import collisions

    source = ports.source
    states = ports.ledger.table_states(source.name)
    tables = [table.name for table in ports.server.tables()]
    # A table that was dropped and created again exists, even if no run has read that yet.
    existing_states = {
        table: states[table].without_stop() if source.patterns.matches(table) else states[table]
        for table in tables
        if table in states
    }
    new_tables = {
        table for table in tables if table not in states and source.patterns.matches(table)
    }
    # Two new tables whose mirrors would have one path get no mirror.
    new_tables -= collisions(ports, states, new_tables).keys()
    new_entries = [
        TableEntry(
            table.database,
            table.name,
            mirror_path(source.name, source.mirror_name(table)),
            changelog_path(source.name, table),
        )
        for table in new_tables
    ]
    entries = [*table_entries(existing_states), *new_entries]
    with note_write_errors("The list of tables for Dagster", ports.progress.note):
        update_table_list(settings.state_folder, source.name, entries, complete=True)


def _lake_findings(ports: RunPorts) -> tuple[Finding, ...]:
    """Check that ledger and lake belong together, and report mirrors and changelogs
    that somebody else changed."""
    from lockstep.pipeline.run.agreement.claim import claim_error
    from lockstep.pipeline.run.agreement.lake_logs import (
        changed_changelogs,
        changelogs_with_moved_rows,
        tables_to_quarantine,
        unrecorded_commit_error,
    )
    from lockstep.pipeline.run.mirror_folders import former_folders, pending_moves

    error = claim_error(ports)
    if error is not None:
        return (_refusal_finding("lake", error),)
    changelogs = changed_changelogs(ports)
    commit_error = unrecorded_commit_error(ports, changelogs)
    if commit_error is not None:
        return (_refusal_finding("lake", commit_error),)
    states = ports.ledger.table_states(ports.source.name)
    return (
        *(
            Finding(
                "warning",
                str(mirror.table),
                f"the next run quarantines it: {mirror.reason}",
                mirror.hint,
            )
            for mirror in tables_to_quarantine(ports, changelogs)
        ),
        *(
            Finding("warning", str(changelog.table), changelog.reason, changelog.hint)
            for changelog in changelogs_with_moved_rows(ports, changelogs)
        ),
        *(
            _move_finding(ports, states[table], name)
            for table, name in pending_moves(ports).to_reload.items()
        ),
        *(
            Finding("ok", "lake", f"{folder} is kept for its versions", topic="former mirrors")
            for folder in former_folders(ports)
        ),
    )


def _move_finding(ports: RunPorts, state: TableState, name: TableName) -> Finding:
    from lockstep.commands.plan import price_words
    from lockstep.pipeline.run.table_plans import estimates_of
    from lockstep.pipeline.run.write.usable_origin import changelog_origin_of

    origin_or_reason = changelog_origin_of(ports, state, check_files=False)
    cost = "from its changelog, and reads no row from MySQL"
    if isinstance(origin_or_reason, str):
        price = price_words(estimates_of(ports, [state.table])[state.table])
        cost = f"and reads the table from MySQL{price}; {origin_or_reason}"
    return Finding(
        "warning",
        str(state.table),
        f"the settings call its mirror {name}: the next run writes all its rows there, {cost}",
        f"`lockstep plan --source {ports.source.name}` shows all that the run would do",
    )


def _exit_code(findings: Iterable[Finding]) -> int:
    return exits.most_serious(
        finding.error.recovery.exit_code if finding.error else exits.OPERATOR
        for finding in findings
        if finding.level == "refusal"
    )


def _show_findings(context: CommandContext, subject: str, findings: Sequence[Finding]) -> None:
    context.say(subject)
    context.say(*finding_lines(findings))


# -- how findings are shown ------------------------------------------------------------


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the refusals and warnings with their hints, then a line for each topic with
    findings that are ok, then a line with the number of findings of each level."""
    for level in ("refusal", "warning"):
        for group in _groups_by_sentence(finding for finding in findings if finding.level == level):
            yield from _problem_lines(group)
    yield from _ok_lines([finding for finding in findings if finding.level == "ok"])
    yield f"  {level_counts(findings)}"


def level_counts(findings: Iterable[Finding]) -> str:
    """Return `1 refusal, 3 warnings, 40 ok`, without levels that have no finding."""
    counts = Counter(finding.level for finding in findings)
    return ", ".join(
        pluralize(counts[level], level, "ok" if level == "ok" else "")
        for level in _LEVELS
        if counts[level]
    )


def _groups_by_sentence(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Return groups of findings that have the same sentence about different tables."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.topic, finding.sentence), []).append(finding)
    return groups.values()


def _problem_lines(group: list[Finding]) -> Iterator[str]:
    first = group[0]
    subjects = name_list([finding.subject for finding in group])
    yield f"  {first.level:<9}{printable(subjects)}: {printable(first.sentence)}"
    hints = list(dict.fromkeys(finding.hint for finding in group if finding.hint))
    for hint in hints[:_MAX_HINTS]:
        yield f"{_INDENT}hint: {printable(hint)}"
    if len(hints) > _MAX_HINTS:
        yield f"{_INDENT}      and {len(hints) - _MAX_HINTS} more hints; --json has all of them"


def _ok_lines(findings: Sequence[Finding]) -> Iterator[str]:
    topics: dict[str, list[str]] = {}
    for finding in findings:
        topics.setdefault(finding.topic or finding.subject, []).append(finding.sentence)
    for topic, sentences in topics.items():
        text = f"{topic}: {'; '.join(dict.fromkeys(sentences))}"
        yield from textwrap.wrap(
            text,
            _LINE_WIDTH,
            initial_indent="  ok       ",
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
