"""Rules about mirrors: what they show of their tables (columns that are left out, hashed, masked or
converted, and a condition on rows), and how long they keep their versions.

Format: Delta documentation, "Table properties". Delta refuses to read a version that is older than
`delta.deletedFileRetentionDuration`, even if its files still exist.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from lockstep.pipeline.check.evidence import KeptMirror, SourceEvidence
from lockstep.pipeline.check.findings import CheckRule, Fault, Fine, Verdict, about
from lockstep.pipeline.check.retention import spoken
from lockstep.pipeline.shape.rules import ShapeRules
from lockstep.pipeline.shape.shape import matches
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.pipeline.values.policies import Retention

_WILD: Final = frozenset("*?[")
_WHOLE: Final = (None, "FULL", "FULL_NODUP")


def _shapes(evidence: SourceEvidence) -> Iterator[Verdict]:
    for schema in evidence.schemas:
        faults = list(evidence.shaping.faults(schema))
        if faults:
            for error in faults:
                yield Fault(error.reason, str(schema.name), error.hint)
        else:
            words = evidence.shaping.in_words(schema)
            yield Fine(words or "is shown as it is", str(schema.name))


def _patterns(evidence: SourceEvidence) -> Iterator[Verdict]:
    """A pattern without a wildcard must match a column; one with a wildcard may be for columns that
    do not exist yet."""
    for block in evidence.settings:
        tables = [schema for schema in evidence.schemas if block.match.matches(schema.name)]
        names = [column.name for table in tables for column in table.columns]
        for setting, pattern in _column_patterns(block.shape) if tables else ():
            if not _WILD & {*pattern} and not any(matches((pattern,), name) for name in names):
                yield Fault(
                    f"{setting} names {pattern!r}, and no column of its tables has that name",
                    f"[[sources.table]] match = {json.dumps(block.match.include)}",
                )


def _column_patterns(rules: ShapeRules) -> Iterator[tuple[str, str]]:
    """Yield each setting of a block that names columns, with each of its patterns."""
    settings = ("include_columns", "exclude_columns", "hash_columns", "mask_columns", "types")
    for setting in settings:
        for pattern in getattr(rules, setting) or ():
            yield setting, pattern


def _images(evidence: SourceEvidence) -> Iterator[Verdict]:
    image = evidence.setting("binlog_row_image")
    for schema in evidence.schemas if image not in _WHOLE else ():
        rules = evidence.shaping.rules_of(schema.name)
        if rules is not None and rules.rows is not None:
            why = f"a condition decides which rows are taken, and binlog_row_image is {image}"
            yield Fault(why, str(schema.name))


def _keys(evidence: SourceEvidence) -> Iterator[Verdict]:
    for version in evidence.shaped:
        if version.shown_as is None or version.shown_as.key is None:
            continue
        try:
            evidence.shaping.require_key(version)
        except ConfigurationError as error:
            yield Fault(error.message, str(version.table), error.hint)
    if evidence.shaping.key is not None:
        yield Fine(f"the key's fingerprint is {evidence.shaping.key.fingerprint}")


SHAPE_RULES: Final = about(
    "what is shown",
    CheckRule(
        "columns and rows",
        "the settings that apply to each table, its columns, and the key under [privacy]",
        "refusal",
        "a run quarantines a table that cannot be shown as its settings say; the others go on",
        "change the settings of this table",
        _shapes,
    ),
    CheckRule(
        "names of columns",
        "names in include_columns, exclude_columns, hash_columns, mask_columns and types; one with "
        "a wildcard may be for columns that do not exist yet",
        "refusal",
        "a name that no column has is a mistake: the column that was meant is shown as it is",
        "correct or remove it",
        _patterns,
    ),
    CheckRule(
        "images of conditions",
        "binlog_row_image where rows is set",
        "refusal",
        "the condition on rows needs whole images: an image without the condition's columns "
        "quarantines the table",
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


def _kept(evidence: SourceEvidence) -> Iterator[Verdict]:
    short = [mirror for mirror in evidence.mirrors if not mirror.retention.holds(evidence.keep)]
    for mirror in short:
        files, log = spoken(mirror.retention.files), spoken(mirror.retention.log)
        yield Fault(
            f"its mirror keeps replaced files for {files} and its log for {log}; `keep` under "
            f"[lake] promises its versions for {spoken(evidence.keep)}",
            str(mirror.table),
            _statement(mirror, evidence.keep),
        )
    if evidence.mirrors and not short:
        yield Fine(f"every mirror keeps its versions for {spoken(evidence.keep)}")


def _statement(mirror: KeptMirror, keep: timedelta) -> str:
    pairs = Retention.promising(keep).properties().items()
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in pairs)
    return (
        f"in Spark: ALTER TABLE delta.`{mirror.path}` SET TBLPROPERTIES ({properties}); "
        "or a shorter `keep`"
    )


KEEPING_RULES: Final = about(
    "the mirrors",
    CheckRule(
        "versions kept",
        "`delta.deletedFileRetentionDuration` and `delta.logRetentionDuration` of each mirror, "
        "against `keep` under [lake]",
        "warning",
        "promised versions cannot be read: VACUUM deletes their files, and Delta refuses them "
        "because of their age",
        "in Spark: ALTER TABLE … SET TBLPROPERTIES with the longer times, as the line says",
        _kept,
    ),
)
