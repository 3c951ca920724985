"""Turns a table's rows into the rows that the lake shows.

It is applied wherever rows become Arrow: to rows of the log, to rows read from MySQL,
to a part of the log that is read again, and to rows that are compared.

For an update, the condition is evaluated on the images before and after. The changelog
(the Delta table with every change) gets:

| image before | image after | in the changelog |
|---|---|---|
| taken | taken | both images; none if they show the same, because only hidden columns changed |
| taken | not taken | a delete, of the image before |
| not taken | taken | an insert, of the image after |
| not taken | not taken | nothing |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.proof import canonical
from lockstep.pipeline.schema.treatments import (
    Conversion,
    Hash,
    Mask,
    Treatment,
    Visibility,
    hides_values,
)
from lockstep.pipeline.schema.types import arrow_schema, times_to_microseconds
from lockstep.pipeline.shape.hashes import PrivacyKey, canonical_texts
from lockstep.pipeline.shape.shape import Shape, condition_columns, evaluator_of
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.row_images import CHANGE_TYPES, RowImages, pack_bits, unpack_bits
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import Column

_INSERT: Final = CHANGE_TYPES.index(ChangeType.INSERT)
_BEFORE: Final = CHANGE_TYPES.index(ChangeType.UPDATE_PREIMAGE)
_AFTER: Final = CHANGE_TYPES.index(ChangeType.UPDATE_POSTIMAGE)
_DELETE: Final = CHANGE_TYPES.index(ChangeType.DELETE)


class Shaper:
    """Applies one shape to rows. `key`: the key with which columns are hashed; it may
    be None if no column is hashed."""

    def __init__(self, shape: Shape, key: PrivacyKey | None = None) -> None:
        self._shape, self._key = shape, key
        self.schema = arrow_schema(shape.structure)
        """The schema of shaped rows."""
        self._evaluator = (
            None if shape.row_condition is None else evaluator_of(shape.source, shape.row_condition)
        )
        names = [column.name.lower() for column in shape.source.columns]
        self._condition_indexes = [
            names.index(name.lower()) for name in condition_columns(shape.row_condition)
        ]
        self._shown_indexes = [
            index
            for index, treatment in enumerate(shape.treatments)
            if treatment is not Visibility.LEFT_OUT
        ]

    @property
    def source_columns(self) -> list[str]:
        """Names of the source's columns that rows passed to `shape_rows` must have."""
        return list(self._shape.source.names)

    def may_hide(self, columns: Set[str]) -> bool:
        """Return whether the lake may not show a value of these columns as it is: one
        of them is treated, or the shape has a condition on rows."""
        treatments = zip(self._shape.source.names, self._shape.treatments, strict=True)
        return self._shape.row_condition is not None or any(
            treatment is not Visibility.SHOWN and name in columns for name, treatment in treatments
        )

    @property
    def indexes_filled_later(self) -> frozenset[int]:
        """Indexes of the hidden columns that the condition does not use. If an inserted
        row's image leaves such a column out, its default is filled in after shaping,
        because the history has the default only as the lake shows it."""
        return frozenset(
            index
            for index, treatment in enumerate(self._shape.treatments)
            if hides_values(treatment) and index not in self._condition_indexes
        )

    def for_columns(self, columns: Iterable[str]) -> Shaper:
        """Return the shaper of rows that have only these columns and those that the
        condition uses. The shaped rows have only `columns`."""
        source = self._shape.source
        shown_names = {*columns}
        read_names = shown_names | {source.names[index] for index in self._condition_indexes}
        read_indexes = [index for index, name in enumerate(source.names) if name in read_names]
        treatments = tuple(
            self._shape.treatments[index]
            if source.names[index] in shown_names
            else Visibility.LEFT_OUT
            for index in read_indexes
        )
        structure = replace(source, columns=tuple(source.columns[index] for index in read_indexes))
        return Shaper(replace(self._shape, source=structure, treatments=treatments), self._key)

    def shape_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that the condition takes, with their columns treated. `rows`:
        complete rows of the source. Raise TableError for a value that cannot be
        converted to the type in the settings."""
        if self._evaluator is not None:
            rows = rows.filter(self._evaluator(rows))
        return self._treat_columns(rows)

    def shape_images(self, images: RowImages) -> RowImages:
        """Return row images as the changelog gets them (see the table in the module's
        docstring). Raise TableError as `shape_rows` does, and if an image leaves out a
        column that the condition uses."""
        if self._shape.shows_all:
            return images
        if self._evaluator is not None:
            results = self._evaluator(self._with_condition_values(images))
            images = self._taken_images(images, results)
        shaped = replace(
            images,
            columns=self._treat_columns(images.columns),
            nulled_counts=self._shown_counts(images.nulled_counts),
            undefined_code_counts=self._shown_counts(images.undefined_code_counts),
            present=self._shown_bits(images.present),
            logged=self._shown_bits(images.logged),
            updated=self._shown_bits(images.updated),
        )
        if set(self._shape.treatments) == {Visibility.SHOWN}:
            return shaped  # MySQL logs no update that changes nothing.
        return _without_unchanged_updates(shaped)

    # -- rows ----------------------------------------------------------------------

    def _with_condition_values(self, images: RowImages) -> pa.RecordBatch:
        """Return the columns of the images. Where the image after an update leaves out a
        column that the condition uses, the column has the value of the image before."""
        if images.present is None:
            return images.columns
        present = self._unpacked(images.present)
        after = np.flatnonzero(images.change_type.to_numpy() == _AFTER)
        columns = list(images.columns.columns)
        for index in self._condition_indexes:
            has_value = present[:, index]
            origins = np.arange(len(present))  # index of the image from which a value is taken
            origins[after] = np.where(has_value[after], after, after - 1)
            if not has_value[origins].all():
                name = self._shape.source.columns[index].name
                raise TableError(
                    f"its condition uses column {name!r}, which an image leaves out "
                    "(binlog_row_image is not FULL)",
                    hint="set binlog_row_image=FULL for every session that writes this table",
                )
            columns[index] = columns[index].take(pa.array(origins))
        return pa.RecordBatch.from_arrays(columns, schema=images.columns.schema)

    def _taken_images(self, images: RowImages, results: pa.Array) -> RowImages:
        """Return the images that the condition takes. Updates become deletes or inserts as
        the table in the module's docstring says. `results`: the condition's result for
        each image."""
        is_taken = pc.fill_null(results, False).to_numpy(zero_copy_only=False)
        kinds = images.change_type.to_numpy().copy()
        # The image after an update always follows the image before it.
        before = np.flatnonzero(kinds == _BEFORE)
        after = before + 1
        leaves = is_taken[before] & ~is_taken[after]
        enters = ~is_taken[before] & is_taken[after]
        kinds[before[leaves]] = _DELETE
        kinds[after[enters]] = _INSERT
        if images.present is not None:
            self._require_shown_columns(images.present, after[enters])
        updated = images.updated
        if updated is not None:  # An update that became an insert no longer has these bits.
            updated = pc.if_else(pa.array(kinds == _AFTER), updated, pa.scalar(None, updated.type))
        kinds = pa.array(kinds, pa.int8())
        images = replace(images, change_type=kinds, updated=updated)
        return images.take(pa.array(np.flatnonzero(is_taken)))

    def _require_shown_columns(self, present: pa.Array, entering: npt.NDArray[np.int64]) -> None:
        """Raise TableError if a row that becomes an insert lacks a column that the lake
        shows. `entering`: indexes of these images."""
        has_value = self._unpacked(present.take(pa.array(entering)))
        if not has_value[:, self._shown_indexes].all():
            raise TableError(
                "after an update, its condition takes a row whose image leaves columns out "
                "(binlog_row_image is not FULL)",
                hint="set binlog_row_image=FULL for every session that writes this table",
            )

    # -- columns -------------------------------------------------------------------

    def _treat_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        columns, treatments = self._shape.source.columns, self._shape.treatments
        arrays = [
            self._treat_column(columns[n], treatments[n], rows.column(n))
            for n in self._shown_indexes
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _treat_column(self, column: Column, treatment: Treatment, values: pa.Array) -> pa.Array:
        match treatment:
            case Visibility.SHOWN | Visibility.LEFT_OUT:
                return values
            case Hash():
                assert self._key is not None, "a shape that hashes has a key"
                lower = treatment is Hash.LOWER
                return self._key.digests(canonical_texts(column, values, lower=lower))
            case Mask("year"):
                return pc.year(values).cast(pa.int16())
            case Mask("null"):
                return pa.nulls(len(values), values.type)
            case Mask():
                return _mask_texts(_printed_texts(column, values), treatment)
            case Conversion.BOOLEAN:
                return _as_booleans(column, values)
            case Conversion.UUID:
                return _as_uuids(column, values)
            case Conversion.MICROSECONDS:
                return times_to_microseconds(values)
            case Conversion.STRING:
                return _printed_texts(column, values)
            case _:
                assert_never(treatment)

    def _shown_counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the counts of the columns that are shown."""
        names = {self._shape.source.columns[n].name for n in self._shown_indexes}
        return {name: count for name, count in counts.items() if name in names}

    def _shown_bits(self, bits: pa.Array | None) -> pa.Array | None:
        """Return the bits of the columns that are shown."""
        if bits is None:
            return None
        is_null = bits.is_null().to_numpy(zero_copy_only=False)
        return pack_bits(self._unpacked(bits)[:, self._shown_indexes], is_null)

    def _unpacked(self, bits: pa.Array) -> npt.NDArray[np.bool_]:
        return unpack_bits(bits, len(self._shape.source.columns))


