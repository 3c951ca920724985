"""The ledger's rules by name: a sentence for each step out of order.

Both ledgers refuse with these words: Postgres names the rule by its constraint, the
memory twin by the check it made. What enforces them does not belong here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from pipeline.errors import ConsumerRefused, ConsumerUnknown, LedgerRefused
from pipeline.position import Coordinates
from pipeline.table import TableName
from pipeline.table_state import Stopped, TableCondition, TableState

ORDER_HINT = "`lockstep status` shows each table that is set aside or paused, and what to do."

HINT = "Look at the batches with `lockstep status`, then run `lockstep run` again."

_CONSUMER_CURES: Mapping[str, str] = MappingProxyType(
    {
        "consumers_named": 'give it one: lockstep.make_consumer("SOURCE", "NAME")',
        "consumers_name_once": "go on as that consumer with lockstep.consume, or take another name",
        "consumers_start": 'start="earliest", start="latest", or the id of an acknowledged batch '
        "of that source, as the column _batch of its changelogs has it",
        "consumers_start_acknowledged": "a batch up to the acknowledged one that `lockstep status` "
        'shows, or start="latest"',
        "consumers_drop_explained": "say why: lockstep.drop_consumer(…, reason=…)",
        "consumers_dropped_once": "nothing is left to do: it is gone",
        "deliveries_of_live_consumers": "somebody dropped it meanwhile; lockstep.make_consumer "
        "makes another of that name",
        "deliveries_acknowledged_once": "nothing is left to do for this one; consumer.get() gives "
        "what comes behind it",
        "deliveries_rolled_back_once": "consumer.get() gives it again: acknowledge that delivery",
        "deliveries_acknowledged_in_order": "acknowledge the first one of consumer.out(), or have "
        "all of them given again with consumer.rollback()",
        "deliveries_rolled_back_newest_first": "consumer.rollback() takes back all that is out",
        "deliveries_go_on": "another process took deliveries of this consumer meanwhile: "
        "consumer.get() again",
        "deliveries_known": "consumer.out() lists those that can be acknowledged or taken back",
    }
)
"""Whatever else a consumer's step breaks comes from us."""

_CONSUMER_DEFECT = "report this, with what `lockstep status --json` prints"

