"""Examines the commits to a source's tables in the lake since the last run. The ledger
records the Delta version up to which each table's log was examined.

A commit of another program quarantines (stops) one table. So does a mirror (the table
with the current rows) that is missing or ends too early. A commit of Lockstep that this
ledger does not know concerns the whole source: the ledger or the lake was restored,
or two ledgers write to one lake.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
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
from lockstep.pipeline.model.lake_commit import LakeCommit, LogSince
from lockstep.pipeline.model.table_state import (
    OrderKind,
    StoppedTable,
    TableCondition,
    TableState,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.stop_errors import reload_hint
from lockstep.pipeline.values.errors import ForeignCommit, MirrorRefused, TableError
from lockstep.pipeline.values.intent import Intent, NewestWrites
from lockstep.pipeline.values.segment import SystemTable
from lockstep.pipeline.values.table import TableName

_MOST_SEARCHED_COMMITS: Final = 50
"""Number of newest commits in a folder that are searched for one of Lockstep's."""


ChangedChangelogs = Sequence[tuple[str, Judgement]]
"""The folders of changelogs, and of system tables, that have new commits, each
with the judgement on these commits."""


def checked_version(ports: RunPorts, state: TableState, judgement: Judgement) -> int | None:
    """Return the newest version of a mirror, or None if it does not exist. Raise
    `TableError` if its `judgement` concerns the table, and `ForeignCommit` if it
    concerns the whole source."""
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
    """Return the judgement on the commits to a mirror after `examined_version`.

    `intent`: an open write, whose commit is expected. `will_be_replaced`: all rows of
    the mirror are about to be replaced, so commits of other programs do not matter.
    `newest_writes`: the mirror's, if the caller has them from the ledger.
    """
    source = ports.source.name
    app_id = application_id(source, state, "mirror")
    if newest_writes is None:
        newest_writes = ports.ledger.newest_writes(source, [app_id])[app_id]
    record = MirrorRecord(
        ledger=ports.ledger.identity(),
        app_id=app_id,
        settled=newest_writes.settled_write,
        open_intent=intent,
        examined_version=examined_version,
        adopted_version=-1 if state.adopted_version is None else state.adopted_version,
        last_txn_version=newest_writes.last_txn_version,
    )
    return judge_mirror_log(
        ports.mirrors.log_since(state.mirror, record.base_version),
        record,
        will_be_replaced=will_be_replaced,
    )


def changelog_judgement(ports: RunPorts, log: LogSince, examined_version: int) -> Judgement:
    """Return the judgement on the commits to a changelog, or to a system table
    (`_transactions`, `_ddl`), after `examined_version`. `log`: these commits."""
    ledger, source = ports.ledger, ports.source.name
    last_batches = {
        batch_ids[-1]
        for commit in log.commits
        if (batch_ids := (commit.metadata or {}).get("batches"))
    }
    batches = {
        batch.id: batch
        for batch_id in last_batches
        for batch in ledger.live_batches(source, batch_id, batch_id)
    }
    return judge_changelog_log(
        log,
        examined_version,
        ledger.identity(),
        batches,
        ledger.pruned_through(source),
        ledger.revisions(source).newest,
    )


def changelog_error(
    ports: RunPorts, folder: str, judgement: Judgement, table: TableName | SystemTable
) -> TableError | None:
    """Return the error for what concerns only a changelog's table, or None if the
    commits are harmless. Raise `ForeignCommit` for what concerns the whole source."""
    match judgement:
        case Ahead():
            raise _ahead_error(ports, folder, judgement)
        case Behind(_, expected):
            remark = ". The mirror has all rows" if isinstance(table, TableName) else ""
            return TableError(
                f"the changelog {folder} {_end_in_words(judgement)}, and version {expected} of it "
                f"is in the ledger: its later changes are lost{remark}",
                hint=f"mount or restore the folder before the next run; {keep_hint(table)}",
            )
        case Foreign(commit, effect):
            return TableError(
                f"{_foreign_sentence(folder, commit)}: {effect}. The changelog may lack changes, "
                "or have some that never happened",
                hint=f"find out who did it; {replay_hint(table)}; {keep_hint(table)}",
            )
        case Unknown(version):
            return TableError(
                f"version {version} of {folder} was never examined, and its log no longer has a "
                "file for it: another program may have written it",
                hint=f"{replay_hint(table)}; {keep_hint(table)}",
            )
        case Moved() | AllExpected():
            return None


def keep_hint(table: TableName | SystemTable) -> str:
    """Return the hint to go on with a changelog as another program left it."""
    return f"`lockstep resume {table.word} --reason …` goes on with the changelog as it is"


def replay_hint(table: TableName | SystemTable) -> str:
    """Return the hint to list a changelog's captured files again."""
    tables_option = f" --tables {table.word}" if isinstance(table, TableName) else ""
    return f"`lockstep replay --from earliest --to latest{tables_option}` lists what was captured"