def _without_unchanged_updates(images: RowImages) -> RowImages:
    """Return the images except those of updates that change no shown value. A column
    that the image after leaves out did not change. A column that only the image before
    leaves out may have changed."""
    kinds = images.change_type.to_numpy()
    before = np.flatnonzero(kinds == _BEFORE)
    if not len(before):
        return images
    after = before + 1
    is_unchanged = np.ones(len(before), np.bool_)
    present = (
        None if images.present is None else unpack_bits(images.present, images.columns.num_columns)
    )
    for index, column in enumerate(images.columns.columns):
        equal = _equal_pairs(column.take(pa.array(before)), column.take(pa.array(after)))
        if present is not None:
            equal = ~present[after, index] | (present[before, index] & equal)
        is_unchanged &= equal
    is_kept = np.ones(len(kinds), np.bool_)
    is_kept[before[is_unchanged]] = is_kept[after[is_unchanged]] = False
    if is_kept.all():
        return images
    return images.take(pa.array(np.flatnonzero(is_kept)))


def _equal_pairs(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    """Return for each pair of values whether both are the same; NULL is the same as
    NULL."""
    if pa.types.is_list(left.type):
        left, right = canonical.vector_sha256_texts(left), canonical.vector_sha256_texts(right)
    elif pa.types.is_floating(left.type):  # Bits, since 0.0 and -0.0 are different values.
        bits = pa.int32() if left.type == pa.float32() else pa.int64()
        left, right = left.view(bits), right.view(bits)
    equal = pc.fill_null(pc.equal(left, right), False)
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    is_equal: npt.NDArray[np.bool_] = pc.or_(equal, both_null).to_numpy(zero_copy_only=False)
    return is_equal


# -- one column's values ---------------------------------------------------------------

_HIDDEN_PART: Final = "***"
"""Stands for the part that a mask hides, whatever its length."""


def _mask_texts(values: pa.Array, mask: Mask) -> pa.Array:
    is_longer = pc.greater(pc.utf8_length(values), mask.length)
    if mask.kind == "first":
        masked = pc.binary_join_element_wise(
            pc.utf8_slice_codeunits(values, 0, mask.length), _HIDDEN_PART, ""
        )
    else:
        masked = pc.binary_join_element_wise(
            _HIDDEN_PART, pc.utf8_slice_codeunits(values, -mask.length, None), ""
        )
    return pc.if_else(is_longer, masked, _HIDDEN_PART)


_MOMENT_TYPES: Final = ("datetime", "timestamp")
_MAX_FRACTION_DIGITS: Final = 6
_SECONDS_LENGTH: Final = len("2020-01-31 10:00:00")


def _printed_texts(column: Column, values: pa.Array) -> pa.Array:
    """Return the texts that SELECT prints for the column's values."""
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_decimal(values.type):
        return canonical.decimal_texts(values).cast(pa.string())
    if pa.types.is_floating(values.type):
        # A FLOAT goes by way of its shortest text: a direct cast makes 0.1 0.10000000149.
        return canonical.double_texts(values.cast(pa.string()).cast(pa.float64())).cast(pa.string())
    printed = (
        canonical.moment_texts(values)
        if column.type in _MOMENT_TYPES
        else canonical.plain_texts(values)
    )
    printed = printed.cast(pa.string())
    digits = column.length or 0
    if column.type not in _MOMENT_TYPES or digits == _MAX_FRACTION_DIGITS:
        return printed
    return pc.utf8_slice_codeunits(printed, 0, _SECONDS_LENGTH + (digits + 1 if digits else 0))


def _as_booleans(column: Column, values: pa.Array) -> pa.Array:
    is_other = pc.invert(pc.is_in(values, pa.array([0, 1, None], values.type)))
    if pc.any(is_other).as_py():
        raise TableError(
            f"column {column.name!r} is shown as boolean and has a value that is neither 0 nor 1",
            hint=f"take {column.name!r} out of types, or correct those rows in the source",
        )
    return pc.not_equal(values, pa.scalar(0, values.type))


_UUID: Final = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_DASHES: Final = (8, 13, 18, 23)
_UUID_BYTES: Final = 16


def _as_uuids(column: Column, values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type):
        lower = pc.utf8_lower(values)
        if not pc.all(pc.match_substring_regex(lower, _UUID)).as_py():
            raise TableError(
                f"column {column.name!r} is shown as uuid and has a value that is none",
                hint=f"take {column.name!r} out of types, or correct those rows in the source",
            )
        return lower
    # All texts have 36 characters, so one array with a row per UUID can hold them: dashes
    # and, in all other columns, the hexadecimal digits.
    filled = pc.fill_null(values, bytes(_UUID_BYTES)).cast(pa.binary(_UUID_BYTES))
    digits = np.frombuffer(b"".join(filled.to_pylist()).hex().encode(), np.uint8)
    characters = np.full((len(values), 36), ord("-"), np.uint8)
    characters[:, [n for n in range(36) if n not in _DASHES]] = digits.reshape(len(values), 32)
    offsets = np.arange(len(values) + 1, dtype=np.int32) * 36
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(characters)]
    uuids = pa.Array.from_buffers(pa.string(), len(values), buffers)
    return pc.if_else(values.is_valid(), uuids, pa.scalar(None, pa.string()))
