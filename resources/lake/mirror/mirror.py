"""The port `Mirrors` in the lake. Mirrors are Delta tables with the current rows of
source tables; Spark writes them, and delta-rs reads them. The port says what each
method promises.

The columns of a mirror are changed step by step. Each step is a Delta commit that is
made once, even if a run is interrupted and tries again. Delta records no application
transaction for an ALTER. So the commit's userMetadata has, besides the metadata of the
write that needs the step, the application, its transaction, the step's number, and
values that say what the step does. Fills and rewrites also record a transaction, by
which Delta skips them at a second try.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, assert_never
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from obstore.exceptions import BaseError

from lockstep.pipeline.mirror.evolution import MAPPING_PROPERTY, NTZ_FEATURE, NTZ_PROPERTY, NTZ_TYPE
from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.mirror.strategy import FEW, MOST_UNPACKED_BYTES, Scale, Size, scale
from lockstep.pipeline.model.lake_commit import (
    LakeCommit,
    LogSince,
    WriteKind,
    is_same_write,
    metadata_of_kind,
    read_metadata,
)
from lockstep.pipeline.ports.lease_check import RequireHeld, no_check
from lockstep.pipeline.ports.mirror_writes import (
    AddColumns,
    Append,
    ColumnOrigin,
    CountedReplace,
    DropColumns,
    Fill,
    MirrorStep,
    MirrorTarget,
    MirrorWrite,
    RenameColumn,
    Replace,
    Rewrite,
    SetProperties,
    WidenColumn,
    copied_mirrors,
    staged_paths,
)
from lockstep.pipeline.ports.mirrors import ColumnRanges, MirrorCommit, MirrorSize
from lockstep.pipeline.schema.types import is_refused
from lockstep.pipeline.values.errors import CommitConflict, ForeignCommit, TableError
from lockstep.pipeline.values.policies import Readers
from lockstep.pipeline.values.retention import DEFAULT_KEEP, Retention
from lockstep.resources.lake.delta.checksums import add_actions_at, file_list_settings
from lockstep.resources.lake.delta.clustering import statement_to_cluster, statement_to_uncluster
from lockstep.resources.lake.delta.columns import (
    VECTORS_PROPERTY,
    mirror_schema,
    refuse_other_columns,
    spelling,
)
from lockstep.resources.lake.delta.delta_log import (
    LEDGER_BEHIND_HINT,
    commits_newest_first,
    find_commit,
    is_newest_version,
    log_since,
    metadata_since,
    newest_version,
)
from lockstep.resources.lake.delta.pin import Head, head_of, pinned_errors
from lockstep.resources.lake.delta.statement import quoted, step_statement
from lockstep.resources.lake.delta.versions import (
    AGE_LIMIT_SETTING,
    DeltaVersion,
    files_size,
    needs_spark,
    reason_unreadable,
    scan_rows,
    staged_rows,
    table_size,
    visible_size,
)
from lockstep.resources.lake.mirror.deletion import delete_history
from lockstep.resources.lake.mirror.direct import commit_rows
from lockstep.resources.lake.mirror.small import can_be_computed, reads_mirror, rows_of_write
from lockstep.resources.lake.mirror.writing import (
    commit_write,
    copy_rows,
    new_table_properties,
    rewrite,
    write_rows,
)
from lockstep.resources.lake.spark.java_errors import spark_errors
from lockstep.resources.lake.spark.spark import (
    APP_ID_SETTING,
    TXN_VERSION_SETTING,
    USER_METADATA_SETTING,
    Spark,
    exclusive_session,
    session_settings,
)
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.staging import Staging
from lockstep.resources.lake.store.storage import (
    delta_table,
    file_named,
    file_paths,
    lake_errors,
    mirror_errors,
    parquet_content,
    remove_table,
    sync_folder,
    table_if_exists,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_CONSTRAINT_INFERENCE: Final = {"spark.sql.constraintPropagation.enabled": "false"}
"""With a thousand columns, Spark takes minutes to infer constraints between the columns
of a plan. Our writes gain nothing from these constraints."""


_SPARK_FEATURES = frozenset({"deletionVectors", "columnMapping", "typeWidening"})
"""Table features that not every reader supports: a mirror with one of them was made for
Spark."""

_MOST_LOOKUPS_AT_ONCE = 16
"""Largest number of mirrors whose logs are looked up in an object store at the same
time. A lookup takes milliseconds, and a source can have thousands of mirrors."""


class SparkMirrors:
    """The port `Mirrors`, for the mirrors below the folder `lake`.

    - `staging`: a local folder for temporary files of changes.
    - `input_lake`: the lake with the files that writes read, by default `lake`.
    - `few_limit`: the largest size of a write and its mirror together that counts as
      few rows (`mirror.strategy`).
    - `in_memory`: whether this process may compute the rows of a mirror after such a
      write.
    - `keep`: how long each version of a new mirror stays readable.
    """

    def __init__(
        self,
        lake: LakePath,
        *,
        staging: Path,
        spark: Spark,
        input_lake: LakePath | None = None,
        few_limit: Size = FEW,
        in_memory: bool = True,
        keep: timedelta = DEFAULT_KEEP,
    ) -> None:
        self._lake = lake
        self._staging = Staging(staging)
        self._few_limit = few_limit
        self._input_lake = input_lake or lake
        self._spark = spark
        self._in_memory = in_memory
        self._keep = keep

    @property
    def client_id(self) -> UUID | None:
        return self._spark.client_id

    def end_statements(self, client_id: UUID) -> None:
        self._spark.end_statements(client_id)

    def require_ready(self) -> None:
        self._spark.require_ready()

    def prepare(self, log_bytes: int = 0) -> None:
        self._spark.prepare(log_bytes)

    def find_commit(self, mirror: str, app_id: str, txn_version: int) -> MirrorCommit | None:
        with self._folder_of(mirror) as path:
            table = table_if_exists(path)
            commit = None if table is None else find_commit(path, table, app_id, txn_version)
            if table is None or commit is None:
                return None
            table_id = str(table.metadata().id)
            user_metadata = commit.user_metadata or ""
            return MirrorCommit(commit.delta_version, user_metadata, table_id=table_id)

    def version(self, mirror: str) -> int | None:
        with self._folder_of(mirror) as path:
            return newest_version(path)

    def retention(self, mirror: str) -> Retention | None:
        with self._folder_of(mirror) as path:
            table = table_if_exists(path)
            return None if table is None else Retention.of(table.metadata().configuration)

    def readers(self, mirror: str) -> Readers | None:
        with self._folder_of(mirror) as path:
            table = table_if_exists(path)
            if table is None:
                return None
            if _SPARK_FEATURES & {*(table.protocol().reader_features or ())}:
                return Readers.SPARK
            vectors = table.metadata().configuration.get(VECTORS_PROPERTY)
            return Readers.ANY if vectors == "false" else None

    def size(self, mirror: str, version: int) -> MirrorSize | None:
        try:
            path = self._lake / mirror
            return visible_size(path, delta_table(path, version))
        except (BaseError, DeltaError, pa.ArrowException, OSError):
            return None  # the size is only displayed, so an error must not stop a run

    def changed_since(self, examined_versions: Mapping[str, int]) -> frozenset[str]:
        def has_changed(mirror: str) -> bool:
            with self._folder_of(mirror) as path:
                return not is_newest_version(path, examined_versions[mirror])

        if not isinstance(self._lake, ObjectPath) or len(examined_versions) < 2:
            return frozenset(filter(has_changed, examined_versions))
        with ThreadPoolExecutor(_MOST_LOOKUPS_AT_ONCE, thread_name_prefix="lockstep-logs") as pool:
            is_changed = pool.map(has_changed, examined_versions)
            return frozenset(compress(examined_versions, is_changed))

    def log_since(self, mirror: str, version: int) -> LogSince:
        with self._folder_of(mirror) as path:
            return log_since(path, version)

    def history(self, folder: str) -> Iterator[LakeCommit]:
        with self._folder_of(folder) as path:
            yield from commits_newest_first(path)

    def reason_unreadable(
        self, mirror: str, version: int, *, table_id: str | None = None, batch: int | None = None
    ) -> str | None:
        return reason_unreadable(DeltaVersion(self._lake / mirror, version, table_id, batch))

    def schema(self, mirror: str, version: int) -> pa.Schema:
        with self._folder_of(mirror) as path:
            return mirror_schema(path, version)

    def rows(
        self,
        mirror: str,
        columns: Sequence[str],
        version: int,
        column_ranges: ColumnRanges | None = None,
    ) -> Iterator[pa.RecordBatch]:
        with self._folder_of(mirror) as path:
            if needs_spark(path, delta_table(path, version)):
                yield from self._rows_by_spark(mirror, columns, version)
            else:
                yield from scan_rows(path, columns, version, column_ranges)

    def _rows_by_spark(
        self, mirror: str, columns: Sequence[str], version: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table that delta-rs cannot read, from staged files to
        which Spark copies them."""
        path = self._lake / mirror
        is_small = self._is_small(delta_table(path, version))
        with (
            exclusive_session(self._spark, few_rows=is_small) as session,
            self._staging.new_folder() as folder,
        ):
            with spark_errors(path):
                copy_rows(session, path, columns, version, folder)
            yield from staged_rows(folder, columns, mirror_schema(path, version))

    def _is_small(self, table: DeltaTable) -> bool:
        """Return whether the table is so small that Spark should use settings for few
        rows."""
        return scale(table_size(table), Size(0, 0), limit=self._few_limit).is_few_rows

    def write(self, write: MirrorWrite, require_held: RequireHeld = no_check) -> MirrorCommit:
        target = write.target
        replaces_rows = isinstance(write, Replace | CountedReplace)
        head = self._checked_head(target.mirror, require_held)
        commit = self._own_commit(target)
        if commit is not None:
            return commit
        with self._folder_of(target.mirror) as path:
            table = delta_table(path) if head.exists else None
            if table is not None and not replaces_rows:
                mark_fields = [DELETED_AT] if target.policies.marks_deleted else []
                refuse_other_columns(
                    table, pa.schema([*target.schema, *mark_fields]), refuse_missing=True
                )
            chosen_scale = self._choose_scale(path, table, write)
        with exclusive_session(self._spark, few_rows=chosen_scale.is_few_rows) as session:
            try:
                if (
                    table is not None
                    and replaces_rows
                    and self._enable_features(session, target, table, head)
                ):
                    head = self._checked_head(target.mirror, require_held)
                self._commit_write(session, write, head, chosen_scale)
            except CommitConflict:
                # The conflicting commit may come from an earlier try of this write.
                if self._own_commit(target) is None:
                    raise
            # This follows the write, because a query that overwrites the rows ends the
            # clustering.
            with self._folder_of(target.mirror) as path:
                statement = statement_to_cluster(path, target.policies.cluster_by)
            self._change_clustering(
                session, target.mirror, statement, target.user_metadata, require_held
            )
        commit = self._own_commit(target)
        if commit is None:
            raise ForeignCommit(
                f"The write to {target.mirror} ended without leaving its transaction "
                f"{target.txn_version} of {target.app_id} in the log",
                hint="look in the table's history for a commit that is not Lockstep's",
            )
        if not head.exists:
            self._make_durable(target.mirror)
        return replace(commit, scale_reason=chosen_scale.reason)

    def _enable_features(
        self, session: SparkSession, target: MirrorTarget, table: DeltaTable, head: Head
    ) -> bool:
        """Enable the table features that new columns need, in a commit after `head`,
        because Delta does not enable them when the rows are overwritten. Return whether
        a commit was needed."""
        properties = _missing_properties(table, target.schema)
        if properties:
            user_metadata = metadata_of_kind(target.user_metadata, WriteKind.ALTER)
            with self._pinned(session, target.mirror, head, user_metadata) as path:
                _set_properties(session, path, SetProperties(properties), head)
        return bool(properties)

    def _change_clustering(
        self,
        session: SparkSession,
        mirror: str,
        statement: str | None,
        write_metadata: str,
        require_held: RequireHeld,
    ) -> None:
        """Execute a statement that changes the mirror's clustering; do nothing if it is
        None. `write_metadata`: the userMetadata of the write that needs the change; the
        userMetadata of this commit refers to it."""
        if statement is None:
            return
        head = self._checked_head(mirror, require_held)
        user_metadata = metadata_of_kind(write_metadata, WriteKind.ALTER)
        with self._pinned(session, mirror, head, user_metadata):
            session.sql(statement)

    def _own_commit(self, target: MirrorTarget) -> MirrorCommit | None:
        """Return the write's commit, made by this try or by an earlier one; None if
        there is none. Raise `ForeignCommit` if its transaction is of another write."""
        commit = self.find_commit(target.mirror, target.app_id, target.txn_version)
        if commit is not None and not is_same_write(commit.user_metadata, target.user_metadata):
            raise ForeignCommit(
                f"Version {commit.delta_version} of {target.mirror} carries transaction "
                f"{target.txn_version} of {target.app_id}, but not this write's description",
                hint=LEDGER_BEHIND_HINT,
            )
        return commit

    def _choose_scale(self, path: LakePath, table: DeltaTable | None, write: MirrorWrite) -> Scale:
        """Choose how a write is carried out, by the size of the mirror and of the
        write's files. Of the mirrors' files, only those whose rows would be read in
        memory are opened, and only if few rows are stored: in an object store, each
        costs requests, and a mirror that is only appended to has a file of each run."""
        staged_files = [file_named(self._input_lake, name) for name in staged_paths(write)]
        copied_tables = [
            (folder, delta_table(folder, rows.version))
            for rows in copied_mirrors(write)
            for folder in [file_named(self._input_lake, rows.path)]
        ]
        staged_size = files_size(staged_files)
        sizes = [
            None if staged_size is None else staged_size.stored,
            *(table_size(copied) for _, copied in copied_tables),
        ]
        input_size = None if None in sizes else sum(filter(None, sizes), Size(0, 0))
        chosen_scale = scale(
            Size(0, 0) if table is None else table_size(table),
            input_size,
            without_query=self._in_memory and can_be_computed(path, write, table),
            limit=self._few_limit,
        )
        if not chosen_scale.in_memory:
            return chosen_scale
        tables = copied_tables
        if table is not None and reads_mirror(write):
            tables = [*copied_tables, (path, table)]
        read_files = [folder / name for folder, read in tables for name in file_paths(read)]
        file_sizes = filter(None, (staged_size, files_size(read_files)))
        unpacked_bytes = sum(size.unpacked_bytes for size in file_sizes)
        return replace(chosen_scale, in_memory=unpacked_bytes <= MOST_UNPACKED_BYTES)

    def stage(self, name: str, changes: pa.Table) -> str:
        return self._staging.stage(name, changes)

    def unstage(self, path: str) -> None:
        self._staging.unstage(path)

    def _read_file(self, name: str) -> pa.Table:
        return pq.read_table(parquet_content(file_named(self._input_lake, name)))

    def path(self, relative: str) -> str:
        return str(self._input_lake / relative)

    def evolve(
        self,
        mirror: str,
        steps: Sequence[MirrorStep],
        *,
        app_id: str,
        txn_version: int,
        after_version: int,
        write_metadata: str = "",
        require_held: RequireHeld = no_check,
    ) -> tuple[MirrorCommit, ...]:
        def find_commits() -> tuple[MirrorCommit | None, ...]:
            with self._folder_of(mirror) as path:
                return _recorded_steps(path, steps, app_id, txn_version, after_version)

        commits = find_commits()
        if None in commits:
            with self._folder_of(mirror) as path:
                table = delta_table(path)
                is_small = self._is_small(table)
            _refuse_column_names(table, steps)
            with exclusive_session(self._spark, few_rows=is_small) as session:
                for index, step in enumerate(steps):
                    if isinstance(step, DropColumns) and find_commits()[index] is None:
                        with self._folder_of(mirror):
                            statement = statement_to_uncluster(path, step.names)
                        self._change_clustering(
                            session, mirror, statement, write_metadata, require_held
                        )
                    head = self._checked_head(mirror, require_held)
                    if find_commits()[index] is None:
                        user_metadata = metadata_of_kind(
                            write_metadata,
                            WriteKind.ALTER,
                            app_id=app_id,
                            txn_version=txn_version,
                            step=index + 1,
                            does=str(step),
                            values=_step_values(step),
                        )
                        self._commit_step(
                            session, mirror, step, user_metadata, app_id, txn_version, head
                        )
            commits = find_commits()
        recorded_commits = tuple(commit for commit in commits if commit is not None)
        if len(recorded_commits) != len(steps):
            raise ForeignCommit(
                f"A change of {self._lake / mirror}'s columns ended without its record in the log",
                hint="look in the table's history for a commit that is not Lockstep's",
            )
        return recorded_commits

    def restore(
        self, mirror: str, version: int, user_metadata: str, require_held: RequireHeld = no_check
    ) -> int:
        head = self._checked_head(mirror, require_held)
        with (
            exclusive_session(self._spark, few_rows=True) as session,
            self._pinned(session, mirror, head, user_metadata) as path,
            session_settings(session, {AGE_LIMIT_SETTING: "false"}),
        ):
            session.sql(f"RESTORE TABLE delta.{quoted(str(path))} TO VERSION AS OF {version}")
        return head.version + 1

    def delete_history(
        self,
        mirror: str,
        version: int,
        user_metadata: str,
        on_commit: Callable[[int], None],
        require_held: RequireHeld = no_check,
    ) -> None:
        with self._folder_of(mirror) as path:
            delete_history(path, version, user_metadata, on_commit, require_held)

    def remove(self, mirror: str, require_held: RequireHeld = no_check) -> None:
        folder = self._lake / mirror
        with lake_errors(folder):
            remove_table(folder, require_held)

    def _commit_write(
        self, session: SparkSession, write: MirrorWrite, head: Head, chosen_scale: Scale
    ) -> None:
        """Make the write's commit directly after `head`, in the way that was chosen."""
        target = write.target
        settings = {
            APP_ID_SETTING: target.app_id,
            TXN_VERSION_SETTING: str(target.txn_version),
            **_NO_CONSTRAINT_INFERENCE,
        }
        with (
            self._pinned(session, target.mirror, head, target.user_metadata) as path,
            session_settings(session, settings),
        ):
            new_properties = None if head.exists else new_table_properties(target, self._keep)
            spell = spelling(new_properties or delta_table(path).metadata().configuration)
            if not chosen_scale.in_memory:
                commit_write(session, write, path, self._staging, new_properties, spell)
                return
            rows = rows_of_write(path, write, head.version, self._read_file)
            rows = rows.rename_columns(list(map(spell, rows.column_names)))
            replace_rows = not isinstance(write, Append)
            replace_columns = isinstance(write, Replace | CountedReplace)
            if self._spark.can_call_java:
                commit_rows(
                    session,
                    path,
                    rows,
                    version=head.version,
                    app_transaction=(target.app_id, target.txn_version),
                    replace_rows=replace_rows,
                    replace_columns=replace_columns,
                    new_properties=new_properties,
                )
            else:
                write_rows(
                    session,
                    path,
                    rows,
                    self._staging,
                    replace_rows=replace_rows,
                    replace_columns=replace_columns,
                    new_properties=new_properties,
                )

    def _commit_step(
        self,
        session: SparkSession,
        mirror: str,
        step: MirrorStep,
        user_metadata: str,
        app_id: str,
        txn_version: int,
        head: Head,
    ) -> None:
        """Make a step's commit after `head`."""
        with self._pinned(session, mirror, head, user_metadata) as path:
            spell = spelling(delta_table(path).metadata().configuration)
            match step:
                case SetProperties():
                    _set_properties(session, path, step, head)
                case Rewrite() | Fill():
                    transaction = {
                        APP_ID_SETTING: f"{app_id}/evolve",
                        TXN_VERSION_SETTING: str(txn_version),
                    }
                    with session_settings(session, transaction):
                        rewrite(session, path, step, spell)
                case _:
                    session.sql(step_statement(str(path), step, spell))

    @contextmanager
    def _pinned(
        self, session: SparkSession, mirror: str, head: Head, user_metadata: str
    ) -> Iterator[LakePath]:
        """Yield the mirror's folder. Inside the context, the session can make only the
        commit after `head`, which gets this userMetadata; Spark's errors become errors
        of this mirror."""
        settings = {**head.pin_settings(), USER_METADATA_SETTING: user_metadata}
        with (
            self._folder_of(mirror) as path,
            pinned_errors(path, head),
            session_settings(session, settings),
        ):
            yield path

    def _checked_head(self, mirror: str, require_held: RequireHeld) -> Head:
        """Return the mirror's newest commit, after which the next commit must be made.
        The commit is read before `require_held` checks that no other run has taken over
        the source. If a run takes over after the check, either it commits first, so
        that our commit is refused, or it finds our commit."""
        with self._folder_of(mirror) as path:
            head = head_of(path)
        require_held()
        return head

    def _make_durable(self, mirror: str) -> None:
        """Sync the folders above a new mirror's log, so that their names are durable.
        The log itself was synced by our log store."""
        folder = self._lake / mirror / "_delta_log"
        with lake_errors(folder):
            while folder != self._lake:
                folder = folder.parent
                sync_folder(folder)

    @contextmanager
    def _folder_of(self, mirror: str) -> Iterator[LakePath]:
        """Yield the mirror's folder. Errors of files and of Delta inside the context
        become errors of this mirror, or of the lake if the whole lake fails."""
        path = self._lake / mirror
        with mirror_errors(self._lake, path):
            yield path


