"""How the tables of a source stand, and what people and comparisons say of them.

Belongs here: the port to tables' states, to what of them the lake can have, to orders, loads and
proofs. Does not: what a capture says of them (`Batches.record_capture`), carrying orders out
(`CaptureRecord.orders_done`), following and joining a load (`CaptureRecord.followed`,
`CaptureRecord.joined`), comparing (`runs.inspecting`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from pipeline.decisions import Lease
from pipeline.errors import Remedy
from pipeline.life.events import MirrorEvent
from pipeline.load import ChunkRows, Load, LoadBasis
from pipeline.proof.proven import Compared, TableProof
from pipeline.schema.model import TableSchema
from pipeline.snapshot.bounds import Range
from pipeline.table import TableName
from pipeline.table_state import Extent, OrderKind, Quarantine, TableOrder, TableState


class Tables(Protocol):
    """The state of each table that was ever captured, which is what the events of its life make
    of it; orders, each with its author and reason; one load of a table at a time that is not joined
    and not void; what comparisons found, which are noted without a lease."""

    # -- states --------------------------------------------------------------------------------

    def table_states(self, source: str) -> dict[TableName, TableState]: ...

    def partial(self, source: str) -> list[Extent]:
        """Tables that the lake can have but a part of, by name, as live batches left them;
        some of them nobody has seen a change of, and they have no state."""

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        """The lake was found to have all of these tables, as of the batch's end."""

    def quarantine(self, lease: Lease, quarantined: Quarantine) -> None:
        """active → quarantined, outside a capture; repeating it changes nothing. The table's
        open write is given up: to be called when nothing of it is in the lake."""

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        """What happened to the table's mirror, outside a capture; the state behind it."""

    # -- orders --------------------------------------------------------------------------------

    def order_table(
        self,
        lease: Lease,
        table: TableName,
        kind: OrderKind,
        *,
        author: str,
        reason: str,
        remedy: Remedy | None = None,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
    ) -> TableOrder:
        """Record what a person orders, and the state that follows at once.

        `PAUSE`: any → paused. An active table stops where the captures are, any other where it had
        stopped; what of it is not merged, and a write that was begun, waits until it is resumed,
        and `remedy` is kept that long. `RESUME`: have a paused table caught up by the next capture;
        open until then. `RELEASE`: the same of a quarantined table; `schema` is the structure that
        it has from where it stopped, and `renames` the columns that had another name before. Given
        again before that, the newer one takes its place. `RELOAD`: have its mirror written anew
        after the next capture, open until then; one that is active stops at once.
        """

    def open_orders(self, source: str) -> list[TableOrder]:
        """Orders that no live batch carried out, oldest first."""

    # -- loads ---------------------------------------------------------------------------------

    def order_load(self, lease: Lease, table: TableName, *, author: str, reason: str) -> Load:
        """Have a table read from the source, also one that nothing was captured of. An open load
        of it that nothing was read for is the one; one that is being read is refused."""

    def open_loads(self, source: str) -> list[Load]:
        """Loads that no live batch joined and that are not void, oldest first."""

    def begin_load(self, lease: Lease, load: int, reading: LoadBasis) -> None:
        """From now on its chunks may be planned."""

    def plan_chunk(self, lease: Lease, load: int, number: int, range: Range) -> None:
        """A chunk that begins where the one before it ends."""

    def record_chunk(self, lease: Lease, load: int, number: int, read: ChunkRows) -> None:
        """The chunk was read, and its files are durable. Once."""

    def void_load(self, lease: Lease, load: int, why: str) -> None:
        """What was read for it counts no more; another one may be ordered."""

    # -- proofs --------------------------------------------------------------------------------

    def note_compared(self, source: str, compared: Sequence[Compared]) -> None:
        """These tables were compared now. What was proven before stays where rows differ."""

    def proofs(self, source: str) -> list[TableProof]:
        """Of every table that was compared, by name; of all of it before samples."""
