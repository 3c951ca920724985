-- Revisions of batches.

-- name: begin_revision
insert into lockstep.revisions (source, token) values (%(source)s, %(token)s) returning id

-- name: revise_file
insert into lockstep.revised_files (revision, segment, ordinal, path, images, size, sha256)
select %(revision)s, s.id, %(ordinal)s, %(path)s, %(images)s, %(size)s, %(sha256)s
from lockstep.segments s
where (s.source, s.batch, s.database, s.name, s.schema_version)
    = (%(source)s, %(batch)s, %(database)s, %(name)s, %(schema_version)s)

-- name: open_revision
select r.id, s.batch, s.database, s.name, s.schema_version,
       array_agg(f.path order by f.ordinal) as paths,
       array_agg(f.images order by f.ordinal) as images,
       array_agg(f.size order by f.ordinal) as sizes,
       array_agg(f.sha256 order by f.ordinal) as digests
from lockstep.revisions r
join lockstep.revised_files f on f.revision = r.id
join lockstep.segments s on s.id = f.segment
where r.source = %(source)s and r.state = 'open'
group by r.id, s.id
order by s.id

-- name: last_revision
select coalesce(max(id), 0) as id from lockstep.revisions where source = %(source)s

-- name: end_revision
update lockstep.revisions set state = %(state)s, ended_at = clock_timestamp()
where source = %(source)s and id = %(id)s and state is distinct from %(state)s

-- name: revision_ended
select from lockstep.revisions
where source = %(source)s and id = %(id)s and state = %(state)s