def _recorded_steps(
    path: LakePath, steps: Sequence[MirrorStep], app_id: str, txn_version: int, after_version: int
) -> tuple[MirrorCommit | None, ...]:
    """Return for each step its commit after Delta version `after_version`, or None if
    the step was not committed. Raise `ForeignCommit` if the commit with a step's number
    did something else."""
    commits: dict[int, tuple[MirrorCommit, Mapping[str, Any]]] = {}
    for version, metadata in metadata_since(path, after_version):
        record = read_metadata(metadata) or {}
        is_ours = record.get("app_id") == app_id and record.get("txn_version") == txn_version
        if is_ours and "step" in record:
            commits[int(record["step"])] = (MirrorCommit(version, metadata), record)
    for number, (commit, record) in commits.items():
        if number > len(steps) or record["values"] != _step_values(steps[number - 1]):
            raise ForeignCommit(
                f"version {commit.delta_version} of {path} records step {number} of transaction "
                f"{txn_version} of {app_id}, but did something else: {record['does']}",
                hint="set the policies back to what they were when the run was cut off, then run "
                "again; otherwise compare the ledger with the table's history",
            )
    return tuple(
        commits[number][0] if number in commits else None for number in range(1, len(steps) + 1)
    )


def _step_values(step: MirrorStep) -> list[Any]:
    """Return a step as values of JSON: the name of its kind, then its arguments."""
    match step:
        case SetProperties(properties):
            return ["set properties", [list(pair) for pair in properties]]
        case DropColumns(names):
            return ["drop columns", list(names)]
        case RenameColumn(name, new_name):
            return ["rename column", name, new_name]
        case WidenColumn(name, kind):
            return ["widen column", name, str(kind)]
        case AddColumns(fields):
            return ["add columns", [[field.name, str(field.type)] for field in fields]]
        case Fill(values):
            return ["fill", [[name, str(value.type), str(value)] for name, value in values]]
        case Rewrite(schema, columns):
            pairs = zip(schema, columns, strict=True)
            return [
                "rewrite",
                [[field.name, str(field.type), *_column_origin(c)] for field, c in pairs],
            ]
        case _:
            assert_never(step)