RULES: Mapping[str, str] = MappingProxyType(
    {
        "sources_token_grows": "a source keeps its lock and its leases only grow",
        "sources_lock_key": "two sources share no lock",
        "sources_token_counts": "leases count from 0",
        "leases_pk": "a lease's token is given once",
        "leases_source": "a lease belongs to a known source",
        "leases_token_counts": "leases count from 1",
        "leases_stay": "a lease stays as it was recorded",
        "decisions_lease": "a decision is made under a lease",
        "decisions_stay": "a decision stays as it was recorded",
        "decisions_follows": "a start follows a batch of its source",
        "decisions_override": "a start carries out a choice of its source",
        "decisions_continuity_known": "what follows is contiguous, an overlap or a gap",
        "decisions_continuity_told": "a start that follows a batch tells what lies between",
        "decisions_gap_named": "a gap names its tables, and nothing else does",
        "overrides_lease": "a start is chosen under a lease",
        "overrides_place_named": "a choice names a place",
        "overrides_reasoned": "a choice has a reason",
        "overrides_stay": "a choice stays as it was recorded",
        "overrides_once": "a choice begins one batch",
        "batches_lease": "a batch is begun under a lease",
        "batches_start_at_predecessors_end": "a batch starts exactly where its predecessor ends",
        "batches_start_decision": "a start decision is recorded before its batch",
        "batches_one_origin": (
            "a batch names either its predecessor or its start decision, not neither or both"
        ),
        "batches_start_decided": "a batch begins by a decision to start",
        "batches_follows": "a batch follows one of its source",
        "batches_follows_predecessor": "a batch follows its predecessor if it has one",
        "batches_one_capturing": "a source has one capturing batch at a time",
        "batches_one_successor": "one batch goes on behind another, unless it is abandoned",
        "batches_one_per_decision": "a start decision justifies one batch",
        "batches_one_chain": "a source whose batches go on starts no second chain",
        "batches_state_known": "a batch is in one of the five states",
        "batches_begin_capturing": "a batch begins as capturing",
        "batches_predecessor_captured": "a batch follows one that is captured and not abandoned",
        "batches_base_counts": "sequences count from 0",
        "batches_base_follows": "a batch's sequences go on where its predecessor's end",
        "batches_end_recorded": "a batch has its end and witness once it is captured, not before",
        "batches_end_not_before_start": "a batch does not end before its start",
        "batches_totals_count": "a batch's totals are counted at its capture",
        "batches_kind_known": "a batch reads on or catches tables up",
        "batches_catch_up_decided": "a batch that catches tables up is begun by a decision",
        "batches_life_whole": "a server's life has its beginning and its resets, or neither",
        "batches_moments": "a batch's moments belong to its states",
        "batches_start_stays": "a batch keeps the start it was begun with",
        "batches_end_stays": "a captured batch keeps its end and totals",
        "batches_move_forward": "a batch only moves forward",
        "batches_sequences_within": "sequences lie within their batch",
        "batches_merged_whole": "a batch is merged when all its tables are merged or set aside",
        "batches_acknowledged_in_order": "batches are acknowledged in order",
        "batches_abandoned_newest_first": "later batches are abandoned first",
        "batches_abandoned_unmerged": "a batch is abandoned only before any table merges it",
        "batches_stay": "a batch is never deleted",
        "batches_known": "the batch is in this source's ledger",
        "table_states_pk": "a table is recorded once",
        "table_states_source": "a table belongs to a known source",
        "table_states_condition_known": "a table is active, quarantined, paused or dropped",
        "table_states_generation_counts": "generations count from 1",
        "table_states_dropped": "only a dropped table's mirror is removed",
        "table_states_anew": "only a table that is set aside or paused begins anew",
        "ledger_pk": "a ledger has a name",
        "ledger_alone": "a ledger has one name",
        "ledger_alone_counts": "a ledger has one name",
        "ledger_stays": "a ledger keeps its name",
        "looked_source": "what was looked at belongs to a known source",
        "looked_pk": "how far a folder was looked at is kept once",
        "looked_version_counts": "Delta versions count from 0",
        "table_states_quarantine_explained": (
            "a table set aside or paused has a reason, a hint and a position; others have none"
        ),
        "table_states_remedy_known": "a table that is set aside is owed something known",
        "table_states_remedy_told": "a table that is set aside tells what it is owed",
        "table_states_known": "a table is recorded before it is set aside",
        "table_states_stopped": "a table that is not active has the place it stopped at",
        "table_states_changelog_counts": "a changelog's generations count from 1",
        "table_states_stopped_batch": "a table stopped in a batch of its source",
        "table_states_behind_batch": "a table is behind by a batch of its source",
        "table_states_mirror_version": "a mirror shows a recorded version of its table",
        "table_versions_pk": "a table's version is recorded once",
        "table_versions_source": "a table's version belongs to a known source",
        "table_versions_number_counts": "versions count from 1",
        "table_versions_no_gap": "a table's versions follow each other",
        "table_versions_batch": "a version is recorded with a batch",
        "table_versions_while_capturing": "versions are recorded while their batch is capturing",
        "table_versions_generation_counts": "a changelog's generations count from 1",
        "table_versions_statement": "a version names a statement that is recorded with it",
        "table_versions_knowledge_known": "a version is known, dropped or unknown",
        "table_versions_origin_known": "a version tells where it comes from",
        "table_versions_schema_told": "a version has a structure if it is known, and no other has",
        "table_versions_columns_told": "only a known version tells where its columns come from",
        "table_versions_unknown_explained": "a version that is unknown says why, and no other does",
        "table_versions_stay": "a table's version stays as it was recorded",
        "schema_statements_batch": "a statement belongs to a batch of its source",
        "schema_statements_while_capturing": (
            "statements are recorded while their batch is capturing"
        ),
        "schema_statements_outcome_known": "a statement is followed, partly, or not understood",
        "schema_statements_stay": "a statement stays as it was recorded",
        "database_versions_batch": "a database's version is recorded with a batch",
        "database_versions_while_capturing": (
            "databases' versions are recorded while their batch is capturing"
        ),
        "database_versions_statement": (
            "a database's version names a statement that is recorded with it"
        ),
        "database_versions_whole": "a database has a character set and a collation",
        "database_versions_stay": "a database's version stays as it was recorded",
        "table_events_pk": "a table's events in a batch are numbered",
        "table_events_ordinal_counts": "a table's events in a batch count from 0",
        "table_events_batch": "an event belongs to a batch of its source",
        "table_events_table": "an event's table is recorded with it",
        "table_events_version": "an event's schema version is recorded with it",
        "table_events_kind_known": (
            "a table is created, changed, truncated, dropped, read again or rebuilt"
        ),
        "table_events_reread_explained": "a table is read again or rebuilt for a reason",
        "table_events_ascend": "a table's events go on in the order of the log",
        "table_events_while_capturing": "events are recorded while their batch is capturing",
        "table_events_stay": "an event stays as it was recorded",
        "snapshots_once": "a batch reads a table once",
        "snapshots_batch": "a snapshot belongs to a batch of its source",
        "snapshots_table": "a snapshot's table is recorded with it",
        "snapshots_version": "a snapshot's schema version is recorded with it",
        "snapshots_while_capturing": "snapshots are recorded while their batch is capturing",
        "snapshots_stay": "a snapshot stays as it was recorded",
        "snapshot_files_pk": "a snapshot's files are numbered",
        "snapshot_files_snapshot": "a file belongs to a snapshot",
        "snapshot_files_digest": "a snapshot's file has its SHA-256",
        "snapshot_files_once": "a snapshot names a file once",
        "snapshot_files_counts": "a snapshot's rows and bytes are counted",
        "snapshot_files_stay": "a snapshot's file stays as it was recorded",
        "source_files_pk": "a batch's files for a table of its source are numbered",
        "source_files_batch": "a source's file belongs to a batch of it",
        "source_files_name_known": "a source has the tables _ddl and _transactions",
        "source_files_digest": "a source's file has its SHA-256",
        "source_files_once": "a batch names a source's file once",
        "source_files_counts": "a source's rows and bytes are counted",
        "source_files_while_capturing": "a source's files are recorded while a batch is capturing",
        "source_files_stay": "a source's file stays as it was recorded",
        "extents_batch": "what the lake can have of a table is told with a batch of its source",
        "extents_begins_whole": "a partial table begins at a whole place",
        "extents_empty_whole": "a table was seen empty at a whole place",
        "extents_empty_of_partial": "only of a partial table is told where it was empty",
        "extents_stay": "what the lake can have of a table stays as it was recorded",
        "handovers_pk": "a table's mirror changes hands once in a batch",
        "handovers_batch": "a handover belongs to a batch of its source",
        "handovers_table": "a handover's table is recorded with it",
        "handovers_shows": "the schema version that a mirror shows is recorded with its handover",
        "handovers_whole": "a mirror that is taken over has its lake version and shows a version",
        "handovers_generation": "a table begins the next generation with another's mirror",
        "handovers_while_capturing": "handovers are recorded while their batch is capturing",
        "handovers_alone": "mirrors change hands only when all earlier batches are acknowledged",
        "handovers_stay": "a handover stays as it was recorded",
        "table_states_mirror_generation_counts": "a table's mirrors count from 1",
        "table_states_adopted_counts": "lake versions that tables take over count from 0",
        "table_orders_lease": "an order is given under a lease",
        "table_orders_table": "an order is about a recorded table",
        "table_orders_kind_known": "a table is paused, resumed, released or reloaded",
        "table_orders_authored": "an order is somebody's",
        "table_orders_schema_released": "a structure is given with a release only",
        "table_orders_renames_released": "names of before are given with a structure only",
        "table_orders_begin_open": "an order begins as open",
        "table_orders_pause_at_once": "no batch carries out a pause",
        "table_orders_resume_paused": "only a paused table is resumed",
        "table_orders_release_quarantined": "only a table that is set aside is released",
        "table_orders_reload_there": "a table that was dropped is not reloaded",
        "table_orders_known": "the order was given for a table of this source and is no pause",
        "table_orders_newest_counts": "a table's newest order counts",
        "table_orders_done_batch": "an order is carried out by a batch of its source",
        "table_orders_done_while_capturing": (
            "an order is carried out while the batch that does it is capturing"
        ),
        "table_orders_done_once": "an order is carried out once by a live batch",
        "table_orders_stay": "an order stays as it was given",
        "segments_once": "a batch has one segment for a table and version",
        "segments_batch": "a segment belongs to a batch of its source",
        "segments_table": "a segment's table is recorded with it",
        "segments_version": "a segment's schema version is recorded with it",
        "segments_of_known_versions": "a segment's schema version has columns",
        "segments_counts": "a segment's rows are counted",
        "segments_sequences_ascend": "a segment's sequences ascend",
        "segments_while_capturing": "segments are recorded while their batch is capturing",
        "segments_stay": "a segment stays as it was recorded",
        "segment_files_pk": "a segment's files are numbered",
        "segment_files_segment": "a file belongs to a segment",
        "segment_files_digest": "a file has its SHA-256",
        "segment_files_once": "a segment names a file once",
        "segment_files_counts": "a file's row images and bytes are counted",
        "segment_files_stay": "a segment's file stays as it was recorded",
        "prepared_once": "a batch prepares an XID once",
        "prepared_open_once": "an XID is open once among a source's live batches",
        "prepared_batch": "a prepared transaction belongs to a batch of its source",
        "prepared_ended_by": "a prepared transaction is ended by a batch of its source",
        "prepared_xid_fits": "an XID's parts have at most 64 bytes each",
        "prepared_file_whole": "a prepared transaction's file is described whole or not at all",
        "capture_scopes_pk": "a batch is captured with one set of patterns",
        "capture_scopes_batch": "patterns belong to a batch of their source",
        "capture_scopes_while_capturing": "patterns are recorded while their batch is capturing",
        "capture_scopes_stay": "patterns stay as they were recorded",
        "set_witnesses_pk": "a batch's witnesses are numbered",
        "set_witnesses_batch": "a witness belongs to a batch of its source",
        "set_witnesses_once": "a batch keeps one witness of each source of GTIDs",
        "set_witnesses_ordinal_counts": "a batch's witnesses are counted from 0",
        "set_witnesses_moment_counts": "a witness's moment counts from 1970",
        "set_witnesses_told": "a witness has the moment of a commit, or a digest",
        "set_witnesses_while_capturing": "witnesses are recorded while their batch is capturing",
        "set_witnesses_stay": "a witness stays as it was recorded",
        "prepared_file_counts": "a prepared transaction's row images and bytes are counted",
        "prepared_file_digest": "a prepared transaction's file has its SHA-256",
        "prepared_begin_open": "a prepared transaction begins as open",
        "prepared_while_capturing": (
            "prepared transactions are recorded while their batch is capturing"
        ),
        "prepared_ended_while_capturing": (
            "a prepared transaction is ended while the batch that ends it is capturing"
        ),
        "prepared_ended_once": "a prepared transaction is ended once by a live batch",
        "prepared_end_whole": "an end says whether it was a commit or a rollback",
        "prepared_end_not_before": "no batch ends what a later one prepared",
        "prepared_end_live": "what an abandoned batch prepared is never ended",
        "prepared_abandoned_with_batch": "prepared transactions are abandoned with their batch",
        "prepared_stay": "a prepared transaction stays as it was recorded",
        "prepared_known": "a transaction is recorded as prepared before it is ended",
        "writes_lease": "a write is intended under a lease",
        "writes_table": "a write belongs to a known table",
        "writes_first_batch": "a write's first batch belongs to its source",
        "writes_last_batch": "a write's last batch belongs to its source",
        "writes_batches_ascend": "a write's batches ascend",
        "writes_transaction_once": "an application transaction is used once",
        "writes_delta_version_once": "a lake version is settled once",
        "writes_delta_version_counts": "lake versions count from 0",
        "writes_delta_version_ascends": "a later write has a later lake version",
        "writes_settled_whole": "a settled write has its lake version and moment",
        "writes_one_open": "a table has one open write at a time",
        "writes_intent_first": "a write is an intent before it is settled",
        "writes_intent_stays": "an intent keeps its batches and its version",
        "writes_settled_once": "a write is settled once",
        "writes_given_up_or_settled": "a write that is settled is not given up",
        "writes_given_up_once": "a write that was given up stays so",
        "writes_of_captured_batches": "only captured batches are merged",
        "writes_of_active_tables": "a table that is set aside is not written",
        "writes_never_overlap": "a table merges a batch once",
        "writes_stay": "a write is never deleted",
        "writes_known": "an intent is recorded before it is settled",
        "version_sets_pk": "a version set is recorded once",
        "version_sets_batch": "a version set belongs to a batch of its source",
        "version_sets_table": "a version set's tables are known",
        "version_sets_acknowledged": "a version set is recorded as its batch is acknowledged",
        "version_sets_stay": "a version set stays as it was recorded",
        "consumers_source": "a consumer belongs to a known source",
        "consumers_named": "a consumer has a name",
        "consumers_name_once": "a source has one consumer of a name",
        "consumers_start": "a consumer begins behind a batch of its source",
        "consumers_start_acknowledged": "a consumer begins behind an acknowledged batch",
        "consumers_drop_explained": "a consumer is dropped by somebody for a reason",
        "consumers_dropped_once": "a consumer is dropped once",
        "consumers_stay": "a consumer stays as it was made",
        "deliveries_consumer": "a delivery belongs to a consumer of its source",
        "deliveries_first_batch": "a delivery's first batch belongs to its source",
        "deliveries_last_batch": "a delivery's last batch belongs to its source",
        "deliveries_batches_ascend": "a delivery's batches ascend",
        "deliveries_state_known": "a delivery is out, acknowledged or rolled back",
        "deliveries_moments": "a delivery has the moment of its end, and before that none",
        "deliveries_begin_out": "a delivery begins as out",
        "deliveries_of_live_consumers": "a dropped consumer is given nothing and ends nothing",
        "deliveries_of_acknowledged_batches": "only acknowledged batches are delivered",
        "deliveries_go_on": "a delivery goes on where the one before it ended",
        "deliveries_stay": "a delivery keeps its batches",
        "deliveries_acknowledged_once": "a delivery is acknowledged once and stays so",
        "deliveries_rolled_back_once": (
            "what was in a delivery that is rolled back is given again under another id"
        ),
        "deliveries_acknowledged_in_order": "deliveries are acknowledged oldest first",
        "deliveries_rolled_back_newest_first": "deliveries are rolled back newest first",
        "deliveries_known": "the delivery was given to this consumer",
    }
)


