-- What a ledger of migration 0004 may hold behind data_0001.sql and data_0002.sql: tables
-- whose versions are table maps' columns, one of them first seen in a batch that was
-- abandoned; orders quarantined in a capture, stock by a merge, both with changes that no
-- write covers.

create function pg_temp.table_of(a_name text, a_batch bigint, a_place text) returns void
language sql as $$
    insert into lockstep.table_states (source, database, name, condition, generation, mirror, changelog)
    values ('shop', 'shop', a_name, 'active', 1, 's/' || a_name, 's/_changes/' || a_name);
    insert into lockstep.table_versions (source, database, name, version, batch, structure, first_seen)
    values ('shop', 'shop', a_name, 1, a_batch, jsonb_build_object(
        'database', 'shop', 'table', a_name, 'primary_key', '["id"]'::jsonb,
        'columns', '[{"name": "id", "type": "int", "nullable": false, "unsigned": true, "length": null,
            "precision": null, "scale": null, "charset": null, "members": []},
            {"name": "note", "type": "text", "nullable": true, "unsigned": false, "length": 2,
            "precision": null, "scale": null, "charset": "utf8mb4", "members": []}]'::jsonb), a_place)
$$;

create function pg_temp.capture(a_start integer, some_changes integer) returns void language sql as $$
    update lockstep.batches set state = 'captured', captured_at = clock_timestamp(),
        end_base = 'binlog', end_number = 1, end_offset = a_start + 100, end_gtid_set = '',
        end_server_uuid = 'uuid', witness_offset = 1, witness_length = 1, witness_crc32 = 1,
        witness_gtid = '', witness_file_created = 1, changes = some_changes
    where state = 'capturing'
$$;

create function pg_temp.begin(a_start integer, a_base bigint) returns bigint language sql as $$
    insert into lockstep.batches (source, state, predecessor, base, token, start_base,
        start_number, start_offset, start_gtid_set, start_server_uuid)
    select 'shop', 'capturing', max(id), a_base, 1, 'binlog', 1, a_start, '', 'uuid'
    from lockstep.batches where state in ('captured', 'acknowledged')
    returning id
$$;

create function pg_temp.segment(a_batch bigint, a_name text, a_sequence bigint) returns void
language sql as $$
    insert into lockstep.segments (source, batch, database, name, schema_version, inserted, updated,
        deleted, first_sequence, last_sequence)
    values ('shop', a_batch, 'shop', a_name, 1, 1, 0, 0, a_sequence, a_sequence)
$$;

select pg_temp.table_of('orders', pg_temp.begin(404, 0), 'binlog.000001:450');
select pg_temp.segment(max(id), 'orders', 1) from lockstep.batches;
select pg_temp.capture(404, 1);
update lockstep.batches set state = 'abandoned', abandoned_at = clock_timestamp(),
    abandoned_because = 'damaged'
where id = (select max(id) from lockstep.batches);

select pg_temp.begin(404, 0);
select pg_temp.segment(max(id), 'orders', 1) from lockstep.batches;
select pg_temp.table_of('stock', max(id), 'binlog.000001:480') from lockstep.batches;
select pg_temp.segment(max(id), 'stock', 2) from lockstep.batches;
select pg_temp.capture(404, 2);
insert into lockstep.writes (source, token, database, name, app_id, first_batch, last_batch, step)
select 'shop', 1, 'shop', 'orders', 'orders', max(id), max(id), 'merge' from lockstep.batches;
update lockstep.writes set delta_version = 1, settled_at = clock_timestamp();
update lockstep.table_states set condition = 'quarantined', reason = 'r', hint = 'h', position = 'batch 8'
where name = 'stock';

select pg_temp.begin(504, 2);
select pg_temp.segment(max(id), 'orders', 3) from lockstep.batches;
update lockstep.table_states set condition = 'quarantined', reason = 'r', hint = 'h',
    position = 'binlog.000001:550'
where name = 'orders';
select pg_temp.capture(504, 1);
