-- migration 1: aceae8fda02d80a548d653e0b8dfb328a602631b01d9ec7cf15253cc17eb1447
copy lockstep.batches from stdin;
1	shop	ordinary	acknowledged	\N	1	\N	\N	0	1	2026-11-29 15:51:34.942309+00	binlog	2	198	8816e47e-ec0c-11f1-880b-02fc00000001:1-17	8816e47e-ec0c-11f1-880b-02fc00000001	\N	binlog	2	198	8816e47e-ec0c-11f1-880b-02fc00000001:1-17	8816e47e-ec0c-11f1-880b-02fc00000001	\N	127	71	1663095051		1795967409	t	2026-11-29 15:49:59.273057+00	0	8	0	0	0	\N	\N	2026-11-29 15:51:37.815438+00	2026-11-29 15:52:15.329515+00	2026-11-29 15:52:15.341363+00	\N	\N
2	shop	ordinary	acknowledged	1	\N	\N	1	8	2	2026-11-29 15:52:16.261795+00	binlog	2	198	8816e47e-ec0c-11f1-880b-02fc00000001:1-17	8816e47e-ec0c-11f1-880b-02fc00000001	\N	binlog	2	5802	8816e47e-ec0c-11f1-880b-02fc00000001:1-26	8816e47e-ec0c-11f1-880b-02fc00000001	2026-11-29 15:52:15.607751+00	5771	31	2963740918	8816e47e-ec0c-11f1-880b-02fc00000001:26	1795967409	t	2026-11-29 15:49:59.242825+00	0	59	9	5604	0	\N	\N	2026-11-29 15:52:16.683268+00	2026-11-29 15:52:26.373662+00	2026-11-29 15:52:26.390418+00	\N	\N
3	shop	ordinary	acknowledged	2	\N	\N	2	67	4	2026-11-29 15:52:27.437045+00	binlog	2	5802	8816e47e-ec0c-11f1-880b-02fc00000001:1-26	8816e47e-ec0c-11f1-880b-02fc00000001	2026-11-29 15:52:15.607751+00	binlog	2	11797	8816e47e-ec0c-11f1-880b-02fc00000001:1-30	8816e47e-ec0c-11f1-880b-02fc00000001	2026-11-29 15:52:27.066332+00	11766	31	879935259	8816e47e-ec0c-11f1-880b-02fc00000001:30	1795967409	t	2026-11-29 15:49:59.413494+00	0	100	4	5995	0	\N	\N	2026-11-29 15:52:27.693225+00	2026-11-29 15:52:27.967996+00	2026-11-29 15:52:27.997925+00	\N	\N
4	shop	ordinary	capturing	3	\N	\N	3	167	6	2026-11-29 15:52:29.311717+00	binlog	2	11797	8816e47e-ec0c-11f1-880b-02fc00000001:1-30	8816e47e-ec0c-11f1-880b-02fc00000001	2026-11-29 15:52:27.066332+00	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	f	\N	\N	0	0	0	0	\N	\N	\N	\N	\N	\N	\N
\.
copy lockstep.capture_scopes from stdin;
shop	1	{shop.*}	{}
\.
copy lockstep.consumers from stdin;
1	shop	billing	\N	2026-11-29 15:52:15.548277+00	\N	\N	\N
\.
copy lockstep.database_versions from stdin;
1	shop	mysql	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"tables": ["columns_priv", "component", "db", "default_roles", "engine_cost", "func", "general_log", "global_grants", "gtid_executed", "help_category", "help_keyword", "help_relation", "help_topic", "innodb_index_stats", "innodb_table_stats", "ndb_binlog_index", "password_history", "plugin", "procs_priv", "proxies_priv", "replication_asynchronous_connection_failover", "replication_asynchronous_connection_failover_managed", "replication_group_configuration_version", "replication_group_member_actions", "role_edges", "server_cost", "servers", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "slow_log", "tables_priv", "time_zone", "time_zone_leap_second", "time_zone_name", "time_zone_transition", "time_zone_transition_type", "user"]}	\N
2	shop	shop	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{}	\N
\.
copy lockstep.decisions from stdin;
1	shop	1	start	configured-snapshot	start = 'snapshot': tables are read from the source, and the log from its end binlog.000002:198 on	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:198", "after": 0, "anchor": "not read", "cursor": null, "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 198}], "read_at": "2026-11-29T15:51:34.767538+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "8816e47e-ec0c-11f1-880b-02fc00000001", "gtid_executed": "8816e47e-ec0c-11f1-880b-02fc00000001:1-17"}	lockstep	2026-11-29 15:51:34.893568+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
2	shop	2	start	resume-same-server	batch 1 ended at binlog.000002:198, and the log there is unchanged	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:5802", "after": 1, "anchor": "the same", "cursor": "binlog.000002:198", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 5802}], "read_at": "2026-11-29T15:52:16.242825+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "8816e47e-ec0c-11f1-880b-02fc00000001", "gtid_executed": "8816e47e-ec0c-11f1-880b-02fc00000001:1-26"}	lockstep	2026-11-29 15:52:16.25098+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
3	shop	4	start	resume-same-server	batch 2 ended at binlog.000002:5802, and the log there is unchanged	{"at": "binlog.000002:5802", "set": "not kept", "head": "binlog.000002:11797", "after": 2, "anchor": "the same", "cursor": "binlog.000002:5802", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T15:52:27.413494+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "8816e47e-ec0c-11f1-880b-02fc00000001", "gtid_executed": "8816e47e-ec0c-11f1-880b-02fc00000001:1-30"}	lockstep	2026-11-29 15:52:27.430339+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
4	shop	6	start	resume-same-server	batch 3 ended at binlog.000002:11797, and the log there is unchanged	{"at": "binlog.000002:11797", "set": "not kept", "head": "binlog.000002:11797", "after": 3, "anchor": "the same", "cursor": "binlog.000002:11797", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T15:52:29.285056+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "8816e47e-ec0c-11f1-880b-02fc00000001", "gtid_executed": "8816e47e-ec0c-11f1-880b-02fc00000001:1-30"}	lockstep	2026-11-29 15:52:29.293355+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
\.
copy lockstep.deliveries from stdin;
1	shop	1	1	2	acknowledged	2026-11-29 15:52:28.314806+00	2026-11-29 15:52:28.322683+00
\.
copy lockstep.leases from stdin;
shop	1	vm, process 20647 (run)	7b1d9e2d-cc58-41b9-9a27-0cad61a8f436	20693	2026-11-29 15:51:34.397332+00	f	2026-11-29 15:52:15.365242+00
shop	2	vm, process 23840 (run)	38aa05e1-8a2f-4180-9764-d56c7765b458	23846	2026-11-29 15:52:16.115255+00	f	2026-11-29 15:52:26.474011+00
shop	3	vm, process 24445 (pause)	\N	24460	2026-11-29 15:52:26.928189+00	f	2026-11-29 15:52:26.961145+00
shop	4	vm, process 24466 (run)	40520672-e1d9-4c9e-a241-616fa72bb3e0	24473	2026-11-29 15:52:27.246573+00	f	2026-11-29 15:52:28.090248+00
shop	5	vm, process 24548 (reload)	\N	24558	2026-11-29 15:52:28.57909+00	f	2026-11-29 15:52:28.738584+00
shop	6	vm, process 24566 (run)	c59ac331-9d0e-470a-9d20-263624d878e6	24589	2026-11-29 15:52:29.154861+00	f	\N
\.
copy lockstep.ledger from stdin;
8270f7a0-1fa8-42c5-a52b-ea496d085419	2026-11-29 15:50:05.065461+00	t
\.
copy lockstep.load_chunks from stdin;
1	0	\N	\N	binlog	2	198	binlog	2	198	2	0.21638230600365205
2	0	\N	\N	binlog	2	198	binlog	2	198	40	0.28788950399757596
3	0	\N	\N	binlog	2	198	binlog	2	198	300	0.1777118150057504
4	0	\N	\N	binlog	2	198	binlog	2	198	300	0.14343852599995444
6	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	198	binlog	2	198	10000	0.2652747040046961
5	0	\N	\N	binlog	2	198	binlog	2	198	50	0.4268036130015389
7	0	\N	\N	binlog	2	198	binlog	2	198	50	0.15943001800042111
8	0	\N	\N	binlog	2	198	binlog	2	198	3	0.2503234550022171
6	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	198	binlog	2	198	2000	0.1526361750002252
9	1	{"columns": ["id"], "literals": ["10000"]}	\N	\N	\N	\N	\N	\N	\N	\N	\N
9	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	11797	binlog	2	11797	10000	0.0525198420000379
\.
copy lockstep.load_files from stdin;
1	0	0	load-000000000001-000000-906ad9b4-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	0	load-000000000002-000000-906ad9b4-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	0	load-000000000003-000000-906ad9b4-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	0	load-000000000004-000000-906ad9b4-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
6	0	0	load-000000000006-000000-906ad9b4-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
5	0	0	load-000000000005-000000-906ad9b4-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
7	0	0	load-000000000007-000000-906ad9b4-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	0	load-000000000008-000000-906ad9b4-00000.parquet	3	712	fdbde910046903e283a1f1eb6da8bb63df4f3e30b55796e73dd21391fb4f3c7f
6	1	0	load-000000000006-000001-906ad9b4-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
9	0	0	load-000000000009-000000-aaf64f8a-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
\.
copy lockstep.loads from stdin;
1	shop	1	shop	carts	lockstep	rows are older than what is read of the log	2026-11-29 15:51:34.953909+00	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	2	\N	f	1	1	2	1	\N
2	shop	1	shop	customers	lockstep	rows are older than what is read of the log	2026-11-29 15:51:34.96324+00	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	40	7636ffe95a3d76aa	f	1	2	2	1	\N
3	shop	1	shop	order_lines	lockstep	rows are older than what is read of the log	2026-11-29 15:51:34.977946+00	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	300	\N	f	1	3	2	1	\N
4	shop	1	shop	orders	lockstep	rows are older than what is read of the log	2026-11-29 15:51:34.980041+00	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	300	\N	f	1	4	2	1	\N
5	shop	1	shop	prices	lockstep	rows are older than what is read of the log	2026-11-29 15:51:34.980446+00	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	50	\N	f	1	5	2	1	\N
6	shop	1	shop	readings	lockstep	rows are older than what is read of the log	2026-11-29 15:51:34.980774+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	12202	\N	f	1	6	2	1	\N
7	shop	1	shop	stock	lockstep	rows are older than what is read of the log	2026-11-29 15:51:34.981127+00	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	50	\N	f	1	7	2	1	\N
8	shop	1	shop	visits	lockstep	rows are older than what is read of the log	2026-11-29 15:51:35.007054+00	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	198	3	\N	f	1	8	2	1	\N
9	shop	5	shop	readings	root	restored by hand	2026-11-29 15:52:28.705981+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	8816e47e-ec0c-11f1-880b-02fc00000001	binlog	2	11797	12202	\N	f	\N	\N	\N	\N	\N
\.
copy lockstep.looked from stdin;
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
copy lockstep.schema_statements from stdin;
1	shop	2	binlog	2	3231	binlog	2	3456	8816e47e-ec0c-11f1-880b-02fc00000001:19	2026-11-29 15:52:15.561597+00	"shop"	"alter table customers add column vip bool not null default '***'"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:52:15+00:00", "redacted": true}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone), (id, name, email, phone, vip)"}]
2	shop	2	binlog	2	4168	binlog	2	4382	8816e47e-ec0c-11f1-880b-02fc00000001:21	2026-11-29 15:52:15.563076+00	"shop"	"alter table customers rename column email to mail"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:52:15+00:00"}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone, vip), (id, name, mail, phone, vip)"}]
3	shop	2	binlog	2	4382	binlog	2	4605	8816e47e-ec0c-11f1-880b-02fc00000001:22	2026-11-29 15:52:15.58346+00	"shop"	"alter table orders modify customer bigint not null"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "SYSTEM", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:52:15+00:00"}	followed	[{"table": {"database": "shop", "name": "orders"}, "words": "column customer type: int, bigint"}]
4	shop	2	binlog	2	5304	binlog	2	5496	8816e47e-ec0c-11f1-880b-02fc00000001:25	2026-11-29 15:52:15.598492+00	"shop"	"rename table carts to baskets"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:52:15+00:00"}	followed	[{"table": {"database": "shop", "name": "carts"}, "words": "is now called shop.baskets"}, {"table": {"database": "shop", "name": "baskets"}, "words": "was called shop.carts"}]
5	shop	3	binlog	2	8378	binlog	2	8585	8816e47e-ec0c-11f1-880b-02fc00000001:28	2026-11-29 15:52:27.055839+00	"shop"	"alter table stock modify place varchar(12)"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:52:27+00:00"}	followed	[{"table": {"database": "shop", "name": "stock"}, "words": "column place length: 40, 12"}]
\.
copy lockstep.segment_files from stdin;
1	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	3555	9d3424ce5aabaa4cf651cda663a884a506b65abc102163dd12c10f9977a152f8
2	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	3907	61d75cba139bf6a5adebd16597e83b12bee0073400308401d68c3e2e085ce840
3	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	3938	bc1424c6f9c6ad833222e27de80d30c40db7e76c3d9a79c03697bf999c1cf601
4	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	4322	98786fdeffde035daed166857b6bde9ffbfbc6bee6ba21bbb4f314cde402391f
5	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	3569	4aaede8a1199103260319fed0cd27bd8d56cadef9c3e3f267d9e5624ff19c304
6	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	3585	59465b7318968e654d8e019f11044772fb41c643a70ee3a8f1419f20fa03bf43
7	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	3737	22e3c950e93276c1bcc00d57556be021474d5e1cda21dea8e31c0eb1355c83c9
8	0	batch-000000000001-v2-906ad9b4-00000.parquet	1	3588	ea032dead399c7888003d59ae5b2736b27b68da3388f28826d407713d8de4701
9	0	batch-000000000002-v2-7b985c31-00000.parquet	40	5808	de00e1686a93240b78b87c6914cb09534eac3397c18f92e894e2d938c4d30ca8
10	0	batch-000000000002-v2-7b985c31-00000.parquet	3	4536	c8b0ad6073de8eaaa121002d6511d71bf1cf0cff66085de4754dde3572d02598
11	0	batch-000000000002-v2-7b985c31-00000.parquet	3	4127	956b52893b21defefe467f5c9e80043b0b7cef9fb7dc6fbdbf3dc12170021091
12	0	batch-000000000002-v3-7b985c31-00000.parquet	10	4914	af9acecda8dc3a16a8056780854f93ca602075b37e46a31087cf151c3be82f44
13	0	batch-000000000002-v3-7b985c31-00000.parquet	1	4990	ad27ef9483a9d644c87207c7aa0e76333e310adbc021c0ebc9d14bafb0b8874c
14	0	batch-000000000002-v1-7b985c31-00000.parquet	2	3997	d932c1ede73bc2703c0381d570cf0405d23cdfc9c365a8ca422bda101b88bf7c
15	0	batch-000000000003-v2-21148c75-00000.parquet	100	4924	73e06cf2b6ecb43b9cc6feccda2c21a2e65dbd652c18843537aa394bd7eb187f
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
shop	2	0	8816e47e-ec0c-11f1-880b-02fc00000001	8816e47e-ec0c-11f1-880b-02fc00000001:26	1795967535607751	
shop	3	0	8816e47e-ec0c-11f1-880b-02fc00000001	8816e47e-ec0c-11f1-880b-02fc00000001:30	1795967547066332	
\.
copy lockstep.snapshot_files from stdin;
1	0	load-000000000001-000000-906ad9b4-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	load-000000000002-000000-906ad9b4-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	load-000000000003-000000-906ad9b4-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	load-000000000004-000000-906ad9b4-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	load-000000000005-000000-906ad9b4-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	load-000000000006-000000-906ad9b4-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
6	1	load-000000000006-000001-906ad9b4-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
7	0	load-000000000007-000000-906ad9b4-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	load-000000000008-000000-906ad9b4-00000.parquet	3	712	fdbde910046903e283a1f1eb6da8bb63df4f3e30b55796e73dd21391fb4f3c7f
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
shop	2	_ddl	0	batch-000000000002-v1-7b985c31-00000.parquet	4	6310	4834070cc93b1e3fd89b221e07196ee931d80b6c184e140b1d8b41d0cae373ba
shop	2	_transactions	0	batch-000000000002-v1-7b985c31-00000.parquet	9	3775	baf33ec2c30c8ae05ea8da71af98133523f097b022ec75c3d4a6bace171f9e3a
shop	3	_ddl	0	batch-000000000003-v1-21148c75-00000.parquet	1	6180	31956f761c55f9b098a9b78b33fcef8c0e9fbf14e75f9170163245139e244acf
shop	3	_transactions	0	batch-000000000003-v1-21148c75-00000.parquet	4	3708	b2f0f7529dc8cd04c89b262353a785d40d5b9bd697d623bdfa827c24b5f2e2ce
\.
copy lockstep.sources from stdin;
shop	1	6	2026-11-29 15:51:34.358546+00	2026-11-29 15:52:29.154205+00	\N
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
1	shop	shop	carts	followed	following	1	1	{"need": null, "mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "changelog_generation": 1}	2026-11-29 15:51:37.59283+00
2	shop	shop	customers	followed	following	1	1	{"need": null, "mirror": "shop/shop/customers", "changelog": "shop/_changes/shop/customers", "changelog_generation": 1}	2026-11-29 15:51:37.593472+00
3	shop	shop	order_lines	followed	following	1	1	{"need": null, "mirror": "shop/shop/order_lines", "changelog": "shop/_changes/shop/order_lines", "changelog_generation": 1}	2026-11-29 15:51:37.593539+00
4	shop	shop	orders	followed	following	1	1	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders", "changelog_generation": 1}	2026-11-29 15:51:37.593577+00
5	shop	shop	prices	followed	following	1	1	{"need": null, "mirror": "shop/shop/prices", "changelog": "shop/_changes/shop/prices", "changelog_generation": 1}	2026-11-29 15:51:37.59361+00
6	shop	shop	readings	followed	following	1	1	{"need": null, "mirror": "shop/shop/readings", "changelog": "shop/_changes/shop/readings", "changelog_generation": 1}	2026-11-29 15:51:37.593641+00
7	shop	shop	stock	followed	following	1	1	{"need": null, "mirror": "shop/shop/stock", "changelog": "shop/_changes/shop/stock", "changelog_generation": 1}	2026-11-29 15:51:37.593679+00
8	shop	shop	visits	followed	following	1	1	{"need": null, "mirror": "shop/shop/visits", "changelog": "shop/_changes/shop/visits", "changelog_generation": 1}	2026-11-29 15:51:37.59373+00
9	shop	shop	carts	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:51:58.830297+00
10	shop	shop	orders	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:51:58.841429+00
11	shop	shop	customers	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:51:58.843588+00
12	shop	shop	order_lines	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:51:58.853463+00
13	shop	shop	prices	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:51:59.851737+00
14	shop	shop	visits	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:51:59.854035+00
15	shop	shop	stock	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:51:59.918135+00
16	shop	shop	readings	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:52:15.286431+00
17	shop	shop	orders	followed	following	2	2	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders@2", "changelog_generation": 2}	2026-11-29 15:52:16.663965+00
18	shop	shop	carts	dropped	dropped	2	2	{"mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802, "changelog_generation": 1}	2026-11-29 15:52:16.664306+00
19	shop	shop	baskets	followed	following	2	2	{"need": null, "mirror": "shop/shop/baskets", "changelog": "shop/_changes/shop/baskets", "changelog_generation": 1}	2026-11-29 15:52:16.664355+00
20	shop	shop	baskets	mirror written	following	\N	2	{"version": 1}	2026-11-29 15:52:17.922573+00
21	shop	shop	orders	mirror written	following	\N	2	{"version": 3}	2026-11-29 15:52:19.031958+00
22	shop	shop	customers	mirror written	following	\N	2	{"version": 4}	2026-11-29 15:52:26.368215+00
23	shop	shop	prices	stopped	stopped	\N	3	{"by": "person", "hint": "`lockstep resume shop.prices` brings it back", "need": null, "reason": "root paused it: the auditors asked for it", "position": null, "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802}	2026-11-29 15:52:26.947772+00
24	shop	shop	stock	stopped	stopped	3	4	{"by": "system", "hint": "`lockstep resume shop.stock --reason …` brings it back", "need": null, "reason": "stored values of place may have changed: varchar(40) became varchar(12), which is shorter", "position": "binlog.000002:8378", "stopped_base": "binlog", "stopped_batch": 3, "stopped_number": 2, "stopped_offset": 8378}	2026-11-29 15:52:27.654164+00
\.
copy lockstep.table_orders from stdin;
1	shop	3	shop	prices	pause	root	the auditors asked for it	2026-11-29 15:52:26.935856+00	\N	\N	\N	\N
\.
copy lockstep.table_states from stdin;
shop	shop	order_lines	following	1	shop/shop/order_lines	shop/_changes/shop/order_lines	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	12
shop	shop	visits	following	1	shop/shop/visits	shop/_changes/shop/visits	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	14
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
shop	1	shop	carts	shop/shop/carts	0	a4085eed-d9ba-4d71-9f6c-7a02db648b21	\N	\N
shop	1	shop	customers	shop/shop/customers	0	89e70547-da99-4a1f-9166-72eea2e641ea	\N	\N
shop	1	shop	order_lines	shop/shop/order_lines	0	51d6b6bf-7c30-4821-97db-66fdb45cb14c	\N	\N
shop	1	shop	orders	shop/shop/orders	0	22d3c18b-5a82-48b1-b90c-3876ab89cca9	\N	\N
shop	1	shop	prices	shop/shop/prices	0	a7cbd0ff-b789-4bea-8503-8ca4491fd10b	\N	\N
shop	1	shop	readings	shop/shop/readings	0	5f51aa67-39e6-4cff-a16b-92a19310f33a	\N	\N
shop	1	shop	stock	shop/shop/stock	0	97e7ad16-aa84-48f6-b820-930a84d89f79	\N	\N
shop	1	shop	visits	shop/shop/visits	0	abed60a3-7f02-45fb-a44b-03d657d6b21a	\N	\N
shop	2	shop	baskets	shop/shop/baskets	0	49875b78-b10f-4642-8ffc-32d5daa167a9	\N	\N
shop	2	shop	carts	\N	\N	\N	dropped	\N
shop	2	shop	customers	shop/shop/customers	5	89e70547-da99-4a1f-9166-72eea2e641ea	\N	\N
shop	2	shop	order_lines	shop/shop/order_lines	1	51d6b6bf-7c30-4821-97db-66fdb45cb14c	\N	\N
shop	2	shop	orders	shop/shop/orders	3	22d3c18b-5a82-48b1-b90c-3876ab89cca9	\N	\N
shop	2	shop	visits	shop/shop/visits	1	abed60a3-7f02-45fb-a44b-03d657d6b21a	\N	\N
shop	3	shop	prices	\N	\N	\N	stopped	\N
shop	3	shop	stock	\N	\N	\N	stopped	\N
\.
copy lockstep.writes from stdin;
1	shop	1	shop	carts	lockstep/shop/shop.carts/mirror/1	1	1	1	merge	\N	2026-11-29 15:51:38.195693+00	0	2026-11-29 15:51:58.823681+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/carts	a4085eed-d9ba-4d71-9f6c-7a02db648b21
4	shop	1	shop	orders	lockstep/shop/shop.orders/mirror/1	4	1	1	merge	\N	2026-11-29 15:51:38.196809+00	0	2026-11-29 15:51:58.840338+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/orders	22d3c18b-5a82-48b1-b90c-3876ab89cca9
2	shop	1	shop	customers	lockstep/shop/shop.customers/mirror/1	2	1	1	merge	\N	2026-11-29 15:51:38.196552+00	0	2026-11-29 15:51:58.842959+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/customers	89e70547-da99-4a1f-9166-72eea2e641ea
3	shop	1	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	3	1	1	merge	\N	2026-11-29 15:51:38.196707+00	0	2026-11-29 15:51:58.844963+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/order_lines	51d6b6bf-7c30-4821-97db-66fdb45cb14c
5	shop	1	shop	prices	lockstep/shop/shop.prices/mirror/1	5	1	1	merge	\N	2026-11-29 15:51:38.196901+00	0	2026-11-29 15:51:59.850718+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/prices	a7cbd0ff-b789-4bea-8503-8ca4491fd10b
8	shop	1	shop	visits	lockstep/shop/shop.visits/mirror/1	8	1	1	merge	\N	2026-11-29 15:51:38.197217+00	0	2026-11-29 15:51:59.853243+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/visits	abed60a3-7f02-45fb-a44b-03d657d6b21a
7	shop	1	shop	stock	lockstep/shop/shop.stock/mirror/1	7	1	1	merge	\N	2026-11-29 15:51:38.197188+00	0	2026-11-29 15:51:59.883648+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/stock	97e7ad16-aa84-48f6-b820-930a84d89f79
6	shop	1	shop	readings	lockstep/shop/shop.readings/mirror/1	6	1	1	merge	\N	2026-11-29 15:51:38.19699+00	0	2026-11-29 15:52:15.285626+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; Spark is set for many rows	shop/shop/readings	5f51aa67-39e6-4cff-a16b-92a19310f33a
10	shop	2	shop	carts	lockstep/shop/shop.carts/mirror/1	10	2	2	merge	\N	2026-11-29 15:52:17.018208+00	1	2026-11-29 15:52:17.910788+00	2	\N	no row of the table changed; the rows are few, so they were put together in memory	shop/shop/carts	a4085eed-d9ba-4d71-9f6c-7a02db648b21
9	shop	2	shop	baskets	lockstep/shop/shop.baskets/mirror/1	9	2	2	merge	1	2026-11-29 15:52:17.015335+00	0	2026-11-29 15:52:17.921618+00	2	\N	its rows were those of shop.carts, copied from version 0 of shop/shop/carts; the rows are few, so they were put together in memory	shop/shop/baskets	49875b78-b10f-4642-8ffc-32d5daa167a9
12	shop	2	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	12	2	2	merge	\N	2026-11-29 15:52:17.018446+00	1	2026-11-29 15:52:17.985414+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/order_lines	51d6b6bf-7c30-4821-97db-66fdb45cb14c
14	shop	2	shop	visits	lockstep/shop/shop.visits/mirror/1	14	2	2	merge	\N	2026-11-29 15:52:17.018637+00	1	2026-11-29 15:52:18.080956+00	2	\N	the table has no key, so copies of its rows are counted; the rows are few, so they were put together in memory	shop/shop/visits	abed60a3-7f02-45fb-a44b-03d657d6b21a
13	shop	2	shop	orders	lockstep/shop/shop.orders/mirror/1	13	2	2	merge	\N	2026-11-29 15:52:17.018548+00	3	2026-11-29 15:52:19.031176+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/orders	22d3c18b-5a82-48b1-b90c-3876ab89cca9
11	shop	2	shop	customers	lockstep/shop/shop.customers/mirror/1	11	2	2	merge	\N	2026-11-29 15:52:17.018346+00	5	2026-11-29 15:52:26.367267+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/customers	89e70547-da99-4a1f-9166-72eea2e641ea
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
