"""Random transactions over random tables (`random_tables`), as SQL for one session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.mysql.random_tables import RandomTable

Statements = list[str]


@dataclass(slots=True)
class RandomWrites:
    """Seeded by `chance` alone: the same tables get the same transactions."""

    chance: Random
    tables: Sequence[RandomTable]
    _branch: int = 0

    def transaction(self) -> Statements:
        """Statements to be sent one after the other; most commit once."""
        (shape,) = self.chance.choices(_SHAPES, _WEIGHTS)
        return shape(self)

    def _plain(self) -> Statements:
        return ["begin", *self._changes(self.tables), "commit"]

    def _alone(self) -> Statements:
        return [self._change(self.chance.choice(self.tables))]

    def _compressed(self) -> Statements:
        setting = "set binlog_transaction_compression"
        return [f"{setting} = on", *self._plain(), f"{setting} = off"]

    def _rolled_back(self) -> Statements:
        return ["begin", *self._changes(self.tables), "rollback"]

    def _to_savepoints(self) -> Statements:
        """One kept, one undone within it, one released."""
        few = [self._changes(self.tables) for _ in range(4)]
        return [
            *("begin", *few[0], "savepoint a", *few[1], "savepoint b", *few[2]),
            *(f"rollback to {self.chance.choice('ab')}", "release savepoint a", *few[3], "commit"),
        ]

    def _prepared(self) -> Statements:
        """Something else commits, on other tables, before it is ended."""
        self._branch += 1
        xid = f"'random','{self._branch % 7}',{self.chance.randint(1, 3)}"
        cut = self.chance.randint(1, len(self.tables) - 1)
        return [
            *(f"xa start {xid}", *self._changes(self.tables[:cut]), f"xa end {xid}"),
            *(f"xa prepare {xid}", "begin", *self._changes(self.tables[cut:]), "commit"),
            f"xa {self.chance.choice(('commit', 'rollback'))} {xid}",
        ]

    def _in_one_phase(self) -> Statements:
        xid = "'random','one phase'"
        changes = self._changes(self.tables)
        return [f"xa start {xid}", *changes, f"xa end {xid}", f"xa commit {xid} one phase"]

    def _in_a_new_file(self) -> Statements:
        return ["flush binary logs", *self._plain()]

    # -- statements ----------------------------------------------------------------------

    def _changes(self, tables: Sequence[RandomTable]) -> Statements:
        count = self.chance.randint(1, 3)
        return [self._change(self.chance.choice(tables)) for _ in range(count)]

    def _change(self, table: RandomTable) -> str:
        (statement,) = self.chance.choices(_STATEMENTS, _FREQUENCIES)
        return statement(self, table)

    def _insert(self, table: RandomTable) -> str:
        return f"insert ignore {self._rows(table)}"

    def _replace(self, table: RandomTable) -> str:
        return f"replace {self._rows(table)}"

    def _upsert(self, table: RandomTable) -> str:
        name = self.chance.choice(table.written)
        changes = f"{name} = {table.columns[name].literal(self.chance)}"
        return f"insert ignore {self._rows(table)} on duplicate key update {changes}"

    def _rows(self, table: RandomTable) -> str:
        rows = ", ".join(table.row(self.chance) for _ in range(self.chance.randint(1, 5)))
        return f"into {table.name} ({', '.join(table.written)}) values {rows}"

    def _update(self, table: RandomTable) -> str:
        """Keys change now and then; a row whose new key is taken stays as it is."""
        names = self.chance.sample(table.written, self.chance.randint(1, len(table.written)))
        values = (f"{name} = {table.columns[name].literal(self.chance)}" for name in names)
        return f"update ignore {table.name} set {', '.join(values)} {self._some()}"

    def _delete(self, table: RandomTable) -> str:
        return f"delete from {table.name} {self._some()}"

    def _some(self) -> str:
        return f"order by rand({self.chance.randrange(1 << 30)}) limit {self.chance.randint(1, 5)}"


_SHAPES: Final[tuple[Callable[[RandomWrites], Statements], ...]] = (
    RandomWrites._plain,
    RandomWrites._alone,
    RandomWrites._compressed,
    RandomWrites._rolled_back,
    RandomWrites._to_savepoints,
    RandomWrites._prepared,
    RandomWrites._in_one_phase,
    RandomWrites._in_a_new_file,
)
_WEIGHTS: Final = (50, 10, 15, 5, 8, 8, 3, 1)

_STATEMENTS: Final[tuple[Callable[[RandomWrites, RandomTable], str], ...]] = (
    RandomWrites._insert,
    RandomWrites._replace,
    RandomWrites._upsert,
    RandomWrites._update,
    RandomWrites._delete,
)
_FREQUENCIES: Final = (30, 8, 8, 28, 26)
