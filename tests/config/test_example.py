"""The example in the repository's root shows every key there is, and each one's meaning."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from lockstep.pipeline.values.policies import LakePolicies, StartPolicies
from lockstep.resources.config import model, sources
from lockstep.resources.config.lineage import LineageSection
from lockstep.resources.config.load import parse_settings
from lockstep.resources.config.model import CatalogSection, DagsterSection, NotifySection
from lockstep.resources.config.values import Section
from lockstep.resources.lake.spark.remote import KEYS
from tests.pages.policies import chosen_of

EXAMPLE = Path(__file__).resolve().parents[2] / "lockstep.toml"

SECTIONS: dict[str, type[BaseModel]] = {
    "": model.File,
    "lake": model.LakeSection,
    "ledger": model.LedgerSection,
    "dagster": DagsterSection,
    "upkeep": model.UpkeepSection,
    "privacy": model.PrivacySection,
    "lineage": LineageSection,
    "notify": NotifySection,
    "catalog": CatalogSection,
    "sources": sources.SourceSection,
    "sources.bounds": sources.BoundsSection,
    "sources.snapshot": sources.SnapshotSection,
    "sources.standby": sources.StandbySection,
    "sources.trigger": sources.TriggerSection,
    "sources.replay": sources.ReplaySection,
    "sources.table": sources.TableSection,
}

HEADER = re.compile(r"(?:# )?\[{1,2}(?P<name>[a-z.]+)\]{1,2} +# \w")
KEY = re.compile(r'(?:# )?(?P<name>[a-z_]+) = (?:"[^"]*"|\[[^\]]*\]|\{[^}]*\}|[\w.]+) +# \w')


def explained(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Each key that has a comment behind it, with its section; a section is a key of the one
    around it."""
    section = ""
    for line in lines:
        if header := HEADER.match(line):
            section = header["name"]
            around, _, name = section.rpartition(".")
            yield around, name
        elif key := KEY.match(line):
            yield section, key["name"]


def test_every_key_has_a_comment() -> None:
    """A new field of the file's shape is missing here until the example explains it, once."""
    fields = [(section, name) for section, part in SECTIONS.items() for name in part.model_fields]
    fields += [("spark", name) for name in KEYS]
    assert sorted(explained(EXAMPLE.read_text().splitlines())) == sorted(fields)


def test_every_policy_says_its_default() -> None:
    """The value that is shown is another of its words, and the comment names the default."""
    lines = " ".join(line.strip(" #") for line in EXAMPLE.read_text().splitlines())
    for key, default in (chosen_of(StartPolicies()) | chosen_of(LakePolicies())).items():
        shown = re.search(rf'{key} = "(?P<word>[a-z-]+)" +# (?P<comment>.*?) [a-z_]+ = ', lines)
        assert shown is not None, key
        assert type(default)(shown["word"]) is not default
        assert f'"{default}"' in shown["comment"] and "default" in shown["comment"]


def test_a_source_has_every_policy_with_the_default_of_the_code() -> None:
    """Neither a key nor a default is told a second time."""
    fields = sources.SourceSection.model_fields
    policies = chosen_of(StartPolicies()) | chosen_of(LakePolicies())
    assert {key: fields[key].default for key in policies} == policies


def test_every_part_of_the_file_is_looked_at() -> None:
    """A new table of keys is missing here until it has a section."""
    parts = {part for part in (vars(model) | vars(sources)).values() if isinstance(part, type)}
    parts = {part for part in parts if issubclass(part, Section) and part is not Section}
    assert parts == set(SECTIONS.values())


def test_what_is_commented_out_can_be_used() -> None:
    """With every `# ` before a key or a section taken away the file is valid, and every key
    is set in it."""
    text = re.sub(r'^# (?=\[|"?[a-z_.]+"? = )', "", EXAMPLE.read_text(), flags=re.MULTILINE)
    source = parse_settings(text, EXAMPLE).source("shop").part
    assert source.model_fields_set == set(sources.SourceSection.model_fields)
    assert tomllib.loads(text)["spark"].keys() == {"spark.driver.memory", *KEYS}
