"""What holds for every question and every rule of the start table, and what is recorded."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from lockstep.pipeline.start.question import (
    AnchorReading,
    Question,
    Refusal,
    SetReading,
    Start,
    StartRule,
)
from lockstep.pipeline.start.rules import decide_start, decision_record
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.errors import Recovery, StartUnreachable
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import (
    AfterGtids,
    AtCoordinates,
    AtMoment,
    Earliest,
    InFile,
    Latest,
    OfRun,
    Snapshot,
)
from lockstep.pipeline.values.policies import OnPositionLost, OnSourceChanged, StartPolicies
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TablePatterns
from tests.pipeline.start_made import (
    BATCH,
    MARIA,
    NOT_READ,
    SAME,
    A,
    B,
    C,
    at,
    chosen,
    cursor,
    facts,
    gtids,
    question_of,
    reached,
)

PATTERNS = TablePatterns(("shop.*",), ("shop.log",))

# -- every question ----------------------------------------------------------------------

mysql_sets = st.builds(
    lambda *parts: ",".join(part for part in parts if part),
    *(
        st.sampled_from(["", f"{u}:1-50", f"{u}:1-100", f"{u}:1-40:60-100", f"{u}:1-9:tag:1-5"])
        for u in (A, B, C)
    ),
)
mariadb_sets = st.sampled_from(["", "0-1-50", "0-1-100", "0-1-100,0-2-7", "1-1-3"])
sets = mysql_sets | mariadb_sets
bases = st.sampled_from(["binlog", "renamed"])
places = st.builds(at, st.integers(1, 6), st.sampled_from([4, 500, 999, 1000, 1001]), bases)
moments = st.datetimes(min_value=datetime(2020, 1, 1), timezones=st.just(UTC))
filled = sets.filter(bool).map(gtids)

configurations = st.one_of(
    st.none(),
    st.sampled_from([Earliest(), Latest(), Snapshot(), OfRun("x")]),
    places.map(AtCoordinates),
    moments.map(AtMoment),
    st.builds(lambda place, moment: InFile(place.file, moment), places, moments),
    filled.map(AfterGtids),
)
VARIED: dict[str, st.SearchStrategy[Any]] = {
    "source": st.just("shop"),
    "facts": st.builds(
        facts,
        st.sampled_from([A, B, MARIA]),
        executed=sets,
        purged=sets,
        mode=st.sampled_from(["ON", "OFF", "ON_PERMISSIVE", "OFF_PERMISSIVE"]),
        files=st.sampled_from([(), (1,), (2, 3, 4), (3, 4, 5, 6)]),
        base=bases,
    ),
    "cursor": st.none()
    | st.builds(
        cursor,
        places,
        sets,
        uuid=st.sampled_from([A, MARIA]),
        by_gtid=st.booleans(),
        committed_at=st.none() | moments,
    ),
    "anchor_reading": st.sampled_from(AnchorReading),
    "set_reading": st.sampled_from(SetReading),
    "configured_start": configurations,
    "policies": st.builds(
        StartPolicies,
        st.sampled_from(OnPositionLost),
        st.sampled_from(OnSourceChanged),
        st.timedeltas(timedelta(0), timedelta(days=2)),
    ),
    "load_watermark": st.none() | places,
}
questions = st.builds(Question, **VARIED)
choices = st.one_of(
    st.none(),
    st.just(StartUnreachable("it is not there", hint="choose another")),
    st.builds(reached, places, sets),
    filled.map(reached),
)


@st.composite
def asked(draw: st.DrawFn) -> Question:
    """Any question, one in two with a choice."""
    question = draw(questions)
    if draw(st.booleans()):
        return replace(question, override=chosen(), chosen_place=draw(choices))
    return question


def test_every_fact_of_a_question_is_varied() -> None:
    """By `asked`, but for facts that only a sentence names."""
    only_named = {"reused_gtid", "unpruned_batches"}
    chosen_by_a_person = {"override", "chosen_place"}
    assert {field.name for field in fields(Question)} - VARIED.keys() == (
        only_named | chosen_by_a_person
    )


@given(asked())
def test_the_table_is_total(question: Question) -> None:
    """Whatever the facts, the answer is a start with a reason or a refusal with a hint, by
    the same rule each time."""
    answer = decide_start(question)
    assert answer.reason
    assert isinstance(answer, Start) or answer.error.hint
    assert decide_start(question).rule is answer.rule
    assert decision_record(answer, question, PATTERNS).rule == answer.rule.value


@given(asked())
@example(
    question_of(
        facts(files=()),
        cursor(at(1, 4)),
        AnchorReading.NOT_READ,
        policies=StartPolicies(OnPositionLost.RESNAPSHOT),
    )
)
def test_a_start_tells_how_it_goes_on(question: Question) -> None:
    """Behind a cursor it continues a batch, or names the previous one and what lies between; a
    first start has neither. A gap is only ever a person's choice, at once or by
    `on_position_lost`; after a gap that was not chosen at once, every table is read from
    the source (`find_tables_without_log`)."""
    answer = decide_start(question)
    if not isinstance(answer, Start):
        return
    origin = (answer.continued_batch, answer.previous_batch, answer.continuity)
    if question.cursor is None:
        assert origin == (None, None, None)
    elif answer.continued_batch is None:
        assert (answer.previous_batch, answer.continuity is None) == (BATCH, False)
    else:
        assert origin == (BATCH, None, None)
    if answer.continuity is Continuity.GAP:
        assert answer.rule in (StartRule.CHOSEN_START, StartRule.TABLES_READ_AGAIN)
        assert (answer.override is None) is (answer.rule is StartRule.TABLES_READ_AGAIN)
    assert answer.override == (question.override.id if question.override else None)


@given(asked())
def test_no_rule_applies_only_by_a_race_or_a_run_as_start(question: Question) -> None:
    """A server comes to it in one way: a listed file that was gone when it was looked at.
    `start = "run:…"` is refused by the configuration."""
    if decide_start(question).rule is not StartRule.NO_RULE_APPLIES:
        return
    assert question.override is None
    if question.cursor is None:
        assert isinstance(question.configured_start, OfRun)
    else:
        listed = [log.file for log in question.facts.binlogs]
        assert (question.is_same_server, question.anchor_reading) == (True, NOT_READ)
        assert question.cursor.position.at.file in listed


@given(asked())
def test_a_set_is_followed_only_where_it_proves_that_nothing_is_missing(question: Question) -> None:
    """Wherever a resume by GTID is decided, purged ⊆ read ⊆ executed and GTIDs are on."""
    answer = decide_start(question)
    by_set = (StartRule.RESUME_AFTER_PURGE, StartRule.RESUME_OTHER_SERVER)
    if isinstance(answer, Start) and answer.rule in by_set:
        assert isinstance(answer.where, GtidSet)
        assert answer.where.contains(question.purged_gtids)
        assert question.executed_gtids.contains(answer.where)
        assert question.can_resume_by_gtid
        assert question.set_reading in (SetReading.SAME, SetReading.NOT_COMPARED)


@given(asked())
def test_a_choice_never_leads_back_unnoticed(question: Question) -> None:
    """On the log that was read, a chosen file and offset before the cursor is refused."""
    answer, of = decide_start(question), question.cursor
    if (
        isinstance(answer, Start)
        and answer.rule is StartRule.CHOSEN_START
        and of is not None
        and question.is_same_server
        and question.anchor_reading is SAME
        and isinstance(answer.where, Coordinates)
        and answer.where.file.base == of.position.at.file.base
    ):
        assert answer.where >= of.position.at


# -- what is written down ----------------------------------------------------------------


def test_a_resume_is_recorded_with_its_facts() -> None:
    """The server's facts, the patterns, the cursor and the place it was found to be."""
    question = question_of(facts(executed=f"{A}:1-9"), cursor(read=f"{A}:1-9"), SAME)
    kept = decision_record(decide_start(question), question, PATTERNS, at=at(3))
    assert (kept.kind, kept.rule, kept.author) == ("start", "resume-same-server", "lockstep")
    assert (kept.previous_batch, kept.continuity, kept.gap_tables) == (None, None, ())
    shown = {
        name: kept.facts[name] for name in ("previous_batch", "cursor", "anchor", "place", "head")
    }
    assert shown == {
        "previous_batch": BATCH,
        "cursor": "binlog.000003:500",
        "anchor": "the same",
        "place": "binlog.000003:500",
        "head": "binlog.000004:1000",
    }
    assert kept.facts["tables"] == {"include": ["shop.*"], "exclude": ["shop.log"]}
    assert (kept.facts["gtid_mode"], kept.facts["gtid_executed"]) == ("ON", f"{A}:1-9")


