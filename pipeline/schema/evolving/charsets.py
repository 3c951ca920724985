"""Which character set and collation a column, a table or a database comes to have.

Belongs here: what CHARACTER SET, COLLATE and BINARY mean together, and what is inherited
where they are not written. Rules: MySQL manual, "Specifying Character Sets and
Collations".
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.schema.collations import (
    binary_collation,
    canonical_charset,
    canonical_collation,
    charset_of,
    default_collation,
)
from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.effects import CannotFollow


@dataclass(frozen=True, slots=True)
class Charset:
    """A character set and one of its collations."""

    name: str
    collation: str


def of_collation(collation: str) -> Charset:
    return Charset(charset_of(collation) or "binary", collation)


def chosen(
    charset: str | None,
    collation: str | None,
    inherited: Charset | None,
    context: StatementContext,
    *,
    binary: bool = False,
) -> Charset:
    """What was written, or inherited. A set alone brings its default collation, never the
    one inherited, not even where the sets are the same."""
    name = None if charset is None else _charset(charset, inherited)
    if collation is not None and collation.upper() != "DEFAULT":
        known = canonical_collation(collation, name or (inherited.name if inherited else None))
        if known is None:
            raise CannotFollow(f"the collation {collation} is not known")
        found = of_collation(known)
        if binary and (name is None or not context.facts.mysql_8):
            # MariaDB refuses the two together; MySQL 8.0 lets COLLATE win beside a set alone.
            return Charset(found.name, binary_collation(found.name))
        return found
    if name is None:
        if inherited is None:
            raise CannotFollow("what character set it inherits is not known")
        return Charset(inherited.name, binary_collation(inherited.name)) if binary else inherited
    if binary:
        return Charset(name, binary_collation(name))
    return Charset(name, _default(name, context))


def _charset(written: str, inherited: Charset | None) -> str:
    if written.upper() == "DEFAULT" and inherited is not None:
        return inherited.name
    known = canonical_charset(written)
    if known is None:
        raise CannotFollow(f"the character set {written} is not known")
    return known


def _default(name: str, context: StatementContext) -> str:
    preferred = context.charset_collations.get(name)
    return preferred or default_collation(name, context.utf8mb4_collation)
