"""The shape of `[notify]`: who is told what needs a person.

Belongs here: keys and rules of one value. Does not: the services, which are apprise's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from resources.config.part import Section, Text
from resources.config.secrets import is_reference


def address_reference(text: str) -> str:
    if not is_reference(text):
        raise ValueError(
            "an address in the file is refused, because it holds a token or a password; write "
            "env:NAME or file:PATH"
        )
    return text


class NotifySection(Section):
    """`urls`: addresses of apprise's, each by reference."""

    urls: Annotated[
        tuple[Annotated[Text, AfterValidator(address_reference)], ...],
        Field(min_length=1, strict=False),
    ]
