"""How a table is divided into chunks: the columns of its key, the bounds of chunks in
this key, and the SQL for both.

A chunk is the part of a table that one statement reads. The chunk key is made of
columns of the types in `FORMS`; the first column of another type ends it. ENUM and SET
are not listed because servers order them by number but compare them as text. JSON, TEXT
and BLOB are not listed because an index has only a prefix of their values.

A bound has its values as SQL literals. In a session in UTC, these compare like the
values that the server returned. Zero and partial dates are written as numbers, which
every sql_mode accepts. Between runs, bounds are stored as text. When they are read
back, each literal must match the regular expression of a key type, so that no other SQL
can enter a statement. If the settings hide a key's values, its bounds are sealed
(encrypted). Only the code that sealed them (`resources.mysql.shaped`) can open them,
and statements never contain them.

`point_condition` selects rows by their keys. It must select every row that has one of
the keys. It may also select others, so the caller compares the keys.

Each type is tested on each server with its extreme values, in a session in UTC with
sql_mode ''.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from lockstep.pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema
from lockstep.pipeline.schema.rows import identifying_keys
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import quoted


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one type are read by SQL, and written as literals.
    `select_template`: SQL template that reads a column. `literal_pattern`: regular
    expression that every literal must match. `from_answer`: converts the server's
    answer to a literal. `from_lake`: converts a value of the lake to a literal; None if
    the type has no such conversion."""

    select_template: str
    literal_pattern: str
    from_answer: Callable[[ColumnSchema, str], str]
    from_lake: Callable[[Any], str] | None


def _unchanged(column: ColumnSchema, answer: str) -> str:
    return answer


def _without_zeros(column: ColumnSchema, digits: str) -> str:
    """Remove the leading zeros that ZEROFILL adds, up to 255."""
    sign = "-" if digits.startswith("-") else ""
    number = digits.removeprefix("-").lstrip("0")
    return f"{sign}{number if number and number[0] != '.' else f'0{number}'}"


def _scientific(column: ColumnSchema, answer: str) -> str:
    """Write a DOUBLE with an exponent, because without one the literal would be a
    DECIMAL. Seventeen digits distinguish all doubles."""
    digits, _, exponent = f"{float(answer):.16e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}"


def _dated(word: str) -> Callable[[ColumnSchema, str], str]:
    """Return a function that writes a date or moment as a typed literal. If the month
    or day is zero, it writes a number, which no sql_mode refuses."""

    def literal(column: ColumnSchema, answer: str) -> str:
        if "-00" in answer.partition(" ")[0]:
            return re.sub(r"[-: ]", "", answer)
        return f"{word}'{answer}'"

    return literal


def _text(column: ColumnSchema, digits: str) -> str:
    """Write text as bytes of its character set. utf8mb3 is written as utf8mb4: the
    bytes are the same, but servers either do not know the name utf8mb3 or warn of
    it."""
    charset = "utf8mb4" if column.charset == "utf8mb3" else column.charset
    return f"_{charset} x'{digits}'"


