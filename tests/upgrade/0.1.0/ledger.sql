-- migration 1: 824fa54293582b4c4c1dc4c3dad7212cc438805592cd53a053c4b86b6b4fdd36
copy lockstep.batches from stdin;
1	shop	ordinary	acknowledged	\N	1	\N	\N	0	1	2026-11-29 15:34:51.099183+00	binlog	2	198	20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-17	20ed11f1-ec0a-11f1-a2ad-02fc00000001	\N	binlog	2	198	20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-17	20ed11f1-ec0a-11f1-a2ad-02fc00000001	\N	127	71	2433954408		1795966375	t	2026-11-29 15:32:46.72887+00	0	8	0	0	0	\N	\N	2026-11-29 15:34:54.494215+00	2026-11-29 15:35:38.107988+00	2026-11-29 15:35:38.110636+00	\N	\N
2	shop	ordinary	acknowledged	1	\N	\N	1	8	2	2026-11-29 15:35:39.572867+00	binlog	2	198	20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-17	20ed11f1-ec0a-11f1-a2ad-02fc00000001	\N	binlog	2	5802	20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-26	20ed11f1-ec0a-11f1-a2ad-02fc00000001	2026-11-29 15:35:38.607898+00	5771	31	3734842927	20ed11f1-ec0a-11f1-a2ad-02fc00000001:26	1795966375	t	2026-11-29 15:32:46.526524+00	0	59	9	5604	0	\N	\N	2026-11-29 15:35:40.033912+00	2026-11-29 15:35:54.537662+00	2026-11-29 15:35:54.548456+00	\N	\N
3	shop	ordinary	acknowledged	2	\N	\N	2	67	4	2026-11-29 15:35:56.140671+00	binlog	2	5802	20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-26	20ed11f1-ec0a-11f1-a2ad-02fc00000001	2026-11-29 15:35:38.607898+00	binlog	2	11797	20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-30	20ed11f1-ec0a-11f1-a2ad-02fc00000001	2026-11-29 15:35:55.484589+00	11766	31	1434843590	20ed11f1-ec0a-11f1-a2ad-02fc00000001:30	1795966375	t	2026-11-29 15:32:46.083277+00	0	100	4	5995	0	\N	\N	2026-11-29 15:35:56.452369+00	2026-11-29 15:35:56.674759+00	2026-11-29 15:35:56.698694+00	\N	\N
4	shop	ordinary	capturing	3	\N	\N	3	167	6	2026-11-29 15:35:58.23112+00	binlog	2	11797	20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-30	20ed11f1-ec0a-11f1-a2ad-02fc00000001	2026-11-29 15:35:55.484589+00	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	f	\N	\N	0	0	0	0	\N	\N	\N	\N	\N	\N	\N
\.
copy lockstep.capture_scopes from stdin;
shop	1	{shop.*}	{}
\.
copy lockstep.consumers from stdin;
1	shop	billing	\N	2026-11-29 15:35:38.481873+00	\N	\N	\N
\.
copy lockstep.database_versions from stdin;
1	shop	mysql	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"tables": ["columns_priv", "component", "db", "default_roles", "engine_cost", "func", "general_log", "global_grants", "gtid_executed", "help_category", "help_keyword", "help_relation", "help_topic", "innodb_index_stats", "innodb_table_stats", "ndb_binlog_index", "password_history", "plugin", "procs_priv", "proxies_priv", "replication_asynchronous_connection_failover", "replication_asynchronous_connection_failover_managed", "replication_group_configuration_version", "replication_group_member_actions", "role_edges", "server_cost", "servers", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "slow_log", "tables_priv", "time_zone", "time_zone_leap_second", "time_zone_name", "time_zone_transition", "time_zone_transition_type", "user"]}	\N
2	shop	shop	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{}	\N
\.
copy lockstep.decisions from stdin;
1	shop	1	start	configured-snapshot	start = 'snapshot': tables are read from the source, and the log from its end binlog.000002:198 on	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:198", "after": 0, "anchor": "not read", "cursor": null, "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 198}], "read_at": "2026-11-29T15:34:50.987994+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "20ed11f1-ec0a-11f1-a2ad-02fc00000001", "gtid_executed": "20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-17"}	lockstep	2026-11-29 15:34:51.073479+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
2	shop	2	start	resume-same-server	batch 1 ended at binlog.000002:198, and the log there is unchanged	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:5802", "after": 1, "anchor": "the same", "cursor": "binlog.000002:198", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 5802}], "read_at": "2026-11-29T15:35:39.526524+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "20ed11f1-ec0a-11f1-a2ad-02fc00000001", "gtid_executed": "20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-26"}	lockstep	2026-11-29 15:35:39.554859+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
3	shop	4	start	resume-same-server	batch 2 ended at binlog.000002:5802, and the log there is unchanged	{"at": "binlog.000002:5802", "set": "not kept", "head": "binlog.000002:11797", "after": 2, "anchor": "the same", "cursor": "binlog.000002:5802", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T15:35:56.083277+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "20ed11f1-ec0a-11f1-a2ad-02fc00000001", "gtid_executed": "20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-30"}	lockstep	2026-11-29 15:35:56.110135+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
4	shop	6	start	resume-same-server	batch 3 ended at binlog.000002:11797, and the log there is unchanged	{"at": "binlog.000002:11797", "set": "not kept", "head": "binlog.000002:11797", "after": 3, "anchor": "the same", "cursor": "binlog.000002:11797", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T15:35:58.182069+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "20ed11f1-ec0a-11f1-a2ad-02fc00000001", "gtid_executed": "20ed11f1-ec0a-11f1-a2ad-02fc00000001:1-30"}	lockstep	2026-11-29 15:35:58.208449+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
\.
copy lockstep.deliveries from stdin;
1	shop	1	1	2	acknowledged	2026-11-29 15:35:57.08495+00	2026-11-29 15:35:57.104944+00
\.
copy lockstep.leases from stdin;
shop	1	vm, process 6834 (run)	bde62dd8-098e-4246-86d1-d355622e91ee	6861	2026-11-29 15:34:50.562171+00	f	2026-11-29 15:35:38.147004+00
shop	2	vm, process 9826 (run)	762ca82f-04ce-485d-9057-d3055251d41c	9847	2026-11-29 15:35:39.213419+00	f	2026-11-29 15:35:54.593432+00
shop	3	vm, process 10720 (pause)	\N	10723	2026-11-29 15:35:55.166984+00	f	2026-11-29 15:35:55.247823+00
shop	4	vm, process 10773 (run)	fc669afe-ab51-4b3b-af28-47971f068d3e	10782	2026-11-29 15:35:55.83706+00	f	2026-11-29 15:35:56.740788+00
shop	5	vm, process 10839 (reload)	\N	10864	2026-11-29 15:35:57.392447+00	f	2026-11-29 15:35:57.634573+00
shop	6	vm, process 10868 (run)	3a280d14-5bbc-41ba-97b7-ba4a8c3cfb2c	10873	2026-11-29 15:35:58.041787+00	f	\N
\.
copy lockstep.ledger from stdin;
3bc4c8d1-a8cf-4d98-aa79-ac51dc9677b3	2026-11-29 15:32:52.532376+00	t
\.
copy lockstep.load_chunks from stdin;
1	0	\N	\N	binlog	2	198	binlog	2	198	2	0.16452218299673405	2026-11-29 15:34:51.773594+00	2026-11-29 15:34:51.986597+00
2	0	\N	\N	binlog	2	198	binlog	2	198	40	0.2814717520013801	2026-11-29 15:34:51.887955+00	2026-11-29 15:34:52.210274+00
3	0	\N	\N	binlog	2	198	binlog	2	198	300	0.25601595499756513	2026-11-29 15:34:52.064849+00	2026-11-29 15:34:52.349512+00
4	0	\N	\N	binlog	2	198	binlog	2	198	300	0.2866379280021647	2026-11-29 15:34:52.277022+00	2026-11-29 15:34:52.598085+00
5	0	\N	\N	binlog	2	198	binlog	2	198	50	0.2673605750023853	2026-11-29 15:34:52.422923+00	2026-11-29 15:34:52.75073+00
6	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	198	binlog	2	198	10000	0.3978279049988487	2026-11-29 15:34:52.651538+00	2026-11-29 15:34:53.063019+00
7	0	\N	\N	binlog	2	198	binlog	2	198	50	0.2338246059953235	2026-11-29 15:34:52.799957+00	2026-11-29 15:34:53.074017+00
8	0	\N	\N	binlog	2	198	binlog	2	198	3	0.15559895399928791	2026-11-29 15:34:53.166311+00	2026-11-29 15:34:53.362961+00
6	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	198	binlog	2	198	2000	0.16663354200136382	2026-11-29 15:34:53.19226+00	2026-11-29 15:34:53.374939+00
9	1	{"columns": ["id"], "literals": ["10000"]}	\N	\N	\N	\N	\N	\N	\N	\N	\N	2026-11-29 15:35:58.54768+00	\N
9	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	11797	binlog	2	11797	10000	0.15613520400074776	2026-11-29 15:35:58.470878+00	2026-11-29 15:35:58.652661+00
\.
copy lockstep.load_files from stdin;
1	0	0	load-000000000001-000000-ddea4e3b-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	0	load-000000000002-000000-ddea4e3b-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	0	load-000000000003-000000-ddea4e3b-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	0	load-000000000004-000000-ddea4e3b-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	0	load-000000000005-000000-ddea4e3b-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	0	load-000000000006-000000-ddea4e3b-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
7	0	0	load-000000000007-000000-ddea4e3b-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	0	load-000000000008-000000-ddea4e3b-00000.parquet	3	712	e0ea36e0ca21057578cea2f0bb627114bc00175394c4378512726ab7ce545e5a
6	1	0	load-000000000006-000001-ddea4e3b-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
9	0	0	load-000000000009-000000-b418620f-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
\.
copy lockstep.loads from stdin;
1	shop	1	shop	carts	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.1263+00	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	2	\N	f	1	1	2	1	\N
2	shop	1	shop	customers	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.139366+00	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	40	7636ffe95a3d76aa	f	1	2	2	1	\N
3	shop	1	shop	order_lines	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.17238+00	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	300	\N	f	1	3	2	1	\N
4	shop	1	shop	orders	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.200255+00	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	300	\N	f	1	4	2	1	\N
5	shop	1	shop	prices	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.239426+00	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	50	\N	f	1	5	2	1	\N
6	shop	1	shop	readings	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.275061+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	11952	\N	f	1	6	2	1	\N
7	shop	1	shop	stock	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.285986+00	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	50	\N	f	1	7	2	1	\N
8	shop	1	shop	visits	lockstep	rows are older than what is read of the log	2026-11-29 15:34:51.292824+00	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	198	3	\N	f	1	8	2	1	\N
9	shop	5	shop	readings	root	restored by hand	2026-11-29 15:35:57.554518+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	20ed11f1-ec0a-11f1-a2ad-02fc00000001	binlog	2	11797	11952	\N	f	\N	\N	\N	\N	\N
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
shop	shop/shop/baskets	0
shop	shop/shop/carts	1
shop	shop/shop/order_lines	1
shop	shop/shop/visits	1
shop	shop/shop/orders	3
shop	shop/shop/customers	5
shop	shop/_changes/shop/stock	1
shop	shop/_ddl	1
shop	shop/_transactions	1
\.
copy lockstep.schema_statements from stdin;
1	shop	2	binlog	2	3231	binlog	2	3456	20ed11f1-ec0a-11f1-a2ad-02fc00000001:19	2026-11-29 15:35:38.522207+00	"shop"	"alter table customers add column vip bool not null default '***'"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:35:38+00:00", "redacted": true}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone), (id, name, email, phone, vip)"}]
2	shop	2	binlog	2	4168	binlog	2	4382	20ed11f1-ec0a-11f1-a2ad-02fc00000001:21	2026-11-29 15:35:38.525575+00	"shop"	"alter table customers rename column email to mail"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:35:38+00:00"}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone, vip), (id, name, mail, phone, vip)"}]
3	shop	2	binlog	2	4382	binlog	2	4605	20ed11f1-ec0a-11f1-a2ad-02fc00000001:22	2026-11-29 15:35:38.582999+00	"shop"	"alter table orders modify customer bigint not null"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "SYSTEM", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:35:38+00:00"}	followed	[{"table": {"database": "shop", "name": "orders"}, "words": "column customer type: int, bigint"}]
4	shop	2	binlog	2	5304	binlog	2	5496	20ed11f1-ec0a-11f1-a2ad-02fc00000001:25	2026-11-29 15:35:38.602767+00	"shop"	"rename table carts to baskets"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:35:38+00:00"}	followed	[{"table": {"database": "shop", "name": "carts"}, "words": "is now called shop.baskets"}, {"table": {"database": "shop", "name": "baskets"}, "words": "was called shop.carts"}]
5	shop	3	binlog	2	8378	binlog	2	8585	20ed11f1-ec0a-11f1-a2ad-02fc00000001:28	2026-11-29 15:35:55.451941+00	"shop"	"alter table stock modify place varchar(12)"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T15:35:55+00:00"}	followed	[{"table": {"database": "shop", "name": "stock"}, "words": "column place length: 40, 12"}]
\.
copy lockstep.segment_files from stdin;
1	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	3555	fc298d9420713fed8be4b1e26d2f170f98fccfd5c97f6ea0422acc6c320c7b2a
2	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	3907	5d031e1c904e33343251ca4929978a4beb6ade4387cc3a65655d3c3d7539dc14
3	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	3938	d1d6d226f99b742c116e50561693e429de99f289bbdc8f5357b24ef204c3f2c2
4	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	4322	fc8aa5bf8bdaffe68f18481d94ddbca2788f7ba56f3475ec37a89fddc8488a9c
5	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	3569	be145c8ceed73ca57727cf22448aff4b9e9dfc5ba60383dd1c0b354aa2c7d6a5
6	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	3585	07afb49fd23da42283632480bb7a515b99cb4a2826c0e59d99bbe9302745c5ae
7	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	3737	6ef09ee4b5a59009b808c36c6f1dec8bd7cf80655d2e9d13e6d21707c39404cc
8	0	batch-000000000001-v2-ddea4e3b-00000.parquet	1	3588	6d374feddcbe3ca421fee7c75c2aabcc2f5deb3d7b36fb480b6263f981223ce5
9	0	batch-000000000002-v2-33521647-00000.parquet	40	5808	edcc34907735ddc58c35eaf4f6f0518b3f66347f0b45f30546b9111777daffe9
10	0	batch-000000000002-v2-33521647-00000.parquet	3	4533	39982b2b7bcc42e2187caedb4762ce32da316272368724ad03f2bea3bcebdd31
11	0	batch-000000000002-v2-33521647-00000.parquet	3	4126	3e83f5be953bc0c707178465bcc36d4bab1af1f6a86356090bf91572741d895b
12	0	batch-000000000002-v3-33521647-00000.parquet	10	4910	58e8fe7272e1191e25e3b432ebaf2b245cddcc5b6da59b404d7749178ecceba6
13	0	batch-000000000002-v3-33521647-00000.parquet	1	4990	bbd425556579e5f8a703dfdf93858208e3006fb3675611cdad97491b0f28a20f
14	0	batch-000000000002-v1-33521647-00000.parquet	2	3993	49c7160acb688b2f6432e39570e00c56c72e1db33a9dc402ccd1724be0806868
15	0	batch-000000000003-v2-e37c4488-00000.parquet	100	4924	a735d9e894f0c25c9d78982decf5c3d8a0270b51141bb88f16d8842d82c4316f
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
shop	2	0	20ed11f1-ec0a-11f1-a2ad-02fc00000001	20ed11f1-ec0a-11f1-a2ad-02fc00000001:26	1795966538607898	
shop	3	0	20ed11f1-ec0a-11f1-a2ad-02fc00000001	20ed11f1-ec0a-11f1-a2ad-02fc00000001:30	1795966555484589	
\.
copy lockstep.snapshot_files from stdin;
1	0	load-000000000001-000000-ddea4e3b-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	load-000000000002-000000-ddea4e3b-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	load-000000000003-000000-ddea4e3b-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	load-000000000004-000000-ddea4e3b-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	load-000000000005-000000-ddea4e3b-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	load-000000000006-000000-ddea4e3b-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
6	1	load-000000000006-000001-ddea4e3b-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
7	0	load-000000000007-000000-ddea4e3b-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	load-000000000008-000000-ddea4e3b-00000.parquet	3	712	e0ea36e0ca21057578cea2f0bb627114bc00175394c4378512726ab7ce545e5a
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
shop	2	_ddl	0	batch-000000000002-v1-33521647-00000.parquet	4	6307	921b554b5a30da4e336a90b3b69b20e337e2566c5e2842f74bca49416b48a791
shop	2	_transactions	0	batch-000000000002-v1-33521647-00000.parquet	9	3773	8cd4e478d93b9e957ff3bc188476311069424da915124776ef4fee9a1e8cbdee
shop	3	_ddl	0	batch-000000000003-v1-e37c4488-00000.parquet	1	6180	db0a21acdbc2cc46588d476f76835a3878dd560f936eb3abf07c23bd6f15f892
shop	3	_transactions	0	batch-000000000003-v1-e37c4488-00000.parquet	4	3705	ab3c8277d888bed153ba9690fb8b91ae81d46510b34f369e526df03c616464ab
\.
copy lockstep.sources from stdin;
shop	1	6	2026-11-29 15:34:50.538162+00	2026-11-29 15:35:58.03707+00	\N
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
1	shop	shop	carts	followed	following	1	1	{"need": null, "mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "changelog_generation": 1}	2026-11-29 15:34:54.245135+00
2	shop	shop	customers	followed	following	1	1	{"need": null, "mirror": "shop/shop/customers", "changelog": "shop/_changes/shop/customers", "changelog_generation": 1}	2026-11-29 15:34:54.245905+00
3	shop	shop	order_lines	followed	following	1	1	{"need": null, "mirror": "shop/shop/order_lines", "changelog": "shop/_changes/shop/order_lines", "changelog_generation": 1}	2026-11-29 15:34:54.245973+00
4	shop	shop	orders	followed	following	1	1	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders", "changelog_generation": 1}	2026-11-29 15:34:54.246009+00
5	shop	shop	prices	followed	following	1	1	{"need": null, "mirror": "shop/shop/prices", "changelog": "shop/_changes/shop/prices", "changelog_generation": 1}	2026-11-29 15:34:54.246041+00
6	shop	shop	readings	followed	following	1	1	{"need": null, "mirror": "shop/shop/readings", "changelog": "shop/_changes/shop/readings", "changelog_generation": 1}	2026-11-29 15:34:54.246071+00
7	shop	shop	stock	followed	following	1	1	{"need": null, "mirror": "shop/shop/stock", "changelog": "shop/_changes/shop/stock", "changelog_generation": 1}	2026-11-29 15:34:54.246109+00
8	shop	shop	visits	followed	following	1	1	{"need": null, "mirror": "shop/shop/visits", "changelog": "shop/_changes/shop/visits", "changelog_generation": 1}	2026-11-29 15:34:54.246115+00
9	shop	shop	carts	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:16.861914+00
10	shop	shop	order_lines	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:16.881168+00
11	shop	shop	orders	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:16.890285+00
12	shop	shop	customers	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:16.925627+00
13	shop	shop	prices	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:17.472675+00
14	shop	shop	visits	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:17.48822+00
15	shop	shop	stock	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:17.73401+00
16	shop	shop	readings	mirror written	following	\N	1	{"version": 2}	2026-11-29 15:35:38.098165+00
17	shop	shop	orders	followed	following	2	2	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders@2", "changelog_generation": 2}	2026-11-29 15:35:40.016791+00
18	shop	shop	carts	dropped	dropped	2	2	{"mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802, "changelog_generation": 1}	2026-11-29 15:35:40.017039+00
19	shop	shop	baskets	followed	following	2	2	{"need": null, "mirror": "shop/shop/baskets", "changelog": "shop/_changes/shop/baskets", "changelog_generation": 1}	2026-11-29 15:35:40.017085+00
20	shop	shop	baskets	mirror written	following	\N	2	{"version": 1}	2026-11-29 15:35:41.950307+00
21	shop	shop	orders	mirror written	following	\N	2	{"version": 3}	2026-11-29 15:35:44.829914+00
22	shop	shop	customers	mirror written	following	\N	2	{"version": 4}	2026-11-29 15:35:54.530558+00
23	shop	shop	prices	stopped	stopped	\N	3	{"by": "person", "hint": "`lockstep resume shop.prices` brings it back", "need": null, "reason": "root paused it: the auditors asked for it", "position": null, "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802}	2026-11-29 15:35:55.216928+00
24	shop	shop	stock	stopped	stopped	3	4	{"by": "system", "hint": "`lockstep resume shop.stock --reason …` brings it back", "need": null, "reason": "stored values of place may have changed: varchar(40) became varchar(12), which is shorter", "position": "binlog.000002:8378", "stopped_base": "binlog", "stopped_batch": 3, "stopped_number": 2, "stopped_offset": 8378}	2026-11-29 15:35:56.40277+00
\.
copy lockstep.table_orders from stdin;
1	shop	3	shop	prices	pause	root	the auditors asked for it	2026-11-29 15:35:55.195929+00	\N	\N	\N	\N
\.
copy lockstep.table_states from stdin;
shop	shop	order_lines	following	1	shop/shop/order_lines	shop/_changes/shop/order_lines	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	10
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
shop	1	shop	carts	shop/shop/carts	0	04f6d168-9018-4407-853e-ab9ed659804e	\N	\N
shop	1	shop	customers	shop/shop/customers	0	75ff547a-1c5c-4318-8c2f-cb2bb843b21b	\N	\N
shop	1	shop	order_lines	shop/shop/order_lines	0	1280c83a-22f4-4afa-a83e-245051c92fa4	\N	\N
shop	1	shop	orders	shop/shop/orders	0	8aeb2fd8-f6dd-4f6f-b2df-513729352b9e	\N	\N
shop	1	shop	prices	shop/shop/prices	0	017cfdaf-f588-4e88-9343-b0e89dd154b0	\N	\N
shop	1	shop	readings	shop/shop/readings	0	93dc59a1-b302-4562-a6e9-af47abde3958	\N	\N
shop	1	shop	stock	shop/shop/stock	0	2b78f020-a6ef-4100-a4c1-75d8b80b3a52	\N	\N
shop	1	shop	visits	shop/shop/visits	0	e8233f62-363a-4f23-a351-f973d3846c8e	\N	\N
shop	2	shop	baskets	shop/shop/baskets	0	4e6f149f-71f9-4889-8f3b-0a7119270992	\N	\N
shop	2	shop	carts	\N	\N	\N	dropped	\N
shop	2	shop	customers	shop/shop/customers	5	75ff547a-1c5c-4318-8c2f-cb2bb843b21b	\N	\N
shop	2	shop	order_lines	shop/shop/order_lines	1	1280c83a-22f4-4afa-a83e-245051c92fa4	\N	\N
shop	2	shop	orders	shop/shop/orders	3	8aeb2fd8-f6dd-4f6f-b2df-513729352b9e	\N	\N
shop	2	shop	visits	shop/shop/visits	1	e8233f62-363a-4f23-a351-f973d3846c8e	\N	\N
shop	3	shop	prices	\N	\N	\N	stopped	\N
shop	3	shop	stock	\N	\N	\N	stopped	\N
\.
copy lockstep.writes from stdin;
1	shop	1	shop	carts	lockstep/shop/shop.carts/mirror/1	1	1	1	merge	\N	2026-11-29 15:34:55.066438+00	0	2026-11-29 15:35:16.860813+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/carts	04f6d168-9018-4407-853e-ab9ed659804e
3	shop	1	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	3	1	1	merge	\N	2026-11-29 15:34:55.067605+00	0	2026-11-29 15:35:16.880065+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/order_lines	1280c83a-22f4-4afa-a83e-245051c92fa4
4	shop	1	shop	orders	lockstep/shop/shop.orders/mirror/1	4	1	1	merge	\N	2026-11-29 15:34:55.067708+00	0	2026-11-29 15:35:16.885902+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/orders	8aeb2fd8-f6dd-4f6f-b2df-513729352b9e
2	shop	1	shop	customers	lockstep/shop/shop.customers/mirror/1	2	1	1	merge	\N	2026-11-29 15:34:55.067444+00	0	2026-11-29 15:35:16.909886+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/customers	75ff547a-1c5c-4318-8c2f-cb2bb843b21b
5	shop	1	shop	prices	lockstep/shop/shop.prices/mirror/1	5	1	1	merge	\N	2026-11-29 15:34:55.067803+00	0	2026-11-29 15:35:17.456651+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/prices	017cfdaf-f588-4e88-9343-b0e89dd154b0
8	shop	1	shop	visits	lockstep/shop/shop.visits/mirror/1	8	1	1	merge	\N	2026-11-29 15:34:55.068125+00	0	2026-11-29 15:35:17.485358+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/visits	e8233f62-363a-4f23-a351-f973d3846c8e
7	shop	1	shop	stock	lockstep/shop/shop.stock/mirror/1	7	1	1	merge	\N	2026-11-29 15:34:55.0681+00	0	2026-11-29 15:35:17.706124+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; the rows are few, so they were put together in memory	shop/shop/stock	2b78f020-a6ef-4100-a4c1-75d8b80b3a52
6	shop	1	shop	readings	lockstep/shop/shop.readings/mirror/1	6	1	1	merge	\N	2026-11-29 15:34:55.067894+00	0	2026-11-29 15:35:38.097394+00	1	\N	the table was read from MySQL or emptied, so rows of before do not count; Spark is set for many rows	shop/shop/readings	93dc59a1-b302-4562-a6e9-af47abde3958
9	shop	2	shop	baskets	lockstep/shop/shop.baskets/mirror/1	9	2	2	merge	1	2026-11-29 15:35:40.53572+00	0	2026-11-29 15:35:41.938759+00	2	\N	its rows were those of shop.carts, copied from version 0 of shop/shop/carts; the rows are few, so they were put together in memory	shop/shop/baskets	4e6f149f-71f9-4889-8f3b-0a7119270992
10	shop	2	shop	carts	lockstep/shop/shop.carts/mirror/1	10	2	2	merge	\N	2026-11-29 15:35:40.536438+00	1	2026-11-29 15:35:42.149112+00	2	\N	no row of the table changed; the rows are few, so they were put together in memory	shop/shop/carts	04f6d168-9018-4407-853e-ab9ed659804e
12	shop	2	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	12	2	2	merge	\N	2026-11-29 15:35:40.542263+00	1	2026-11-29 15:35:42.524213+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/order_lines	1280c83a-22f4-4afa-a83e-245051c92fa4
14	shop	2	shop	visits	lockstep/shop/shop.visits/mirror/1	14	2	2	merge	\N	2026-11-29 15:35:40.542457+00	1	2026-11-29 15:35:42.73955+00	2	\N	the table has no key, so copies of its rows are counted; the rows are few, so they were put together in memory	shop/shop/visits	e8233f62-363a-4f23-a351-f973d3846c8e
13	shop	2	shop	orders	lockstep/shop/shop.orders/mirror/1	13	2	2	merge	\N	2026-11-29 15:35:40.542363+00	3	2026-11-29 15:35:44.829104+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/orders	8aeb2fd8-f6dd-4f6f-b2df-513729352b9e
11	shop	2	shop	customers	lockstep/shop/shop.customers/mirror/1	11	2	2	merge	\N	2026-11-29 15:35:40.542072+00	5	2026-11-29 15:35:54.529636+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/customers	75ff547a-1c5c-4318-8c2f-cb2bb843b21b
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
