-- migration 1: 7eb0a904fa5921af5a9fc65046a7e265bbbedda0ea5200444b6cce38ff1b89da
copy lockstep.batches from stdin;
1	shop	ordinary	acknowledged	\N	1	\N	\N	0	1	2026-11-30 11:54:45.873463+00	binlog	2	198	cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-17	cb1c6355-ecb4-11f1-8ec7-02fc00000001	\N	binlog	2	198	cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-17	cb1c6355-ecb4-11f1-8ec7-02fc00000001	\N	127	71	2212221990		1796039674	t	2026-11-30 11:54:27.253841+00	0	8	0	0	0	\N	\N	2026-11-30 11:54:47.967038+00	2026-11-30 11:55:27.75852+00	2026-11-30 11:55:27.765272+00	\N	\N
2	shop	ordinary	acknowledged	1	\N	\N	1	8	2	2026-11-30 11:55:29.187345+00	binlog	2	198	cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-17	cb1c6355-ecb4-11f1-8ec7-02fc00000001	\N	binlog	2	5802	cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-26	cb1c6355-ecb4-11f1-8ec7-02fc00000001	2026-11-30 11:55:28.229785+00	5771	31	1817163055	cb1c6355-ecb4-11f1-8ec7-02fc00000001:26	1796039674	t	2026-11-30 11:54:27.127558+00	0	59	9	5604	0	\N	\N	2026-11-30 11:55:29.801852+00	2026-11-30 11:55:38.69763+00	2026-11-30 11:55:38.70703+00	\N	\N
3	shop	ordinary	acknowledged	2	\N	\N	2	67	4	2026-11-30 11:55:39.631637+00	binlog	2	5802	cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-26	cb1c6355-ecb4-11f1-8ec7-02fc00000001	2026-11-30 11:55:28.229785+00	binlog	2	11797	cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-30	cb1c6355-ecb4-11f1-8ec7-02fc00000001	2026-11-30 11:55:39.215539+00	11766	31	380114990	cb1c6355-ecb4-11f1-8ec7-02fc00000001:30	1796039674	t	2026-11-30 11:54:27.60407+00	0	100	4	5995	0	\N	\N	2026-11-30 11:55:39.803062+00	2026-11-30 11:55:39.944987+00	2026-11-30 11:55:39.95732+00	\N	\N
4	shop	ordinary	capturing	3	\N	\N	3	167	6	2026-11-30 11:55:41.030754+00	binlog	2	11797	cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-30	cb1c6355-ecb4-11f1-8ec7-02fc00000001	2026-11-30 11:55:39.215539+00	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	f	\N	\N	0	0	0	0	\N	\N	\N	\N	\N	\N	\N
\.
copy lockstep.capture_scopes from stdin;
shop	1	{shop.*}	{}
\.
copy lockstep.consumers from stdin;
1	shop	billing	\N	2026-11-30 11:55:28.049842+00	\N	\N	\N
\.
copy lockstep.database_versions from stdin;
1	shop	mysql	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"tables": ["columns_priv", "component", "db", "default_roles", "engine_cost", "func", "general_log", "global_grants", "gtid_executed", "help_category", "help_keyword", "help_relation", "help_topic", "innodb_index_stats", "innodb_table_stats", "ndb_binlog_index", "password_history", "plugin", "procs_priv", "proxies_priv", "replication_asynchronous_connection_failover", "replication_asynchronous_connection_failover_managed", "replication_group_configuration_version", "replication_group_member_actions", "role_edges", "server_cost", "servers", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "slow_log", "tables_priv", "time_zone", "time_zone_leap_second", "time_zone_name", "time_zone_transition", "time_zone_transition_type", "user"]}	\N
2	shop	shop	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{}	\N
\.
copy lockstep.decisions from stdin;
1	shop	1	start	configured-snapshot	start = 'snapshot': tables are read from the source, and the log from its end binlog.000002:198 on	{"set": "not kept", "head": "binlog.000002:198", "place": "binlog.000002:198", "anchor": "not read", "cursor": null, "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 198}], "read_at": "2026-11-30T11:54:45.699871+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "cb1c6355-ecb4-11f1-8ec7-02fc00000001", "gtid_executed": "cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-17", "previous_batch": null}	lockstep	2026-11-30 11:54:45.842434+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
2	shop	2	start	resume-same-server	batch 1 ended at binlog.000002:198, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:5802", "place": "binlog.000002:198", "anchor": "the same", "cursor": "binlog.000002:198", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 5802}], "read_at": "2026-11-30T11:55:29.127558+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "cb1c6355-ecb4-11f1-8ec7-02fc00000001", "gtid_executed": "cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-26", "previous_batch": 1}	lockstep	2026-11-30 11:55:29.149366+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
3	shop	4	start	resume-same-server	batch 2 ended at binlog.000002:5802, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:11797", "place": "binlog.000002:5802", "anchor": "the same", "cursor": "binlog.000002:5802", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-30T11:55:39.604070+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "cb1c6355-ecb4-11f1-8ec7-02fc00000001", "gtid_executed": "cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-30", "previous_batch": 2}	lockstep	2026-11-30 11:55:39.624673+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
4	shop	6	start	resume-same-server	batch 3 ended at binlog.000002:11797, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:11797", "place": "binlog.000002:11797", "anchor": "the same", "cursor": "binlog.000002:11797", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-30T11:55:40.984192+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "cb1c6355-ecb4-11f1-8ec7-02fc00000001", "gtid_executed": "cb1c6355-ecb4-11f1-8ec7-02fc00000001:1-30", "previous_batch": 3}	lockstep	2026-11-30 11:55:40.999707+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
\.
copy lockstep.deliveries from stdin;
1	shop	1	1	2	acknowledged	2026-11-30 11:55:40.250673+00	2026-11-30 11:55:40.275709+00
\.
copy lockstep.leases from stdin;
shop	1	vm, process 24286 (run)	f1501774-e2ba-4cee-885e-9149f1781f46	24297	2026-11-30 11:54:45.444424+00	f	2026-11-30 11:55:27.819737+00
shop	2	vm, process 25949 (run)	fddc589d-8547-4cca-a924-d0c267debbb8	25953	2026-11-30 11:55:28.861953+00	f	2026-11-30 11:55:38.730603+00
shop	3	vm, process 26363 (pause)	\N	26372	2026-11-30 11:55:39.056376+00	f	2026-11-30 11:55:39.142243+00
shop	4	vm, process 26382 (run)	a7f7e043-19fb-45cc-8384-fa44b944861f	26390	2026-11-30 11:55:39.359422+00	f	2026-11-30 11:55:39.981186+00
shop	5	vm, process 26482 (reload)	\N	26492	2026-11-30 11:55:40.456998+00	f	2026-11-30 11:55:40.537535+00
shop	6	vm, process 26498 (run)	51367d0b-5c17-432c-8c52-dd1ba24473e2	26517	2026-11-30 11:55:40.782447+00	f	\N
\.
copy lockstep.ledger from stdin;
f6c17d70-ba47-48b8-923b-9ee920f466e0	2026-11-30 11:54:31.20995+00	t
\.
copy lockstep.load_chunks from stdin;
1	0	\N	\N	binlog	2	198	binlog	2	198	2	0.19435638499999186	2026-11-30 11:54:46.385911+00	2026-11-30 11:54:46.586918+00
2	0	\N	\N	binlog	2	198	binlog	2	198	40	0.11585644700244302	2026-11-30 11:54:46.525363+00	2026-11-30 11:54:46.649827+00
3	0	\N	\N	binlog	2	198	binlog	2	198	300	0.023875159000454005	2026-11-30 11:54:46.615122+00	2026-11-30 11:54:46.686052+00
4	0	\N	\N	binlog	2	198	binlog	2	198	300	0.09444947199881426	2026-11-30 11:54:46.66233+00	2026-11-30 11:54:46.763086+00
5	0	\N	\N	binlog	2	198	binlog	2	198	50	0.03855419400133542	2026-11-30 11:54:46.707601+00	2026-11-30 11:54:46.777126+00
6	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	198	binlog	2	198	10000	0.055230909998499556	2026-11-30 11:54:46.772229+00	2026-11-30 11:54:46.831074+00
7	0	\N	\N	binlog	2	198	binlog	2	198	50	0.08233538100103033	2026-11-30 11:54:46.782307+00	2026-11-30 11:54:46.87264+00
8	0	\N	\N	binlog	2	198	binlog	2	198	3	0.09960554899953422	2026-11-30 11:54:46.839074+00	2026-11-30 11:54:46.953535+00
6	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	198	binlog	2	198	2000	0.10591764399941894	2026-11-30 11:54:46.898019+00	2026-11-30 11:54:47.016158+00
9	1	{"columns": ["id"], "literals": ["10000"]}	\N	\N	\N	\N	\N	\N	\N	\N	\N	2026-11-30 11:55:41.188201+00	\N
9	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	11797	binlog	2	11797	10000	0.09158254399881116	2026-11-30 11:55:41.140474+00	2026-11-30 11:55:41.243199+00
\.
copy lockstep.load_files from stdin;
1	0	0	load-000000000001-000000-bfb98daa-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	0	load-000000000002-000000-bfb98daa-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	0	load-000000000003-000000-bfb98daa-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	0	load-000000000004-000000-bfb98daa-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	0	load-000000000005-000000-bfb98daa-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	0	load-000000000006-000000-bfb98daa-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
7	0	0	load-000000000007-000000-bfb98daa-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	0	load-000000000008-000000-bfb98daa-00000.parquet	3	712	6a024c46bc8e145d332687cd9af2eff90c47173fe59b6fefc0800b2817ed35d4
6	1	0	load-000000000006-000001-bfb98daa-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
9	0	0	load-000000000009-000000-0f52b716-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
\.
copy lockstep.loads from stdin;
1	shop	1	shop	carts	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.880134+00	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	2	\N	f	1	1	2	1	\N
2	shop	1	shop	customers	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.886018+00	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	40	7636ffe95a3d76aa	f	1	2	2	1	\N
3	shop	1	shop	order_lines	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.89307+00	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	300	\N	f	1	3	2	1	\N
4	shop	1	shop	orders	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.895556+00	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	300	\N	f	1	4	2	1	\N
5	shop	1	shop	prices	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.899628+00	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	50	\N	f	1	5	2	1	\N
6	shop	1	shop	readings	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.959589+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	12000	\N	f	1	6	2	1	\N
7	shop	1	shop	stock	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.970418+00	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	50	\N	f	1	7	2	1	\N
8	shop	1	shop	visits	lockstep	rows are older than what is read of the log	2026-11-30 11:54:45.985016+00	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	198	3	\N	f	1	8	2	1	\N
9	shop	5	shop	readings	root	restored by hand	2026-11-30 11:55:40.504271+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cb1c6355-ecb4-11f1-8ec7-02fc00000001	binlog	2	11797	12202	\N	f	\N	\N	\N	\N	\N
\.
copy lockstep.schema_statements from stdin;
1	shop	2	binlog	2	3231	binlog	2	3456	cb1c6355-ecb4-11f1-8ec7-02fc00000001:19	2026-11-30 11:55:28.098854+00	"shop"	"alter table customers add column vip bool not null default '***'"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T11:55:28+00:00", "redacted": true}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone), (id, name, email, phone, vip)"}]
2	shop	2	binlog	2	4168	binlog	2	4382	cb1c6355-ecb4-11f1-8ec7-02fc00000001:21	2026-11-30 11:55:28.101153+00	"shop"	"alter table customers rename column email to mail"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T11:55:28+00:00"}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone, vip), (id, name, mail, phone, vip)"}]
3	shop	2	binlog	2	4382	binlog	2	4605	cb1c6355-ecb4-11f1-8ec7-02fc00000001:22	2026-11-30 11:55:28.146244+00	"shop"	"alter table orders modify customer bigint not null"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "SYSTEM", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T11:55:28+00:00"}	followed	[{"table": {"database": "shop", "name": "orders"}, "words": "column customer type: int, bigint"}]
4	shop	2	binlog	2	5304	binlog	2	5496	cb1c6355-ecb4-11f1-8ec7-02fc00000001:25	2026-11-30 11:55:28.226714+00	"shop"	"rename table carts to baskets"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T11:55:28+00:00"}	followed	[{"table": {"database": "shop", "name": "carts"}, "words": "is now called shop.baskets"}, {"table": {"database": "shop", "name": "baskets"}, "words": "was called shop.carts"}]
5	shop	3	binlog	2	8378	binlog	2	8585	cb1c6355-ecb4-11f1-8ec7-02fc00000001:28	2026-11-30 11:55:39.210488+00	"shop"	"alter table stock modify place varchar(12)"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T11:55:39+00:00"}	followed	[{"table": {"database": "shop", "name": "stock"}, "words": "column place length: 40, 12"}]
\.
copy lockstep.searched_folders from stdin;
shop	shop/_changes/shop/carts	0
shop	shop/_changes/shop/prices	0
shop	shop/_changes/shop/readings	0
shop	shop/shop/prices	0
shop	shop/shop/stock	0
shop	shop/shop/readings	0
shop	shop/_changes/shop/orders	1
shop	shop/_changes/shop/order_lines	1
shop	shop/_changes/shop/visits	1
shop	shop/_changes/shop/customers	2
shop	shop/_changes/shop/orders@2	0
shop	shop/_changes/shop/baskets	0
shop	shop/shop/carts	1
shop	shop/shop/baskets	0
shop	shop/shop/order_lines	1
shop	shop/shop/visits	1
shop	shop/shop/orders	3
shop	shop/shop/customers	5
shop	shop/_changes/shop/stock	1
shop	shop/_ddl	1
shop	shop/_transactions	1
\.
copy lockstep.segment_files from stdin;
1	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	3555	44c11305dab3008e2fffb4050cf95c5fe1a2cb6c2a5f46c70ddebdb16340becf
2	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	3907	5877ab3113ab80555c500c8d77bb8c0d39d0cd767d81efed8a90cbcddc2bb99c
3	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	3938	bb9ea3f214aba9f02c538d5afa9e9532259395a32627f1afc03a913ae21454c4
4	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	4322	65578b895c84f803f32b912b84013da07f3087b858314fdf8fca14e6693c11b5
5	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	3569	72e3aae1a24beb4ae5536d26a91b482c9c5d5cc434191011cdc91ecb54e7a252
6	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	3585	1b224f2f3ff1d6b1867205e1caed95baa5357f7deff90b71b3fed3ec8c787bbd
7	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	3737	676047ae6c0f151ef3c9c73b451cf27996153c71b08f7344b4c73cf12b5e31e2
8	0	batch-000000000001-v2-bfb98daa-00000.parquet	1	3588	ebff1542b98ce0aeb5ef4d6d71a56cc9614374e244608cfcc16eb0e201edca2f
9	0	batch-000000000002-v2-59460510-00000.parquet	40	5808	9b74c2f98df1953e33aa04e634d04e7d176149b863d171dad7f21549c6976cd1
10	0	batch-000000000002-v2-59460510-00000.parquet	3	4536	d40c02fdd10771499b53c9b474d18766ee6cde3c34221b64266114d1ce95956e
11	0	batch-000000000002-v2-59460510-00000.parquet	3	4128	eb91c529225e187024eb294f3381dc38dac587445ca0747561b2ad7e4c1151b6
12	0	batch-000000000002-v3-59460510-00000.parquet	10	4914	3d3b5e1b001df3eb538679f609c6ac7e96bc6fbe3902b5d66fd064e4d9bef0a5
13	0	batch-000000000002-v3-59460510-00000.parquet	1	4990	391b39484fd4da5300dc02cad607af13832082d220052c91a7e326307fcacee6
14	0	batch-000000000002-v1-59460510-00000.parquet	2	3996	c4df3bf6420891a76af49cdf241db55dda56548a8f1d9eed36d92e33e565c2f3
15	0	batch-000000000003-v2-ec712e87-00000.parquet	100	4924	b9109c7c3541a099399c50d3b019c13185d2941c2fae3d26be56d8c2de8d6938
\.
copy lockstep.segments from stdin;
1	shop	1	shop	carts	2	0	0	0	1	1
2	shop	1	shop	customers	2	0	0	0	2	2
3	shop	1	shop	order_lines	2	0	0	0	3	3
4	shop	1	shop	orders	2	0	0	0	4	4
5	shop	1	shop	prices	2	0	0	0	5	5
6	shop	1	shop	readings	2	0	0	0	6	6
7	shop	1	shop	stock	2	0	0	0	7	7
8	shop	1	shop	visits	2	0	0	0	8	8
9	shop	2	shop	orders	2	0	20	0	9	48
10	shop	2	shop	order_lines	2	0	0	3	49	51
11	shop	2	shop	visits	2	2	0	1	52	65
12	shop	2	shop	customers	3	0	5	0	54	63
13	shop	2	shop	orders	3	1	0	0	64	64
14	shop	2	shop	baskets	1	1	0	0	66	67
15	shop	3	shop	stock	2	0	50	0	68	167
\.
copy lockstep.set_anchors from stdin;
shop	2	0	cb1c6355-ecb4-11f1-8ec7-02fc00000001	cb1c6355-ecb4-11f1-8ec7-02fc00000001:26	1796039728229785	
shop	3	0	cb1c6355-ecb4-11f1-8ec7-02fc00000001	cb1c6355-ecb4-11f1-8ec7-02fc00000001:30	1796039739215539	
\.
copy lockstep.snapshot_files from stdin;
1	0	load-000000000001-000000-bfb98daa-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	load-000000000002-000000-bfb98daa-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	load-000000000003-000000-bfb98daa-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	load-000000000004-000000-bfb98daa-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	load-000000000005-000000-bfb98daa-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	load-000000000006-000000-bfb98daa-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
6	1	load-000000000006-000001-bfb98daa-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
7	0	load-000000000007-000000-bfb98daa-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	load-000000000008-000000-bfb98daa-00000.parquet	3	712	6a024c46bc8e145d332687cd9af2eff90c47173fe59b6fefc0800b2817ed35d4
\.
copy lockstep.snapshots from stdin;
1	shop	1	shop	carts	2	1	\N
2	shop	1	shop	customers	2	2	\N
3	shop	1	shop	order_lines	2	3	\N
4	shop	1	shop	orders	2	4	\N
5	shop	1	shop	prices	2	5	\N
6	shop	1	shop	readings	2	6	\N
7	shop	1	shop	stock	2	7	\N
8	shop	1	shop	visits	2	8	\N
\.
copy lockstep.source_files from stdin;
shop	2	_ddl	0	batch-000000000002-v1-59460510-00000.parquet	4	6312	669f10bff8e70f2ecd26cb077c7d936c6cef00b83b9d5b999a7b3928e7753560
shop	2	_transactions	0	batch-000000000002-v1-59460510-00000.parquet	9	3777	7c5d36d6d5ba6f984bdfbe3319d807ee336b4abcaf46ae18ec2dc082c27dffdd
shop	3	_ddl	0	batch-000000000003-v1-ec712e87-00000.parquet	1	6180	d6e3e0f11a9c1c46f96c86a4c16a428ee4cb35d762c143a41e883ffa38f04a69
shop	3	_transactions	0	batch-000000000003-v1-ec712e87-00000.parquet	4	3708	567c12a0ea0d51b052e0c352f871100d582ff334ac190ab27973f4961dfbe647
\.
copy lockstep.sources from stdin;
shop	1	6	2026-11-30 11:54:45.424164+00	2026-11-30 11:55:40.780563+00	\N
\.
copy lockstep.table_events from stdin;
shop	1	shop	carts	0	reread	1	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	1	shop	customers	0	reread	2	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	1	shop	order_lines	0	reread	3	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	1	shop	orders	0	reread	4	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	1	shop	prices	0	reread	5	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	1	shop	readings	0	reread	6	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	1	shop	stock	0	reread	7	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	1	shop	visits	0	reread	8	2	binlog	2	198	rows are older than what is read of the log	\N	\N
shop	2	shop	customers	0	changed	53	3	binlog	2	3456	its columns changed	\N	\N
shop	2	shop	customers	1	changed	63	4	binlog	2	4382	its columns changed	\N	\N
shop	2	shop	orders	0	changed	63	3	binlog	2	4605	its columns changed	\N	\N
shop	2	shop	carts	0	dropped	65	3	binlog	2	5496	it is now called shop.baskets	\N	\N
shop	2	shop	baskets	0	copied	65	1	binlog	2	5496	it was called shop.carts	shop	carts
\.
copy lockstep.table_life from stdin;
1	shop	shop	carts	followed	following	1	1	{"need": null, "mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "changelog_generation": 1}	2026-11-30 11:54:47.759417+00
2	shop	shop	customers	followed	following	1	1	{"need": null, "mirror": "shop/shop/customers", "changelog": "shop/_changes/shop/customers", "changelog_generation": 1}	2026-11-30 11:54:47.760062+00
3	shop	shop	order_lines	followed	following	1	1	{"need": null, "mirror": "shop/shop/order_lines", "changelog": "shop/_changes/shop/order_lines", "changelog_generation": 1}	2026-11-30 11:54:47.760205+00
4	shop	shop	orders	followed	following	1	1	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders", "changelog_generation": 1}	2026-11-30 11:54:47.760294+00
5	shop	shop	prices	followed	following	1	1	{"need": null, "mirror": "shop/shop/prices", "changelog": "shop/_changes/shop/prices", "changelog_generation": 1}	2026-11-30 11:54:47.760354+00
6	shop	shop	readings	followed	following	1	1	{"need": null, "mirror": "shop/shop/readings", "changelog": "shop/_changes/shop/readings", "changelog_generation": 1}	2026-11-30 11:54:47.760432+00
7	shop	shop	stock	followed	following	1	1	{"need": null, "mirror": "shop/shop/stock", "changelog": "shop/_changes/shop/stock", "changelog_generation": 1}	2026-11-30 11:54:47.779143+00
8	shop	shop	visits	followed	following	1	1	{"need": null, "mirror": "shop/shop/visits", "changelog": "shop/_changes/shop/visits", "changelog_generation": 1}	2026-11-30 11:54:47.779191+00
9	shop	shop	carts	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:07.564689+00
10	shop	shop	customers	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:07.643819+00
11	shop	shop	order_lines	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:07.690569+00
12	shop	shop	orders	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:07.712005+00
13	shop	shop	visits	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:07.91335+00
14	shop	shop	prices	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:07.925676+00
15	shop	shop	stock	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:07.93646+00
16	shop	shop	readings	mirror written	following	\N	1	{"version": 2}	2026-11-30 11:55:27.751021+00
17	shop	shop	orders	followed	following	2	2	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders@2", "changelog_generation": 2}	2026-11-30 11:55:29.757597+00
18	shop	shop	carts	dropped	dropped	2	2	{"mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802, "changelog_generation": 1}	2026-11-30 11:55:29.759606+00
19	shop	shop	baskets	followed	following	2	2	{"need": null, "mirror": "shop/shop/baskets", "changelog": "shop/_changes/shop/baskets", "changelog_generation": 1}	2026-11-30 11:55:29.759804+00
20	shop	shop	baskets	mirror written	following	\N	2	{"version": 1}	2026-11-30 11:55:30.873305+00
21	shop	shop	orders	mirror written	following	\N	2	{"version": 3}	2026-11-30 11:55:31.541743+00
22	shop	shop	customers	mirror written	following	\N	2	{"version": 4}	2026-11-30 11:55:38.683173+00
23	shop	shop	prices	stopped	stopped	\N	3	{"by": "person", "hint": "`lockstep resume shop.prices` brings it back", "need": null, "reason": "root paused it: the auditors asked for it", "position": null, "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802}	2026-11-30 11:55:39.1+00
24	shop	shop	stock	stopped	stopped	3	4	{"by": "system", "hint": "`lockstep resume shop.stock --reason …` brings it back", "need": null, "reason": "stored values of place may have changed: varchar(40) became varchar(12), which is shorter", "position": "binlog.000002:8378", "stopped_base": "binlog", "stopped_batch": 3, "stopped_number": 2, "stopped_offset": 8378}	2026-11-30 11:55:39.783853+00
\.
copy lockstep.table_orders from stdin;
1	shop	3	shop	prices	pause	root	the auditors asked for it	2026-11-30 11:55:39.069975+00	\N	\N	\N	\N
\.
copy lockstep.table_states from stdin;
shop	shop	order_lines	following	1	shop/shop/order_lines	shop/_changes/shop/order_lines	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	11
shop	shop	visits	following	1	shop/shop/visits	shop/_changes/shop/visits	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	13
shop	shop	readings	following	1	shop/shop/readings	shop/_changes/shop/readings	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	16
shop	shop	carts	dropped	1	shop/shop/carts	shop/_changes/shop/carts	\N	\N	\N	\N	\N	2	1	1	\N	2	binlog	2	5802	\N	18
shop	shop	baskets	following	1	shop/shop/baskets	shop/_changes/shop/baskets	\N	\N	\N	\N	\N	1	1	1	\N	\N	\N	\N	\N	\N	20
shop	shop	orders	following	1	shop/shop/orders	shop/_changes/shop/orders@2	\N	\N	\N	\N	\N	3	1	2	\N	\N	\N	\N	\N	\N	21
shop	shop	customers	following	1	shop/shop/customers	shop/_changes/shop/customers	\N	\N	\N	\N	\N	4	1	1	\N	\N	\N	\N	\N	\N	22
shop	shop	prices	stopped	1	shop/shop/prices	shop/_changes/shop/prices	root paused it: the auditors asked for it	`lockstep resume shop.prices` brings it back	binlog.000002:5802	person	\N	2	1	1	\N	2	binlog	2	5802	\N	23
shop	shop	stock	stopped	1	shop/shop/stock	shop/_changes/shop/stock	stored values of place may have changed: varchar(40) became varchar(12), which is shorter	`lockstep resume shop.stock --reason …` brings it back	binlog.000002:8378	system	\N	2	1	1	\N	3	binlog	2	8378	3	24
\.
copy lockstep.table_versions from stdin;
shop	shop	carts	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	d4dcf697c3454183	\N	\N	\N	\N
shop	shop	customers	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	1777a5e4836fde57	\N	\N	\N	{"treatments": ["shown", "shown", "shown", "mask last:3"], "rows": null, "key": null, "schema": {"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "text", "charset": "utf8mb4"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}}
shop	shop	order_lines	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	809bd95094f7bbb9	\N	\N	\N	\N
shop	shop	orders	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8dde157c8e27aa99	\N	\N	\N	\N
shop	shop	prices	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	5d24d1b28a34b4ed	\N	\N	\N	\N
shop	shop	readings	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	d58f084a8f922173	\N	\N	\N	\N
shop	shop	stock	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cecc715cc155cdc1	\N	\N	\N	\N
shop	shop	visits	1	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	2386d446c49971b5	\N	\N	\N	\N
shop	shop	carts	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	d4dcf697c3454183	\N	\N	\N	\N
shop	shop	customers	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	1777a5e4836fde57	\N	\N	\N	{"treatments": ["shown", "shown", "shown", "mask last:3"], "rows": null, "key": null, "schema": {"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "text", "charset": "utf8mb4"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}}
shop	shop	order_lines	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	809bd95094f7bbb9	\N	\N	\N	\N
shop	shop	orders	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8dde157c8e27aa99	\N	\N	\N	\N
shop	shop	prices	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	5d24d1b28a34b4ed	\N	\N	\N	\N
shop	shop	readings	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	d58f084a8f922173	\N	\N	\N	\N
shop	shop	stock	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	cecc715cc155cdc1	\N	\N	\N	\N
shop	shop	visits	2	1	1	binlog	2	198	known	baseline	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	2386d446c49971b5	\N	\N	\N	\N
shop	shop	customers	3	1	2	binlog	2	3456	known	statement	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "vip", "type": "tinyint", "nullable": false, "default": ["value", "0"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	b4f4b6984c1f4d42	{id,name,email,phone,NULL}	1	\N	{"treatments": ["shown", "shown", "shown", "mask last:3", "shown"], "rows": null, "key": null, "schema": {"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "text", "charset": "utf8mb4"}, {"name": "vip", "type": "tinyint", "nullable": false, "default": ["value", "0"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}}
shop	shop	customers	4	1	2	binlog	2	4382	known	statement	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "mail", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "vip", "type": "tinyint", "nullable": false, "default": ["value", "0"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	ab40c40ab0f15b4b	{id,name,email,phone,vip}	2	\N	{"treatments": ["shown", "shown", "shown", "mask last:3", "shown"], "rows": null, "key": null, "schema": {"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "mail", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "text", "charset": "utf8mb4"}, {"name": "vip", "type": "tinyint", "nullable": false, "default": ["value", "0"]}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}}
shop	shop	orders	3	2	2	binlog	2	4605	known	statement	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "bigint", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8bc91116cc761cb	{id,customer,amount,state,placed_at,note}	3	\N	\N
shop	shop	baskets	1	1	2	binlog	2	5496	known	statement	{"name": {"database": "shop", "name": "baskets"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	d4dcf697c3454183	\N	4	\N	\N
shop	shop	carts	3	1	2	binlog	2	5496	dropped	statement	\N	\N	\N	4	\N	\N
shop	shop	stock	3	1	3	binlog	2	8585	known	statement	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	9ee7c5afc7549afe	{sku,place,count}	5	\N	\N
\.
copy lockstep.version_sets from stdin;
shop	1	shop	carts	shop/shop/carts	0	04aa6657-d084-4c90-a902-59b41120f14c	\N	\N
shop	1	shop	customers	shop/shop/customers	0	bd43762b-7b74-40f5-8230-cb0ab06950b9	\N	\N
shop	1	shop	order_lines	shop/shop/order_lines	0	835a54f2-aeae-4d3b-8939-72c6cf71ead2	\N	\N
shop	1	shop	orders	shop/shop/orders	0	e3fd122d-8b18-465e-9add-e6dd802abcae	\N	\N
shop	1	shop	prices	shop/shop/prices	0	67922dd9-c0da-4288-826d-3f7e3b39375b	\N	\N
shop	1	shop	readings	shop/shop/readings	0	e6c2fb24-2bbc-4399-b6e6-392a56555638	\N	\N
shop	1	shop	stock	shop/shop/stock	0	329ce2fd-737d-4ed7-87d4-df086f78704a	\N	\N
shop	1	shop	visits	shop/shop/visits	0	4491f622-4309-4194-9467-adf3751f5969	\N	\N
shop	2	shop	baskets	shop/shop/baskets	0	170157ce-529c-4932-9e59-f32b83189192	\N	\N
shop	2	shop	carts	\N	\N	\N	dropped	\N
shop	2	shop	customers	shop/shop/customers	5	bd43762b-7b74-40f5-8230-cb0ab06950b9	\N	\N
shop	2	shop	order_lines	shop/shop/order_lines	1	835a54f2-aeae-4d3b-8939-72c6cf71ead2	\N	\N
shop	2	shop	orders	shop/shop/orders	3	e3fd122d-8b18-465e-9add-e6dd802abcae	\N	\N
shop	2	shop	visits	shop/shop/visits	1	4491f622-4309-4194-9467-adf3751f5969	\N	\N
shop	3	shop	prices	\N	\N	\N	stopped	\N
shop	3	shop	stock	\N	\N	\N	stopped	\N
\.
copy lockstep.writes from stdin;
1	shop	1	shop	carts	lockstep/shop/shop.carts/mirror/1	1	1	1	merge	\N	f	2026-11-30 11:54:48.264765+00	0	2026-11-30 11:55:07.546157+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/carts	04aa6657-d084-4c90-a902-59b41120f14c
2	shop	1	shop	customers	lockstep/shop/shop.customers/mirror/1	2	1	1	merge	\N	f	2026-11-30 11:54:48.265858+00	0	2026-11-30 11:55:07.640006+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/customers	bd43762b-7b74-40f5-8230-cb0ab06950b9
3	shop	1	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	3	1	1	merge	\N	f	2026-11-30 11:54:48.266136+00	0	2026-11-30 11:55:07.685331+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/order_lines	835a54f2-aeae-4d3b-8939-72c6cf71ead2
4	shop	1	shop	orders	lockstep/shop/shop.orders/mirror/1	4	1	1	merge	\N	f	2026-11-30 11:54:48.266365+00	0	2026-11-30 11:55:07.703037+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/orders	e3fd122d-8b18-465e-9add-e6dd802abcae
8	shop	1	shop	visits	lockstep/shop/shop.visits/mirror/1	8	1	1	merge	\N	f	2026-11-30 11:54:48.267057+00	0	2026-11-30 11:55:07.905126+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/visits	4491f622-4309-4194-9467-adf3751f5969
5	shop	1	shop	prices	lockstep/shop/shop.prices/mirror/1	5	1	1	merge	\N	f	2026-11-30 11:54:48.26653+00	0	2026-11-30 11:55:07.924902+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/prices	67922dd9-c0da-4288-826d-3f7e3b39375b
7	shop	1	shop	stock	lockstep/shop/shop.stock/mirror/1	7	1	1	merge	\N	f	2026-11-30 11:54:48.267012+00	0	2026-11-30 11:55:07.934309+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/stock	329ce2fd-737d-4ed7-87d4-df086f78704a
6	shop	1	shop	readings	lockstep/shop/shop.readings/mirror/1	6	1	1	merge	\N	f	2026-11-30 11:54:48.266666+00	0	2026-11-30 11:55:27.750267+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; Spark is set for many rows	shop/shop/readings	e6c2fb24-2bbc-4399-b6e6-392a56555638
10	shop	2	shop	carts	lockstep/shop/shop.carts/mirror/1	10	2	2	merge	\N	f	2026-11-30 11:55:30.044319+00	1	2026-11-30 11:55:30.472204+00	2	\N	no row of the table changed; the rows are few, so they were put together in memory	shop/shop/carts	04aa6657-d084-4c90-a902-59b41120f14c
9	shop	2	shop	baskets	lockstep/shop/shop.baskets/mirror/1	9	2	2	merge	1	f	2026-11-30 11:55:30.04349+00	0	2026-11-30 11:55:30.871338+00	2	\N	its rows were those of shop.carts, copied from version 0 of shop/shop/carts; the rows are few, so they were put together in memory	shop/shop/baskets	170157ce-529c-4932-9e59-f32b83189192
12	shop	2	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	12	2	2	merge	\N	f	2026-11-30 11:55:30.044801+00	1	2026-11-30 11:55:30.89481+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/order_lines	835a54f2-aeae-4d3b-8939-72c6cf71ead2
14	shop	2	shop	visits	lockstep/shop/shop.visits/mirror/1	14	2	2	merge	\N	f	2026-11-30 11:55:30.045072+00	1	2026-11-30 11:55:31.099198+00	2	\N	the table has no key, so copies of its rows are counted; the rows are few, so they were put together in memory	shop/shop/visits	4491f622-4309-4194-9467-adf3751f5969
13	shop	2	shop	orders	lockstep/shop/shop.orders/mirror/1	13	2	2	merge	\N	f	2026-11-30 11:55:30.044942+00	3	2026-11-30 11:55:31.540566+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/orders	e3fd122d-8b18-465e-9add-e6dd802abcae
11	shop	2	shop	customers	lockstep/shop/shop.customers/mirror/1	11	2	2	merge	\N	f	2026-11-30 11:55:30.044625+00	5	2026-11-30 11:55:38.680102+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/customers	bd43762b-7b74-40f5-8230-cb0ab06950b9
\.
select setval('lockstep.batches_id_seq', 4);
select setval('lockstep.consumers_id_seq', 1);
select setval('lockstep.database_versions_id_seq', 2);
select setval('lockstep.decisions_id_seq', 4);
select setval('lockstep.deliveries_id_seq', 1);
select setval('lockstep.loads_id_seq', 9);
select setval('lockstep.schema_statements_id_seq', 5);
select setval('lockstep.segments_id_seq', 15);
select setval('lockstep.snapshots_id_seq', 8);
select setval('lockstep.sources_lock_key_seq', 1);
select setval('lockstep.table_life_id_seq', 24);
select setval('lockstep.table_orders_id_seq', 1);
select setval('lockstep.txn_versions', 14);
select setval('lockstep.writes_id_seq', 14);
