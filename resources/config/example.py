"""Makes a new lockstep.toml from example.toml and the user's choices."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

_FIRST_LINE: Final = (
    "# Written from the example: it has every key that exists; those after a # are optional"
)
_HEADER: Final = re.compile(r"(?:# )?\[{1,2}(?P<name>[a-z.]+)\]{1,2} ")
_KEY: Final = re.compile(r"(?:# )?(?P<name>[a-z_]+) = .*?(?P<comment># \w.*)")


def default_password(name: str) -> str:
    """Return the default reference to a source's password."""
    return f"env:{name.upper()}_PASSWORD"


def text_of_new_file(
    *,
    name: str,
    host: str,
    user: str,
    tables: Sequence[str],
    port: int = 3306,
    password: str | None = None,
    tls: str = "verify",
    exclude: Sequence[str] = (),
    start: str | None = None,
    schedule: str | None = None,
    lake: str = "lake",
    ledger: str = "embedded",
) -> str:
    """Return the text of a file with one source. `parse_settings` says whether it is
    valid."""
    source: dict[str, object] = {
        "name": name,
        "host": host,
        "port": port,
        "user": user,
        "password": password or default_password(name),
        "tls": tls,
        "tables": list(tables),
        "start": start or "snapshot",
    }
    if exclude:
        source["exclude"] = list(exclude)
    if schedule:
        source["schedule"] = schedule
    example = (
        files("lockstep.resources.config").joinpath("example.toml").read_text(encoding="utf-8")
    )
    return fill_example(
        example, {"lake": {"path": lake}, "ledger": {"dsn": ledger}, "sources": source}
    )


def fill_example(example: str, values: Mapping[str, Mapping[str, object]]) -> str:
    """Return the example with these values (section → key → value). Its comments are
    kept."""
    lines = [_FIRST_LINE]
    section = ""
    for line in example.splitlines()[1:]:
        if header := _HEADER.match(line):
            section = header["name"]
        key = _KEY.match(line)
        if key is not None and key["name"] in values.get(section, {}):
            assignment = f"{key['name']} = {_toml_value(values[section][key['name']])}"
            line = f"{assignment:<39} {key['comment']}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _toml_value(value: object) -> str:
    """Return a value in TOML, whose numbers, strings and lists can be written as in
    JSON, except that DEL must be escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
