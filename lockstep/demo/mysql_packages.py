"""A MySQL from Debian's packages: unpacked into a cache folder, never installed.

Belongs here: fetching the packages of Debian's rolling release with the machine's own
apt and mirror, and the command that starts what came out of them. Starting servers is
`mysqld.py`, choosing between the sources of a MySQL is `mysql_search.py`.

The packages bring their own C library, so the program is started through its own
loader and runs on a Debian (or a relative of it) of any age.
"""

from __future__ import annotations

import fcntl
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.errors import SetupIncomplete

CURE = (
    "install MySQL 8.0 or newer, so that `mysqld` is on PATH, or name a server that may be "
    "written to: LOCKSTEP_TEST_MYSQL=mysql://root:password@host:3306"
)
_MIRROR = re.compile(r"https?://[^\s\]]+/debian/?(?=\s|$)", re.MULTILINE)
_ROOT = "mysql-debian"


def packaged_mysqld(cache: Path) -> tuple[str, ...]:
    """The command that starts the unpacked `mysqld`; fetches it into `cache` if need be.

    Callers at the same time wait for the first. Raises SetupIncomplete where there is
    no apt, no mirror of Debian, or the fetch fails.
    """
    root = cache / _ROOT
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f"{_ROOT}.lock"):
        if not root.exists():
            _fetch(root)
    return _command(root)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _command(root: Path) -> tuple[str, ...]:
    loaders = sorted(root.glob("usr/lib*/ld-linux-*.so.*"))
    libraries = sorted(root.glob("usr/lib/*-linux-gnu"))
    program = root / "usr/sbin/mysqld"
    if not (loaders and libraries and program.exists()):
        raise SetupIncomplete(
            f"the unpacked MySQL in {root} is incomplete", hint=f"delete {root} and start again"
        )
    return (
        str(loaders[0]),
        "--library-path",
        f"{libraries[0]}:{root / 'usr/lib'}",
        str(program),
        "--no-defaults",
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
    )


def _fetch(root: Path) -> None:
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    mirror = debian_mirror(Path("/etc/apt"))
    keyrings = sorted(Path("/usr/share/keyrings").glob("debian-archive-keyring.[gp][pg][gp]"))
    if not (apt and dpkg and mirror and keyrings):
        raise SetupIncomplete("no MySQL was found, and Debian's cannot be fetched here", hint=CURE)
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=".fetching-") as folder:
        work = Path(folder)
        source = f"deb [signed-by={keyrings[0]}] {mirror} sid main\n"
        _download(apt, work, source)
        for package in sorted((work / "archives").glob("*.deb")):
            _run([dpkg, "-x", str(package), str(work / "root")])
        # One rename: what exists under the final name is whole.
        (work / "root").rename(root)


def debian_mirror(etc_apt: Path) -> str | None:
    """The first mirror of Debian that the machine's own apt is set up with, or None.

    Reads one-line and deb822 sources, and the lists that `mirror+file:` points to
    (sources.list(5), apt-transport-mirror(1)).
    """
    patterns = ("sources.list", "sources.list.d/*.list", "sources.list.d/*.sources")
    files = [f for p in (*patterns, "mirrors/*.list") for f in sorted(etc_apt.glob(p))]
    for file in files:
        lines = (line for line in file.read_text().splitlines() if not line.startswith("#"))
        match = _MIRROR.search("\n".join(lines))
        if match:
            return match[0]
    return None


def _download(apt: str, work: Path, source: str) -> None:
    for folder in ("lists/partial", "archives/partial", "root"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()
    (work / "sources.list").write_text(source)
    settings = {
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": work / "lists",
        "Dir::State::status": work / "status",
        "Dir::Cache::archives": work / "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        # apt's own user may not enter a private cache folder.
        "APT::Sandbox::User": "root",
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    _run([apt, "-qq", *options, "update"])
    wanted = ["--no-install-recommends", "--download-only", "-y", "install", "mysql-server-core"]
    _run([apt, "-qq", *options, *wanted])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise SetupIncomplete(
            f"fetching MySQL failed at `{Path(command[0]).name}`: {' '.join(last)}", hint=CURE
        )
