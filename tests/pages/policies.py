"""The policies of the lake, on the page of schema changes: `pipeline.values.policies`."""

from __future__ import annotations

from dataclasses import fields
from inspect import getdoc
from typing import Final

from lockstep.pipeline.values.policies import LakePolicies, Policy, StartPolicies
from tests.pages.made import MadePart, row

_HEAD: Final = "| key | values | meaning |\n|---|---|---|"


def table() -> str:
    """One row a key: its words, the default first, and what they mean."""
    rows = [_row(key, default) for key, default in chosen_of(LakePolicies()).items()]
    return "\n".join([_HEAD, *rows])


def chosen_of(policies: StartPolicies | LakePolicies) -> dict[str, Policy]:
    """The policies with words, by their keys."""
    found = ((field.name, getattr(policies, field.name)) for field in fields(policies))
    return {name: policy for name, policy in found if isinstance(policy, Policy)}


def _row(key: str, default: Policy) -> str:
    words = [default, *(word for word in type(default) if word is not default)]
    listed = ", ".join(f"`{word}`" for word in words)
    told = " ".join((getdoc(type(default)) or "").split()).removesuffix(".")
    return row((f"`{key}`", listed, told[:1].lower() + told[1:]))


PART: Final = MadePart("policies", "docs/schema-changes.md", table)
