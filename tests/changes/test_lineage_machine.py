"""Random tables, followed: the lineage maps every row as the server has it."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from lockstep.pipeline.values.policies import DroppedColumns, LakePolicies, Readers
from lockstep.pipeline.values.stamps import STAMPS
from tests.changes.following import Follower, kept_columns
from tests.changes.server import Server
from tests.twins.lake import MemoryLake
from tests.twins.mirrors import MemoryMirrors


@given(
    dropped=st.sampled_from(DroppedColumns),
    readers=st.sampled_from(Readers),
    buckets=st.sampled_from([1, 3]),
    stamps=st.lists(st.sampled_from(STAMPS.names), unique=True).map(tuple),
    chance=st.randoms(use_true_random=False),
    sizes=st.lists(st.integers(1, 12), max_size=6),
)
@settings(max_examples=50)
def test_a_mirror_follows_columns_and_rows(
    dropped: DroppedColumns,
    readers: Readers,
    buckets: int,
    stamps: tuple[str, ...],
    chance: Random,
    sizes: list[int],
) -> None:
    """Adds, drops, renames, swaps and widenings among inserts, updates, key changes and
    deletes, merged now and then: rows, filled columns and kept values are the server's, and the
    stamps those of each row's last change."""
    server = Server(chance)
    policies = LakePolicies(dropped_columns=dropped, readers=readers, stamps=stamps)
    follower = Follower(MemoryMirrors(MemoryLake()), policies, buckets)
    for size in (4, *sizes):
        for _ in range(size):
            server.step()
        line, _ = follower.run(server)
        assert follower.rows(line) == server.shown(kept_columns(line), stamps)
        assert dropped == DroppedColumns.KEEP or not kept_columns(line)
