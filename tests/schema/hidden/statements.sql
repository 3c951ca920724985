-- case: SET STATEMENT before TRUNCATE [mariadb]
set statement max_statement_time=100 for truncate t;
insert into t values (5, 6, 7, 'x');
set statement lock_wait_timeout=9 for set statement max_statement_time=(select 100) for truncate table u;

-- case: SET STATEMENT before ALTER TABLE [mariadb]
set statement foreign_key_checks=0, unique_checks := 0 for alter table t modify b int after id, change a a2 int first;
set statement `max_statement_time`=5 for create index i on t (b);
SET /* x */ STATEMENT max_statement_time=1+(2*3) FOR ALTER TABLE u ADD d int AFTER id, DROP a;
/*!100000 set statement max_statement_time=5 for */ alter table u modify c varchar(20) first;

-- case: SET STATEMENT before RENAME TABLE [mariadb]
set statement lock_wait_timeout=9 for rename table t to x, u to t, x to u;

-- case: SET STATEMENT before CREATE and DROP [mariadb]
set statement max_statement_time=100 for drop table u;
set statement max_statement_time=100 for create table u (c varchar(20), id int primary key);
set statement max_statement_time=100 for create table n1 like t;
set statement max_statement_time=100 for create or replace table n2 as select * from t;
set statement max_statement_time=100 for create view v as select 1 as truncate_t;
set statement max_statement_time=100 for create sequence s;
set statement max_statement_time=100 for analyze table t;
set statement max_statement_time=100 for grant select on t to current_user;

-- case: SET STATEMENT whose variables the event tells [mariadb]
set statement explicit_defaults_for_timestamp=0 for create table n1 (id int primary key, s timestamp, r timestamp null);
set statement collation_server='latin1_bin', character_set_server=latin1 for create table n2 (id int primary key, c text);
set statement time_zone='+05:00', timestamp=1000000000.25 for alter table t add moment datetime(6) not null default now(6);
set statement time_zone='-07:00' for alter table u add moment timestamp not null default '2020-01-01 00:00:00';
set statement sql_mode='NO_ENGINE_SUBSTITUTION' for truncate t;
set statement sql_mode="ANSI" for rename table u to u2;
set statement default_storage_engine=Aria for create table n4 (id int primary key);
set statement default_storage_engine='MyISAM' for create table n5 (id int primary key) engine=InnoDB;

-- case: aside: SET STATEMENT with sql_mode and a new column [mariadb]
set statement sql_mode='NO_BACKSLASH_ESCAPES' for alter table t add e enum('a\\b', 'c') after id;
set statement sql_mode='ANSI_QUOTES' for alter table u add e varchar(9) default "a" after id;

-- case: aside: SET STATEMENT with variables that may matter [mariadb]
set statement character_set_collations='utf8mb4=utf8mb4_bin' for alter table u add d varchar(9) character set utf8mb4;
set statement sql_if_exists=1 for alter table t drop a, drop b;
set statement default_storage_engine=concat('My', 'ISAM') for create table n (id int primary key);

-- case: statements inside others [mariadb]
analyze update t set a = a + 1;
analyze format=json delete from t where id = 2;
execute immediate 'truncate u';
begin not atomic alter table u modify c varchar(20) first; insert into u (id) values (7); end;

-- case: statements that are prepared
prepare p from 'alter table t modify c varchar(20) first';
execute p;
deallocate prepare p;

-- case: statements that code holds
create procedure p() begin truncate t; alter table u modify c varchar(20) first; insert into t values (8, 9, 10, 'x'); end;
create trigger r before insert on u for each row set new.a = 42;
create event e on schedule every 1 year do truncate u;
alter event e rename to e2;
call p();
insert into u (id, a) values (99, 1);
drop event e2;
drop trigger r;
drop procedure p;

