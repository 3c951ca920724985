"""The house as a picture, in Mermaid's language, from the imports of its modules.

A room is a folder of `pipeline` or `resources`, the module of a system outside, or one of the other
packages; another module beside rooms is shown if it stands on several of them. An arrow is left out
where a longer way says the same.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import grimp

from tests.pages.made import MadePart

CHECKOUT: Final = Path(__file__).resolve().parents[2]
FLOORS: Final = ("resources", "pipeline")
"""Packages whose folders are rooms of their own."""
SEVERAL: Final = 3
"""Number of rooms from which on a module that stands on them is shown."""


def picture() -> str:
    """Rooms that stand on the same others share a line."""
    below = stands_on()
    lines = ["```mermaid", "flowchart TD"]
    for floor in FLOORS:
        rooms = [room for room in below if room.startswith(f"{floor}.")]
        lines += [f"    subgraph {floor}", f"        {_listed(rooms)}", "    end"]
    arrows: dict[str, list[str]] = {}
    for room, others in below.items():
        if others:
            arrows.setdefault(_listed(others), []).append(room)
    lines += [f"    {_listed(rooms)} --> {others}" for others, rooms in arrows.items()]
    return "\n".join([*lines, "```"])


def _listed(rooms: Iterable[str]) -> str:
    return " & ".join(sorted(room.rpartition(".")[2] for room in rooms))


@cache
def stands_on() -> dict[str, set[str]]:
    """Each room with those that it stands on, but for what another one of these stands on."""
    all_below = {room: _reached(room) for room in sorted(_imports())}
    rooms = {room for room in all_below if _is_room(room)}
    below = {room: (all_below[room] & rooms) - {room} for room in sorted(rooms)}
    return {
        room: others - {deeper for other in others for deeper in below[other]}
        for room, others in below.items()
    }


def _reached(place: str) -> set[str]:
    """Every place that is imported from there, over others too."""
    reached: set[str] = set()
    waiting = [place]
    while waiting:
        for other in _imports()[waiting.pop()] - reached:
            reached.add(other)
            waiting.append(other)
    return reached


@cache
def _systems() -> frozenset[str]:
    """The rooms of the outside world, which do not know each other (`systems-apart`)."""
    contracts = _importlinter()["contracts"]
    return frozenset(
        module
        for contract in contracts
        if contract["id"] == "systems-apart"
        for module in contract["modules"]
    )


@cache
def _imports() -> dict[str, set[str]]:
    """Each room, or module beside rooms, with those whose modules it imports."""
    graph = grimp.build_graph(*_importlinter()["root_packages"])
    imports: dict[str, set[str]] = {_place(module): set() for module in graph.modules}
    for module in graph.modules:
        others = graph.find_modules_directly_imported_by(module)
        imports[_place(module)] |= {_place(other) for other in others} - {_place(module)}
    return imports


def _importlinter() -> dict[str, Any]:
    settings: dict[str, Any] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    return settings["tool"]["importlinter"]  # type: ignore[no-any-return]


def _place(module: str) -> str:
    """`pipeline.schema.types` → `pipeline.schema`, `assets.dagster_metadata` → `assets`."""
    package, *inside = module.split(".")
    if package == "lockstep" and inside and (CHECKOUT / inside[0] / "__init__.py").exists():
        package, *inside = inside
    return ".".join([package, *inside[:1]]) if package in FLOORS else package


def _is_room(place: str) -> bool:
    floor, _, name = place.partition(".")
    if floor not in FLOORS:
        return True
    if (CHECKOUT / floor / name / "__init__.py").exists():
        return name != ""
    if f"lockstep.{place}" in _systems():
        return True
    return len(_imports()[place]) >= SEVERAL


PART: Final = MadePart("rooms", "docs/architecture.md", picture)
