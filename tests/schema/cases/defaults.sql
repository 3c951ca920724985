-- case: numbers as defaults
create table a (
  a int default 0, b int default -5, c int default '12', d int default 1.5, e int default 2.5e1,
  f decimal(5,2) default 1, g decimal(5,2) default '3.14159', h decimal(10,0) default 1e3,
  i float default 0.1, j double default 1e10, k double default -2.50, l bigint default 0x10,
  m bigint unsigned default 18446744073709551615, n tinyint default true, o tinyint default false,
  p int default b'101', q int default +7, s int(6) zerofill default 42
);
alter table a alter a set default 9, alter b drop default, alter column c set default null;
alter table a add t int not null default 3 after a, add u float default '2.5';

-- case: strings as defaults
create table a (
  a varchar(20) default '', b varchar(20) default 'it''s', c varchar(20) default "dou""ble",
  d varchar(20) default 'back\\slash', e varchar(20) default 'tab\there',
  f varchar(20) default 'one' ' two', g char(5) default 'ab  ', h varchar(5) default 'ab  ',
  i varchar(20) default N'nation', j varchar(20) default _utf8mb4'äö', k varchar(20) default x'4142',
  l varchar(20) character set utf8mb4 default 'ünï', m char(3) default 5, n varchar(20) default 1.50,
  o varchar(20) default '\%\_', p varchar(20) character set utf8mb4 default '日本語'
);
alter table a alter a set default 'new', alter b set default "it's", modify c varchar(30) default '';

-- case: bytes and bits as defaults
create table a (
  a binary(4) default 'ab', b varbinary(4) default 'ab', c binary(2) default x'0102',
  d varbinary(8) default 0xdeadbeef, e bit(8) default b'1010', f bit(8) default 7,
  g bit(16) default x'0102', h bit default 1, i bit(4) default b'0'
);
alter table a alter b set default 'xyz', alter e set default b'1';

-- case: moments as defaults
set sql_mode = '';
create table a (
  a date default '2024-02-29', b date default '24-2-9', c date default 20240229,
  d datetime default '2024-02-29 1:2:3', e datetime default '2024-02-29', f datetime(3) default '2024-02-29 12:34:56.789',
  g time default '12:34:56', h time default '1:2', i time(2) default '-838:59:59', j year default 2024,
  k year default '99', l year default 0, m timestamp default '2024-02-29 12:00:00',
  n datetime default '0000-00-00 00:00:00', o date default 0, p time default 123456,
  q datetime default 20240229123456, u date default '2024/01/02', v datetime default '2024-01-02T03:04:05'
);
alter table a alter a set default '2000-01-01', modify d datetime(2) default '2024-02-29 1:2:3.45';

-- case: members as defaults
create table a (
  a enum('a','b') default 'b', b enum('a','b') not null, c set('x','y','z') default 'z,x',
  d set('x','y') default '', e enum('A','B') default 'a', f enum('1','2') default '2'
);
alter table a alter a set default 'a', alter c set default 'y';

-- case: the present moment
create table a (
  a datetime default current_timestamp, b datetime default now(), c datetime default localtime,
  d datetime default localtimestamp(), e datetime(3) default current_timestamp(3),
  f datetime(6) default now(6) on update now(6), g timestamp not null default current_timestamp on update current_timestamp,
  h datetime on update current_timestamp, i timestamp(2) null default null on update current_timestamp(2),
  j datetime default current_timestamp()
);
alter table a modify a datetime, modify g timestamp null, alter b drop default;
alter table a modify h datetime default current_timestamp on update current_timestamp;

-- case: expressions [mysql]
create table a (
  a int default (1 + 2), b varchar(36) default (uuid()), c json default ('{}'),
  d text default ('abc'), e datetime default (now() + interval 1 day), f blob default (x'00ff'),
  g point default (point(0, 0)), h int default (a * 2), i date default (current_date),
  j varchar(20) default (concat('a,', 'b)')), k double default (rand())
);
alter table a alter a set default (5 + 5), alter d drop default, add l int default (length('x'));

