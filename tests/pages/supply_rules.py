"""How a table is brought to a place, as a table: `pipeline.supply`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final, cast

from lockstep.pipeline.mirror.merging import ChangelogOrigin
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.load import Load
from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.supply import (
    RULES,
    ColumnsFromServer,
    FromChangelog,
    FromLog,
    FromPast,
    Have,
    LogSpan,
    NewColumns,
    Past,
    Plan,
    RowsFromServer,
    Supply,
    SupplyStanding,
    Want,
    plan,
)
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.intent import MirrorVersion
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.pages.made import MadePart, row

SUPPLIES: Final[dict[type[Supply], str]] = {
    FromPast: "log before it was followed",
    FromLog: "log",
    FromChangelog: "changelog, or version of its mirror and changelog",
    ColumnsFromServer: "MySQL (columns)",
    RowsFromServer: "MySQL",
}

TABLE: Final = TableName("shop", "orders")
LOG: Final = LogSpan(cast("Any", None), cast("Any", None), None, Coordinates.parse("a.000001:4"))
CHANGELOG: Final = ChangelogOrigin((TableContent(7),), 1)
BASED: Final = ChangelogOrigin(
    (TableContent(9),), 2, MirrorVersion(3, TABLE, "shop/shop/orders", 5, 8)
)
COLUMNS: Final = NewColumns(3, ("note",))
PAST: Final = Past.after(Coordinates.parse("a.000001:4"), "the log begins there")
LOAD: Final = Load(1, TABLE, "ada", "a reason", datetime(2026, 11, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Reached:
    """How far each supply reaches, told beforehand (`pipeline.supply.Reach`)."""

    log: LogSpan | str | None = None
    changelog: ChangelogOrigin | str = "it has a gap"
    earlier_version: ChangelogOrigin | str = "no version is left"
    has_whole_mirror: bool = True
    columns: NewColumns | str = COLUMNS
    past: Past | str = "it is purged"


def every_case() -> Iterator[tuple[Have, Want, Reached]]:
    """Every table that lacks at most two things, whatever is wanted and reached."""
    lacking = {frozenset(pair) for pair in product(Need, repeat=2)} | {frozenset[Need]()}
    haves = [
        Have(TABLE, standing, needs=needs, reason="a reason", load=load)
        for standing, needs, load in product(SupplyStanding, lacking, (None, LOAD))
    ]
    wants = [Want(rewrite, supplier) for rewrite in (False, True) for supplier in (None, *Supplier)]
    logs: tuple[LogSpan | str | None, ...] = (None, LOG, "purged")
    changelogs: tuple[ChangelogOrigin | str, ...] = (CHANGELOG, "a gap")
    earlier: tuple[ChangelogOrigin | str, ...] = (BASED, "no version is left")
    columns: tuple[NewColumns | str, ...] = (COLUMNS, "more")
    pasts: tuple[Past | str, ...] = (PAST, replace(PAST, is_whole=True), "purged")
    every = product(logs, changelogs, earlier, (True, False), columns, pasts)
    reaches = [Reached(*reached) for reached in every]
    return product(haves, wants, reaches)


def supplied() -> dict[str, set[type[Supply]]]:
    """What supplies a table by each rule, in any case."""
    found: dict[str, set[type[Supply]]] = {rule.name: set() for rule in RULES}
    for case in every_case():
        decided: Plan = plan(*case)
        found[decided.rule] |= {type(step.supply) for step in decided.steps}
    return found


def table() -> str:
    """One row a rule, in their order: the first that applies decides."""
    lines = [row(("rule", "the table", "what supplies what it lacks", "from")), "|---" * 4 + "|"]
    for rule, kinds in zip(RULES, supplied().values(), strict=True):
        supplies = ", ".join(words for kind, words in SUPPLIES.items() if kind in kinds)
        lines.append(row((rule.name, *rule.words, supplies)))
    return "\n".join(lines)


PART: Final = MadePart("supply_rules", "docs/tables.md", table)
