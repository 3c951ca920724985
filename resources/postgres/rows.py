"""Conversions between rows of the ledger and values that several modules read and
write.

A function such as `position_columns` returns a value's columns; one such as
`position_of` reads a value from a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar

from lockstep.pipeline.model.table_state import StopPlace
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName

Row = Mapping[str, Any]


class Dataclass(Protocol):
    """An instance of a dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Instance = TypeVar("Instance", bound=Dataclass)


def value_of(kind: type[Instance], row: Row, prefix: str = "", /, **overrides: Any) -> Instance:
    """Return a value of the class `kind`: each field is the row's column named `prefix`
    + field, unless `overrides` gives it."""
    columns = {name: row[prefix + name] for name in _field_names(kind) if name not in overrides}
    return kind(**columns, **overrides)


@cache  # `fields` takes longer than all else, and there may be millions of rows
def _field_names(kind: type[Dataclass]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def columns_of(value: Dataclass, *names: str, prefix: str = "") -> dict[str, Any]:
    """Return the value's fields, or only those of these names, as columns named
    `prefix` + field."""
    wanted = names or _field_names(type(value))
    return {prefix + name: getattr(value, name) for name in wanted}


def position_of(row: Row, prefix: str) -> Position:
    """Return the position in the columns whose names begin with `prefix`, "start_" or
    "end_"."""
    return Position(
        at=coordinates_of(row, prefix),
        gtid_set=GtidSet.parse(row[f"{prefix}gtid_set"]),
        server_uuid=row[f"{prefix}server_uuid"],
        committed_at=row[f"{prefix}committed_at"],
    )


def position_columns(value: Position) -> dict[str, Any]:
    return {
        **coordinate_columns(value.at),
        "gtid_set": str(value.gtid_set),
        "server_uuid": value.server_uuid,
        "committed_at": value.committed_at,
    }


def coordinates_of(row: Row, prefix: str) -> Coordinates:
    """Return the coordinates in the columns whose names begin with `prefix`."""
    file = LogFile(row[f"{prefix}base"], row[f"{prefix}number"])
    return Coordinates(file, row[f"{prefix}offset"])


def coordinate_columns(value: Coordinates | None, prefix: str = "") -> dict[str, Any]:
    """Return coordinates as columns whose names begin with `prefix`."""
    return {
        f"{prefix}base": value and value.file.base,
        f"{prefix}number": value and value.file.number,
        f"{prefix}offset": value and value.offset,
    }


def table_of(row: Row) -> TableName:
    return TableName(row["database"], row["name"])


def table_columns(value: TableName) -> dict[str, Any]:
    return {"database": value.database, "name": value.name}


def table_arrays(values: Iterable[TableName]) -> dict[str, list[str]]:
    """Return the tables as two arrays of the same length, for `unnest`."""
    tables = list(values)
    return {"databases": [t.database for t in tables], "names": [t.name for t in tables]}


def files_of(row: Row) -> tuple[SegmentFile, ...]:
    """Return the files in the column `files`."""
    return tuple(SegmentFile(*file) for file in row["files"] or ())


def file_rows(files: Sequence[SegmentFile]) -> list[dict[str, Any]]:
    """Return one row per file, with its ordinal."""
    return [{"ordinal": ordinal, **columns_of(file)} for ordinal, file in enumerate(files)]


def stop_place_of(row: Row) -> StopPlace | None:
    if row["stopped_batch"] is None:
        return None
    return StopPlace(row["stopped_batch"], coordinates_of(row, "stopped_"))