def test_a_chosen_gap_is_recorded_with_its_author_and_tables() -> None:
    """The tables that may miss changes."""
    question = question_of(
        facts(), cursor(), SAME, override=chosen(number=5), chosen_place=reached(at(4, 4))
    )
    decision = decide_start(question)
    kept = decision_record(decision, question, PATTERNS, at=at(4, 4), tables=["shop.a", "shop.b"])
    assert (kept.author, kept.override, kept.previous_batch) == ("ada", 5, BATCH)
    assert (kept.continuity, kept.gap_tables) == (Continuity.GAP, ("shop.a", "shop.b"))


def test_no_tables_are_named_without_a_gap() -> None:
    """A resume after a set misses nothing."""
    question = question_of(facts(B, executed=f"{A}:1-9"), cursor(read=f"{A}:1-9"))
    kept = decision_record(decide_start(question), question, PATTERNS, at=at(3))
    assert (kept.continuity, kept.gap_tables) == (Continuity.CONTIGUOUS, ())


def test_a_refusal_is_recorded_with_its_error_and_hint() -> None:
    """What was known when a run did not begin, and what to type."""
    question = question_of(facts(B, mode="OFF"), cursor())
    decision = decide_start(question)
    assert isinstance(decision, Refusal)
    kept = decision_record(decision, question, PATTERNS)
    assert (kept.kind, kept.rule, kept.previous_batch) == ("refusal", "source-changed", None)
    assert (kept.facts["error"], kept.facts["hint"]) == ("SourceChanged", decision.error.hint)
    assert (kept.recovery, kept.hint) == (Recovery.OPERATOR, decision.error.hint)
    assert "at" not in kept.facts
