-- Attempts to break each rule of the ledger, by the rule's name. The source %(s)s has
-- a chain: a acknowledged, b merged, c captured (orders merged, an intent for stock
-- open), d capturing. b prepared the XA transactions 'open' and 'ended', which c ended.
-- e is a start decision without a batch. Each runs alone and is rolled back.

-- rule: sources_token_grows
update lockstep.sources set token = token - 1 where name = %(s)s
-- rule: sources_token_not_negative
insert into lockstep.sources (name, token) values ('new', -1)
-- rule: sources_lock_key
insert into lockstep.sources (name, lock_key) overriding system value
select 'new', lock_key from lockstep.sources where name = %(s)s
-- rule: leases_pk
insert into lockstep.leases values (%(s)s, 1, 'x', null, 1)
-- rule: leases_source
insert into lockstep.leases values ('nobody', 1, 'x', null, 1)
-- rule: leases_token_positive
insert into lockstep.leases values (%(s)s, 0, 'x', null, 1)
-- rule: leases_stay
update lockstep.leases set holder = 'x' where source = %(s)s
-- rule: leases_end_before_the_next
insert into lockstep.leases values (%(s)s, 2, 'x', null, 1), (%(s)s, 3, 'x', null, 1);
update lockstep.leases set ended_at = now() where source = %(s)s and token = 2
-- rule: decisions_stay
delete from lockstep.decisions where source = %(s)s
-- rule: decisions_lease
insert into lockstep.decisions (source, token, kind, rule, reason, facts, author)
values (%(s)s, 99, 'x', 'x', 'x', '{}', 'x')

-- rule: decisions_previous_batch
select pg_temp.decide(%(s)s, 'start', 0, 'gap', '{shop.orders}', null)
-- rule: decisions_override
select pg_temp.decide(%(s)s, 'start', %(c)s, 'contiguous', '{}', 0)
-- rule: decisions_continuity_known
select pg_temp.decide(%(s)s, 'start', %(c)s, 'lost', '{}', null)
-- rule: decisions_continuity_with_previous
select pg_temp.decide(%(s)s, 'start', %(c)s, null, '{}', null)
-- rule: decisions_continuity_with_previous
select pg_temp.decide(%(s)s, 'start', null, 'contiguous', '{}', null)
-- rule: decisions_gap_named
select pg_temp.decide(%(s)s, 'start', %(c)s, 'gap', '{}', null)
-- rule: decisions_gap_named
select pg_temp.decide(%(s)s, 'start', %(c)s, 'overlap', '{shop.orders}', null)
-- rule: decisions_gap_named
select pg_temp.decide(%(s)s, 'start', null, null, '{shop.orders}', null)
-- rule: decisions_recovery_known
select pg_temp.attempt(%(s)s, 'failure', 'somebody', '', null, null, null)
-- rule: decisions_recovery_of_failures
select pg_temp.attempt(%(s)s, 'failure', null, '', null, null, null)
-- rule: decisions_recovery_of_failures
select pg_temp.attempt(%(s)s, 'refusal', null, '', null, null, null)
-- rule: decisions_recovery_of_failures
select pg_temp.attempt(%(s)s, 'start', 'retry', '', null, null, null)
-- rule: decisions_hint_with_recovery
select pg_temp.attempt(%(s)s, 'idle', null, 'x', null, null, null)
-- rule: decisions_head_of_idle
select pg_temp.attempt(%(s)s, 'idle', null, '', 'binlog', 1, null)
-- rule: decisions_head_of_idle
select pg_temp.attempt(%(s)s, 'failure', 'retry', '', 'binlog', 1, 4)
-- rule: decisions_structures_of_kind
select pg_temp.attempt(%(s)s, 'structures', null, '', null, null, null)

-- rule: overrides_lease
insert into lockstep.overrides (source, token, place, reason, author)
values (%(s)s, 99, 'latest', 'x', 'x')
-- rule: overrides_place_named
select pg_temp.choose(%(s)s, '', 'x')
-- rule: overrides_reasoned
select pg_temp.choose(%(s)s, 'latest', ' ')
-- rule: overrides_stay
select pg_temp.choose(%(s)s, 'latest', 'x');
update lockstep.overrides set place = 'earliest' where source = %(s)s
-- rule: overrides_stay
select pg_temp.choose(%(s)s, 'latest', 'x');
delete from lockstep.overrides where source = %(s)s
-- rule: overrides_once
select pg_temp.abandon(%(d)s);
create temporary table made on commit drop as
select pg_temp.choose(%(s)s, 'latest', 'x') as choice;
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(c)s, 'overlap', '{}', choice), 40)
from made;
select pg_temp.capture(max(id), 100, 0) from lockstep.batches;
select pg_temp.begin(%(d)s, null,
    pg_temp.decide(%(s)s, 'start', (select max(id) from lockstep.batches), 'overlap', '{}', choice), 40)
from made

-- rule: batches_one_capturing
select pg_temp.begin(%(d)s, null, %(e)s, 0)
-- rule: batches_one_chain
select pg_temp.abandon(%(d)s), pg_temp.begin(%(d)s, null, %(e)s, 0)
-- rule: batches_one_successor
select pg_temp.abandon(%(d)s), pg_temp.begin(%(c)s, %(b)s, null, 20)
-- rule: batches_one_successor
select pg_temp.abandon(%(d)s);
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(b)s, 'overlap', '{}', null), 20)
-- rule: batches_one_per_decision
select pg_temp.abandon(%(d)s), pg_temp.begin(%(a)s, null, start_decision, 0)
from lockstep.batches where id = %(a)s
-- rule: batches_one_origin
select pg_temp.abandon(%(d)s), pg_temp.begin(%(d)s, %(c)s, %(e)s, 40)
-- rule: batches_one_origin
select pg_temp.abandon(%(d)s), pg_temp.begin(%(d)s, null, null, 0)
-- rule: batches_start_decision
insert into lockstep.sources (name) values ('beside');
insert into lockstep.leases values ('beside', 1, 'x', null, 1);
insert into lockstep.batches (source, state, start_decision, sequence_before, token, start_base, start_number,
                              start_offset, start_gtid_set, start_server_uuid)
values ('beside', 'capturing', %(e)s, 0, 1, 'binlog', 1, 4, '', '')
-- rule: batches_start_decided
select pg_temp.abandon(%(d)s);
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'idle', null, null, '{}', null), 0)
-- rule: batches_previous
alter table lockstep.batches disable trigger batches_move;
update lockstep.batches set continued_batch = null, start_decision = %(e)s, previous_batch = 0 where id = %(d)s
-- rule: batches_previous_is_continued
alter table lockstep.batches disable trigger batches_move;
update lockstep.batches set previous_batch = null where id = %(d)s
-- rule: batches_start_at_end_of_continued
select pg_temp.abandon(%(d)s), pg_temp.begin(%(b)s, %(c)s, null, 40)
-- rule: batches_previous_captured
select pg_temp.begin(%(d)s, %(d)s, null, 40)
-- rule: batches_previous_captured
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(d)s, 'overlap', '{}', null), 40)
-- rule: batches_previous_captured
select pg_temp.abandon(%(d)s);
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(d)s, 'overlap', '{}', null), 40)
-- rule: batches_sequence_goes_on
select pg_temp.abandon(%(d)s), pg_temp.begin(%(d)s, %(c)s, null, 41)
-- rule: batches_sequence_goes_on
select pg_temp.abandon(%(d)s);
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(c)s, 'overlap', '{}', null), 0)
-- rule: batches_begin_capturing
insert into lockstep.batches (source, state, continued_batch, sequence_before, token, start_base,
                              start_number, start_offset, start_gtid_set, start_server_uuid)
select source, 'captured', continued_batch, sequence_before, token, start_base, start_number,
       start_offset, start_gtid_set, start_server_uuid
from lockstep.batches where id = %(d)s
-- rule: batches_lease
select pg_temp.abandon(%(d)s);
insert into lockstep.batches (source, state, continued_batch, sequence_before, token, start_base,
                              start_number, start_offset, start_gtid_set, start_server_uuid)
select source, 'capturing', continued_batch, sequence_before, 99, start_base, start_number,
       start_offset, start_gtid_set, start_server_uuid
from lockstep.batches where id = %(d)s
-- rule: batches_sequence_before_not_negative
select pg_temp.abandon(%(d)s);
alter table lockstep.batches disable trigger batches_begin;
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(c)s, 'overlap', '{}', null), -1)
-- rule: batches_state_known
alter table lockstep.batches disable trigger batches_move;
update lockstep.batches set state = 'lost' where id = %(c)s

