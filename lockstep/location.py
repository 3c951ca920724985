"""The names that the code locations of other Dagster projects import: `definitions_of`,
the translator class that they subclass, and the component that `dg` finds."""

from __future__ import annotations

from lockstep.assets.component import LockstepComponent
from lockstep.assets.declaration import LockstepTranslator, MirroredTable
from lockstep.assets.definitions import definitions_of

__all__ = ["LockstepComponent", "LockstepTranslator", "MirroredTable", "definitions_of"]
