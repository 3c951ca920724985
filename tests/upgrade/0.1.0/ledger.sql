-- migration 1: f428ae2b64203c70152b07accae66ca1146b9290f929d8dd81a9d1e27213679f
copy lockstep.batches from stdin;
1	shop	ordinary	acknowledged	\N	1	\N	\N	0	1	2026-11-30 03:04:13.337799+00	binlog	2	198	a8eb174e-ec6a-11f1-8335-02fc00000001:1-17	a8eb174e-ec6a-11f1-8335-02fc00000001	\N	binlog	2	198	a8eb174e-ec6a-11f1-8335-02fc00000001:1-17	a8eb174e-ec6a-11f1-8335-02fc00000001	\N	127	71	1348860734		1796007831	t	2026-11-30 03:03:46.271597+00	0	8	0	0	0	\N	\N	2026-11-30 03:04:14.679871+00	2026-11-30 03:04:35.873271+00	2026-11-30 03:04:35.87618+00	\N	\N
2	shop	ordinary	acknowledged	1	\N	\N	1	8	2	2026-11-30 03:04:36.331412+00	binlog	2	198	a8eb174e-ec6a-11f1-8335-02fc00000001:1-17	a8eb174e-ec6a-11f1-8335-02fc00000001	\N	binlog	2	5802	a8eb174e-ec6a-11f1-8335-02fc00000001:1-26	a8eb174e-ec6a-11f1-8335-02fc00000001	2026-11-30 03:04:36.029832+00	5771	31	275801245	a8eb174e-ec6a-11f1-8335-02fc00000001:26	1796007831	t	2026-11-30 03:03:46.30252+00	0	59	9	5604	0	\N	\N	2026-11-30 03:04:36.536988+00	2026-11-30 03:04:43.358434+00	2026-11-30 03:04:43.367598+00	\N	\N
3	shop	ordinary	acknowledged	2	\N	\N	2	67	4	2026-11-30 03:04:43.973269+00	binlog	2	5802	a8eb174e-ec6a-11f1-8335-02fc00000001:1-26	a8eb174e-ec6a-11f1-8335-02fc00000001	2026-11-30 03:04:36.029832+00	binlog	2	11797	a8eb174e-ec6a-11f1-8335-02fc00000001:1-30	a8eb174e-ec6a-11f1-8335-02fc00000001	2026-11-30 03:04:43.687021+00	11766	31	198615769	a8eb174e-ec6a-11f1-8335-02fc00000001:30	1796007831	t	2026-11-30 03:03:46.947948+00	0	100	4	5995	0	\N	\N	2026-11-30 03:04:44.077081+00	2026-11-30 03:04:44.159545+00	2026-11-30 03:04:44.162617+00	\N	\N
4	shop	ordinary	capturing	3	\N	\N	3	167	6	2026-11-30 03:04:44.667682+00	binlog	2	11797	a8eb174e-ec6a-11f1-8335-02fc00000001:1-30	a8eb174e-ec6a-11f1-8335-02fc00000001	2026-11-30 03:04:43.687021+00	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	\N	f	\N	\N	0	0	0	0	\N	\N	\N	\N	\N	\N	\N
\.
copy lockstep.capture_scopes from stdin;
shop	1	{shop.*}	{}
\.
copy lockstep.consumers from stdin;
1	shop	billing	\N	2026-11-30 03:04:35.997271+00	\N	\N	\N
\.
copy lockstep.database_versions from stdin;
1	shop	mysql	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{"tables": ["columns_priv", "component", "db", "default_roles", "engine_cost", "func", "general_log", "global_grants", "gtid_executed", "help_category", "help_keyword", "help_relation", "help_topic", "innodb_index_stats", "innodb_table_stats", "ndb_binlog_index", "password_history", "plugin", "procs_priv", "proxies_priv", "replication_asynchronous_connection_failover", "replication_asynchronous_connection_failover_managed", "replication_group_configuration_version", "replication_group_member_actions", "role_edges", "server_cost", "servers", "slave_master_info", "slave_relay_log_info", "slave_worker_info", "slow_log", "tables_priv", "time_zone", "time_zone_leap_second", "time_zone_name", "time_zone_transition", "time_zone_transition_type", "user"]}	\N
2	shop	shop	1	binlog	2	198	utf8mb4	utf8mb4_0900_ai_ci	{}	\N
\.
copy lockstep.decisions from stdin;
1	shop	1	start	configured-snapshot	start = 'snapshot': tables are read from the source, and the log from its end binlog.000002:198 on	{"set": "not kept", "head": "binlog.000002:198", "place": "binlog.000002:198", "anchor": "not read", "cursor": null, "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 198}], "read_at": "2026-11-30T03:04:13.266204+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "a8eb174e-ec6a-11f1-8335-02fc00000001", "gtid_executed": "a8eb174e-ec6a-11f1-8335-02fc00000001:1-17", "previous_batch": null}	lockstep	2026-11-30 03:04:13.321546+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
2	shop	2	start	resume-same-server	batch 1 ended at binlog.000002:198, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:5802", "place": "binlog.000002:198", "anchor": "the same", "cursor": "binlog.000002:198", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 5802}], "read_at": "2026-11-30T03:04:36.302520+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "a8eb174e-ec6a-11f1-8335-02fc00000001", "gtid_executed": "a8eb174e-ec6a-11f1-8335-02fc00000001:1-26", "previous_batch": 1}	lockstep	2026-11-30 03:04:36.322859+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
3	shop	4	start	resume-same-server	batch 2 ended at binlog.000002:5802, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:11797", "place": "binlog.000002:5802", "anchor": "the same", "cursor": "binlog.000002:5802", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-30T03:04:43.947948+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "a8eb174e-ec6a-11f1-8335-02fc00000001", "gtid_executed": "a8eb174e-ec6a-11f1-8335-02fc00000001:1-30", "previous_batch": 2}	lockstep	2026-11-30 03:04:43.968509+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
4	shop	6	start	resume-same-server	batch 3 ended at binlog.000002:11797, and the log there is unchanged	{"set": "not kept", "head": "binlog.000002:11797", "place": "binlog.000002:11797", "anchor": "the same", "cursor": "binlog.000002:11797", "tables": {"exclude": [], "include": ["shop.*"]}, "binlogs": [{"file": "binlog.000001", "size": 115273}, {"file": "binlog.000002", "size": 11797}], "read_at": "2026-11-30T03:04:44.649860+00:00", "version": "9.7.4-2", "gtid_mode": "ON", "server_id": 21, "gtid_purged": "", "server_uuid": "a8eb174e-ec6a-11f1-8335-02fc00000001", "gtid_executed": "a8eb174e-ec6a-11f1-8335-02fc00000001:1-30", "previous_batch": 3}	lockstep	2026-11-30 03:04:44.662175+00	\N	\N	\N	{}	\N		\N	\N	\N	\N
\.
copy lockstep.deliveries from stdin;
1	shop	1	1	2	acknowledged	2026-11-30 03:04:44.276244+00	2026-11-30 03:04:44.287568+00
\.
copy lockstep.leases from stdin;
shop	1	vm, process 2851 (run)	e5757f93-efe0-4645-8728-2d2d041b901c	2881	2026-11-30 03:04:13.02396+00	f	2026-11-30 03:04:35.88334+00
shop	2	vm, process 4594 (run)	e25c11c9-e0df-4596-a1a8-f0d48c00fdcd	4600	2026-11-30 03:04:36.208817+00	f	2026-11-30 03:04:43.384211+00
shop	3	vm, process 5113 (pause)	\N	5118	2026-11-30 03:04:43.612497+00	f	2026-11-30 03:04:43.628216+00
shop	4	vm, process 5127 (run)	ddb53c66-3353-4132-a8d8-7bb1bd753911	5136	2026-11-30 03:04:43.811447+00	f	2026-11-30 03:04:44.168584+00
shop	5	vm, process 5175 (reload)	\N	5180	2026-11-30 03:04:44.400284+00	f	2026-11-30 03:04:44.436435+00
shop	6	vm, process 5183 (run)	89ca2f17-ce37-4c34-a872-d01abb3a98fe	5189	2026-11-30 03:04:44.584354+00	f	\N
\.
copy lockstep.ledger from stdin;
603e3d9a-19b9-4f6a-9a4b-7a72e10b64e5	2026-11-30 03:03:50.382033+00	t
\.
copy lockstep.load_chunks from stdin;
1	0	\N	\N	binlog	2	198	binlog	2	198	2	0.12560538899560925	2026-11-30 03:04:13.570041+00	2026-11-30 03:04:13.698167+00
3	0	\N	\N	binlog	2	198	binlog	2	198	300	0.1114126200118335	2026-11-30 03:04:13.703499+00	2026-11-30 03:04:13.81674+00
2	0	\N	\N	binlog	2	198	binlog	2	198	40	0.15001112000027206	2026-11-30 03:04:13.688863+00	2026-11-30 03:04:13.841349+00
5	0	\N	\N	binlog	2	198	binlog	2	198	50	0.01683210500050336	2026-11-30 03:04:13.843825+00	2026-11-30 03:04:13.863869+00
4	0	\N	\N	binlog	2	198	binlog	2	198	300	0.022520860002259724	2026-11-30 03:04:13.840133+00	2026-11-30 03:04:13.86792+00
6	0	\N	{"columns": ["id"], "literals": ["10000"]}	binlog	2	198	binlog	2	198	10000	0.14784179400885478	2026-11-30 03:04:13.866704+00	2026-11-30 03:04:14.023129+00
7	0	\N	\N	binlog	2	198	binlog	2	198	50	0.1555738070019288	2026-11-30 03:04:13.870994+00	2026-11-30 03:04:14.031507+00
6	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	198	binlog	2	198	2000	0.1134842299943557	2026-11-30 03:04:14.03656+00	2026-11-30 03:04:14.158251+00
8	0	\N	\N	binlog	2	198	binlog	2	198	3	0.11480547100654803	2026-11-30 03:04:14.030964+00	2026-11-30 03:04:14.158822+00
9	0	\N	{"columns": ["id"], "literals": ["10000"]}	\N	\N	\N	\N	\N	\N	\N	\N	2026-11-30 03:04:44.720479+00	\N
9	1	{"columns": ["id"], "literals": ["10000"]}	\N	binlog	2	11797	binlog	2	11797	2000	0.047746013005962595	2026-11-30 03:04:44.732782+00	2026-11-30 03:04:44.786022+00
\.
copy lockstep.load_files from stdin;
1	0	0	load-000000000001-000000-96e3a1c3-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
3	0	0	load-000000000003-000000-96e3a1c3-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
2	0	0	load-000000000002-000000-96e3a1c3-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
5	0	0	load-000000000005-000000-96e3a1c3-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
4	0	0	load-000000000004-000000-96e3a1c3-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
6	0	0	load-000000000006-000000-96e3a1c3-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
7	0	0	load-000000000007-000000-96e3a1c3-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
6	1	0	load-000000000006-000001-96e3a1c3-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
8	0	0	load-000000000008-000000-96e3a1c3-00000.parquet	3	712	227ed157eaacc41d9c717835fe52967db7afb53656d72cdffceebee9eded714c
9	1	0	load-000000000009-000001-0382315a-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
\.
copy lockstep.loads from stdin;
1	shop	1	shop	carts	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.350615+00	{"name": {"database": "shop", "name": "carts"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	2	\N	f	1	1	2	1	\N
2	shop	1	shop	customers	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.352781+00	{"name": {"database": "shop", "name": "customers"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "name", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "email", "type": "varchar", "length": 80, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "phone", "type": "varchar", "length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	40	7636ffe95a3d76aa	f	1	2	2	1	\N
3	shop	1	shop	order_lines	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.356316+00	{"name": {"database": "shop", "name": "order_lines"}, "columns": [{"name": "order_id", "type": "int", "nullable": false}, {"name": "line", "type": "tinyint", "nullable": false}, {"name": "sku", "type": "varchar", "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int", "unsigned": true}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "order_id"}, {"column": "line"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	300	\N	f	1	3	2	1	\N
4	shop	1	shop	orders	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.358259+00	{"name": {"database": "shop", "name": "orders"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "customer", "type": "int", "nullable": false}, {"name": "amount", "type": "decimal", "precision": 12, "scale": 2}, {"name": "state", "type": "enum", "nullable": false, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", "members": ["open", "paid", "sent"]}, {"name": "placed_at", "type": "datetime", "length": 3}, {"name": "note", "type": "json"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	300	\N	f	1	4	2	1	\N
5	shop	1	shop	prices	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.364081+00	{"name": {"database": "shop", "name": "prices"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "cents", "type": "bigint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	50	\N	f	1	5	2	1	\N
6	shop	1	shop	readings	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.375487+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	12000	\N	f	1	6	2	1	\N
7	shop	1	shop	stock	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.377777+00	{"name": {"database": "shop", "name": "stock"}, "columns": [{"name": "sku", "type": "varchar", "nullable": false, "length": 12, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "place", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "count", "type": "int"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "sku"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	50	\N	f	1	7	2	1	\N
8	shop	1	shop	visits	lockstep	rows are older than what is read of the log	2026-11-30 03:04:13.378566+00	{"name": {"database": "shop", "name": "visits"}, "columns": [{"name": "page", "type": "varchar", "length": 40, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}, {"name": "at", "type": "timestamp", "length": 6, "default": ["expression", "CURRENT_TIMESTAMP(6)"]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	198	3	\N	f	1	8	2	1	\N
9	shop	5	shop	readings	root	restored by hand	2026-11-30 03:04:44.430761+00	{"name": {"database": "shop", "name": "readings"}, "columns": [{"name": "id", "type": "int", "nullable": false}, {"name": "value", "type": "smallint"}], "keys": [{"name": "PRIMARY", "kind": "primary", "parts": [{"column": "id"}]}], "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}	a8eb174e-ec6a-11f1-8335-02fc00000001	binlog	2	11797	11952	\N	f	\N	\N	\N	\N	\N
\.
copy lockstep.schema_statements from stdin;
1	shop	2	binlog	2	3231	binlog	2	3456	a8eb174e-ec6a-11f1-8335-02fc00000001:19	2026-11-30 03:04:36.004836+00	"shop"	"alter table customers add column vip bool not null default '***'"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T03:04:36+00:00", "redacted": true}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone), (id, name, email, phone, vip)"}]
2	shop	2	binlog	2	4168	binlog	2	4382	a8eb174e-ec6a-11f1-8335-02fc00000001:21	2026-11-30 03:04:36.009119+00	"shop"	"alter table customers rename column email to mail"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T03:04:36+00:00"}	followed	[{"table": {"database": "shop", "name": "customers"}, "words": "columns: (id, name, email, phone, vip), (id, name, mail, phone, vip)"}]
3	shop	2	binlog	2	4382	binlog	2	4605	a8eb174e-ec6a-11f1-8335-02fc00000001:22	2026-11-30 03:04:36.020015+00	"shop"	"alter table orders modify customer bigint not null"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "SYSTEM", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T03:04:36+00:00"}	followed	[{"table": {"database": "shop", "name": "orders"}, "words": "column customer type: int, bigint"}]
4	shop	2	binlog	2	5304	binlog	2	5496	a8eb174e-ec6a-11f1-8335-02fc00000001:25	2026-11-30 03:04:36.027825+00	"shop"	"rename table carts to baskets"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T03:04:36+00:00"}	followed	[{"table": {"database": "shop", "name": "carts"}, "words": "is now called shop.baskets"}, {"table": {"database": "shop", "name": "baskets"}, "words": "was called shop.carts"}]
5	shop	3	binlog	2	8378	binlog	2	8585	a8eb174e-ec6a-11f1-8335-02fc00000001:28	2026-11-30 03:04:43.677878+00	"shop"	"alter table stock modify place varchar(12)"	{"facts": {"version": 90704, "flavour": "mysql", "lower_case_table_names": 0, "default_engine": "InnoDB", "explicit_timestamps": true}, "database": "shop", "sql_mode": 1168113696, "client_charset": "utf8mb4", "connection_collation": "utf8mb4_0900_ai_ci", "server_collation": "utf8mb4_0900_ai_ci", "utf8mb4_collation": "utf8mb4_0900_ai_ci", "charset_collations": {}, "explicit_timestamps": true, "time_zone": "", "microseconds": 0, "alter_phase": null, "database_collation": null, "thread_specific": false, "error": 0, "ddl_xid": true, "finds_view": false, "executed_at": "2026-11-30T03:04:43+00:00"}	followed	[{"table": {"database": "shop", "name": "stock"}, "words": "column place length: 40, 12"}]
\.
copy lockstep.searched_folders from stdin;
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
shop	shop/shop/baskets	0
shop	shop/shop/order_lines	1
shop	shop/shop/carts	1
shop	shop/shop/visits	1
shop	shop/shop/orders	3
shop	shop/shop/customers	5
shop	shop/_changes/shop/stock	1
shop	shop/_ddl	1
shop	shop/_transactions	1
\.
copy lockstep.segment_files from stdin;
1	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	3555	f031321840d6f4f73cb5227e7bd08d7061264acf3fd16ba46a3329b73b3e6c0b
2	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	3907	f0c104c7cc5106d6d8059b79a749d47d5ea9f1983321112fadc0298f704fdd8a
3	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	3938	06c71256db770ab3e24cb9e920a6839286237d8cee197676a94e3e69bb96831c
4	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	4322	a26e4de9d9d968b913a80391c0488eb1a7a47f2baa39d34e81101da7498780e2
5	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	3569	d3b9089bc5545b8735ef5043494389768d5597b68256228446abc9eb51d28e6b
6	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	3585	0c505edfb07c55d71777bd1c90d24e983eead00232962f19c13d5b3660036bc6
7	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	3737	44caa448ffb3455c733b7769c5a545f2aeee941c599adb5e5d13106570498b3b
8	0	batch-000000000001-v2-96e3a1c3-00000.parquet	1	3588	791c18327de16e6f88fe538ad5b52ddc74d65cf1774df737e3c9bc662eec3bfb
9	0	batch-000000000002-v2-f360ec89-00000.parquet	40	5808	018b1f9828e7c8463bbc185da220a06448f74f9dd9ff8d0a5bb59a8a2ba55fc4
10	0	batch-000000000002-v2-f360ec89-00000.parquet	3	4536	85c38b6ca9dd06d38e19fe1ee6bbd01dade116d021b4a95a3c7fd90cff8b70d0
11	0	batch-000000000002-v2-f360ec89-00000.parquet	3	4130	e8d52585dfb6179c363240abd84b55f8418e00b80a4a49645b283b0207ab326d
12	0	batch-000000000002-v3-f360ec89-00000.parquet	10	4914	39963848a61c25650c9240e9b5cacaeccd5df8ce2935024b56080fc964f280ba
13	0	batch-000000000002-v3-f360ec89-00000.parquet	1	4990	65bd8f4c9c1a526e13c1fc9b00ec1d407f99670d5270a511468688a7a82051d3
14	0	batch-000000000002-v1-f360ec89-00000.parquet	2	3996	ea244281856fcb6e8b3e3d5d2cd2f54b8c31750e33fedc013e96fb2165dab585
15	0	batch-000000000003-v2-b8f5bcdb-00000.parquet	100	4924	c07440919b10a7c43d9e535453a866250bdf66411cf2a55a2e7a1ec04175b013
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
shop	2	0	a8eb174e-ec6a-11f1-8335-02fc00000001	a8eb174e-ec6a-11f1-8335-02fc00000001:26	1796007876029832	
shop	3	0	a8eb174e-ec6a-11f1-8335-02fc00000001	a8eb174e-ec6a-11f1-8335-02fc00000001:30	1796007883687021	
\.
copy lockstep.snapshot_files from stdin;
1	0	load-000000000001-000000-96e3a1c3-00000.parquet	2	648	03c0e3bf30d08ed32096b1c8e09fb6ec1c7c1d7511e5d4b39d1ccd52e348bd44
2	0	load-000000000002-000000-96e3a1c3-00000.parquet	40	1425	fd8b8b9fbf757cd33230ef07426fcfa13c0d567f88975c8988f60b5a41c17172
3	0	load-000000000003-000000-96e3a1c3-00000.parquet	300	1447	d61a3192204fef44de66a6e0cf6cb6a57adbb26735d20a2ffbf97484a86c6a6e
4	0	load-000000000004-000000-96e3a1c3-00000.parquet	300	3140	0c6f2e9f583abb6e7d23a52bc529c1a04e77a0551d27ca32744290ba79728d9c
5	0	load-000000000005-000000-96e3a1c3-00000.parquet	50	833	f1318e50a41e55cc6635e71c223adebcae94a351d5b747ff0df982a4422565be
6	0	load-000000000006-000000-96e3a1c3-00000.parquet	10000	808	0c04f60927dc955c5990aaf63d60ab08d5ec6e20b11b02992d0ffee6507a954e
6	1	load-000000000006-000001-96e3a1c3-00000.parquet	2000	798	974887779029c9506f27bacaeb92ec1cf3fcb8f3c6a1a53cd6bb6cce8ab66862
7	0	load-000000000007-000000-96e3a1c3-00000.parquet	50	1163	81964748ecc5d14285ed4aa15eb79408c7ec9f353fb2d9d3a48dcf17db49a1b1
8	0	load-000000000008-000000-96e3a1c3-00000.parquet	3	712	227ed157eaacc41d9c717835fe52967db7afb53656d72cdffceebee9eded714c
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
shop	2	_ddl	0	batch-000000000002-v1-f360ec89-00000.parquet	4	6308	78e499e978f1057d38f8e5f4423528a4a3d06108c931bb079d96510b2dbd6bf9
shop	2	_transactions	0	batch-000000000002-v1-f360ec89-00000.parquet	9	3774	9a6962431d34e59ae99f6980b1f78e0c987b0a9434c58952c2587e49f22f2677
shop	3	_ddl	0	batch-000000000003-v1-b8f5bcdb-00000.parquet	1	6180	6816a1bde015de13caf52138befc93910273b75b4ed225d74861bfa1971f21ce
shop	3	_transactions	0	batch-000000000003-v1-b8f5bcdb-00000.parquet	4	3708	c11ca41f9a01cb5b4d5bd9655b289b8f9134d4dc859a9d19cc7cd0a71746f8aa
\.
copy lockstep.sources from stdin;
shop	1	6	2026-11-30 03:04:12.962554+00	2026-11-30 03:04:44.583706+00	\N
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
1	shop	shop	carts	followed	following	1	1	{"need": null, "mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "changelog_generation": 1}	2026-11-30 03:04:14.599829+00
2	shop	shop	customers	followed	following	1	1	{"need": null, "mirror": "shop/shop/customers", "changelog": "shop/_changes/shop/customers", "changelog_generation": 1}	2026-11-30 03:04:14.600229+00
3	shop	shop	order_lines	followed	following	1	1	{"need": null, "mirror": "shop/shop/order_lines", "changelog": "shop/_changes/shop/order_lines", "changelog_generation": 1}	2026-11-30 03:04:14.600304+00
4	shop	shop	orders	followed	following	1	1	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders", "changelog_generation": 1}	2026-11-30 03:04:14.600341+00
5	shop	shop	prices	followed	following	1	1	{"need": null, "mirror": "shop/shop/prices", "changelog": "shop/_changes/shop/prices", "changelog_generation": 1}	2026-11-30 03:04:14.600584+00
6	shop	shop	readings	followed	following	1	1	{"need": null, "mirror": "shop/shop/readings", "changelog": "shop/_changes/shop/readings", "changelog_generation": 1}	2026-11-30 03:04:14.600638+00
7	shop	shop	stock	followed	following	1	1	{"need": null, "mirror": "shop/shop/stock", "changelog": "shop/_changes/shop/stock", "changelog_generation": 1}	2026-11-30 03:04:14.600676+00
8	shop	shop	visits	followed	following	1	1	{"need": null, "mirror": "shop/shop/visits", "changelog": "shop/_changes/shop/visits", "changelog_generation": 1}	2026-11-30 03:04:14.600684+00
9	shop	shop	customers	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:27.067035+00
10	shop	shop	orders	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:27.07599+00
11	shop	shop	order_lines	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:27.099753+00
12	shop	shop	carts	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:27.112722+00
13	shop	shop	stock	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:27.31791+00
14	shop	shop	visits	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:27.333534+00
15	shop	shop	prices	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:27.361761+00
16	shop	shop	readings	mirror written	following	\N	1	{"version": 2}	2026-11-30 03:04:35.867402+00
17	shop	shop	orders	followed	following	2	2	{"need": null, "mirror": "shop/shop/orders", "changelog": "shop/_changes/shop/orders@2", "changelog_generation": 2}	2026-11-30 03:04:36.518394+00
18	shop	shop	carts	dropped	dropped	2	2	{"mirror": "shop/shop/carts", "changelog": "shop/_changes/shop/carts", "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802, "changelog_generation": 1}	2026-11-30 03:04:36.518586+00
19	shop	shop	baskets	followed	following	2	2	{"need": null, "mirror": "shop/shop/baskets", "changelog": "shop/_changes/shop/baskets", "changelog_generation": 1}	2026-11-30 03:04:36.518636+00
20	shop	shop	baskets	mirror written	following	\N	2	{"version": 1}	2026-11-30 03:04:37.326995+00
21	shop	shop	orders	mirror written	following	\N	2	{"version": 3}	2026-11-30 03:04:37.980204+00
22	shop	shop	customers	mirror written	following	\N	2	{"version": 4}	2026-11-30 03:04:43.348749+00
23	shop	shop	prices	stopped	stopped	\N	3	{"by": "person", "hint": "`lockstep resume shop.prices` brings it back", "need": null, "reason": "root paused it: the auditors asked for it", "position": null, "stopped_base": "binlog", "stopped_batch": 2, "stopped_number": 2, "stopped_offset": 5802}	2026-11-30 03:04:43.617126+00
24	shop	shop	stock	stopped	stopped	3	4	{"by": "system", "hint": "`lockstep resume shop.stock --reason …` brings it back", "need": null, "reason": "stored values of place may have changed: varchar(40) became varchar(12), which is shorter", "position": "binlog.000002:8378", "stopped_base": "binlog", "stopped_batch": 3, "stopped_number": 2, "stopped_offset": 8378}	2026-11-30 03:04:44.066474+00
\.
copy lockstep.table_orders from stdin;
1	shop	3	shop	prices	pause	root	the auditors asked for it	2026-11-30 03:04:43.614791+00	\N	\N	\N	\N
\.
copy lockstep.table_states from stdin;
shop	shop	order_lines	following	1	shop/shop/order_lines	shop/_changes/shop/order_lines	\N	\N	\N	\N	\N	2	1	1	\N	\N	\N	\N	\N	\N	11
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
shop	1	shop	carts	shop/shop/carts	0	ba675598-d93c-490a-8849-1c30b3c4011d	\N	\N
shop	1	shop	customers	shop/shop/customers	0	f9f1852a-9a02-4835-bebe-b82fb0e2ee88	\N	\N
shop	1	shop	order_lines	shop/shop/order_lines	0	db469bf9-421a-4c84-9f42-9b308d094152	\N	\N
shop	1	shop	orders	shop/shop/orders	0	c7000e33-197d-4ef3-bd33-bf5dad001ea8	\N	\N
shop	1	shop	prices	shop/shop/prices	0	35bd6291-b654-40e3-a35a-903b11bb40e9	\N	\N
shop	1	shop	readings	shop/shop/readings	0	743d3a7a-7470-433b-8373-d2524cbf3e8d	\N	\N
shop	1	shop	stock	shop/shop/stock	0	39aec85f-a6e9-40aa-8d94-732f5b22227a	\N	\N
shop	1	shop	visits	shop/shop/visits	0	b677177e-8553-494b-8e48-1eb1cc0ae7d1	\N	\N
shop	2	shop	baskets	shop/shop/baskets	0	363afbbf-1ba3-4662-9b5d-c5fbaa69aebb	\N	\N
shop	2	shop	carts	\N	\N	\N	dropped	\N
shop	2	shop	customers	shop/shop/customers	5	f9f1852a-9a02-4835-bebe-b82fb0e2ee88	\N	\N
shop	2	shop	order_lines	shop/shop/order_lines	1	db469bf9-421a-4c84-9f42-9b308d094152	\N	\N
shop	2	shop	orders	shop/shop/orders	3	c7000e33-197d-4ef3-bd33-bf5dad001ea8	\N	\N
shop	2	shop	visits	shop/shop/visits	1	b677177e-8553-494b-8e48-1eb1cc0ae7d1	\N	\N
shop	3	shop	prices	\N	\N	\N	stopped	\N
shop	3	shop	stock	\N	\N	\N	stopped	\N
\.
copy lockstep.writes from stdin;
2	shop	1	shop	customers	lockstep/shop/shop.customers/mirror/1	2	1	1	merge	\N	f	2026-11-30 03:04:14.912708+00	0	2026-11-30 03:04:27.064852+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/customers	f9f1852a-9a02-4835-bebe-b82fb0e2ee88
4	shop	1	shop	orders	lockstep/shop/shop.orders/mirror/1	4	1	1	merge	\N	f	2026-11-30 03:04:14.913029+00	0	2026-11-30 03:04:27.069477+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/orders	c7000e33-197d-4ef3-bd33-bf5dad001ea8
3	shop	1	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	3	1	1	merge	\N	f	2026-11-30 03:04:14.912915+00	0	2026-11-30 03:04:27.093525+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/order_lines	db469bf9-421a-4c84-9f42-9b308d094152
1	shop	1	shop	carts	lockstep/shop/shop.carts/mirror/1	1	1	1	merge	\N	f	2026-11-30 03:04:14.911694+00	0	2026-11-30 03:04:27.111206+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/carts	ba675598-d93c-490a-8849-1c30b3c4011d
7	shop	1	shop	stock	lockstep/shop/shop.stock/mirror/1	7	1	1	merge	\N	f	2026-11-30 03:04:14.913431+00	0	2026-11-30 03:04:27.316973+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/stock	39aec85f-a6e9-40aa-8d94-732f5b22227a
8	shop	1	shop	visits	lockstep/shop/shop.visits/mirror/1	8	1	1	merge	\N	f	2026-11-30 03:04:14.913461+00	0	2026-11-30 03:04:27.332622+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/visits	b677177e-8553-494b-8e48-1eb1cc0ae7d1
5	shop	1	shop	prices	lockstep/shop/shop.prices/mirror/1	5	1	1	merge	\N	f	2026-11-30 03:04:14.913125+00	0	2026-11-30 03:04:27.360458+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; the rows are few, so they were put together in memory	shop/shop/prices	35bd6291-b654-40e3-a35a-903b11bb40e9
6	shop	1	shop	readings	lockstep/shop/shop.readings/mirror/1	6	1	1	merge	\N	f	2026-11-30 03:04:14.913218+00	0	2026-11-30 03:04:35.866686+00	1	\N	the table was created, emptied or read from MySQL, so earlier rows do not count; Spark is set for many rows	shop/shop/readings	743d3a7a-7470-433b-8373-d2524cbf3e8d
9	shop	2	shop	baskets	lockstep/shop/shop.baskets/mirror/1	9	2	2	merge	1	f	2026-11-30 03:04:36.732251+00	0	2026-11-30 03:04:37.325004+00	2	\N	its rows were those of shop.carts, copied from version 0 of shop/shop/carts; the rows are few, so they were put together in memory	shop/shop/baskets	363afbbf-1ba3-4662-9b5d-c5fbaa69aebb
12	shop	2	shop	order_lines	lockstep/shop/shop.order_lines/mirror/1	12	2	2	merge	\N	f	2026-11-30 03:04:36.733191+00	1	2026-11-30 03:04:37.370116+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/order_lines	db469bf9-421a-4c84-9f42-9b308d094152
10	shop	2	shop	carts	lockstep/shop/shop.carts/mirror/1	10	2	2	merge	\N	f	2026-11-30 03:04:36.732937+00	1	2026-11-30 03:04:37.465923+00	2	\N	no row of the table changed; the rows are few, so they were put together in memory	shop/shop/carts	ba675598-d93c-490a-8849-1c30b3c4011d
14	shop	2	shop	visits	lockstep/shop/shop.visits/mirror/1	14	2	2	merge	\N	f	2026-11-30 03:04:36.733385+00	1	2026-11-30 03:04:37.56502+00	2	\N	the table has no key, so copies of its rows are counted; the rows are few, so they were put together in memory	shop/shop/visits	b677177e-8553-494b-8e48-1eb1cc0ae7d1
13	shop	2	shop	orders	lockstep/shop/shop.orders/mirror/1	13	2	2	merge	\N	f	2026-11-30 03:04:36.733289+00	3	2026-11-30 03:04:37.979274+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/orders	c7000e33-197d-4ef3-bd33-bf5dad001ea8
11	shop	2	shop	customers	lockstep/shop/shop.customers/mirror/1	11	2	2	merge	\N	f	2026-11-30 03:04:36.733085+00	5	2026-11-30 03:04:43.347914+00	2	\N	the log updates or deletes rows; the rows are few, so they were put together in memory	shop/shop/customers	f9f1852a-9a02-4835-bebe-b82fb0e2ee88
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