-- rule: batches_start_stays
update lockstep.batches set start_offset = 0 where id = %(d)s
-- rule: batches_kind_known
alter table lockstep.batches disable trigger batches_move;
update lockstep.batches set kind = 'lost' where id = %(c)s
-- rule: batches_catch_up_decided
alter table lockstep.batches disable trigger batches_move;
update lockstep.batches set kind = 'catching-up' where id = %(d)s
-- rule: batches_start_stays
update lockstep.batches set kind = 'catching-up' where id = %(a)s
-- rule: batches_start_stays
update lockstep.batches set previous_batch = %(a)s where id = %(d)s
-- rule: batches_end_stays
update lockstep.batches set end_offset = 999 where id = %(c)s
-- rule: batches_end_stays
update lockstep.batches set anchor_crc32 = 0 where id = %(a)s
-- rule: batches_end_stays
update lockstep.batches set passed_statements = 9 where id = %(c)s
-- rule: batches_end_stays
update lockstep.batches set by_gtid = not by_gtid where id = %(c)s
-- rule: batches_move_forward
update lockstep.batches set state = 'captured' where id = %(b)s
-- rule: batches_move_forward
update lockstep.batches set state = 'merged' where id = %(d)s
-- rule: batches_move_forward
update lockstep.batches set state = 'abandoned' where id = %(a)s
-- rule: batches_move_forward
select pg_temp.abandon(%(b)s)
-- rule: batches_move_forward
update lockstep.batches set state = 'acknowledged', acknowledged_at = now() where id = %(a)s
-- rule: batches_move_forward
update lockstep.batches set state = 'acknowledged', acknowledged_at = now() where id = %(c)s
-- rule: batches_move_forward
update lockstep.batches set state = 'acknowledged', acknowledged_at = now() where id = %(d)s
-- rule: batches_move_forward
select pg_temp.abandon(%(d)s);
update lockstep.batches set state = 'acknowledged', acknowledged_at = now() where id = %(d)s
-- rule: batches_end_recorded
update lockstep.batches set state = 'captured', captured_at = now() where id = %(d)s
-- rule: batches_end_not_before_start
select pg_temp.capture(%(d)s, -1, 0)
-- rule: batches_totals_of_captured
select pg_temp.capture(%(d)s, 100, -1)
-- rule: batches_passed_statements_not_negative
update lockstep.batches set
    state = 'abandoned', abandoned_at = now(), abandoned_because = '', passed_statements = -1
where id = %(d)s
-- rule: batches_server_process_whole
update lockstep.batches set
    state = 'abandoned', abandoned_at = now(), abandoned_because = '', server_resets = 1
where id = %(d)s
-- rule: batches_end_stays
update lockstep.batches set server_resets = 1, server_started_at = now() where id = %(c)s
-- rule: batches_times_of_state
update lockstep.batches set state = 'acknowledged' where id = %(b)s
-- rule: batches_merged_whole
update lockstep.batches set state = 'merged', merged_at = now() where id = %(c)s
-- rule: batches_requests_not_negative
update lockstep.batches set state = 'acknowledged', acknowledged_at = now(), lockstep_requests = -1
where id = %(b)s
-- rule: batches_requests_of_acknowledged
update lockstep.batches set state = 'acknowledged', acknowledged_at = now(), spark_requests = 1
where id = %(b)s
-- rule: batches_requests_of_acknowledged
update lockstep.batches set
    state = 'abandoned', abandoned_at = now(), abandoned_because = '', lockstep_requests = 1
where id = %(d)s
-- rule: batches_acknowledged_in_order
update lockstep.table_states set
    condition = 'stopped', reason = '', hint = '', position = '', stopped_by = 'system',
    event = pg_temp.told(source, null)
where source = %(s)s;
update lockstep.batches set state = 'merged', merged_at = now() where id = %(c)s;
update lockstep.batches set state = 'acknowledged', acknowledged_at = now() where id = %(c)s
-- rule: batches_acknowledged_in_order
select pg_temp.abandon(%(d)s);
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(c)s, 'overlap', '{}', null), 40);
select pg_temp.capture(max(id), 100, 0) from lockstep.batches;
update lockstep.batches set state = 'merged', merged_at = now()
where id = (select max(id) from lockstep.batches);
update lockstep.batches set state = 'acknowledged', acknowledged_at = now()
where id = (select max(id) from lockstep.batches)
-- rule: batches_abandoned_newest_first
select pg_temp.abandon(%(c)s)
-- rule: batches_abandoned_newest_first
select pg_temp.abandon(%(d)s);
select pg_temp.begin(%(d)s, null, pg_temp.decide(%(s)s, 'start', %(c)s, 'overlap', '{}', null), 40);
select pg_temp.abandon(%(c)s)
-- rule: batches_abandoned_unmerged
select pg_temp.abandon(%(d)s), pg_temp.abandon(%(c)s)
-- rule: batches_stay
delete from lockstep.batches where id = %(d)s
-- rule: batches_sequences_within
select pg_temp.segment(%(d)s, 'orders', 1, 1, 31, 32), pg_temp.capture(%(d)s, 100, 1)

-- rule: segments_while_capturing
select pg_temp.segment(%(c)s, 'orders', 1, 1, 31, 32)
-- rule: segments_batch
select pg_temp.segment(%(d)s, 'orders', 1, 1, 31, 32);
alter table lockstep.segments disable trigger segments_recorded;
select pg_temp.segment(0, 'orders', 1, 1, 31, 32)
-- rule: segments_once
select pg_temp.segment(%(d)s, 'orders', 1, 1, 31, 32), pg_temp.segment(%(d)s, 'orders', 1, 1, 33, 34)
-- rule: segments_table
select pg_temp.segment(%(d)s, 'unknown', 1, 1, 31, 32)
-- rule: segments_version
select pg_temp.segment(%(d)s, 'orders', 2, 1, 31, 32)
-- rule: segments_of_known_versions
select pg_temp.version(%(d)s, 2, 'dropped', null, 'statement');
select pg_temp.segment(%(d)s, 'orders', 2, 1, 41, 42)
-- rule: segments_not_negative
select pg_temp.segment(%(d)s, 'orders', 1, -1, 31, 32)
-- rule: segments_sequences_ascend
select pg_temp.segment(%(d)s, 'orders', 1, 1, 33, 32)
-- rule: segments_stay
update lockstep.segments set inserted = 9 where batch = %(c)s
-- rule: segment_files_pk
select pg_temp.file(%(c)s, 0, 'new', 1, repeat('0', 64))
-- rule: segment_files_once
select pg_temp.file(%(d)s, 0, 'same', 1, repeat('0', 64)) from (
    select pg_temp.segment(%(d)s, 'orders', 1, 1, 31, 32)) made;
select pg_temp.file(%(d)s, 1, 'same', 1, repeat('0', 64))
-- rule: segment_files_not_negative
select pg_temp.file(%(c)s, 9, 'new', -1, repeat('0', 64))
-- rule: segment_files_digest
select pg_temp.file(%(c)s, 9, 'new', 1, 'x')
-- rule: segment_files_segment
insert into lockstep.segment_files values (0, 0, 'x', 1, 1, repeat('0', 64))
-- rule: segment_files_stay
delete from lockstep.segment_files f using lockstep.segments s where s.id = f.segment and s.batch = %(c)s

-- rule: table_states_condition_known
insert into lockstep.table_states values (%(s)s, 'shop', 'new', 'lost', 1, 'm', 'c')
-- rule: table_states_generation_positive
insert into lockstep.table_states values (%(s)s, 'shop', 'new', 'following', 0, 'm', 'c')
-- rule: table_states_stop_explained
insert into lockstep.table_states values (%(s)s, 'shop', 'new', 'stopped', 1, 'm', 'c', 'r', 'h', 'p')
-- rule: table_states_stop_explained
insert into lockstep.table_states values (%(s)s, 'shop', 'new', 'following', 1, 'm', 'c', 'r')
-- rule: table_states_stop_explained
update lockstep.table_states set stopped_by = 'person' where source = %(s)s
-- rule: table_states_stopped_by_known
update lockstep.table_states set condition = 'stopped', reason = '', hint = '', position = '',
    stopped_by = 'nobody' where source = %(s)s
-- rule: table_states_consent_by_person
update lockstep.table_states set condition = 'stopped', reason = '', hint = '', position = '',
    stopped_by = 'run', need = 'consent' where source = %(s)s
