"""The order of the modules in `pipeline/run`, from the contract that `make check` enforces."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

from tests.pages.made import MadePart

CHECKOUT: Final = Path(__file__).resolve().parents[2]


def layers() -> str:
    """One line for each layer, the highest first."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (order,) = (one["layers"] for one in contracts if one["id"] == "inside-a-run")
    lines = [f"`{'`, `'.join(layer.split(' | '))}`" for layer in order]
    return " →\n".join(lines)


PART: Final = MadePart("run_layers", "docs/architecture.md", layers)
