"""What a reader is told of an object store before it opens a table there, ready to paste.

Belongs here: `[lake.options]` in each reader's words. Does not: opening a table (`snippets`).

A value that stands in lockstep.toml as a reference is told as one: no secret is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from resources.config.secrets import is_reference
from resources.lake.s3a import HADOOP, SAME

_FILE_SYSTEM: Final = "org.apache.hadoop.fs.s3a.S3AFileSystem"


def store_lines(path: str, options: Mapping[str, str]) -> dict[str, str]:
    """By reader, what goes in front; nothing for a folder, or for a store that is not S3's kind,
    which readers know by their environment. `options` as they are written down."""
    scheme = path.partition("://")[0]
    if scheme not in ("s3", "s3a"):
        return {}
    return {
        "Spark": _spark(scheme, options),
        "delta-rs": _environment(options),
        "Polars": _environment(options),
        "DuckDB": _duckdb(options),
    }


def _spark(scheme: str, options: Mapping[str, str]) -> str:
    lines = [
        f"# a session with --packages org.apache.hadoop:hadoop-aws:{HADOOP}",
        "import os",
        f'spark.conf.set("fs.{scheme}.impl", "{_FILE_SYSTEM}")',
    ]
    for name, value in options.items():
        if name in SAME:
            lines.append(f'spark.conf.set("fs.s3a.{SAME[name]}", {_python(value)})')
    if "endpoint" in options:
        lines.append('spark.conf.set("fs.s3a.path.style.access", "true")')
    return "\n".join(lines)


def _environment(options: Mapping[str, str]) -> str:
    """delta-rs, and Polars with it, finds a store's options in the environment."""
    told = ", ".join(f'"AWS_{name.upper()}": {_python(value)}' for name, value in options.items())
    return f"import os\nos.environ |= {{{told}}}" if told else ""


def _duckdb(options: Mapping[str, str]) -> str:
    parts = ["type s3"]
    if "access_key_id" not in options:
        parts.append("provider credential_chain")
    for name, value in options.items():
        if name == "endpoint" and not is_reference(value):
            scheme, _, host = value.rpartition("://")
            parts += [f"endpoint {_sql(host)}", "url_style 'path'"]
            parts += ["use_ssl false"] if scheme == "http" else []
        elif name in _DUCKDB:
            parts.append(f"{_DUCKDB[name]} {_sql(value)}")
    return f"install httpfs; load httpfs;\ncreate secret ({', '.join(parts)});"


_DUCKDB: Final = {
    "region": "region",
    "access_key_id": "key_id",
    "secret_access_key": "secret",
    "session_token": "session_token",
}


def _python(value: str) -> str:
    kind, _, target = value.partition(":")
    if not is_reference(value):
        return repr(value)
    return f"os.environ[{target!r}]" if kind == "env" else f"open({target!r}).read().strip()"


def _sql(value: str) -> str:
    """DuckDB's shell reads variables of the environment, and no other place for secrets."""
    kind, _, target = value.partition(":")
    if is_reference(value):
        return f"getenv('{target}')" if kind == "env" else f"'the content of {target}'"
    return "'" + value.replace("'", "''") + "'"
