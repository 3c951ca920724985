-- Short words for the steps that violations.sql takes.

create function pg_temp.decide(
    a_source text, a_kind text, a_batch bigint, between_them text, some_tables text[], a_choice bigint
) returns bigint language sql as $$
    insert into lockstep.decisions (source, token, kind, rule, reason, facts, author, previous_batch,
        continuity, gap_tables, override)
    values (a_source, 1, a_kind, 'x', 'x', '{}', 'x', a_batch, between_them, some_tables, a_choice)
    returning id
$$;

create function pg_temp.attempt(
    a_source text, a_kind text, a_recovery text, a_hint text, a_base text,
    a_number bigint, an_offset bigint
) returns void language sql as $$
    insert into lockstep.decisions (source, token, kind, rule, reason, facts, author, recovery, hint,
        head_base, head_number, head_offset)
    values (a_source, 1, a_kind, 'x', 'x', '{}', 'x', a_recovery, a_hint, a_base, a_number,
        an_offset)
$$;

create function pg_temp.choose(a_source text, a_place text, a_reason text) returns bigint
language sql as $$
    insert into lockstep.overrides (source, token, place, reason, author)
    values (a_source, 1, a_place, a_reason, 'x') returning id
$$;

create function pg_temp.tighten(a_source text, a_batch bigint) returns void language sql as $$
    insert into lockstep.tightened (source, token, database, name, through, columns, fewer_rows, rehashed)
    values (a_source, 1, 'shop', 'orders', a_batch, '{note}', false, false)
$$;

create function pg_temp.begin(at bigint, a_continued bigint, a_decision bigint, a_base bigint)
returns void language sql as $$
    insert into lockstep.batches (source, state, continued_batch, start_decision, sequence_before, token,
        start_base, start_number, start_offset, start_gtid_set, start_server_uuid)
    select source, 'capturing', a_continued, a_decision, a_base, token,
        start_base, start_number, start_offset, start_gtid_set, start_server_uuid
    from lockstep.batches where id = at
$$;

create function pg_temp.anchor(
    a_source text, a_batch bigint, a_number integer, an_origin text, moment bigint, a_digest text
) returns void language sql as $$
    insert into lockstep.set_anchors
    values (a_source, a_batch, a_number, an_origin, an_origin || ':1', moment, a_digest)
$$;

create function pg_temp.abandon(a_batch bigint) returns void language sql as $$
    update lockstep.batches set state = 'abandoned', abandoned_at = now(), abandoned_because = ''
    where id = a_batch
$$;

create function pg_temp.capture(a_batch bigint, further integer, some_changes bigint)
returns void language sql as $$
    update lockstep.batches set state = 'captured', captured_at = now(), changes = some_changes,
        end_base = start_base, end_number = start_number, end_offset = start_offset + further,
        end_gtid_set = '', end_server_uuid = '', anchor_offset = 1, anchor_length = 1,
        anchor_crc32 = 1, anchor_gtid = '', anchor_file_created = 1
    where id = a_batch
$$;

create function pg_temp.segment(
    a_batch bigint, a_table text, version integer, inserted bigint, first bigint, last bigint
) returns void language sql as $$
    insert into lockstep.segments (source, batch, database, name, schema_version, inserted,
        updated, deleted, first_sequence, last_sequence)
    values ((select source from lockstep.batches order by id desc limit 1), a_batch, 'shop',
        a_table, version, inserted, 0, 0, first, last)
$$;

create function pg_temp.file(
    a_batch bigint, ordinal integer, path text, images bigint, digest text
) returns void language sql as $$
    insert into lockstep.segment_files
    select id, ordinal, path, images, 1, digest from lockstep.segments where batch = a_batch
$$;

create function pg_temp.intend(
    a_source text, a_token bigint, a_table text, an_app text, first bigint, last bigint
) returns void language sql as $$
    insert into lockstep.writes (source, token, database, name, app_id, first_batch, last_batch, step)
    values (a_source, a_token, 'shop', a_table, an_app, first, last, 'merge')
$$;

