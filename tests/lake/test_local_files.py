"""This machine's files, as Spark's Java makes them: as Hadoop's own class would, without a command
for each (`LocalFiles.java`; that none is needed: `test_session`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from lockstep.resources.lake.spark.session import SparkProcess

OURS = ("lockstep.delta.LocalFiles", "lockstep.delta.LocalFiles$Context")


@pytest.fixture
def hadoop(spark: SparkProcess) -> Any:
    """Java's `org.apache.hadoop.fs`."""
    jvm: Any = spark.session().sparkContext._jvm
    return jvm.org.apache.hadoop.fs


@pytest.fixture
def conf(spark: SparkProcess) -> Any:
    """What Hadoop is told by Spark."""
    return spark.session()._jsparkSession.sessionState().newHadoopConf()


@pytest.fixture
def files(hadoop: Any, conf: Any) -> Any:
    """The file system that Spark's queries use."""
    system = hadoop.Path("file:///").getFileSystem(conf)
    assert system.getClass().getName() == OURS[0]
    return system


@pytest.fixture
def context(hadoop: Any, conf: Any) -> Any:
    """The one that Delta's log stores use."""
    context = hadoop.FileContext.getFileContext(hadoop.FsConstants.LOCAL_FS_URI, conf)
    assert context.getDefaultFileSystem().getClass().getName() == OURS[1]
    return context


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o1777])
def test_permissions_are_those_that_were_asked_for(
    files: Any, hadoop: Any, tmp_path: Path, mode: int
) -> None:
    """As `chmod` sets them, whatever the umask."""
    permission = hadoop.permission.FsPermission(f"{mode:o}")
    files.mkdirs(hadoop.Path(str(tmp_path / "folder")))
    files.create(hadoop.Path(str(tmp_path / "folder" / "file"))).close()
    files.setPermission(hadoop.Path(str(tmp_path / "folder" / "file")), permission)
    files.setPermission(hadoop.Path(str(tmp_path / "folder")), permission)
    found = [(tmp_path / name).stat().st_mode & 0o7777 for name in ("folder", "folder/file")]
    assert found == [mode, mode]


def test_what_is_made_has_the_permissions_of_hadoops_own(
    files: Any, hadoop: Any, conf: Any, tmp_path: Path
) -> None:
    theirs = hadoop.LocalFileSystem()
    theirs.initialize(hadoop.FsConstants.LOCAL_FS_URI, conf)
    modes = []
    for name, system in (("ours", files), ("theirs", theirs)):
        system.create(hadoop.Path(str(tmp_path / name / "one" / "file"))).close()
        made = sorted((tmp_path / name).rglob("*"))
        assert [path.name for path in made] == ["one", ".file.crc", "file"]
        modes.append([path.stat().st_mode for path in made])
    assert modes[0] == modes[1]


def test_links_are_told_as_links(context: Any, hadoop: Any, tmp_path: Path) -> None:
    """A file's own status, a link's, one that leads nowhere, and nothing at all."""
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")

    def status(name: str) -> Any:
        return context.getFileLinkStatus(hadoop.Path(str(tmp_path / name)))

    assert (status("file").isSymlink(), status("file").getLen()) == (False, 5)
    for name, end in (("link", "file"), ("nowhere", "gone")):
        assert status(name).isSymlink()
        assert status(name).getSymlink().toString() == f"file:{tmp_path / end}"
    with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
        status("gone")


def test_a_permission_that_the_system_refuses_is_an_error(
    files: Any, hadoop: Any, tmp_path: Path
) -> None:
    missing = hadoop.Path(str(tmp_path / "missing"))
    with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
        files.setPermission(missing, hadoop.permission.FsPermission("644"))
