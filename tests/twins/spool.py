"""The spool in memory: `pipeline.ports.Spool` for tests without a folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from lockstep.pipeline.model.batch import WaitingFile
from lockstep.pipeline.ports.segments import NewEventFile
from lockstep.pipeline.values.errors import SegmentsLost


@dataclass(slots=True)
class MemoryEventFile:
    """`pipeline.ports.NewEventFile` over a bytearray; a scratch file has no name."""

    name: str = ""
    content: bytearray = field(default_factory=bytearray)
    closed: bool = False

    def write(self, data: bytes | memoryview) -> None:
        self.content += data

    def read(self, offset: int, count: int) -> bytes:
        if offset < 0 or count < 0 or offset + count > len(self.content):
            raise _lost(self.name, f"ends at byte {len(self.content)}, before {offset} + {count}")
        return bytes(self.content[offset : offset + count])

    def close(self) -> None:
        self.closed = True


@dataclass(slots=True)
class MemorySpool:
    """`files` holds every prepared file by source and name; `made` every scratch file."""

    files: dict[tuple[str, str], MemoryEventFile] = field(default_factory=dict)
    made: list[MemoryEventFile] = field(default_factory=list)

    def create_scratch_file(self) -> MemoryEventFile:
        self.made.append(MemoryEventFile())
        return self.made[-1]

    def create_prepared_file(self, source: str, batch: int, number: int) -> MemoryEventFile:
        file = MemoryEventFile(f"batch-{batch:012d}-{number:05d}.events")
        self.files[source, file.name] = file
        return file

    def seal(self, file: NewEventFile) -> WaitingFile:
        if not isinstance(file, MemoryEventFile):
            raise TypeError(f"{file!r} is no file of this spool")
        if not file.name:
            raise ValueError("a scratch file is not a prepared file being written")
        file.close()
        digest = hashlib.sha256(file.content).hexdigest()
        return WaitingFile(file.name, len(file.content), digest, bytes(32))

    def open(self, source: str, file: WaitingFile) -> MemoryEventFile:
        found = self.files.get((source, file.path))
        if found is None:
            raise _lost(file.path, "is missing")
        if len(found.content) != file.size:
            raise _lost(file.path, f"has {len(found.content)} bytes instead of {file.size}")
        if hashlib.sha256(found.content).hexdigest() != file.sha256:
            raise _lost(file.path, "has another checksum than when it was written")
        return MemoryEventFile(found.name, found.content)

    def delete_batch(self, source: str, batch: int) -> int:
        names = [
            (of, name)
            for of, name in self.files
            if of == source and name.startswith(f"batch-{batch:012d}-")
        ]
        for name in names:
            del self.files[name]
        return len(names)

    def delete_file(self, source: str, file: WaitingFile) -> None:
        self.files.pop((source, file.path), None)


def _lost(name: str, what: str) -> SegmentsLost:
    return SegmentsLost(
        f"Row events that waited in a file are lost: {name} {what}",
        hint="restore the file from a copy of the lake, then run again; nothing was recorded",
    )
