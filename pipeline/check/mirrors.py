"""Rules about mirrors, the Delta tables with the current rows of source tables.

The columns: types, character sets, keys and names that a mirror cannot have. Most such
faults would quarantine the table (end its capture) at its first row; `check` reports
them before. What is shown: settings that leave out, hash, mask or convert columns, or
select rows. Retention: how long mirrors keep their versions.

Format: Delta documentation, "Table properties". Delta refuses to read a version that is
older than `delta.deletedFileRetentionDuration`, even if its files still exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final, Literal

from lockstep.pipeline.binlog.values.charsets import (
    CHARACTER_SETS,
    is_ambiguous,
    may_be_ambiguous,
    text_decoder,
)
from lockstep.pipeline.check.findings import (
    CheckRule,
    Fault,
    Fine,
    MirrorEvidence,
    RuleVerdict,
    SourceEvidence,
    with_topic,
)
from lockstep.pipeline.mirror.clustering import unclusterable_names
from lockstep.pipeline.mirror.layout import MARKS, changelog_names, mirror_path
from lockstep.pipeline.mirror.lineage import taken_names
from lockstep.pipeline.mirror.strategy import UNSTAMPED, UNSTAMPED_HINT
from lockstep.pipeline.schema.types import MERGE_COLUMNS, TEXT_TYPES, arrow_schema, is_mergeable
from lockstep.pipeline.source_plan import TableSettings
from lockstep.pipeline.values.errors import ConfigurationError, TableError
from lockstep.pipeline.values.mirror_names import ONLY_CASE_DIFFERS
from lockstep.pipeline.values.retention import Retention
from lockstep.pipeline.values.shown import duration_text, name_list
from lockstep.pipeline.values.table import Column, TableName, TableStructure, has_wildcard

_MEMBER_TYPES: Final = ("enum", "set")
_FLOATING_TYPES: Final = ("float", "double")
_DATE_TYPES: Final = ("date", "datetime", "timestamp")
_NO_ZERO_DATES: Final = {"NO_ZERO_DATE", "NO_ZERO_IN_DATE"}
MANY_COLUMNS: Final = 500
"""Number of columns above which Spark takes longer to plan a MERGE of a few rows than
to run it."""


def _judge_types(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    all_are_read = True
    for structure in evidence.structures:
        try:
            arrow_schema(structure)
        except TableError as error:
            all_are_read = False
            yield Fault(f"would be quarantined: {error.reason}", str(structure.name), error.hint)
    if evidence.structures and all_are_read:
        yield Fine("every type is read")


def _judge_charsets(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    all_are_read = True
    for structure in evidence.structures:
        reasons = list(filter(None, map(_charset_reason, structure.columns)))
        if reasons:
            all_are_read = False
            yield Fault(f"would be quarantined: {reasons[0]}", str(structure.name))
    if evidence.structures and all_are_read:
        yield Fine("every character set is read")


def _charset_reason(column: Column) -> str | None:
    """Return why the column's character set cannot be read, or None."""
    is_text = column.type in TEXT_TYPES or column.type in _MEMBER_TYPES
    if not is_text or column.charset in (None, "binary"):
        return None
    try:
        text_decoder(column.charset)
    except TableError:
        return f"column {column.name!r} is in {column.charset}, which this version does not read"
    return None


def _key_columns(structure: TableStructure) -> list[Column]:
    return [column for column in structure.columns if column.name in structure.primary_key]


