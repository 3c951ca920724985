"""The interface for other Dagster projects: `definitions_of`, the translator that they subclass,
and the component that `dg` finds.

Lockstep's packages are called lockstep, assets, resources and pipeline. A project that has a
package of the same name hides ours, and must give Lockstep a code location of its own; the
ImportError says so. `dg` imports this module in every project, so it imports the other packages
only on access.
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

_MODULES = {
    "LockstepComponent": "assets.component",
    "LockstepTranslator": "assets.declared",
    "MirroredTable": "assets.declared",
    "definitions_of": "assets.definitions",
}
_PACKAGES = ("assets", "resources", "pipeline")


def hidden() -> dict[str, str]:
    """Return Lockstep's packages that another package of the same name hides, and its path."""
    root = Path(__file__).resolve().parents[1]
    others = {}
    for name in _PACKAGES:
        spec = find_spec(name)
        folders = [
            Path(folder).resolve() for folder in (spec and spec.submodule_search_locations) or ()
        ]
        if root / name not in folders:
            origin = str(folders[0]) if folders else (spec.origin if spec else None)
            others[name] = origin or "nowhere"
    return others


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if others := hidden():
        packages = ", ".join(f"{package} ({path})" for package, path in others.items())
        raise ImportError(
            f"Lockstep's packages are hidden by packages of yours with the same name: {packages}. "
            "Give Lockstep a code location of its own: a python_module assets.definitions in "
            "workspace.yaml, with LOCKSTEP_CONFIG set and another working_directory."
        )
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the names that `dg` searches for components; none if ours are hidden."""
    return [] if hidden() else list(__all__)