-- case: expressions [mariadb]
create table a (
  a int default (1 + 2), b varchar(36) default uuid(), c json default '{}', d text default 'abc',
  e datetime default (now() + interval 1 day), f blob default x'00ff', h int default (1 * 2),
  i date default current_date(), j varchar(20) default concat('a,', 'b)'), k double default rand(),
  l int default (1 + 2 * 3)
);
alter table a alter a set default (5 + 5), alter d drop default, add m int default length('x');

-- case: TIMESTAMP by the old rules
set explicit_defaults_for_timestamp = 0, sql_mode = '';
create table a (a timestamp, b timestamp, c timestamp null, d timestamp(3), e int);
create table b (a timestamp default '2020-01-01 00:00:00', b timestamp default current_timestamp);
create table c (e int, d timestamp(3), a timestamp);
alter table b add c timestamp, modify a timestamp;
alter table c add g timestamp null default null, add h timestamp first;
alter table c add i timestamp after h;
alter table c modify i timestamp default 0 first, add j timestamp;

-- case: TIMESTAMP by the old rules on a table of the new [mysql]
set explicit_defaults_for_timestamp = 1;
create table a (a int, b timestamp not null, c timestamp not null, d timestamp null);
create table b (a int, b timestamp null, c timestamp not null);
create table c (a int, b timestamp not null);
alter table c add c datetime;
set explicit_defaults_for_timestamp = 0, sql_mode = '';
alter table b add e timestamp;
alter table b modify b timestamp;
alter table c alter b set default '2001-01-01 00:00:00';
alter table c add z timestamp;
create table d like c;
alter table a add e timestamp;
alter table a modify b timestamp, add f timestamp first;
create table e (a int, b timestamp as (timestamp '2001-01-01 00:00:00') virtual, c timestamp);

-- case: TIMESTAMP by the new rules
set explicit_defaults_for_timestamp = 1;
create table a (a timestamp, b timestamp null, c timestamp not null default current_timestamp, d timestamp(3) default current_timestamp(3));
alter table a add e timestamp, add f timestamp not null default '2020-02-02 02:02:02';

-- case: no defaults for TEXT and BLOB outside strict mode [mysql]
set sql_mode = '';
create table a (a text default '', b blob default '', c json);
alter table a add d text not null;

-- case: ON UPDATE comes and goes
create table a (id int primary key, t timestamp null);
alter table a modify t timestamp not null default current_timestamp on update current_timestamp;
alter table a modify t timestamp not null default current_timestamp;
alter table a alter t set default '2001-02-03 04:05:06';

-- case: constants that nobody needs the value of
create table a (
  id int primary key,
  t time not null default ' 01:01 ',
  d datetime default '2020-01-02:',
  e time(3) default '0000-00-00 01:00:00.000',
  f varchar(5) default _latin1 x'E9',
  g varchar(5) default _latin1'é',
  h year default '0',
  i time default '1 10:11:12.7'
);
alter table a modify d date default '2020-01-02 03:04:05', alter h set default 70, alter f drop default;
alter table a add j varchar(9) default 010, convert to character set utf8mb3;

-- case: a default given to a column that is moved [mariadb]
create table a (id int primary key, b int default 1, c int, d int, e datetime);
alter table a modify b bigint not null default 7 first, alter b set default 9;
alter table a change c f int default 4 after d, alter F drop default;
alter table a change d c int after b, drop f, alter c set default 3;
alter table a modify b int after c, modify c int default 1 first, alter c set default 4, alter b set default 2;
alter table a modify e datetime on update current_timestamp first, alter e set default '2020-01-01';

-- case: a moment with an offset [mysql]
create table a (t timestamp null default '2020-01-02 03:04:05+02:00', d datetime default '2020-01-02 03:04:05-11:30');
alter table a add e timestamp(2) null default '2020-01-02 03:04:05.678+02:00';

-- case: the first TIMESTAMP under variables that the log does not have [mysql]
set explicit_defaults_for_timestamp = 1;
create table a (id int primary key, ts timestamp not null);
set explicit_defaults_for_timestamp = 0;
alter table a add b bit;