def _judge_key_floats(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for structure in evidence.structures:
        key_columns = _key_columns(structure)
        names = [column.name for column in key_columns if column.type in _FLOATING_TYPES]
        if names:
            yield Fault(f"key column {names[0]!r} is a floating-point number", str(structure.name))


def _judge_ambiguous_keys(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for structure in evidence.structures:
        for column in _key_columns(structure):
            if column.type in TEXT_TYPES:
                reason = f"is in {column.charset}, where different bytes may be the same text"
            elif column.type in _MEMBER_TYPES:
                reason = "has members that cannot be told apart"
            else:
                continue
            if may_be_ambiguous(column):
                yield Fault(
                    f"key column {column.name!r} {reason}: such a value would quarantine the table",
                    str(structure.name),
                )


def _judge_key_dates(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    modes = set((evidence.variable("sql_mode") or "").split(","))
    if modes >= _NO_ZERO_DATES:
        yield Fine("zero dates are not accepted by default")
        return
    for structure in evidence.structures:
        names = [column.name for column in _key_columns(structure) if column.type in _DATE_TYPES]
        if names:
            yield Fault(
                f"key column {names[0]!r} may hold a zero date, which would quarantine the table",
                str(structure.name),
            )


def _judge_name_case(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    names_by_folder = defaultdict(list)
    for structure in evidence.structures:
        if not evidence.plan.mirror_names.is_configured(structure.name):
            names_by_folder[mirror_path("", structure.name).lower()].append(str(structure.name))
    for names in names_by_folder.values():
        if len(names) > 1:
            yield Fault(ONLY_CASE_DIFFERS, ", ".join(names))


def _judge_mirror_names(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    tables = sorted(table.name for table in evidence.tables)
    for table, other in evidence.plan.mirror_names.collisions(tables).items():
        name = evidence.plan.mirror_names.of(table)
        yield Fault(f"their mirrors would both be called {name}", f"{other}, {table}")


def _judge_merge_columns(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for structure in evidence.structures:
        names = [column.name for column in structure.columns if not is_mergeable([column.name])]
        if names:
            yield Fault(f"Delta's MERGE has a column {names[0]!r} of its own", str(structure.name))


def _judge_column_count(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for structure in evidence.structures:
        count = len(structure.columns)
        if count > MANY_COLUMNS:
            yield Fault(f"has {count:,} columns", str(structure.name))


def _judge_renamed_columns(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    renamed = [
        f"{structure.name}.{column} is called {name}"
        for structure in evidence.structures
        for column, name in zip(structure.names, changelog_names(structure.names), strict=True)
        if column != name
    ]
    if renamed:
        yield Fine(f"in the changelog {name_list(renamed)}")


def _judge_mirror_columns(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for structure in evidence.structures:
        policies = evidence.plan.policies_of(structure.name)
        for name, owner, alternative in taken_names(structure.names, policies):
            yield Fault(
                f"would be quarantined: column {name!r} has the name of {owner}",
                str(structure.name),
                f"rename the column, or {alternative}",
            )
        if policies.stamps and not structure.primary_key:
            yield Fault(f"would be quarantined: {UNSTAMPED}", str(structure.name), UNSTAMPED_HINT)


def _judge_clustering(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for structure in evidence.structures:
        names = evidence.plan.policies_of(structure.name).cluster_by
        if not names:
            continue
        try:
            columns = arrow_schema(structure)
        except TableError:
            continue  # the rule about types reports it
        for name, reason in unclusterable_names(names, columns):
            yield Fault(f"cluster_by: {name!r} {reason}", str(structure.name))


COLUMN_RULES: Final = with_topic(
    "the columns",
    CheckRule(
        "types",
        "the type of each column",
        "warning",
        "the table would be quarantined at its first row",
        "exclude the table, or change the type of the column",
        _judge_types,
    ),
    CheckRule(
        "character sets",
        "the character set of each column",
        "warning",
        "the table would be quarantined at its first row",
        "exclude the table, or convert the column to utf8mb4",
        _judge_charsets,
    ),
    CheckRule(
        "floating-point keys",
        "FLOAT and DOUBLE in a PRIMARY KEY",
        "warning",
        "rows are joined on the exact bits, and 0 and -0 are the same key in MySQL",
        "make the key a DECIMAL or an integer",
        _judge_key_floats,
    ),
    CheckRule(
        "keys of equal text",
        "character sets of a PRIMARY KEY in which several codes mean one character "
        f"({', '.join(sorted(filter(is_ambiguous, CHARACTER_SETS)))}), and members of ENUM and "
        "SET in it that cannot be told apart",
        "warning",
        "the first key that cannot be recovered exactly from its text quarantines the table",
        "convert the key's column to utf8mb4; give the members names that differ",
        _judge_ambiguous_keys,
    ),
    CheckRule(
        "zero dates in keys",
        "DATE, DATETIME and TIMESTAMP in a PRIMARY KEY, and sql_mode",
        "warning",
        "a zero or partial date has no value in the lake, and in a key it quarantines the table",
        "add NO_ZERO_DATE and NO_ZERO_IN_DATE to the global sql_mode",
        _judge_key_dates,
    ),
    CheckRule(
        "names and case",
        "names of captured tables that differ in case only",
        "refusal",
        "on a store that ignores case, a run quarantines the table that comes later",
        "rename one of them, or exclude it; on a case-sensitive store nothing has to be done",
        _judge_name_case,
    ),
    CheckRule(
        "names of mirrors",
        "names that `into` gives to the mirrors of captured tables, in any case",
        "refusal",
        "the table that has the mirror keeps it, and the other is quarantined",
        "give one of them another `into`, or exclude it",
        _judge_mirror_names,
    ),
    CheckRule(
        "columns of MERGE",
        f"columns that Delta's MERGE takes for its own ({', '.join(sorted(MERGE_COLUMNS))})",
        "warning",
        "once the mirror has more than 10,000 rows, each run that changes a row rewrites all of "
        "them",
        "rename the column, or let the source run less often",
        _judge_merge_columns,
    ),
    CheckRule(
        "many columns",
        f"tables with more than {MANY_COLUMNS} columns",
        "warning",
        "each write of a mirror of more than 10,000 rows takes ten to twenty seconds of "
        "processor time",
        "exclude the table, or let the source run less often",
        _judge_column_count,
    ),
    CheckRule(
        "changelog columns",
        f"columns named as the changelog's own ({MARKS.names[0]}, {MARKS.names[1]}, …), and names "
        "with a space , ; { } ( ) = tab newline",
        "ok",
        "nothing: in the changelog such a column gets a leading `_`, such a character is `%XX`",
        "nothing to do",
        _judge_renamed_columns,
    ),
    CheckRule(
        "columns of mirrors",
        "columns named as those that `stamps` and `deletes` add to a mirror, and tables without a "
        "key for which `stamps` is set",
        "refusal",
        "the table would be quarantined at its next change",
        "rename the column, or remove the setting; give the table a PRIMARY KEY",
        _judge_mirror_columns,
    ),
    CheckRule(
        "clustering",
        "columns that `cluster_by` names",
        "refusal",
        "runs go on, and the mirror stays clustered as it is",
        "name columns of the table, or take them out of `cluster_by`",
        _judge_clustering,
    ),
)


_FULL_IMAGES: Final = (None, "FULL", "FULL_NODUP")
"""Values of binlog_row_image with which an image has every column; a server without the
setting (None) logs every column too."""


def _judge_shapes(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for schema in evidence.schemas_to_shape:
        faults = list(evidence.shaping.faults(schema))
        if faults:
            for error in faults:
                yield Fault(error.reason, str(schema.name), error.hint)
        else:
            columns = evidence.shaping.describe(schema) or "is shown as it is"
            later_columns = evidence.shaping.describe_later_columns(schema)
            yield Fine(f"{columns}; {later_columns}", str(schema.name))


def _judge_shown_again(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for version in evidence.shaped_versions:
        try:
            names = evidence.shaping.columns_showing_more(version)
        except TableError:
            continue  # `_judge_shapes` reports it
        if names:
            yield Fault(f"the settings show more of {', '.join(names)}", str(version.table))


UNKNOWN_NAME_HINT: Final = (
    "correct or remove it; for a column that is still to come, write a pattern, such as 'ssn*'"
)
_HIDING_SETTINGS: Final = ("exclude_columns", "hash_columns", "mask_columns")
_OTHER_SETTINGS: Final = ("include_columns", "types")


def unknown_names(
    block: TableSettings,
    columns: Mapping[TableName, Collection[str]],
    settings: Sequence[str] = _HIDING_SETTINGS,
) -> list[tuple[str, str]]:
    """Return each name in these settings that no column of the block's tables has, as a
    pair of the setting and the name. A pattern with a wildcard is left out: it may be
    for columns that do not exist yet. `columns`: names in lower case, by table."""
    existing_names: set[str] = set()
    for table, names in columns.items():
        if block.match.matches(table):
            existing_names.update(names)
    return [
        (setting, name)
        for setting in settings
        for name in getattr(block.shape, setting) or ()
        if not has_wildcard(name) and name.lower() not in existing_names
    ]


def unknown_sentence(setting: str, name: str) -> str:
    return f"{setting} names {name!r}, and no column of its tables has or had that name"


def _name_faults(
    evidence: SourceEvidence, settings: Sequence[str], dropped_cure: str
) -> Iterator[RuleVerdict]:
    """Report names in these settings that no column of their block's tables has. If a
    column had the name, that is only a warning, with the cure `dropped_cure`."""
    present_columns = {
        schema.name: {*map(str.lower, schema.names)} for schema in evidence.schemas_to_shape
    }
    all_columns = {table: {*names} for table, names in evidence.recorded_columns.items()}
    for table, names in present_columns.items():
        all_columns.setdefault(table, set()).update(names)
    for block in evidence.plan.table_settings:
        unknown = unknown_names(block, all_columns, settings)
        if any(map(block.match.matches, all_columns)):
            for setting, name in unknown:
                yield Fault(unknown_sentence(setting, name), block.label)
        if any(map(block.match.matches, present_columns)):
            dropped = {*unknown_names(block, present_columns, settings)} - {*unknown}
            for setting, name in sorted(dropped):
                sentence = (
                    f"{setting} names {name!r}, and no column of its tables has that name any more"
                )
                yield Fault(sentence, block.label, dropped_cure, "warning")


def _judge_hiding_names(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    cure = "keep it if the column may come back; no table is read again if you remove it"
    yield from _name_faults(evidence, _HIDING_SETTINGS, cure)


def _judge_other_names(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    cure = "remove it: no table is read again, and the lake shows the same columns"
    yield from _name_faults(evidence, _OTHER_SETTINGS, cure)


def _judge_row_images(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    image = evidence.variable("binlog_row_image")
    if image in _FULL_IMAGES:
        return
    for schema in evidence.schemas_to_shape:
        rules = evidence.shaping.rules_of(schema.name)
        if rules is not None and rules.rows is not None:
            sentence = f"a condition decides which rows are taken, and binlog_row_image is {image}"
            yield Fault(sentence, str(schema.name))


def _judge_privacy_keys(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for version in evidence.shaped_versions:
        if version.key_fingerprint is None:
            continue
        try:
            evidence.shaping.require_key(version)
        except ConfigurationError as error:
            yield Fault(error.message, str(version.table), error.hint)
    if evidence.shaping.key is not None:
        yield Fine(f"the key's fingerprint is {evidence.shaping.key.fingerprint}")


SHAPE_RULES: Final = with_topic(
    "what is shown",
    CheckRule(
        "columns and rows",
        "the settings that apply to each table, its columns, and the key under [privacy]",
        "refusal",
        "a run quarantines a table that cannot be shown as its settings say; the others go on",
        "change the settings of this table",
        _judge_shapes,
    ),
    CheckRule(
        "columns shown again",
        "the settings, against how the lake shows each column",
        "warning",
        "the next run reads the table again and shows more of these columns than now",
        "hide them under [[sources.table]] before the next run, unless they are to be shown",
        _judge_shown_again,
    ),
    CheckRule(
        "names of hidden columns",
        "names without wildcards in exclude_columns, hash_columns and mask_columns; one whose "
        "column was dropped is only a warning",
        "refusal",
        "if no column has or had the name, the column that was meant would be shown: runs read "
        "nothing",
        UNKNOWN_NAME_HINT,
        _judge_hiding_names,
        error=ConfigurationError,
    ),
    CheckRule(
        "names of columns",
        "names without wildcards in include_columns and types; one whose column was dropped is "
        "only a warning",
        "refusal",
        "a name that no column has or had is a mistake: the column that was meant is left out, or "
        "has its own type",
        "correct or remove it",
        _judge_other_names,
    ),
    CheckRule(
        "row images for conditions",
        "binlog_row_image where rows is set",
        "refusal",
        "an image without the condition's columns quarantines the table",
        "set global binlog_row_image = 'FULL'; and let applications reconnect",
        _judge_row_images,
    ),
    CheckRule(
        "privacy key",
        "the fingerprint of the key under [privacy], against that of the key that hashed the lake",
        "refusal",
        "hashes of two keys cannot be compared: runs read nothing",
        "give the key that the lake is hashed with",
        _judge_privacy_keys,
        error=ConfigurationError,
    ),
)


def _judge_version_retention(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    keep = evidence.keep_versions
    too_short = [mirror for mirror in evidence.mirrors if not mirror.retention.covers(keep)]
    for mirror in too_short:
        files, log = duration_text(mirror.retention.files), duration_text(mirror.retention.log)
        yield Fault(
            f"its mirror keeps replaced files for {files} and its log for {log}; `keep` under "
            f"[lake] promises its versions for {duration_text(keep)}",
            str(mirror.table),
            _retention_statement(mirror, keep),
        )
    if evidence.mirrors and not too_short:
        yield Fine(f"every mirror keeps its versions for {duration_text(keep)}")


def _retention_statement(mirror: MirrorEvidence, keep: timedelta) -> str:
    pairs = Retention.for_keep(keep).properties().items()
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in pairs)
    return (
        f"in Spark: ALTER TABLE delta.`{mirror.path}` SET TBLPROPERTIES ({properties}); "
        "or a shorter `keep`"
    )


def _judge_files(
    kind: Literal["mirror", "changelog"], cure: str
) -> Callable[[SourceEvidence], Iterator[RuleVerdict]]:
    def judge(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
        for mirror in evidence.mirrors:
            reason = mirror.reason_unreadable
            if kind == "changelog":
                reason = mirror.reason_changelog_unreadable
            if reason is not None:
                sentence = f"its {kind} cannot be read as a whole: {reason}"
                cure_of_table = cure.format(table=mirror.table.word)
                yield Fault(sentence, str(mirror.table), cure_of_table)

    return judge


MIRROR_RULES: Final = with_topic(
    "the mirrors",
    CheckRule(
        "files of mirrors",
        "whether each file of each mirror's newest version exists",
        "warning",
        "readers fail, and the first write that reads such a file quarantines the table",
        "restore the files, or `lockstep reload TABLE --reason …`",
        _judge_files("mirror", "`lockstep reload {table} --reason …` rewrites its mirror"),
    ),
    CheckRule(
        "files of changelogs",
        "whether each file of each changelog's newest version exists",
        "warning",
        "readers of the changelog fail; runs go on, because they only add to it",
        "restore the files, or `lockstep replay --from earliest --to latest --tables TABLE`, which "
        "writes the changes again that the server's log still has",
        _judge_files(
            "changelog",
            "restore the files from a copy of the lake; or `lockstep replay --from earliest --to "
            "latest --tables {table}` writes what the server's log still has",
        ),
    ),
    CheckRule(
        "versions kept",
        "`delta.deletedFileRetentionDuration` and `delta.logRetentionDuration` of each mirror, "
        "against `keep` under [lake]",
        "warning",
        "VACUUM deletes files of promised versions, and Delta refuses versions of such an age",
        "in Spark: ALTER TABLE … SET TBLPROPERTIES with the longer times, as the line says",
        _judge_version_retention,
    ),
)