-- rule: table_states_need_of_condition
update lockstep.table_states set need = 'columns' where source = %(s)s
-- rule: table_states_source
insert into lockstep.table_states values ('nobody', 'shop', 'new', 'following', 1, 'm', 'c')
-- rule: table_states_pk
insert into lockstep.table_states values (%(s)s, 'shop', 'orders', 'following', 1, 'm', 'c')
-- rule: table_states_place_of_condition
update lockstep.table_states set condition = 'dropped' where source = %(s)s
-- rule: table_states_place_of_condition
update lockstep.table_states set stopped_batch = %(a)s where source = %(s)s
-- rule: table_states_stopped_batch
select pg_temp.stop('dropped', 0)
-- rule: table_states_missing_since
update lockstep.table_states set missing_since = 0 where source = %(s)s
-- rule: table_states_mirror_schema_version
update lockstep.table_states set mirror_schema_version = 9 where source = %(s)s
-- rule: table_states_changelog_positive
update lockstep.table_states set changelog_generation = 0 where source = %(s)s
-- rule: table_versions_pk
select pg_temp.version(%(d)s, 1, 'dropped', null, 'carried')
-- rule: table_versions_no_gap
select pg_temp.version(%(d)s, 3, 'dropped', null, 'carried')
-- rule: table_versions_number_positive
select pg_temp.version(%(d)s, 0, 'dropped', null, 'carried')
-- rule: table_versions_batch
alter table lockstep.table_versions disable trigger table_versions_recorded;
select pg_temp.version(0, 2, 'dropped', null, 'carried')
-- rule: table_versions_while_capturing
select pg_temp.version(%(c)s, 2, 'dropped', null, 'carried')
-- rule: table_versions_knowledge_known
select pg_temp.version(%(d)s, 2, 'guessed', null, 'carried')
-- rule: table_versions_origin_known
select pg_temp.version(%(d)s, 2, 'dropped', null, 'rumour')
-- rule: table_versions_schema_of_known
select pg_temp.version(%(d)s, 2, 'known', null, 'baseline')
-- rule: table_versions_schema_of_known
select pg_temp.version(%(d)s, 2, 'dropped', '{}', 'baseline')
-- rule: table_versions_columns_of_known
insert into lockstep.table_versions (source, database, name, version, batch, since_base, since_number,
    since_offset, knowledge, origin, columns_from, generation)
values (%(s)s, 'shop', 'orders', 2, %(d)s, 'binlog', 1, 4, 'dropped', 'statement', '{id}', 1)
-- rule: table_versions_shape_of_known
insert into lockstep.table_versions (source, database, name, version, batch, since_base, since_number,
    since_offset, knowledge, origin, shown_as, generation)
values (%(s)s, 'shop', 'orders', 2, %(d)s, 'binlog', 1, 4, 'dropped', 'carried', '{}', 1)
-- rule: table_versions_generation_positive
insert into lockstep.table_versions (source, database, name, version, batch, since_base, since_number,
    since_offset, knowledge, origin, generation)
values (%(s)s, 'shop', 'orders', 2, %(d)s, 'binlog', 1, 4, 'dropped', 'statement', 0)
-- rule: table_versions_unknown_explained
insert into lockstep.table_versions (source, database, name, version, batch, since_base, since_number,
    since_offset, knowledge, origin, generation)
values (%(s)s, 'shop', 'orders', 2, %(d)s, 'binlog', 1, 4, 'unknown', 'statement', 1)
-- rule: table_versions_statement
insert into lockstep.table_versions (source, database, name, version, batch, since_base, since_number,
    since_offset, knowledge, origin, statement, generation)
values (%(s)s, 'shop', 'orders', 2, %(d)s, 'binlog', 1, 4, 'dropped', 'statement', 0, 1)
-- rule: table_versions_stay
delete from lockstep.table_versions where source = %(s)s

-- rule: schema_statements_batch
alter table lockstep.schema_statements disable trigger schema_statements_recorded;
select pg_temp.statement(0, 'followed')
-- rule: schema_statements_while_capturing
select pg_temp.statement(%(c)s, 'followed')
-- rule: schema_statements_outcome_known
select pg_temp.statement(%(d)s, 'guessed')
-- rule: schema_statements_stay
select pg_temp.statement(%(d)s, 'followed');
update lockstep.schema_statements set outcome = 'partly followed' where source = %(s)s
-- rule: database_versions_batch
alter table lockstep.database_versions disable trigger database_versions_recorded;
select pg_temp.database(0, null, 'latin1')
-- rule: database_versions_while_capturing
select pg_temp.database(%(c)s, null, 'latin1')
-- rule: database_versions_statement
select pg_temp.database(%(d)s, 0, 'latin1')
-- rule: database_versions_whole
select pg_temp.database(%(d)s, null, null)
-- rule: database_versions_code
insert into lockstep.database_versions (
    source, batch, name, since_base, since_number, since_offset, code
) values (%(s)s, %(d)s, 'shop', 'binlog', 1, 4, '{}')
-- rule: database_versions_stay
select pg_temp.database(%(d)s, null, 'latin1');
delete from lockstep.database_versions where source = %(s)s

-- rule: table_events_pk
select pg_temp.event(%(d)s, 'orders', 1, 0, 'truncated', 41), pg_temp.event(%(d)s, 'orders', 1, 0, 'truncated', 41)
-- rule: table_events_ordinal_not_negative
select pg_temp.event(%(d)s, 'orders', 1, -1, 'truncated', 41)
-- rule: table_events_batch
alter table lockstep.table_events disable trigger table_events_recorded;
select pg_temp.event(0, 'orders', 1, 0, 'truncated', 41)
-- rule: table_events_table
select pg_temp.event(%(d)s, 'unknown', 1, 0, 'truncated', 41)
-- rule: table_events_version
select pg_temp.event(%(d)s, 'orders', 2, 0, 'truncated', 41)
-- rule: table_events_kind_known
select pg_temp.event(%(d)s, 'orders', 1, 0, 'lost', 41)
-- rule: table_events_reread_explained
select pg_temp.event(%(d)s, 'orders', 1, 0, 'reread', 41)
-- rule: table_events_origin_of_kind
insert into lockstep.table_events (source, batch, database, name, ordinal, kind, sequence, version,
    place_base, place_number, place_offset, reason)
values (%(s)s, %(d)s, 'shop', 'orders', 0, 'copied', 41, 1, 'binlog', 1, 4, 'it had another name')
-- rule: table_events_origin_of_kind
insert into lockstep.table_events (source, batch, database, name, ordinal, kind, sequence, version,
    place_base, place_number, place_offset, reason, origin_database, origin_name)
values (%(s)s, %(d)s, 'shop', 'orders', 0, 'rebuilt', 41, 1, 'binlog', 1, 4, 'a reload', 'shop', 'people')
-- rule: table_events_ascend
select pg_temp.event(%(d)s, 'orders', 1, 0, 'truncated', 41);
select pg_temp.event(%(d)s, 'orders', 1, 1, 'truncated', 40)
-- rule: table_events_ascend
select pg_temp.event(%(d)s, 'orders', 1, 1, 'truncated', 40);
select pg_temp.event(%(d)s, 'orders', 1, 0, 'truncated', 41)
-- rule: table_events_while_capturing
select pg_temp.event(%(c)s, 'orders', 1, 0, 'truncated', 30)
-- rule: table_events_stay
select pg_temp.event(%(d)s, 'orders', 1, 0, 'truncated', 41);
delete from lockstep.table_events where source = %(s)s
-- rule: batches_sequences_within
select pg_temp.event(%(d)s, 'orders', 1, 0, 'truncated', 42), pg_temp.capture(%(d)s, 100, 1)
-- rule: batches_sequences_within
select pg_temp.snapshot(%(d)s, 'orders', 1, 39), pg_temp.capture(%(d)s, 100, 1)

-- rule: snapshots_once
select pg_temp.snapshot(%(d)s, 'orders', 1, 40), pg_temp.snapshot(%(d)s, 'orders', 1, 40)
-- rule: snapshots_batch
alter table lockstep.snapshots disable trigger snapshots_recorded;
select pg_temp.snapshot(0, 'orders', 1, 40)
-- rule: snapshots_table
select pg_temp.snapshot(%(d)s, 'unknown', 1, 40)
-- rule: snapshots_version
select pg_temp.snapshot(%(d)s, 'orders', 2, 40)
-- rule: snapshots_while_capturing
select pg_temp.snapshot(%(c)s, 'orders', 1, 30)
-- rule: snapshots_stay
select pg_temp.snapshot(%(d)s, 'orders', 1, 40);
update lockstep.snapshots set low_sequence = 41 where source = %(s)s
-- rule: snapshot_files_pk
select pg_temp.snapshot_file(made, 0, 'a', 1, repeat('0', 64)), pg_temp.snapshot_file(made, 0, 'b', 1, repeat('0', 64))
from pg_temp.snapshot(%(d)s, 'orders', 1, 40) made
-- rule: snapshot_files_once
select pg_temp.snapshot_file(made, 0, 'a', 1, repeat('0', 64)), pg_temp.snapshot_file(made, 1, 'a', 1, repeat('0', 64))
from pg_temp.snapshot(%(d)s, 'orders', 1, 40) made
-- rule: snapshot_files_not_negative
select pg_temp.snapshot_file(pg_temp.snapshot(%(d)s, 'orders', 1, 40), 0, 'a', -1, repeat('0', 64))
-- rule: snapshot_files_digest
select pg_temp.snapshot_file(pg_temp.snapshot(%(d)s, 'orders', 1, 40), 0, 'a', 1, 'x')
-- rule: snapshot_files_snapshot
select pg_temp.snapshot_file(0, 0, 'a', 1, repeat('0', 64))
-- rule: snapshot_files_stay
select pg_temp.snapshot_file(pg_temp.snapshot(%(d)s, 'orders', 1, 40), 0, 'a', 1, repeat('0', 64));
delete from lockstep.snapshot_files where path = 'a'

