"""What a monitoring system reads is what `lockstep status` says, whatever a source is called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as older_format

from lockstep.commands.metrics import SourceFigures, metrics_text
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.status.facts import Headroom, Lag, Standing
from lockstep.pipeline.status.verdict import State, Verdict
from lockstep.pipeline.values.errors import StoppedBy

NOW = datetime(2026, 11, 1, 6, tzinfo=UTC)
Read = dict[tuple[str, tuple[tuple[str, str], ...]], float]

STATES = [
    (TableCondition.FOLLOWING, None),
    (TableCondition.STOPPED, StoppedBy.RUN),
    (TableCondition.STOPPED, StoppedBy.SYSTEM),
    (TableCondition.STOPPED, StoppedBy.PERSON),
    (TableCondition.DROPPED, None),
]
numbers = st.none() | st.integers(0, 1 << 53)
sources = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1)


@given(
    st.lists(sources, min_size=1, max_size=3, unique=True),
    st.builds(Lag, st.none() | st.floats(0, 1e9), numbers, numbers),
    st.none() | st.integers(0, 10**6),
    st.sampled_from(State),
    st.dictionaries(st.sampled_from(STATES), st.integers(0, 10_000)),
)
def test_both_formats_read_it(
    names: list[str],
    lag: Lag,
    remaining: int | None,
    state: State,
    tables: dict[tuple[TableCondition, StoppedBy | None], int],
) -> None:
    """A number that is not known is no line; each source has its own."""
    room = Headroom(False, None, None if remaining is None else timedelta(seconds=remaining))
    figures = [
        SourceFigures(
            Standing(name, lag=lag, headroom=room), Verdict(state, ""), None, tables, file_count=7
        )
        for name in names
    ]
    text = metrics_text(figures, NOW)
    for parse in (open_metrics, older_format):
        read: Read = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in parse(text)
            for sample in family.samples
        }
        for name in names:
            source = ("source", name)
            assert read.get(("lockstep_lag_seconds", (source,))) == lag.seconds
            assert read.get(("lockstep_lag_bytes", (source,))) == lag.log_bytes
            assert read.get(("lockstep_headroom_seconds", (source,))) == remaining
            assert read["lockstep_mirror_files", (source,)] == 7
            assert read["lockstep_measured_timestamp_seconds", (source,)] == NOW.timestamp()
            said = {
                one.value: read["lockstep_state", (source, ("state", one.value))] for one in State
            }
            assert said == {one.value: float(one is state) for one in State}
            for condition, by in STATES:
                labels = (("by", by or ""), source, ("state", condition.value))
                assert read["lockstep_tables", labels] == tables.get((condition, by), 0)
