-- case: words that are repeated in a key
create table a (id int, key k (id) comment 'x' comment 'y', key l using hash (id) using btree);
-- mysql:
create table b (id int, key k (id) invisible visible, key l (id) visible invisible, key m (id) invisible comment 'x' visible invisible);
-- mysql:
create index n on b (id) invisible visible;
-- mysql:
create index o on b (id) visible invisible comment 'x' using btree using hash;
-- mysql:
alter table b alter index k invisible, alter index k visible, alter index n visible, alter index n invisible;
-- mariadb:
create table b (id int, key k (id) ignored not ignored, key l (id) not ignored ignored);

-- case: words that are repeated in a column
create table a (id int not null null, b int null not null, c int default 1 default 2, d int default null not null default 5, e int default 1 default null);
create table b (a timestamp default current_timestamp default '2001-01-01' on update current_timestamp, b timestamp on update current_timestamp default current_timestamp default '2001-01-01');
create table c (a timestamp null not null default current_timestamp on update current_timestamp on update current_timestamp(0), b int comment 'x' comment 'y' not null not null);
create table d (a bigint serial default value not null null, b varchar(9) charset latin1 binary, c varchar(9) binary charset latin1, d char(5) byte);
-- mysql:
create table e (a int unsigned signed, b int signed unsigned, c int unsigned zerofill unsigned, d int signed zerofill, g geometry srid 4326 srid 0, h geometry srid 0 not null srid 4326);
-- mysql:
create table f (a int, b int as (a) stored not null null, c int as (a) virtual null not null unique unique key, d varchar(9) binary collate utf8mb4_general_ci);
create table g (a int auto_increment key unique);
create table h (a int unique key primary key, b int unique unique);

-- case: words that are repeated in a table
create table a (a int, v varchar(9)) engine=myisam row_format=compact engine=innodb row_format=dynamic;
create table b (a int, v varchar(9)) character set utf8mb4 collate utf8mb4_bin character set utf8mb4;
create table c (a int, v varchar(9)) collate utf8mb4_bin comment 'x' character set utf8mb4;
alter table a engine=myisam, engine=innodb, row_format=compact, row_format=dynamic;
alter table a default collate latin1_bin, default character set latin1;
alter table b default character set latin1, add c varchar(9), default collate latin1_bin;
-- mysql:
alter table c convert to character set latin1 collate latin1_bin, character set latin1;
-- mysql:
create table d (a int, v varchar(9)) collate utf8mb4_bin collate utf8mb4_general_ci;
alter table a add d varchar(9), add e char(3) character set utf8mb4;

-- case: databases of which a set is named behind a collation
alter database `{db}` collate latin1_bin character set latin1;
create table a (a varchar(9));
create database {db}_2 collate utf8mb4_bin character set utf8mb4;
create table {db}_2.a (a varchar(9));

-- case: keys that are too long without strict mode
set sql_mode = '';
create table a (a varchar(4000), b varbinary(4000), c text, d blob, key (a), key (b), key (c(4000)), key (d(4000)), fulltext key f (a));
-- mysql:
create table b (a tinytext, b tinytext character set latin1, c tinyblob, key (a(70)), key (b(300)), key (c(300)));
create table c (a varchar(1000) character set utf8mb3, b varchar(1100) character set utf16, key (a), key (b));
create table d (a varchar(4000), b varchar(200), key (a), key (b(199))) engine=myisam;
alter table a modify a varchar(5000);
alter table a modify a varchar(4000) character set latin1;
alter table a modify a varchar(500), modify b varbinary(3072), modify c varchar(2000);
alter table a modify a varchar(769), modify b varbinary(4000);
alter table c convert to character set utf8mb4;
alter table d engine=innodb;
alter table d engine=myisam;
create table e (id int primary key, a varchar(4000) character set latin1);
create index k on e (a);
alter table e convert to character set utf8mb4;
-- mysql:
create table g (a varchar(4000), key k (a)) engine=memory;
