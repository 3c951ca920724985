"""What a lake shows of a source, gathered for a ledger that is to be made from it.

Belongs here: asking the lake. Does not: what commits mean (`pipeline.recovery.facts`), what follows
(`recover`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from pipeline.changes.source_tables import source_table_path
from pipeline.claim import BatchSpan
from pipeline.lake_commit import FileAction, LakeCommit
from pipeline.listing import own_files
from pipeline.recovery.facts import (
    LakeFacts,
    MirrorFacts,
    Told,
    forgotten_of,
    mirror_facts,
    newest_of_each,
    table_named,
    told_of,
)
from pipeline.runs.agreement.claim import said_by
from pipeline.runs.context import Workplace
from pipeline.segment import SourceTable, batch_of
from pipeline.table import TableName

COMMITS: Final = 200
"""So many of the newest commits of each table are read."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A changelog, or a table of the source's own: the files it lists, with their sizes, and those
    that it would list if nobody else had committed to it. `newest`: its Delta version."""

    folder: str
    table: TableName | SourceTable
    newest: int
    files: dict[str, int]
    own: Mapping[str, FileAction]

    @property
    def batches(self) -> frozenset[int]:
        found = (batch_of(file) for file in self.own)
        return frozenset(one for one in found if one is not None)

    @property
    def foreign(self) -> tuple[str, ...]:
        """Files that it lists for somebody else."""
        return tuple(sorted(self.files.keys() - self.own.keys()))

    def changes(self, batch: int) -> bool:
        """Whether it is to list other files once that batch is its last."""
        return self.above(batch) or self.files.keys() != self.own.keys()

    def above(self, batch: int) -> bool:
        """Whether it lists what is behind a batch."""
        return max(self.batches, default=0) > batch

    @property
    def generation(self) -> int:
        """Of a changelog, by its folder's name."""
        _, mark, number = self.folder.rpartition("@")
        return int(number) if mark else 1


@dataclass(frozen=True, slots=True)
class GatheredLake:
    """`folders`: of all Delta tables of the source, with their newest versions; `txn_version`:
    the highest number that any write to a mirror had."""

    facts: LakeFacts
    listed: tuple[Listed, ...]
    folders: dict[str, int]
    txn_version: int


def gather(work: Workplace) -> GatheredLake:
    """Reads logs; writes nothing."""
    source = work.source.name
    own = {source_table_path(source, one): one for one in SourceTable}
    folders, mirrors, listed = dict[str, int](), list[MirrorFacts](), list[Listed]()
    told, highest = list[Told](), 0
    claim = said_by(work, "")
    named = [claim.batch or 0]
    void = list(claim.void)
    tables = work.claims.tables(source)
    work.progress.note(f"the logs of {len(tables)} tables in the lake are read")
    for folder in tables:
        commits = list(islice(work.mirrors.history(folder), COMMITS))
        if not commits:
            continue
        folders[folder] = commits[0].delta_version
        changelog = folder.startswith(f"{source}/_changes/")
        table = own.get(folder) or (_table_of(commits) if changelog else None)
        if table is not None:
            files = work.changelog.listed(folder) or {}
            there = {path: FileAction(path, None, True, size=size) for path, size in files.items()}
            left = own_files(there, commits)
            listed.append(Listed(folder, table, commits[0].delta_version, files, left))
            named += [*listed[-1].batches, *_numbers(commits)]
            if table is SourceTable.TRANSACTIONS:
                said = [one for commit in commits if (one := told_of(commit, whole=True))]
                listed_batches = listed[-1].batches
                told = [one for one in said if one.whole and one.batch in listed_batches]
                behind = forgotten_of(commits)
                gone = {one.batch for one in said if one.whole and one.batch > behind}
                void += [BatchSpan(b - 1, b) for b in sorted(gone - listed_batches)]
        elif not changelog and (found := mirror_facts(folder, commits)) is not None:
            mirrors.append(found)
            highest = max([highest, *_numbers(commits)])
    facts = LakeFacts(
        claim.ledger or None,
        tuple(told),
        (),
        void=tuple(void),
        complete=claim.complete,
        highest=max(named),
    )
    each = tuple(_published(mirror, listed) for mirror in newest_of_each(mirrors, facts.counts))
    bare = _unmirrored(listed, {mirror.table for mirror in each})
    facts = replace(facts, mirrors=each, unmirrored=bare)
    return GatheredLake(facts, tuple(listed), folders, highest)


def _table_of(commits: Iterable[LakeCommit]) -> TableName | None:
    """Whose changelog it is, by the newest commit that says so."""
    for commit in commits:
        with suppress(KeyError, TypeError, ValueError):
            return table_named(commit.said or {})
    return None


def _numbers(commits: Iterable[LakeCommit]) -> Iterable[int]:
    """The numbers of writes to a mirror; of batches in a changelog, or of a replay's revisions."""
    for commit in commits:
        yield from (n for name, n in commit.transactions.items() if name.startswith("lockstep/"))
        number = (commit.said or {}).get("txn_version")
        if isinstance(number, int):
            yield number


def _unmirrored(
    listed: Iterable[Listed], mirrored: Collection[TableName]
) -> tuple[tuple[TableName, int], ...]:
    first: dict[TableName, int] = {}
    for changelog in listed:
        if (
            isinstance(changelog.table, TableName)
            and changelog.table not in mirrored
            and changelog.batches
        ):
            begins = min(changelog.batches)
            first[changelog.table] = min(begins, first.get(changelog.table, begins))
    return tuple(sorted(first.items()))


def _published(mirror: MirrorFacts, listed: Sequence[Listed]) -> MirrorFacts:
    """With what its changelogs have."""
    own = (changelog.batches for changelog in listed if changelog.table == mirror.table)
    return replace(mirror, published=frozenset().union(*own))
