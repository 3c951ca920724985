"""Decides how a table's mirror (the Delta table with the current rows) is brought up to
a place in the log: one table of rules from facts to steps, with reasons.

Every run, and every command about one table, asks the same questions: what does the
mirror have (`Have`), what is wanted (`Want`), and how far does each supply reach
(`Reach`)? There are four supplies. The *log* has the changes after a place, as far back
as the server keeps it. The *changelog* (every change that was captured) has all changes
since the table was empty, unless it is incomplete. The *server* has the current rows:
all of them, or some columns by key. A *mirror* has the rows that it had at a version.

The log is preferred if it reaches back to the table's place, because only the log has
the changes in between. What the log lacks comes from another supply in addition. If the
log cannot be read, another supply replaces it. Reading the server's tables comes last,
because nothing else costs MySQL much. If some columns are enough, only they are read.

What a mirror lacks is a `Need`, which the ledger keeps, because nothing else says it. A
table that waits for a person is planned only once the person has resumed it.

The first rule that applies decides. docs/tables.md shows `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final, Protocol

from lockstep.pipeline.mirror.merging import ChangelogOrigin
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.model.load import Load
from lockstep.pipeline.model.table_state import Supplier
from lockstep.pipeline.schema.consequences import Action, Consequence
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.values.errors import Need
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Anchor, Coordinates, Position
from lockstep.pipeline.values.table import TableName


class SupplyStanding(StrEnum):
    """The state of a table when a run begins."""

    NEW = "new"
    """No run has captured it, and it has rows older than the part of the log that is
    read."""
    FOLLOWING = "following"
    LOADING = "loading"
    """It is captured, and its rows are being read from the server."""
    STOPPED = "stopped"
    """It was stopped, and a person or a run has ordered that it be resumed."""


@dataclass(frozen=True, slots=True)
class Have:
    """What there is of one source table. `needs`: what its mirror lacks. `reason`: why
    the table stopped, or why its rows must be read, as a sentence. `load`: a read of
    its rows that was ordered or has begun, and is still valid."""

    table: TableName
    standing: SupplyStanding
    needs: frozenset[Need] = frozenset()
    reason: str = ""
    load: Load | None = None


@dataclass(frozen=True, slots=True)
class Want:
    """What a run or a person wants of a table, besides having it complete up to the
    log's end. `rewrite`: its mirror is to be written again. `supplier`: the only origin
    of the new mirror's rows; None for the changelog if that is complete, else MySQL.
    `has_structure`: a person gave the structure. `author`: who wants it."""

    rewrite: bool = False
    supplier: Supplier | None = None
    has_structure: bool = False
    author: str = "lockstep"


@dataclass(frozen=True, slots=True)
class LogSpan:
    """The part of the log that a table lacks, from the place `low` on. `batch`: the
    batch that read the log at `low`. `start`: where reading begins, which is the
    beginning or the end of `batch`; the structures of that place are used. `anchor`:
    the checksum of the event before `start`."""

    batch: Batch
    start: Position
    anchor: Anchor | None
    low: Coordinates


@dataclass(frozen=True, slots=True)
class NewColumns:
    """Columns whose values only the server has, with their names in version `version`
    of the table's structure. All other values are in the mirror or in the log."""

    version: int
    names: tuple[str, ...]


class Reach(Protocol):
    """How far each supply reaches. Rules ask only for what they need. If a property is a
    text, it says why the supply does not reach far enough."""

    @property
    def log(self) -> LogSpan | str | None:
        """The part of the log after the table's place; None if the table lacks nothing
        of it."""

    @property
    def changelog(self) -> ChangelogOrigin | str:
        """All changes since the table was last known to be empty."""

    @property
    def earlier_version(self) -> ChangelogOrigin | str:
        """An earlier version of the table's mirror, and the changes since."""

    @property
    def has_whole_mirror(self) -> bool:
        """True if the mirror has every row that the table had at the mirror's place."""

    @property
    def columns(self) -> NewColumns | str:
        """The columns whose values the mirror lacks, if it lacks nothing else but the
        log."""

    @property
    def past(self) -> Past | str:
        """The changes that the log has of a table from before any run captured it."""