-- rule: source_files_pk
select pg_temp.source_file(%(d)s, '_ddl', 0, 'a', 1, repeat('0', 64)), pg_temp.source_file(%(d)s, '_ddl', 0, 'b', 1, repeat('0', 64))
-- rule: source_files_once
select pg_temp.source_file(%(d)s, '_ddl', 0, 'a', 1, repeat('0', 64)), pg_temp.source_file(%(d)s, '_ddl', 1, 'a', 1, repeat('0', 64))
-- rule: source_files_batch
alter table lockstep.source_files disable trigger source_files_recorded;
select pg_temp.source_file(0, '_ddl', 0, 'a', 1, repeat('0', 64))
-- rule: source_files_name_known
select pg_temp.source_file(%(d)s, '_other', 0, 'a', 1, repeat('0', 64))
-- rule: source_files_digest
select pg_temp.source_file(%(d)s, '_ddl', 0, 'a', 1, 'x')
-- rule: source_files_not_negative
select pg_temp.source_file(%(d)s, '_ddl', 0, 'a', -1, repeat('0', 64))
-- rule: source_files_while_capturing
select pg_temp.source_file(%(c)s, '_ddl', 0, 'a', 1, repeat('0', 64))
-- rule: source_files_stay
select pg_temp.source_file(%(d)s, '_ddl', 0, 'a', 1, repeat('0', 64));
delete from lockstep.source_files where source = %(s)s

-- rule: table_states_need_known
select pg_temp.stop('stopped', %(a)s);
update lockstep.table_states set need = 'patience' where source = %(s)s and condition = 'stopped'
-- rule: table_states_mirror_generation_positive
update lockstep.table_states set mirror_generation = 0 where source = %(s)s
-- rule: table_states_adopted_version_not_negative
update lockstep.table_states set adopted_version = -1 where source = %(s)s

-- rule: table_states_change_with_event
update lockstep.table_states set condition = 'stopped', reason = '', hint = '', position = '',
    stopped_by = 'person' where source = %(s)s
-- rule: table_states_change_with_event
insert into lockstep.table_states values (%(s)s, 'shop', 'new', 'following', 1, 'm', 'c')
-- rule: table_states_event
update lockstep.table_states set mirror = 'n', event = 0 where source = %(s)s
-- rule: table_life_pk
insert into lockstep.table_life overriding system value
select id, source, database, name, event, condition, null, token, details, recorded_at
from lockstep.table_life where source = %(s)s limit 1
-- rule: table_life_batch
select pg_temp.told('nobody', %(d)s)
-- rule: table_life_while_capturing
select pg_temp.told(%(s)s, %(c)s)
-- rule: table_life_lease
insert into lockstep.table_life (source, database, name, event, condition, token, details)
values (%(s)s, 'shop', 'orders', 'stopped', 'stopped', 99, '{}')
-- rule: table_life_condition_known
insert into lockstep.table_life (source, database, name, event, condition, token, details)
values (%(s)s, 'shop', 'orders', 'stopped', 'lost', 1, '{}')
-- rule: table_life_event_known
insert into lockstep.table_life (source, database, name, event, condition, token, details)
values (%(s)s, 'shop', 'orders', 'forgotten', 'stopped', 1, '{}')
-- rule: table_life_stay
update lockstep.table_life set event = 'stopped' where source = %(s)s
-- rule: table_life_stay
delete from lockstep.table_life where source = %(s)s

-- rule: table_orders_lease
insert into lockstep.table_orders (source, token, database, name, kind, author, reason)
values (%(s)s, 99, 'shop', 'orders', 'pause', 'x', '')
-- rule: table_orders_table
select pg_temp.order('unknown', 'pause', 'x')
-- rule: table_orders_kind_known
select pg_temp.order('orders', 'forget', 'x')
-- rule: table_orders_authored
select pg_temp.order('orders', 'pause', ' ')
-- rule: table_orders_schema_resumed
insert into lockstep.table_orders (source, token, database, name, kind, author, reason, schema)
values (%(s)s, 1, 'shop', 'orders', 'pause', 'x', '', '{}')
-- rule: table_orders_renames_structured
insert into lockstep.table_orders (source, token, database, name, kind, author, reason, renames)
values (%(s)s, 1, 'shop', 'orders', 'pause', 'x', '', '[]')
-- rule: table_orders_begin_open
insert into lockstep.table_orders (source, token, database, name, kind, author, reason, done_batch)
values (%(s)s, 1, 'shop', 'orders', 'pause', 'x', '', %(d)s)
-- rule: table_orders_reload_there
select pg_temp.stop('dropped', %(a)s), pg_temp.order('orders', 'reload', 'x')
-- rule: table_orders_pause_at_once
select pg_temp.carry_out(pg_temp.order('orders', 'pause', 'x'), %(d)s)
-- rule: table_orders_resume_stopped
select pg_temp.order('orders', 'resume', 'x')
-- rule: table_orders_supplier_known
insert into lockstep.table_orders (source, token, database, name, kind, author, reason, supplier)
values (%(s)s, 1, 'shop', 'orders', 'reload', 'x', '', 'nobody')
-- rule: table_orders_supplier_reloads
insert into lockstep.table_orders (source, token, database, name, kind, author, reason, supplier)
values (%(s)s, 1, 'shop', 'orders', 'pause', 'x', '', 'source')
-- rule: table_orders_newest_counts
select pg_temp.stop('stopped', %(a)s);
create temporary table given on commit drop as
select pg_temp.order('orders', 'resume', 'x') as older, pg_temp.order('orders', 'resume', 'x') as newer;
select pg_temp.carry_out(older, %(d)s) from given
-- rule: table_orders_done_batch
select pg_temp.stop('stopped', %(a)s);
select pg_temp.carry_out(pg_temp.order('orders', 'resume', 'x'), 0)
-- rule: table_orders_done_while_capturing
select pg_temp.stop('stopped', %(a)s);
select pg_temp.carry_out(pg_temp.order('orders', 'resume', 'x'), %(c)s)
-- rule: table_orders_done_once
select pg_temp.stop('stopped', %(a)s);
create temporary table given on commit drop as select pg_temp.order('orders', 'resume', 'x') as one;
select pg_temp.carry_out(one, %(d)s) from given;
select pg_temp.carry_out(one, null) from given
-- rule: table_orders_stay
select pg_temp.order('orders', 'pause', 'x');
update lockstep.table_orders set author = 'y' where source = %(s)s
-- rule: table_orders_stay
select pg_temp.order('orders', 'pause', 'x');
delete from lockstep.table_orders where source = %(s)s

