"""The example in the repository's root shows every key there is, and each one's meaning."""

from __future__ import annotations

import re
import tomllib

from lockstep.pipeline.values.policies import LakePolicies, StartPolicies
from lockstep.resources.config import model, sources
from lockstep.resources.config.load import parse_settings
from lockstep.resources.config.values import Section
from tests.pages.policies import chosen_of
from tests.pages.settings import EXAMPLE, SECTIONS, explained

SPARK_KEYS = {"remote", "token", "spark.driver.memory"}


def test_every_key_has_a_comment() -> None:
    """A new field of the file's shape is missing here until the example explains it, once."""
    fields = [(section, name) for section, part in SECTIONS.items() for name in part.model_fields]
    fields += [("spark", name) for name in SPARK_KEYS]
    found = [(one.section, one.name) for one in explained(EXAMPLE.read_text().splitlines())]
    assert sorted(found) == sorted(fields)


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
    source = parse_settings(text, EXAMPLE).source("shop").section
    assert source.model_fields_set == set(sources.SourceSection.model_fields)
    assert tomllib.loads(text)["spark"].keys() == SPARK_KEYS