@dataclass(frozen=True, slots=True)
class FromLog:
    """The changes after the table's place, which a batch of its own reads."""

    span: LogSpan


@dataclass(frozen=True, slots=True)
class Past:
    """The changes of a table from before any run captured it: all changes that the log
    has after `begins`. `reason`: why the past does not begin earlier. `is_whole`: the
    table was empty at `begins`. `read_from`: the place from which the log is read. It
    lies before `begins` if XA transactions are open at `begins`, because their rows
    become visible with their commit.

    A past begins as early as its rows in the log can be decoded. Row events do not name
    columns, so rows are decoded by the structure in a logged CREATE TABLE, or by the
    structure that the server has today. Today's structure is valid only after the last
    statement that may have changed it:

    | the log has, of the table | the past begins |
    |---|---|
    | nothing but rows | where the log begins |
    | its CREATE TABLE | at that statement, with its structure; later ALTERs are followed |
    | a statement that leaves rows or structure unknown; a change that is not logged | after it |

    If several apply, the last one counts. A past that begins with the CREATE TABLE is
    whole: the log has all rows. Otherwise the table has older rows, which only MySQL
    has. Beginning later than possible is always safe, beginning earlier never.
    """

    begins: Coordinates
    reason: str
    is_whole: bool
    read_from: Coordinates

    @classmethod
    def after(cls, place: Coordinates, why: str) -> Past:
        """Return the past of a table that already had rows at this place."""
        return cls(place, why, is_whole=False, read_from=place)


_FOLLOWED: Final = (Action.NOTHING, Action.FOLLOW, Action.EMPTY)
"""Consequences of statements after which rows and structure are still known."""


def after_statement(past: Past, consequence: Consequence, logged: LoggedStatement) -> Past:
    """Return the past after one more statement, which had this consequence for the
    table."""
    if consequence.action is Action.CREATE:
        why = "its CREATE TABLE is logged there"
        return Past(logged.begin, why, is_whole=True, read_from=logged.begin)
    if consequence.action in _FOLLOWED:
        return past
    why = f"its rows before the statement that ends there cannot be decoded: {consequence.reason}"
    return Past.after(logged.end, why)


@dataclass(frozen=True, slots=True)
class FromPast:
    """The changes from before any run captured the table, which a batch of its own
    reads from the log."""

    past: Past


@dataclass(frozen=True, slots=True)
class FromChangelog:
    """The mirror is written again from its whole changelog, or from an earlier version
    of itself and all changes since."""

    origin: ChangelogOrigin


@dataclass(frozen=True, slots=True)
class RowsFromServer:
    """All rows of the table, read from the server. `load`: the read that was ordered or
    has begun (`Have.load`); None for a new read."""

    load: Load | None = None


@dataclass(frozen=True, slots=True)
class ColumnsFromServer:
    """New columns, read from the server by key."""

    columns: NewColumns


@dataclass(frozen=True, slots=True)
class FromMirror:
    """The rows that a table had under the name `origin` until a RENAME: a version of
    the mirror of that name, and the later changes from its changelog."""

    origin: TableName


Supply = FromLog | FromPast | FromChangelog | RowsFromServer | ColumnsFromServer


@dataclass(frozen=True, slots=True)
class Price:
    """What a step costs MySQL, as far as it is known beforehand. `rows`, `bytes`: the
    server's estimates for rows that are read from the table; None if unknown.
    `log_bytes`: bytes of the log.
    """

    rows: int | None = 0
    bytes: int | None = 0
    log_bytes: int = 0


