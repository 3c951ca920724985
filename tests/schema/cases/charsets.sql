-- case: inherited from the database
alter database {db} character set latin1;
create table a (a varchar(10), b text, c enum('x'));
alter database {db} collate utf8mb4_bin;
create table b (a varchar(10), b text, c varchar(10) character set utf8mb4, d varchar(5) collate utf8mb4_unicode_ci);
alter table a add d varchar(10);

-- case: inherited from the table
create table a (
  a varchar(10), b varchar(10) character set latin1, c varchar(10) collate utf8mb3_bin,
  d char(5) binary, e char(5) character set latin2 binary, f text ascii, g text unicode
) default charset=utf8mb3;
create table b (a varchar(10), b varchar(10) character set utf8mb3) charset utf8mb3 collate utf8mb3_unicode_ci;
create table c (a varchar(10)) collate latin1_general_cs;
create table d (a varchar(10)) character set = koi8r, collate = koi8r_bin;

-- case: the table's default changes, its columns do not
create table a (a varchar(10), b text) charset latin1;
alter table a charset utf8mb4;
alter table a add c varchar(10), default character set = utf8mb3 collate = utf8mb3_bin;
alter table a collate latin1_bin;
-- mariadb:
alter table a character set default;

-- case: CONVERT TO
create table a (a varchar(10), b tinytext, c text, d mediumtext, e longtext, f enum('x','y'), g varbinary(5), h int, i char(4) collate latin1_bin) charset latin1;
alter table a convert to character set utf8mb4;
alter table a convert to character set latin1;
alter table a convert to character set utf8mb3 collate utf8mb3_bin, add j varchar(5), modify h bigint;

-- case: CONVERT TO the database's own
create table a (a varchar(10), b text) charset latin1;
alter table a convert to character set default;
alter table a convert to charset utf8mb4 collate utf8mb4_bin;

-- case: CONVERT TO binary
create table a (a varchar(10), b text, c char(3), d longtext) charset latin1;
alter table a convert to character set binary;

-- case: collation and set together
create table a (
  a varchar(5) character set latin1 collate latin1_bin, b varchar(5) character set latin1,
  c varchar(5) collate latin1_swedish_ci, d varchar(5) charset utf8mb4 collate utf8mb4_general_ci
);
alter table a modify a varchar(5), modify b varchar(5) collate latin1_german1_ci;

-- case: utf8mb4's default collation is the session's [mysql]
set default_collation_for_utf8mb4 = utf8mb4_general_ci;
create table a (a varchar(5) character set utf8mb4, b varchar(5)) character set utf8mb4;
create table b (a varchar(5) character set utf8mb4);
create database {db}_2 character set utf8mb4;
create table {db}_2.c (a varchar(5));
alter table a convert to character set utf8mb4;

-- case: utf8 is utf8mb3
create table a (a varchar(5) character set utf8, b varchar(5) collate utf8_bin, c text charset utf8) charset utf8;
alter table a convert to character set utf8 collate utf8_unicode_ci;

-- case: BINARY means the binary collation
create table a (a varchar(5) binary, b varchar(5) character set latin1 binary, c text binary) charset utf8mb4 collate utf8mb4_unicode_ci;

-- case: databases with sets
create database {db}_a character set latin1;
create database {db}_b collate utf8mb3_bin;
create schema if not exists {db}_c default charset = koi8r default collate = koi8r_bin;
create table {db}_a.t (a varchar(3));
create table {db}_b.t (a varchar(3), b text character set utf8mb4);
alter schema {db}_a default collate latin1_bin;
create table {db}_a.u (a varchar(3));
create table {db}_a.v like {db}_b.t;

-- case: the server's set stands where none is written
set collation_server = latin1_german2_ci;
create database {db}_a;
create table {db}_a.t (a varchar(3));
set character_set_server = utf8mb3;
create database {db}_b;
create table {db}_b.t (a varchar(3), b text);

-- case: uca1400 [mariadb]
create table a (a varchar(5) collate utf8mb4_uca1400_ai_ci, b varchar(5) character set utf8mb3 collate uca1400_german2_as_cs) collate utf8mb4_uca1400_nopad_ai_ci;
alter table a convert to character set utf8mb4 collate uca1400_swedish_ai_ci, add c varchar(5);

-- case: sets of the East
create table a (a varchar(10) charset sjis, b varchar(10) charset gbk, c text(100) charset eucjpms, d char(3) charset utf16, e text charset utf32, f varchar(5) charset gb2312, g char(7) charset big5, h text charset utf16le);