-- case: code of other kinds [mariadb]
create or replace procedure p() truncate t;
create or replace definer=current_user function f() returns int deterministic return 1;
create aggregate function g(x int) returns int begin declare continue handler for not found return 1; loop fetch group next row; end loop; end;
create or replace trigger r before insert on u for each row set new.a = 1;
create or replace event e on schedule every 1 year do truncate u;
drop function g;

-- case: sequences in a table's place [mariadb]
create sequence s;
create sequence if not exists t;
create or replace sequence u;
alter sequence s restart 50;
rename table s to s2;
drop sequence if exists t;
create or replace sequence s2;
drop sequence s2;
create or replace temporary sequence t;
drop temporary sequence t;

-- case: tables in a table's place [mariadb]
create or replace table n like t;
create or replace table n like t;
create or replace table u (c varchar(20), id int primary key);
create or replace table n2 as select * from t;

-- case: views in a table's place
create view v as select 1 as a;
create or replace algorithm=undefined definer=current_user sql security definer view v as select 2 as a;
create or replace view t as select 1 as a;
alter view t as select 1 as a;
alter definer=`root`@`localhost` view v as select 3 as a;
drop view if exists t;
rename table v to v2;
drop view v2;

-- case: aside: lists of partitions that leave values out
alter table t partition by list (id) (partition p values in (1, 2), partition q values in (101, 102));
alter table t reorganize partition p into (partition p values in (1));

-- case: partitions that keep their rows
alter table t partition by list (id) (partition p values in (1, 2, 101), partition q values in (102));
alter table t optimize partition p;
alter table t rebuild partition p, q;
alter table t analyze partition all;
alter table t check partition all;
alter table t add partition (partition r values in (3));
alter table u partition by range (id) (partition p values less than (50), partition q values less than (200));
alter table u reorganize partition q into (partition q values less than (100), partition r values less than maxvalue);
alter table u reorganize partition p, q into (partition p values less than (100));
alter table u remove partitioning;

-- case: aside: a table becomes a sequence [mariadb]
create table q (next_not_cached_value bigint(21) not null, minimum_value bigint(21) not null, maximum_value bigint(21) not null, start_value bigint(21) not null, increment bigint(21) not null, cache_size bigint(21) unsigned not null, cycle_option tinyint(1) unsigned not null, cycle_count bigint(21) not null);
insert into q values (1, 1, 100, 1, 1, 10, 0, 0);
alter table q sequence=1;
select nextval(q);

-- case: upkeep of tables
analyze table t;
analyze local table t;
analyze table t update histogram on a;
analyze table t persistent for all;
optimize table t, u;
check table t for upgrade;
checksum table t;
flush tables;
flush table t;
flush local tables;
flush tables t for export;
unlock tables;
lock tables t write;
unlock tables;

-- case: accounts and the server
create user 'hidden'@'%' identified by 'TRUNCATE t';
alter user 'hidden'@'%' identified by 'x; TRUNCATE t';
rename user 'hidden'@'%' to 'hidden2'@'%';
grant select on t to 'hidden2'@'%';
revoke select on t from 'hidden2'@'%';
set password for 'hidden2'@'%' = 'Truncate-t-1';
drop user 'hidden2'@'%';
create role hidden_role;
drop role hidden_role;
create server hidden foreign data wrapper mysql options (host '127.0.0.1');
alter server hidden options (host '127.0.0.2');
drop server hidden;
flush privileges;
create tablespace hidden add datafile 'hidden.ibd' engine=InnoDB;
alter tablespace hidden rename to hidden2;
drop tablespace hidden2;
create spatial reference system 987654 name 'hidden' definition 'GEOGCS["x",DATUM["y",SPHEROID["z",6378137,298.257223563]],PRIMEM["Greenwich",0],UNIT["Degree",0.017453292519943295],AXIS["Lon",EAST],AXIS["Lat",NORTH]]';
drop spatial reference system 987654;
create resource group hidden type=user;
drop resource group hidden;
alter instance reload tls;
create or replace json relational duality view j as select json_duality_object('_id': id, 'a': a) from t;
drop view j;
create library hidden language javascript as $$ // TRUNCATE t; $$;
drop library hidden;