@dataclass(frozen=True, slots=True)
class SupplyStep:
    """One supply for a part of what a table lacks, with the reason, and its cost for
    MySQL."""

    supply: Supply
    reason: str = ""
    price: Price = Price()

    @property
    def reads_server(self) -> bool:
        """True if the step reads rows of MySQL's tables."""
        return isinstance(self.supply, RowsFromServer | ColumnsFromServer)


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps, in their order, that give a table what it lacks; none if it lacks
    nothing. `rule`: name of the rule that decided. `reason_to_wait`: why nothing
    is done for the table now; None if it does not wait."""

    rule: str
    steps: tuple[SupplyStep, ...] = ()
    reason_to_wait: str | None = None

    @property
    def needs_no_log_or_rows(self) -> bool:
        """True if neither the log nor a whole row is read from the server."""
        return all(
            isinstance(step.supply, ColumnsFromServer | FromChangelog) for step in self.steps
        )

    @property
    def reads_server(self) -> bool:
        return any(step.reads_server for step in self.steps)

    @property
    def span(self) -> LogSpan | None:
        """The part of the log that is read for this table alone."""
        first = self.steps[0].supply if self.steps else None
        return first.span if isinstance(first, FromLog) else None

    @property
    def without_reading_rows(self) -> Plan:
        """The plan if rows must not be read from the server: a table that needs some of
        them waits."""
        reading = next((step for step in self.steps if step.reads_server), None)
        return self if reading is None else Plan(self.rule, reason_to_wait=reading.reason)

    @property
    def reads_all_rows(self) -> bool:
        last = self.step_after_log
        return last is not None and isinstance(last.supply, RowsFromServer)

    @property
    def will_begin_load(self) -> bool:
        """True if all rows are read from the server and reading has not begun: changes
        before it begins are then not needed."""
        supply = None if self.step_after_log is None else self.step_after_log.supply
        return isinstance(supply, RowsFromServer) and not (supply.load and supply.load.basis)

    def continuing(self, load: Load | None) -> Plan:
        """Return the plan with `load` as the read of all rows from the server; the same
        plan if `load` is None."""
        if load is None:
            return self
        log_steps = self.steps if self.step_after_log is None else self.steps[:-1]
        return replace(self, steps=(*log_steps, SupplyStep(RowsFromServer(load), load.reason)))

    @property
    def with_rows(self) -> Plan:
        """The plan with all rows read instead of some columns."""
        assert self.step_after_log is not None, "columns are read"
        return replace(
            self, steps=(*self.steps[:-1], replace(self.step_after_log, supply=RowsFromServer()))
        )

    @property
    def step_after_log(self) -> SupplyStep | None:
        """The step that supplies what the log lacks; None if the log supplies all."""
        last = self.steps[-1] if self.steps else None
        return None if last is None or isinstance(last.supply, FromLog | FromPast) else last


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of `RULES`. `steps`: returns the steps, or None if the rule does not apply.
    `words`: the case and the decision, as the documentation shows them."""

    name: str
    steps: Callable[[Have, Want, Reach], tuple[SupplyStep, ...] | None]
    words: tuple[str, str]


def plan(have: Have, want: Want, reach: Reach) -> Plan:
    """Return the plan for a table: the first rule that applies decides."""
    for rule in RULES:
        steps = rule.steps(have, want, reach)
        if steps is not None:
            decided = Plan(rule.name, steps)
            # A person who asked for the changelog did not consent to rows being read
            # from MySQL.
            return decided.without_reading_rows if want.supplier is Supplier.CHANGELOG else decided
    raise AssertionError("the last rule applies to every table")


_Steps = tuple[SupplyStep, ...] | None


def _all_rows(reason: str) -> _Steps:
    return (SupplyStep(RowsFromServer(), reason),)


def _after_log(reach: Reach, *steps: SupplyStep) -> _Steps:
    span = reach.log
    assert not isinstance(span, str), "an earlier rule decides what is done without the log"
    return steps if span is None else (SupplyStep(FromLog(span)), *steps)


def _with_its_past(have: Have, want: Want, reach: Reach) -> _Steps:
    if want.supplier is not Supplier.LOG or have.standing is not SupplyStanding.NEW or have.needs:
        return None
    past = reach.past
    if isinstance(past, str):
        return None  # the table is planned as if nobody had asked for its past
    log_step = SupplyStep(FromPast(past), past.reason)
    if past.is_whole:
        return (log_step,)
    return (log_step, SupplyStep(RowsFromServer(have.load), have.reason))