def _column_origin(column: ColumnOrigin) -> list[str | None]:
    return [column.source, None if column.value is None else str(column.value)]


def _refuse_column_names(table: DeltaTable, steps: Sequence[MirrorStep]) -> None:
    """Raise `TableError` if a step gives a column a name that Delta accepts only with
    column mapping, while the table has no column mapping and gets none by these steps.
    A table that escapes such names takes all of them."""
    spell = spelling(table.metadata().configuration)
    if MAPPING_PROPERTY in table.metadata().configuration.items() or any(
        isinstance(step, SetProperties) and MAPPING_PROPERTY in step.properties for step in steps
    ):
        return
    for name in chain.from_iterable(map(_new_names, steps)):
        if is_refused(spell(name)):
            raise TableError(
                f"column {name!r} has a character in its name that Delta takes only with column "
                'mapping (space , ; { } ( ) = tab newline), which readers = "any" excludes',
                hint="run `lockstep reload TABLE --reason …`, which makes a mirror with escaped "
                "names",
            )


def _new_names(step: MirrorStep) -> tuple[str, ...]:
    """Return the names that columns get by a step."""
    match step:
        case AddColumns(fields):
            return tuple(fields.names)
        case RenameColumn(_, new_name):
            return (new_name,)
        case Rewrite(schema):
            return tuple(schema.names)
        case _:
            return ()


def _missing_properties(table: DeltaTable, schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Return the properties that a mirror needs for these columns and does not have:
    for timestamps without time zone (DATETIME), and for column mapping if Delta refuses
    a name without it."""
    configuration = table.metadata().configuration
    spell = spelling(configuration)
    properties = []
    if NTZ_TYPE in schema.types and NTZ_FEATURE not in (table.protocol().reader_features or []):
        properties.append(NTZ_PROPERTY)
    if MAPPING_PROPERTY not in configuration.items() and any(
        is_refused(spell(name)) for name in schema.names
    ):
        properties.append(MAPPING_PROPERTY)
    return tuple(properties)


def _set_properties(session: SparkSession, path: LakePath, step: SetProperties, head: Head) -> None:
    must_list = add_actions_at(path, head.version) is None
    with session_settings(session, file_list_settings(path, head.version, must_list=must_list)):
        session.sql(step_statement(str(path), step, str))
