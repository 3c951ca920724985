"""DuckDB as its users have it, with the extensions that its snippets install.

Belongs here: where those are found, since nothing is fetched while tests run. Does not: the
snippets (`lockstep.commands.read`).
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import duckdb

EXTENSIONS = ("delta", "httpfs")


def duck(folder: Path) -> duckdb.DuckDBPyConnection:
    """A new one; `folder` is for its extensions, which are then installed already. Each is signed
    by DuckDB's makers, which it looks at."""
    connection = duckdb.connect(config={"extension_directory": str(folder)})
    [(platform,)] = connection.execute("pragma platform").fetchall()
    below = f"v{duckdb.__version__}"
    there = folder / below / platform
    there.mkdir(parents=True, exist_ok=True)
    for name in EXTENSIONS:
        found = f"extensions/{below}/{name}.duckdb_extension"
        link = there / f"{name}.duckdb_extension"
        if not link.exists():
            link.symlink_to(str(files(f"duckdb_extension_{name}") / found))
    return connection
