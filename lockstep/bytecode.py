"""Python's bytecode of what commands import, compiled at set-up.

Belongs here: which modules, and compiling those that have none. Does not: the engine, which numba
compiles (`resources.mysql.rehearsal`); what set-up says of it.

Python keeps the bytecode of a module when it is first imported, unless it was told not to
(`PYTHONDONTWRITEBYTECODE`, as in many images) or may not write there, as an account that only runs.
pip compiles what it installs, uv does not, and nobody compiles a checkout: then each command would
compile once more all that it imports.
"""

from __future__ import annotations

import compileall
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Final

_OWN: Final = ("lockstep", "assets", "resources", "pipeline")
_IMPORTED: Final = (
    "assets.execute",
    "assets.home",
    "lockstep.report",
    "numba",
    "resources.lake.room",
    "resources.mysql.server",
    "resources.postgres.ledger",
)
_SPARK: Final = ("pyspark.sql", "pyarrow.pandas_compat", "pyspark.sql.connect.session")
"""With what only Spark Connect needs, and pandas, which Arrow imports, where that is installed."""
_WORD: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Compiled:
    """How many modules were compiled now, and how many could not be: nobody may write there."""

    now: int
    never: int


def compile_imports() -> Compiled:
    """All modules of ours, and those of others that a run imports, where bytecode is missing or
    older than they are. Imports them; takes some seconds where there is much to compile."""
    import_what_runs_need()
    files = {*_sources(), *_imported()}
    before = {file for file in files if not _kept(file)}
    for file in before:
        compileall.compile_file(file, quiet=2)
    never = sum(not _kept(file) for file in before)
    return Compiled(len(before) - never, never)


def import_what_runs_need() -> None:
    """All that a run imports sooner or later, as far as it is installed."""
    for name in _IMPORTED:
        import_module(name)
    for name in _SPARK:
        try:
            import_module(name)
        except ImportError:
            break


def _sources() -> list[Path]:
    specs = [spec for spec in map(find_spec, _OWN) if spec is not None]
    folders = [folder for spec in specs for folder in spec.submodule_search_locations or ()]
    return [file for folder in folders for file in Path(folder).rglob("*.py")]


def _imported() -> list[Path]:
    """With their neighbours: some are imported later, some in vain, and some are gone again."""
    names = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    files = {Path(name) for name in names if name is not None and name.endswith(".py")}
    packages = {file.parent for file in files if file.with_name("__init__.py").exists()}
    return [*files, *(file for folder in packages for file in folder.glob("*.py"))]


def _kept(file: Path) -> bool:
    """As Python looks: by the second in which the source was changed, and its size; what is held
    against a hash instead was made by somebody who knows why."""
    try:
        cached, source = Path(cache_from_source(str(file))).read_bytes()[:16], file.stat()
    except OSError:
        return False
    changed, size = int(source.st_mtime) & _WORD, source.st_size & _WORD
    by_time = b"".join(one.to_bytes(4, "little") for one in (0, changed, size))
    return cached[4:8] != bytes(4) or cached[4:16] == by_time
