"""Conversion of table schemas to and from JSON values, for the ledger, the lake and `--json`
output, and the fingerprints of schemas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from lockstep.pipeline.schema.model import (
    ColumnSchema,
    Default,
    ExpressionDefault,
    ForeignKey,
    HiddenColumn,
    KeyPart,
    KeySchema,
    LiteralDefault,
    TableSchema,
    WrittenDefault,
)
from lockstep.pipeline.values.table import TableName

_DEFAULTS: Final[dict[str, type[Default]]] = {
    "value": LiteralDefault,
    "written": WrittenDefault,
    "expression": ExpressionDefault,
}
_DEFAULT_WORDS: Final = {kind: word for word, kind in _DEFAULTS.items()}
_FIELDS: Final[Mapping[type, tuple[tuple[str, Any], ...]]] = {
    kind: tuple((field.name, field.default) for field in fields(kind))
    for kind in (TableSchema, ColumnSchema, KeySchema, KeyPart, ForeignKey, HiddenColumn)
}
_PLAIN: Final = frozenset((str, int, bool, type(None)))


def schema_to_json(schema: TableSchema) -> dict[str, Any]:
    data: dict[str, Any] = _plain(schema)
    return data


def schema_from_json(data: Mapping[str, Any]) -> TableSchema:
    return TableSchema(
        **{
            **data,
            "name": TableName(**data["name"]),
            "columns": tuple(map(_column, data["columns"])),
            "keys": tuple(map(_key, data.get("keys", ()))),
            "foreign_keys": tuple(map(_foreign_key, data.get("foreign_keys", ()))),
            "hidden": tuple(HiddenColumn(**column) for column in data.get("hidden", ())),
        }
    )


def schema_fingerprint(schema: TableSchema) -> str:
    """Return 16 hexadecimal digits, which differ if any part of two schemas differs. The table's
    name, the order of its keys and its hidden columns do not count: no statement contains the
    places of hidden columns."""
    data = {**schema_to_json(schema), "name": None, "keys": sorted(map(_text, schema.keys))}
    data.pop("hidden", None)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Return a part of a schema as JSON values, without fields that have their default. It only
    looks types up, for speed: a baseline of a large server has several hundred thousand values."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple:
        return [_plain(item) for item in value]
    if kind in _DEFAULT_WORDS:
        return [_DEFAULT_WORDS[kind], value.text]
    if kind is TableName:
        return {"database": value.database, "name": value.name}
    data = {}
    for name, default in _FIELDS[kind]:
        part = getattr(value, name)
        if part is not default and part != default:
            data[name] = part if type(part) in _PLAIN else _plain(part)
    return data


def _text(key: KeySchema) -> str:
    return json.dumps(_plain(key), sort_keys=True)


def _column(data: Mapping[str, Any]) -> ColumnSchema:
    members = tuple(data.get("members", ()))
    return ColumnSchema(**{**data, "members": members, "default": _default(data)})


def _default(data: Mapping[str, Any]) -> Default | None:
    if data.get("default") is None:
        return None
    word, text = data["default"]
    return _DEFAULTS[word](text)


def _key(data: Mapping[str, Any]) -> KeySchema:
    return KeySchema(**{**data, "parts": tuple(KeyPart(**part) for part in data["parts"])})


def _foreign_key(data: Mapping[str, Any]) -> ForeignKey:
    return ForeignKey(
        **{
            **data,
            "columns": tuple(data["columns"]),
            "references": TableName(**data["references"]),
            "referenced": tuple(data["referenced"]),
        }
    )
