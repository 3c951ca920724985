set session_replication_role = replica;

delete from lockstep.ledger;

insert into lockstep.batches (id, source, state, predecessor, start_decision, base, token, created_at, start_base, start_number, start_offset, start_gtid_set, start_server_uuid, start_committed_at, end_base, end_number, end_offset, end_gtid_set, end_server_uuid, end_committed_at, witness_offset, witness_length, witness_crc32, witness_gtid, witness_file_created, changes, transactions, log_bytes, captured_at, merged_at, acknowledged_at, abandoned_at, abandoned_because, follows, by_gtid, server_started_at, server_resets, kind)
overriding system value values
('1', 'shop', 'acknowledged', NULL, '1', '0', '1', '2026-11-22 22:57:08.495328+00', 'binlog', '1', '4', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '20', '3', '100', '2026-11-22 22:57:08.541101+00', '2026-11-22 22:57:08.583951+00', '2026-11-22 22:57:08.596053+00', NULL, NULL, NULL, 'true', '2026-11-01 06:00:00.123456+00', '0', 'ordinary'),
('10', 'mill', 'captured', '9', NULL, '20', '1', '2026-11-22 22:57:08.943729+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '10', '3', '100', '2026-11-22 22:57:08.959226+00', NULL, NULL, NULL, NULL, '9', 'false', NULL, NULL, 'ordinary'),
('11', 'mill', 'captured', '10', NULL, '30', '1', '2026-11-22 22:57:08.967623+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '304', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-304', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '0', '3', '100', '2026-11-22 22:57:08.980302+00', NULL, NULL, NULL, NULL, '10', 'false', NULL, NULL, 'ordinary'),
('2', 'shop', 'captured', '1', NULL, '20', '1', '2026-11-22 22:57:08.642424+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '10', '3', '100', '2026-11-22 22:57:08.655206+00', NULL, NULL, NULL, NULL, '1', 'true', NULL, NULL, 'ordinary'),
('3', 'shop', 'captured', NULL, '2', '30', '1', '2026-11-22 22:57:08.669332+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '10', '3', '100', '2026-11-22 22:57:08.677406+00', NULL, NULL, NULL, NULL, '2', 'true', NULL, NULL, 'catching-up'),
('4', 'shop', 'abandoned', '3', NULL, '40', '1', '2026-11-22 22:57:08.682552+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '0', '0', '0', NULL, NULL, NULL, '2026-11-22 22:57:08.685438+00', 'cut off', '3', 'false', NULL, NULL, 'ordinary'),
('5', 'shop', 'captured', NULL, '5', '40', '1', '2026-11-22 22:57:08.71166+00', 'binlog', '3', '4', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '3', '500', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '0', '3', '100', '2026-11-22 22:57:08.717815+00', NULL, NULL, NULL, NULL, '3', 'false', NULL, NULL, 'ordinary'),
('6', 'shop', 'capturing', '5', NULL, '40', '1', '2026-11-22 22:57:08.727565+00', 'binlog', '3', '500', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '0', '0', '0', NULL, NULL, NULL, NULL, NULL, '5', 'false', NULL, NULL, 'ordinary'),
('7', 'till', 'captured', NULL, '6', '0', '1', '2026-11-22 22:57:08.762441+00', 'binlog', '1', '4', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '0', '3', '100', '2026-11-22 22:57:08.774077+00', NULL, NULL, NULL, NULL, NULL, 'false', NULL, NULL, 'ordinary'),
('8', 'till', 'captured', '7', NULL, '0', '1', '2026-11-22 22:57:08.783689+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '204', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-204', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '0', '3', '100', '2026-11-22 22:57:08.794866+00', NULL, NULL, NULL, NULL, '7', 'true', NULL, NULL, 'ordinary'),
('9', 'mill', 'acknowledged', NULL, '9', '0', '1', '2026-11-22 22:57:08.854472+00', 'binlog', '1', '4', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-4', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', 'binlog', '1', '104', '3e11fa47-71ca-11e1-9e33-c80aa9429562:1-104', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '2026-11-01 06:00:00.123456+00', '100', '31', '4294967295', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '7', '20', '3', '100', '2026-11-22 22:57:08.888838+00', '2026-11-22 22:57:08.908598+00', '2026-11-22 22:57:08.92138+00', NULL, NULL, NULL, 'true', '2026-11-01 06:00:00.123456+00', '0', 'ordinary');

select setval(pg_get_serial_sequence('lockstep.batches', 'id'), 11);

insert into lockstep.capture_scopes (source, batch, include, exclude)
overriding system value values
('mill', '9', '{shop.*}', '{}'),
('shop', '1', '{shop.*}', '{}');

insert into lockstep.consumers (id, source, name, start_batch, made_at, dropped_at, dropped_by, dropped_because)
overriding system value values
('1', 'shop', 'billing', NULL, '2026-11-22 22:57:08.60241+00', NULL, NULL, NULL);

select setval(pg_get_serial_sequence('lockstep.consumers', 'id'), 1);

insert into lockstep.database_versions (id, source, name, batch, since_base, since_number, since_offset, charset, collation_name, statement)
overriding system value values
('1', 'shop', 'shop', '1', 'binlog', '1', '4', 'latin1', 'latin1_bin', NULL),
('2', 'mill', 'shop', '9', 'binlog', '1', '4', 'latin1', 'latin1_bin', NULL);

select setval(pg_get_serial_sequence('lockstep.database_versions', 'id'), 2);

insert into lockstep.decisions (id, source, token, kind, rule, reason, facts, author, decided_at, follows, continuity, override, gap_tables)
overriding system value values
('1', 'shop', '1', 'start', 'earliest', 'nothing was read before', '{"binlogs": ["binlog.000001"]}', 'lockstep', '2026-11-22 22:57:08.479876+00', NULL, NULL, NULL, '{}'),
('2', 'shop', '1', 'start', 'chosen-start', 'the disk was lost', '{}', 'ada', '2026-11-22 22:57:08.666411+00', '2', 'contiguous', NULL, '{}'),
('3', 'shop', '1', 'failure', 'AccessDenied', 'the server refuses', '{"hint": "give the account its privileges"}', 'lockstep', '2026-11-22 22:57:08.694445+00', NULL, NULL, NULL, '{}'),
('4', 'shop', '1', 'failure', 'StreamEndedEarly', 'it ended', '{"hint": ""}', 'lockstep', '2026-11-22 22:57:08.697339+00', NULL, NULL, NULL, '{}'),
('5', 'shop', '1', 'start', 'chosen-start', 'the disk was lost', '{}', 'ada', '2026-11-22 22:57:08.706689+00', '3', 'gap', '1', '{shop.orders,shop.stock}'),
('6', 'till', '1', 'start', 'earliest', 'nothing was read before', '{"binlogs": ["binlog.000001"]}', 'lockstep', '2026-11-22 22:57:08.758895+00', NULL, NULL, NULL, '{}'),
('7', 'till', '1', 'idle', 'earliest', 'nothing was read before', '{"gtid_mode": "ON_PERMISSIVE"}', 'lockstep', '2026-11-22 22:57:08.807132+00', NULL, NULL, NULL, '{}'),
('8', 'till', '1', 'idle', 'earliest', 'nothing was read before', '{"gtid_mode": "ON"}', 'lockstep', '2026-11-22 22:57:08.809333+00', NULL, NULL, NULL, '{}'),
('9', 'mill', '1', 'start', 'earliest', 'nothing was read before', '{"binlogs": ["binlog.000001"]}', 'lockstep', '2026-11-22 22:57:08.8481+00', NULL, NULL, NULL, '{}');

select setval(pg_get_serial_sequence('lockstep.decisions', 'id'), 9);

insert into lockstep.deliveries (id, source, consumer, first_batch, last_batch, state, delivered_at, ended_at)
overriding system value values
('1', 'shop', '1', '1', '1', 'out', '2026-11-22 22:57:08.621347+00', NULL);

select setval(pg_get_serial_sequence('lockstep.deliveries', 'id'), 1);

insert into lockstep.extents (id, source, batch, database, name, begins_base, begins_number, begins_offset, empty_base, empty_number, empty_offset)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', 'binlog', '1', '4', NULL, NULL, NULL),
('2', 'shop', '1', 'shop', 'stock', 'binlog', '1', '4', NULL, NULL, NULL),
('3', 'mill', '9', 'shop', 'orders', 'binlog', '1', '4', NULL, NULL, NULL),
('4', 'mill', '9', 'shop', 'stock', 'binlog', '1', '4', NULL, NULL, NULL);

select setval(pg_get_serial_sequence('lockstep.extents', 'id'), 4);

insert into lockstep.leases (source, token, holder, dagster_run, backend_pid, taken_at)
overriding system value values
('mill', '1', 'a run', 'run-3', '6312', '2026-11-22 22:57:08.830954+00'),
('shop', '1', 'a run', 'run-1', '6301', '2026-11-22 22:57:08.465112+00'),
('till', '1', 'a run', 'run-2', '6309', '2026-11-22 22:57:08.747374+00');

insert into lockstep.ledger (id, made_at, alone)
overriding system value values
('e50b368f-07d0-455a-94cb-3c1aa38cb419', '2026-11-22 22:57:08.410072+00', 'true');

insert into lockstep.looked (source, folder, delta_version)
overriding system value values
('shop', 's/shop/orders', '4');

insert into lockstep.overrides (id, source, token, place, reason, author, chosen_at)
overriding system value values
('1', 'shop', '1', 'x:4', 'the disk was lost', 'ada', '2026-11-22 22:57:08.701475+00');

select setval(pg_get_serial_sequence('lockstep.overrides', 'id'), 1);

insert into lockstep.prepared (id, source, batch, format_id, gtrid, bqual, "position", path, images, size, sha256, ended_by, committed, abandoned)
overriding system value values
('1', 'shop', '1', '-1', E'\\x6f70656e', E'\\x00ff', 'binlog.000001:50', '0.parquet', '5', '1000', '0000000000000000000000000000000000000000000000000000000000000000', NULL, NULL, 'false'),
('2', 'mill', '9', '-1', E'\\x6f70656e', E'\\x00ff', 'binlog.000001:50', '0.parquet', '5', '1000', '0000000000000000000000000000000000000000000000000000000000000000', NULL, NULL, 'false');

select setval(pg_get_serial_sequence('lockstep.prepared', 'id'), 2);

insert into lockstep.schema_statements (id, source, batch, begin_base, begin_number, begin_offset, end_base, end_number, end_offset, gtid, committed_at, database, text, context, outcome, effects)
overriding system value values
('1', 'shop', '1', 'binlog', '1', '10', 'binlog', '1', '20', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '2026-11-01 06:00:00.123456+00', '"shop"', '"create table sales (id int primary key)"', '{"sql_mode": ["ANSI_QUOTES"]}', 'followed', '["shop.sales is created"]'),
('2', 'mill', '9', 'binlog', '1', '10', 'binlog', '1', '20', '3e11fa47-71ca-11e1-9e33-c80aa9429562:5', '2026-11-01 06:00:00.123456+00', '"shop"', '"create table sales (id int primary key)"', '{"sql_mode": ["ANSI_QUOTES"]}', 'followed', '["shop.sales is created"]');

select setval(pg_get_serial_sequence('lockstep.schema_statements', 'id'), 2);

insert into lockstep.segment_files (segment, ordinal, path, images, size, sha256)
overriding system value values
('1', '0', '1-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('1', '1', '1-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('2', '0', '11-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('2', '1', '11-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('3', '0', '21-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('3', '1', '21-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('4', '0', '31-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('4', '1', '31-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('5', '0', '1-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('5', '1', '1-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('6', '0', '11-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('6', '1', '11-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff'),
('7', '0', '21-0.parquet', '1', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('7', '1', '21-1.parquet', '9', '2000', 'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff');

insert into lockstep.segments (id, source, batch, database, name, schema_version, inserted, updated, deleted, first_sequence, last_sequence)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', '1', '1', '2', '3', '1', '10'),
('2', 'shop', '1', 'shop', 'stock', '1', '1', '2', '3', '11', '20'),
('3', 'shop', '2', 'shop', 'stock', '1', '1', '2', '3', '21', '30'),
('4', 'shop', '3', 'shop', 'orders', '1', '1', '2', '3', '31', '40'),
('5', 'mill', '9', 'shop', 'orders', '1', '1', '2', '3', '1', '10'),
('6', 'mill', '9', 'shop', 'stock', '1', '1', '2', '3', '11', '20'),
('7', 'mill', '10', 'shop', 'orders', '1', '1', '2', '3', '21', '30');

select setval(pg_get_serial_sequence('lockstep.segments', 'id'), 7);

insert into lockstep.set_witnesses (source, batch, ordinal, origin, gtid, committed_at, digest)
overriding system value values
('mill', '9', '0', '3e11fa47-71ca-11e1-9e33-c80aa9429562', '3e11fa47-71ca-11e1-9e33-c80aa9429562:7', '1793512800123456', ''),
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
('mill', '9', '_ddl', '0', '0.parquet', '5', '1000', '0000000000000000000000000000000000000000000000000000000000000000'),
('shop', '1', '_ddl', '0', '0.parquet', '5', '1000', '0000000000000000000000000000000000000000000000000000000000000000');

insert into lockstep.sources (name, lock_key, token, first_seen, beat_at, gtids_off_at)
overriding system value values
('mill', '3', '1', '2026-11-22 22:57:08.82501+00', '2026-11-22 22:57:08.82993+00', NULL),
('shop', '1', '1', '2026-11-22 22:57:08.454139+00', '2026-11-22 22:57:08.460248+00', NULL),
('till', '2', '1', '2026-11-22 22:57:08.743947+00', '2026-11-22 22:57:08.746643+00', '2026-11-22 22:57:08.800912+00');

select setval(pg_get_serial_sequence('lockstep.sources', 'lock_key'), 3);

insert into lockstep.table_events (source, batch, database, name, ordinal, kind, sequence, version, place_base, place_number, place_offset, reason)
overriding system value values
('shop', '2', 'shop', 'stock', '0', 'reread', '20', '1', 'binlog', '1', '110', 'why');

insert into lockstep.table_orders (id, source, token, database, name, kind, author, reason, ordered_at, schema, done_batch, stopped_batch, stopped_base, stopped_number, stopped_offset, aside_reason, aside_hint, aside_position, aside_remedy, aside_condition, renames)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', 'pause', 'ada', 'a repair', '2026-11-22 22:57:08.635357+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('2', 'shop', '1', 'shop', 'orders', 'resume', 'ada', 'it is repaired', '2026-11-22 22:57:08.659513+00', NULL, '3', '1', 'binlog', '1', '104', 'ada paused it: a repair', '`lockstep resume shop.orders` has it caught up', 'binlog.000001:104', NULL, 'paused', NULL),
('3', 'mill', '1', 'shop', 'orders', 'pause', 'ada', 'a repair', '2026-11-22 22:57:08.930239+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
('4', 'mill', '1', 'shop', 'orders', 'resume', 'ada', 'it is repaired', '2026-11-22 22:57:08.939444+00', NULL, '10', '9', 'binlog', '1', '104', 'ada paused it: a repair', '`lockstep resume shop.orders` has it caught up', 'binlog.000001:104', NULL, 'paused', NULL);

select setval(pg_get_serial_sequence('lockstep.table_orders', 'id'), 4);

insert into lockstep.table_states (source, database, name, condition, generation, mirror, changelog, reason, hint, "position", mirror_version, changelog_generation, stopped_batch, stopped_base, stopped_number, stopped_offset, behind_batch, adopted, remedy, mirror_generation)
overriding system value values
('mill', 'shop', 'orders', 'dropped', '1', 's/shop/orders', 's/_changes/shop/orders', NULL, NULL, NULL, NULL, '1', '11', 'binlog', '1', '304', NULL, NULL, NULL, '1'),
('mill', 'shop', 'sales', 'quarantined', '1', 's/shop/sales', 's/_changes/shop/sales', 'why', 'hint', 'binlog.000001:220', NULL, '1', '11', 'binlog', '1', '220', NULL, NULL, 'backfill', '1'),
('mill', 'shop', 'stock', 'dropped', '1', 's/shop/stock', 's/_changes/shop/stock', NULL, NULL, NULL, NULL, '1', '10', 'binlog', '1', '204', NULL, NULL, NULL, '1'),
('shop', 'shop', 'orders', 'active', '1', 's/shop/orders', 's/_changes/shop/orders', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1'),
('shop', 'shop', 'sales', 'quarantined', '1', 's/shop/sales', 's/_changes/shop/sales', 'why', 'hint', 'binlog.000001:120', NULL, '1', '2', 'binlog', '1', '120', NULL, NULL, 'backfill', '1'),
('shop', 'shop', 'stock', 'active', '1', 's/shop/stock', 's/_changes/shop/stock', NULL, NULL, NULL, NULL, '1', NULL, NULL, NULL, NULL, NULL, NULL, NULL, '1');

insert into lockstep.table_versions (source, database, name, version, batch, structure, since_base, since_number, since_offset, knowledge, origin, schema, fingerprint, columns_from, statement, reason, generation)
overriding system value values
('mill', 'shop', 'orders', '1', '9', NULL, 'binlog', '1', '4', 'known', 'baseline', E'{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, NULL, NULL, '1'),
('mill', 'shop', 'sales', '1', '9', NULL, 'binlog', '1', '20', 'known', 'baseline', E'{"name": {"database": "shop", "name": "sales"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, '2', NULL, '1'),
('mill', 'shop', 'stock', '1', '9', NULL, 'binlog', '1', '4', 'known', 'baseline', E'{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, NULL, NULL, '1'),
('shop', 'shop', 'orders', '1', '1', NULL, 'binlog', '1', '4', 'known', 'baseline', E'{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, NULL, NULL, '1'),
('shop', 'shop', 'sales', '1', '1', NULL, 'binlog', '1', '20', 'known', 'baseline', E'{"name": {"database": "shop", "name": "sales"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, '1', NULL, '1'),
('shop', 'shop', 'stock', '1', '1', NULL, 'binlog', '1', '4', 'known', 'baseline', E'{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "id", "type": "int", "nullable": false, "auto_increment": true}, {"name": "state", "type": "enum", "charset": "utf8mb4", "members": ["a", "b\\u0000"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4"}', 'c93c5164438e4559', NULL, NULL, NULL, '1');

insert into lockstep.version_sets (source, batch, database, name, mirror, delta_version)
overriding system value values
('mill', '9', 'shop', 'orders', 's/shop/orders', '2'),
('mill', '9', 'shop', 'stock', 's/shop/stock', '3'),
('shop', '1', 'shop', 'orders', 's/shop/orders', '2'),
('shop', '1', 'shop', 'stock', 's/shop/stock', '3');

insert into lockstep.writes (id, source, token, database, name, app_id, txn_version, first_batch, last_batch, step, intended_at, delta_version, settled_at, given_up_at)
overriding system value values
('1', 'shop', '1', 'shop', 'orders', 'shop/shop.orders@1', '1', '1', '1', 'merge', '2026-11-22 22:57:08.55476+00', '2', '2026-11-22 22:57:08.558139+00', NULL),
('2', 'shop', '1', 'shop', 'stock', 'shop/shop.stock@1', '2', '1', '1', 'merge', '2026-11-22 22:57:08.567685+00', '3', '2026-11-22 22:57:08.577599+00', NULL),
('3', 'shop', '1', 'shop', 'orders', 'shop/shop.orders@1', '3', '3', '3', 'merge', '2026-11-22 22:57:08.724266+00', NULL, NULL, NULL),
('4', 'mill', '1', 'shop', 'orders', 'mill/shop.orders@1', '4', '9', '9', 'merge', '2026-11-22 22:57:08.893418+00', '2', '2026-11-22 22:57:08.897499+00', NULL),
('5', 'mill', '1', 'shop', 'stock', 'mill/shop.stock@1', '5', '9', '9', 'merge', '2026-11-22 22:57:08.900817+00', '3', '2026-11-22 22:57:08.905579+00', NULL);

select setval(pg_get_serial_sequence('lockstep.writes', 'id'), 5);

set session_replication_role = default;
