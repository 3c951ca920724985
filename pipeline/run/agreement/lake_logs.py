"""Examines the commits to a source's tables in the lake since the last run. The ledger
records the Delta version up to which each table's log was examined.

A commit of another program quarantines (stops) one table. So does a mirror (the table
with the current rows) that is missing or ends too early. A commit of Lockstep that this
ledger does not know concerns the whole source: ledger or lake was restored, or two
ledgers write to one lake.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from lockstep.pipeline.mirror.layout import application_id, changelog_path, mirror_path
from lockstep.pipeline.model.claim import recovery_hint
from lockstep.pipeline.model.foreign_commits import (
    Ahead,
    AllExpected,
    Behind,
    Foreign,
    Judgement,
    MirrorRecord,
    Moved,
    Unknown,
    judge_changelog_log,
    judge_mirror_log,
)
from lockstep.pipeline.model.lake_commit import LakeCommit, LogAbove
from lockstep.pipeline.model.table_state import OrderKind, TableCondition, TableState
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import reload_hint
from lockstep.pipeline.values.errors import ForeignCommit, MirrorRefused, TableError
from lockstep.pipeline.values.intent import Intent, NewestWrites
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class DisagreeingTable:
    """A table whose Delta log and the ledger disagree, with the reason and the cure."""

    table: TableName
    reason: str
    hint: str


def require_expected_commits(
    ports: RunPorts,
    state: TableState,
    examined_version: int | None,
    intent: Intent | None = None,
    *,
    will_be_replaced: bool = False,
    newest_writes: NewestWrites | None = None,
) -> int | None:
    """Return the newest version of a mirror, or None if it does not exist. Raise
    `TableError` if a commit after `examined_version` concerns the table, and
    `ForeignCommit` if one concerns the whole source.

    `intent`: an open write, whose commit is expected. `will_be_replaced`: all
    rows of the mirror are about to be replaced, so commits of other programs do not
    matter. `newest_writes`: the mirror's, if the caller has them from the ledger.
    """
    judgement = mirror_judgement(
        ports,
        state,
        examined_version,
        intent,
        will_be_replaced=will_be_replaced,
        newest_writes=newest_writes,
    )
    if isinstance(judgement, AllExpected):
        return judgement.newest
    raise _mirror_error(ports, state, judgement)


def mirror_judgement(
    ports: RunPorts,
    state: TableState,
    examined_version: int | None,
    intent: Intent | None = None,
    *,
    will_be_replaced: bool = False,
    newest_writes: NewestWrites | None = None,
) -> Judgement:
    """Return the judgement on the commits to a mirror after `examined_version`. The
    other arguments are those of `require_expected_commits`."""
    source = ports.source.name
    app_id = application_id(source, state, "mirror")
    if newest_writes is None:
        newest_writes = ports.ledger.newest_writes(source, [app_id])[app_id]
    expected = MirrorRecord(
        ledger=ports.ledger.identity(),
        app_id=app_id,
        settled=newest_writes.settled_write,
        open_intent=intent,
        examined_version=examined_version,
        adopted_version=-1 if state.adopted_version is None else state.adopted_version,
        last_txn_version=newest_writes.last_txn_version,
    )
    return judge_mirror_log(
        ports.mirrors.log_above(state.mirror, expected.examined_through),
        expected,
        replaced=will_be_replaced,
    )


def changelog_judgement(ports: RunPorts, log: LogAbove, examined_version: int) -> Judgement:
    """Return the judgement on the commits to a changelog, or to a system table
    (`_transactions`, `_ddl`), after `examined_version`. `log`: these commits."""
    source = ports.source.name
    batch_ids = {
        commit.metadata["batches"][-1]
        for commit in log.commits
        if commit.metadata and "batches" in commit.metadata
    }
    batches = {
        batch.id: batch
        for batch_id in batch_ids
        for batch in ports.ledger.live_batches(source, batch_id, batch_id)
    }
    ledger = ports.ledger
    pruned_through, newest_revision = ledger.pruned_through(source), ledger.revisions(source).newest
    return judge_changelog_log(
        log, examined_version, ledger.identity(), batches, pruned_through, newest_revision
    )


def changelog_error(
    ports: RunPorts, folder: str, judgement: Judgement, table: TableName | SystemTable | None = None
) -> TableError | ForeignCommit | None:
    """Return a `TableError` for what concerns only a changelog's table, a
    `ForeignCommit` for what concerns the whole source, and None if the commits are
    harmless."""
    source = ports.source.name
    keep = keep_hint(table)
    replay = replay_hint(table)
    match judgement:
        case Ahead(commit, ledger):
            return unknown_commit_error(source, folder, commit, ledger, ports.ledger.identity())
        case Behind(newest, expected):
            ends = "is missing" if newest is None else f"ends at version {newest}"
            return TableError(
                f"the changelog {folder} {ends}, and version {expected} of it is in the ledger: "
                "its later changes are lost. The mirror has all rows",
                hint=f"mount or restore the folder before the next run; {keep}",
            )
        case Foreign(commit, how):
            return TableError(
                f"{foreign_sentence(folder, commit)}: {how}. The changelog may lack changes, or "
                "have some that never happened",
                hint=f"find out who did it; {replay}; {keep}",
            )
        case Unknown(version):
            return TableError(
                f"version {version} of {folder} was never examined, and its log no longer has a "
                "file for it: somebody else may have written it",
                hint=f"{replay}; {keep}",
            )
        case Moved() | AllExpected():
            return None


def keep_hint(table: TableName | SystemTable | None) -> str:
    """Return the hint that leaves a table's changelog as another program left it."""
    return f"`lockstep resume {table} --reason …` goes on with the changelog as it is"


