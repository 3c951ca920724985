-- case: in CREATE TABLE
create table a (
  id int, a int, b varchar(100), c text, d point not null, e int unique key, f int unique,
  primary key (id), key (a), index b (b(10)), unique key (a, b), unique index u (c(20)),
  fulltext key (b, c), fulltext ft (c), spatial key (d), key (a desc, id), key `a key` (a)
);
drop index ft on a;
alter table a drop index b, drop key `a key`, add index (b), add key (b, a);

-- case: names the server chooses
create table a (a int, b int, key (a), key (a, b), key (b), unique (a), key a_4 (b));
alter table a add key (a), add unique (b), add index (b, a);
create table b (a int, primary key (a), key (a), key a_2 (a), key (a));
create table `c` (`primary` int, key (`primary`));

-- case: columns that functional indexes hide [mysql]
create table a (id int primary key, a int, index z ((a + 1)), unique y ((a + 2), b, (a * 3)), b int, c int, index x ((c + 0)));
create index w on a ((c + 1), (c + 2));
alter table a add unique v ((c + 3)), add g int, add index u ((g + 0));
create table b like a;
create table c like b;
alter table a rename index z to aa, rename index y to bb;
alter table a drop index aa, add h int, drop index w;
alter table a add index aa ((h + 1)), add h2 int after id, rename index x to xx;
alter table a change h2 h3 bigint after h, modify c int first, modify g bigint after c;
alter table a rename index bb to xx, rename index xx to bb;
alter table a drop index bb, add index bb ((b + 9)), rename index xx to q, add i int, add j int after b;
alter table a drop index q, rename index bb to q, drop h3;
alter table a drop index v, drop index u, drop index aa, drop index q, add k int;
alter table b add m int, drop index z, algorithm = copy;
alter table b drop index w, convert to character set latin1;
rename table b to d;
alter table d add n int, add index z ((n + 1)), rename to e, add o int, drop index u;
alter table c drop index y, drop index v, add p int, add unique y ((p + 1), id);
alter table c partition by hash (id) partitions 2;

-- case: names of functional indexes [mysql]
create table a (a int, b int, index (a, (a + 1)), unique (b, (b + 1), a), index ((a + 2)), index (b));
alter table a add index (b, (b + 2)), add index functional_index_9 ((a + 5)), add index ((a + 6)), add unique ((a + 7));
create table b (`primary` int, index ((`primary` + 1)), index functional_index ((`primary` + 2)));

-- case: types that functional indexes hide [mysql]
create table a (id int primary key, a varchar(10), js json, d date, index i ((lower(a))), index j ((cast(js->>'$.x' as unsigned)), (year(d)), (d + interval 1 day)), index k ((cast(js->>'$.y' as char(20)))));
alter table a add b varchar(10), add index m ((json_extract(js, '$.z') + 0.5)), add index n ((a = 'x')), add y year, add u int unsigned;
alter table a add index p ((cast(a as decimal(8, 2)))), add index q ((cast(d as datetime(3)))), add c varchar(10) after a;
alter table a drop index i, add index r ((cast(a as time(2)))), add index s ((cast(a as binary(5)))), add e enum('a', 'b'), add f bit(3);

-- case: CREATE INDEX and DROP INDEX
create table a (a int, b varchar(50), c text, d geometry not null);
create index i on a (a);
create unique index u using btree on a (b(5), a desc);
create fulltext index f on a (c) comment 'words';
create spatial index s on a (d);
create index j on a (a asc, b) algorithm = inplace lock = none;
drop index i on a;
-- mysql:
drop index u on a algorithm = default;
-- mariadb:
drop index u on a wait 3;

-- case: primary keys come and go
create table a (a int, b int, c varchar(10));
alter table a add primary key (a, b);
alter table a drop primary key, add primary key (c(5));
drop index `primary` on a;
alter table a add constraint pk primary key (b);
alter table a add d int, drop primary key, add primary key using btree (d);

-- case: prefixes
create table a (a char(10), b varchar(10), c binary(10), d blob, e text, key a (a(5)), key b (b(10)), key c (c(3)), key d (d(100)), key e (e(9)), key ab (a(2), b(3)));
alter table a modify a char(3), modify b varchar(20), modify d tinyblob;
alter table a drop key ab, add primary key (e(30));
alter table a modify b varchar(2);

-- case: keys over the whole of a text that is made anew
create table a (id int primary key, c text, v varchar(30), fulltext f (c), fulltext g (v, c));
alter table a drop c, add c varchar(20);
alter table a drop c, add c mediumtext first;
alter table a drop v, drop c, add c char(9), add v longtext;

-- case: hashes of a text that is made anew [mariadb]
create table a (id int primary key, c text, d int, unique u (c), unique v (d, c)) charset latin1;
alter table a drop c, add c longblob first;
alter table a drop c, add c tinytext;
alter table a drop c, add c varchar(30);
alter table a drop c, add c text;