-- rule: prepared_once
select pg_temp.prepare(%(d)s, 'new'), pg_temp.prepare(%(d)s, 'new')
-- rule: prepared_open_once
select pg_temp.prepare(%(d)s, 'open')
-- rule: prepared_batch
alter table lockstep.prepared disable trigger prepared_recorded;
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position)
values ('nobody', %(d)s, 1, 'new', '', 'x')
-- rule: prepared_while_capturing
select pg_temp.prepare(%(c)s, 'new')
-- rule: prepared_while_capturing
select pg_temp.prepare(0, 'new')
-- rule: prepared_begin_open
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position, ended_by, committed)
values (%(s)s, %(d)s, 1, 'new', '', 'x', %(d)s, true)
-- rule: prepared_begin_open
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position, abandoned)
values (%(s)s, %(d)s, 1, 'new', '', 'x', true)
-- rule: prepared_xid_fits
select pg_temp.prepare(%(d)s, repeat('x', 65))
-- rule: prepared_xid_fits
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position)
values (%(s)s, %(d)s, 1, '', decode(repeat('00', 65), 'hex'), 'x')
-- rule: prepared_file_whole
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position, path)
values (%(s)s, %(d)s, 1, 'new', '', 'x', 'batch.events')
-- rule: prepared_file_whole
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position, path, size, sha256)
values (%(s)s, %(d)s, 1, 'new', '', 'x', 'batch.events', 1, repeat('0', 64))
-- rule: prepared_file_size
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position, path, size, sha256, file_key)
values (%(s)s, %(d)s, 1, 'new', '', 'x', 'batch.events', -1, repeat('0', 64), decode(repeat('00', 32), 'hex'))
-- rule: prepared_file_digest
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position, path, size, sha256, file_key)
values (%(s)s, %(d)s, 1, 'new', '', 'x', 'batch.events', 1, 'x', decode(repeat('00', 32), 'hex'))
-- rule: prepared_file_key
insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position, path, size, sha256, file_key)
values (%(s)s, %(d)s, 1, 'new', '', 'x', 'batch.events', 1, repeat('0', 64), '')
-- rule: prepared_ended_while_capturing
select pg_temp.end(%(b)s, 'open', %(c)s, true)
-- rule: prepared_ended_while_capturing
select pg_temp.abandon(%(d)s), pg_temp.end(%(b)s, 'open', %(d)s, true)
-- rule: prepared_ended_once
select pg_temp.end(%(b)s, 'ended', %(d)s, true)
-- rule: prepared_ended_once
select pg_temp.end(%(b)s, 'ended', %(c)s, false)
-- rule: prepared_ended_once
select pg_temp.end(%(b)s, 'ended', null, null)
-- rule: prepared_end_whole
select pg_temp.end(%(b)s, 'open', %(d)s, null)
-- rule: prepared_end_whole
select pg_temp.end(%(b)s, 'open', null, true)
-- rule: prepared_end_not_before
alter table lockstep.prepared disable trigger prepared_move;
select pg_temp.end(%(b)s, 'open', %(a)s, true)
-- rule: prepared_ended_by
alter table lockstep.prepared disable trigger prepared_move;
select pg_temp.end(%(b)s, 'open', 9999999, true)
-- rule: prepared_end_live
alter table lockstep.prepared disable trigger prepared_move;
update lockstep.prepared set abandoned = true where batch = %(b)s and ended_by = %(c)s
-- rule: prepared_abandoned_with_batch
update lockstep.prepared set abandoned = true where batch = %(b)s and ended_by is null
-- rule: prepared_abandoned_with_batch
select pg_temp.prepare(%(d)s, 'new'), pg_temp.abandon(%(d)s);
update lockstep.prepared set abandoned = false where batch = %(d)s
-- rule: prepared_stay
update lockstep.prepared set sha256 = repeat('0', 64), path = '', size = 0, file_key = decode(repeat('00', 32), 'hex') where batch = %(b)s
-- rule: prepared_stay
delete from lockstep.prepared where batch = %(b)s

-- rule: capture_scopes_pk
insert into lockstep.capture_scopes values
    (%(s)s, %(d)s, '{x.*}', '{}'), (%(s)s, %(d)s, '{y.*}', '{}')
-- rule: capture_scopes_batch
insert into lockstep.capture_scopes values ('nobody', %(d)s, '{x.*}', '{}')
-- rule: capture_scopes_while_capturing
insert into lockstep.capture_scopes values (%(s)s, %(c)s, '{x.*}', '{}')
-- rule: capture_scopes_stay
insert into lockstep.capture_scopes values (%(s)s, %(d)s, '{x.*}', '{}');
update lockstep.capture_scopes set include = '{y.*}' where batch = %(d)s

-- rule: set_anchors_pk
select pg_temp.anchor(%(s)s, %(d)s, 0, 'x', 1, ''), pg_temp.anchor(%(s)s, %(d)s, 0, 'y', 1, '')
-- rule: set_anchors_batch
select pg_temp.anchor('nobody', %(d)s, 0, 'x', 1, '')
-- rule: set_anchors_once
select pg_temp.anchor(%(s)s, %(d)s, 0, 'x', 1, ''), pg_temp.anchor(%(s)s, %(d)s, 1, 'x', 1, '')
-- rule: set_anchors_ordinal_not_negative
select pg_temp.anchor(%(s)s, %(d)s, -1, 'x', 1, '')
-- rule: set_anchors_time_not_negative
select pg_temp.anchor(%(s)s, %(d)s, 0, 'x', -1, '')
-- rule: set_anchors_time_or_digest
select pg_temp.anchor(%(s)s, %(d)s, 0, 'x', 0, '')
-- rule: set_anchors_time_or_digest
select pg_temp.anchor(%(s)s, %(d)s, 0, 'x', 1, 'y')
-- rule: set_anchors_while_capturing
select pg_temp.anchor(%(s)s, %(c)s, 0, 'x', 1, '')
-- rule: set_anchors_stay
select pg_temp.anchor(%(s)s, %(d)s, 0, 'x', 1, '');
delete from lockstep.set_anchors where batch = %(d)s

-- rule: writes_one_open
select pg_temp.intend(%(s)s, 1, 'stock', 'new', %(c)s, %(c)s)
-- rule: writes_never_overlap
select pg_temp.intend(%(s)s, 1, 'orders', %(s)s || '/shop.orders@1', %(c)s, %(c)s)
-- rule: writes_of_captured_batches
select pg_temp.intend(%(s)s, 1, 'orders', 'new', %(b)s, %(c)s)
-- rule: writes_of_captured_batches
select pg_temp.intend(%(s)s, 1, 'orders', 'new', %(c)s, %(d)s)
-- rule: writes_reason_settled
select pg_temp.intend(%(s)s, 1, 'orders', 'new', %(c)s, %(c)s);
update lockstep.writes set reason = 'because' where app_id = 'new'
-- rule: writes_copy_settled
insert into lockstep.writes (source, token, database, name, app_id, first_batch, last_batch, step, copies)
values (%(s)s, 1, 'shop', 'orders', 'new', %(c)s, %(c)s, 'merge', 0)
-- rule: writes_of_merged_tables
update lockstep.table_states set
    condition = 'stopped', reason = '', hint = '', position = '', stopped_by = 'system',
    event = pg_temp.told(source, null)
where source = %(s)s;
select pg_temp.intend(%(s)s, 1, 'orders', 'new', %(c)s, %(c)s)
-- rule: writes_settled_lease
update lockstep.writes set delta_version = 9, settled_at = now(), settled_token = 99
where source = %(s)s and settled_at is null
-- rule: writes_lease
select pg_temp.intend(%(s)s, 99, 'orders', 'new', %(c)s, %(c)s)
-- rule: writes_table
select pg_temp.intend(%(s)s, 1, 'unknown', 'new', %(c)s, %(c)s)
-- rule: writes_first_batch
select pg_temp.intend(%(s)s, 1, 'orders', 'new', 0, %(c)s)
-- rule: writes_last_batch
select pg_temp.intend(%(s)s, 1, 'orders', 'new', %(c)s, 9999999)
-- rule: writes_batches_ascend
select pg_temp.intend(%(s)s, 1, 'orders', 'new', %(c)s, 0)
-- rule: writes_intent_first
insert into lockstep.writes (source, token, database, name, app_id, first_batch, last_batch, step,
                             delta_version, settled_at, settled_token)
values (%(s)s, 1, 'shop', 'orders', 'new', %(c)s, %(c)s, 'merge', 1, now(), 1)
-- rule: writes_settled_whole
update lockstep.writes set delta_version = 9 where source = %(s)s and settled_at is null
-- rule: writes_mirror_settled
update lockstep.writes set mirror = 's/shop/orders' where source = %(s)s and settled_at is null
-- rule: writes_table_id_of_mirror
update lockstep.writes set delta_version = 9, settled_at = now(), settled_token = token, table_id = 'x'
where source = %(s)s and settled_at is null
-- rule: writes_transaction_once
insert into lockstep.writes (source, token, database, name, app_id, txn_version, first_batch,
                             last_batch, step)
select source, token, database, name, app_id, txn_version, %(c)s, %(c)s, 'other'
from lockstep.writes where source = %(s)s and name = 'orders' limit 1
-- rule: writes_intent_stays
update lockstep.writes set last_batch = 0 where source = %(s)s
-- rule: writes_settled_once
update lockstep.writes set delta_version = 99 where source = %(s)s and settled_at is not null
-- rule: writes_given_up_or_settled
update lockstep.writes set delta_version = 99, settled_at = now(), settled_token = token, given_up_at = now()
where source = %(s)s and settled_at is null
-- rule: writes_given_up_once
update lockstep.writes set given_up_at = now() where source = %(s)s and settled_at is null;
update lockstep.writes set given_up_at = null where source = %(s)s and given_up_at is not null
-- rule: writes_delta_version_ascends
update lockstep.writes set delta_version = 3, settled_at = now(), settled_token = token
where source = %(s)s and settled_at is null
-- rule: writes_delta_version_not_negative
alter table lockstep.writes disable trigger writes_move;
update lockstep.writes set delta_version = -1, settled_at = now(), settled_token = token
where source = %(s)s and settled_at is null
-- rule: writes_delta_version_once
alter table lockstep.writes disable trigger writes_move;
update lockstep.writes set delta_version = 3, settled_at = now(), settled_token = token
where source = %(s)s and settled_at is null
-- rule: writes_stay
delete from lockstep.writes where source = %(s)s