def replay_hint(table: TableName | SystemTable | None) -> str:
    """Return the hint for a changelog that lists other files than were captured."""
    tables_option = f" --tables {table}" if isinstance(table, TableName) else ""
    return f"`lockstep replay --from earliest --to latest{tables_option}` lists what was captured"


def disagreeing_tables(ports: RunPorts) -> list[DisagreeingTable]:
    """Return the tables whose mirrors have commits of Lockstep that the ledger does not
    know, or lack commits that it knows."""
    source = ports.source.name
    examined_versions = ports.ledger.examined_versions(source)
    intents = {intent.table: intent for intent in ports.ledger.open_intents(source)}
    tables = []
    for table, state in ports.ledger.table_states(source).items():
        judgement = mirror_judgement(
            ports, state, examined_versions.get(state.mirror), intents.get(table)
        )
        if isinstance(judgement, Ahead | Behind) and not state.is_mirror_removed:
            error = _mirror_error(ports, state, judgement)
            tables.append(DisagreeingTable(table, str(error), error.hint))
    return tables


def source_error_in_changelogs(ports: RunPorts) -> ForeignCommit | None:
    """Return the first disagreement of a changelog, or of a system table, that concerns
    the whole source; None without one."""
    changelogs = _changelogs_with_new_commits(ports)
    errors = (changelog_error(ports, folder, judgement) for folder, judgement in changelogs)
    return next((error for error in errors if isinstance(error, ForeignCommit)), None)


def unknown_batch_error(ports: RunPorts) -> ForeignCommit | None:
    """Return why the ledger must not claim a source's folder, or None if it may claim
    it. It must not if the newest commit to a changelog, or to a system table, names a
    batch that the ledger does not know."""
    if (error := source_error_in_changelogs(ports)) is not None:
        return error
    source = ports.source.name
    examined_versions = ports.ledger.examined_versions(source)
    for folder in ports.claims.tables(source):
        if folder in examined_versions or not folder.startswith(f"{source}/_"):
            continue
        commit = next((commit for commit in ports.mirrors.history(folder) if commit.is_ours), None)
        if commit is None:
            continue
        judgement = changelog_judgement(
            ports, LogAbove(commit.delta_version, commits=(commit,)), -1
        )
        if isinstance(judgement, Ahead):
            return unknown_commit_error(
                source, folder, commit, judgement.ledger, ports.ledger.identity()
            )
    return None