def _continue_load(have: Have, want: Want, reach: Reach) -> _Steps:
    return None if have.load is None else (SupplyStep(RowsFromServer(have.load), have.load.reason),)


def _log_passed_over(have: Have, want: Want, reach: Reach) -> _Steps:
    return _all_rows("part of the log with its changes is gone") if Need.LOG in have.needs else None


def _new(have: Have, want: Want, reach: Reach) -> _Steps:
    return _all_rows(have.reason or OLDER_REASON) if have.standing is SupplyStanding.NEW else None


def _load_again(have: Have, want: Want, reach: Reach) -> _Steps:
    return _all_rows(have.reason) if have.standing is SupplyStanding.LOADING else None


def _shows_too_much(have: Have, want: Want, reach: Reach) -> _Steps:
    if Need.SHAPE not in have.needs:
        return None
    return _all_rows("less of it is shown than when it stopped")


def _only_the_server(have: Have, want: Want, reach: Reach) -> _Steps:
    if have.needs & {Need.ROWS, Need.CONSENT}:
        return _all_rows(have.reason)
    if Need.COLUMNS not in have.needs:
        return None
    # If a person gave the structure or the mirror is written again, columns alone do
    # not suffice.
    needs_all_rows = want.rewrite or want.has_structure or not reach.has_whole_mirror
    return _all_rows(have.reason) if needs_all_rows else None


def _without_log(have: Have, want: Want, reach: Reach) -> _Steps:
    return _all_rows(reach.log) if isinstance(reach.log, str) else None


def _written_again(have: Have, want: Want, reach: Reach) -> _Steps:
    if not want.rewrite:
        return None
    if want.supplier is Supplier.SOURCE:
        return _all_rows(f"{want.author} has it reloaded from the source")
    origin = reach.changelog
    if isinstance(origin, str):
        if want.supplier is not Supplier.CHANGELOG:
            # An earlier version of the mirror may have the very error that the person
            # reloads for.
            return _all_rows(f"{want.author} has it reloaded, and {origin}")
        reason_incomplete = origin
        origin = reach.earlier_version
        if isinstance(origin, str):
            return _all_rows(f"{reason_incomplete}, and {origin}")
    return _after_log(reach, SupplyStep(FromChangelog(origin), origin.clause))


def _without_mirror(have: Have, want: Want, reach: Reach) -> _Steps:
    if Need.MIRROR not in have.needs:
        return None
    return _after_log(
        reach, SupplyStep(RowsFromServer(), f"its mirror is written again: {have.reason}")
    )


def _with_columns(have: Have, want: Want, reach: Reach) -> _Steps:
    if Need.COLUMNS not in have.needs:
        return None
    columns = reach.columns
    if isinstance(columns, str):
        return _after_log(reach, SupplyStep(RowsFromServer(), columns))
    return _after_log(reach, SupplyStep(ColumnsFromServer(columns), have.reason))


def _by_log(have: Have, want: Want, reach: Reach) -> _Steps:
    return _after_log(reach)


_DEFAULTS: Final = LakePolicies()


@dataclass(frozen=True, slots=True)
class FormerName:
    """What is known of the former name of a table that was renamed.

    - `origin`: that name.
    - `is_captured`: runs capture the table of that name.
    - `continues_log`: the run begins where the previous run ended.
    - `may_be_temporary`: the RENAME may be that of a temporary table, which MariaDB logs
      in the same way.
    - `reason_incomplete`: why the mirror of that name and the log after it do not give
      the table's rows; None if they do.
    - `has_mirror`: the ledger knows a version of that mirror, or the batch itself has
      all rows.
    - `is_shown_alike`: the settings show both names in the same way.
    - `policies`, `new_policies`: the policies of the former and of the new name.
    """

    origin: TableName
    is_captured: bool
    continues_log: bool = True
    may_be_temporary: bool = False
    reason_incomplete: str | None = None
    has_mirror: bool = True
    is_shown_alike: bool = True
    policies: LakePolicies = _DEFAULTS
    new_policies: LakePolicies = _DEFAULTS


