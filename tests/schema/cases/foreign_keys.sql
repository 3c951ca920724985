-- case: with keys of their own
create table p (id int primary key, x int, unique (x));
create table c (id int primary key, p int, x int, foreign key (p) references p (id), constraint cx foreign key (x) references p (x) on delete cascade on update set null);
alter table c drop foreign key c_ibfk_1;
alter table c add foreign key (p) references p (id) on update cascade, add constraint k foreign key idx (x) references p (x);
alter table c drop key p, add key (p, x);
alter table c drop foreign key cx, drop foreign key k;

-- case: a key of ours stands in for the server's
create table p (id int, x int, primary key (id), key (x, id));
create table c (a int, b int, key ab (a, b), foreign key (a) references p (id));
create table d (a int, b int, foreign key (a) references p (id));
alter table d add key own (a);
alter table d add key more (a, b);

-- case: inline references
create table p (id int primary key);
create table c (a int references p (id), b int references p (id) on delete cascade);
alter table c add d int references p (id);

-- case: parents are renamed
create table p (id int primary key);
create table c (id int primary key, p int, foreign key (p) references p (id));
rename table p to q;
alter table q rename column id to no;
rename table c to d;
alter table d add foreign key (id) references q (no);
alter table q change no number int, rename to r;

-- case: a table points at itself
create table t (id int primary key, parent int, foreign key (parent) references t (id));
alter table t rename column id to no;
rename table t to u;
alter table u add foreign key (parent) references u (no) on delete set null;

-- case: across databases
create database {db}_2;
create table {db}_2.p (id int primary key);
create table c (id int, foreign key (id) references {db}_2.p (id));
rename table {db}_2.p to {db}_2.q;
rename table c to {db}_2.c;
alter table {db}_2.c drop foreign key c_ibfk_1;

-- case: actions
create table p (id int primary key);
create table c (a int, b int, d int, e int,
  foreign key (a) references p (id) on delete restrict on update no action,
  foreign key (b) references p (id) on delete set null on update cascade,
  constraint d foreign key (d) references p (id) match simple on delete cascade,
  foreign key (e) references p (id) on update restrict);
alter table c drop foreign key d, drop column e, drop foreign key c_ibfk_3;

-- case: the parent comes later
set foreign_key_checks = 0;
create table c (id int primary key, p int, foreign key (p) references p (id));
create table p (id int primary key);
alter table c add q int, add constraint late foreign key (q) references nobody (id);
drop table p;

-- case: engines without foreign keys
create table p (id int primary key) engine=myisam;
create table c (id int, foreign key (id) references p (id)) engine=myisam;
alter table c add key (id);

-- case: columns of foreign keys
create table p (a int, b int, primary key (a, b));
create table c (x int, y int, constraint f foreign key (x, y) references p (a, b));
alter table c change x z int, rename column y to x;
set foreign_key_checks = 0;
alter table p add d int;
alter table c drop foreign key f, drop key f;