-- rule: version_sets_acknowledged
insert into lockstep.version_sets values (%(s)s, %(c)s, 'shop', 'orders', 'm', 1)
-- rule: version_sets_pk
insert into lockstep.version_sets values (%(s)s, %(a)s, 'shop', 'orders', 'm', 1)
-- rule: version_sets_batch
insert into lockstep.version_sets values ('nobody', %(a)s, 'shop', 'new', 'm', 1)
-- rule: version_sets_table
insert into lockstep.version_sets values (%(s)s, %(a)s, 'shop', 'unknown', 'm', 1)
-- rule: version_sets_readable_or_missing
insert into lockstep.version_sets (source, batch, database, name, mirror, delta_version, missing)
values (%(s)s, %(a)s, 'shop', 'orders', 'm', 1, 'paused')
-- rule: version_sets_together_of_missing
insert into lockstep.version_sets (source, batch, database, name, missing)
values (%(s)s, %(a)s, 'shop', 'orders', 'together')
-- rule: version_sets_stay
delete from lockstep.version_sets where source = %(s)s

-- rule: consumers_source
insert into lockstep.consumers (source, name) values ('nobody', 'billing')
-- rule: consumers_named
insert into lockstep.consumers (source, name) values (%(s)s, ' ')
-- rule: consumers_name_once
select pg_temp.consumer(%(s)s), pg_temp.consumer(%(s)s)
-- rule: consumers_start
insert into lockstep.consumers (source, name, start_batch) values (%(s)s, 'billing', 9999999)
-- rule: consumers_start_acknowledged
insert into lockstep.consumers (source, name, start_batch) values (%(s)s, 'billing', %(b)s)
-- rule: consumers_drop_explained
select pg_temp.consumer(%(s)s), pg_temp.drop_consumer(' ')
-- rule: consumers_drop_explained
select pg_temp.consumer(%(s)s);
update lockstep.consumers set dropped_at = now() where source = %(s)s
-- rule: consumers_dropped_once
select pg_temp.consumer(%(s)s), pg_temp.drop_consumer('x'), pg_temp.drop_consumer('y')
-- rule: consumers_stay
select pg_temp.consumer(%(s)s);
update lockstep.consumers set start_batch = %(a)s where source = %(s)s
-- rule: consumers_stay
select pg_temp.consumer(%(s)s);
delete from lockstep.consumers where source = %(s)s

-- rule: deliveries_consumer
select pg_temp.deliver(%(s)s, 9999999, %(a)s, %(a)s)
-- rule: deliveries_first_batch
alter table lockstep.deliveries disable trigger deliveries_begin;
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), 0, %(a)s)
-- rule: deliveries_last_batch
alter table lockstep.deliveries disable trigger deliveries_begin;
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(a)s, 9999999)
-- rule: deliveries_batches_ascend
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(a)s, 0)
-- rule: deliveries_state_known
select pg_temp.end_delivery(older, 'lost') from pg_temp.two_deliveries(%(s)s, %(a)s, %(b)s)
-- rule: deliveries_ended_unless_out
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(a)s, %(a)s);
update lockstep.deliveries set state = 'acknowledged' where source = %(s)s
-- rule: deliveries_begin_out
insert into lockstep.deliveries (source, consumer, first_batch, last_batch, state, ended_at)
values (%(s)s, pg_temp.consumer(%(s)s), %(a)s, %(a)s, 'acknowledged', now())
-- rule: deliveries_of_live_consumers
select pg_temp.consumer(%(s)s), pg_temp.drop_consumer('x');
select pg_temp.deliver(%(s)s, id, %(a)s, %(a)s) from lockstep.consumers where source = %(s)s
-- rule: deliveries_of_live_consumers
create temporary table out on commit drop as
select older from pg_temp.two_deliveries(%(s)s, %(a)s, %(b)s);
select pg_temp.drop_consumer('x');
select pg_temp.end_delivery(older, 'acknowledged') from out
-- rule: deliveries_of_acknowledged_batches
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(a)s, %(b)s)
-- rule: deliveries_of_acknowledged_batches
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(d)s, %(d)s)
-- rule: deliveries_go_on
update lockstep.batches set state = 'acknowledged', acknowledged_at = now() where id = %(b)s;
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(b)s, %(b)s)
-- rule: deliveries_go_on
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(a)s, %(a)s);
select pg_temp.deliver(source, consumer, %(a)s, %(a)s) from lockstep.deliveries where source = %(s)s
-- rule: deliveries_stay
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(a)s, %(a)s);
update lockstep.deliveries set last_batch = %(b)s where source = %(s)s
-- rule: deliveries_stay
select pg_temp.deliver(%(s)s, pg_temp.consumer(%(s)s), %(a)s, %(a)s);
delete from lockstep.deliveries where source = %(s)s
-- rule: deliveries_acknowledged_once
select pg_temp.end_delivery(older, 'acknowledged'), pg_temp.end_delivery(older, 'rolled back')
from pg_temp.two_deliveries(%(s)s, %(a)s, %(b)s)
-- rule: deliveries_rolled_back_once
select pg_temp.end_delivery(newer, 'rolled back'), pg_temp.end_delivery(newer, 'acknowledged')
from pg_temp.two_deliveries(%(s)s, %(a)s, %(b)s)
-- rule: deliveries_acknowledged_in_order
select pg_temp.end_delivery(newer, 'acknowledged') from pg_temp.two_deliveries(%(s)s, %(a)s, %(b)s)
-- rule: deliveries_rolled_back_newest_first
select pg_temp.end_delivery(older, 'rolled back') from pg_temp.two_deliveries(%(s)s, %(a)s, %(b)s)

-- rule: extents_batch
insert into lockstep.extents (source, batch, database, name) values (%(s)s, 0, 'shop', 'x')
-- rule: extents_begins_whole
insert into lockstep.extents (source, batch, database, name, begins_base)
values (%(s)s, %(a)s, 'shop', 'x', 'binlog')
-- rule: extents_empty_whole
insert into lockstep.extents (source, batch, database, name, begins_base, begins_number, begins_offset,
    empty_base)
values (%(s)s, %(a)s, 'shop', 'x', 'binlog', 1, 4, 'binlog')
-- rule: extents_empty_of_partial
insert into lockstep.extents (source, batch, database, name, empty_base, empty_number, empty_offset)
values (%(s)s, %(a)s, 'shop', 'x', 'binlog', 1, 4)
-- rule: extents_stay
insert into lockstep.extents (source, batch, database, name) values (%(s)s, %(a)s, 'shop', 'x');
delete from lockstep.extents where source = %(s)s
-- rule: inherited_source
insert into lockstep.inherited values ('nobody', 0, 1)
-- rule: inherited_pk
insert into lockstep.inherited values (%(s)s, 0, 1), (%(s)s, 0, 2)
-- rule: inherited_span
insert into lockstep.inherited values (%(s)s, 2, 2)

-- rule: ledger_pk
insert into lockstep.ledger (id) select id from lockstep.ledger
-- rule: ledger_alone
insert into lockstep.ledger (id) values (gen_random_uuid())
-- rule: ledger_alone_true
insert into lockstep.ledger (id, alone) values (gen_random_uuid(), false)
-- rule: ledger_stay
update lockstep.ledger set id = gen_random_uuid()
-- rule: searched_folders_source
insert into lockstep.searched_folders values ('nobody', 'x', 0)
-- rule: searched_folders_pk
insert into lockstep.searched_folders values (%(s)s, 'x', 0), (%(s)s, 'x', 0)
-- rule: searched_folders_version_not_negative
insert into lockstep.searched_folders values (%(s)s, 'x', -1)

