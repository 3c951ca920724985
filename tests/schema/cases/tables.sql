-- case: created in every form
create table a (id int);
create table if not exists a (other int);
create table if not exists b (id int);
create table c like a;
create table d (like b);
create table if not exists c like b;
drop table a, b;
drop table if exists a, c;
drop table if exists nothing, nowhere restrict;

-- case: LIKE takes all but foreign keys
create table p (id int primary key);
create table a (
  id int unsigned not null auto_increment, b varchar(10) default 'x' collate utf8mb4_bin, c int as (p + 1) virtual,
  e enum('a','b'), p int, primary key (id), key (b(3)), unique u (c), foreign key (p) references p (id)
) charset utf8mb4 comment 'first' auto_increment 7;
alter table a modify e enum('a','b','c');
create table b like a;
alter table b drop c, add key (p, e);

-- case: SELECT gives the columns
create table a (id int primary key, b varchar(10) collate utf8mb4_bin, c decimal(5,2) not null, d datetime(3)) charset utf8mb4;
insert into a values (1, 'x', 2.5, '2024-01-01 00:00:00.123'), (2, 'y', 3, null);
create table b select * from a;
create table c (primary key (id)) as select id, b from a;
create table d (x int not null default 5, key (b)) charset latin1 select b, id + 1 n, 'text' t, 1.5 f, now() w from a;
create table if not exists b select 1 one;
-- mysql:
create table e as table b;
create table f ignore select id from a union all select 7;
alter table b add g int;

-- case: renamed
create table a (id int);
create table b (name varchar(5));
rename table a to c;
rename table b to t, c to b, t to c;
alter table b rename to d;
alter table d rename as e;
alter table e rename f;
alter table f rename = g, add x int;
rename tables g to a, c to b;

-- case: renamed into another database
create database {db}_2 character set latin1;
create table a (id int, n varchar(5));
rename table a to {db}_2.a;
alter table {db}_2.a rename {db}.b;
rename table b to {db}_2.b, {db}_2.b to a;
alter table a rename to {db}_2.z, add c varchar(5);

-- case: swapped across databases
create database {db}_2;
create table a (x int);
create table {db}_2.a (y int);
rename table a to {db}_2.t, {db}_2.a to {db}.a, {db}_2.t to {db}_2.a;

-- case: databases are dropped
create database {db}_2;
create table {db}_2.a (id int);
create table {db}_2.b (id int);
drop database {db}_2;
create database {db}_2 character set latin1;
create table {db}_2.a (n varchar(5));
drop schema if exists {db}_2;
drop database if exists {db}_3;
create database if not exists {db} character set latin1;
create table z (n varchar(5));

-- case: emptied
create table a (id int primary key);
insert into a values (1), (2);
truncate table a;
truncate a;
truncate table {db}.a;

-- case: engines
create table a (id int, b varchar(5)) engine=myisam;
create table b (id int) engine = memory;
create table c (id int not null, t text not null) engine csv;
-- mysql:
create table d (id int) engine 'archive';
-- mysql:
create table e (id int) engine=blackhole;
alter table a engine=innodb;
alter table b engine=MyISAM;
create table g1 (id int) engine=myisam;
create table g2 like g1;
create table g (id int) engine=merge union=(g1, g2) insert_method=last;
create table h (id int) engine=heap;

-- case: partitions
create table a (id int not null, d date, primary key (id)) partition by hash (id) partitions 4;
create table b (id int, d date) partition by range (year(d)) (partition p0 values less than (2020), partition p1 values less than (2030) comment = 'x', partition p2 values less than maxvalue);
create table c (id int, k int) partition by list columns (id, k) (partition x values in ((1, 2), (3, 4)), partition y values in ((5, 6)));
create table d (id int, d date) charset latin1 partition by linear key (id) partitions 2;
create table e (id int, d date) partition by range (id) subpartition by hash (to_days(d)) subpartitions 2 (partition p0 values less than (10), partition p1 values less than (20));
alter table a remove partitioning;
alter table a add e int partition by key (id) partitions 3;
alter table b add column z int, drop column id;
alter table d add partition partitions 2;
alter table d coalesce partition 1;
alter table a rebuild partition all;
alter table a analyze partition p0;
alter table e reorganize partition p1 into (partition p1 values less than (15), partition p2 values less than (20));

-- case: partitions that change rows
create table a (id int) partition by range (id) (partition p0 values less than (10), partition p1 values less than (20));
create table b (id int);
alter table a truncate partition p0;
alter table a exchange partition p1 with table b;
-- mysql:
alter table a exchange partition p1 with table b without validation;
alter table a add partition (partition p2 values less than (30), partition p3 values less than (40));
alter table a drop partition p0, p2;
alter table a drop partition p1;

-- case: temporary tables are not there
create temporary table t (id int);
create table a (id int);
alter table t add x int;
create temporary table a (other varchar(5));
alter table a add seen int;
drop temporary table a;
alter table a add n int;
drop table t;

-- case: things that are no tables
create table a (id int primary key);
create view v as select * from a;
create or replace view v as select id as x from a;
alter view v as select id from a;
create trigger t before insert on a for each row set new.id = new.id + 1;
create procedure p() begin create table never (id int); end;
create function f() returns int deterministic return 1;
create event e on schedule every 1 day disable do delete from a;
alter event e rename to e2;
drop view v;
drop trigger t;
drop procedure p;
drop function f;
drop event e2;
create user if not exists 'somebody_of_cases'@'localhost';
grant select on *.* to 'somebody_of_cases'@'localhost';
drop user 'somebody_of_cases'@'localhost';
analyze table a;
optimize table a;
repair table a;
check table a;
flush tables;

