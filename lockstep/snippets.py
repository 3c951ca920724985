"""Code that opens a table of the lake, ready to paste, per reader.

Belongs here: texts. Which tables there are, and how columns of several meet, is decided
before (`resources.lake.generations`, `pipeline.changes.generations`).

Paths and names are quoted as each language wants it: names and paths come from the source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from pipeline.changes.generations import SharedColumn


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A Delta table to be read: its absolute path and its columns."""

    path: str
    schema: pa.Schema


_SESSION = "# with --packages io.delta:delta-spark_4.2_2.13:4.4.0, for Spark 4.2\n"

_BY_AGE = "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
"""Delta's refusal of a version whose commit is old, also where it was the newest until now."""


_REFUSED: Final[Mapping[str, Mapping[str, str]]] = {
    "delta-rs": {"typeWidening": "types of its columns were widened"},
    "Polars": {
        "columnMapping": "columns of it were renamed or dropped",
        "typeWidening": "types of its columns were widened",
    },
}
"""By reader, the features of a table that it refuses, and what made the table have them
(deltalake 1.6, Polars 2.1). Spark and DuckDB's delta extension read all that mirrors have."""


def refusals(features: Collection[str]) -> dict[str, str]:
    """Which readers cannot read a table with these features of the protocol, and why."""
    found = {}
    for reader, refused in _REFUSED.items():
        # A feature's name may go on: typeWidening-preview.
        why = [
            told
            for name, told in refused.items()
            if any(feature.partition("-")[0] == name for feature in features)
        ]
        if why:
            found[reader] = f"it does not read this table: {' and '.join(why)}"
    return found


def version_snippets(path: str, version: int, features: Collection[str] = ()) -> dict[str, str]:
    """For one Delta table at a version, by the readers that can."""
    refused = refusals(features)
    return {
        reader: snippet
        for reader, snippet in {
            "Spark": (
                f'{_SESSION}spark.conf.set("{_BY_AGE}", "false")\n'
                f'spark.read.format("delta").option("versionAsOf", {version}).load({path!r})'
            ),
            "delta-rs": (
                "from deltalake import DeltaTable, QueryBuilder\n"
                f'QueryBuilder().register("t", DeltaTable({path!r}, version={version}))'
                '.execute("select * from t").read_all()'
            ),
            "Polars": f"import polars\npolars.scan_delta({path!r}, version={version}).collect()",
            "DuckDB": (
                "install delta; load delta;\n"
                f"select * from delta_scan({_literal(path)}, version => {version});"
            ),
        }.items()
        if reader not in refused
    }


def version_set_snippet(source: str, table: str, at: str | None) -> str:
    """The same by this package, with every other table of the source."""
    place = "" if at is None else f", at={at!r}"
    return f"import lockstep\nlockstep.read_at({source!r}{place})[{table!r}].arrow()"


def table_snippets(path: str, features: Collection[str] = ()) -> dict[str, str]:
    """For one Delta table, by the readers that can."""
    refused = refusals(features)
    return {
        reader: snippet
        for reader, snippet in {
            "Spark": f'{_SESSION}spark.read.format("delta").load({path!r})',
            "delta-rs": (
                "from deltalake import DeltaTable, QueryBuilder\n"
                f'QueryBuilder().register("t", DeltaTable({path!r}))'
                '.execute("select * from t").read_all()'
            ),
            "Polars": f"import polars\npolars.scan_delta({path!r}).collect()",
            "DuckDB": f"install delta; load delta;\nselect * from {_scanned(path)};",
        }.items()
        if reader not in refused
    }


def together_snippets(
    tables: Sequence[OpenedTable], columns: Sequence[SharedColumn]
) -> dict[str, str]:
    """For several that are read as one relation: `columns` have a source in each."""
    if len(tables) == 1:
        return table_snippets(tables[0].path)
    return {
        "Spark": _SESSION + _spark(tables, columns),
        "delta-rs": _delta_rs(tables, columns),
        "DuckDB": _duckdb(tables, columns),
    }


def lockstep_snippet(source: str, table: str) -> str:
    """The same by this package: a pyarrow.Table in the order of the changes."""
    return f"import lockstep\nlockstep.read_changelog({source!r}, {table!r}).arrow()"