-- case: temporary tables of the same names
create temporary table t (id int primary key, z int);
insert into t values (7, 8);
alter table t add y int first;
create index i on t (z);
truncate t;
analyze table t;
optimize table t;
create table n like t;
create table n2 as select * from t;
drop table t;
create temporary table t (z int);
drop temporary table t;

-- case: temporary and other tables in one DROP
create temporary table t (id int primary key);
drop table t, u;

-- case: aside: temporary tables in statement format
set session binlog_format = statement;
create temporary table t (id int primary key, z int);
alter table t add y int first;
create index i on t (z);
truncate t;
alter table t rename to t2;
drop temporary table t2;

-- case: aside: a temporary table is copied in statement format
set session binlog_format = statement;
create temporary table u (id int primary key, z varchar(9));
create table n like u;
drop temporary table u;

-- case: aside: REPAIR TABLE of a temporary table
create temporary table t (id int primary key) engine=MyISAM;
repair table t;

-- case: temporary tables swap names
create temporary table t (id int primary key, a int, b int, c varchar(20));
create temporary table u (id int primary key, a int, b int, c varchar(20));
rename table t to x, u to t, x to u;
drop temporary table if exists t;
drop temporary table if exists u;
drop temporary table if exists t;

-- case: aside: a temporary table gets another's name [mariadb]
create temporary table t (id int primary key, a int, b int, c varchar(20));
rename table t to u;

-- case: aside: a temporary table gives up a name [mariadb]
create temporary table t (id int primary key, a int, b int, c varchar(20));
rename table t to x;

-- case: executable comments
/*!50000 truncate */ t;
alter table u /*!50100 modify c varchar(20) first */ /*!99999 , drop a */ /*!999999 , drop b */;
/*!99999 flush tables */ alter table t modify b int first;
/*! */ /* */ -- x
truncate u;

-- case: executable comments of versions with six digits
create table n1 (id int primary key, a varchar(/*!000005*/));
create table n2 (id int primary key /*!080000 , a int */);
create table n3 (id int primary key /*!100000 , a int */);
create table n4 (id int primary key, a int default /*!500005*/);
create table n5 (id int primary key /*!101100 , a int */ /*!90704 , b int */ /*!90705 , c int */);
create table n6 (id int primary key /*!50700 , a int */ /*!50699 , b int */ /*!80015 , c int */ /*!80016 , d int */);
create table n7 (id int primary key /*!5 , b int */);
create table n8 (id int primary key /*M!100000 , b int */ /*M! , c int */ /*M!50700 , d int */ /*m! , e int */ /* ! , f int */);
create table n9 (id int primary key /*! , b int /* x */ , c int */);
create table n10 (id int primary key /*!50000 , b int /*!99999 , c int */ , d int */);
-- mariadb:
create table n11 (id int primary key /*!99999 , b int /*! , c int */ , d int */);
create table n12 (id int primary key /*!50000 , b varchar(9) default '*/' , c int */);
create table n13 (id int primary key /*+ x */, /*+ y */ b int /*/ , c int */ /*!*/ , d int /*!50000*/);

-- case: comments that are left out, with others inside [mariadb]
/*!99999 /* a */ flush tables -- */ truncate t;
/*M!999999 /* a */ flush tables -- */ truncate u;

-- case: blanks that are letters
create table ` t` (id int primary key);
truncate  t;
alter table u modify c varchar(20) /* */ first, rename column b to  b;
alter table t change b 　b int first;

-- case: several statements in one text
truncate t;
alter table u modify c varchar(20) first;;

-- case: no rows but those of the log
do 1;
kill query 4294967295;
help 'truncate';
(select 1);
with q as (select 1 as a) select * from q;
explain select * from t;
xa start 'hidden';
xa end 'hidden';
xa prepare 'hidden';
xa commit 'hidden';