-- case: a procedure's statements are logged one by one
create procedure p() begin create table a (id int); alter table a add b int; drop table if exists x; end;
call p();
drop procedure p;

-- case: several tables at once
create table a (id int);
create table b (id int) engine=myisam;
create table c (id int);
drop table a, b, c;

-- case: the server makes a primary key [mysql]
set sql_generate_invisible_primary_key = 1;
create table a (x int, y varchar(5));
alter table a add z int;
create table b like a;
alter table b alter my_row_id set visible;
alter table a drop primary key, drop my_row_id, add primary key (z);

-- case: OR REPLACE [mariadb]
create table a (id int);
create or replace table a (other varchar(5) not null);
create or replace table b (id int);
create or replace table b like a;
create or replace table c select 1 one, 'x' two;
create or replace table c select 2 three;
create or replace database {db}_2;
create or replace table {db}_2.z (x int);
create or replace database {db}_2 character set latin1;
create or replace table {db}_2.z (n char(5));

-- case: sequences [mariadb]
create sequence s;
create sequence if not exists s start with 10;
create or replace sequence s increment by 5;
create table a (id int default next value for s, b int default nextval(s));
alter sequence s restart 5;
drop sequence s;
create table t (next_not_cached_value bigint(21) not null, minimum_value bigint(21) not null, maximum_value bigint(21) not null, start_value bigint(21) not null, increment bigint(21) not null, cache_size bigint(21) unsigned not null, cycle_option tinyint(1) unsigned not null, cycle_count bigint(21) not null) sequence=0;

-- case: system versioning [mariadb]
create table a (id int primary key, x int not null, unique (x)) with system versioning;
create table b (id int primary key, s timestamp(6) generated always as row start, e timestamp(6) generated always as row end, x int, unique (x), key (x), period for system_time (s, e)) with system versioning;
create table c (id int, x int with system versioning, y int without system versioning);
create table d (id int, x int not null, y varchar(5) without system versioning, unique (x)) with system versioning;
set system_versioning_alter_history = keep;
alter table a add y int;
alter table a drop primary key;
alter table a add primary key (id), add z int first;
alter table a drop system versioning;
alter table a add system versioning;
alter table b add z int;
alter table b drop key x;
alter table b drop system versioning, drop column s, drop column e;
alter table c drop system versioning;
alter table d add v int without system versioning, drop y;
create table e like a;

-- case: system versioning is added with its columns [mariadb]
create table a (id int primary key, u int, unique (u));
alter table a add s timestamp(6) as row start, add e timestamp(6) generated always as row end, add period for system_time (s, e), add system versioning;
set system_versioning_alter_history = keep;
alter table a add n int;
create table b (id int, s bigint unsigned generated always as row start invisible, e bigint unsigned generated always as row end invisible, period for system_time (s, e)) with system versioning;
create table c (id int) with system versioning partition by system_time interval 1 month (partition p0 history, partition pn current);

-- case: periods [mariadb]
create table a (id int, d1 date, d2 date, period for p (d1, d2));
alter table a drop period if exists for q;
alter table a drop period for p;
create table b (id int, d1 date, d2 date null);
alter table b add period for p (d1, d2);
create table c (id int, d1 date, d2 date, period for p (d1, d2), unique (id, p without overlaps));

-- case: IF EXISTS before a table [mariadb]
create table a (id int);
rename table if exists nothing to something, a to b;
alter table if exists nothing add x int;
drop table if exists nothing, b wait 5;
create table a (id int) engine=aria;
truncate table a nowait;
alter table a nowait add x int;

-- case: ALTER in two phases [mariadb]
set binlog_alter_two_phase = 1;
create table a (id int primary key, b int);
insert into a values (1, 1), (2, 1);
alter table a add c int;
alter table a add unique (b);
alter table a modify b bigint;

-- case: ALTER IGNORE [mariadb]
create table a (id int, b int);
insert into a values (1, 1), (2, 1);
alter ignore table a add unique (b);

-- case: options of engines [mariadb]
create table a (id int) engine=aria transactional=1 page_checksum=1;
create table b (id int primary key) engine=innodb encrypted=no page_compressed=0;
alter table b page_compressed=1 page_compression_level=9;
create table c (id int, v varchar(5)) engine=innodb row_format=compressed key_block_size=8;

-- case: tablespaces [mysql]
create table a (id int) tablespace innodb_file_per_table;
create table b (id int) tablespace = `innodb_system`;
alter table b tablespace innodb_file_per_table, add c int;
alter table a encryption = 'N', row_format = compact;
alter table a compression = 'zlib', autoextend_size = 4M;
alter table a discard tablespace;

-- case: attributes for engines [mysql]
create table a (id int primary key secondary_engine_attribute '{}', b varchar(5) column_format dynamic storage disk) secondary_engine_attribute = '{}';
alter table a add c int column_format fixed not secondary, add key (b) secondary_engine_attribute '{}';

-- case: MyISAM's options
create table a (id int, b char(5), key (id)) engine=myisam pack_keys=1 checksum=1 delay_key_write=1 row_format=fixed avg_row_length=100 min_rows=5;
alter table a pack_keys default, checksum 0;

-- case: a view with another name
create table a (id int primary key);
create view v as select id from a;
rename table v to w;
rename table a to b, w to a;