def _digits(value: Any) -> str:
    """Write a number. In the lake, a DECIMAL with too many digits is text, and BIT(1)
    is boolean."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return value if isinstance(value, str) else str(int(value))


_CHARACTERS: Final = "cast({} as char)"
_DAY: Final = r"\d{4}-\d\d-\d\d"
_MINUTES: Final = r"\d\d:\d\d(\.\d{1,6})?"
_BYTES: Final = r"x'([0-9A-F]{2})*'"

_EXACT: Final = _Form(_CHARACTERS, r"-?\d{1,65}(\.\d{1,38})?", _without_zeros, _digits)
# A FLOAT prints only six digits; multiplied, it becomes a DOUBLE and prints all of
# them.
_FLOATING: Final = _Form("{} * 1e0", r"-?\d(\.\d{1,17})?e-?\d{1,3}", _scientific, "{:.16e}".format)
_MOMENT: Final = _Form(
    _CHARACTERS,
    rf"timestamp'{_DAY} \d\d:{_MINUTES}'|\d{{14}}(\.\d{{1,6}})?",
    _dated("timestamp"),
    # Not by strftime: its %Y writes the year 31 as 31, which servers read as 2031.
    lambda value: f"timestamp'{value.replace(tzinfo=None)}'",
)
# Bytes in the column's own character set, so that they are compared by the column's
# collation.
_TEXT: Final = _Form(
    "hex({})",
    rf"_[a-z0-9]{{1,32}} {_BYTES}",
    _text,
    lambda value: f"_utf8mb4 x'{value.encode().hex()}'",
)
_BINARY: Final = _Form(
    "hex({})", _BYTES, lambda _, digits: f"x'{digits}'", lambda value: f"x'{value.hex()}'"
)
# MariaDB's addresses and UUIDs: text, which the server converts.
_ADDRESS: Final = _Form(_CHARACTERS, r"'[0-9a-f:.-]{2,45}'", lambda _, answer: f"'{answer}'", None)

FORMS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _EXACT),
    "decimal": _EXACT,
    **dict.fromkeys(("float", "double"), _FLOATING),
    "bit": _Form("cast({} + 0 as char)", r"\d{1,20}", _unchanged, _digits),
    "year": _Form(_CHARACTERS, r"\d{4}", _unchanged, "{:04d}".format),
    "date": _Form(_CHARACTERS, rf"date'{_DAY}'|\d{{8}}", _dated("date"), "date'{}'".format),
    **dict.fromkeys(("datetime", "timestamp"), _MOMENT),
    "time": _Form(
        _CHARACTERS,
        rf"time'-?\d{{2,3}}:{_MINUTES}'",
        lambda _, answer: f"time'{answer}'",
        "time'{}'".format,
    ),
    **dict.fromkeys(("char", "varchar"), _TEXT),
    **dict.fromkeys(("binary", "varbinary"), _BINARY),
    **dict.fromkeys(("inet4", "inet6", "uuid"), _ADDRESS),
}
"""Forms by type name, as the schema has it."""

_ENGINES: Final = frozenset({"innodb", "myisam", "aria"})
"""Storage engines whose indexes are B-trees. MEMORY has hash indexes by default."""


def chunk_key(schema: TableSchema) -> tuple[str, ...]:
    """Return the first columns of `chunk_index` by which the table can be divided, as
    many as possible; empty if it has to be read in one piece.

    If they are fewer than the index has, several rows may have the same values. All
    rows with the same values are then in one chunk.
    """
    return tuple(column.name for column in _key_columns(schema))


def _key_columns(schema: TableSchema) -> list[ColumnSchema]:
    index = chunk_index(schema)
    parts = () if index is None else index.parts
    columns: list[ColumnSchema] = []
    for part in parts:
        column = _dividing_column(schema, part)
        # All columns have one direction: if they descend, the index is read backwards.
        if column is None or part.descending != parts[0].descending:
            break
        columns.append(column)
    return columns


def chunk_index(schema: TableSchema) -> KeySchema | None:
    """Return the index by which chunks are read, or None if no statement can use it.

    It is always the key by which the mirror's rows are merged. If a row's key changes
    while the table is read, the row may be missed or read twice. The log corrects this:
    for a changed key it has a deleted and an inserted row.
    """
    if schema.engine.lower() not in _ENGINES or schema.system_versioned:
        return None
    index = next(identifying_keys(schema), None)
    return None if index is None or index.invisible or index.hashed else index


def _dividing_column(schema: TableSchema, part: KeyPart) -> ColumnSchema | None:
    """Return the column of this part of an index, or None if it cannot divide the
    table."""
    column = None if part.column is None else schema.column(part.column)
    if column is None or part.prefix is not None or column.type not in FORMS:
        return None
    return None if _is_ordered_with_padding(column) else column


def _is_ordered_with_padding(column: ColumnSchema) -> bool:
    """Return whether the column is a CHAR of MariaDB whose collation respects trailing
    spaces. An index orders its values with the padding, a comparison without it."""
    return column.type == "char" and "_nopad_" in f"{column.collation}_"


def only_on_mysql(schema: TableSchema) -> bool:
    """Return whether the chunk key can be used on MySQL only. MariaDB has MySQL's
    collations of 0900 since 11.4, but its index on such a CHAR orders the padding,
    too."""
    return any(
        column.type == "char" and "_0900_" in f"{column.collation}_"
        for column in _key_columns(schema)
    )


_SEALED: Final = r"sealed'[0-9a-f]+'"
_LITERAL: Final = re.compile(
    "|".join({_SEALED, *(f"(?:{form.literal_pattern})" for form in FORMS.values())}), re.ASCII
)


@dataclass(frozen=True, slots=True)
class Bound:
    """A place in the order of `columns`, with one SQL literal for each column.

    Raises ValueError for a literal of no key type, or if there are not as many literals
    as columns.
    """

    columns: tuple[str, ...]
    literals: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.columns or len(self.columns) != len(self.literals):
            raise ValueError(f"{len(self.literals)} values for {len(self.columns)} columns")
        for column, literal in zip(self.columns, self.literals, strict=True):
            if _LITERAL.fullmatch(literal) is None:
                raise ValueError(f"the bound of {column!r} is not a literal of a key")

    @classmethod
    def from_json(cls, data: Any) -> Bound:
        """Return a bound from the ledger's JSON. Raise ValueError for anything else."""
        try:
            columns, literals = tuple(data["columns"]), tuple(data["literals"])
        except (KeyError, TypeError) as error:
            raise ValueError("not a bound") from error
        if not all(isinstance(text, str) for text in (*columns, *literals)):
            raise ValueError("not a bound")
        return cls(columns, literals)

    def seal(self, encrypt: Callable[[str], bytes]) -> Bound:
        """Return the same bound with each literal encrypted."""
        literals = (f"sealed'{encrypt(literal).hex()}'" for literal in self.literals)
        return Bound(self.columns, tuple(literals))

    def open(self, decrypt: Callable[[bytes], str]) -> Bound:
        """Return the bound with each literal decrypted. Raise ValueError for a bound
        that is not sealed."""
        if not all(re.fullmatch(_SEALED, literal) for literal in self.literals):
            raise ValueError("the bound is not sealed")
        literals = (decrypt(bytes.fromhex(literal.split("'")[1])) for literal in self.literals)
        return Bound(self.columns, tuple(literals))


