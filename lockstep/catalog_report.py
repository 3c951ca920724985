"""What is registered in the catalog, and what differs: lines and JSON of the command, of a run and
of `status`.

Belongs here: how it looks. Does not: what is found (`pipeline.runs.registering`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from lockstep import exits
from lockstep.report import counted, error_json, rounded
from pipeline.runs.registering.gather import CatalogStanding
from pipeline.runs.registering.outcome import CatalogReport, Deed

_WOULD: Final = {
    Deed.REGISTERED: "not registered",
    Deed.CHANGED: "not as it should be",
    Deed.RENAMED: "registered under another name",
    Deed.DROPPED: "still registered, and the table is gone",
}
_NAMED: Final = 5
"""Tables that `status` names."""


def report_lines(report: CatalogReport, *, carried_out: bool) -> Iterator[str]:
    """What was done or would be, what was left and why, then how many are right."""
    for one in report.done:
        told = one.deed.value if carried_out else _WOULD[one.deed]
        yield f"{one.table} as {one.name}: {told}"
    for left in report.left:
        yield f"{left.table} as {left.name}: left out: {left.why}"
        yield f"  hint: {left.hint}"
    if report.trouble is not None:
        yield f"{report.trouble.message}"
        yield f"  hint: {report.trouble.hint}"
        return
    right = "1 entry is as it" if report.fine == 1 else f"{report.fine:,} entries are as they"
    yield f"{report.catalog}: {right} should be"
    if report.done and not carried_out:
        yield "nothing was changed; `lockstep catalog --yes` puts it right"


def exit_code(report: CatalogReport, *, carried_out: bool) -> int:
    """Differences where something is not as it should be when the command ends."""
    if report.trouble is not None:
        return report.trouble.recovery.exit_code
    differs = bool(report.left or (report.done and not carried_out))
    return exits.DIFFERENCES if differs else exits.DONE


def catalog_lines(report: CatalogReport) -> Iterator[str]:
    """What a run did in the catalog; of what it could not do, how to see why."""
    deeds = Counter(one.deed.value for one in report.done)
    if deeds:
        told = ", ".join(f"{count:,} {deed}" for deed, count in sorted(deeds.items()))
        yield f"  catalog: {told}"
    if report.left:
        tables = counted(len(report.left), "table")
        yield f"  catalog: {tables} could not be registered: `lockstep catalog` says why"
    if report.waiting:
        yield f"  catalog: {counted(report.waiting, 'table')} more with the next run"
    if report.trouble is not None:
        yield f"  catalog: {report.trouble.message}"
        yield f"    hint: {report.trouble.hint}"


def catalog_json(report: CatalogReport | None) -> dict[str, Any] | None:
    """Null where mirrors are not registered."""
    if report is None:
        return None
    return {
        "catalog": report.catalog,
        "done": [
            {"deed": one.deed.value, "table": str(one.table), "name": str(one.name)}
            for one in report.done
        ],
        "left": [
            {
                "table": str(entry.table),
                "name": str(entry.name),
                "reason": entry.why,
                "hint": entry.hint,
            }
            for entry in report.left
        ],
        "fine": report.fine,
        "waiting": report.waiting,
        "trouble": None if report.trouble is None else error_json(report.trouble),
        "seconds": rounded(report.seconds),
    }


def standing_lines(standing: CatalogStanding) -> Iterator[str]:
    """By what the ledger knows."""
    told = f"  catalog: {counted(standing.registered, 'table')} registered"
    if standing.waiting:
        named = ", ".join(map(str, standing.waiting[:_NAMED]))
        more = len(standing.waiting) - _NAMED
        told += f"; waiting for the next run: {named}{f' and {more} more' if more > 0 else ''}"
    if standing.left:
        told += f"; {len(standing.left)} can have no name there: `lockstep catalog` says why"
    yield told


def standing_json(standing: CatalogStanding) -> dict[str, Any]:
    return {
        "catalog": standing.catalog,
        "registered": standing.registered,
        "waiting": [str(table) for table in standing.waiting],
        "left": [str(entry.table) for entry in standing.left],
    }
