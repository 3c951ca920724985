"""Rules about what the lake shows of tables: columns that are left out, hashed, masked, of another
type, and rows that a condition takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from pipeline.errors import ConfigurationError
from pipeline.preflight.evidence import SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict, about
from pipeline.shape.rules import ShapeRules
from pipeline.shape.shape import matches

_WILD: Final = frozenset("*?[")
_WHOLE: Final = (None, "FULL", "FULL_NODUP")


def _shapes(looked: SourceEvidence) -> Iterator[Verdict]:
    for schema in looked.schemas:
        faults = list(looked.shaping.faults(schema))
        if faults:
            yield from (Fault(one.reason, str(schema.name), one.hint) for one in faults)
        else:
            words = looked.shaping.in_words(schema)
            yield Fine(words or "is shown as it is", str(schema.name))


def _patterns(looked: SourceEvidence) -> Iterator[Verdict]:
    """A pattern with a wildcard holds for columns that are not there yet, too."""
    for block in looked.settings:
        tables = [one for one in looked.schemas if block.match.matches(one.name)]
        names = [column.name for table in tables for column in table.columns]
        for setting, pattern in _named(block.shape) if tables else ():
            if not _WILD & {*pattern} and not any(matches((pattern,), name) for name in names):
                yield Fault(
                    f"{setting} names {pattern!r}, and no column of its tables is called so",
                    f"[[sources.table]] match = {json.dumps(block.match.include)}",
                )


def _named(rules: ShapeRules) -> Iterator[tuple[str, str]]:
    """The patterns of columns in a block, each with its setting."""
    settings = ("include_columns", "exclude_columns", "hash_columns", "mask_columns", "types")
    for setting in settings:
        for pattern in getattr(rules, setting) or ():
            yield setting, pattern


def _images(looked: SourceEvidence) -> Iterator[Verdict]:
    image = looked.setting("binlog_row_image")
    for schema in looked.schemas if image not in _WHOLE else ():
        rules = looked.shaping.rules_of(schema.name)
        if rules is not None and rules.rows is not None:
            why = f"a condition decides which rows are taken, and binlog_row_image is {image}"
            yield Fault(why, str(schema.name))


def _keys(looked: SourceEvidence) -> Iterator[Verdict]:
    hashed = [one for one in looked.shaped if one.shown_as is not None and one.shown_as.key]
    for version in hashed:
        try:
            looked.shaping.require_key(version)
        except ConfigurationError as error:
            yield Fault(error.message, str(version.table), error.hint)
    if looked.shaping.key is not None:
        yield Fine(f"the key's fingerprint is {looked.shaping.key.fingerprint}")


CHECK_RULES: Final = about(
    "what is shown",
    CheckRule(
        "columns and rows",
        "what the blocks that match a table come to for its columns, with the key under [privacy]",
        "refusal",
        "a run quarantines a table that cannot be shown as its settings say; the others go on",
        "change the settings of this table",
        _shapes,
    ),
    CheckRule(
        "names of columns",
        "names in include_columns, exclude_columns, hash_columns, mask_columns and types; one with "
        "a wildcard may wait for columns to come",
        "refusal",
        "a name that no column has is a mistake: the column that was meant is shown as it is",
        "correct or remove it",
        _patterns,
    ),
    CheckRule(
        "images of conditions",
        "binlog_row_image where rows is set",
        "refusal",
        "whether a row is taken is asked of its whole image: one without the columns that are "
        "asked quarantines the table",
        "set global binlog_row_image = 'FULL'; and let applications reconnect",
        _images,
    ),
    CheckRule(
        "privacy key",
        "the fingerprint of the key under [privacy], and those that the lake is hashed with",
        "refusal",
        "hashes of two keys cannot be compared: runs read nothing",
        "give the key that the lake is hashed with",
        _keys,
        ConfigurationError,
    ),
)