def disagreeing_tables(ports: RunPorts) -> list[StoppedTable]:
    """Return the tables whose mirrors have commits of Lockstep that the ledger does not
    know, or lack commits that it knows."""
    states = ports.ledger.table_states(ports.source.name).values()
    examined_versions = ports.ledger.examined_versions(ports.source.name)
    return [
        _stopped_table(state.table, _mirror_error(ports, state, judgement))
        for state, judgement in _mirror_judgements(ports, states, examined_versions)
        if isinstance(judgement, Ahead | Behind) and not state.is_mirror_removed
    ]


def _mirror_judgements(
    ports: RunPorts, states: Iterable[TableState], examined_versions: Mapping[str, int]
) -> Iterator[tuple[TableState, Judgement]]:
    # A run that was killed may have made the commit of a write that is still open.
    intents = {intent.table: intent for intent in ports.ledger.open_intents(ports.source.name)}
    for state in states:
        examined_version, intent = examined_versions.get(state.mirror), intents.get(state.table)
        yield state, mirror_judgement(ports, state, examined_version, intent)


def _stopped_table(table: TableName, error: TableError | ForeignCommit) -> StoppedTable:
    return StoppedTable(table, str(error), error.hint, "")


def unrecorded_commit_error(
    ports: RunPorts, changelogs: ChangedChangelogs | None = None
) -> ForeignCommit | None:
    """Return the error of the first changelog, or system table, with a commit of
    Lockstep that the ledger does not know; None if there is none. `changelogs`: the
    result of `changed_changelogs`, if the caller has it."""
    for folder, judgement in changed_changelogs(ports) if changelogs is None else changelogs:
        if isinstance(judgement, Ahead):
            return _ahead_error(ports, folder, judgement)
    return None


def claim_obstacle(ports: RunPorts) -> ForeignCommit | None:
    """Return why the ledger must not claim a source's folder, or None if it may claim
    it. It must not if the newest commit to a changelog, or to a system table, names a
    batch that the ledger does not know."""
    if (error := unrecorded_commit_error(ports)) is not None:
        return error
    source = ports.source.name
    examined_versions = ports.ledger.examined_versions(source)
    for folder in ports.claims.table_folders(source):
        # The folder of a mirror begins with a database's name, whose `_` is escaped.
        is_changelog = folder.startswith(f"{source}/_")
        if not is_changelog or folder in examined_versions:
            continue
        commit = next((commit for commit in ports.mirrors.history(folder) if commit.is_ours), None)
        if commit is None:
            continue
        log = LogSince(commit.delta_version, commits=(commit,))
        judgement = changelog_judgement(ports, log, examined_version=-1)
        if isinstance(judgement, Ahead):
            return _ahead_error(ports, folder, judgement)
    return None


def changed_changelogs(ports: RunPorts) -> ChangedChangelogs:
    """Return the changelogs, and the system tables, with commits after the version that
    was examined last, and the judgement on these commits."""
    mirrors = {state.mirror for state in ports.ledger.table_states(ports.source.name).values()}
    examined_versions = ports.ledger.examined_versions(ports.source.name)
    versions = {
        folder: version for folder, version in examined_versions.items() if folder not in mirrors
    }
    logs = {
        folder: ports.changelog.log_since(folder, versions[folder])
        for folder in sorted(ports.mirrors.changed_since(versions))
    }
    return [
        (folder, changelog_judgement(ports, log, versions[folder])) for folder, log in logs.items()
    ]


def mirrors_with_new_commits(
    ports: RunPorts, examined_versions: Mapping[str, int]
) -> list[TableState]:
    """Return the complete tables whose mirrors have commits after the version that was
    examined last, or were never examined."""
    complete_tables = [
        state
        for state in ports.ledger.table_states(ports.source.name).values()
        if state.is_complete and state.mirror_schema_version is not None
    ]
    versions = {
        state.mirror: examined_versions[state.mirror]
        for state in complete_tables
        if state.mirror in examined_versions
    }
    mirrors_with_commits = ports.mirrors.changed_since(versions)
    return [
        state
        for state in complete_tables
        if state.mirror not in versions or state.mirror in mirrors_with_commits
    ]


def tables_to_quarantine(ports: RunPorts, changelogs: ChangedChangelogs) -> list[StoppedTable]:
    """Return the tables that runs would quarantine because of commits that are not
    Lockstep's. For a commit to a mirror, the next run does so. For a commit to a
    changelog, the next run that publishes to this changelog does so. A mirror is left
    out if a person ordered to reload its table, because it is written again."""
    source = ports.source.name
    orders = ports.ledger.open_orders(source)
    tables_to_reload = {order.table for order in orders if order.kind is OrderKind.RELOAD}
    examined_versions = ports.ledger.examined_versions(source)
    changed_mirrors = mirrors_with_new_commits(ports, examined_versions)
    states = [state for state in changed_mirrors if state.table not in tables_to_reload]
    stopped_tables = [
        _stopped_table(state.table, _mirror_error(ports, state, judgement))
        for state, judgement in _mirror_judgements(ports, states, examined_versions)
        if isinstance(judgement, Behind | Foreign | Unknown)
    ]
    table_by_folder = _changelogs_of(ports, {TableCondition.FOLLOWING})
    for folder, judgement in changelogs:
        if folder not in table_by_folder or isinstance(judgement, Ahead):
            continue
        table = table_by_folder[folder]
        if (error := changelog_error(ports, folder, judgement, table)) is not None:
            stopped_tables.append(_stopped_table(table, error))
    return stopped_tables


