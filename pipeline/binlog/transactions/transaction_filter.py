"""Transactions left out of groups: those that were read before, perhaps from another server.

Belongs here: taking them and their row events out of a group's indexes. Does not: which
those are (`pipeline.start`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pipeline.binlog.stream.ring import TRANSACTION, Block, TransactionGroup
from pipeline.binlog.transactions.identity import members
from pipeline.gtid import GtidSet


class LeaveOut:
    """Leaves the transactions of a set out of one group after the other.

    `out_of_order` counts those that stand behind a new one: this server committed the new
    one earlier, and whoever reads gets it later.
    """

    def __init__(self, gtids: GtidSet) -> None:
        self._gtids = gtids
        self._new = False
        self.out_of_order = 0

    def rest(self, group: TransactionGroup) -> TransactionGroup | None:
        """The group without them; None if that is nothing."""
        keep = ~members(group.transactions, group.sources, self._gtids)
        first = 0 if self._new else int(np.argmax(keep)) if keep.any() else len(keep)
        self.out_of_order += int((~keep[first:]).sum())
        self._new = self._new or bool(keep.any())
        if keep.all():
            return group
        if not keep.any():
            return None
        number = np.cumsum(keep) - 1
        return replace(
            group,
            transactions=group.transactions[keep],
            statements=tuple(
                (int(number[at]), query) for at, query in group.statements if keep[at]
            ),
            elsewhere=tuple((int(number[at]), rows) for at, rows in group.elsewhere if keep[at]),
            blocks=_kept(group.blocks, keep, number),
            texts=group.texts.of(keep, number),
        )


def _kept(
    blocks: Iterator[Block], keep: npt.NDArray[np.bool_], number: npt.NDArray[np.int64]
) -> Iterator[Block]:
    for block in blocks:
        events = block.events[keep[block.events[:, TRANSACTION]]]
        events[:, TRANSACTION] = number[events[:, TRANSACTION]]
        if len(events):
            yield Block(block.data, events)
