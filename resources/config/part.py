"""What all tables of lockstep.toml have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

Text = Annotated[str, StringConstraints(min_length=1)]


class Section(BaseModel):
    """A table: a key that is not listed in it is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
