"""Statements that change rows, made at random over tables that are all built alike.

Belongs here: the texts. Does not: which tables there are, and what a server makes of a text.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

TABLES: Final = ("kept", "child", "parent", "beat", "watched", "over_kept", "over_beat", "far.away")
_ALIASES: Final = ("a", "b", "kept", "beat", "`c d`")
_COLUMNS: Final = ("id", "v")


@st.composite
def names(draw: st.DrawFn) -> str:
    """A table, in one of the ways to write it."""
    database, _, name = ("." + draw(st.sampled_from(TABLES))).rpartition(".")
    database = database.strip(".")
    quote = draw(st.sampled_from(["{}", "`{}`", '"{}"']))
    if not database and draw(st.booleans()):
        database = "here"
    parts = [*([database] if database else []), name]
    return draw(st.sampled_from([".", " . ", "./**/"])).join(quote.format(one) for one in parts)


_values = st.sampled_from(["1", "2", "abs(3)", "own()", "own ()", "far.own()", "(1)", "@a := 4"])


@st.composite
def references(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A list of tables, and what may stand before their columns."""
    texts, befores = [], []
    for number in range(draw(st.integers(1, 3))):
        name = draw(names())
        alias = draw(st.sampled_from(["", "", *_ALIASES]))
        word = draw(st.sampled_from([" as ", " "])) if alias else ""
        subquery = draw(st.integers(0, 9)) == 0
        text = f"(select * from {name}) d{number}" if subquery else f"{name}{word}{alias}"
        texts.append(text)
        befores.append(f"d{number}" if subquery else alias or name)
    joint = draw(st.sampled_from([", ", " join ", " left join ", " cross join ", "/*!50000 , */ "]))
    text = texts[0]
    for one in texts[1:]:
        text += f"{joint}{one}" + (" on 1 = 1" if joint == " left join " else "")
    return (f"({text})" if draw(st.integers(0, 7)) == 0 else text), befores


@st.composite
def selects(draw: st.DrawFn) -> str:
    listed, befores = draw(references())
    before = draw(st.sampled_from(befores))
    value = draw(st.one_of(_values, st.just(f"{before}.v")))
    more = draw(
        st.sampled_from(["", " where 1 = 1", f" group by {before}.id", " limit 2", " for update"])
    )
    head = draw(st.sampled_from(["", "with kept as (select 9 id, 9 v) ", "with c as (select 1) "]))
    return f"{head}select {before}.id + 50, {value} from {listed}{more}"


@st.composite
def statements(draw: st.DrawFn) -> str:
    """One statement; a server may well refuse it."""
    kind = draw(st.sampled_from(["insert", "replace", "update", "delete", "delete several", "do"]))
    if kind in ("insert", "replace"):
        into = draw(st.sampled_from([" into ", " ", " /*!50000 into */ ", " low_priority into "]))
        columns = draw(st.sampled_from(["", " (id, v)", "(`id`,`v`)"]))
        rows = draw(
            st.one_of(
                _values.map(lambda value: f"values (60, {value}), (1, 7)"),
                selects(),
                selects().map(lambda query: f"({query})"),
            )
        )
        tail = ""
        if kind == "insert":
            tail = draw(st.sampled_from(["", " on duplicate key update v = 8", " -- x\n"]))
        return f"{kind}{into}{draw(names())}{columns} {rows}{tail}"
    listed, befores = draw(references())
    which = draw(st.sampled_from([*befores, draw(names())]))
    where = draw(st.sampled_from(["", " where 1 = 1", f" where {which}.id < 100"]))
    if kind == "update":
        column = draw(st.sampled_from([f"{which}.v", "v", f"{which}.`v`"]))
        second = draw(st.sampled_from(["", f", {draw(st.sampled_from(befores))}.v = 6"]))
        with_ = draw(st.sampled_from(["", "with c as (select 1) "]))
        return f"{with_}update {listed} set {column} = {draw(_values)}{second}{where}"
    if kind == "delete":
        return f"delete from {draw(names())}{where}"
    if kind == "delete several":
        several = draw(st.sampled_from([which, f"{which}.*", f"{which}, {befores[0]}"]))
        if draw(st.booleans()):
            return f"delete {several} from {listed}{where}"
        return f"delete from {several} using {listed}{where}"
    return f"select {draw(_values)}"
