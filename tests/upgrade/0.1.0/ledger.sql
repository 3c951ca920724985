-- migration 1: fbe2be7548342074aaa76bdaf535f8e232ef94dc139eb75ddf1dca7aec4eda4b
copy lockstep.batches from stdin;
1	shop	ordinary	acknowledged	\N	1	\N	\N	0	1	2026-11-29 05:43:29.84565+00	binlog	2	198	c8e39121-ebb7-11f1-800e-02fc00000001:1-17	c8e39121-ebb7-11f1-800e-02fc00000001	\N	binlog	2	198	c8e39121-ebb7-11f1-800e-02fc00000001:1-17	c8e39121-ebb7-11f1-800e-02fc00000001	\N	127	71	227995974		1795931004	t	2026-11-29 05:43:20.119593+00	0	8	0	0	0	\N	\N	2026-11-29 05:43:30.177804+00	2026-11-29 05:43:36.047273+00	2026-11-29 05:43:36.053966+00	\N	\N
2	shop	ordinary	acknowledged	1	\N	\N	1	8	2	2026-11-29 05:43:36.958259+00	binlog	2	198	c8e39121-ebb7-11f1-800e-02fc00000001:1-17	c8e39121-ebb7-11f1-800e-02fc00000001	\N	binlog	2	5802	c8e39121-ebb7-11f1-800e-02fc00000001:1-26	c8e39121-ebb7-11f1-800e-02fc00000001	2026-11-29 05:43:36.658889+00	5771	31	2257913778	c8e39121-ebb7-11f1-800e-02fc00000001:26	1795931004	t	2026-11-29 05:43:20.939013+00	0	59	9	5604	0	\N	\N	2026-11-29 05:43:37.131809+00	2026-11-29 05:43:42.060424+00	2026-11-29 05:43:42.062571+00	\N	\N
3	shop	ordinary	acknowledged	2	\N	\N	2	67	4	2026-11-29 05:43:42.472549+00	binlog	2	5802	c8e39121-ebb7-11f1-800e-02fc00000001:1-26	c8e39121-ebb7-11f1-800e-02fc00000001	2026-11-29 05:43:36.658889+00	binlog	2	11797	c8e39121-ebb7-11f1-800e-02fc00000001:1-30	c8e39121-ebb7-11f1-800e-02fc00000001	2026-11-29 05:43:42.281601+00	11766	31	826084413	c8e39121-ebb7-11f1-800e-02fc00000001:30	1795931004	t	2026-11-29 05:43:20.462392+00	0	100	4	5995	0	\N	\N	2026-11-29 05:43:42.553103+00	2026-11-29 05:43:42.618478+00	2026-11-29 05:43:42.622139+00	\N	\N
4	shop	ordinary	capturing	3	\N	\N	3	167	6	2026-11-29 05:43:42.96899+00	binlog	2	11797	c8e39121-ebb7-11f1-800e-02fc00000001:1-30	c8e39121-ebb7-11f1-800e-02fc00000001	2026-11-29 05:43:42.281601+00	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	f	\N	\N	0	0	0	0	\N	\N	\N	\N	\N	\N	\N
\.
copy lockstep.capture_scopes from stdin;
shop	1	{shop.*}	{}
\.
copy lockstep.consumers from stdin;
1	shop	billing	\N	2026-11-29 05:43:36.620676+00	\N	\N	\N
\.
copy lockstep.database_versions from stdin;
1	shop	mysql	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"triggers": [], "views": [], "tables": ["columns_priv", "component", "db", "default_roles", "engine_cost", "func", "general_log", "global_grants", "gtid_executed", "help_category", "help_keyword", "help_relation", "help_topic", "innodb_index_stats", "innodb_table_stats", "ndb_binlog_index", "password_history", "plugin", "procs_priv", "proxies_priv", "replication_asynchronous_connection_failover", "replication_asynchronous_connection_failover_managed", "replication_group_configuration_version", "replication_group_member_actions", "role_edges", "server_cost", "servers", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "slow_log", "tables_priv", "time_zone", "time_zone_leap_second", "time_zone_name", "time_zone_transition", "time_zone_transition_type", "user"]}	\N
2	shop	shop	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"triggers": [], "views": [], "tables": []}	\N
\.
copy lockstep.decisions from stdin;
1	shop	1	start	configured-snapshot	start = 'snapshot': tables are read from the source, and the log from its end binlog.000002:198 on	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:198", "after": 0, "anchor": "not read", "cursor": null, "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 198}], "read_at": "2026-11-29T05:43:29.790175+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "c8e39121-ebb7-11f1-800e-02fc00000001", "gtid_executed": "c8e39121-ebb7-11f1-800e-02fc00000001:1-17"}	lockstep	2026-11-29 05:43:29.83372+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
2	shop	2	start	resume-same-server	batch 1 ended at binlog.000002:198, and the log there is unchanged	{"at": "binlog.000002:198", "set": "not kept", "head": "binlog.000002:5802", "after": 1, "anchor": "the same", "cursor": "binlog.000002:198", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 5802}], "read_at": "2026-11-29T05:43:36.939013+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "c8e39121-ebb7-11f1-800e-02fc00000001", "gtid_executed": "c8e39121-ebb7-11f1-800e-02fc00000001:1-26"}	lockstep	2026-11-29 05:43:36.949349+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
3	shop	4	start	resume-same-server	batch 2 ended at binlog.000002:5802, and the log there is unchanged	{"at": "binlog.000002:5802", "set": "not kept", "head": "binlog.000002:11797", "after": 2, "anchor": "the same", "cursor": "binlog.000002:5802", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T05:43:42.462392+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "c8e39121-ebb7-11f1-800e-02fc00000001", "gtid_executed": "c8e39121-ebb7-11f1-800e-02fc00000001:1-30"}	lockstep	2026-11-29 05:43:42.467989+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
4	shop	6	start	resume-same-server	batch 3 ended at binlog.000002:11797, and the log there is unchanged	{"at": "binlog.000002:11797", "set": "not kept", "head": "binlog.000002:11797", "after": 3, "anchor": "the same", "cursor": "binlog.000002:11797", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-29T05:43:42.953971+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "c8e39121-ebb7-11f1-800e-02fc00000001", "gtid_executed": "c8e39121-ebb7-11f1-800e-02fc00000001:1-30"}	lockstep	2026-11-29 05:43:42.964323+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
\.
copy lockstep.deliveries from stdin;
1	shop	1	1	2	acknowledged	2026-11-29 05:43:42.690922+00	2026-11-29 05:43:42.694212+00
\.
copy lockstep.leases from stdin;
shop	1	vm, process 32293 (run)	73388765-46a9-4823-9d7b-a0bf5f1843e6	32297	2026-11-29 05:43:29.730787+00	f	2026-11-29 05:43:36.063634+00
shop	2	vm, process 481 (run)	8fcdface-dd4f-4bff-b657-b4bf7101eba9	489	2026-11-29 05:43:36.863269+00	f	2026-11-29 05:43:42.067708+00
shop	3	vm, process 1064 (pause)	\N	1074	2026-11-29 05:43:42.207882+00	f	2026-11-29 05:43:42.220323+00
shop	4	vm, process 1081 (run)	9f3c5f25-0e37-464d-8796-74ce2f33991a	1099	2026-11-29 05:43:42.410118+00	f	2026-11-29 05:43:42.629096+00
shop	5	vm, process 1141 (reload)	\N	1151	2026-11-29 05:43:42.771721+00	f	2026-11-29 05:43:42.796465+00
shop	6	vm, process 1166 (run)	7b2361ff-a7bf-44d3-8f83-f4e7baea9911	1174	2026-11-29 05:43:42.903541+00	f	\N
\.
copy lockstep.ledger from stdin;
40b174e0-4665-4692-ba17-06ea3c125afd	2026-11-29 05:43:22.439854+00	t
\.
copy lockstep.load_chunks from stdin;
1	0	\N	\N	binlog	2	198	binlog	2	198	2	0.026170462999289157
3	0	\N	\N	binlog	2	198	binlog	2	198	300	0.017452630998377572
2	0	\N	\N	binlog	2	198	binlog	2	198	40	0.025031644001501263
5	0	\N	\N	binlog	2	198	binlog	2	198	50	0.009640419000788825
4	0	\N	\N	binlog	2	198	binlog	2	198	300	0.01717596700109425
7	0	\N	\N	binlog	2	198	binlog	2	198	50	0.021342893000110053
6	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	198	binlog	2	198	10000	0.02926640999976371
8	0	\N	\N	binlog	2	198	binlog	2	198	3	0.01471667899932072
6	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	198	binlog	2	198	2000	0.01592626399906294
9	1	{"columns": ["id"], "literals": ["10000"]}	\N	\N	\N	\N	\N	\N	\N	\N	\N
9	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	11797	binlog	2	11797	10000	0.03887858699999924
\.
copy lockstep.load_files from stdin;
1	0	0	load-000000000001-000000-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
3	0	0	load-000000000003-000000-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
2	0	0	load-000000000002-000000-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
5	0	0	load-000000000005-000000-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
4	0	0	load-000000000004-000000-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
7	0	0	load-000000000007-000000-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
6	0	0	load-000000000006-000000-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
8	0	0	load-000000000008-000000-00000.parquet	3	712	2b9a64cb5b9d1bdf629630cb3f74176c173daccd7a0f744c05f24c2c902a58b1
6	1	0	load-000000000006-000001-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
9	0	0	load-000000000009-000000-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
\.
copy lockstep.loads from stdin;
1	shop	1	shop	carts	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.862107+00	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	2	\N	f	1	1	2	1	\N
2	shop	1	shop	customers	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.862895+00	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	40	7636ffe95a3d76aa	f	1	2	2	1	\N
3	shop	1	shop	order_lines	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.865963+00	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	300	\N	f	1	3	2	1	\N
4	shop	1	shop	orders	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.866547+00	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	300	\N	f	1	4	2	1	\N
5	shop	1	shop	prices	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.867046+00	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	50	\N	f	1	5	2	1	\N
6	shop	1	shop	readings	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.876777+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	12000	\N	f	1	6	2	1	\N
7	shop	1	shop	stock	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.878277+00	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	50	\N	f	1	7	2	1	\N
8	shop	1	shop	visits	lockstep	it is older than what is read of the log	2026-11-29 05:43:29.878733+00	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	198	3	\N	f	1	8	2	1	\N
9	shop	5	shop	readings	root	restored by hand	2026-11-29 05:43:42.792338+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	c8e39121-ebb7-11f1-800e-02fc00000001	binlog	2	11797	12000	\N	f	\N	\N	\N	\N	\N
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
1	shop	2	binlog	2	3231	binlog	2	3456	c8e39121-ebb7-11f1-800e-02fc00000001:19	2026-11-29 05:43:36.629553+00	"shop"	"alter table customers add column vip bool not null default '***'"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T05:43:36+00:00", "redacted": true}	followed	["shop.customers: columns: (id, name, email, phone), (id, name, email, phone, vip)"]
2	shop	2	binlog	2	4168	binlog	2	4382	c8e39121-ebb7-11f1-800e-02fc00000001:21	2026-11-29 05:43:36.631204+00	"shop"	"alter table customers rename column email to mail"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T05:43:36+00:00"}	followed	["shop.customers: columns: (id, name, email, phone, vip), (id, name, mail, phone, vip)"]
3	shop	2	binlog	2	4382	binlog	2	4605	c8e39121-ebb7-11f1-800e-02fc00000001:22	2026-11-29 05:43:36.646746+00	"shop"	"alter table orders modify customer bigint not null"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "SYSTEM", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T05:43:36+00:00"}	followed	["shop.orders: column customer type: int, bigint"]
4	shop	2	binlog	2	5304	binlog	2	5496	c8e39121-ebb7-11f1-800e-02fc00000001:25	2026-11-29 05:43:36.658416+00	"shop"	"rename table carts to baskets"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T05:43:36+00:00"}	followed	["shop.carts: is now called shop.baskets"]
5	shop	3	binlog	2	8378	binlog	2	8585	c8e39121-ebb7-11f1-800e-02fc00000001:28	2026-11-29 05:43:42.278792+00	"shop"	"alter table stock modify place varchar(12)"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-29T05:43:42+00:00"}	followed	["shop.stock: column place length: 40, 12"]
\.
copy lockstep.segment_files from stdin;
1	0	batch-000000000001-v2-00000.parquet	1	3555	8ee5a41070688a1dffbba26739d1d7b070fcd80145b0b07fe5437951ce91212a
2	0	batch-000000000001-v2-00000.parquet	1	3907	54d690474180bf95ff88f6b7b14ecfac71c3a35640ff3b83cebe23c42cc181d5
3	0	batch-000000000001-v2-00000.parquet	1	3938	9f17e34ed2ef4a275043b1554357f17bb9a7aeec7874d34d8d4cb50149f02e0b
4	0	batch-000000000001-v2-00000.parquet	1	4322	179d30ff1b09916e2c9b17891d6ac747f9f751a5288bd283ff5b978234206a0f
5	0	batch-000000000001-v2-00000.parquet	1	3569	0e626be9c11c13a4552601fa5d0fa52737da4c9b301d951930d608d65fb2ce37
6	0	batch-000000000001-v2-00000.parquet	1	3585	0309bb4575d0324ee3357b5aa6ef270d013b7c70cd531ad130264049df8ea3ba
7	0	batch-000000000001-v2-00000.parquet	1	3737	f946686738f902bbc64602486399dc3752012fb50b1a662efb4611f42e773344
8	0	batch-000000000001-v2-00000.parquet	1	3588	0f0f8062053899e856712c6134293df8e0026eef08ce491d794c1d432c4bbaf5
9	0	batch-000000000002-v2-00000.parquet	40	5808	0194a66a0ad792edd9461528e70d10918b3041904358ea8cfd050e9fbd8eb3e9
10	0	batch-000000000002-v2-00000.parquet	3	4536	59c3b354f77a7ded851557cbe5a868727e42c50caa1be317639ce92b4863e241
11	0	batch-000000000002-v2-00000.parquet	3	4129	57b58b40cefd3ff1c2bf099ff683a5a568ba855188676bf0452c1f8d6d22f770
12	0	batch-000000000002-v3-00000.parquet	10	4914	e57959899d21e9e37c52f48e474fe84d47c74129012f5f67a08baa63448d8c09
13	0	batch-000000000002-v3-00000.parquet	1	4990	320e2882151c022fcefe8d7283e4d3faf07fff34fbe383b92f9b740578887883
14	0	batch-000000000002-v1-00000.parquet	2	3996	ad9ad0be0861531158e2316c15348b45379390d67c95bc89c86b2916c9253ad3
15	0	batch-000000000003-v2-00000.parquet	100	4924	3494a395656f65108987e18c214b43e0189a000ffb3f7426aee07fd7ae69137e
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
shop	2	0	c8e39121-ebb7-11f1-800e-02fc00000001	c8e39121-ebb7-11f1-800e-02fc00000001:26	1795931016658889	
shop	3	0	c8e39121-ebb7-11f1-800e-02fc00000001	c8e39121-ebb7-11f1-800e-02fc00000001:30	1795931022281601	
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
8	0	load-000000000008-000000-00000.parquet	3	712	2b9a64cb5b9d1bdf629630cb3f74176c173daccd7a0f744c05f24c2c902a58b1
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
shop	2	_ddl	0	batch-000000000002-v1-00000.parquet	4	6310	1c9a237a7f971cff1fd57bb5973b2046b1e07659482353de40cca553a5512f29
shop	2	_transactions	0	batch-000000000002-v1-00000.parquet	9	3773	19449d1c0f7ae06e196a5bfb3d4abeef1322e875e7a94873eaf682408317642a
shop	3	_ddl	0	batch-000000000003-v1-00000.parquet	1	6180	65852c2ed49692fd67abfbfc3bee7d4ca80cd51e57f14b6bd6c6a6f3c1764d99
shop	3	_transactions	0	batch-000000000003-v1-00000.parquet	4	3708	d5caf373cc37717e0ab7e744853b772e1c4a68a22ec5797b3b94ccce59f0a173
\.
copy lockstep.sources from stdin;
shop	1	6	2026-11-29 05:43:29.721199+00	2026-11-29 05:43:42.903022+00	\N
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
1	shop	shop	carts	followed	following	1	1	{"need": null, "mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "changelog_generation": 1}	2026-11-29 05:43:30.155644+00
2	shop	shop	customers	followed	following	1	1	{"need": null, "mirror": "shop/shop/customers", "changelog": "shop/_changes/shop/customers", "changelog_generation": 1}	2026-11-29 05:43:30.156064+00
3	shop	shop	order_lines	followed	following	1	1	{"need": null, "mirror": "shop/shop/order_lines", "changelog": "shop/_changes/shop/order_lines", "changelog_generation": 1}	2026-11-29 05:43:30.156116+00
4	shop	shop	orders	followed	following	1	1	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders", "changelog_generation": 1}	2026-11-29 05:43:30.156149+00
5	shop	shop	prices	followed	following	1	1	{"need": null, "mirror": "shop/shop/prices", "changelog": "shop/_changes/shop/prices", "changelog_generation": 1}	2026-11-29 05:43:30.15618+00
6	shop	shop	readings	followed	following	1	1	{"need": null, "mirror": "shop/shop/readings", "changelog": "shop/_changes/shop/readings", "changelog_generation": 1}	2026-11-29 05:43:30.156209+00
7	shop	shop	stock	followed	following	1	1	{"need": null, "mirror": "shop/shop/stock", "changelog": "shop/_changes/shop/stock", "changelog_generation": 1}	2026-11-29 05:43:30.156242+00
8	shop	shop	visits	followed	following	1	1	{"need": null, "mirror": "shop/shop/visits", "changelog": "shop/_changes/shop/visits", "changelog_generation": 1}	2026-11-29 05:43:30.156248+00
9	shop	shop	order_lines	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:33.193218+00
10	shop	shop	carts	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:33.234602+00
11	shop	shop	orders	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:33.244317+00
12	shop	shop	customers	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:33.248802+00
13	shop	shop	prices	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:33.345251+00
14	shop	shop	stock	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:33.379059+00
15	shop	shop	visits	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:33.429455+00
16	shop	shop	readings	mirror written	following	\N	1	{"version": 2}	2026-11-29 05:43:36.034789+00
17	shop	shop	orders	followed	following	2	2	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders@2", "changelog_generation": 2}	2026-11-29 05:43:37.118155+00
18	shop	shop	carts	dropped	dropped	2	2	{"mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802, "changelog_generation": 1}	2026-11-29 05:43:37.118402+00
19	shop	shop	baskets	followed	following	2	2	{"need": null, "mirror": "shop/shop/baskets", "changelog": "shop/_changes/shop/baskets", "changelog_generation": 1}	2026-11-29 05:43:37.11845+00
20	shop	shop	baskets	mirror written	following	\N	2	{"version": 1}	2026-11-29 05:43:37.514042+00
21	shop	shop	orders	mirror written	following	\N	2	{"version": 3}	2026-11-29 05:43:38.666209+00
22	shop	shop	customers	mirror written	following	\N	2	{"version": 4}	2026-11-29 05:43:42.055541+00
23	shop	shop	prices	stopped	stopped	\N	3	{"by": "person", "hint": "`lockstep resume shop.prices` brings it back", "need": null, "reason": "root paused it: the auditors asked for it", "position": null, "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802}	2026-11-29 05:43:42.212595+00
24	shop	shop	stock	stopped	stopped	3	4	{"by": "system", "hint": "`lockstep resume shop.stock --reason …` brings it back", "need": null, "reason": "stored values of place may have changed: varchar(40) became varchar(12), which is shorter", "position": "binlog.000002:8378", "stopped_base": "binlog", "stopped_batch": 3, "stopped_number": 2, "stopped_offset": 8378}	2026-11-29 05:43:42.543732+00
\.
copy lockstep.table_orders from stdin;
1	shop	3	shop	prices	pause	root	the auditors asked for it	2026-11-29 05:43:42.209954+00	\N	\N	\N	\N
\.
copy lockstep.table_states from stdin;
shop	shop	order_lines	following	1	shop/shop/order_lines	shop/_changes/shop/order_lines	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	9
shop	shop	visits	following	1	shop/shop/visits	shop/_changes/shop/visits	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	15
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
shop	1	shop	carts	shop/shop/carts	0	5bf2f944-e724-436f-8325-86725e0f459b	\N	\N
shop	1	shop	customers	shop/shop/customers	0	75dbeda3-50ab-4ba8-b9ae-8aa508fdb9df	\N	\N
shop	1	shop	order_lines	shop/shop/order_lines	0	5b293b57-0462-489f-9630-8a682ae750cd	\N	\N
shop	1	shop	orders	shop/shop/orders	0	32d780f8-8d6f-42fd-a517-b4b5f07ec511	\N	\N
shop	1	shop	prices	shop/shop/prices	0	6675b7ad-a783-4557-8eb6-287a4971384b	\N	\N
shop	1	shop	readings	shop/shop/readings	0	dd32eabd-73a3-494f-873c-2ec8da85f207	\N	\N
shop	1	shop	stock	shop/shop/stock	0	e3c3b985-1dc9-4d31-add7-907064442506	\N	\N
shop	1	shop	visits	shop/shop/visits	0	9d623756-9706-4a78-b4c5-3253331ee6a0	\N	\N
shop	2	shop	baskets	shop/shop/baskets	0	6529bba2-df49-4643-83b6-acb6b8048faf	\N	\N
shop	2	shop	carts	\N	\N	\N	dropped	\N
shop	2	shop	customers	shop/shop/customers	5	75dbeda3-50ab-4ba8-b9ae-8aa508fdb9df	\N	\N
shop	2	shop	order_lines	shop/shop/order_lines	1	5b293b57-0462-489f-9630-8a682ae750cd	\N	\N
shop	2	shop	orders	shop/shop/orders	3	32d780f8-8d6f-42fd-a517-b4b5f07ec511	\N	\N
shop	2	shop	visits	shop/shop/visits	1	9d623756-9706-4a78-b4c5-3253331ee6a0	\N	\N
shop	3	shop	prices	\N	\N	\N	stopped	\N
shop	3	shop	stock	\N	\N	\N	stopped	\N
\.
copy lockstep.writes from stdin;
3	shop	1	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	3	1	1	merge	\N	2026-11-29 05:43:30.279023+00	0	2026-11-29 05:43:33.190541+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/order_lines	5b293b57-0462-489f-9630-8a682ae750cd
1	shop	1	shop	carts	lockstep/shop/shop.carts/mirror/1	1	1	1	merge	\N	2026-11-29 05:43:30.278208+00	0	2026-11-29 05:43:33.23081+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/carts	5bf2f944-e724-436f-8325-86725e0f459b
4	shop	1	shop	orders	lockstep/shop/shop.orders/mirror/1	4	1	1	merge	\N	2026-11-29 05:43:30.279121+00	0	2026-11-29 05:43:33.242724+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/orders	32d780f8-8d6f-42fd-a517-b4b5f07ec511
2	shop	1	shop	customers	lockstep/shop/shop.customers/mirror/1	2	1	1	merge	\N	2026-11-29 05:43:30.27888+00	0	2026-11-29 05:43:33.247828+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/customers	75dbeda3-50ab-4ba8-b9ae-8aa508fdb9df
5	shop	1	shop	prices	lockstep/shop/shop.prices/mirror/1	5	1	1	merge	\N	2026-11-29 05:43:30.27921+00	0	2026-11-29 05:43:33.344533+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/prices	6675b7ad-a783-4557-8eb6-287a4971384b
7	shop	1	shop	stock	lockstep/shop/shop.stock/mirror/1	7	1	1	merge	\N	2026-11-29 05:43:30.279492+00	0	2026-11-29 05:43:33.378037+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/stock	e3c3b985-1dc9-4d31-add7-907064442506
8	shop	1	shop	visits	lockstep/shop/shop.visits/mirror/1	8	1	1	merge	\N	2026-11-29 05:43:30.279516+00	0	2026-11-29 05:43:33.426767+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/visits	9d623756-9706-4a78-b4c5-3253331ee6a0
6	shop	1	shop	readings	lockstep/shop/shop.readings/mirror/1	6	1	1	merge	\N	2026-11-29 05:43:30.279297+00	0	2026-11-29 05:43:36.0322+00	1	\N	the table was emptied or re-read from MySQL, so its earlier rows do not count; Spark is set for many rows	shop/shop/readings	dd32eabd-73a3-494f-873c-2ec8da85f207
10	shop	2	shop	carts	lockstep/shop/shop.carts/mirror/1	10	2	2	merge	\N	2026-11-29 05:43:37.230874+00	1	2026-11-29 05:43:37.399089+00	2	\N	no row of it changed; the rows are few, so they were put together in memory	shop/shop/carts	5bf2f944-e724-436f-8325-86725e0f459b
9	shop	2	shop	baskets	lockstep/shop/shop.baskets/mirror/1	9	2	2	merge	1	2026-11-29 05:43:37.230348+00	0	2026-11-29 05:43:37.512745+00	2	\N	its rows were those of shop.carts, copied from version 0 of shop/shop/carts; the rows are few, so they were put together in memory	shop/shop/baskets	6529bba2-df49-4643-83b6-acb6b8048faf
12	shop	2	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	12	2	2	merge	\N	2026-11-29 05:43:37.23111+00	1	2026-11-29 05:43:37.520644+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/order_lines	5b293b57-0462-489f-9630-8a682ae750cd
14	shop	2	shop	visits	lockstep/shop/shop.visits/mirror/1	14	2	2	merge	\N	2026-11-29 05:43:37.231293+00	1	2026-11-29 05:43:37.625795+00	2	\N	the table has no key, so copies of its rows are counted; the rows are few, so they were put together in memory	shop/shop/visits	9d623756-9706-4a78-b4c5-3253331ee6a0
13	shop	2	shop	orders	lockstep/shop/shop.orders/mirror/1	13	2	2	merge	\N	2026-11-29 05:43:37.231202+00	3	2026-11-29 05:43:38.665273+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/orders	32d780f8-8d6f-42fd-a517-b4b5f07ec511
11	shop	2	shop	customers	lockstep/shop/shop.customers/mirror/1	11	2	2	merge	\N	2026-11-29 05:43:37.231009+00	5	2026-11-29 05:43:42.054876+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/customers	75dbeda3-50ab-4ba8-b9ae-8aa508fdb9df
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