def refusal(rule: str) -> LedgerRefused:
    """The error for a broken rule. Where only a defect or a crash breaks it, the rule's name is
    in the message, for support."""
    sentence = RULES.get(rule, "the step does not fit what is recorded")
    if rule.startswith(("consumers_", "deliveries_")):
        hint = _CONSUMER_CURES.get(rule, _CONSUMER_DEFECT)
        return ConsumerRefused(f"That is refused: {sentence}.", hint=hint, rule=rule)
    if rule.startswith("table_orders_"):
        return LedgerRefused(f"The ledger refused an order: {sentence} ({rule}).", hint=ORDER_HINT)
    return LedgerRefused(f"The ledger refused a step: {sentence} ({rule}).", hint=HINT)


def as_told(state: TableState, batch: int, end: Coordinates) -> TableState:
    """A state as the capture of a batch that ends there tells it: what is active has not
    stopped, and what is dropped stopped at a place, or at the end."""
    if state.condition is TableCondition.ACTIVE:
        return replace(state, stopped=None)
    if state.condition is TableCondition.DROPPED and state.stopped is None:
        return replace(state, stopped=Stopped(batch, end))
    return state


def paused(table: TableName, order: str, author: str) -> tuple[str, str]:
    """Reason and hint of a table that a person paused; `order` is the person's reason."""
    why = f": {order}" if order else ""
    return f"{author} paused it{why}", f"`lockstep resume {table}` has it caught up"


def reloading(table: TableName, order: str, author: str) -> tuple[str, str]:
    """The same of a table that stopped only to have its mirror written anew."""
    return (
        f"{author} has it reloaded: {order}",
        f"the next run reloads it; `lockstep resume {table}` takes that back",
    )


def unknown_version(table: TableName, number: int) -> LedgerRefused:
    """The error for a number that no version of the table has."""
    return LedgerRefused(
        f"The ledger has no version {number} of {table}.",
        hint="Look at the table's state with `lockstep tables`.",
    )


def unknown_statement(number: int) -> LedgerRefused:
    """The error for an id that no statement of the source has."""
    return LedgerRefused(
        f"The ledger has no statement {number} of this source.",
        hint="`lockstep schema TABLE` shows a table's history.",
    )


def unknown_consumer(source: str, name: str) -> ConsumerUnknown:
    """The error for a consumer that was never made, or was dropped."""
    return ConsumerUnknown(
        f"The source {source!r} has no consumer {name!r}.",
        hint=f'lockstep.make_consumer("{source}", "{name}", start="latest") makes one',
    )