-- case: more of a text than a small one has [mariadb]
create table a (id int primary key, c tinytext, b tinyblob, v varchar(800), t text, d int,
  unique (c(700)), key (b(300)), unique (v(700)), unique u (d, t(600)), unique w (t(4000))) charset latin1;
alter table a modify c text, modify b blob;
alter table a modify v tinytext, modify t text(40);
alter table a add x varchar(1000) unique, add y varbinary(4000) unique;
alter table a drop x, add x tinytext, drop y, add y tinyblob;
alter table a modify x tinytext character set utf8mb4;

-- case: keys that are there by then [mariadb]
create table a (id int primary key, b int, c int, key (b));
alter table a add column if not exists d char unique key, add column if not exists d float unique key;
alter table a add key if not exists (B, c), add key if not exists k (c), add key if not exists K (id);
alter table a add unique (c), add key if not exists (c), add unique if not exists c (id);
alter table a add e int unique, add unique if not exists (e, c), add unique if not exists f (e);
alter table a modify if exists e bigint unique, add unique g (c), modify if exists id bigint unique;
alter table a drop key b, add key if not exists b (c);

-- case: renamed and hidden [mysql]
create table a (a int, b int, key x (a), key y (b) invisible);
alter table a rename index x to z, alter index y visible;
alter table a rename key z to y, rename key y to x;
alter table a alter index x invisible;
alter table a rename index x to x2, add index x (a);

-- case: renamed and ignored [mariadb]
create table a (a int, b int, key x (a), key y (b) ignored);
alter table a rename index x to z, alter index y not ignored;
alter table a alter key z ignored;
create or replace index z on a (b);
create index if not exists z on a (a);
drop index if exists nothing on a;

-- case: expressions [mysql]
create table a (a int, b varchar(20), j json, key e ((a + 1)), unique u ((lower(b)), a), key ((a * 2)), index m ((cast(j->'$.x' as unsigned array))));
alter table a add index ((a + b)), add key k (a, (b = 1));
alter table a drop index e;
create index x on a ((upper(b)) desc);

-- case: dropped columns take keys along
create table a (a int, b int, c int, key abc (a, b, c), key b (b), unique cb (c, b)) charset latin1;
-- mysql:
alter table a drop b;
-- mariadb:
alter table a drop key cb, drop b;
alter table a drop c;
alter table a add primary key (a);

-- case: a key's column changes its name
create table a (a int primary key, b int, key ab (a, b), unique (b));
alter table a change a x int;
alter table a rename column b to a, add key (a);

-- case: options of keys
create table a (a int, b varchar(20), key (a) using btree comment 'x', key b using btree (b), index c (a) key_block_size = 1, constraint uq unique (a, b), constraint unique key own (b), unique key n using btree (a));
alter table a add constraint named unique index (b(3));

-- case: more than a key holds [mariadb]
create table a (id int, t text not null, u text, unique (t), unique (u, id), unique (t(20)), key (t), key (u(5000)));
alter table a add v varchar(5000) character set utf8mb4, add unique (v), add key (v);
alter table a drop key t, modify u varchar(10);
create table b (a varchar(10), unique (a desc) using hash, unique (a));
alter table b add c int;
create table c (a varchar(1000) charset utf8mb4, b blob, key (a), key (b)) engine=myisam;
create table d (a tinytext charset utf8mb4, b mediumtext charset latin1, key (a), key (b)) engine=aria;
create table e (a text, unique (a)) with system versioning;

-- case: keys that are dropped and added with their columns
create table a (id int, x int, y varchar(20), key k (x, id), unique (x), key (y(5)));
alter table a drop x, add x int first;
alter table a change x z int, add x int;
alter table a modify y char(3);

-- case: shapes have SPATIAL keys [mysql]
create table a (p point not null srid 0, q geometry not null, key (p));
alter table a add key (q);

-- case: another key stands in for a foreign key's only if it ascends [mysql]
create table p (a int primary key);
create table c (a int, key k (a desc), foreign key (a) references p (a));

-- case: one column, two keys
create table a (id serial primary key, x int);
create table b (id int unique key key, x int);
create table c (id int key unique, x int);
create table d (x int);
alter table d add id int not null auto_increment unique primary key;

-- case: one key, asked for twice
create table a (id serial unique);
create table b (id int serial default value primary key);

-- case: the last word about visibility [mysql]
create table a (id int primary key, x int invisible visible, y int visible invisible);

-- case: PARTITION BY KEY without a column
create table a (id int primary key, b int) partition by key() partitions 2;
alter table a partition by key();

-- case: an index over a POINT [mysql]
create table a (id int primary key, p point not null, q point not null, key (p), spatial key (q));
create index b on a (q);
