-- case: added in every place
create table a (id int primary key, a int);
alter table a add b int;
alter table a add column c int first, add d int after id, add (e int, f varchar(10) not null);
alter table a add column (g int), add h int after g, add i int after h;
alter table a add j int after b, add k int after j, drop d;

-- case: dropped
create table a (id int primary key, a int, b int, c int, key (a, b), key c (c), unique u (b));
alter table a drop a;
alter table a drop column c, drop b;
alter table a drop column id, add x int;

-- case: moved
create table a (a int, b int, c int, d int);
alter table a modify d int first;
alter table a modify a int after c, modify b int first;
alter table a change c cc int after b, modify a int after cc;
alter table a add e int first, modify d int after e, modify b int after d;

-- case: changed
create table a (a int not null default 3, b varchar(10) default 'x', c datetime default now());
alter table a change a aa bigint, change b b varchar(20) not null;
alter table a change column aa a int unsigned not null auto_increment primary key;
alter table a modify column c datetime(3) not null default current_timestamp(3) on update current_timestamp(3);

-- case: renamed
create table a (a int, b int, c int, key ab (a, b));
alter table a rename column a to x;
alter table a rename column x to b, rename column b to x;
alter table a rename column c to d, add c int after d, modify x bigint;

-- case: swapped by CHANGE
create table a (a int, b varchar(10), key (a), key (b));
alter table a change a b int, change b a varchar(10);
alter table a change b t int, change a b varchar(10), add a int;

-- case: dropped and added again under its name
create table a (id int primary key, a int, b int);
alter table a drop a, add a varchar(10);
alter table a drop b, add b int first, add c int;

-- case: names differ in case only
create table a (Id int primary key, Name varchar(5), key k (name));
alter table a rename column ID to id;
alter table a change NAME nAME varchar(6), add Other int after ID;
alter table a modify OTHER bigint;
alter table a alter other set default 4;

-- case: everything at once
create table a (id int not null, a int, b text, c date, key a (a)) charset latin1;
alter table a
  add primary key (id), drop a, add a2 int first, change b bb mediumtext character set utf8mb4,
  modify c datetime(6) default current_timestamp(6), add unique (a2), rename to b, engine = InnoDB,
  comment = 'all at once', alter id set default 0;
alter table b drop primary key, add column z int not null primary key auto_increment;

-- case: null and not null
create table a (a int not null, b int null, c varchar(5) not null default '');
alter table a modify a int, modify b int not null, modify c varchar(5);
alter table a modify a int not null default 1;
alter table a add primary key (b), modify c varchar(5) not null;

-- case: wider and narrower
create table a (a tinyint, b varchar(10), c decimal(5,2), d float, e char(4), f blob, g datetime);
alter table a modify a smallint, modify b varchar(300), modify c decimal(10,2), modify d double;
alter table a modify a bigint unsigned, modify b varchar(5), modify c decimal(10,4), modify e varchar(4);
alter table a modify f longblob, modify g datetime(6), modify a tinyint;
alter table a modify c int, modify d decimal(20,5), modify g date;

-- case: hidden columns
create table a (a int, b int invisible, c varchar(5) invisible default 'x');
-- mysql:
alter table a alter column a set invisible, alter column b set visible;
-- mysql:
alter table a alter b set invisible, alter a set visible;
alter table a modify c varchar(5), add d int invisible default 1;

-- case: generated columns
create table a (a int, b int generated always as (a + 1) virtual, c int as (a * 2) stored, d varchar(20) as (concat(a, ',)')));
alter table a add e int as (c + 1) virtual, add f int generated always as (a) stored;
alter table a modify b bigint as (a + 2) virtual, change c c bigint as (a * 3) stored;
alter table a drop d, drop e;
-- mysql:
create table b (j json, k varchar(10) generated always as (j->>'$.k') stored not null, n int as (json_length(j)) virtual invisible, key (k));
-- mariadb:
create table b (a int, k int generated always as (a + 5) persistent, n int as (a) virtual invisible);

-- case: checks are no part of it
create table a (a int check (a > 0), b int, c int, constraint bb check (b < 10), constraint cc check (a < b), check (c <> 5));
alter table a add constraint dd check (a <> b), add d int check (d in (1, 2, 3));
-- mysql:
alter table a drop check cc, alter check bb not enforced;
-- mysql:
alter table a drop constraint dd, add check (d is not null) not enforced, alter constraint bb enforced;
-- mariadb:
alter table a drop constraint cc, drop constraint if exists nothing;

-- case: no column is left but one
create table a (a int, b int);
alter table a drop a;
alter table a add c int, drop b;

-- case: SERIAL and AUTO_INCREMENT
create table a (id serial, b int);
create table b (id bigint unsigned not null auto_increment, key (id)) auto_increment = 100;
create table c (a int, b int serial default value);
alter table a modify id bigint unsigned not null, auto_increment = 5;
alter table b drop key id, add primary key (id);
alter table c add d int, modify b bigint not null auto_increment;

-- case: IF EXISTS in clauses [mariadb]
create table a (id int primary key, a int, key k (a));
alter table a add column if not exists a varchar(5), add column if not exists b int;
alter table a drop column if exists nothing, drop column if exists b, drop index if exists k;
alter table a modify column if exists nothing int, modify if exists a bigint, change column if exists zz z int;
alter table a add index if not exists k (a), add unique if not exists u (a);
alter table a add index if not exists k (id), rename column if exists none to some;
alter table if exists missing add b int;
alter table a alter column if exists none set default 4, drop foreign key if exists f, drop constraint if exists c;
alter table a add column if not exists (x int, a int), drop primary key;

-- case: clauses that are no part of a structure
create table a (id int primary key, a int) stats_persistent=1 comment='c' row_format=dynamic max_rows=1000;
alter table a force;
alter table a order by a;
alter table a algorithm=inplace, lock=none, add b int;
alter table a add c int, algorithm=copy;
alter table a comment = 'new', stats_auto_recalc = 0, key_block_size = 0;
alter table a disable keys;
alter table a enable keys;
alter table a engine=innodb;
alter table a auto_increment = 50;
