-- case: quoted names
create table `a b` (`select` int, `c``d` int, `1` int, `ä` int, `x,y` varchar(5), `(` int, key `k,1` (`select`));
alter table `a b` change `c``d` `d``c` int, drop column `1`, add `from` int after `ä`;
rename table `a b` to `a``b`;
drop table `a``b`;

-- case: ANSI_QUOTES
set sql_mode = 'ANSI_QUOTES';
create table "a" ("id" int, "b""c" varchar(5) default 'x', "key" int, primary key ("id"));
alter table "a" add "d" int comment 'it''s', rename column "key" to "k";
rename table "a" to "q";

-- case: double quotes are strings otherwise
create table a (a enum("x","y""z"), b varchar(5) default "b'c" comment "`d`");
alter table a alter b set default "a""x""";

-- case: NO_BACKSLASH_ESCAPES
set sql_mode = 'NO_BACKSLASH_ESCAPES';
create table a (a varchar(10) default 'a\', b enum('x\','y') comment '\', c int);
alter table a alter a set default '\''', add d varchar(5) default '\n';

-- case: comments
create /* one */ table -- two
  a ( # three
  id int, /* , x int */ b int -- , c int
  ,/**/ d int);
alter table a /* rename to b */ add e int -- ,
;
/* first */ alter table a drop e /* last */;

-- case: executable comments
create table a (id int /*! not null */, b int /*!50000 unsigned */ /*!99999 zerofill */, c int /*!40101 default 5 */) /*!40101 default charset=latin1 */;
-- mysql:
alter table a add x int /*!80023 invisible */, add y int /*M! comment 'none' */;
-- mysql:
create table b (id int, d date) /*!50100 partition by range (year(d)) (partition p0 values less than (2000) engine = InnoDB) */;
-- mariadb:
alter table a add x int /*M!100300 invisible */, add y int /*!80023 comment 'none' */, add z int /*M! not null */;
/*!40000 alter table a disable keys */;
/*!50503 alter table a add w int */;
alter table a add v int /*! /* nested */ default 3 */;

-- case: names in every position
create table {db}.a (id int);
create table `{db}`.`b` (id int);
alter table {db}.a add b int, rename to {db}.c;
create index i on {db}.b (id);
drop table {db}.c, `{db}` . `b`;

-- case: keywords as names
create table a (`key` int, date date, time time, timestamp timestamp null, year year, text text, status int, type int, comment varchar(5) comment 'c', enum enum('x'), bit bit, value int, account int, after int, first int, begin int, engine int, names int, any int, no int);
alter table a add action int after date, add data int first, drop column status, modify `first` bigint, change after `before` int, add json json;
create table `table` (`column` int, `index` int, index `index` (`index`));
create table position (offsets int, `rank` int, position int);

-- case: more than one blank, and none
create	table   a(id int(11)NOT NULL,b varchar(5)DEFAULT'x',PRIMARY KEY(id),KEY`k`(b(2)))ENGINE=InnoDB;
ALTER TABLE a ADD(c int,d int),DROP b;
alter
table
a
modify
c
bigint;

-- case: another client's character set
set names latin1;
create table a (id int comment 'x', n varchar(10) default 'plain');
set names utf8mb4;
alter table a add `größe` int, add t varchar(10) default 'größe' comment '大きさ';
set character_set_client = gbk;
alter table a add z int;

-- case: literals
create table a (a varchar(20) default 'a' 'b'
  'c', b int default 0x1F, c varbinary(9) default X'0aFf', d bit(5) default 0b101, e bit(5) default B'1', f double default .5, g double default 1.e2, h decimal(8,3) default -0.0005);

-- case: many columns
create table a (a1 int, a2 int, a3 int, a4 int, a5 int, a6 int, a7 int, a8 int, a9 int, a10 int, a11 int, a12 int, a13 int, a14 int, a15 int, a16 int, a17 int, a18 int, a19 int, a20 int);
alter table a drop a1, drop a3, drop a5, drop a7, drop a9, rename column a2 to a1, rename column a4 to a3, add a5 int after a1, modify a20 int first;