create function pg_temp.prepare(a_batch bigint, a_gtrid text) returns void language sql as $$
    insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position)
    values ((select source from lockstep.batches order by id desc limit 1), a_batch, -1,
        a_gtrid::bytea, '\x00ff', 'x')
$$;

create function pg_temp.end(a_batch bigint, a_gtrid text, a_later_batch bigint, a_commit boolean)
returns void language sql as $$
    update lockstep.prepared set ended_by = a_later_batch, committed = a_commit
    where batch = a_batch and gtrid = a_gtrid::bytea
$$;

create function pg_temp.consumer(a_source text) returns bigint language sql as $$
    insert into lockstep.consumers (source, name) values (a_source, 'billing') returning id
$$;

create function pg_temp.deliver(a_source text, a_consumer bigint, first bigint, last bigint)
returns bigint language sql as $$
    insert into lockstep.deliveries (source, consumer, first_batch, last_batch)
    values (a_source, a_consumer, first, last) returning id
$$;

create function pg_temp.end_delivery(a_delivery bigint, a_state text) returns void language sql as $$
    update lockstep.deliveries set state = a_state, ended_at = now() where id = a_delivery
$$;

-- Two deliveries of a new consumer, of one acknowledged batch each.
create function pg_temp.two_deliveries(a_source text, a_batch bigint, a_later_batch bigint)
returns table (older bigint, newer bigint) language plpgsql as $$
declare
    a_consumer bigint = pg_temp.consumer(a_source);
begin
    update lockstep.batches set state = 'acknowledged', acknowledged_at = now() where id = a_later_batch;
    older = pg_temp.deliver(a_source, a_consumer, a_batch, a_batch);
    newer = pg_temp.deliver(a_source, a_consumer, a_later_batch, a_later_batch);
    return next;
end
$$;

create function pg_temp.drop_consumer(a_reason text) returns void language sql as $$
    update lockstep.consumers set dropped_at = now(), dropped_by = 'x', dropped_because = a_reason
    where id = (select max(id) from lockstep.consumers)
$$;

create function pg_temp.version(
    a_batch bigint, a_number integer, a_knowledge text, a_schema text, an_origin text
) returns void language sql as $$
    insert into lockstep.table_versions (source, database, name, version, batch, since_base,
        since_number, since_offset, knowledge, origin, schema, fingerprint, reason, generation)
    values ((select source from lockstep.batches order by id desc limit 1), 'shop', 'orders',
        a_number, a_batch, 'binlog', 1, 4, a_knowledge, an_origin, a_schema::json,
        case when a_schema is not null then 'x' end,
        case a_knowledge when 'unknown' then 'x' end, 1)
$$;

create function pg_temp.statement(a_batch bigint, an_outcome text) returns bigint language sql as $$
    insert into lockstep.schema_statements (source, batch, begin_base, begin_number, begin_offset,
        end_base, end_number, end_offset, gtid, database, text, context, outcome, effects)
    values ((select source from lockstep.batches order by id desc limit 1), a_batch, 'binlog', 1, 4,
        'binlog', 1, 5, '', '""', '"x"', '{}', an_outcome, '[]')
    returning id
$$;

create function pg_temp.database(a_batch bigint, a_statement bigint, a_charset text) returns void
language sql as $$
    insert into lockstep.database_versions (source, name, batch, since_base, since_number,
        since_offset, charset, collation_name, statement)
    values ((select source from lockstep.batches order by id desc limit 1), 'shop', a_batch,
        'binlog', 1, 4, a_charset, 'x', a_statement)
$$;

create function pg_temp.event(
    a_batch bigint, a_table text, a_version integer, an_ordinal integer, a_kind text, a_sequence bigint
) returns void language sql as $$
    insert into lockstep.table_events (source, batch, database, name, ordinal, kind, sequence, version,
        place_base, place_number, place_offset)
    values ((select source from lockstep.batches order by id desc limit 1), a_batch, 'shop', a_table,
        an_ordinal, a_kind, a_sequence, a_version, 'binlog', 1, 4)
$$;

create function pg_temp.snapshot(a_batch bigint, a_table text, a_version integer, a_sequence bigint)
returns bigint language sql as $$
    insert into lockstep.snapshots (source, batch, database, name, version, low_sequence)
    values ((select source from lockstep.batches order by id desc limit 1), a_batch, 'shop', a_table,
        a_version, a_sequence)
    returning id
