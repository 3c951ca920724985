"""What other Dagster projects import: `definitions_of`, the translator that they subclass, and the
component that `dg` finds; or one sentence where they cannot be had.

Lockstep's packages are called lockstep, assets, resources and pipeline. A project with a package of
its own by one of these names hides Lockstep's, so it takes a code location for Lockstep; `dg`
itself works there all the same, as nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assets.component import LockstepComponent
    from assets.declared import LockstepTranslator, MirroredTable
    from assets.definitions import definitions_of

__all__ = ["LockstepComponent", "LockstepTranslator", "MirroredTable", "definitions_of"]

_ROOMS = {
    "LockstepComponent": "assets.component",
    "LockstepTranslator": "assets.declared",
    "MirroredTable": "assets.declared",
    "definitions_of": "assets.definitions",
}
_PACKAGES = ("assets", "resources", "pipeline")


def hidden() -> dict[str, str]:
    """Lockstep's packages that something else stands in front of, and where that is."""
    ours = Path(__file__).resolve().parents[1]
    found = {}
    for name in _PACKAGES:
        spec = find_spec(name)
        places = [
            Path(place).resolve() for place in (spec and spec.submodule_search_locations) or ()
        ]
        if ours / name not in places:
            origin = str(places[0]) if places else (spec.origin if spec else None)
            found[name] = origin or "nowhere"
    return found


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if wrong := hidden():
        told = ", ".join(f"{package} ({place})" for package, place in wrong.items())
        raise ImportError(
            f"Lockstep's packages are hidden by packages of yours with the same name: {told}. "
            "Give Lockstep a code location of its own: a python_module assets.definitions in "
            "workspace.yaml, with LOCKSTEP_CONFIG set and another working_directory."
        )
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    """What `dg` looks through for components; nothing that cannot be imported."""
    return [] if hidden() else list(__all__)
