"""Every setting, on the page to look things up: the comments of lockstep.toml, the example.

Which keys there are, and which of them are required, the models say (`resources.config`); a test
compares them with the example.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from lockstep.resources.config import model, sources
from lockstep.resources.config.model import LineageSection
from tests.pages.made import MadePart, row

EXAMPLE: Final = Path(__file__).resolve().parents[2] / "lockstep.toml"

SECTIONS: Final[dict[str, type[BaseModel]]] = {
    "": model.ConfigFile,
    "lake": model.LakeSection,
    "ledger": model.LedgerSection,
    "dagster": model.DagsterSection,
    "upkeep": model.UpkeepSection,
    "privacy": model.PrivacySection,
    "lineage": LineageSection,
    "notify": model.NotifySection,
    "catalog": model.CatalogSection,
    "sources": sources.SourceSection,
    "sources.bounds": sources.BoundsSection,
    "sources.snapshot": sources.SnapshotSection,
    "sources.standby": sources.StandbySection,
    "sources.trigger": sources.TriggerSection,
    "sources.replay": sources.ReplaySection,
    "sources.table": sources.TableSection,
}
"""The model of each section; `spark` has none, since Spark's own keys are passed on."""

_POLICIES: Final = [
    name for name in sources.TableSection.model_fields if name in sources.SourceSection.model_fields
]
"""Keys that a block for some tables has with the words of its source."""

_HEADER: Final = re.compile(r"(?:# )?\[{1,2}(?P<name>[a-z.]+)\]{1,2} +# (?P<told>\w.*)")
_KEY: Final = re.compile(
    r'(?:# )?(?P<name>[a-z_]+|"[a-z.]+") = '
    r'(?P<value>"[^"]*"|\[[^\]]*\]|\{[^}]*\}|[\w.]+) +# (?P<told>\w.*)'
)
_GOES_ON: Final = re.compile(r" {39,}# (?P<told>.*)")
_HEAD: Final = "| key | such as | what it is |\n|---|---|---|"


@dataclass(frozen=True, slots=True)
class Explained:
    """A key of the example, or the header of a section, whose `value` is ""."""

    section: str
    name: str
    value: str
    comment: str


def explained(lines: list[str]) -> Iterator[Explained]:
    """Yield each header and key that has a comment behind it, in their order. A section is a key of
    the one around it."""
    section = ""
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            section = header["name"]
            around, _, name = section.rpartition(".")
            yield Explained(around, name, "", _comment(header["told"], lines[number + 1 :]))
        elif key := _KEY.match(line):
            comment = _comment(key["told"], lines[number + 1 :])
            yield Explained(section, key["name"].strip('"'), key["value"], comment)


def _comment(first: str, rest: list[str]) -> str:
    words = [first.strip()]
    for line in rest:
        goes_on = _GOES_ON.match(line)
        if goes_on is None:
            break
        words.append(goes_on["told"].strip())
    return " ".join(words)


def table() -> str:
    """A row for each section, followed by a row for each of its keys."""
    lines = [_HEAD]
    for one in explained(EXAMPLE.read_text(encoding="utf-8").splitlines()):
        if one.section == "sources.table" and one.name in _POLICIES:
            if one.name == _POLICIES[0]:
                names = ", ".join(f"`{name}`" for name in _POLICIES)
                lines.append(row((names, "", "as for the source, for these tables alone")))
        elif one.value:
            lines.append(row((_key(one), f"`{one.value}`", _linked(one.comment))))
        else:
            written = ".".join(filter(None, (one.section, one.name)))
            brackets = f"[[{written}]]" if _is_list(one) else f"[{written}]"
            lines.append(row((f"**{brackets}**", "", _linked(one.comment))))
    return "\n".join(lines)


def _key(one: Explained) -> str:
    part = SECTIONS.get(one.section)
    required = part is not None and part.model_fields[one.name].is_required()
    return f"`{one.name}`{' (required)' if required else ''}"


def _is_list(header: Explained) -> bool:
    return str(SECTIONS[header.section].model_fields[header.name].annotation).startswith("tuple")


def _linked(comment: str) -> str:
    """Pages as links; Markdown would take a `<` for HTML, and a `*` for emphasis."""
    text = re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", comment)
    return text.replace("<", "\\<").replace("*", "\\*")


PART: Final = MadePart("settings", "docs/reference.md", table)
