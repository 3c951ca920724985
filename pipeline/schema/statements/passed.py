"""Statements that are passed over, since they change neither rows nor structures: their first words
and what they do.

A statement must begin with all words of an entry: `ANALYZE UPDATE …` changes rows in MariaDB, and
`CREATE OR REPLACE SEQUENCE` drops a table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final


@dataclass(frozen=True, slots=True)
class Passed:
    """A kind of statement. `words`: its first words, each with its alternatives; OR REPLACE,
    ALGORITHM, DEFINER and SQL SECURITY may follow the first word. `code`: it may contain other
    statements, separated by semicolons, which run later."""

    words: str
    does: str
    code: bool = False

    @property
    def beginnings(self) -> tuple[tuple[str, ...], ...]:
        return tuple(product(*(word.split("|") for word in self.words.split())))


_OBJECT: Final = "CREATE|ALTER|DROP"
_RUN_LATER: Final = "defines code; the log has what the code does whenever it runs"

PASSED: Final = (
    Passed("ANALYZE TABLE|TABLES", "collects statistics and histograms"),
    Passed("CACHE INDEX", "assigns memory to indexes"),
    Passed("CHECK TABLE|TABLES|VIEW|VIEWS", "only reads"),
    Passed("CHECKSUM TABLE|TABLES", "only reads"),
    Passed("FLUSH", "empties caches, rotates log files, reloads privileges"),
    Passed("GRANT", "changes privileges"),
    Passed("INSTALL PLUGIN|SONAME|COMPONENT", "extends the server"),
    Passed("KILL", "ends sessions"),
    Passed("LOCK TABLE|TABLES", "takes locks"),
    Passed("OPTIMIZE TABLE|TABLES", "builds tables again, with the same rows"),
    Passed("PURGE", "deletes log files"),
    Passed("RENAME USER", "changes accounts"),
    Passed("REPAIR VIEW|VIEWS", "changes views, which have no rows"),
    Passed("RESET", "deletes log files and caches"),
    Passed("REVOKE", "changes privileges"),
    Passed("SET", "sets variables, passwords, default roles (not SET STATEMENT: see below)"),
    Passed("SHUTDOWN", "stops the server"),
    Passed("UNINSTALL PLUGIN|SONAME|COMPONENT", "reduces the server"),
    Passed("UNLOCK TABLE|TABLES", "releases locks"),
    Passed(f"{_OBJECT} EVENT|FUNCTION|PROCEDURE|TRIGGER|PACKAGE|LIBRARY", _RUN_LATER, code=True),
    Passed(f"{_OBJECT} VIEW", "changes views, which have no rows and never replace a table"),
    Passed(f"{_OBJECT} JSON DUALITY VIEW", "changes views"),
    Passed(f"{_OBJECT} JSON RELATIONAL DUALITY VIEW", "changes views"),
    Passed(f"{_OBJECT} USER|ROLE", "changes accounts"),
    Passed(f"{_OBJECT} MASKING POLICY", "changes what SELECT shows, not what the log has"),
    Passed(f"{_OBJECT} SERVER|INSTANCE", "changes settings of the server"),
    Passed(f"{_OBJECT} RESOURCE|LOGFILE GROUP", "changes settings of the server"),
    Passed(f"{_OBJECT} TABLESPACE", "changes files; a tablespace with tables cannot be dropped"),
    Passed(f"{_OBJECT} UNDO TABLESPACE", "changes files"),
    Passed(f"{_OBJECT} SPATIAL REFERENCE SYSTEM", "changes a definition, not stored values"),
    Passed(f"{_OBJECT} SEQUENCE", "changes sequences (CREATE OR REPLACE SEQUENCE is followed)"),
    Passed("CREATE|DROP TEMPORARY TABLE|TABLES|SEQUENCE", "changes what only its session sees"),
)