@dataclass(frozen=True, slots=True)
class Range:
    """The rows after the bound `after` (None: from the first row), up to and including
    `through` (None: to the last row). Raises ValueError if these are bounds of
    different columns."""

    after: Bound | None = None
    through: Bound | None = None

    def __post_init__(self) -> None:
        if self.after and self.through and self.after.columns != self.through.columns:
            raise ValueError("the bounds of a range have different columns")

    @property
    def bounds(self) -> tuple[Bound, ...]:
        return tuple(bound for bound in (self.after, self.through) if bound is not None)

    @property
    def is_whole_table(self) -> bool:
        return not self.bounds

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the bounds; empty without bounds."""
        bound = self.after or self.through
        return () if bound is None else bound.columns


def key_expressions(schema: TableSchema) -> tuple[str, ...]:
    """Return the SQL expressions that read a bound's values, one per column of the
    chunk key."""
    return tuple(
        FORMS[column.type].select_template.format(quoted(column.name))
        for column in _key_columns(schema)
    )


def bound_of(schema: TableSchema, answers: Sequence[object]) -> Bound:
    """Return the bound of a row. `answers`: what the server returned for
    `key_expressions`.

    Raise TableError for a value without a literal. Only a YEAR(2) has such values: a
    server orders them by four digits and compares them by two.
    """
    pairs = zip(_key_columns(schema), answers, strict=True)
    return Bound(chunk_key(schema), tuple(_literal(column, answer) for column, answer in pairs))


def range_condition(key_range: Range) -> str:
    """Return the SQL condition for the rows of a range; `true` for all rows.

    Columns are compared one by one, `a > 1 or (a = 1 and b > 2)`. For `(a, b) > (1, 2)`
    servers would read the index from its beginning instead of looking up the range.
    """
    columns = [quoted(column) for column in key_range.columns]
    literals = [literal for bound in key_range.bounds for literal in bound.literals]
    if any(re.fullmatch(_SEALED, literal) for literal in literals):
        raise ValueError("a statement cannot contain a sealed bound")
    conditions = []
    if key_range.after is not None:
        conditions.append(beyond(columns, key_range.after.literals, ">", ">"))
    if key_range.through is not None:
        conditions.append(beyond(columns, key_range.through.literals, "<", "<="))
    return " and ".join(conditions) or "true"


def order_by(columns: Sequence[str]) -> str:
    return ", ".join(map(quoted, columns))


def beyond(
    columns: Sequence[str], literals: Sequence[str], operator: str, last_operator: str
) -> str:
    """Return the condition for the rows beyond a bound, such as (a > 1 or (a = 1 and b
    >= 2)). `last_operator`: the operator for the last column; `operator`: the one for
    all others."""
    column, literal = columns[0], literals[0]
    if len(columns) == 1:
        return f"{column} {last_operator} {literal}"
    inner = beyond(columns[1:], literals[1:], operator, last_operator)
    return f"({column} {operator} {literal} or ({column} = {literal} and {inner}))"


def _literal(column: ColumnSchema, answer: object) -> str:
    form = FORMS[column.type]
    literal = form.from_answer(column, str(answer))
    if re.fullmatch(form.literal_pattern, literal, re.ASCII) is None:
        raise TableError(
            f"key column {column.name!r} prints values that no statement can compare with",
            hint="change its type (a YEAR(2) to YEAR), or exclude the table",
        )
    return literal


# -- rows by their keys, whose values come from the lake -------------------------------


def column_without_literal(schema: TableSchema, key: Sequence[str]) -> str | None:
    """Return the first column of the key whose values cannot be written as literals, or
    None."""
    return next((name for name in key if _literal_writer(schema, name) is None), None)


def point_condition(schema: TableSchema, keys: pa.RecordBatch) -> str:
    """Return the SQL condition for the rows with one of these keys. `keys`: at least
    one row, without NULLs, with the types of `schema.types`. Raise ValueError for a
    column without literals (`column_without_literal`)."""
    names, literals = [], []
    for name in keys.schema.names:
        to_literal = _literal_writer(schema, name)
        if to_literal is None:
            raise ValueError(f"rows of {schema.name} cannot be selected by {name}")
        names.append(quoted(name))
        literals.append([to_literal(value) for value in keys.column(name).to_pylist()])
    rows = zip(*literals, strict=True)
    if len(names) == 1:
        return f"{names[0]} in ({', '.join(literal for (literal,) in rows)})"
    # Servers look up row constructors, (a, b) in (…), in an index only if all types are
    # the same.
    return " or ".join(
        "("
        + " and ".join(f"{name} = {literal}" for name, literal in zip(names, row, strict=True))
        + ")"
        for row in rows
    )


def _literal_writer(schema: TableSchema, name: str) -> Callable[[Any], str] | None:
    """Return the function that writes the column's values from the lake as literals."""
    column = schema.column(name)
    form = None if column is None else FORMS.get(column.type)
    return None if form is None else form.from_lake