def _changelogs_with_new_commits(ports: RunPorts) -> Iterator[tuple[str, Judgement]]:
    """Yield the changelogs, and the system tables, with commits after the version that
    was examined last, and the judgement on these commits."""
    mirrors = {state.mirror for state in ports.ledger.table_states(ports.source.name).values()}
    for folder, examined_version in ports.ledger.examined_versions(ports.source.name).items():
        if folder not in mirrors and not ports.changelog.is_newest_version(
            folder, examined_version
        ):
            yield (
                folder,
                changelog_judgement(
                    ports, ports.changelog.log_above(folder, examined_version), examined_version
                ),
            )


def mirrors_with_new_commits(
    ports: RunPorts, examined_versions: Mapping[str, int]
) -> list[TableState]:
    """Return the complete tables whose mirrors have commits after the version that was
    examined last, or were never examined."""
    complete = [
        state
        for state in ports.ledger.table_states(ports.source.name).values()
        if state.is_complete and state.mirror_version is not None
    ]
    versions = {
        state.mirror: examined_versions[state.mirror]
        for state in complete
        if state.mirror in examined_versions
    }
    mirrors_with_commits = ports.mirrors.changed_since(versions)
    return [
        state
        for state in complete
        if state.mirror not in versions or state.mirror in mirrors_with_commits
    ]


def tables_to_quarantine(ports: RunPorts) -> list[DisagreeingTable]:
    """Return the tables that the next run would quarantine because of commits to their
    mirrors. Include the tables that it would quarantine because of commits to their
    changelogs once it publishes there. Leave out the mirrors that it writes again,
    because a person has ordered a reload."""
    source = ports.source.name
    orders = ports.ledger.open_orders(source)
    to_reload = {order.table for order in orders if order.kind is OrderKind.RELOAD}
    examined_versions = ports.ledger.examined_versions(source)
    intents = {intent.table: intent for intent in ports.ledger.open_intents(source)}
    disagreeing = []
    for state in mirrors_with_new_commits(ports, examined_versions):
        if state.table in to_reload:
            continue
        # A run that was killed may have made the commit of a write that is still open.
        judgement = mirror_judgement(
            ports, state, examined_versions.get(state.mirror), intents.get(state.table)
        )
        if isinstance(judgement, Behind | Foreign | Unknown):
            error = _mirror_error(ports, state, judgement)
            disagreeing.append(DisagreeingTable(state.table, str(error), error.hint))
    tables = _changelogs_of(ports, {TableCondition.FOLLOWING})
    for folder, judgement in _changelogs_with_new_commits(ports):
        if folder in tables and isinstance(judgement, Behind | Foreign | Unknown):
            table = tables[folder]
            changelog_problem = changelog_error(ports, folder, judgement, table)
            if isinstance(changelog_problem, TableError):
                reason, hint = changelog_problem.reason, changelog_problem.hint
                disagreeing.append(DisagreeingTable(table, reason, hint))
    return disagreeing


def changelogs_with_moved_rows(ports: RunPorts) -> list[DisagreeingTable]:
    """Return the changelogs whose rows another program moved to other files without
    changing them, as a compaction does. A replay, or the next run that publishes there,
    lists the captured files again."""
    tables = _changelogs_of(ports, frozenset(TableCondition))
    return [
        DisagreeingTable(
            tables[folder],
            f"{foreign_sentence(folder, judgement.commit)}: it put rows into files that nobody "
            "recorded",
            f"only Lockstep may write changelogs; {replay_hint(tables[folder])}, and so does the "
            "next run that publishes there; if captured files were deleted since, that run says "
            "what to do",
        )
        for folder, judgement in _changelogs_with_new_commits(ports)
        if folder in tables and isinstance(judgement, Moved)
    ]


def _changelogs_of(ports: RunPorts, conditions: Container[TableCondition]) -> dict[str, TableName]:
    source = ports.source.name
    return {
        changelog_path(source, state.table, generation): state.table
        for state in ports.ledger.table_states(source).values()
        if state.condition in conditions
        for generation in range(1, state.changelog_generation + 1)
    }


