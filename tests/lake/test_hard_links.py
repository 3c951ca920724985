"""A lake on a file system without hard links, by which Lockstep commits without replacing what
another committed, is refused in a sentence that says so."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from lockstep.pipeline.values.errors import LakeUnavailable
from lockstep.resources.lake.spark.java_errors import JavaError, error_of
from tests.e2e.warm import REPOSITORY

WITHOUT_LINKS: Final = f"import {__name__} as test; test.refuse_hard_links()\n"
COMMIT: Final = """
import pyarrow as pa
from pathlib import Path
from deltalake import CommitProperties
from lockstep.pipeline.values.errors import LakeUnavailable
from lockstep.resources.lake.changelog.changelog import commit_files
from lockstep.resources.lake.mirror.deletion import _create_commit_file
from lockstep.resources.lake.store.storage import lake_errors

lake, columns = Path.cwd(), pa.schema([("id", pa.int64())])
for commit in (
    lambda: commit_files(lake / "t", None, columns, {}, [], CommitProperties()),
    lambda: _create_commit_file(lake / "commit.json", b""),
):
    try:
        with lake_errors(lake):
            commit()
    except LakeUnavailable as error:
        print(error.message)
"""
CHECK: Final = "from lockstep.cli import main; main(['check', '--json'])"
SOURCE: Final = """
[[sources]]
name = "shop"
host = "127.0.0.1"
port = 1
user = "lockstep"
password = "env:LOCKSTEP_TEST_NOWHERE"
tables = ["shop.*"]
"""


def refuse_hard_links() -> None:
    """Have the kernel refuse them to this process, as such file systems do, by a filter of system
    calls: seccomp(2)."""
    link, linkat = {"x86_64": (86, 265), "aarch64": (37, 37)}[os.uname().machine]
    load, equal, end = 0x20, 0x15, 0x06
    lines = (
        (load, 0, 0, 0),
        (equal, 1, 0, link),
        (equal, 0, 1, linkat),
        (end, 0, 0, 0x00050001),  # with EPERM
        (end, 0, 0, 0x7FFF0000),  # allowed
    )
    text = b"".join(
        code.to_bytes(2, sys.byteorder) + bytes((yes, no)) + value.to_bytes(4, sys.byteorder)
        for code, yes, no, value in lines
    )
    content = ctypes.create_string_buffer(text)

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_void_p))

    program = Filter(len(lines), ctypes.addressof(content))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert libc.prctl(22, 2, ctypes.byref(program)) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def refused(lake: Path) -> str:
    return (
        f"The lake's storage at {lake} allows no hard links, with which commits are made, or no "
        "change of its files"
    )


def printed(code: str, folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_LINKS + code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONWARNINGS": "ignore"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def test_a_commit_says_why_it_cannot_be_made(tmp_path: Path) -> None:
    """One of delta-rs, of Lockstep, and of Spark, whose message has no number."""
    assert printed(COMMIT, tmp_path).splitlines() == [refused(tmp_path)] * 2
    chain = [JavaError("java.nio.file.FileSystemException", "b -> a: Operation not permitted")]
    error = error_of(tmp_path, chain)
    assert (type(error), str(error)) == (LakeUnavailable, refused(tmp_path))


def test_check_tries_it(tmp_path: Path) -> None:
    """In the lake's folder, or where it would be made; nothing of the trial is left."""
    (tmp_path / "lockstep.toml").write_text(SOURCE)
    findings = json.loads(printed(CHECK, tmp_path))["machine"]["findings"]
    [lake] = [finding for finding in findings if finding["subject"] == "lake"]
    assert (lake["level"], lake["sentence"]) == ("refusal", refused(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["lockstep.toml"]
