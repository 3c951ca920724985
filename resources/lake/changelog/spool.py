"""The spool: files of row events that do not fit into memory, or whose transaction has
not ended yet. They are encrypted (`event_files`).

There are two kinds of files. A scratch file has no name, so the operating system
deletes it when the process ends, even if it is killed. A prepared file holds the row
events of a prepared XA transaction. It is in the folder `<lake>/<source>/_prepared`,
and its name is `batch-<batch, 12 digits>-<random digits>-<number, 5 digits>.events`. No
database's folder is called `_prepared`, since none begins with `_`
(`pipeline.mirror.layout`). If the lake is in an object store, a prepared file is first
written to a scratch file and uploaded when it is sealed; before it is read, it is
copied to a scratch file.

The key of a scratch file is never stored. The key of a prepared file is in the ledger;
if there is a privacy key, it is wrapped (RFC 3394, AES key wrap) with a key that is
derived from the privacy key.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap

from lockstep.pipeline.model.batch import WaitingFile
from lockstep.pipeline.ports.segments import NewEventFile
from lockstep.pipeline.shape.hashes import PrivacyKey
from lockstep.pipeline.values.errors import ConfigurationError
from lockstep.resources.lake.changelog.event_files import (
    KEY_BYTES,
    PIECE_BYTES,
    DiskEventFile,
    SealedEventFile,
    lost_error,
)
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import lake_errors, make_durable_folder, sync_folder
from lockstep.resources.private import make_private

_PREPARED_NAME = re.compile(r"batch-\d{12,}-([0-9a-f]{8}-)?\d{5,}\.events")
"""Names of prepared files. Lockstep 0.1 wrote no random digits into them."""


class FileSpool:
    """`pipeline.ports.Spool` in the lake.

    `scratch` is a local folder for files that need not survive the process. It is
    created with the first such file, and only this account can access it.
    `wrapping_key` is the key of 32 bytes with which the keys of prepared files are
    wrapped; with None they are not wrapped. Each spool has its own random digits in the
    names of prepared files: two copies of a ledger give batches the same numbers
    (`segments.ParquetSegments`).
    """

    def __init__(self, lake: LakePath, scratch: Path, wrapping_key: bytes | None = None) -> None:
        self._lake = lake
        self._scratch = scratch
        self._wrapping_key = wrapping_key
        self._random_digits = secrets.token_hex(4)
        self._own_batches = set[int]()

    def with_privacy_key(self, key: PrivacyKey | None) -> FileSpool:
        """Return a spool for the same folders that wraps the keys of prepared files
        with the privacy key. With None it does not wrap them."""
        wrapping_key = None if key is None else key.derive_key("keys of prepared files")
        return FileSpool(self._lake, self._scratch, wrapping_key)

    def create_scratch_file(self) -> DiskEventFile:
        return DiskEventFile(self._create_unnamed(), self._scratch)

    def _create_unnamed(self) -> int:
        """Create a scratch file and return its descriptor."""
        with lake_errors(self._scratch):
            make_private(self._scratch)
            with tempfile.TemporaryFile(dir=self._scratch, buffering=0) as file:
                return os.dup(file.fileno())

    def create_prepared_file(self, source: str, batch: int, number: int) -> DiskEventFile:
        self._own_batches.add(batch)
        folder = self._prepared_folder(source)
        path = folder / f"batch-{batch:012d}-{self._random_digits}-{number:05d}.events"
        with lake_errors(path):
            make_durable_folder(folder)
            if isinstance(path, ObjectPath):
                descriptor = self._create_unnamed()
            else:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        return DiskEventFile(descriptor, path, is_prepared=True)

    def seal(self, file: NewEventFile) -> WaitingFile:
        """Seal a file; `WaitingFile.path` is relative to the source's folder
        `_prepared`."""
        if not isinstance(file, DiskEventFile):
            raise TypeError(f"{file!r} is no file of this spool")
        waiting_file = file.seal()
        with lake_errors(file.path):
            sync_folder(file.path.parent)
        if self._wrapping_key is None:
            return waiting_file
        return replace(waiting_file, key=aes_key_wrap(self._wrapping_key, waiting_file.key))

    def open(self, source: str, file: WaitingFile) -> SealedEventFile:
        path = self._prepared_folder(source) / file.path
        key = self._unwrapped_key(file)
        with lake_errors(path):
            try:
                if isinstance(path, ObjectPath):
                    descriptor = self._download(path)
                else:
                    descriptor = os.open(path, os.O_RDONLY)
            except FileNotFoundError as error:
                raise lost_error(path, "is missing") from error
        return SealedEventFile(descriptor, path, file, key)

    def _unwrapped_key(self, file: WaitingFile) -> bytes:
        """Return the key with which a file is encrypted. It is not wrapped if no
        privacy key was configured when the file was sealed."""
        if len(file.key) == KEY_BYTES:
            return file.key
        if self._wrapping_key is not None:
            with suppress(InvalidUnwrap):
                return aes_key_unwrap(self._wrapping_key, file.key)
        raise ConfigurationError(
            f"A prepared XA transaction waits in {file.path}, and the privacy key with which it "
            "was written is not the one under [privacy].",
            hint="set that key under [privacy]; replace it only after XA RECOVER lists no "
            "transaction at the server and a run has captured the log up to then",
        )

    def _download(self, path: ObjectPath) -> int:
        """Copy an object to a scratch file and return its descriptor."""
        with path.open() as content:
            descriptor = self._create_unnamed()
            with open(descriptor, "wb", closefd=False) as scratch_file:
                shutil.copyfileobj(content, scratch_file, PIECE_BYTES)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def delete_batch(self, source: str, batch: int) -> int:
        # If this process began the batch, the batch's files have its digits. If another
        # process began the batch, their digits are unknown.
        own_digits = f"{self._random_digits}-" if batch in self._own_batches else ""
        folder = self._prepared_folder(source)
        with lake_errors(folder):
            paths: list[LakePath] = [*folder.glob(f"batch-{batch:012d}-{own_digits}*.events")]
            prepared_files = [path for path in paths if _PREPARED_NAME.fullmatch(path.name)]
            for path in prepared_files:
                path.unlink()
        return len(prepared_files)

    def delete_file(self, source: str, file: WaitingFile) -> None:
        path = self._prepared_folder(source) / file.path
        with lake_errors(path):
            path.unlink(missing_ok=True)

    def _prepared_folder(self, source: str) -> LakePath:
        return self._lake / source / "_prepared"