def _mirror_error(
    ports: RunPorts, state: TableState, judgement: Judgement
) -> TableError | ForeignCommit:
    mirror, table = state.mirror, state.table
    match judgement:
        case Ahead(commit, ledger):
            return unknown_commit_error(
                ports.source.name, mirror, commit, ledger, ports.ledger.identity()
            )
        case Behind(newest, expected):
            ends = "is missing" if newest is None else f"ends at version {newest}"
            if newest is not None and newest >= expected:
                ends = "was replaced by somebody else"
            return MirrorRefused(
                f"its mirror {mirror} {ends}, and version {expected} of it is in the ledger",
                hint=f"mount or restore the lake's folder; or {reload_hint(table)}",
            )
        case Foreign(commit, how):
            return TableError(
                f"{foreign_sentence(mirror, commit)}: {how}",
                hint=f"find out who did it; {reload_hint(table)}",
            )
        case Unknown(version):
            return TableError(
                f"version {version} of its mirror {mirror} was never examined, and its log no "
                "longer has a file for it: somebody else may have written it",
                hint=f"`lockstep verify {table}` compares it with the source; {reload_hint(table)}",
            )
        case Moved() | AllExpected():
            raise AssertionError("harmless commits make no error")


def unknown_commit_error(
    source: str, folder: str, commit: LakeCommit, ledger: str | None, own_ledger: str
) -> ForeignCommit:
    """Return the error for a commit of Lockstep that the ledger does not know."""
    metadata = commit.metadata or {}
    batches, position = metadata.get("batches"), metadata.get("position")
    subject = f"version {commit.delta_version} of {folder} ({commit_time_text(commit)})"
    if batches:
        subject += f" shows batch {batches[-1]} up to {position}"
    writer = (
        f"of the ledger {ledger}; this one is {own_ledger}" if ledger else "that it does not know"
    )
    return ForeignCommit(
        f"the ledger is behind its lake: {subject}, a write {writer}",
        hint=recovery_hint(source),
    )


def foreign_sentence(folder: str, commit: LakeCommit) -> str:
    """Return a sentence that names a commit of another program."""
    operation = commit.operation or "an operation without a name"
    return (
        f"version {commit.delta_version} of {folder} is not Lockstep's ({operation}, "
        f"{commit_time_text(commit)})"
    )


def commit_time_text(commit: LakeCommit) -> str:
    moment = commit.committed_at
    return "at an unknown time" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


_COMMITS: Final = 50
"""Largest number of commits, newest first, that are searched for one of Lockstep's."""


def foreign_mirrors(ports: RunPorts, tables: Iterable[TableName]) -> dict[TableName, str]:
    """Return the new tables that are left out, each with a sentence that says why:
    another program has a Delta table in the folder of their mirror, or that folder
    cannot be read. A table that a person ordered to be reloaded is not left out."""
    source = ports.source.name
    captured_tables = ports.ledger.table_states(source).keys()
    examined_versions = ports.ledger.examined_versions(source)
    ordered_tables = {load.table for load in ports.ledger.open_loads(source)}
    reasons = {}
    for table in tables:
        mirror = mirror_path(source, ports.source.mirror_name(table))
        if table in captured_tables or table in ordered_tables or mirror in examined_versions:
            continue
        try:
            if _is_foreign(ports, mirror):
                reasons[table] = (
                    f"{table} is left out: somebody else made {mirror} in the lake; "
                    f"`lockstep reload {table} --from source --reason …` replaces it with MySQL's "
                    "rows"
                )
        except MirrorRefused as error:
            reasons[table] = f"{table} is left out: {error.reason}"
    return reasons


def _is_foreign(ports: RunPorts, folder: str) -> bool:
    """Return whether a folder has a Delta table and none of its newest `_COMMITS`
    commits is Lockstep's."""
    if ports.mirrors.version(folder) is None:
        return False
    return not any(commit.is_ours for commit in islice(ports.mirrors.history(folder), _COMMITS))