-- rule: loads_pk
insert into lockstep.loads (id, source, token, database, name, author, reason)
overriding system value
select pg_temp.load(%(s)s, 'orders'), %(s)s, 1, 'shop', 'stock', 'x', 'x'
-- rule: loads_source
insert into lockstep.loads (source, token, database, name, author, reason)
values ('nobody', 1, 'shop', 'orders', 'x', 'x')
-- rule: loads_lease
insert into lockstep.loads (source, token, database, name, author, reason)
values (%(s)s, 99, 'shop', 'orders', 'x', 'x')
-- rule: loads_authored
insert into lockstep.loads (source, token, database, name, author, reason)
values (%(s)s, 1, 'shop', 'orders', ' ', 'x')
-- rule: loads_one_open
select pg_temp.load(%(s)s, 'orders');
select pg_temp.load(%(s)s, 'orders')
-- rule: loads_read_whole
insert into lockstep.loads (source, token, database, name, author, reason, server_uuid)
values (%(s)s, 1, 'shop', 'orders', 'x', 'x', 'x')
-- rule: loads_estimate_not_negative
insert into lockstep.loads (source, token, database, name, author, reason, estimated_rows)
values (%(s)s, 1, 'shop', 'orders', 'x', 'x', -1)
-- rule: loads_followed
select pg_temp.load(%(s)s, 'orders');
update lockstep.loads set followed_batch = %(a)s where source = %(s)s
-- rule: loads_followed_while_read
select pg_temp.follow(pg_temp.load(%(s)s, 'orders', false), %(a)s)
-- rule: loads_followed_batch
select pg_temp.follow(pg_temp.load(%(s)s, 'orders'), 0)
-- rule: loads_followed_version
select pg_temp.load(%(s)s, 'orders');
update lockstep.loads set followed_batch = %(a)s, followed_sequence = 1, followed_version = 99
where source = %(s)s
-- rule: loads_joined_batch
select pg_temp.follow(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), %(a)s);
select pg_temp.read_chunk(id, 0) from lockstep.loads where source = %(s)s;
update lockstep.loads set joined_batch = 999999 where source = %(s)s
-- rule: loads_joined_not_before_followed
select pg_temp.follow(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), %(b)s);
select pg_temp.read_chunk(id, 0) from lockstep.loads where source = %(s)s;
update lockstep.loads set joined_batch = %(a)s where source = %(s)s
-- rule: loads_joined_followed
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null);
select pg_temp.read_chunk(id, 0) from lockstep.loads where source = %(s)s;
update lockstep.loads set joined_batch = %(a)s where source = %(s)s
-- rule: loads_joined_whole
select pg_temp.follow(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, '[1]'), %(a)s);
select pg_temp.read_chunk(id, 0) from lockstep.loads where source = %(s)s;
update lockstep.loads set joined_batch = %(a)s where source = %(s)s
-- rule: loads_joined_whole
select pg_temp.follow(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), %(a)s);
update lockstep.loads set joined_batch = %(a)s where source = %(s)s
-- rule: loads_void_explained
select pg_temp.load(%(s)s, 'orders');
update lockstep.loads set void_because = ' ' where source = %(s)s
-- rule: loads_void_once
select pg_temp.load(%(s)s, 'orders');
update lockstep.loads set void_because = 'x' where source = %(s)s;
update lockstep.loads set void_because = 'y' where source = %(s)s
-- rule: loads_end_once
select pg_temp.follow(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), %(a)s);
select pg_temp.read_chunk(id, 0) from lockstep.loads where source = %(s)s;
update lockstep.loads set joined_batch = %(a)s, void_because = 'x' where source = %(s)s
-- rule: loads_read_once
select pg_temp.load(%(s)s, 'orders');
update lockstep.loads set low_offset = 5 where source = %(s)s
-- rule: load_chunks_pk
select pg_temp.chunk(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), 0, null, null)
-- rule: load_chunks_load
alter table lockstep.load_chunks disable trigger load_chunks_begin;
select pg_temp.chunk(0, 0, null, null)
-- rule: load_chunks_not_negative
alter table lockstep.load_chunks disable trigger load_chunks_begin;
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), -1, '[1]', null)
-- rule: load_chunks_first_from_start
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, '[1]', null)
-- rule: load_chunks_while_reading
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders', false), 0, null, null)
-- rule: load_chunks_go_on
select pg_temp.chunk(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, '[1]'), 1, '[2]', null)
-- rule: load_chunks_read
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null);
update lockstep.load_chunks set rows = 1
where load in (select id from lockstep.loads where source = %(s)s)
-- rule: load_chunks_rows_not_negative
select pg_temp.read_chunk(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), 0, -1)
-- rule: load_chunks_read_once
select pg_temp.read_chunk(pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), 0);
select pg_temp.read_chunk(id, 0) from lockstep.loads where source = %(s)s
-- rule: load_files_pk
insert into lockstep.load_files
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), 0, 0, 'x', 1, 1, 'x';
insert into lockstep.load_files select load, 0, 0, 'x', 1, 1, 'x' from lockstep.load_chunks
-- rule: load_files_chunk
insert into lockstep.load_files values (0, 0, 0, 'x', 1, 1, 'x')
-- rule: load_files_positive
insert into lockstep.load_files
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), 0, 0, 'x', 0, 1, 'x'
-- rule: load_files_path
insert into lockstep.load_files
select pg_temp.chunk(pg_temp.load(%(s)s, 'orders'), 0, null, null), 0, 0, '', 1, 1, 'x'
-- rule: table_proofs_source
insert into lockstep.table_proofs (source, database, name, whole, differing) values ('nobody', 'shop', 'x', true, 1)
-- rule: table_proofs_pk
insert into lockstep.table_proofs (source, database, name, whole, differing)
values (%(s)s, 'shop', 'x', true, 1), (%(s)s, 'shop', 'x', true, 2)
-- rule: table_proofs_differing_not_negative
insert into lockstep.table_proofs (source, database, name, whole, differing, compared_at, proven_at, proof, rows,
    at_base, at_number, at_offset, gtid_set)
values (%(s)s, 'shop', 'x', true, -1, now(), now(), 'exact', 1, 'binlog', 1, 4, '')
-- rule: table_proofs_rows_not_negative
insert into lockstep.table_proofs (source, database, name, whole, differing, compared_at, proven_at, proof, rows,
    at_base, at_number, at_offset, gtid_set)
values (%(s)s, 'shop', 'x', true, 0, now(), now(), 'exact', -1, 'binlog', 1, 4, '')
-- rule: table_proofs_known
insert into lockstep.table_proofs (source, database, name, whole, differing, compared_at, proven_at, proof, rows,
    at_base, at_number, at_offset, gtid_set)
values (%(s)s, 'shop', 'x', true, 0, now(), now(), 'hoped', 1, 'binlog', 1, 4, '')
-- rule: table_proofs_proven_whole
insert into lockstep.table_proofs (source, database, name, whole, differing, proof)
values (%(s)s, 'shop', 'x', true, 1, 'exact')
-- rule: table_proofs_differing_or_proven
insert into lockstep.table_proofs (source, database, name, whole, differing)
values (%(s)s, 'shop', 'x', true, 0)

-- rule: writes_replay_acknowledged
insert into lockstep.writes (source, token, database, name, app_id, first_batch, last_batch, step)
values (%(s)s, 1, 'shop', 'orders', 'new', %(b)s, %(b)s, 'replay')
-- rule: revisions_pk
insert into lockstep.revisions (id, source, token) overriding system value values (7, %(s)s, 1), (7, %(s)s, 1)
-- rule: revisions_lease
insert into lockstep.revisions (source, token) values (%(s)s, 99)
-- rule: revisions_state_known
insert into lockstep.revisions (source, token, state, ended_at) values (%(s)s, 1, 'hoped', now())
-- rule: revisions_ended_unless_open
insert into lockstep.revisions (source, token, ended_at) values (%(s)s, 1, now())
-- rule: revisions_one_open
insert into lockstep.revisions (source, token) values (%(s)s, 1), (%(s)s, 1)
-- rule: revisions_end_once
insert into lockstep.revisions (source, token) values (%(s)s, 1);
update lockstep.revisions set state = 'settled', ended_at = now() where source = %(s)s;
update lockstep.revisions set state = 'given up' where source = %(s)s
-- rule: revisions_stay
insert into lockstep.revisions (source, token) values (%(s)s, 1);
delete from lockstep.revisions where source = %(s)s
-- rule: revised_files_revision
alter table lockstep.revised_files disable trigger revised_files_begin;
insert into lockstep.revised_files select 0, id, 0, 'x', 1, 1, repeat('0', 64) from lockstep.segments
where batch = %(a)s
-- rule: revised_files_segment
alter table lockstep.revised_files disable trigger revised_files_begin;
insert into lockstep.revised_files select pg_temp.revision(%(s)s), 0, 0, 'x', 1, 1, repeat('0', 64)
-- rule: revised_files_of_acknowledged
select pg_temp.revise(%(s)s, %(c)s, 0, 'x', 1)
-- rule: revised_files_pk
select pg_temp.revise(%(s)s, %(a)s, 0, 'x', 1);
insert into lockstep.revised_files select f.revision, segment, 0, 'y', 1, 1, sha256
from lockstep.revised_files f join lockstep.revisions r on r.id = f.revision where r.source = %(s)s
-- rule: revised_files_once
select pg_temp.revise(%(s)s, %(a)s, 0, 'x', 1);
insert into lockstep.revised_files select f.revision, segment, 1, 'x', 1, 1, sha256
from lockstep.revised_files f join lockstep.revisions r on r.id = f.revision where r.source = %(s)s
-- rule: revised_files_not_negative
select pg_temp.revise(%(s)s, %(a)s, 0, 'x', -1)
-- rule: revised_files_digest
select pg_temp.revise(%(s)s, %(a)s, 0, 'x', 1, 'x')
-- rule: revised_files_stay
select pg_temp.revise(%(s)s, %(a)s, 0, 'x', 1);
update lockstep.revised_files set path = 'y'