-- case: members and CONVERT TO
create table a (a enum('x','y') default 'x', b set('ä','b')) charset utf8mb3;
alter table a convert to character set utf8mb4;
alter table a drop b, convert to character set latin1;

-- case: CONVERT TO and more
create table a (a varchar(5) default 'ab', b text) charset latin1;
alter table a convert to character set utf8mb4 collate utf8mb4_bin, add c varchar(5);
-- mysql:
alter table a convert to character set utf8mb4 collate utf8mb4_unicode_ci, collate utf8mb4_general_ci;
alter table a convert to character set binary;

-- case: a database of bytes
alter database {db} character set binary;
create table a (a varchar(5), b enum('x'), c text, d char(3) character set latin1);
alter table a add e varchar(9) default 'x';

-- case: members outside ASCII
create table a (e enum('é','日'), s set('x','日')) charset utf8mb4;
alter table a convert to character set utf8mb3;
alter table a convert to character set utf8mb4 collate utf8mb4_bin;

-- case: members that are other text in another set
create table a (id int primary key, e enum('é','ü')) charset utf8mb4;
-- mysql:
alter table a convert to character set latin1;

-- case: members and bytes
create table a (id int primary key, e enum('é','x') default 'é', s set('日','y')) charset utf8mb4;
alter table a convert to character set binary;
alter table a convert to character set utf8mb4;

-- case: a column that names another character set than CONVERT TO
create table a (id int primary key, s varchar(20), t text, e enum('a','b'), u varchar(9) character set utf8mb4) charset latin1;
alter table a convert to character set utf8mb4, change column s s2 varchar(30) character set latin1;
alter table a change s2 s varchar(30) charset utf8mb4 collate utf8mb4_bin, modify e enum('a','b','c') character set latin1, add n varchar(5) charset ascii, convert to character set utf8mb3;
alter table a convert to character set latin1, change t t2 text character set binary, modify u varchar(9) binary, modify s varchar(9) charset utf8mb4 binary;
-- mysql:
alter table a convert to character set utf8mb4 collate utf8mb4_bin, collate utf8mb4_unicode_ci, modify s varchar(9) collate utf8mb4_general_ci, add q char(3);

-- case: character sets on both sides of CONVERT TO [mysql]
create table a (id int primary key, s varchar(20)) charset latin1;
alter table a default charset utf8mb4 collate utf8mb4_bin, convert to charset utf8mb4, modify s varchar(20) charset latin1;
alter table a collate utf8mb4_unicode_ci, convert to charset utf8mb4 collate utf8mb4_bin, collate utf8mb4_general_ci;
alter table a convert to charset utf8mb4 collate utf8mb4_bin, convert to charset utf8mb4;

-- case: CONVERT TO DEFAULT is of the session's database [mysql]
create table a (id int primary key, s varchar(20)) charset utf8mb4;
create database `{db}_other` charset latin2;
use `{db}_other`;
alter table `{db}`.a convert to character set default;
alter table `{db}`.a convert to character set default collate latin2_bin;
alter database `{db}_other` charset greek;
alter table `{db}`.a convert to charset default;
use `{db}`;
drop database `{db}_other`;
alter table a convert to character set default;

-- case: a BLOB, a VARCHAR and members made a TEXT beside CONVERT TO [mysql]
set sql_mode = '';
create table a (id int primary key, b tinyblob, v varchar(300), e enum('a','bb'), s set('a','b')) charset latin1;
alter table a modify b mediumblob, modify v varchar(20000) charset latin1, modify e text charset latin1, modify s mediumtext, convert to charset utf8mb4;

-- case: a DECIMAL made a TEXT beside CONVERT TO [mysql]
create table a (id int primary key, d decimal(20,0) unsigned, e decimal(65,30), f decimal(63,0), g decimal(63,0) unsigned, h decimal(64,1) zerofill) charset latin1;
alter table a modify d text, modify e text, modify f mediumtext, modify g text, modify h text, convert to charset utf8mb4;

-- case: a TEXT that is made beside CONVERT TO
create table a (id int primary key, v varchar(20), t text, y tinytext, c char(9), l longtext) charset latin1;
alter table a modify v text, modify t text, modify y mediumtext, modify c longtext, modify l text(90), convert to charset utf8mb4;
alter table a modify v text, modify t tinytext, convert to charset utf8mb4;

-- case: CHAR that becomes BINARY beside a default
create table a (id int primary key, c char(4) not null default 'ab');
alter table a convert to character set binary, alter c set default '';
