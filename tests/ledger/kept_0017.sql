set session_replication_role = replica;

delete from lockstep.ledger;

insert into lockstep.batches (id, source, state, predecessor, start_decision, base, token, created_at, start_base, start_number, start_offset, start_gtid_set, start_server_uuid, start_committed_at, end_base, end_number, end_offset, end_gtid_set, end_server_uuid, end_committed_at, witness_offset, witness_length, witness_crc32, witness_gtid, witness_file_created, changes, transactions, log_bytes, captured_at, merged_at, acknowledged_at, abandoned_at, abandoned_because, follows, by_gtid, server_started_at, server_resets)
overriding system value values
('1', 'shop', 'acknowledged', NULL, '1', '0', '1', '2026-11-22 20:50:36.26429+00', 'binlog', '1', '4', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '20', '3', '100', '2026-11-22 20:50:36.282063+00', '2026-11-22 20:50:36.303228+00', '2026-11-22 20:50:36.307696+00', NULL, NULL, NULL, 'true', '2026-11-01 06:00:00.123456+00', '0'),
('2', 'shop', 'captured', '1', NULL, '20', '1', '2026-11-22 20:50:36.329482+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '10', '3', '100', '2026-11-22 20:50:36.342266+00', NULL, NULL, NULL, NULL, '1', 'true', NULL, NULL),
('3', 'shop', 'captured', NULL, '2', '30', '1', '2026-11-22 20:50:36.349535+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '10', '3', '100', '2026-11-22 20:50:36.354742+00', NULL, NULL, NULL, NULL, '2', 'true', NULL, NULL),
('4', 'shop', 'abandoned', '3', NULL, '40', '1', '2026-11-22 20:50:36.358361+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '0', '0', '0', NULL, NULL, NULL, '2026-11-22 20:50:36.362803+00', 'cut off', '3', 'false', NULL, NULL),
('5', 'shop', 'captured', NULL, '5', '40', '1', '2026-11-22 20:50:36.378096+00', 'binlog', '3', '4', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '3', '500', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '0', '3', '100', '2026-11-22 20:50:36.3824+00', NULL, NULL, NULL, NULL, '3', 'false', NULL, NULL),
('6', 'shop', 'capturing', '5', NULL, '40', '1', '2026-11-22 20:50:36.389771+00', 'binlog', '3', '500', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '0', '0', '0', NULL, NULL, NULL, NULL, NULL, '5', 'false', NULL, NULL),
('7', 'till', 'captured', NULL, '6', '0', '1', '2026-11-22 20:50:36.405396+00', 'binlog', '1', '4', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '0', '3', '100', '2026-11-22 20:50:36.407695+00', NULL, NULL, NULL, NULL, NULL, 'false', NULL, NULL),
('8', 'till', 'captured', '7', NULL, '0', '1', '2026-11-22 20:50:36.410589+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '0', '3', '100', '2026-11-22 20:50:36.418531+00', NULL, NULL, NULL, NULL, '7', 'true', NULL, NULL);

select setval(pg_get_serial_sequence('lockstep.batches', 'id'), 8);

insert into lockstep.capture_scopes (source, batch, include, exclude)
overriding system value values
('shop', '1', '{shop.*}', '{}');

insert into lockstep.consumers (id, source, name, start_batch, made_at, dropped_at, dropped_by, dropped_because)
overriding system value values
('1', 'shop', 'billing', NULL, '2026-11-22 20:50:36.312449+00', NULL, NULL, NULL);

select setval(pg_get_serial_sequence('lockstep.consumers', 'id'), 1);

insert into lockstep.database_versions (id, source, name, batch, since_base, since_number, since_offset, charset, collation_name, statement)
overriding system value values
('1', 'shop', 'shop', '1', 'binlog', '1', '4', 'latin1', 'latin1_bin', NULL);

select setval(pg_get_serial_sequence('lockstep.database_versions', 'id'), 1);

insert into lockstep.decisions (id, source, token, kind, rule, reason, facts, author, decided_at, follows, continuity, override, gap_tables)
overriding system value values
('1', 'shop', '1', 'start', 'earliest', 'nothing was read before', '{"binlogs": ["binlog.000001"]}', 'lockstep', '2026-11-22 20:50:36.258218+00', NULL, NULL, NULL, '{}'),
('2', 'shop', '1', 'start', 'catching-up', 'the disk was lost', '{}', 'ada', '2026-11-22 20:50:36.347375+00', '2', 'contiguous', NULL, '{}'),
('3', 'shop', '1', 'failure', 'AccessDenied', 'the server refuses', '{"hint": "give the account its privileges"}', 'lockstep', '2026-11-22 20:50:36.367557+00', NULL, NULL, NULL, '{}'),
('4', 'shop', '1', 'failure', 'StreamEndedEarly', 'it ended', '{"hint": ""}', 'lockstep', '2026-11-22 20:50:36.368774+00', NULL, NULL, NULL, '{}'),
('5', 'shop', '1', 'start', 'chosen-start', 'the disk was lost', '{}', 'ada', '2026-11-22 20:50:36.375548+00', '3', 'gap', '1', '{shop.orders,shop.stock}'),
('6', 'till', '1', 'start', 'earliest', 'nothing was read before', '{"binlogs": ["binlog.000001"]}', 'lockstep', '2026-11-22 20:50:36.402195+00', NULL, NULL, NULL, '{}'),
('7', 'till', '1', 'idle', 'earliest', 'nothing was read before', '{"gtid_mode": "ON_PERMISSIVE"}', 'lockstep', '2026-11-22 20:50:36.422244+00', NULL, NULL, NULL, '{}'),
('8', 'till', '1', 'idle', 'earliest', 'nothing was read before', '{"gtid_mode": "ON"}', 'lockstep', '2026-11-22 20:50:36.42323+00', NULL, NULL, NULL, '{}');

select setval(pg_get_serial_sequence('lockstep.decisions', 'id'), 8);

insert into lockstep.deliveries (id, source, consumer, first_batch, last_batch, state, delivered_at, ended_at)
overriding system value values
('1', 'shop', '1', '1', '1', 'out', '2026-11-22 20:50:36.31996+00', NULL);

select setval(pg_get_serial_sequence('lockstep.deliveries', 'id'), 1);

insert into lockstep.extents (id, source, batch, database, name, begins_base, begins_number, begins_offset, empty_base, empty_number, empty_offset)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', 'binlog', '1', '4', NULL, NULL, NULL),
('2', 'shop', '1', 'shop', 'stock', 'binlog', '1', '4', NULL, NULL, NULL);

select setval(pg_get_serial_sequence('lockstep.extents', 'id'), 2);

insert into lockstep.leases (source, token, holder, dagster_run, backend_pid, taken_at)
overriding system value values
('shop', '1', 'a run', 'run-1', '3830', '2026-11-22 20:50:36.248225+00'),
('till', '1', 'a run', 'run-2', '3837', '2026-11-22 20:50:36.398803+00');

insert into lockstep.ledger (id, made_at, alone)
overriding system value values
('ab75dedf-3beb-432f-b49f-2a2613c50d6e', '2026-11-22 20:50:36.225199+00', 'true');

insert into lockstep.looked (source, folder, delta_version)
overriding system value values
('shop', 's/shop/orders', '4');

insert into lockstep.overrides (id, source, token, place, reason, author, chosen_at)
overriding system value values
('1', 'shop', '1', 'x:4', 'the disk was lost', 'ada', '2026-11-22 20:50:36.370219+00');

select setval(pg_get_serial_sequence('lockstep.overrides', 'id'), 1);

insert into lockstep.prepared (id, source, batch, format_id, gtrid, bqual, "position", path, images, size, sha256, ended_by, committed, abandoned)
overriding system value values
('1', 'shop', '1', '-1', E'\\x6f70656e', E'\\x00ff', 'binlog.000001:50', '0.parquet', '5', '1000', '0000000000000000000000000000000000000000000000000000000000000000', NULL, NULL, 'false');

select setval(pg_get_serial_sequence('lockstep.prepared', 'id'), 1);

insert into lockstep.schema_statements (id, source, batch, begin_base, begin_number, begin_offset, end_base, end_number, end_offset, gtid, committed_at, database, text, context, outcome, effects)
overriding system value values
('1', 'shop', '1', 'binlog', '1', '10', 'binlog', '1', '20', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '2026-11-01 06:00:00.123456+00', '"shop"', '"create table sales (id int primary key)"', '{"sql_mode": ["ANSI_QUOTES"]}', 'followed', '["shop.sales is created"]');

select setval(pg_get_serial_sequence('lockstep.schema_statements', 'id'), 1);

insert into lockstep.segment_files (segment, ordinal, path, images, size, sha256)
overriding system value values
('1', '0', '1-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('1', '1', '1-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('2', '0', '11-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('2', '1', '11-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('3', '0', '21-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('3', '1', '21-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('4', '0', '31-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('4', '1', '31-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff');

insert into lockstep.segments (id, source, batch, database, name, schema_version, inserted, updated, deleted, first_sequence, last_sequence)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', '1', '1', '2', '3', '1', '10'),
('2', 'shop', '1', 'shop', 'stock', '1', '1', '2', '3', '11', '20'),
('3', 'shop', '2', 'shop', 'stock', '1', '1', '2', '3', '21', '30'),
('4', 'shop', '3', 'shop', 'orders', '1', '1', '2', '3', '31', '40');

select setval(pg_get_serial_sequence('lockstep.segments', 'id'), 4);

insert into lockstep.set_witnesses (source, batch, ordinal, origin, gtid, committed_at, digest)
overriding system value values
('shop', '1', '0', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '3e11fa47-71ca-11e1-9e33-c80aa9429562:7', '1793512800123456', '');

insert into lockstep.snapshot_files (snapshot, ordinal, path, images, size, sha256)
overriding system value values
('1', '0', '0.parquet', '5', '1000', '0000000000000000000000000000000000000000000000000000000000000000');

insert into lockstep.snapshots (id, source, batch, database, name, version, low_sequence, columns)
overriding system value values
('1', 'shop', '2', 'shop', 'stock', '1', '20', NULL);

select setval(pg_get_serial_sequence('lockstep.snapshots', 'id'), 1);

insert into lockstep.source_files (source, batch, name, ordinal, path, images, size, sha256)
overriding system value values
('shop', '1', '_ddl', '0', '0.parquet', '5', '1000', '0000000000000000000000000000000000000000000000000000000000000000');

insert into lockstep.sources (name, lock_key, token, first_seen, beat_at)
overriding system value values
('shop', '1', '1', '2026-11-22 20:50:36.243496+00', '2026-11-22 20:50:36.24739+00'),
('till', '2', '1', '2026-11-22 20:50:36.395402+00', '2026-11-22 20:50:36.398172+00');

select setval(pg_get_serial_sequence('lockstep.sources', 'lock_key'), 2);

insert into lockstep.table_events (source, batch, database, name, ordinal, kind, sequence, version, place_base, place_number, place_offset, reason)
overriding system value values
('shop', '2', 'shop', 'stock', '0', 'reread', '20', '1', 'binlog', '1', '110', 'why');

insert into lockstep.table_orders (id, source, token, database, name, kind, author, reason, ordered_at, schema, done_batch, stopped_batch, stopped_base, stopped_number, stopped_offset, aside_reason, aside_hint, aside_position, aside_remedy, aside_condition, renames)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', 'pause', 'ada', 'a repair', '2026-11-22 20:50:36.324569+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2', 'shop', '1', 'shop', 'orders', 'resume', 'ada', 'it is repaired', '2026-11-22 20:50:36.344292+00', NULL, '3', '1', 'binlog', '1', '104', 'ada paused it: a repair', '`lockstep resume shop.orders` has it caught up', 'binlog.000001:104', NULL, 'paused', NULL);

select setval(pg_get_serial_sequence('lockstep.table_orders', 'id'), 2);

insert into lockstep.table_states (source, database, name, condition, generation, mirror, changelog, reason, hint, "position", mirror_version, changelog_generation, stopped_batch, stopped_base, stopped_number, stopped_offset, behind_batch, adopted, remedy, mirror_generation)
overriding system value values
('shop', 'shop', 'orders', 'active', '1', 's/shop/orders', 's/_changes/shop/orders', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1'),
('shop', 'shop', 'sales', 'quarantined', '1', 's/shop/sales', 's/_changes/shop/sales', 'why', 'hint', 'binlog.000001:120', NULL, '1', '2', 'binlog', '1', '120', NULL, NULL, 'backfill', '1'),
('shop', 'shop', 'stock', 'active', '1', 's/shop/stock', 's/_changes/shop/stock', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1');

insert into lockstep.table_versions (source, database, name, version, batch, structure, since_base, since_number, since_offset, knowledge, origin, schema, fingerprint, columns_from, statement, reason, generation)
overriding system value values
('shop', 'shop', 'orders', '1', '1', NULL, 'binlog', '1', '4', 'known', 'baseline', E'{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, NULL, NULL, '1'),
('shop', 'shop', 'sales', '1', '1', NULL, 'binlog', '1', '20', 'known', 'baseline', E'{"name": {"database": "shop", "name": "sales"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, '1', NULL, '1'),
('shop', 'shop', 'stock', '1', '1', NULL, 'binlog', '1', '4', 'known', 'baseline', E'{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, NULL, NULL, '1');

insert into lockstep.version_sets (source, batch, database, name, mirror, delta_version)
overriding system value values
('shop', '1', 'shop', 'orders', 's/shop/orders', '2'),
('shop', '1', 'shop', 'stock', 's/shop/stock', '3');

insert into lockstep.writes (id, source, token, database, name, app_id, txn_version, first_batch, last_batch, step, intended_at, delta_version, settled_at, given_up_at)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', 'shop/shop.orders@1', '1', '1', '1', 'merge', '2026-11-22 20:50:36.286514+00', '2', '2026-11-22 20:50:36.291277+00', NULL),
('2', 'shop', '1', 'shop', 'stock', 'shop/shop.stock@1', '2', '1', '1', 'merge', '2026-11-22 20:50:36.295489+00', '3', '2026-11-22 20:50:36.298425+00', NULL),
('3', 'shop', '1', 'shop', 'orders', 'shop/shop.orders@1', '3', '3', '3', 'merge', '2026-11-22 20:50:36.385672+00', NULL, NULL, NULL);

select setval(pg_get_serial_sequence('lockstep.writes', 'id'), 3);

set session_replication_role = default;