-- rule: upkept_pk
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
select source, mirror, 5, 4, token from lockstep.writes w, generate_series(1, 2)
where source = %(s)s and delta_version = 4
-- rule: upkept_lease
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
select source, mirror, 5, 4, 99 from lockstep.writes
where source = %(s)s and delta_version = 4
-- rule: upkept_shows_earlier
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
select source, mirror, 4, 4, token from lockstep.writes
where source = %(s)s and delta_version = 4
-- rule: upkept_of_a_write
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
select source, mirror, 5, 3, token from lockstep.writes
where source = %(s)s and delta_version = 4
-- rule: upkept_unchanged
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
select source, mirror, 5, 2, token from lockstep.writes
where source = %(s)s and delta_version = 2
-- rule: upkept_stay
insert into lockstep.upkept (source, mirror, delta_version, shows, token)
select source, mirror, 5, 4, token from lockstep.writes
where source = %(s)s and delta_version = 4;
update lockstep.upkept set delta_version = 6 where source = %(s)s
-- rule: spark_clients_pk
insert into lockstep.spark_clients
select %(s)s, '00000000-0000-4000-8000-000000000001', 1 from generate_series(1, 2)
-- rule: spark_clients_lease
insert into lockstep.spark_clients values (%(s)s, '00000000-0000-4000-8000-000000000001', 99)

-- rule: forgotten_acknowledged
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(c)s, 1)
-- rule: forgotten_unneeded
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 1)
-- rule: forgotten_goes_on
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 1);
alter table lockstep.forgotten enable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 1)
-- rule: forgotten_pk
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 1), (%(s)s, %(a)s, 1)
-- rule: forgotten_batch
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, 0, 1)
-- rule: forgotten_lease
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 99)
-- rule: forgotten_deleted_after_unlisted
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token, deleted_at) values (%(s)s, %(a)s, 1, now())
-- rule: forgotten_move_on
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token, unlisted_at, deleted_at)
values (%(s)s, %(a)s, 1, now(), now());
update lockstep.forgotten set deleted_at = null where source = %(s)s
-- rule: forgotten_stay
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 1);
delete from lockstep.forgotten where source = %(s)s
-- rule: consumers_start_kept
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 1);
insert into lockstep.consumers (source, name) values (%(s)s, 'late')

-- rule: tightened_pk
insert into lockstep.tightened (id, source, token, database, name, through, columns, fewer_rows, rehashed)
overriding system value
select 1, %(s)s, 1, 'shop', 'orders', %(a)s, '{note}', false, false from generate_series(1, 2)
-- rule: tightened_batch
select pg_temp.tighten(%(s)s, 0)
-- rule: tightened_lease
insert into lockstep.tightened (source, token, database, name, through, columns, fewer_rows, rehashed)
values (%(s)s, 99, 'shop', 'orders', %(a)s, '{note}', false, false)
-- rule: tightened_less
insert into lockstep.tightened (source, token, database, name, through, columns, fewer_rows, rehashed)
values (%(s)s, 1, 'shop', 'orders', %(a)s, '{}', false, false)
-- rule: tightened_kept_reasoned
insert into lockstep.tightened
    (source, token, database, name, through, columns, fewer_rows, rehashed, kept_because)
values (%(s)s, 1, 'shop', 'orders', %(a)s, '{note}', false, false, ' ')
-- rule: tightened_kept_or_begun
insert into lockstep.tightened
    (source, token, database, name, through, columns, fewer_rows, rehashed, kept_because, begun_at)
values (%(s)s, 1, 'shop', 'orders', %(a)s, '{note}', false, false, 'x', now())
-- rule: tightened_cleared_after_begun
insert into lockstep.tightened
    (source, token, database, name, through, columns, fewer_rows, rehashed, cleared_at)
values (%(s)s, 1, 'shop', 'orders', %(a)s, '{note}', false, false, now())
-- rule: tightened_unneeded
select pg_temp.tighten(%(s)s, %(a)s);
update lockstep.tightened set begun_at = now()
-- rule: tightened_move_on
select pg_temp.tighten(%(s)s, %(a)s);
update lockstep.tightened set columns = '{}', fewer_rows = true
-- rule: tightened_stay
select pg_temp.tighten(%(s)s, %(a)s);
delete from lockstep.tightened
-- rule: table_versions_stay
set local lockstep.clearing = 'on';
update lockstep.table_versions set knowledge = 'unknown' where source = %(s)s
-- rule: table_versions_stay
update lockstep.table_versions set schema = '{}' where source = %(s)s
-- rule: source_files_stay
select pg_temp.source_file(%(d)s, '_ddl', 0, 'a', 1, repeat('0', 64));
set local lockstep.clearing = 'on';
update lockstep.source_files set images = images + 1 where source = %(s)s

-- rule: forgotten_pruned_deleted
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token, pruned_at) values (%(s)s, %(a)s, 1, now())
-- rule: pruned_deleted
alter table lockstep.forgotten disable trigger forgotten_begin;
insert into lockstep.forgotten (source, through, token) values (%(s)s, %(a)s, 1);
select lockstep.prune_contents(%(s)s, 0, %(a)s, 9)
-- rule: pruned_deleted
select lockstep.prune_leases(%(s)s, 0, %(a)s, 9)
-- rule: pruned_deleted
select lockstep.prune_batches(%(s)s, 0, %(a)s, 9)

-- rule: batches_previous_earlier
alter table lockstep.batches disable trigger user;
update lockstep.batches set previous_batch = id where id = %(d)s
-- rule: batches_forgotten_between
alter table lockstep.batches disable trigger user;
update lockstep.batches set continued_batch = null, forgotten_batch = id where id = %(d)s
-- rule: batches_forgotten_between
alter table lockstep.batches disable trigger user;
update lockstep.batches set continued_batch = null, forgotten_batch = previous_batch where id = %(d)s
-- rule: batches_forgotten_between
alter table lockstep.batches disable trigger user;
update lockstep.batches set continued_batch = null, forgotten_batch = %(a)s, previous_batch = null
where id = %(c)s
-- rule: batches_begin_without_forgotten
insert into lockstep.batches (source, state, forgotten_batch, sequence_before, token, start_base,
                              start_number, start_offset, start_gtid_set, start_server_uuid)
values (%(s)s, 'capturing', %(b)s, 0, 1, 'binlog', 1, 4, '', '')
-- rule: batches_start_stays
update lockstep.batches set continued_batch = null, forgotten_batch = continued_batch where id = %(d)s
-- rule: batches_relinked
set local lockstep.pruning = 'on';
update lockstep.batches set continued_batch = null, forgotten_batch = continued_batch where id = %(d)s
-- rule: batches_relinked
set local lockstep.pruning = 'on';
update lockstep.batches set changes = 1 where id = %(d)s
-- rule: batches_go_forgotten
set local lockstep.pruning = 'on';
delete from lockstep.batches where id = %(a)s

-- rule: registrations_pk
insert into lockstep.registrations (source, catalog, database, name, schema_name, table_name, location)
select %(s)s, 'c', 'shop', 'orders', 'shop', 'orders' || n, '' from generate_series(1, 2) n
-- rule: registrations_name
insert into lockstep.registrations (source, catalog, database, name, schema_name, table_name, location)
select %(s)s, 'c', 'shop', 'orders' || n, 'shop', 'orders', '' from generate_series(1, 2) n
-- rule: registrations_source
insert into lockstep.registrations (source, catalog, database, name, schema_name, table_name, location)
values ('nobody', 'c', 'shop', 'orders', 'shop', 'orders', '')
-- rule: registrations_made
insert into lockstep.registrations
values (%(s)s, 'c', 'shop', 'orders', 'shop', 'orders', '', '0123456789abcdef', null)
-- rule: registrations_renamed
insert into lockstep.registrations
values (%(s)s, 'c', 'shop', 'orders', 'shop', 'orders', '', null, null, 'm_shop', null)
-- rule: registrations_renamed
insert into lockstep.registrations
values (%(s)s, 'c', 'shop', 'orders', 'shop', 'orders', '', 'abc', 1, 'm_shop', 'orders')
-- rule: catalogs_pk
insert into lockstep.catalogs select %(s)s, 'c', n from generate_series(1, 2) n
-- rule: catalogs_source
insert into lockstep.catalogs values ('nobody', 'c', 1)
-- rule: catalogs_statement_not_negative
insert into lockstep.catalogs values (%(s)s, 'c', -1)