def changelogs_with_moved_rows(
    ports: RunPorts, changelogs: ChangedChangelogs
) -> list[StoppedTable]:
    """Return the changelogs whose rows another program moved to other files without
    changing them, as a compaction does. A replay, or the next run that publishes there,
    lists the captured files again."""
    table_by_folder = _changelogs_of(ports, frozenset(TableCondition))
    return [
        StoppedTable(
            table_by_folder[folder],
            f"{_foreign_sentence(folder, judgement.commit)}: it put rows into files that the "
            "ledger did not record",
            f"only Lockstep may write changelogs; {replay_hint(table_by_folder[folder])}; the next "
            "run that publishes there does the same, or says what to do if captured files were "
            "deleted since",
            "",
        )
        for folder, judgement in changelogs
        if folder in table_by_folder and isinstance(judgement, Moved)
    ]


def _changelogs_of(ports: RunPorts, conditions: Container[TableCondition]) -> dict[str, TableName]:
    """Return, by folder, the tables of all changelogs that tables in these conditions
    have had."""
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
        case Ahead():
            return _ahead_error(ports, mirror, judgement)
        case Behind(_, expected):
            return MirrorRefused(
                f"its mirror {mirror} {_end_in_words(judgement)}, and version {expected} of it is "
                "in the ledger",
                hint=f"mount or restore the lake's folder; or {reload_hint(table)}",
            )
        case Foreign(commit, effect):
            return TableError(
                f"{_foreign_sentence(mirror, commit)}: {effect}",
                hint=f"find out who did it; {reload_hint(table)}",
            )
        case Unknown(version):
            return TableError(
                f"version {version} of its mirror {mirror} was never examined, and its log no "
                "longer has a file for it: another program may have written it",
                hint=f"`lockstep verify {table.word}` compares it with the source; "
                f"{reload_hint(table)}",
            )
        case Moved() | AllExpected():
            raise AssertionError("harmless commits make no error")


def _end_in_words(behind: Behind) -> str:
    """Return what became of a Delta table that is behind, as a predicate."""
    if behind.newest is None:
        return "is missing"
    if behind.newest >= behind.expected_version:
        return "was replaced by another program"
    return f"ends at version {behind.newest}"


def _ahead_error(ports: RunPorts, folder: str, ahead: Ahead) -> ForeignCommit:
    """Return the error for a commit of Lockstep that the ledger does not know."""
    commit = ahead.commit
    metadata = commit.metadata or {}
    subject = f"version {commit.delta_version} of {folder} ({_commit_time_text(commit)})"
    if batches := metadata.get("batches"):
        subject += f" shows batch {batches[-1]} up to {metadata.get('place')}"
    write = "a write that the ledger does not know"
    if ahead.ledger:
        write = f"a write of the ledger {ahead.ledger}; this one is {ports.ledger.identity()}"
    return ForeignCommit(
        f"the ledger is behind its lake: {subject}, {write}",
        hint=recovery_hint(ports.source.name),
    )


def _foreign_sentence(folder: str, commit: LakeCommit) -> str:
    """Return a sentence that names a commit of another program."""
    operation = commit.operation or "an operation without a name"
    return (
        f"version {commit.delta_version} of {folder} is not Lockstep's ({operation}, "
        f"{_commit_time_text(commit)})"
    )


def _commit_time_text(commit: LakeCommit) -> str:
    moment = commit.committed_at
    return "at an unknown time" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def foreign_mirrors(ports: RunPorts, tables: Iterable[TableName]) -> dict[TableName, str]:
    """Return the given tables that runs do not begin to capture, each with a sentence
    that says why: another program has a Delta table in the folder of their mirror, or
    that folder cannot be read. Tables that are already captured, or that a person
    ordered to reload, are not returned."""
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
                    f"{table} is left out: another program made {mirror} in the lake; "
                    f"`lockstep reload {table.word} --from source --reason …` replaces it with "
                    "MySQL's rows"
                )
        except MirrorRefused as error:
            reasons[table] = f"{table} is left out: {error.reason}"
    return reasons


def _is_foreign(ports: RunPorts, folder: str) -> bool:
    """Return whether a folder has a Delta table, and none of its newest commits is
    Lockstep's."""
    if ports.mirrors.version(folder) is None:
        return False
    commits = islice(ports.mirrors.history(folder), _MOST_SEARCHED_COMMITS)
    return not any(commit.is_ours for commit in commits)