_ROW_NEUTRAL_POLICIES: Final = (
    "on_rewrite",
    "dropped_tables",
    "readers",
    "foreign_keys",
    "updated_columns",
    "stamps",
    "cluster_by",
)
"""Policies that may differ between two mirrors with the same rows and columns."""


def _row_policies(policies: LakePolicies) -> list[object]:
    names = (
        field.name for field in fields(LakePolicies) if field.name not in _ROW_NEUTRAL_POLICIES
    )
    return [getattr(policies, name) for name in names]


_NOT_COPIED: Final[tuple[tuple[Callable[[FormerName], bool], str], ...]] = (
    (lambda former: not former.is_captured, "{} is not followed"),
    (
        lambda former: not former.continues_log,
        "the run does not begin where the previous run ended",
    ),
    (
        lambda former: former.may_be_temporary,
        "MariaDB logs the RENAME of a temporary table in the same way",
    ),
    (lambda former: former.reason_incomplete is not None, "{1}"),
    (lambda former: not former.has_mirror, "{} has no mirror that this ledger wrote"),
    (lambda former: not former.is_shown_alike, "the settings show it otherwise than {}"),
    (
        lambda former: _row_policies(former.policies) != _row_policies(former.new_policies),
        "{} has other policies",
    ),
    (
        lambda former: former.policies.keeps_unmarked_rows,
        "the mirror of {} has deleted rows, and nothing marks them",
    ),
)


def supply_after_rename(former: FormerName) -> FromMirror | str:
    """Return the supply for a table that got another table's rows by a RENAME; or a
    sentence that says why its rows must be read from the server."""
    for applies, why in _NOT_COPIED:
        if applies(former):
            return why.format(former.origin, former.reason_incomplete)
    return FromMirror(former.origin)


OLDER_REASON: Final = "rows are older than what is read of the log"
GAP_RULE: Final = "gap in the log"
"""Name of the rule for tables that lack changes from a part of the log that nobody
read."""

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "with its past",
        _with_its_past,
        (
            "it is new, and a person asks for what the log has of it",
            "the log since its structure and its changes are known; all rows from MySQL unless its "
            "`CREATE TABLE` is there",
        ),
    ),
    Rule(
        "reading",
        _continue_load,
        ("its rows are being read from MySQL", "the reading continues"),
    ),
    Rule(
        GAP_RULE,
        _log_passed_over,
        ("part of the log was purged before it was read", "all rows are read from MySQL"),
    ),
    Rule(
        "new",
        _new,
        ("it has rows from before the log that is read", "all rows are read from MySQL"),
    ),
    Rule(
        "reading again",
        _load_again,
        ("what was read of it no longer counts", "all rows are read from MySQL again"),
    ),
    Rule(
        "shows too much",
        _shows_too_much,
        ("it stopped, and its settings show less since", "all rows are read from MySQL"),
    ),
    Rule(
        "rows missing",
        _only_the_server,
        (
            "it lacks rows that are in no log, its mirror was lost, or it lacks columns and more",
            "all rows are read from MySQL",
        ),
    ),
    Rule(
        "no log after its place",
        _without_log,
        (
            "the log after its place is gone, is another one, or disagrees with the history about "
            "its structure, and no person gave one",
            "all rows are read from MySQL",
        ),
    ),
    Rule(
        "written again",
        _written_again,
        (
            "a person has it reloaded, or its mirror is to lie elsewhere",
            "the log after its place, and its mirror from its changelog; if that is not complete, "
            "all rows from MySQL, unless the person asks for the changelog alone: then an earlier "
            "version of its mirror and its changelog since, and without one it waits",
        ),
    ),
    Rule(
        "without a mirror",
        _without_mirror,
        ("it has no mirror, or one that refused a write", "the log, and all rows from MySQL"),
    ),
    Rule(
        "columns missing",
        _with_columns,
        (
            "it has new columns whose values are in no log",
            "the log, and these columns from MySQL by key; all rows if that is not enough",
        ),
    ),
    Rule("log", _by_log, ("any other", "the log after its place, if it has anything")),
)
"""All rules in their order; the last applies to every table."""
