-- What a ledger of migration 0002 may hold behind data_0001.sql: start decisions with the
-- patterns of their runs, as they were recorded then, and a prepared XA transaction.

create function pg_temp.decide(an_at integer) returns bigint language sql as $$
    insert into lockstep.decisions (source, token, kind, rule, reason, facts, author)
    values ('shop', 1, 'start', 'resume-same-server', 'x', jsonb_build_object(
        'gtid_mode', 'OFF', 'at', 'binlog.000001:' || an_at,
        'tables', '{"include": ["shop.*"], "exclude": ["shop.a"]}'::jsonb), 'lockstep')
    returning id
$$;

create function pg_temp.capture(a_start integer) returns void language sql as $$
    insert into lockstep.batches (source, state, predecessor, base, token, start_base,
        start_number, start_offset, start_gtid_set, start_server_uuid)
    select 'shop', 'capturing', max(id), 0, 1, 'binlog', 1, a_start, '', 'uuid'
    from lockstep.batches where state in ('captured', 'acknowledged');
    insert into lockstep.prepared (source, batch, format_id, gtrid, bqual, position)
    select source, id, 1, 'xa'::bytea || id::text::bytea, '', 'binlog.000001:50'
    from lockstep.batches where state = 'capturing';
    update lockstep.batches set state = 'captured', captured_at = clock_timestamp(),
        end_base = 'binlog', end_number = 1, end_offset = a_start + 100, end_gtid_set = '',
        end_server_uuid = 'uuid', witness_offset = 1, witness_length = 1, witness_crc32 = 1,
        witness_gtid = '', witness_file_created = 1
    where state = 'capturing'
$$;

select pg_temp.decide(204);
select pg_temp.capture(204);
select pg_temp.decide(304);
select pg_temp.capture(304);
update lockstep.batches set state = 'abandoned', abandoned_at = clock_timestamp(),
    abandoned_because = 'damaged'
where id = (select max(id) from lockstep.batches);
select pg_temp.decide(304);
select pg_temp.decide(304);
select pg_temp.capture(304);
