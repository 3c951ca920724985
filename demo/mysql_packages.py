"""Servers from Debian's packages: MySQL from the rolling release, and others for the tests. They
are unpacked into a cache folder, never installed.

The host's own apt fetches them from the host's mirror. They include a C library and its loader,
which starts the program, so that it runs on a Debian (or a relative of it) of any age.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.file_lock import exclusive_lock

CURE = (
    "install MySQL 8.0 or newer, so that `mysqld` is on PATH, or name a server that may be "
    "written to: LOCKSTEP_TEST_MYSQL=mysql://root:password@host:3306"
)
_MIRROR = re.compile(r"https?://[^\s\]]+/debian/?(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DebianPackages:
    """Packages of a Debian release, with everything that they depend on.

    `title`: what an error calls them. `folder`: their folder's name in the cache. `suite`: the
    release. `names`: their names for apt, separated by spaces. `cure`: the error's hint.
    """

    title: str
    folder: str
    suite: str
    names: str
    cure: str


MYSQL = DebianPackages("MySQL", "mysql-debian", "sid", "mysql-server-core", CURE)


def packaged_mysqld_command(cache: Path) -> tuple[str, ...]:
    """Return the command that starts the unpacked `mysqld`, which is downloaded if it is not in
    the cache. Raises `SetupIncomplete` as `unpack` does."""
    root = unpack(MYSQL, cache)
    return (
        *command_with_own_loader(MYSQL, root, root / "usr/sbin/mysqld"),
        "--no-defaults",
        f"--lc-messages-dir={root / 'usr/share/mysql'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
    )


def unpack(packages: DebianPackages, cache: Path) -> Path:
    """Return the folder with the package's files, laid out as under `/`. They are downloaded if
    they are missing, by one process at a time. `SetupIncomplete` if there is no apt or no Debian
    mirror, or if the download fails."""
    root = cache / packages.folder
    cache.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(cache / f"{packages.folder}.lock"):
        if not root.exists():
            _fetch(packages, root)
    return root


def command_with_own_loader(packages: DebianPackages, root: Path, program: Path) -> tuple[str, ...]:
    """Return the words that start the program with the loader and the libraries of `root` only.
    `SetupIncomplete` if one of them is missing."""
    # Releases before the merge of / and /usr have both folders.
    library_folders = sorted(
        f for p in ("lib/*-linux-gnu", "usr/lib/*-linux-gnu") for f in root.glob(p) if f.is_dir()
    )
    loaders = [loader for folder in library_folders for loader in folder.glob("ld-linux-*.so.*")]
    if not (loaders and program.exists()):
        raise SetupIncomplete(
            f"the unpacked {packages.title} in {root} is incomplete",
            hint=f"delete {root} and start again",
        )
    path = ":".join(str(folder) for folder in (*library_folders, root / "usr/lib"))
    return (str(loaders[0]), "--library-path", path, str(program))


def _fetch(packages: DebianPackages, root: Path) -> None:
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    mirror = debian_mirror(Path("/etc/apt"))
    keyrings = sorted(Path("/usr/share/keyrings").glob("debian-archive-keyring.[gp][pg][gp]"))
    if not (apt and dpkg and mirror and keyrings):
        raise SetupIncomplete(
            f"no {packages.title} was found, and Debian's cannot be fetched here",
            hint=packages.cure,
        )
    with tempfile.TemporaryDirectory(dir=root.parent, prefix=".fetching-") as folder:
        work = Path(folder)
        source = f"deb [signed-by={keyrings[0]}] {mirror} {packages.suite} main\n"
        _download(packages, apt, work, source)
        for archive in sorted((work / "archives").glob("*.deb")):
            _run(packages, [dpkg, "-x", str(archive), str(work / "root")])
        # Rename at the end, so that the final name exists only if it is complete.
        (work / "root").rename(root)


def debian_mirror(etc_apt: Path) -> str | None:
    """Return the first Debian mirror in the configuration of the host's apt, or None.

    This reads one-line and deb822 sources, and the lists that `mirror+file:` points to
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


def _download(packages: DebianPackages, apt: str, work: Path, source: str) -> None:
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
        # apt's own account may have no access to a private cache folder.
        "APT::Sandbox::User": "root",
    }
    options = [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
    _run(packages, [apt, "-qq", *options, "update"])
    install = [
        "--no-install-recommends",
        "--download-only",
        "-y",
        "install",
        *packages.names.split(),
    ]
    _run(packages, [apt, "-qq", *options, *install])


def _run(packages: DebianPackages, command: list[str]) -> None:
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode != 0:
        last_line = (process.stderr or process.stdout).strip().splitlines()[-1:]
        raise SetupIncomplete(
            f"fetching {packages.title} failed at `{Path(command[0]).name}`: {' '.join(last_line)}",
            hint=packages.cure,
        )
