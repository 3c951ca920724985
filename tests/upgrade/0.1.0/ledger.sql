-- migration 1: b1be9064635a4a9e736c83de910bac661cd511e21af3991e903ce0454c70e7d9
copy lockstep.batches from stdin;
1	shop	ordinary	acknowledged	\N	1	\N	\N	0	1	2026-11-30 14:50:18.834862+00	binlog	2	198	4f010f57-eccd-11f1-9101-02fc00000001:1-17	4f010f57-eccd-11f1-9101-02fc00000001	\N	binlog	2	198	4f010f57-eccd-11f1-9101-02fc00000001:1-17	4f010f57-eccd-11f1-9101-02fc00000001	\N	127	71	1520508552		1796050204	t	2026-11-30 14:49:56.315592+00	0	8	0	0	0	\N	\N	2026-11-30 14:50:21.874813+00	2026-11-30 14:50:45.808251+00	2026-11-30 14:50:45.843039+00	\N	\N
2	shop	ordinary	acknowledged	1	\N	\N	1	8	2	2026-11-30 14:50:47.215783+00	binlog	2	198	4f010f57-eccd-11f1-9101-02fc00000001:1-17	4f010f57-eccd-11f1-9101-02fc00000001	\N	binlog	2	5802	4f010f57-eccd-11f1-9101-02fc00000001:1-26	4f010f57-eccd-11f1-9101-02fc00000001	2026-11-30 14:50:46.149509+00	5771	31	3920915598	4f010f57-eccd-11f1-9101-02fc00000001:26	1796050204	t	2026-11-30 14:49:56.152888+00	0	59	9	5604	0	\N	\N	2026-11-30 14:50:47.868588+00	2026-11-30 14:51:02.047066+00	2026-11-30 14:51:02.05197+00	\N	\N
3	shop	ordinary	acknowledged	2	\N	\N	2	67	4	2026-11-30 14:51:02.918003+00	binlog	2	5802	4f010f57-eccd-11f1-9101-02fc00000001:1-26	4f010f57-eccd-11f1-9101-02fc00000001	2026-11-30 14:50:46.149509+00	binlog	2	11797	4f010f57-eccd-11f1-9101-02fc00000001:1-30	4f010f57-eccd-11f1-9101-02fc00000001	2026-11-30 14:51:02.389803+00	11766	31	3230310584	4f010f57-eccd-11f1-9101-02fc00000001:30	1796050204	t	2026-11-30 14:49:56.880931+00	0	100	4	5995	0	\N	\N	2026-11-30 14:51:03.134283+00	2026-11-30 14:51:03.322198+00	2026-11-30 14:51:03.326489+00	\N	\N
4	shop	ordinary	capturing	3	\N	\N	3	167	6	2026-11-30 14:51:04.624451+00	binlog	2	11797	4f010f57-eccd-11f1-9101-02fc00000001:1-30	4f010f57-eccd-11f1-9101-02fc00000001	2026-11-30 14:51:02.389803+00	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	f	\N	\N	0	0	0	0	\N	\N	\N	\N	\N	\N	\N
\.
copy lockstep.capture_scopes from stdin;
shop	1	{shop.*}	{}
\.
copy lockstep.consumers from stdin;
1	shop	billing	\N	2026-11-30 14:50:46.051055+00	\N	\N	\N
\.
copy lockstep.database_versions from stdin;
1	shop	mysql	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"tables": ["columns_priv", "component", "db", "default_roles", "engine_cost", "func", "general_log", "global_grants", "gtid_executed", "help_category", "help_keyword", "help_relation", "help_topic", "innodb_index_stats", "innodb_table_stats", "ndb_binlog_index", "password_history", "plugin", "procs_priv", "proxies_priv", "replication_asynchronous_connection_failover", "replication_asynchronous_connection_failover_managed", "replication_group_configuration_version", "replication_group_member_actions", "role_edges", "server_cost", "servers", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "slow_log", "tables_priv", "time_zone", "time_zone_leap_second", "time_zone_name", "time_zone_transition", "time_zone_transition_type", "user"]}	\N
2	shop	shop	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{}	\N
\.
copy lockstep.decisions from stdin;
1	shop	1	start	configured-snapshot	start = 'snapshot': tables are read from the source, and the log from its end binlog.000002:198 on	{"set": "not kept", "head": "binlog.000002:198", "place": "binlog.000002:198", "anchor": "not read", "cursor": null, "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 198}], "read_at": "2026-11-30T14:50:18.741772+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "4f010f57-eccd-11f1-9101-02fc00000001", "gtid_executed": "4f010f57-eccd-11f1-9101-02fc00000001:1-17", "previous_batch": null}	lockstep	2026-11-30 14:50:18.802556+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
2	shop	2	start	resume-same-server	batch 1 ended at binlog.000002:198, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:5802", "place": "binlog.000002:198", "anchor": "the same", "cursor": "binlog.000002:198", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 5802}], "read_at": "2026-11-30T14:50:47.152888+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "4f010f57-eccd-11f1-9101-02fc00000001", "gtid_executed": "4f010f57-eccd-11f1-9101-02fc00000001:1-26", "previous_batch": 1}	lockstep	2026-11-30 14:50:47.196786+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
3	shop	4	start	resume-same-server	batch 2 ended at binlog.000002:5802, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:11797", "place": "binlog.000002:5802", "anchor": "the same", "cursor": "binlog.000002:5802", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-30T14:51:02.880931+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "4f010f57-eccd-11f1-9101-02fc00000001", "gtid_executed": "4f010f57-eccd-11f1-9101-02fc00000001:1-30", "previous_batch": 2}	lockstep	2026-11-30 14:51:02.905434+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
4	shop	6	start	resume-same-server	batch 3 ended at binlog.000002:11797, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:11797", "place": "binlog.000002:11797", "anchor": "the same", "cursor": "binlog.000002:11797", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-30T14:51:04.515404+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "4f010f57-eccd-11f1-9101-02fc00000001", "gtid_executed": "4f010f57-eccd-11f1-9101-02fc00000001:1-30", "previous_batch": 3}	lockstep	2026-11-30 14:51:04.552341+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
\.
copy lockstep.deliveries from stdin;
1	shop	1	1	2	acknowledged	2026-11-30 14:51:03.634639+00	2026-11-30 14:51:03.645494+00
\.
copy lockstep.leases from stdin;
shop	1	vm, process 16757 (run)	51e0c67c-6fff-4a81-ac6c-71c683347369	16790	2026-11-30 14:50:18.47428+00	f	2026-11-30 14:50:45.873535+00
shop	2	vm, process 19040 (run)	43bc2bca-9b3b-4846-a382-a9c8f75863a8	19065	2026-11-30 14:50:46.856282+00	f	2026-11-30 14:51:02.081861+00
shop	3	vm, process 20239 (pause)	\N	20245	2026-11-30 14:51:02.28383+00	f	2026-11-30 14:51:02.309782+00
shop	4	vm, process 20252 (run)	817f82ca-5e54-45f7-bd90-8c1ea33aa7ae	20264	2026-11-30 14:51:02.616393+00	f	2026-11-30 14:51:03.340729+00
shop	5	vm, process 20425 (reload)	\N	20466	2026-11-30 14:51:03.834843+00	f	2026-11-30 14:51:03.942558+00
shop	6	vm, process 20511 (run)	dfd7437f-4d9b-4e80-999b-20889512e4d2	20540	2026-11-30 14:51:04.24192+00	f	\N
\.
copy lockstep.ledger from stdin;
e68900a7-4d32-4adf-a937-9a12e1768795	2026-11-30 14:50:01.431442+00	t
\.
copy lockstep.load_chunks from stdin;
1	0	\N	\N	binlog	2	198	binlog	2	198	2	0.21859819300152594	2026-11-30 14:50:19.689842+00	2026-11-30 14:50:19.931499+00
2	0	\N	\N	binlog	2	198	binlog	2	198	40	0.3533410059972084	2026-11-30 14:50:19.812901+00	2026-11-30 14:50:20.199747+00
3	0	\N	\N	binlog	2	198	binlog	2	198	300	0.350226444999862	2026-11-30 14:50:19.967568+00	2026-11-30 14:50:20.357005+00
4	0	\N	\N	binlog	2	198	binlog	2	198	300	0.23914690600213362	2026-11-30 14:50:20.319916+00	2026-11-30 14:50:20.567127+00
5	0	\N	\N	binlog	2	198	binlog	2	198	50	0.1917326190014137	2026-11-30 14:50:20.396772+00	2026-11-30 14:50:20.622774+00
6	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	198	binlog	2	198	10000	0.21657470499485498	2026-11-30 14:50:20.6051+00	2026-11-30 14:50:20.849535+00
7	0	\N	\N	binlog	2	198	binlog	2	198	50	0.19084637999912957	2026-11-30 14:50:20.643818+00	2026-11-30 14:50:20.853932+00
8	0	\N	\N	binlog	2	198	binlog	2	198	3	0.15842108899960294	2026-11-30 14:50:20.918541+00	2026-11-30 14:50:21.090125+00
6	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	198	binlog	2	198	2000	0.16361442000197712	2026-11-30 14:50:20.939253+00	2026-11-30 14:50:21.113999+00
9	1	{"columns": ["id"], "literals": ["10000"]}	\N	\N	\N	\N	\N	\N	\N	\N	\N	2026-11-30 14:51:04.842096+00	\N
9	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	11797	binlog	2	11797	10000	0.16400743100530235	2026-11-30 14:51:04.751411+00	2026-11-30 14:51:04.928441+00
\.
copy lockstep.load_files from stdin;
1	0	0	load-000000000001-000000-9f2a50ce-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	0	load-000000000002-000000-9f2a50ce-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	0	load-000000000003-000000-9f2a50ce-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	0	load-000000000004-000000-9f2a50ce-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	0	load-000000000005-000000-9f2a50ce-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	0	load-000000000006-000000-9f2a50ce-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
7	0	0	load-000000000007-000000-9f2a50ce-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	0	load-000000000008-000000-9f2a50ce-00000.parquet	3	712	5b3de37a13a31812e02457ab39ab25ac31803987bbdbf6be4ae323e6f0584fcb
6	1	0	load-000000000006-000001-9f2a50ce-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
9	0	0	load-000000000009-000000-15a4fe9a-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
\.
copy lockstep.loads from stdin;
1	shop	1	shop	carts	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.854706+00	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	2	\N	f	1	1	2	1	\N
2	shop	1	shop	customers	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.863954+00	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	40	7636ffe95a3d76aa	f	1	2	2	1	\N
3	shop	1	shop	order_lines	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.871758+00	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	300	\N	f	1	3	2	1	\N
4	shop	1	shop	orders	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.881601+00	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	300	\N	f	1	4	2	1	\N
5	shop	1	shop	prices	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.893985+00	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	50	\N	f	1	5	2	1	\N
6	shop	1	shop	readings	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.90624+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	12000	\N	f	1	6	2	1	\N
7	shop	1	shop	stock	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.921641+00	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	50	\N	f	1	7	2	1	\N
8	shop	1	shop	visits	lockstep	rows are older than what is read of the log	2026-11-30 14:50:18.924788+00	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	198	3	\N	f	1	8	2	1	\N
9	shop	5	shop	readings	root	restored by hand	2026-11-30 14:51:03.90583+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	4f010f57-eccd-11f1-9101-02fc00000001	binlog	2	11797	11952	\N	f	\N	\N	\N	\N	\N
\.
copy lockstep.schema_statements from stdin;
1	shop	2	binlog	2	3231	binlog	2	3456	4f010f57-eccd-11f1-9101-02fc00000001:19	2026-11-30 14:50:46.066075+00	"shop"	"alter table customers add column vip bool not null default '***'"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T14:50:46+00:00", "redacted": true}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone), (id, name, email, phone, vip)"}]
2	shop	2	binlog	2	4168	binlog	2	4382	4f010f57-eccd-11f1-9101-02fc00000001:21	2026-11-30 14:50:46.069528+00	"shop"	"alter table customers rename column email to mail"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T14:50:46+00:00"}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone, vip), (id, name, mail, phone, vip)"}]
3	shop	2	binlog	2	4382	binlog	2	4605	4f010f57-eccd-11f1-9101-02fc00000001:22	2026-11-30 14:50:46.117912+00	"shop"	"alter table orders modify customer bigint not null"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "SYSTEM", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T14:50:46+00:00"}	followed	[{"table": {"database": "shop", "name": "orders"}, "words": "column customer type: int, bigint"}]
4	shop	2	binlog	2	5304	binlog	2	5496	4f010f57-eccd-11f1-9101-02fc00000001:25	2026-11-30 14:50:46.142678+00	"shop"	"rename table carts to baskets"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T14:50:46+00:00"}	followed	[{"table": {"database": "shop", "name": "carts"}, "words": "is now called shop.baskets"}, {"table": {"database": "shop", "name": "baskets"}, "words": "was called shop.carts"}]
5	shop	3	binlog	2	8378	binlog	2	8585	4f010f57-eccd-11f1-9101-02fc00000001:28	2026-11-30 14:51:02.374672+00	"shop"	"alter table stock modify place varchar(12)"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T14:51:02+00:00"}	followed	[{"table": {"database": "shop", "name": "stock"}, "words": "column place length: 40, 12"}]
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
shop	shop/shop/order_lines	1
shop	shop/shop/baskets	0
shop	shop/shop/visits	1
shop	shop/shop/orders	3
shop	shop/shop/customers	5
shop	shop/_changes/shop/stock	1
shop	shop/_ddl	1
shop	shop/_transactions	1
\.
copy lockstep.segment_files from stdin;
1	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	3555	3bbb5a84090909b84ca0c97c4ec5211d82b6e99da105cf3c14f024c5bd605bd3
2	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	3907	63fd3ffef1ff8f534ae96a26e315b2e933fad61df7f3b46d0f633a2181c201e5
3	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	3938	86aaf3dce3d7dc4ef875cd51daffff12430cccaf063d32281e9bc2756d8ed6d1
4	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	4322	4669215b518c4cb33c076723596ba61ee37cf181bc276df74b2e0e0e23c6c6fe
5	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	3569	e1cd623b95fd1c71f343fefa3dbd87f67858010839a2747efbfbba303c5f3465
6	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	3585	26eaa952a002dbb3bd515bae4cbece38579e40b8eca4fece184891dc60d9105f
7	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	3737	5c287293c5d681ecdfb6507549ce05ebb511ef29503b27dbdb3056b26d338634
8	0	batch-000000000001-v2-9f2a50ce-00000.parquet	1	3588	143a0d2715eff93f0172b8723e790015629c8556edb0b6e6fda9143f05fafe0d
9	0	batch-000000000002-v2-fa88e3e1-00000.parquet	40	5808	66a499d510ddb751844af5fc17e8d3976b1620f11b9855ff15ea253fe6bd3517
10	0	batch-000000000002-v2-fa88e3e1-00000.parquet	3	4536	9ab9c87c3536453657643eb426939744f7f2c11d032dc6f7b0010b8b8f285416
11	0	batch-000000000002-v2-fa88e3e1-00000.parquet	3	4128	864ba3e54e334b288818418cc86e2f9963ba0e0df9033d90982890a16f4bc391
12	0	batch-000000000002-v3-fa88e3e1-00000.parquet	10	4914	b2d9791fea31ff47a0e039b8ca95bc0710f30e96864e0301333de5d81c302de5
13	0	batch-000000000002-v3-fa88e3e1-00000.parquet	1	4990	ad0404c1c39c01d8c4e10cd8483710195005c13d16c0162e3c6f157c3d1429e9
14	0	batch-000000000002-v1-fa88e3e1-00000.parquet	2	3996	068318fbcec7fa3fee500cb9cad1ba4abd713410767bce295b8643144aba660f
15	0	batch-000000000003-v2-d93ec902-00000.parquet	100	4924	d95bfbbf294920e6aa5e963b5f65428dc6316d2f5bde9edd040e972f218374b1
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
shop	2	0	4f010f57-eccd-11f1-9101-02fc00000001	4f010f57-eccd-11f1-9101-02fc00000001:26	1796050246149509	
shop	3	0	4f010f57-eccd-11f1-9101-02fc00000001	4f010f57-eccd-11f1-9101-02fc00000001:30	1796050262389803	
\.
copy lockstep.snapshot_files from stdin;
1	0	load-000000000001-000000-9f2a50ce-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	load-000000000002-000000-9f2a50ce-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	load-000000000003-000000-9f2a50ce-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	load-000000000004-000000-9f2a50ce-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	load-000000000005-000000-9f2a50ce-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	load-000000000006-000000-9f2a50ce-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
6	1	load-000000000006-000001-9f2a50ce-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
7	0	load-000000000007-000000-9f2a50ce-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	load-000000000008-000000-9f2a50ce-00000.parquet	3	712	5b3de37a13a31812e02457ab39ab25ac31803987bbdbf6be4ae323e6f0584fcb
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
shop	2	_ddl	0	batch-000000000002-v1-fa88e3e1-00000.parquet	4	6310	c1c9d6d5d5b6359d07df6656fa2c2299a75765e2ed6bcdffabb516509190a500
shop	2	_transactions	0	batch-000000000002-v1-fa88e3e1-00000.parquet	9	3776	b54c9b4c6167d41d3df80262ce31e5086ac6d423dcfedf6fb6418c984ef40ef3
shop	3	_ddl	0	batch-000000000003-v1-d93ec902-00000.parquet	1	6180	88befb67e35b28457eab421ba452b8a09a8030e06dc897cc40b9bbfaea020d1b
shop	3	_transactions	0	batch-000000000003-v1-d93ec902-00000.parquet	4	3708	c49e98d3ac9c8220d52f409dac8a90c2b5792ac7fe55c22f73c594677a3f3d92
\.
copy lockstep.sources from stdin;
shop	1	6	2026-11-30 14:50:18.362894+00	2026-11-30 14:51:04.239903+00	\N
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
1	shop	shop	carts	followed	following	1	1	{"need": null, "mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "changelog_generation": 1}	2026-11-30 14:50:21.690217+00
2	shop	shop	customers	followed	following	1	1	{"need": null, "mirror": "shop/shop/customers", "changelog": "shop/_changes/shop/customers", "changelog_generation": 1}	2026-11-30 14:50:21.690738+00
3	shop	shop	order_lines	followed	following	1	1	{"need": null, "mirror": "shop/shop/order_lines", "changelog": "shop/_changes/shop/order_lines", "changelog_generation": 1}	2026-11-30 14:50:21.690895+00
4	shop	shop	orders	followed	following	1	1	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders", "changelog_generation": 1}	2026-11-30 14:50:21.690976+00
5	shop	shop	prices	followed	following	1	1	{"need": null, "mirror": "shop/shop/prices", "changelog": "shop/_changes/shop/prices", "changelog_generation": 1}	2026-11-30 14:50:21.691028+00
6	shop	shop	readings	followed	following	1	1	{"need": null, "mirror": "shop/shop/readings", "changelog": "shop/_changes/shop/readings", "changelog_generation": 1}	2026-11-30 14:50:21.691074+00
7	shop	shop	stock	followed	following	1	1	{"need": null, "mirror": "shop/shop/stock", "changelog": "shop/_changes/shop/stock", "changelog_generation": 1}	2026-11-30 14:50:21.691122+00
8	shop	shop	visits	followed	following	1	1	{"need": null, "mirror": "shop/shop/visits", "changelog": "shop/_changes/shop/visits", "changelog_generation": 1}	2026-11-30 14:50:21.691136+00
9	shop	shop	order_lines	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:33.074878+00
10	shop	shop	customers	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:33.163054+00
11	shop	shop	orders	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:33.252019+00
12	shop	shop	carts	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:33.312355+00
13	shop	shop	visits	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:34.03555+00
14	shop	shop	prices	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:34.074531+00
15	shop	shop	stock	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:34.113061+00
16	shop	shop	readings	mirror written	following	\N	1	{"version": 2}	2026-11-30 14:50:45.78846+00
17	shop	shop	orders	followed	following	2	2	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders@2", "changelog_generation": 2}	2026-11-30 14:50:47.843877+00
18	shop	shop	carts	dropped	dropped	2	2	{"mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802, "changelog_generation": 1}	2026-11-30 14:50:47.844085+00
19	shop	shop	baskets	followed	following	2	2	{"need": null, "mirror": "shop/shop/baskets", "changelog": "shop/_changes/shop/baskets", "changelog_generation": 1}	2026-11-30 14:50:47.844149+00
20	shop	shop	baskets	mirror written	following	\N	2	{"version": 1}	2026-11-30 14:50:49.242282+00
21	shop	shop	orders	mirror written	following	\N	2	{"version": 3}	2026-11-30 14:50:52.161354+00
22	shop	shop	customers	mirror written	following	\N	2	{"version": 4}	2026-11-30 14:51:02.039059+00
23	shop	shop	prices	stopped	stopped	\N	3	{"by": "person", "hint": "`lockstep resume shop.prices` brings it back", "need": null, "reason": "root paused it: the auditors asked for it", "position": null, "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802}	2026-11-30 14:51:02.294259+00
24	shop	shop	stock	stopped	stopped	3	4	{"by": "system", "hint": "`lockstep resume shop.stock --reason …` brings it back", "need": null, "reason": "stored values of place may have changed: varchar(40) became varchar(12), which is shorter", "position": "binlog.000002:8378", "stopped_base": "binlog", "stopped_batch": 3, "stopped_number": 2, "stopped_offset": 8378}	2026-11-30 14:51:03.112712+00
\.
copy lockstep.table_orders from stdin;
1	shop	3	shop	prices	pause	root	the auditors asked for it	2026-11-30 14:51:02.289227+00	\N	\N	\N	\N
\.
copy lockstep.table_states from stdin;
shop	shop	order_lines	following	1	shop/shop/order_lines	shop/_changes/shop/order_lines	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	9
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
shop	1	shop	carts	shop/shop/carts	0	91bc0948-685c-4664-b297-f2caf2fc7c3a	\N	\N
shop	1	shop	customers	shop/shop/customers	0	e37234fe-322a-4e23-9a6d-ad65d803a38f	\N	\N
shop	1	shop	order_lines	shop/shop/order_lines	0	4093a726-4f97-4be4-9159-05364060ccc8	\N	\N
shop	1	shop	orders	shop/shop/orders	0	82b086ea-a96c-41c8-ab81-35995715b8ac	\N	\N
shop	1	shop	prices	shop/shop/prices	0	cf202d3f-8e76-4c49-a217-922c050446e0	\N	\N
shop	1	shop	readings	shop/shop/readings	0	b7006879-6f11-43d0-80d1-d2716701e3f9	\N	\N
shop	1	shop	stock	shop/shop/stock	0	14cfe5aa-411a-4284-8285-650a0d835f89	\N	\N
shop	1	shop	visits	shop/shop/visits	0	0e20b3cc-42be-412b-8455-9d81dac40db0	\N	\N
shop	2	shop	baskets	shop/shop/baskets	0	61795ba6-3ce1-4de3-81ba-ee5ba252a099	\N	\N
shop	2	shop	carts	\N	\N	\N	dropped	\N
shop	2	shop	customers	shop/shop/customers	5	e37234fe-322a-4e23-9a6d-ad65d803a38f	\N	\N
shop	2	shop	order_lines	shop/shop/order_lines	1	4093a726-4f97-4be4-9159-05364060ccc8	\N	\N
shop	2	shop	orders	shop/shop/orders	3	82b086ea-a96c-41c8-ab81-35995715b8ac	\N	\N
shop	2	shop	visits	shop/shop/visits	1	0e20b3cc-42be-412b-8455-9d81dac40db0	\N	\N
shop	3	shop	prices	\N	\N	\N	stopped	\N
shop	3	shop	stock	\N	\N	\N	stopped	\N
\.
copy lockstep.writes from stdin;
3	shop	1	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	3	1	1	merge	\N	f	2026-11-30 14:50:22.38269+00	0	2026-11-30 14:50:33.067866+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/order_lines	4093a726-4f97-4be4-9159-05364060ccc8
2	shop	1	shop	customers	lockstep/shop/shop.customers/mirror/1	2	1	1	merge	\N	f	2026-11-30 14:50:22.382365+00	0	2026-11-30 14:50:33.152195+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/customers	e37234fe-322a-4e23-9a6d-ad65d803a38f
4	shop	1	shop	orders	lockstep/shop/shop.orders/mirror/1	4	1	1	merge	\N	f	2026-11-30 14:50:22.382892+00	0	2026-11-30 14:50:33.239667+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/orders	82b086ea-a96c-41c8-ab81-35995715b8ac
1	shop	1	shop	carts	lockstep/shop/shop.carts/mirror/1	1	1	1	merge	\N	f	2026-11-30 14:50:22.381181+00	0	2026-11-30 14:50:33.285261+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/carts	91bc0948-685c-4664-b297-f2caf2fc7c3a
8	shop	1	shop	visits	lockstep/shop/shop.visits/mirror/1	8	1	1	merge	\N	f	2026-11-30 14:50:22.385148+00	0	2026-11-30 14:50:34.033107+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/visits	0e20b3cc-42be-412b-8455-9d81dac40db0
5	shop	1	shop	prices	lockstep/shop/shop.prices/mirror/1	5	1	1	merge	\N	f	2026-11-30 14:50:22.384555+00	0	2026-11-30 14:50:34.072406+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/prices	cf202d3f-8e76-4c49-a217-922c050446e0
7	shop	1	shop	stock	lockstep/shop/shop.stock/mirror/1	7	1	1	merge	\N	f	2026-11-30 14:50:22.385107+00	0	2026-11-30 14:50:34.104393+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/stock	14cfe5aa-411a-4284-8285-650a0d835f89
6	shop	1	shop	readings	lockstep/shop/shop.readings/mirror/1	6	1	1	merge	\N	f	2026-11-30 14:50:22.384822+00	0	2026-11-30 14:50:45.787401+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; Spark is set for many rows	shop/shop/readings	b7006879-6f11-43d0-80d1-d2716701e3f9
10	shop	2	shop	carts	lockstep/shop/shop.carts/mirror/1	10	2	2	merge	\N	f	2026-11-30 14:50:48.049897+00	1	2026-11-30 14:50:48.789856+00	2	\N	no row of the table changed; the rows are few, so they were put together in memory	shop/shop/carts	91bc0948-685c-4664-b297-f2caf2fc7c3a
12	shop	2	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	12	2	2	merge	\N	f	2026-11-30 14:50:48.050222+00	1	2026-11-30 14:50:49.055466+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/order_lines	4093a726-4f97-4be4-9159-05364060ccc8
9	shop	2	shop	baskets	lockstep/shop/shop.baskets/mirror/1	9	2	2	merge	1	f	2026-11-30 14:50:48.049126+00	0	2026-11-30 14:50:49.240723+00	2	\N	its rows were those of shop.carts, copied from version 0 of shop/shop/carts; the rows are few, so they were put together in memory	shop/shop/baskets	61795ba6-3ce1-4de3-81ba-ee5ba252a099
14	shop	2	shop	visits	lockstep/shop/shop.visits/mirror/1	14	2	2	merge	\N	f	2026-11-30 14:50:48.050486+00	1	2026-11-30 14:50:49.740377+00	2	\N	the table has no key, so copies of its rows are counted; the rows are few, so they were put together in memory	shop/shop/visits	0e20b3cc-42be-412b-8455-9d81dac40db0
13	shop	2	shop	orders	lockstep/shop/shop.orders/mirror/1	13	2	2	merge	\N	f	2026-11-30 14:50:48.050356+00	3	2026-11-30 14:50:52.160196+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/orders	82b086ea-a96c-41c8-ab81-35995715b8ac
11	shop	2	shop	customers	lockstep/shop/shop.customers/mirror/1	11	2	2	merge	\N	f	2026-11-30 14:50:48.050078+00	5	2026-11-30 14:51:02.038193+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/customers	e37234fe-322a-4e23-9a6d-ad65d803a38f
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