$$;

create function pg_temp.snapshot_file(
    a_snapshot bigint, an_ordinal integer, a_path text, some_images bigint, a_digest text
) returns void language sql as $$
    insert into lockstep.snapshot_files values (a_snapshot, an_ordinal, a_path, some_images, 1, a_digest)
$$;

create function pg_temp.source_file(
    a_batch bigint, a_name text, an_ordinal integer, a_path text, some_images bigint, a_digest text
) returns void language sql as $$
    insert into lockstep.source_files
    values ((select source from lockstep.batches order by id desc limit 1), a_batch, a_name, an_ordinal,
        a_path, some_images, 1, a_digest)
$$;

create function pg_temp.told(a_source text, a_batch bigint) returns bigint language sql as $$
    insert into lockstep.table_life (source, database, name, event, condition, batch, token, details)
    values (a_source, 'shop', 'orders', 'followed', 'following', a_batch, 1, '{}')
    returning id
$$;

create function pg_temp.stop(a_condition text, a_batch bigint) returns void language sql as $$
    update lockstep.table_states set condition = a_condition,
        reason = case a_condition when 'stopped' then '' end,
        hint = case a_condition when 'stopped' then '' end,
        position = case a_condition when 'stopped' then '' end,
        stopped_by = case a_condition when 'stopped' then 'system' end,
        stopped_batch = a_batch, stopped_base = 'binlog', stopped_number = 1, stopped_offset = 4,
        event = pg_temp.told(source, null)
    where source = (select source from lockstep.batches order by id desc limit 1)
$$;

create function pg_temp.order(a_table text, a_kind text, an_author text) returns bigint
language sql as $$
    insert into lockstep.table_orders (source, token, database, name, kind, author, reason)
    values ((select source from lockstep.batches order by id desc limit 1), 1, 'shop', a_table,
        a_kind, an_author, '')
    returning id
$$;

create function pg_temp.carry_out(an_order bigint, a_batch bigint) returns void language sql as $$
    update lockstep.table_orders set done_batch = a_batch where id = an_order
$$;

create function pg_temp.load(a_source text, a_table text, is_read boolean default true)
returns bigint language sql as $$
    insert into lockstep.loads (source, token, database, name, author, reason, schema, server_uuid,
        low_base, low_number, low_offset)
    select a_source, 1, 'shop', a_table, 'x', 'x',
        case when is_read then '{}'::json end, case when is_read then 'x' end,
        case when is_read then 'binlog' end, case when is_read then 1 end,
        case when is_read then 4 end
    returning id
$$;

create function pg_temp.chunk(a_load bigint, a_number integer, an_after json, a_through json)
returns bigint language sql as $$
    insert into lockstep.load_chunks (load, number, after, through)
    values (a_load, a_number, an_after, a_through) returning load
$$;

create function pg_temp.read_chunk(a_load bigint, a_number integer, some_rows bigint default 1)
returns void language sql as $$
    update lockstep.load_chunks set low_base = 'binlog', low_number = 1, low_offset = 4,
        high_base = 'binlog', high_number = 1, high_offset = 4, rows = some_rows, seconds = 1,
        read_at = now()
    where load = a_load and number = a_number
$$;

create function pg_temp.follow(a_load bigint, a_batch bigint) returns void language sql as $$
    update lockstep.loads set
        followed_batch = a_batch, followed_sequence = 1, followed_version = 1
    where id = a_load
$$;

create function pg_temp.revision(a_source text) returns bigint language sql as $$
    insert into lockstep.revisions (source, token) values (a_source, 1) returning id
$$;

create function pg_temp.revise(
    a_source text, a_batch bigint, a_number integer, a_path text, a_count bigint,
    a_digest text default repeat('0', 64)
) returns void language sql as $$
    insert into lockstep.revised_files
    select pg_temp.revision(a_source), s.id, a_number, a_path, a_count, 1, a_digest
    from lockstep.segments s where s.source = a_source and s.batch = a_batch limit 1
$$;
