-- migration 1: 40b6a1b143c20baa7303cdc9b1ebb23bdc6525d69f098dc44cd1f36fc004f883
copy lockstep.batches from stdin;
1	shop	ordinary	acknowledged	\N	1	\N	\N	0	1	2026-11-29 07:40:00.478766+00	binlog	2	198	0ad0cc12-ebc8-11f1-b690-02fc00000001:1-17	0ad0cc12-ebc8-11f1-b690-02fc00000001	\N	binlog	2	198	0ad0cc12-ebc8-11f1-b690-02fc00000001:1-17	0ad0cc12-ebc8-11f1-b690-02fc00000001	\N	127	71	3772510340		1795937984	t	2026-11-29 07:39:43.834641+00	0	8	0	0	0	\N	\N	2026-11-29 07:40:00.953652+00	2026-11-29 07:40:05.507274+00	2026-11-29 07:40:05.509477+00	\N	\N
2	shop	ordinary	acknowledged	1	\N	\N	1	8	2	2026-11-29 07:40:05.723901+00	binlog	2	198	0ad0cc12-ebc8-11f1-b690-02fc00000001:1-17	0ad0cc12-ebc8-11f1-b690-02fc00000001	\N	binlog	2	5802	0ad0cc12-ebc8-11f1-b690-02fc00000001:1-26	0ad0cc12-ebc8-11f1-b690-02fc00000001	2026-11-29 07:40:05.588122+00	5771	31	1688365851	0ad0cc12-ebc8-11f1-b690-02fc00000001:26	1795937984	t	2026-11-29 07:39:43.70808+00	0	59	9	5604	0	\N	\N	2026-11-29 07:40:05.800161+00	2026-11-29 07:40:08.552542+00	2026-11-29 07:40:08.554645+00	\N	\N
3	shop	ordinary	acknowledged	2	\N	\N	2	67	4	2026-11-29 07:40:08.769121+00	binlog	2	5802	0ad0cc12-ebc8-11f1-b690-02fc00000001:1-26	0ad0cc12-ebc8-11f1-b690-02fc00000001	2026-11-29 07:40:05.588122+00	binlog	2	11797	0ad0cc12-ebc8-11f1-b690-02fc00000001:1-30	0ad0cc12-ebc8-11f1-b690-02fc00000001	2026-11-29 07:40:08.679851+00	11766	31	2719783901	0ad0cc12-ebc8-11f1-b690-02fc00000001:30	1795937984	t	2026-11-29 07:39:43.758625+00	0	100	4	5995	0	\N	\N	2026-11-29 07:40:08.82349+00	2026-11-29 07:40:08.849629+00	2026-11-29 07:40:08.851567+00	\N	\N
4	shop	ordinary	capturing	3	\N	\N	3	167	6	2026-11-29 07:40:09.066296+00	binlog	2	11797	0ad0cc12-ebc8-11f1-b690-02fc00000001:1-30	0ad0cc12-ebc8-11f1-b690-02fc00000001	2026-11-29 07:40:08.679851+00	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	f	\N	\N	0	0	0	0	\N	\N	\N	\N	\N	\N	\N
\.
copy lockstep.capture_scopes from stdin;
shop	1	{shop.*}	{}
\.
copy lockstep.consumers from stdin;
1	shop	billing	\N	2026-11-29 07:40:05.570271+00	\N	\N	\N
\.
copy lockstep.database_versions from stdin;
1	shop	mysql	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"tables": ["columns_priv", "component", "db", "default_roles", "engine_cost", "func", "general_log", "global_grants", "gtid_executed", "help_category", "help_keyword", "help_relation", "help_topic", "innodb_index_stats", "innodb_table_stats", "ndb_binlog_index", "password_history", "plugin", "procs_priv", "proxies_priv", "replication_asynchronous_connection_failover", "replication_asynchronous_connection_failover_managed", "replication_group_configuration_version", "replication_group_member_actions", "role_edges", "server_cost", "servers", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "slow_log", "tables_priv", "time_zone", "time_zone_leap_second", "time_zone_name", "time_zone_transition", "time_zone_transition_type", "user"]}	\N
2	shop	shop	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{}	\N
\.
copy lockstep.decisions from stdin;
1	shop	1	start	configured-snapshot	start = 'snapshot': tables are read from the source, and the log from its end binlog.000002:198 on	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:198", "after": 0, "anchor": "not read", "cursor": null, "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 198}], "read_at": "2026-11-29T07:40:00.444671+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "0ad0cc12-ebc8-11f1-b690-02fc00000001", "gtid_executed": "0ad0cc12-ebc8-11f1-b690-02fc00000001:1-17"}	lockstep	2026-11-29 07:40:00.470185+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
2	shop	2	start	resume-same-server	batch 1 ended at binlog.000002:198, and the log there is unchanged	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:5802", "after": 1, "anchor": "the same", "cursor": "binlog.000002:198", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 5802}], "read_at": "2026-11-29T07:40:05.708080+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "0ad0cc12-ebc8-11f1-b690-02fc00000001", "gtid_executed": "0ad0cc12-ebc8-11f1-b690-02fc00000001:1-26"}	lockstep	2026-11-29 07:40:05.718242+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
3	shop	4	start	resume-same-server	batch 2 ended at binlog.000002:5802, and the log there is unchanged	{"at": "binlog.000002:5802", "set": "not kept", "head": "binlog.000002:11797", "after": 2, "anchor": "the same", "cursor": "binlog.000002:5802", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T07:40:08.758625+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "0ad0cc12-ebc8-11f1-b690-02fc00000001", "gtid_executed": "0ad0cc12-ebc8-11f1-b690-02fc00000001:1-30"}	lockstep	2026-11-29 07:40:08.765204+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
4	shop	6	start	resume-same-server	batch 3 ended at binlog.000002:11797, and the log there is unchanged	{"at": "binlog.000002:11797", "set": "not kept", "head": "binlog.000002:11797", "after": 3, "anchor": "the same", "cursor": "binlog.000002:11797", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T07:40:09.057963+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "0ad0cc12-ebc8-11f1-b690-02fc00000001", "gtid_executed": "0ad0cc12-ebc8-11f1-b690-02fc00000001:1-30"}	lockstep	2026-11-29 07:40:09.062977+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
\.
copy lockstep.deliveries from stdin;
1	shop	1	1	2	acknowledged	2026-11-29 07:40:08.903109+00	2026-11-29 07:40:08.905637+00
\.
copy lockstep.leases from stdin;
shop	1	vm, process 27916 (run)	58524c1f-2af4-41bc-849e-ffc9db7e2e3d	27921	2026-11-29 07:40:00.407273+00	f	2026-11-29 07:40:05.517289+00
shop	2	vm, process 28066 (run)	55878ffb-723e-4685-bd7b-b06347074187	28070	2026-11-29 07:40:05.675982+00	f	2026-11-29 07:40:08.560074+00
shop	3	vm, process 28136 (pause)	\N	28139	2026-11-29 07:40:08.642792+00	f	2026-11-29 07:40:08.651716+00
shop	4	vm, process 28141 (run)	8cb3bc0d-9749-4fa3-8dd9-870c6ccc8b8f	28145	2026-11-29 07:40:08.724875+00	f	2026-11-29 07:40:08.856222+00
shop	5	vm, process 28165 (reload)	\N	28168	2026-11-29 07:40:08.940256+00	f	2026-11-29 07:40:08.957663+00
shop	6	vm, process 28170 (run)	ab18a0a1-849e-4d0a-bdce-6c4803d8655b	28174	2026-11-29 07:40:09.021523+00	f	\N
\.
copy lockstep.ledger from stdin;
d018b5e5-ddb8-4157-8876-cfe5a885d61f	2026-11-29 07:39:44.438394+00	t
\.
copy lockstep.load_chunks from stdin;
1	0	\N	\N	binlog	2	198	binlog	2	198	2	0.04137889600315248
3	0	\N	\N	binlog	2	198	binlog	2	198	300	0.020573574998707045
2	0	\N	\N	binlog	2	198	binlog	2	198	40	0.04999822699755896
5	0	\N	\N	binlog	2	198	binlog	2	198	50	0.027597260999755235
4	0	\N	\N	binlog	2	198	binlog	2	198	300	0.062411274997430155
7	0	\N	\N	binlog	2	198	binlog	2	198	50	0.015909548001218354
6	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	198	binlog	2	198	10000	0.05751082699862309
8	0	\N	\N	binlog	2	198	binlog	2	198	3	0.029524956000386737
6	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	198	binlog	2	198	2000	0.03559106299871928
9	1	{"columns": ["id"], "literals": ["10000"]}	\N	\N	\N	\N	\N	\N	\N	\N	\N
9	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	11797	binlog	2	11797	10000	0.015843360000872053
\.
copy lockstep.load_files from stdin;
1	0	0	load-000000000001-000000-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
3	0	0	load-000000000003-000000-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
2	0	0	load-000000000002-000000-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
5	0	0	load-000000000005-000000-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
4	0	0	load-000000000004-000000-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
7	0	0	load-000000000007-000000-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
6	0	0	load-000000000006-000000-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
8	0	0	load-000000000008-000000-00000.parquet	3	712	9e5781a8c6c5b4518e7204081594bd076406bbd86ac9ccd66ef3889efd99c26b
6	1	0	load-000000000006-000001-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
9	0	0	load-000000000009-000000-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
\.
copy lockstep.loads from stdin;
1	shop	1	shop	carts	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.480565+00	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	2	\N	f	1	1	2	1	\N
2	shop	1	shop	customers	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.481786+00	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	40	7636ffe95a3d76aa	f	1	2	2	1	\N
3	shop	1	shop	order_lines	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.482299+00	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	300	\N	f	1	3	2	1	\N
4	shop	1	shop	orders	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.486204+00	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	300	\N	f	1	4	2	1	\N
5	shop	1	shop	prices	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.486712+00	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	50	\N	f	1	5	2	1	\N
6	shop	1	shop	readings	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.489885+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	12000	\N	f	1	6	2	1	\N
7	shop	1	shop	stock	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.490506+00	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	50	\N	f	1	7	2	1	\N
8	shop	1	shop	visits	lockstep	it is older than what is read of the log	2026-11-29 07:40:00.494187+00	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	198	3	\N	f	1	8	2	1	\N
9	shop	5	shop	readings	root	restored by hand	2026-11-29 07:40:08.953228+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	0ad0cc12-ebc8-11f1-b690-02fc00000001	binlog	2	11797	12202	\N	f	\N	\N	\N	\N	\N
\.
copy lockstep.looked from stdin;
shop	shop/_changes/shop/carts	0
shop	shop/_changes/shop/prices	0
shop	shop/_changes/shop/readings	0
shop	shop/shop/stock	0
shop	shop/shop/prices	0
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
copy lockstep.schema_statements from stdin;
1	shop	2	binlog	2	3231	binlog	2	3456	0ad0cc12-ebc8-11f1-b690-02fc00000001:19	2026-11-29 07:40:05.577013+00	"shop"	"alter table customers add column vip bool not null default '***'"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T07:40:05+00:00", "redacted": true}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone), (id, name, email, phone, vip)"}]
2	shop	2	binlog	2	4168	binlog	2	4382	0ad0cc12-ebc8-11f1-b690-02fc00000001:21	2026-11-29 07:40:05.579247+00	"shop"	"alter table customers rename column email to mail"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T07:40:05+00:00"}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone, vip), (id, name, mail, phone, vip)"}]
3	shop	2	binlog	2	4382	binlog	2	4605	0ad0cc12-ebc8-11f1-b690-02fc00000001:22	2026-11-29 07:40:05.585788+00	"shop"	"alter table orders modify customer bigint not null"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "SYSTEM", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T07:40:05+00:00"}	followed	[{"table": {"database": "shop", "name": "orders"}, "words": "column customer type: int, bigint"}]
4	shop	2	binlog	2	5304	binlog	2	5496	0ad0cc12-ebc8-11f1-b690-02fc00000001:25	2026-11-29 07:40:05.587818+00	"shop"	"rename table carts to baskets"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T07:40:05+00:00"}	followed	[{"table": {"database": "shop", "name": "carts"}, "words": "is now called shop.baskets"}, {"table": {"database": "shop", "name": "baskets"}, "words": "was called shop.carts"}]
5	shop	3	binlog	2	8378	binlog	2	8585	0ad0cc12-ebc8-11f1-b690-02fc00000001:28	2026-11-29 07:40:08.678581+00	"shop"	"alter table stock modify place varchar(12)"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T07:40:08+00:00"}	followed	[{"table": {"database": "shop", "name": "stock"}, "words": "column place length: 40, 12"}]
\.
copy lockstep.segment_files from stdin;
1	0	batch-000000000001-v2-00000.parquet	1	3555	38916affdd29f7f44e71e1ccae91ed448445cec986e187925d8cc71fbd9ee938
2	0	batch-000000000001-v2-00000.parquet	1	3907	92e92b564b961c5728056e244484a76192e0c1d02d4a1561ee9c38136602a75b
3	0	batch-000000000001-v2-00000.parquet	1	3938	787698fbfc7a8f1a032a045678e4027beb07a1af5c34e2c7fa6acf583b419387
4	0	batch-000000000001-v2-00000.parquet	1	4322	d31713ac9709cc5efc98d531f67c66506e4a668cf0370325c6a75f8e657d5a65
5	0	batch-000000000001-v2-00000.parquet	1	3569	f32c6817a59b706a3276d3c8938e97992babbec3af3b9206eb1a538331927363
6	0	batch-000000000001-v2-00000.parquet	1	3585	6ed0fe9231c680cffbee2f2df0e67a2b3f9e666475f5ea9481a2339f054b174d
7	0	batch-000000000001-v2-00000.parquet	1	3737	a07fbe6a90f77b502af1a16fbf458b107acee20e33bdc1b2dde05a8006b1b29f
8	0	batch-000000000001-v2-00000.parquet	1	3588	ed3832c76b043fd7d4b3039d35c5b16640b5074981eb7f341a18c194838002ce
9	0	batch-000000000002-v2-00000.parquet	40	5808	4c45093421bc253a079e5df46068360141f84b2dbe74a6e09e4439754d15413c
10	0	batch-000000000002-v2-00000.parquet	3	4536	2397f2be3ac1dd14c2ac09ed44669b6005f478c3055a52ddf14deee25f43758b
11	0	batch-000000000002-v2-00000.parquet	3	4130	30311c6b8bc1e03dc4ceb62d89521fd80f149ee3ae785e8d15a14782ac750fb9
12	0	batch-000000000002-v3-00000.parquet	10	4914	34963c5c4b819bffe925586138139a2080b47dc2b4ae505b07271c976a43933c
13	0	batch-000000000002-v3-00000.parquet	1	4990	e77dd9ff960eff15acf403fbf4e53a65d42444b950816edf6e5f052296899d31
14	0	batch-000000000002-v1-00000.parquet	2	3996	bebfa5c20623e63e1a3fa12131c6a145f50690b61f90227b17849936e6c870eb
15	0	batch-000000000003-v2-00000.parquet	100	4924	adea5e5e585b360e729a8c32948e9cdd1d44c5be1180429aa135147e397de4aa
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
shop	2	0	0ad0cc12-ebc8-11f1-b690-02fc00000001	0ad0cc12-ebc8-11f1-b690-02fc00000001:26	1795938005588122	
shop	3	0	0ad0cc12-ebc8-11f1-b690-02fc00000001	0ad0cc12-ebc8-11f1-b690-02fc00000001:30	1795938008679851	
\.
copy lockstep.snapshot_files from stdin;
1	0	load-000000000001-000000-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	load-000000000002-000000-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	load-000000000003-000000-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	load-000000000004-000000-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	load-000000000005-000000-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	load-000000000006-000000-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
6	1	load-000000000006-000001-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
7	0	load-000000000007-000000-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	load-000000000008-000000-00000.parquet	3	712	9e5781a8c6c5b4518e7204081594bd076406bbd86ac9ccd66ef3889efd99c26b
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
shop	2	_ddl	0	batch-000000000002-v1-00000.parquet	4	6308	8c199967b43051b1d55a8b5452a393f7d36d8e8f79f4041eeb6d7dd00b0d280c
shop	2	_transactions	0	batch-000000000002-v1-00000.parquet	9	3773	498b48018729dbc2f240f4e4e42a64d19fef8beb3d845d8dd29dd40641935511
shop	3	_ddl	0	batch-000000000003-v1-00000.parquet	1	6180	1e04c276ec7c798697af62307f43466f358c204f702664f72be9e1b0c17614ed
shop	3	_transactions	0	batch-000000000003-v1-00000.parquet	4	3707	924a916851cf2a790f56b4811f32f8b3c7ed8bb5328c639918efab6c3d57f7e0
\.
copy lockstep.sources from stdin;
shop	1	6	2026-11-29 07:40:00.403255+00	2026-11-29 07:40:09.021067+00	\N
\.
copy lockstep.table_events from stdin;
shop	1	shop	carts	0	reread	1	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	1	shop	customers	0	reread	2	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	1	shop	order_lines	0	reread	3	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	1	shop	orders	0	reread	4	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	1	shop	prices	0	reread	5	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	1	shop	readings	0	reread	6	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	1	shop	stock	0	reread	7	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	1	shop	visits	0	reread	8	2	binlog	2	198	it is older than what is read of the log	\N	\N
shop	2	shop	customers	0	changed	53	3	binlog	2	3456	its columns changed	\N	\N
shop	2	shop	customers	1	changed	63	4	binlog	2	4382	its columns changed	\N	\N
shop	2	shop	orders	0	changed	63	3	binlog	2	4605	its columns changed	\N	\N
shop	2	shop	carts	0	dropped	65	3	binlog	2	5496	it is now called shop.baskets	\N	\N
shop	2	shop	baskets	0	copied	65	1	binlog	2	5496	it was called shop.carts	shop	carts
\.
copy lockstep.table_life from stdin;
1	shop	shop	carts	followed	following	1	1	{"need": null, "mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "changelog_generation": 1}	2026-11-29 07:40:00.923113+00
2	shop	shop	customers	followed	following	1	1	{"need": null, "mirror": "shop/shop/customers", "changelog": "shop/_changes/shop/customers", "changelog_generation": 1}	2026-11-29 07:40:00.923585+00
3	shop	shop	order_lines	followed	following	1	1	{"need": null, "mirror": "shop/shop/order_lines", "changelog": "shop/_changes/shop/order_lines", "changelog_generation": 1}	2026-11-29 07:40:00.923641+00
4	shop	shop	orders	followed	following	1	1	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders", "changelog_generation": 1}	2026-11-29 07:40:00.923677+00
5	shop	shop	prices	followed	following	1	1	{"need": null, "mirror": "shop/shop/prices", "changelog": "shop/_changes/shop/prices", "changelog_generation": 1}	2026-11-29 07:40:00.923708+00
6	shop	shop	readings	followed	following	1	1	{"need": null, "mirror": "shop/shop/readings", "changelog": "shop/_changes/shop/readings", "changelog_generation": 1}	2026-11-29 07:40:00.923741+00
7	shop	shop	stock	followed	following	1	1	{"need": null, "mirror": "shop/shop/stock", "changelog": "shop/_changes/shop/stock", "changelog_generation": 1}	2026-11-29 07:40:00.923774+00
8	shop	shop	visits	followed	following	1	1	{"need": null, "mirror": "shop/shop/visits", "changelog": "shop/_changes/shop/visits", "changelog_generation": 1}	2026-11-29 07:40:00.92378+00
9	shop	shop	customers	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:03.597093+00
10	shop	shop	carts	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:03.599904+00
11	shop	shop	orders	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:03.603157+00
12	shop	shop	order_lines	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:03.604511+00
13	shop	shop	visits	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:03.776934+00
14	shop	shop	stock	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:03.792456+00
15	shop	shop	prices	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:03.795652+00
16	shop	shop	readings	mirror written	following	\N	1	{"version": 2}	2026-11-29 07:40:05.502188+00
17	shop	shop	orders	followed	following	2	2	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders@2", "changelog_generation": 2}	2026-11-29 07:40:05.794776+00
18	shop	shop	carts	dropped	dropped	2	2	{"mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802, "changelog_generation": 1}	2026-11-29 07:40:05.795011+00
19	shop	shop	baskets	followed	following	2	2	{"need": null, "mirror": "shop/shop/baskets", "changelog": "shop/_changes/shop/baskets", "changelog_generation": 1}	2026-11-29 07:40:05.795055+00
20	shop	shop	baskets	mirror written	following	\N	2	{"version": 1}	2026-11-29 07:40:06.105262+00
21	shop	shop	orders	mirror written	following	\N	2	{"version": 3}	2026-11-29 07:40:06.455707+00
22	shop	shop	customers	mirror written	following	\N	2	{"version": 4}	2026-11-29 07:40:08.547405+00
23	shop	shop	prices	stopped	stopped	\N	3	{"by": "person", "hint": "`lockstep resume shop.prices` brings it back", "need": null, "reason": "root paused it: the auditors asked for it", "position": null, "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802}	2026-11-29 07:40:08.647969+00
24	shop	shop	stock	stopped	stopped	3	4	{"by": "system", "hint": "`lockstep resume shop.stock --reason …` brings it back", "need": null, "reason": "stored values of place may have changed: varchar(40) became varchar(12), which is shorter", "position": "binlog.000002:8378", "stopped_base": "binlog", "stopped_batch": 3, "stopped_number": 2, "stopped_offset": 8378}	2026-11-29 07:40:08.819618+00
\.
copy lockstep.table_orders from stdin;
1	shop	3	shop	prices	pause	root	the auditors asked for it	2026-11-29 07:40:08.646071+00	\N	\N	\N	\N
\.
copy lockstep.table_states from stdin;
shop	shop	order_lines	following	1	shop/shop/order_lines	shop/_changes/shop/order_lines	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	12
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
shop	1	shop	carts	shop/shop/carts	0	9c1c8158-96bf-4bb5-b9b7-9d220caffdc0	\N	\N
shop	1	shop	customers	shop/shop/customers	0	dce1fc85-c03c-4164-9f94-2133119578ed	\N	\N
shop	1	shop	order_lines	shop/shop/order_lines	0	2bec65f3-6a80-4ae8-804d-0520152050c0	\N	\N
shop	1	shop	orders	shop/shop/orders	0	a67dfc5d-62cd-46fe-8a29-4bdd97b5c52e	\N	\N
shop	1	shop	prices	shop/shop/prices	0	40f4ee67-7593-44a8-a50c-fd6a9e5b5d12	\N	\N
shop	1	shop	readings	shop/shop/readings	0	0a03aa29-6a82-451b-bac0-74c594a8f426	\N	\N
shop	1	shop	stock	shop/shop/stock	0	8953e6b7-bb67-4f1e-a1f7-ad6223fa40f6	\N	\N
shop	1	shop	visits	shop/shop/visits	0	585864c2-d79f-4164-a1df-e0a234d1b855	\N	\N
shop	2	shop	baskets	shop/shop/baskets	0	45d6b196-433a-4d2a-b173-6a017839ec6a	\N	\N
shop	2	shop	carts	\N	\N	\N	dropped	\N
shop	2	shop	customers	shop/shop/customers	5	dce1fc85-c03c-4164-9f94-2133119578ed	\N	\N
shop	2	shop	order_lines	shop/shop/order_lines	1	2bec65f3-6a80-4ae8-804d-0520152050c0	\N	\N
shop	2	shop	orders	shop/shop/orders	3	a67dfc5d-62cd-46fe-8a29-4bdd97b5c52e	\N	\N
shop	2	shop	visits	shop/shop/visits	1	585864c2-d79f-4164-a1df-e0a234d1b855	\N	\N
shop	3	shop	prices	\N	\N	\N	stopped	\N
shop	3	shop	stock	\N	\N	\N	stopped	\N
\.
copy lockstep.writes from stdin;
2	shop	1	shop	customers	lockstep/shop/shop.customers/mirror/1	2	1	1	merge	\N	2026-11-29 07:40:01.049054+00	0	2026-11-29 07:40:03.593938+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/customers	dce1fc85-c03c-4164-9f94-2133119578ed
1	shop	1	shop	carts	lockstep/shop/shop.carts/mirror/1	1	1	1	merge	\N	2026-11-29 07:40:01.048292+00	0	2026-11-29 07:40:03.599446+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/carts	9c1c8158-96bf-4bb5-b9b7-9d220caffdc0
4	shop	1	shop	orders	lockstep/shop/shop.orders/mirror/1	4	1	1	merge	\N	2026-11-29 07:40:01.04934+00	0	2026-11-29 07:40:03.602764+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/orders	a67dfc5d-62cd-46fe-8a29-4bdd97b5c52e
3	shop	1	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	3	1	1	merge	\N	2026-11-29 07:40:01.049235+00	0	2026-11-29 07:40:03.604134+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/order_lines	2bec65f3-6a80-4ae8-804d-0520152050c0
8	shop	1	shop	visits	lockstep/shop/shop.visits/mirror/1	8	1	1	merge	\N	2026-11-29 07:40:01.05269+00	0	2026-11-29 07:40:03.765165+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/visits	585864c2-d79f-4164-a1df-e0a234d1b855
7	shop	1	shop	stock	lockstep/shop/shop.stock/mirror/1	7	1	1	merge	\N	2026-11-29 07:40:01.052651+00	0	2026-11-29 07:40:03.791856+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/stock	8953e6b7-bb67-4f1e-a1f7-ad6223fa40f6
5	shop	1	shop	prices	lockstep/shop/shop.prices/mirror/1	5	1	1	merge	\N	2026-11-29 07:40:01.049433+00	0	2026-11-29 07:40:03.795159+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/prices	40f4ee67-7593-44a8-a50c-fd6a9e5b5d12
6	shop	1	shop	readings	lockstep/shop/shop.readings/mirror/1	6	1	1	merge	\N	2026-11-29 07:40:01.049523+00	0	2026-11-29 07:40:05.497963+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; Spark is set for many rows	shop/shop/readings	0a03aa29-6a82-451b-bac0-74c594a8f426
10	shop	2	shop	carts	lockstep/shop/shop.carts/mirror/1	10	2	2	merge	\N	2026-11-29 07:40:05.882056+00	1	2026-11-29 07:40:06.063301+00	2	\N	no row of the table changed; the rows are few, so they were put together in memory	shop/shop/carts	9c1c8158-96bf-4bb5-b9b7-9d220caffdc0
12	shop	2	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	12	2	2	merge	\N	2026-11-29 07:40:05.882295+00	1	2026-11-29 07:40:06.071192+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/order_lines	2bec65f3-6a80-4ae8-804d-0520152050c0
9	shop	2	shop	baskets	lockstep/shop/shop.baskets/mirror/1	9	2	2	merge	1	2026-11-29 07:40:05.881459+00	0	2026-11-29 07:40:06.10352+00	2	\N	its rows were those of shop.carts, copied from version 0 of shop/shop/carts; the rows are few, so they were put together in memory	shop/shop/baskets	45d6b196-433a-4d2a-b173-6a017839ec6a
14	shop	2	shop	visits	lockstep/shop/shop.visits/mirror/1	14	2	2	merge	\N	2026-11-29 07:40:05.88248+00	1	2026-11-29 07:40:06.182116+00	2	\N	the table has no key, so copies of its rows are counted; the rows are few, so they were put together in memory	shop/shop/visits	585864c2-d79f-4164-a1df-e0a234d1b855
13	shop	2	shop	orders	lockstep/shop/shop.orders/mirror/1	13	2	2	merge	\N	2026-11-29 07:40:05.882388+00	3	2026-11-29 07:40:06.454766+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/orders	a67dfc5d-62cd-46fe-8a29-4bdd97b5c52e
11	shop	2	shop	customers	lockstep/shop/shop.customers/mirror/1	11	2	2	merge	\N	2026-11-29 07:40:05.882193+00	5	2026-11-29 07:40:08.546747+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/customers	dce1fc85-c03c-4164-9f94-2133119578ed
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
