-- case: integers by every name
create table a (
  a tinyint, b int1, c smallint, d int2, e mediumint, f int3, g middleint, h int, i integer,
  j int4, k bigint, l int8, m tinyint(1), n int(11), o bigint(20) unsigned,
  p smallint unsigned zerofill, q int(5) zerofill, r bool, s boolean, t tinyint signed
);
alter table a add u serial, modify a bigint unsigned, modify n int, change m n2 tinyint(4);

-- case: exact and floating numbers
create table a (
  a decimal, b dec(5), c numeric(10,3), d fixed(65,30), e decimal(7,2) unsigned zerofill,
  f float, g float(10), h float(24), i float(25), j float(53), k float(7,3), l double,
  m double precision, n real, o real(5,2), p double(20,4) unsigned, q float4, r float8
);
alter table a modify a decimal(12), modify b decimal(12,4), modify f double, modify l float;

-- case: REAL under REAL_AS_FLOAT
set sql_mode = 'REAL_AS_FLOAT';
create table a (a real, b real(4,1), c double);
set sql_mode = default;
create table b (a real);

-- case: bits
create table a (a bit, b bit(1), c bit(7), d bit(8), e bit(9), f bit(64));
alter table a modify a bit(5), add g bit(3) not null default b'101';

-- case: dates and times
create table a (
  a date, b time, c time(0), d time(3), e time(6), f datetime, g datetime(1), h datetime(6),
  i timestamp null, j timestamp(4) null, k year, l year(4), m year unsigned, n year(4) zerofill
);
alter table a modify b time(2), modify f datetime(3), modify i datetime;

-- case: characters
create table a (
  a char, b char(0), c char(255), d character(10), e varchar(1), f varchar(255),
  g character varying(300), h varcharacter(20), i national char(5), j nchar(6),
  k national varchar(7), l nvarchar(8), m nchar varchar(9), n national character varying(10),
  o nchar varying(11), p national varcharacter(12)
);
alter table a modify a char(3), modify e varchar(500), modify f text;

-- case: texts and blobs
create table a (
  a tinytext, b text, c mediumtext, d longtext, e long, f long varchar, g long char varying,
  h tinyblob, i blob, j mediumblob, k longblob, l long varbinary
);
alter table a modify a text, modify h blob, modify b longtext, modify l tinyblob;

-- case: a TEXT's length chooses among the four
create table a (
  a text(1), b text(63), c text(64), d text(16383), e text(16384), f text(4194303),
  g text(4194304), h blob(255), i blob(256), j blob(65535), k blob(65536), l blob(16777216)
);
create table b (
  a text(255) character set latin1, b text(256) character set latin1,
  c text(85) character set utf8mb3, d text(86) character set utf8mb3,
  e text(127) character set ucs2, f text(128) character set ucs2, g text(0)
);

-- case: bytes
create table a (
  a binary, b binary(16), c varbinary(20), d char byte, e char(4) byte, f varchar(9) byte,
  g varchar(10) character set binary, h text character set binary, i tinytext byte,
  j char(3) charset binary
);
alter table a modify a binary(3), modify c varbinary(300), modify b char(16);

-- case: enumerations and sets
create table a (
  a enum('x'), b enum('a','b','c') not null, c set('p','q'), d enum('it''s','back\\slash','"'),
  e set('a b','c d') default 'c d', f enum('ä','ö') character set latin1,
  g enum('a ','b  '), h set('one','two','three','four','five','six','seven','eight','nine'),
  i enum('') , j enum(x'4142', 'C')
);
alter table a modify a enum('x','y'), modify b enum('c','b','a') not null, modify c set('p','q','r');
alter table a modify a varchar(10), modify c bigint;

-- case: shapes
create table a (
  a geometry, b point, c linestring, d polygon, e multipoint, f multilinestring,
  g multipolygon, h geometrycollection
);
-- mysql:
create table b (
  a point srid 4326, b geometry not null srid 0, c geomcollection, d point not null srid 3857
);
-- mysql:
alter table b modify a point, modify b geometry not null srid 4326;
-- mariadb:
create table b (a point ref_system_id=4326, b geometry ref_system_id=0 not null);
alter table a modify b geometry not null, drop h;

-- case: JSON
create table a (a json, b json not null);
-- mysql:
alter table a add c json default (json_array()), modify b longtext;
-- mariadb:
alter table a add c json default '[]', modify b longtext;

-- case: vectors [mysql]
create table a (a vector, b vector(3), c vector(16383) not null);
alter table a modify b vector(4), drop a;

-- case: addresses and identifiers [mariadb]
create table a (a inet4, b inet6, c uuid not null primary key, d inet6 default '::1');
alter table a drop a, add a inet6, modify b varchar(39), add e uuid default '6ccd780c-baba-1026-9564-5b8c656024db';

-- case: compressed columns [mariadb]
create table a (
  a varchar(1000) compressed, b text compressed, c blob compressed not null,
  d varbinary(500) compressed=zlib, e longtext compressed character set latin1
);
alter table a modify b text, modify c blob;

-- case: VARCHARs that are too long become TEXTs where no strict mode forbids it
set sql_mode = '';
create table a (
  a varchar(70000), b varchar(20000), c varchar(1000), d varbinary(70000),
  e varchar(66000) character set latin1, f varchar(17000000) character set latin1
);
alter table a modify c varchar(30000), add g varchar(70000);

-- case: attributes in any order
create table a (
  a int unsigned not null comment 'x' auto_increment key,
  b varchar(10) character set latin1 comment "it's" null default 'z' collate latin1_bin,
  c int default 1 not null unique comment 'c',
  d int not null default '7' check (d > 0),
  e varchar(5) character set latin1 not null collate latin1_general_ci
);

-- case: lengths with a point
create table a (
  a decimal(19.5), b float(7.4), c decimal(5.9) unsigned, d float(30.1), e char(5.7),
  f varchar(9.9), g numeric(12.0), h bit(7.7), i binary(3.5), j text(300.5)
);
alter table a modify a decimal(20.7), add k double default 1;