def _spark(tables: Sequence[OpenedTable], columns: Sequence[SharedColumn]) -> str:
    parts = []
    for at, table in enumerate(tables):
        chosen = _chosen(table.schema, columns, at, _SPARK)
        names = ",\n        ".join(repr(expression) for expression in chosen)
        parts.append(
            f'spark.read.format("delta").load({table.path!r}).selectExpr(\n        {names},\n    )'
        )
    first, *others = parts
    return "\n    ".join(["(", first, *(f".unionAll({other})" for other in others)]) + "\n)"


def _delta_rs(tables: Sequence[OpenedTable], columns: Sequence[SharedColumn]) -> str:
    registered = "".join(
        f'\n    .register("g{at}", DeltaTable({table.path!r}))' for at, table in enumerate(tables)
    )
    selects = [
        f"select {', '.join(_chosen(table.schema, columns, at, _DATAFUSION))} from g{at}"
        for at, table in enumerate(tables)
    ]
    told = "\n        ".join(
        repr(f"{'union all ' if at else ''}{select} ") for at, select in enumerate(selects)
    )
    return (
        "from deltalake import DeltaTable, QueryBuilder\n"
        f"(\n    QueryBuilder(){registered}\n    .execute(\n        {told}\n    )\n"
        "    .read_all()\n)"
    )


def _duckdb(tables: Sequence[OpenedTable], columns: Sequence[SharedColumn]) -> str:
    selects = [
        f"select {', '.join(_chosen(table.schema, columns, at, _DUCKDB))}\n"
        f"from {_scanned(table.path)}"
        for at, table in enumerate(tables)
    ]
    return "install delta; load delta;\n" + "\nunion all\n".join(selects) + ";"


def _scanned(path: str) -> str:
    return f"delta_scan({_literal(path)})"


def _literal(text: str) -> str:
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


@dataclass(frozen=True, slots=True)
class _Dialect:
    """`cast` is given an expression and the type it becomes."""

    quote: str
    cast: Callable[[str, pa.DataType], str]

    def name(self, text: str) -> str:
        return self.quote + text.replace(self.quote, self.quote * 2) + self.quote


def _chosen(
    schema: pa.Schema, columns: Sequence[SharedColumn], at: int, dialect: _Dialect
) -> list[str]:
    """The select list of one of the tables."""
    found = []
    for column in columns:
        source, name = column.sources[at], dialect.name(column.name)
        if source is None:
            found.append(f"null as {name}")
        elif (kind := schema.field(source).type) != column.type:
            found.append(f"{_cast(dialect.name(source), kind, column.type, dialect)} as {name}")
        else:
            found.append(name if source == column.name else f"{dialect.name(source)} as {name}")
    return found


def _cast(value: str, old: pa.DataType, new: pa.DataType, dialect: _Dialect) -> str:
    """Not every reader casts a boolean to a decimal."""
    if pa.types.is_boolean(old) and pa.types.is_decimal(new):
        value = dialect.cast(value, pa.int32())
    return dialect.cast(value, new)


def _standard(names: Mapping[pa.DataType, str]) -> Callable[[str, pa.DataType], str]:
    def cast(value: str, kind: pa.DataType) -> str:
        if pa.types.is_decimal(kind):
            return f"cast({value} as decimal({kind.precision}, {kind.scale}))"
        return f"cast({value} as {names[kind]})"

    return cast


def _arrow(value: str, kind: pa.DataType) -> str:
    """DataFusion's own: its SQL names have other precisions."""
    if pa.types.is_decimal(kind):
        return f"arrow_cast({value}, 'Decimal128({kind.precision}, {kind.scale})')"
    return f"arrow_cast({value}, '{_ARROW_NAMES[kind]}')"


_NUMBERS = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
}
_ARROW_NAMES = {
    pa.int8(): "Int8",
    pa.int16(): "Int16",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.timestamp("us"): "Timestamp(Microsecond, None)",
}
_LOCAL = pa.timestamp("us")
_SINGLE = pa.float32()

_SPARK = _Dialect("`", _standard({**_NUMBERS, _SINGLE: "float", _LOCAL: "timestamp_ntz"}))
_DUCKDB = _Dialect('"', _standard({**_NUMBERS, _SINGLE: "real", _LOCAL: "timestamp"}))
_DATAFUSION = _Dialect('"', _arrow)
