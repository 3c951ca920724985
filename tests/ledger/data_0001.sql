-- What a ledger of migration 0001 may hold: the source shop with three batches, one
-- acknowledged, one abandoned, one captured. Values are those of made.py.

insert into lockstep.sources (name, token) values ('shop', 1);
insert into lockstep.leases (source, token, holder, backend_pid) values ('shop', 1, 'a test', 1);
insert into lockstep.decisions (source, token, kind, rule, reason, facts, author)
values ('shop', 1, 'start', 'earliest', 'nothing was read before', '{}', 'lockstep');

create function pg_temp.capture(a_start integer) returns void language sql as $$
    insert into lockstep.batches (source, state, predecessor, start_decision, base, token, start_base,
        start_number, start_offset, start_gtid_set, start_server_uuid)
    select 'shop', 'capturing', max(id), case when count(*) = 0 then 1 end, 0, 1, 'binlog',
        1, a_start, '', 'uuid'
    from lockstep.batches where state = 'acknowledged';
    update lockstep.batches set state = 'captured', captured_at = now(),
        end_base = 'binlog', end_number = 1, end_offset = a_start + 100, end_gtid_set = '',
        end_server_uuid = 'uuid', witness_offset = 1, witness_length = 1, witness_crc32 = 1,
        witness_gtid = '', witness_file_created = 1
    where state = 'capturing'
$$;

select pg_temp.capture(4);
update lockstep.batches set state = 'merged', merged_at = now();
update lockstep.batches set state = 'acknowledged', acknowledged_at = now();
select pg_temp.capture(104);
update lockstep.batches set state = 'abandoned', abandoned_at = now(), abandoned_because = 'damaged'
where state = 'captured';
select pg_temp.capture(104);
