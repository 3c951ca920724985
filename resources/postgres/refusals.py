"""Errors for steps that the ledger refuses, with the name of the broken rule and a
sentence about it.

A rule is a constraint of the schema, or is checked by a trigger. A rule that a person
can break has a sentence here; any other has the trigger's message, if there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lockstep.pipeline.values.errors import ConsumerRefused, ConsumerUnknown, LedgerRefused
from lockstep.pipeline.values.table import TableName

_HINT = "Look at the batches with `lockstep status`, then run `lockstep run` again."
_MISSING_HINT = (
    "If another server of Postgres took over without the newest commits, or the ledger was "
    "restored, run again: the next run compares the ledger with the lake. Else report this, with "
    "what `lockstep status --json` prints."
)
_ORDER_HINT = "`lockstep status` shows which tables are stopped, and what to do."
_DEFECT_HINT = "report this, with what `lockstep status --json` prints"

ORDERS: Mapping[str, str] = MappingProxyType(
    {
        "table_orders_table": "an order is about a recorded table",
        "table_orders_authored": "an order has an author",
        "table_orders_resume_stopped": "only a table that is stopped is resumed",
        "table_orders_reload_there": "a table that was dropped is not reloaded",
    }
)
"""Rule for orders (requests about a table, such as pausing it) → sentence."""

MISSING: Mapping[str, str] = MappingProxyType(
    {
        "batches_known": "it does not have the batch",
        "load_chunks_known": "it does not have the part of the table that was to be read",
        "loads_known": "it does not have the reading of the table",
        "prepared_known": "it does not have the prepared transaction",
        "revisions_known": "it does not have the replay",
        "table_orders_known": "it does not have the order",
        "writes_known": "it does not have the write that was begun",
    }
)
"""Rule for rows that an earlier step recorded → sentence. They are missing if the
ledger went back in time while a process was using it."""

CONSUMERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "consumers_named": (
            "a consumer has a name",
            'give it one: lockstep.make_consumer("SOURCE", "NAME")',
        ),
        "consumers_name_once": (
            "a source has only one consumer of each name",
            "go on as that consumer with lockstep.consume, or take another name",
        ),
        "consumers_start": (
            "a consumer begins after a batch of its source",
            'use start="earliest", start="latest", or the id of an acknowledged batch '
            "of that source, as the column _batch of its changelogs has it",
        ),
        "consumers_start_acknowledged": (
            "a consumer begins after an acknowledged batch",
            'use a batch up to the acknowledged one in `lockstep status`, or start="latest"',
        ),
        "consumers_start_kept": (
            "the changes after the batch at which the consumer would begin were deleted",
            'use start="earliest": it begins at the earliest batch after which nothing was deleted',
        ),
        "consumers_drop_explained": (
            "dropping a consumer takes an author and a reason",
            "say why: lockstep.drop_consumer(…, reason=…)",
        ),
        "consumers_dropped_once": (
            "a consumer is dropped once",
            "nothing is left to do: it is gone",
        ),
        "deliveries_of_live_consumers": (
            "a dropped consumer gets nothing and acknowledges nothing",
            "somebody dropped it meanwhile; lockstep.make_consumer makes another of that name",
        ),
        "deliveries_go_on": (
            "a delivery begins where the one before it ended",
            "another process took deliveries of this consumer meanwhile: call consumer.get() again",
        ),
        "deliveries_acknowledged_once": (
            "a delivery is acknowledged once and stays so",
            "nothing is left to do for this one; consumer.get() gives what comes after it",
        ),
        "deliveries_rolled_back_once": (
            "a delivery that was rolled back is given again under another id",
            "consumer.get() gives it again: acknowledge that delivery",
        ),
        "deliveries_acknowledged_in_order": (
            "deliveries are acknowledged oldest first",
            "acknowledge the first one of consumer.out(), or take all of them back with "
            "consumer.rollback()",
        ),
        "deliveries_rolled_back_newest_first": (
            "deliveries are rolled back newest first",
            "consumer.rollback() takes back all that is out",
        ),
        "deliveries_known": (
            "no delivery with that id was given to this consumer",
            "consumer.out() lists those that can be acknowledged or taken back",
        ),
    }
)
"""Rule for consumers (named readers of changelogs) → sentence and cure. A consumer's
step that breaks any other rule is a defect."""


def refusal(rule: str, complaint: str | None = None) -> LedgerRefused:
    """Return the error for a broken rule. `complaint`: the message of the trigger. The
    rule's name is in the message, for support, unless `CONSUMERS` has the rule."""
    if rule in CONSUMERS:
        sentence, cure = CONSUMERS[rule]
        return ConsumerRefused(f"That is refused: {sentence}.", hint=cure, rule=rule)
    if rule in MISSING:
        return LedgerRefused(
            f"The ledger refused a step: {MISSING[rule]} ({rule}).", hint=_MISSING_HINT
        )
    words = ORDERS.get(rule, complaint)
    sentence = f"({rule})" if words is None else f"{words} ({rule})"
    if rule.startswith(("consumers_", "deliveries_")):
        return ConsumerRefused(f"That is refused: {sentence}.", hint=_DEFECT_HINT, rule=rule)
    is_order = rule.startswith("table_orders_")
    subject, hint = ("an order", _ORDER_HINT) if is_order else ("a step", _HINT)
    return LedgerRefused(f"The ledger refused {subject}: {sentence}.", hint=hint)


def unknown_version(table: TableName, version: int) -> LedgerRefused:
    """Return the error for a version that the table does not have."""
    return LedgerRefused(
        f"The ledger has no version {version} of {table}.",
        hint="Look at the table's state with `lockstep tables`.",
    )


def unknown_statement(statement_id: int) -> LedgerRefused:
    """Return the error for a statement that the source does not have."""
    return LedgerRefused(
        f"The ledger has no statement {statement_id} of this source.",
        hint="`lockstep schema TABLE` shows a table's history.",
    )


def unknown_consumer(source: str, name: str) -> ConsumerUnknown:
    """Return the error for a consumer that was never made, or was dropped."""
    return ConsumerUnknown(
        f"The source {source!r} has no consumer {name!r}.",
        hint=f'lockstep.make_consumer("{source}", "{name}", start="latest") makes one',
    )
