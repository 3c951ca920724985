-- The ledger's schema, made by its migrations; see schema_dump.py.

create table lockstep.batches (
    id bigint not null generated always as identity,
    source text not null,
    state text not null,
    predecessor bigint,
    start_decision bigint,
    base bigint not null,
    token bigint not null,
    created_at timestamp with time zone not null default clock_timestamp(),
    start_base text not null,
    start_number bigint not null,
    start_offset bigint not null,
    start_gtid_set text not null,
    start_gtid_digest text not null generated always as (md5(start_gtid_set)) stored,
    start_server_uuid text not null,
    start_committed_at timestamp with time zone,
    end_base text,
    end_number bigint,
    end_offset bigint,
    end_gtid_set text,
    end_gtid_digest text generated always as (md5(end_gtid_set)) stored,
    end_server_uuid text,
    end_committed_at timestamp with time zone,
    witness_offset bigint,
    witness_length bigint,
    witness_crc32 bigint,
    witness_gtid text,
    witness_file_created bigint,
    changes bigint not null default 0,
    transactions bigint not null default 0,
    log_bytes bigint not null default 0,
    captured_at timestamp with time zone,
    merged_at timestamp with time zone,
    acknowledged_at timestamp with time zone,
    abandoned_at timestamp with time zone,
    abandoned_because text,
    follows bigint,
    by_gtid boolean not null default false,
    server_started_at timestamp with time zone,
    server_resets bigint,
    kind text not null default 'ordinary'::text,
    own_requests bigint,
    spark_requests bigint,
    forgotten_predecessor bigint,
    passed_statements bigint not null default 0,
    constraint batches_base_counts CHECK ((base >= 0)),
    constraint batches_catch_up_decided CHECK (((kind <> 'catching-up'::text) OR (start_decision IS NOT NULL))),
    constraint batches_end UNIQUE (source, id, end_base, end_number, end_offset, end_gtid_digest, end_server_uuid),
    constraint batches_end_not_before_start CHECK ((ROW(end_number, end_offset) >= ROW(start_number, start_offset))),
    constraint batches_end_recorded CHECK (
CASE state
    WHEN 'capturing'::text THEN (num_nonnulls(end_base, end_number, end_offset, end_gtid_set, end_server_uuid, end_committed_at, witness_offset, witness_length, witness_crc32, witness_gtid, witness_file_created, captured_at) = 0)
    WHEN 'abandoned'::text THEN (num_nulls(end_base, end_number, end_offset, end_gtid_set, end_server_uuid, witness_offset, witness_length, witness_crc32, witness_gtid, witness_file_created, captured_at) = ANY (ARRAY[0, 11]))
    ELSE (num_nulls(end_base, end_number, end_offset, end_gtid_set, end_server_uuid, witness_offset, witness_length, witness_crc32, witness_gtid, witness_file_created, captured_at) = 0)
END),
    constraint batches_follow_earlier CHECK ((follows < id)),
    constraint batches_follows FOREIGN KEY (source, follows) REFERENCES lockstep.batches(source, id) DEFERRABLE,
    constraint batches_follows_predecessor CHECK (((predecessor IS NULL) OR (NOT (follows IS DISTINCT FROM predecessor)))),
    constraint batches_forgotten_between CHECK (((forgotten_predecessor IS NULL) OR COALESCE(((follows < forgotten_predecessor) AND (forgotten_predecessor < id)), false))),
    constraint batches_kind_known CHECK ((kind = ANY (ARRAY['ordinary'::text, 'catching-up'::text]))),
    constraint batches_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint batches_life_whole CHECK (((server_started_at IS NULL) = (server_resets IS NULL))),
    constraint batches_moments CHECK ((((merged_at IS NOT NULL) = (state = ANY (ARRAY['merged'::text, 'acknowledged'::text]))) AND ((acknowledged_at IS NOT NULL) = (state = 'acknowledged'::text)) AND ((abandoned_at IS NOT NULL) = (state = 'abandoned'::text)) AND ((abandoned_because IS NOT NULL) = (state = 'abandoned'::text)))),
    constraint batches_of_source UNIQUE (source, id),
    constraint batches_one_origin CHECK ((num_nonnulls(predecessor, start_decision, forgotten_predecessor) = 1)),
    constraint batches_passed_statements_counts CHECK ((passed_statements >= 0)),
    constraint batches_pk PRIMARY KEY (id),
    constraint batches_requests_count CHECK (((own_requests >= 0) AND (spark_requests >= 0))),
    constraint batches_requests_told CHECK (((num_nonnulls(own_requests, spark_requests) = 0) OR ((state = 'acknowledged'::text) AND (own_requests IS NOT NULL)))),
    constraint batches_start_at_predecessors_end FOREIGN KEY (source, predecessor, start_base, start_number, start_offset, start_gtid_digest, start_server_uuid) REFERENCES lockstep.batches(source, id, end_base, end_number, end_offset, end_gtid_digest, end_server_uuid) DEFERRABLE,
    constraint batches_start_decision FOREIGN KEY (source, start_decision) REFERENCES lockstep.decisions(source, id),
    constraint batches_state_known CHECK ((state = ANY (ARRAY['capturing'::text, 'captured'::text, 'merged'::text, 'acknowledged'::text, 'abandoned'::text]))),
    constraint batches_totals_count CHECK (((changes >= 0) AND (transactions >= 0) AND (log_bytes >= 0) AND ((captured_at IS NOT NULL) OR ((changes = 0) AND (transactions = 0) AND (log_bytes = 0)))))
);

create table lockstep.capture_scopes (
    source text not null,
    batch bigint not null,
    include text[] not null,
    exclude text[] not null,
    constraint capture_scopes_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint capture_scopes_pk PRIMARY KEY (batch)
);

create table lockstep.catalogs (
    source text not null,
    catalog text not null,
    statement bigint not null,
    constraint catalogs_pk PRIMARY KEY (source, catalog),
    constraint catalogs_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint catalogs_statement_counts CHECK ((statement >= 0))
);

create table lockstep.consumers (
    id bigint not null generated always as identity,
    source text not null,
    name text not null,
    start_batch bigint,
    made_at timestamp with time zone not null default clock_timestamp(),
    dropped_at timestamp with time zone,
    dropped_by text,
    dropped_because text,
    constraint consumers_drop_explained CHECK (((num_nonnulls(dropped_at, dropped_by, dropped_because) = ANY (ARRAY[0, 3])) AND (btrim(dropped_because) <> ''::text))),
    constraint consumers_named CHECK ((btrim(name) <> ''::text)),
    constraint consumers_of_source UNIQUE (source, id),
    constraint consumers_pk PRIMARY KEY (id),
    constraint consumers_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint consumers_start FOREIGN KEY (source, start_batch) REFERENCES lockstep.batches(source, id)
);

create table lockstep.database_versions (
    id bigint not null generated always as identity,
    source text not null,
    name text not null,
    batch bigint not null,
    since_base text not null,
    since_number bigint not null,
    since_offset bigint not null,
    charset text,
    collation_name text,
    statement bigint,
    code json,
    constraint database_versions_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint database_versions_code CHECK (((code IS NULL) OR (charset IS NOT NULL))),
    constraint database_versions_pk PRIMARY KEY (id),
    constraint database_versions_statement FOREIGN KEY (source, statement) REFERENCES lockstep.schema_statements(source, id),
    constraint database_versions_whole CHECK (((charset IS NULL) = (collation_name IS NULL)))
);

create table lockstep.decisions (
    id bigint not null generated always as identity,
    source text not null,
    token bigint not null,
    kind text not null,
    rule text not null,
    reason text not null,
    facts jsonb not null,
    author text not null,
    decided_at timestamp with time zone not null default clock_timestamp(),
    follows bigint,
    continuity text,
    override bigint,
    gap_tables text[] not null default '{}'::text[],
    recovery text,
    hint text not null default ''::text,
    head_base text,
    head_number bigint,
    head_offset bigint,
    structures jsonb,
    constraint decisions_continuity_known CHECK ((continuity = ANY (ARRAY['contiguous'::text, 'overlap'::text, 'gap'::text]))),
    constraint decisions_continuity_told CHECK (((follows IS NULL) = (continuity IS NULL))),
    constraint decisions_follows FOREIGN KEY (source, follows) REFERENCES lockstep.batches(source, id),
    constraint decisions_gap_named CHECK (((NOT (continuity IS DISTINCT FROM 'gap'::text)) = (cardinality(gap_tables) > 0))),
    constraint decisions_head_told CHECK (((num_nonnulls(head_base, head_number, head_offset) = 0) OR ((kind = 'idle'::text) AND (num_nonnulls(head_base, head_number, head_offset) = 3)))),
    constraint decisions_hint_told CHECK (((hint = ''::text) OR (recovery IS NOT NULL))),
    constraint decisions_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint decisions_of_source UNIQUE (source, id),
    constraint decisions_override FOREIGN KEY (source, override) REFERENCES lockstep.overrides(source, id),
    constraint decisions_pk PRIMARY KEY (id),
    constraint decisions_recovery_known CHECK ((recovery = ANY (ARRAY['configuration'::text, 'retry'::text, 'operator'::text]))),
    constraint decisions_recovery_told CHECK (((kind = ANY (ARRAY['refusal'::text, 'failure'::text])) = (recovery IS NOT NULL))),
    constraint decisions_structures_told CHECK (((kind = 'structures'::text) = (structures IS NOT NULL)))
);

create table lockstep.deliveries (
    id bigint not null generated always as identity,
    source text not null,
    consumer bigint not null,
    first_batch bigint not null,
    last_batch bigint not null,
    state text not null default 'out'::text,
    delivered_at timestamp with time zone not null default clock_timestamp(),
    ended_at timestamp with time zone,
    constraint deliveries_batches_ascend CHECK ((first_batch <= last_batch)),
    constraint deliveries_consumer FOREIGN KEY (source, consumer) REFERENCES lockstep.consumers(source, id),
    constraint deliveries_first_batch FOREIGN KEY (source, first_batch) REFERENCES lockstep.batches(source, id),
    constraint deliveries_last_batch FOREIGN KEY (source, last_batch) REFERENCES lockstep.batches(source, id),
    constraint deliveries_moments CHECK (((ended_at IS NULL) = (state = 'out'::text))),
    constraint deliveries_pk PRIMARY KEY (id),
    constraint deliveries_state_known CHECK ((state = ANY (ARRAY['out'::text, 'acknowledged'::text, 'rolled back'::text])))
);

create table lockstep.extents (
    id bigint not null generated always as identity,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    begins_base text,
    begins_number bigint,
    begins_offset bigint,
    empty_base text,
    empty_number bigint,
    empty_offset bigint,
    constraint extents_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint extents_begins_whole CHECK ((num_nonnulls(begins_base, begins_number, begins_offset) = ANY (ARRAY[0, 3]))),
    constraint extents_empty_of_partial CHECK (((empty_base IS NULL) OR (begins_base IS NOT NULL))),
    constraint extents_empty_whole CHECK ((num_nonnulls(empty_base, empty_number, empty_offset) = ANY (ARRAY[0, 3]))),
    constraint extents_pk PRIMARY KEY (id)
);

create table lockstep.forgotten (
    source text not null,
    through bigint not null,
    token bigint not null,
    noted_at timestamp with time zone not null default clock_timestamp(),
    unlisted_at timestamp with time zone,
    deleted_at timestamp with time zone,
    pruned_at timestamp with time zone,
    constraint forgotten_batch FOREIGN KEY (source, through) REFERENCES lockstep.batches(source, id),
    constraint forgotten_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint forgotten_moments CHECK (((deleted_at IS NULL) OR (unlisted_at IS NOT NULL))),
    constraint forgotten_pk PRIMARY KEY (source, through),
    constraint forgotten_pruned_deleted CHECK (((pruned_at IS NULL) OR (deleted_at IS NOT NULL)))
);

create table lockstep.handovers (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    generation integer not null,
    mirror text not null,
    delta_version bigint,
    shows integer,
    before_generation integer not null,
    before_mirror text not null,
    constraint handovers_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint handovers_generation CHECK ((generation = (before_generation + 1))),
    constraint handovers_pk PRIMARY KEY (batch, database, name),
    constraint handovers_shows FOREIGN KEY (source, database, name, shows) REFERENCES lockstep.table_versions(source, database, name, version),
    constraint handovers_table FOREIGN KEY (source, database, name) REFERENCES lockstep.table_states(source, database, name),
    constraint handovers_whole CHECK (((delta_version IS NULL) = (shows IS NULL)))
);

create table lockstep.inherited (
    source text not null,
    above bigint not null,
    through bigint not null,
    constraint inherited_pk PRIMARY KEY (source, above),
    constraint inherited_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint inherited_span CHECK (((above >= 0) AND (above < through)))
);

create table lockstep.leases (
    source text not null,
    token bigint not null,
    holder text not null,
    dagster_run text,
    backend_pid integer not null,
    taken_at timestamp with time zone not null default clock_timestamp(),
    constraint leases_pk PRIMARY KEY (source, token),
    constraint leases_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint leases_token_counts CHECK ((token > 0))
);

create table lockstep.ledger (
    id uuid not null,
    made_at timestamp with time zone not null default clock_timestamp(),
    alone boolean not null default true,
    constraint ledger_alone UNIQUE (alone),
    constraint ledger_alone_counts CHECK (alone),
    constraint ledger_pk PRIMARY KEY (id)
);

create table lockstep.load_chunks (
    load bigint not null,
    number integer not null,
    after json,
    through json,
    low_base text,
    low_number bigint,
    low_offset bigint,
    high_base text,
    high_number bigint,
    high_offset bigint,
    rows bigint,
    seconds double precision,
    constraint load_chunks_begin CHECK (((number = 0) = (after IS NULL))),
    constraint load_chunks_counts CHECK ((number >= 0)),
    constraint load_chunks_load FOREIGN KEY (load) REFERENCES lockstep.loads(id),
    constraint load_chunks_pk PRIMARY KEY (load, number),
    constraint load_chunks_read CHECK ((num_nonnulls(low_base, low_number, low_offset, high_base, high_number, high_offset, rows, seconds) = ANY (ARRAY[0, 8]))),
    constraint load_chunks_rows_count CHECK (((rows >= 0) AND (seconds >= (0)::double precision)))
);

create table lockstep.load_files (
    load bigint not null,
    number integer not null,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null,
    constraint load_files_chunk FOREIGN KEY (load, number) REFERENCES lockstep.load_chunks(load, number),
    constraint load_files_counts CHECK (((images > 0) AND (size > 0))),
    constraint load_files_path CHECK ((path <> ''::text)),
    constraint load_files_pk PRIMARY KEY (load, number, ordinal)
);

create table lockstep.loads (
    id bigint not null generated always as identity,
    source text not null,
    token bigint not null,
    database text not null,
    name text not null,
    author text not null,
    reason text not null,
    ordered_at timestamp with time zone not null default clock_timestamp(),
    schema json,
    server_uuid text,
    low_base text,
    low_number bigint,
    low_offset bigint,
    estimated_rows bigint,
    followed_batch bigint,
    followed_sequence bigint,
    followed_version integer,
    joined_batch bigint,
    void text,
    constraint loads_authored CHECK (((btrim(author) <> ''::text) AND (btrim(reason) <> ''::text))),
    constraint loads_end_once CHECK (((joined_batch IS NULL) OR (void IS NULL))),
    constraint loads_estimate_counts CHECK ((estimated_rows >= 0)),
    constraint loads_followed CHECK ((num_nonnulls(followed_batch, followed_sequence, followed_version) = ANY (ARRAY[0, 3]))),
    constraint loads_followed_batch FOREIGN KEY (source, followed_batch) REFERENCES lockstep.batches(source, id),
    constraint loads_followed_version FOREIGN KEY (source, database, name, followed_version) REFERENCES lockstep.table_versions(source, database, name, version),
    constraint loads_followed_while_read CHECK (((followed_batch IS NULL) OR (schema IS NOT NULL))),
    constraint loads_joined_batch FOREIGN KEY (source, joined_batch) REFERENCES lockstep.batches(source, id),
    constraint loads_joined_behind CHECK ((joined_batch >= followed_batch)),
    constraint loads_joined_followed CHECK (((joined_batch IS NULL) OR (followed_batch IS NOT NULL))),
    constraint loads_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint loads_pk PRIMARY KEY (id),
    constraint loads_reading CHECK ((num_nonnulls(schema, server_uuid, low_base, low_number, low_offset) = ANY (ARRAY[0, 5]))),
    constraint loads_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint loads_void_explained CHECK ((btrim(void) <> ''::text))
);

create table lockstep.looked (
    source text not null,
    folder text not null,
    delta_version bigint not null,
    constraint looked_pk PRIMARY KEY (source, folder),
    constraint looked_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint looked_version_counts CHECK ((delta_version >= 0))
);

create table lockstep.overrides (
    id bigint not null generated always as identity,
    source text not null,
    token bigint not null,
    place text not null,
    reason text not null,
    author text not null,
    chosen_at timestamp with time zone not null default clock_timestamp(),
    constraint overrides_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint overrides_of_source UNIQUE (source, id),
    constraint overrides_pk PRIMARY KEY (id),
    constraint overrides_place_named CHECK ((place <> ''::text)),
    constraint overrides_reasoned CHECK ((btrim(reason) <> ''::text))
);

create table lockstep.prepared (
    id bigint not null generated always as identity,
    source text not null,
    batch bigint not null,
    format_id bigint not null,
    gtrid bytea not null,
    bqual bytea not null,
    position text not null,
    path text,
    images bigint,
    size bigint,
    sha256 text,
    ended_by bigint,
    committed boolean,
    abandoned boolean not null default false,
    constraint prepared_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint prepared_end_live CHECK (((ended_by IS NULL) OR (NOT abandoned))),
    constraint prepared_end_not_before CHECK ((ended_by >= batch)),
    constraint prepared_end_whole CHECK (((ended_by IS NULL) = (committed IS NULL))),
    constraint prepared_ended_by FOREIGN KEY (source, ended_by) REFERENCES lockstep.batches(source, id),
    constraint prepared_file_counts CHECK (((images >= 0) AND (size >= 0))),
    constraint prepared_file_digest CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    constraint prepared_file_whole CHECK ((num_nonnulls(path, images, size, sha256) = ANY (ARRAY[0, 4]))),
    constraint prepared_once UNIQUE (batch, format_id, gtrid, bqual),
    constraint prepared_pk PRIMARY KEY (id),
    constraint prepared_xid_fits CHECK (((octet_length(gtrid) <= 64) AND (octet_length(bqual) <= 64)))
);

create table lockstep.registrations (
    source text not null,
    catalog text not null,
    database text not null,
    name text not null,
    schema_name text not null,
    table_name text not null,
    location text not null,
    content text,
    shows integer,
    constraint registrations_made CHECK (((content IS NULL) = (shows IS NULL))),
    constraint registrations_name UNIQUE (source, catalog, schema_name, table_name),
    constraint registrations_pk PRIMARY KEY (source, catalog, database, name),
    constraint registrations_source FOREIGN KEY (source) REFERENCES lockstep.sources(name)
);

create table lockstep.revised_files (
    revision bigint not null,
    segment bigint not null,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null,
    constraint revised_files_counts CHECK (((ordinal >= 0) AND (images >= 0) AND (size >= 0))),
    constraint revised_files_digest CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    constraint revised_files_once UNIQUE (revision, segment, path),
    constraint revised_files_pk PRIMARY KEY (revision, segment, ordinal),
    constraint revised_files_revision FOREIGN KEY (revision) REFERENCES lockstep.revisions(id),
    constraint revised_files_segment FOREIGN KEY (segment) REFERENCES lockstep.segments(id)
);

create table lockstep.revisions (
    id bigint not null generated always as identity,
    source text not null,
    token bigint not null,
    state text not null default 'open'::text,
    begun_at timestamp with time zone not null default clock_timestamp(),
    ended_at timestamp with time zone,
    constraint revisions_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint revisions_moments CHECK (((ended_at IS NULL) = (state = 'open'::text))),
    constraint revisions_pk PRIMARY KEY (id),
    constraint revisions_state_known CHECK ((state = ANY (ARRAY['open'::text, 'settled'::text, 'given up'::text])))
);

create table lockstep.schema_migrations (
    number integer not null,
    name text not null,
    sha256 text not null,
    applied_at timestamp with time zone not null default now(),
    constraint schema_migrations_pk PRIMARY KEY (number)
);

create table lockstep.schema_statements (
    id bigint not null generated always as identity,
    source text not null,
    batch bigint not null,
    begin_base text not null,
    begin_number bigint not null,
    begin_offset bigint not null,
    end_base text not null,
    end_number bigint not null,
    end_offset bigint not null,
    gtid text not null,
    committed_at timestamp with time zone,
    database json not null,
    text json not null,
    context json not null,
    outcome text not null,
    effects json not null,
    constraint schema_statements_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint schema_statements_of_source UNIQUE (source, id),
    constraint schema_statements_outcome_known CHECK ((outcome = ANY (ARRAY['followed'::text, 'partly'::text, 'not understood'::text]))),
    constraint schema_statements_pk PRIMARY KEY (id)
);

create table lockstep.segment_files (
    segment bigint not null,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null,
    constraint segment_files_counts CHECK (((ordinal >= 0) AND (images >= 0) AND (size >= 0))),
    constraint segment_files_digest CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    constraint segment_files_once UNIQUE (segment, path),
    constraint segment_files_pk PRIMARY KEY (segment, ordinal),
    constraint segment_files_segment FOREIGN KEY (segment) REFERENCES lockstep.segments(id)
);

create table lockstep.segments (
    id bigint not null generated always as identity,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    schema_version integer not null,
    inserted bigint not null,
    updated bigint not null,
    deleted bigint not null,
    first_sequence bigint not null,
    last_sequence bigint not null,
    constraint segments_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint segments_counts CHECK (((inserted >= 0) AND (updated >= 0) AND (deleted >= 0))),
    constraint segments_once UNIQUE (batch, database, name, schema_version),
    constraint segments_pk PRIMARY KEY (id),
    constraint segments_sequences_ascend CHECK ((first_sequence <= last_sequence)),
    constraint segments_table FOREIGN KEY (source, database, name) REFERENCES lockstep.table_states(source, database, name),
    constraint segments_version FOREIGN KEY (source, database, name, schema_version) REFERENCES lockstep.table_versions(source, database, name, version)
);

create table lockstep.set_witnesses (
    source text not null,
    batch bigint not null,
    ordinal integer not null,
    origin text not null,
    gtid text not null,
    committed_at bigint not null,
    digest text not null,
    constraint set_witnesses_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint set_witnesses_moment_counts CHECK ((committed_at >= 0)),
    constraint set_witnesses_once UNIQUE (batch, origin),
    constraint set_witnesses_ordinal_counts CHECK ((ordinal >= 0)),
    constraint set_witnesses_pk PRIMARY KEY (batch, ordinal),
    constraint set_witnesses_told CHECK (((committed_at = 0) = (digest <> ''::text)))
);

create table lockstep.snapshot_files (
    snapshot bigint not null,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null,
    constraint snapshot_files_counts CHECK (((ordinal >= 0) AND (images >= 0) AND (size >= 0))),
    constraint snapshot_files_digest CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    constraint snapshot_files_once UNIQUE (snapshot, path),
    constraint snapshot_files_pk PRIMARY KEY (snapshot, ordinal),
    constraint snapshot_files_snapshot FOREIGN KEY (snapshot) REFERENCES lockstep.snapshots(id)
);

create table lockstep.snapshots (
    id bigint not null generated always as identity,
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    version integer not null,
    low_sequence bigint not null,
    columns text[],
    constraint snapshots_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint snapshots_once UNIQUE (batch, database, name),
    constraint snapshots_pk PRIMARY KEY (id),
    constraint snapshots_table FOREIGN KEY (source, database, name) REFERENCES lockstep.table_states(source, database, name),
    constraint snapshots_version FOREIGN KEY (source, database, name, version) REFERENCES lockstep.table_versions(source, database, name, version)
);

create table lockstep.source_files (
    source text not null,
    batch bigint not null,
    name text not null,
    ordinal integer not null,
    path text not null,
    images bigint not null,
    size bigint not null,
    sha256 text not null,
    constraint source_files_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint source_files_counts CHECK (((ordinal >= 0) AND (images >= 0) AND (size >= 0))),
    constraint source_files_digest CHECK ((sha256 ~ '^[0-9a-f]{64}$'::text)),
    constraint source_files_name_known CHECK ((name = ANY (ARRAY['_ddl'::text, '_transactions'::text]))),
    constraint source_files_once UNIQUE (batch, name, path),
    constraint source_files_pk PRIMARY KEY (batch, name, ordinal)
);

create table lockstep.sources (
    name text not null,
    lock_key integer not null generated always as identity,
    token bigint not null default 0,
    first_seen timestamp with time zone not null default now(),
    beat_at timestamp with time zone,
    gtids_off_at timestamp with time zone,
    constraint sources_lock_key UNIQUE (lock_key),
    constraint sources_pk PRIMARY KEY (name),
    constraint sources_token_counts CHECK ((token >= 0))
);

create table lockstep.spark_clients (
    source text not null,
    client uuid not null,
    token bigint not null,
    constraint spark_clients_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint spark_clients_pk PRIMARY KEY (source, client)
);

create table lockstep.table_events (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    ordinal integer not null,
    kind text not null,
    sequence bigint not null,
    version integer not null,
    place_base text not null,
    place_number bigint not null,
    place_offset bigint not null,
    reason text,
    constraint table_events_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint table_events_kind_known CHECK ((kind = ANY (ARRAY['created'::text, 'changed'::text, 'truncated'::text, 'dropped'::text, 'reread'::text, 'refreshed'::text, 'rebuilt'::text]))),
    constraint table_events_ordinal_counts CHECK ((ordinal >= 0)),
    constraint table_events_pk PRIMARY KEY (batch, database, name, ordinal),
    constraint table_events_reread_explained CHECK (((kind <> ALL (ARRAY['reread'::text, 'refreshed'::text, 'rebuilt'::text])) OR (reason IS NOT NULL))),
    constraint table_events_table FOREIGN KEY (source, database, name) REFERENCES lockstep.table_states(source, database, name),
    constraint table_events_version FOREIGN KEY (source, database, name, version) REFERENCES lockstep.table_versions(source, database, name, version)
);

create table lockstep.table_life (
    id bigint not null generated always as identity,
    source text not null,
    database text not null,
    name text not null,
    event text not null,
    life text not null,
    batch bigint,
    token bigint,
    told jsonb not null,
    at timestamp with time zone not null default clock_timestamp(),
    constraint table_life_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint table_life_event_known CHECK ((event = ANY (ARRAY['recorded'::text, 'followed'::text, 'load begun'::text, 'loaded'::text, 'dropped'::text, 'quarantined'::text, 'paused'::text, 'reloaded'::text, 'rejoined'::text, 'mirror written'::text, 'mirror handed over'::text, 'mirror replaced'::text, 'mirror removed'::text, 'lake restarted'::text, 'batch abandoned'::text]))),
    constraint table_life_known CHECK ((life = ANY (ARRAY['active'::text, 'loading'::text, 'quarantined'::text, 'paused'::text, 'dropped'::text]))),
    constraint table_life_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint table_life_pk PRIMARY KEY (id),
    constraint table_life_told CHECK (((event = 'recorded'::text) OR (token IS NOT NULL)))
);

create table lockstep.table_orders (
    id bigint not null generated always as identity,
    source text not null,
    token bigint not null,
    database text not null,
    name text not null,
    kind text not null,
    author text not null,
    reason text not null,
    ordered_at timestamp with time zone not null default clock_timestamp(),
    schema json,
    done_batch bigint,
    renames json,
    constraint table_orders_authored CHECK ((btrim(author) <> ''::text)),
    constraint table_orders_done_batch FOREIGN KEY (source, done_batch) REFERENCES lockstep.batches(source, id),
    constraint table_orders_kind_known CHECK ((kind = ANY (ARRAY['pause'::text, 'resume'::text, 'release'::text, 'reload'::text]))),
    constraint table_orders_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint table_orders_pause_at_once CHECK (((kind <> 'pause'::text) OR (done_batch IS NULL))),
    constraint table_orders_pk PRIMARY KEY (id),
    constraint table_orders_renames_released CHECK (((renames IS NULL) OR ((schema IS NOT NULL) AND (json_typeof(renames) = 'array'::text)))),
    constraint table_orders_schema_released CHECK (((schema IS NULL) OR (kind = 'release'::text))),
    constraint table_orders_table FOREIGN KEY (source, database, name) REFERENCES lockstep.table_states(source, database, name)
);

create table lockstep.table_proofs (
    source text not null,
    database text not null,
    name text not null,
    whole boolean not null,
    compared_at timestamp with time zone not null default clock_timestamp(),
    differing bigint not null,
    proven_at timestamp with time zone,
    proof text,
    rows bigint,
    at_base text,
    at_number bigint,
    at_offset bigint,
    gtid_set text,
    constraint table_proofs_differing_counts CHECK ((differing >= 0)),
    constraint table_proofs_differing_or_proven CHECK (((differing > 0) OR ((proven_at IS NOT NULL) AND (proven_at = compared_at)))),
    constraint table_proofs_known CHECK ((proof = ANY (ARRAY['exact'::text, 'prefix'::text, 'rows'::text, 'sample'::text]))),
    constraint table_proofs_pk PRIMARY KEY (source, database, name, whole),
    constraint table_proofs_proven_whole CHECK ((num_nonnulls(proven_at, proof, rows, at_base, at_number, at_offset, gtid_set) = ANY (ARRAY[0, 7]))),
    constraint table_proofs_rows_count CHECK ((rows >= 0)),
    constraint table_proofs_source FOREIGN KEY (source) REFERENCES lockstep.sources(name)
);

create table lockstep.table_states (
    source text not null,
    database text not null,
    name text not null,
    condition text not null,
    generation integer not null,
    mirror text not null,
    changelog text not null,
    reason text,
    hint text,
    position text,
    mirror_version integer,
    changelog_generation integer not null default 1,
    stopped_batch bigint,
    stopped_base text,
    stopped_number bigint,
    stopped_offset bigint,
    behind_batch bigint,
    adopted bigint,
    remedy text,
    mirror_generation integer not null default 1,
    event bigint,
    constraint table_states_adopted_counts CHECK ((adopted >= 0)),
    constraint table_states_behind_batch FOREIGN KEY (source, behind_batch) REFERENCES lockstep.batches(source, id),
    constraint table_states_changelog_counts CHECK ((changelog_generation > 0)),
    constraint table_states_condition_known CHECK ((condition = ANY (ARRAY['active'::text, 'loading'::text, 'quarantined'::text, 'paused'::text, 'dropped'::text]))),
    constraint table_states_event FOREIGN KEY (event) REFERENCES lockstep.table_life(id),
    constraint table_states_generation_counts CHECK ((generation > 0)),
    constraint table_states_mirror_generation_counts CHECK ((mirror_generation > 0)),
    constraint table_states_mirror_version FOREIGN KEY (source, database, name, mirror_version) REFERENCES lockstep.table_versions(source, database, name, version),
    constraint table_states_pk PRIMARY KEY (source, database, name),
    constraint table_states_quarantine_explained CHECK ((num_nonnulls(reason, hint, "position") =
CASE
    WHEN (condition = ANY (ARRAY['quarantined'::text, 'paused'::text])) THEN 3
    ELSE 0
END)),
    constraint table_states_remedy_known CHECK ((remedy = ANY (ARRAY['catch-up'::text, 'rewrite-mirror'::text, 'released-resnapshot'::text, 'resnapshot'::text, 'backfill'::text]))),
    constraint table_states_remedy_told CHECK (
CASE condition
    WHEN 'quarantined'::text THEN (remedy IS NOT NULL)
    WHEN 'paused'::text THEN true
    ELSE (remedy IS NULL)
END),
    constraint table_states_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint table_states_stopped CHECK ((num_nonnulls(stopped_batch, stopped_base, stopped_number, stopped_offset) =
CASE
    WHEN (condition = ANY (ARRAY['active'::text, 'loading'::text])) THEN 0
    WHEN ((condition = ANY (ARRAY['quarantined'::text, 'paused'::text])) AND (stopped_batch IS NULL)) THEN 0
    ELSE 4
END)),
    constraint table_states_stopped_batch FOREIGN KEY (source, stopped_batch) REFERENCES lockstep.batches(source, id)
);

create table lockstep.table_versions (
    source text not null,
    database text not null,
    name text not null,
    version integer not null,
    previous integer generated always as (NULLIF((version - 1), 0)) stored,
    batch bigint not null,
    structure jsonb,
    since_base text not null,
    since_number bigint not null,
    since_offset bigint not null,
    knowledge text not null,
    origin text not null,
    schema json,
    fingerprint text,
    columns_from text[],
    statement bigint,
    reason text,
    generation integer not null,
    constraint table_versions_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint table_versions_columns_told CHECK (((knowledge = 'known'::text) OR (columns_from IS NULL))),
    constraint table_versions_generation_counts CHECK ((generation > 0)),
    constraint table_versions_knowledge_known CHECK ((knowledge = ANY (ARRAY['known'::text, 'dropped'::text, 'unknown'::text]))),
    constraint table_versions_no_gap FOREIGN KEY (source, database, name, previous) REFERENCES lockstep.table_versions(source, database, name, version),
    constraint table_versions_number_counts CHECK ((version > 0)),
    constraint table_versions_origin_known CHECK ((origin = ANY (ARRAY['baseline'::text, 'statement'::text, 'table map'::text, 'carried'::text, 'person'::text]))),
    constraint table_versions_pk PRIMARY KEY (source, database, name, version),
    constraint table_versions_schema_told CHECK (((num_nonnulls(schema, structure) =
CASE knowledge
    WHEN 'known'::text THEN 1
    ELSE 0
END) AND ((schema IS NULL) = (fingerprint IS NULL)))),
    constraint table_versions_source FOREIGN KEY (source) REFERENCES lockstep.sources(name),
    constraint table_versions_statement FOREIGN KEY (source, statement) REFERENCES lockstep.schema_statements(source, id),
    constraint table_versions_unknown_explained CHECK (((knowledge = 'unknown'::text) = (reason IS NOT NULL)))
);

create table lockstep.upkept (
    source text not null,
    mirror text not null,
    delta_version bigint not null,
    shows bigint not null,
    token bigint not null,
    noted_at timestamp with time zone not null default clock_timestamp(),
    constraint upkept_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint upkept_pk PRIMARY KEY (source, mirror, delta_version),
    constraint upkept_shows_earlier CHECK (((shows >= 0) AND (shows < delta_version)))
);

create table lockstep.version_sets (
    source text not null,
    batch bigint not null,
    database text not null,
    name text not null,
    mirror text,
    delta_version bigint,
    table_id text,
    missing text,
    together bigint,
    constraint version_sets_batch FOREIGN KEY (source, batch) REFERENCES lockstep.batches(source, id),
    constraint version_sets_pk PRIMARY KEY (batch, database, name),
    constraint version_sets_table FOREIGN KEY (source, database, name) REFERENCES lockstep.table_states(source, database, name),
    constraint version_sets_together CHECK (((NOT (missing IS DISTINCT FROM 'together'::text)) = (together IS NOT NULL))),
    constraint version_sets_told CHECK ((((missing IS NULL) AND (num_nonnulls(mirror, delta_version) = 2)) OR ((missing IS NOT NULL) AND (num_nonnulls(mirror, delta_version, table_id) = 0))))
);

create table lockstep.writes (
    id bigint not null generated always as identity,
    source text not null,
    token bigint not null,
    database text not null,
    name text not null,
    app_id text not null,
    txn_version bigint not null default nextval('lockstep.txn_versions'::regclass),
    first_batch bigint not null,
    last_batch bigint not null,
    step text not null,
    intended_at timestamp with time zone not null default clock_timestamp(),
    delta_version bigint,
    settled_at timestamp with time zone,
    given_up_at timestamp with time zone,
    reason text,
    mirror text,
    table_id text,
    constraint writes_batches_ascend CHECK ((first_batch <= last_batch)),
    constraint writes_delta_version_counts CHECK ((delta_version >= 0)),
    constraint writes_delta_version_once UNIQUE (app_id, delta_version),
    constraint writes_first_batch FOREIGN KEY (source, first_batch) REFERENCES lockstep.batches(source, id),
    constraint writes_given_up_or_settled CHECK (((settled_at IS NULL) OR (given_up_at IS NULL))),
    constraint writes_last_batch FOREIGN KEY (source, last_batch) REFERENCES lockstep.batches(source, id),
    constraint writes_lease FOREIGN KEY (source, token) REFERENCES lockstep.leases(source, token),
    constraint writes_mirror_settled CHECK (((mirror IS NULL) OR (settled_at IS NOT NULL))),
    constraint writes_pk PRIMARY KEY (id),
    constraint writes_reason_settled CHECK (((reason IS NULL) OR (settled_at IS NOT NULL))),
    constraint writes_settled_whole CHECK (((delta_version IS NULL) = (settled_at IS NULL))),
    constraint writes_table FOREIGN KEY (source, database, name) REFERENCES lockstep.table_states(source, database, name),
    constraint writes_table_id_of_mirror CHECK (((table_id IS NULL) OR (mirror IS NOT NULL))),
    constraint writes_transaction_once UNIQUE (app_id, txn_version)
);

CREATE INDEX batches_by_decision ON lockstep.batches USING btree (source, start_decision) WHERE (start_decision IS NOT NULL);

CREATE INDEX batches_by_follows ON lockstep.batches USING btree (source, follows) WHERE (follows IS NOT NULL);

CREATE INDEX batches_by_predecessor ON lockstep.batches USING btree (source, predecessor) WHERE (predecessor IS NOT NULL);

CREATE INDEX batches_by_token ON lockstep.batches USING btree (source, token);

CREATE UNIQUE INDEX batches_one_capturing ON lockstep.batches USING btree (source) WHERE (state = 'capturing'::text);

CREATE UNIQUE INDEX batches_one_chain ON lockstep.batches USING btree (source) WHERE ((follows IS NULL) AND (state <> 'abandoned'::text));

CREATE UNIQUE INDEX batches_one_per_decision ON lockstep.batches USING btree (start_decision) WHERE (state <> 'abandoned'::text);

CREATE UNIQUE INDEX batches_one_successor ON lockstep.batches USING btree (follows) WHERE (state <> 'abandoned'::text);

CREATE INDEX batches_unfinished ON lockstep.batches USING btree (source, id) WHERE (state = ANY (ARRAY['capturing'::text, 'captured'::text, 'merged'::text]));

CREATE INDEX capture_scopes_of_source ON lockstep.capture_scopes USING btree (source, batch);

CREATE INDEX consumers_by_start ON lockstep.consumers USING btree (source, start_batch) WHERE (start_batch IS NOT NULL);

CREATE UNIQUE INDEX consumers_name_once ON lockstep.consumers USING btree (source, name) WHERE (dropped_at IS NULL);

CREATE INDEX database_versions_at ON lockstep.database_versions USING btree (source, name, batch, since_number, since_offset, id);

CREATE INDEX database_versions_by_batch ON lockstep.database_versions USING btree (source, batch);

CREATE INDEX decisions_by_follows ON lockstep.decisions USING btree (source, follows) WHERE (follows IS NOT NULL);

CREATE INDEX decisions_by_token ON lockstep.decisions USING btree (source, token);

CREATE INDEX decisions_on_structures ON lockstep.decisions USING btree (source, id) WHERE (kind = 'structures'::text);

CREATE INDEX deliveries_by_first ON lockstep.deliveries USING btree (source, first_batch);

CREATE INDEX deliveries_by_last ON lockstep.deliveries USING btree (source, last_batch);

CREATE INDEX deliveries_done ON lockstep.deliveries USING btree (consumer, last_batch) WHERE (state = 'acknowledged'::text);

CREATE INDEX deliveries_given ON lockstep.deliveries USING btree (consumer, last_batch) WHERE (state <> 'rolled back'::text);

CREATE INDEX deliveries_out ON lockstep.deliveries USING btree (consumer, id) WHERE (state = 'out'::text);

CREATE INDEX extents_by_batch ON lockstep.extents USING btree (source, batch);

CREATE INDEX extents_newest ON lockstep.extents USING btree (source, database, name, batch, id);

CREATE INDEX loads_followed ON lockstep.loads USING btree (followed_batch) WHERE (followed_batch IS NOT NULL);

CREATE INDEX loads_joined ON lockstep.loads USING btree (joined_batch) WHERE (joined_batch IS NOT NULL);

CREATE UNIQUE INDEX loads_one_open ON lockstep.loads USING btree (source, database, name) WHERE ((joined_batch IS NULL) AND (void IS NULL));

CREATE INDEX prepared_by_end ON lockstep.prepared USING btree (source, ended_by) WHERE (ended_by IS NOT NULL);

CREATE UNIQUE INDEX prepared_open_once ON lockstep.prepared USING btree (source, format_id, gtrid, bqual) WHERE ((ended_by IS NULL) AND (NOT abandoned));

CREATE INDEX revised_files_of_segment ON lockstep.revised_files USING btree (segment);

CREATE UNIQUE INDEX revisions_one_open ON lockstep.revisions USING btree (source) WHERE (state = 'open'::text);

CREATE INDEX schema_statements_by_batch ON lockstep.schema_statements USING btree (source, batch);

CREATE INDEX segments_of_table ON lockstep.segments USING btree (source, database, name, batch);

CREATE INDEX set_witnesses_newest ON lockstep.set_witnesses USING btree (source, origin, batch);

CREATE INDEX table_life_by_stop ON lockstep.table_life USING btree (source, (((told ->> 'stopped_batch'::text))::bigint));

CREATE INDEX table_life_by_token ON lockstep.table_life USING btree (source, token) WHERE (token IS NOT NULL);

CREATE INDEX table_life_of_batch ON lockstep.table_life USING btree (batch) WHERE (batch IS NOT NULL);

CREATE INDEX table_life_of_table ON lockstep.table_life USING btree (source, database, name, id);

CREATE INDEX table_orders_done ON lockstep.table_orders USING btree (done_batch) WHERE (done_batch IS NOT NULL);

CREATE INDEX table_orders_newest ON lockstep.table_orders USING btree (source, database, name, id);

CREATE INDEX table_states_by_behind ON lockstep.table_states USING btree (source, behind_batch) WHERE (behind_batch IS NOT NULL);

CREATE INDEX table_states_by_stopped ON lockstep.table_states USING btree (source, stopped_batch) WHERE (stopped_batch IS NOT NULL);

CREATE INDEX table_versions_at ON lockstep.table_versions USING btree (source, database, name, batch, since_number, since_offset, version);

CREATE INDEX table_versions_by_batch ON lockstep.table_versions USING btree (source, batch);

CREATE INDEX table_versions_first ON lockstep.table_versions USING btree (source, database, name) WHERE (version = 1);

CREATE INDEX upkept_by_token ON lockstep.upkept USING btree (source, token);

CREATE INDEX upkept_of_version ON lockstep.upkept USING btree (source, mirror, shows, delta_version);

CREATE INDEX version_sets_of_table ON lockstep.version_sets USING btree (source, database, name, batch);

CREATE INDEX writes_by_first ON lockstep.writes USING btree (source, first_batch);

CREATE INDEX writes_by_last ON lockstep.writes USING btree (source, last_batch);

CREATE INDEX writes_by_token ON lockstep.writes USING btree (source, token);

CREATE INDEX writes_of_table ON lockstep.writes USING btree (source, database, name, last_batch) WHERE (settled_at IS NOT NULL);

CREATE UNIQUE INDEX writes_one_open ON lockstep.writes USING btree (source, database, name) WHERE ((settled_at IS NULL) AND (given_up_at IS NULL));

create sequence lockstep.txn_versions;

create view lockstep.batch_uses as
 SELECT capture_scopes.source,
    capture_scopes.batch
   FROM lockstep.capture_scopes
UNION ALL
 SELECT consumers.source,
    consumers.start_batch AS batch
   FROM lockstep.consumers
UNION ALL
 SELECT database_versions.source,
    database_versions.batch
   FROM lockstep.database_versions
UNION ALL
 SELECT decisions.source,
    decisions.follows AS batch
   FROM lockstep.decisions
UNION ALL
 SELECT deliveries.source,
    deliveries.first_batch AS batch
   FROM lockstep.deliveries
UNION ALL
 SELECT deliveries.source,
    deliveries.last_batch AS batch
   FROM lockstep.deliveries
UNION ALL
 SELECT extents.source,
    extents.batch
   FROM lockstep.extents
UNION ALL
 SELECT forgotten.source,
    forgotten.through AS batch
   FROM lockstep.forgotten
UNION ALL
 SELECT handovers.source,
    handovers.batch
   FROM lockstep.handovers
UNION ALL
 SELECT loads.source,
    loads.followed_batch AS batch
   FROM lockstep.loads
UNION ALL
 SELECT loads.source,
    loads.joined_batch AS batch
   FROM lockstep.loads
UNION ALL
 SELECT prepared.source,
    prepared.batch
   FROM lockstep.prepared
UNION ALL
 SELECT prepared.source,
    prepared.ended_by AS batch
   FROM lockstep.prepared
UNION ALL
 SELECT schema_statements.source,
    schema_statements.batch
   FROM lockstep.schema_statements
UNION ALL
 SELECT segments.source,
    segments.batch
   FROM lockstep.segments
UNION ALL
 SELECT set_witnesses.source,
    set_witnesses.batch
   FROM lockstep.set_witnesses
UNION ALL
 SELECT snapshots.source,
    snapshots.batch
   FROM lockstep.snapshots
UNION ALL
 SELECT source_files.source,
    source_files.batch
   FROM lockstep.source_files
UNION ALL
 SELECT table_events.source,
    table_events.batch
   FROM lockstep.table_events
UNION ALL
 SELECT table_life.source,
    table_life.batch
   FROM lockstep.table_life
UNION ALL
 SELECT table_life.source,
    ((table_life.told ->> 'stopped_batch'::text))::bigint AS batch
   FROM lockstep.table_life
UNION ALL
 SELECT table_orders.source,
    table_orders.done_batch AS batch
   FROM lockstep.table_orders
UNION ALL
 SELECT table_states.source,
    table_states.behind_batch AS batch
   FROM lockstep.table_states
UNION ALL
 SELECT table_states.source,
    table_states.stopped_batch AS batch
   FROM lockstep.table_states
UNION ALL
 SELECT table_versions.source,
    table_versions.batch
   FROM lockstep.table_versions
UNION ALL
 SELECT version_sets.source,
    version_sets.batch
   FROM lockstep.version_sets
UNION ALL
 SELECT writes.source,
    writes.first_batch AS batch
   FROM lockstep.writes
UNION ALL
 SELECT writes.source,
    writes.last_batch AS batch
   FROM lockstep.writes;

create view lockstep.current_files as
 WITH newest AS (
         SELECT f.segment,
            max(f.revision) AS revision
           FROM (lockstep.revised_files f
             JOIN lockstep.revisions r ON (((r.id = f.revision) AND (r.state = 'settled'::text))))
          GROUP BY f.segment
        )
 SELECT f.segment,
    f.ordinal,
    f.path,
    f.images,
    f.size,
    f.sha256
   FROM lockstep.segment_files f
  WHERE (NOT (EXISTS ( SELECT
           FROM newest n
          WHERE (n.segment = f.segment))))
UNION ALL
 SELECT f.segment,
    f.ordinal,
    f.path,
    f.images,
    f.size,
    f.sha256
   FROM (lockstep.revised_files f
     JOIN newest n ON (((n.segment = f.segment) AND (n.revision = f.revision))));

create view lockstep.gaps as
 SELECT d.source,
    d.id AS decision,
    b.id AS batch,
    d.decided_at,
    d.author,
    d.reason,
    d.gap_tables,
    e.end_base AS from_base,
    e.end_number AS from_number,
    e.end_offset AS from_offset,
    b.start_base AS to_base,
    b.start_number AS to_number,
    b.start_offset AS to_offset
   FROM ((lockstep.decisions d
     JOIN lockstep.batches b ON (((b.start_decision = d.id) AND (b.state <> 'abandoned'::text))))
     JOIN lockstep.batches e ON ((e.id = d.follows)))
  WHERE (d.continuity = 'gap'::text);

create view lockstep.holding as
 SELECT c.source,
    'consumer'::text AS kind,
    c.name AS holder,
    COALESCE(lockstep.consumed(c.id), (0)::bigint) AS through
   FROM lockstep.consumers c
  WHERE (c.dropped_at IS NULL)
UNION ALL
 SELECT b.source,
    'batch'::text AS kind,
    (b.id)::text AS holder,
    0 AS through
   FROM lockstep.batches b
  WHERE (b.state = ANY (ARRAY['capturing'::text, 'captured'::text, 'merged'::text]))
UNION ALL
 SELECT t.source,
    'table'::text AS kind,
    ((t.database || '.'::text) || t.name) AS holder,
        CASE
            WHEN (EXISTS ( SELECT
               FROM lockstep.table_events e
              WHERE (((e.source = t.source) AND (e.database = t.database) AND (e.name = t.name)) AND (e.kind = 'rebuilt'::text) AND (e.batch >= t.behind_batch)))) THEN (0)::bigint
            ELSE (t.behind_batch - 1)
        END AS through
   FROM lockstep.table_states t
  WHERE (t.behind_batch IS NOT NULL)
UNION ALL
 SELECT l.source,
    'table'::text AS kind,
    ((l.database || '.'::text) || l.name) AS holder,
    COALESCE((l.followed_batch - 1), (0)::bigint) AS through
   FROM lockstep.loads l
  WHERE ((l.joined_batch IS NULL) AND (l.void IS NULL) AND (l.followed_batch IS NOT NULL))
UNION ALL
 SELECT w.source,
    'table'::text AS kind,
    ((w.database || '.'::text) || w.name) AS holder,
    (w.first_batch - 1) AS through
   FROM lockstep.writes w
  WHERE ((w.settled_at IS NULL) AND (w.given_up_at IS NULL))
UNION ALL
 SELECT r.source,
    'replay'::text AS kind,
    (r.id)::text AS holder,
    0 AS through
   FROM lockstep.revisions r
  WHERE (r.state = 'open'::text)
UNION ALL
 SELECT s.name AS source,
    'recovery'::text AS kind,
    s.name AS holder,
    COALESCE(( SELECT (min(x.batch) - 1)
           FROM ( SELECT DISTINCT f.batch
                   FROM lockstep.source_files f
                  WHERE ((f.source = s.name) AND (f.name = '_transactions'::text))
                  ORDER BY f.batch DESC
                 LIMIT 8) x
         HAVING (count(*) = 8)), (0)::bigint) AS through
   FROM lockstep.sources s;

create view lockstep.lease_uses as
 SELECT batches.source,
    batches.token
   FROM lockstep.batches
UNION ALL
 SELECT decisions.source,
    decisions.token
   FROM lockstep.decisions
UNION ALL
 SELECT forgotten.source,
    forgotten.token
   FROM lockstep.forgotten
UNION ALL
 SELECT loads.source,
    loads.token
   FROM lockstep.loads
UNION ALL
 SELECT overrides.source,
    overrides.token
   FROM lockstep.overrides
UNION ALL
 SELECT revisions.source,
    revisions.token
   FROM lockstep.revisions
UNION ALL
 SELECT spark_clients.source,
    spark_clients.token
   FROM lockstep.spark_clients
UNION ALL
 SELECT table_life.source,
    table_life.token
   FROM lockstep.table_life
UNION ALL
 SELECT table_orders.source,
    table_orders.token
   FROM lockstep.table_orders
UNION ALL
 SELECT upkept.source,
    upkept.token
   FROM lockstep.upkept
UNION ALL
 SELECT writes.source,
    writes.token
   FROM lockstep.writes;

create view lockstep.touched as
 SELECT segments.source,
    segments.batch,
    segments.database,
    segments.name
   FROM lockstep.segments
UNION ALL
 SELECT table_events.source,
    table_events.batch,
    table_events.database,
    table_events.name
   FROM lockstep.table_events;

create view lockstep.waiting as
 SELECT DISTINCT s.source,
    s.batch,
    s.database,
    s.name
   FROM ((lockstep.touched s
     JOIN lockstep.batches b ON (((b.id = s.batch) AND (b.state = 'captured'::text))))
     JOIN lockstep.table_states t ON (((t.source = s.source) AND (t.database = s.database) AND (t.name = s.name))))
  WHERE ((t.condition = ANY (ARRAY['active'::text, 'dropped'::text])) AND (NOT lockstep.covered(s.source, s.database, s.name, s.batch)));

CREATE OR REPLACE FUNCTION lockstep.batches_abandoned()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    update lockstep.prepared set abandoned = true, ended_by = null, committed = null
    where batch = new.id;
    update lockstep.prepared set ended_by = null, committed = null
    where source = new.source and ended_by = new.id;
    update lockstep.table_orders set done_batch = null where done_batch = new.id;
    update lockstep.loads l set joined_batch = null, void = (
        select 'another one was ordered since' from lockstep.loads o
        where (o.source, o.database, o.name) = (l.source, l.database, l.name)
          and o.id <> l.id and o.joined_batch is null and o.void is null)
    where l.joined_batch = new.id;
    update lockstep.loads set
        followed_batch = null, followed_sequence = null, followed_version = null
    where followed_batch = new.id and void is null;
    return null;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
    decision lockstep.decisions;
    earlier lockstep.batches;
begin
    if new.state <> 'capturing' then
        perform lockstep.refuse('batches_begin_capturing', 'a batch begins as capturing');
    end if;
    new.follows := new.predecessor;
    if new.start_decision is not null then
        select * into decision from lockstep.decisions d
        where d.source = new.source and d.id = new.start_decision;
        if decision.kind <> 'start' then
            perform lockstep.refuse('batches_start_decided', 'the decision is not one to start');
        end if;
        if exists (select from lockstep.decisions d
                   join lockstep.batches b on b.start_decision = d.id and b.state <> 'abandoned'
                   where d.override = decision.override) then
            perform lockstep.refuse('overrides_once', 'a live batch was begun by this choice');
        end if;
        new.follows := coalesce(new.predecessor, decision.follows);
    end if;
    if new.follows is not null then
        select * into earlier from lockstep.batches b where b.id = new.follows;
        if earlier.state in ('capturing', 'abandoned') then
            perform lockstep.refuse('batches_predecessor_captured', 'the batch before is not captured');
        end if;
    end if;
    if new.base <> coalesce(earlier.base + earlier.changes, 0) then
        perform lockstep.refuse('batches_base_follows', 'a batch counts on from the one before');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_go()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if old.id >= lockstep.pruned_through(old.source)
        or old.state not in ('acknowledged', 'abandoned')
        or old.state = 'acknowledged' and old.start_decision is not null then
        perform lockstep.refuse('batches_go_forgotten',
            'a batch goes once its changes are gone, but for one that began a chain');
    end if;
    return old;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_keep()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if current_setting('lockstep.pruning', true) = 'on' then
        perform lockstep.batches_may_be_relinked(old, new);
        return new;
    end if;
    if (new.follows, new.kind, new.forgotten_predecessor)
            is distinct from (old.follows, old.kind, old.forgotten_predecessor) then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps what it follows and what it is');
    end if;
    if old.state <> 'capturing' and (new.by_gtid, new.server_started_at, new.server_resets)
            is distinct from (old.by_gtid, old.server_started_at, old.server_resets) then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_may_be_abandoned(a_batch lockstep.batches)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.batches b where b.follows = a_batch.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_abandoned_newest_first', 'a later batch goes on behind it');
    end if;
    if exists (select from lockstep.touched s
               join lockstep.writes w using (source, database, name)
               where s.batch = a_batch.id and a_batch.id between w.first_batch and w.last_batch) then
        perform lockstep.refuse('batches_abandoned_unmerged', 'a write to a mirror covers the batch');
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_may_be_acknowledged(a_batch lockstep.batches)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.batches b where b.id = a_batch.follows and b.state <> 'acknowledged') then
        perform lockstep.refuse('batches_acknowledged_in_order', 'the batch before is not acknowledged');
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_may_be_captured(a_batch lockstep.batches)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.segments s where s.batch = a_batch.id
               and (s.first_sequence <= a_batch.base or s.last_sequence > a_batch.base + a_batch.changes))
    or exists (select from lockstep.table_events e where e.batch = a_batch.id
               and e.sequence not between a_batch.base and a_batch.base + a_batch.changes)
    or exists (select from lockstep.snapshots s where s.batch = a_batch.id
               and s.low_sequence not between a_batch.base and a_batch.base + a_batch.changes
               and not exists (
                   select from lockstep.loads l where l.joined_batch = a_batch.id
                   and (l.source, l.database, l.name) = (s.source, s.database, s.name)
                   and l.followed_sequence = s.low_sequence)) then
        perform lockstep.refuse('batches_sequences_within', 'a sequence lies outside its batch');
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_may_be_merged(a_batch lockstep.batches)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.waiting w where w.batch = a_batch.id) then
        perform lockstep.refuse('batches_merged_whole', 'a table of the batch is not merged');
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_may_be_relinked(old lockstep.batches, new lockstep.batches)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    links text[] := '{predecessor,follows,forgotten_predecessor,start_gtid_digest,end_gtid_digest}';
begin
    if to_jsonb(new) - links <> to_jsonb(old) - links
        or new.predecessor is not null
        or new.forgotten_predecessor is null
        or new.forgotten_predecessor <> coalesce(old.forgotten_predecessor, old.predecessor)
        or exists (select from lockstep.batches b where b.id = old.follows)
        or new.follows is distinct from (
            select max(b.id) from lockstep.batches b
            where b.source = old.source and b.id < old.id and b.state <> 'abandoned') then
        perform lockstep.refuse('batches_relinked',
            'only what a batch goes on behind changes, and only once its predecessor is gone');
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.batches_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (new.id, new.source, new.predecessor, new.start_decision, new.base, new.token, new.created_at,
        new.start_base, new.start_number, new.start_offset, new.start_gtid_set, new.start_server_uuid,
        new.start_committed_at)
        is distinct from
       (old.id, old.source, old.predecessor, old.start_decision, old.base, old.token, old.created_at,
        old.start_base, old.start_number, old.start_offset, old.start_gtid_set, old.start_server_uuid,
        old.start_committed_at) then
        perform lockstep.refuse('batches_start_stays', 'a batch keeps its start');
    end if;
    if old.state <> 'capturing' and
       (new.end_base, new.end_number, new.end_offset, new.end_gtid_set, new.end_server_uuid,
        new.end_committed_at, new.witness_offset, new.witness_length, new.witness_crc32,
        new.witness_gtid, new.witness_file_created, new.changes, new.transactions, new.log_bytes,
        new.captured_at)
        is distinct from
       (old.end_base, old.end_number, old.end_offset, old.end_gtid_set, old.end_server_uuid,
        old.end_committed_at, old.witness_offset, old.witness_length, old.witness_crc32,
        old.witness_gtid, old.witness_file_created, old.changes, old.transactions, old.log_bytes,
        old.captured_at) then
        perform lockstep.refuse('batches_end_stays', 'a captured batch keeps its end');
    end if;
    if (old.state, new.state) not in (
        ('capturing', 'captured'), ('capturing', 'abandoned'), ('captured', 'abandoned'),
        ('captured', 'merged'), ('merged', 'acknowledged')) then
        perform lockstep.refuse('batches_move_forward', 'no batch moves from ' || old.state || ' to ' || new.state);
    end if;
    case new.state
        when 'captured' then perform lockstep.batches_may_be_captured(new);
        when 'merged' then perform lockstep.batches_may_be_merged(new);
        when 'acknowledged' then perform lockstep.batches_may_be_acknowledged(new);
        else perform lockstep.batches_may_be_abandoned(old);
    end case;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.behind(a_source text, a_database text, a_name text, a_from bigint)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
    select min(t.batch) from lockstep.touched t
    join lockstep.batches b on b.id = t.batch and b.state <> 'abandoned'
    where (t.source, t.database, t.name) = (a_source, a_database, a_name)
      and t.batch >= coalesce(a_from, (
          select min(u.id) from lockstep.batches u
          where u.source = a_source and u.state in ('capturing', 'captured', 'merged')))
      and not lockstep.covered(a_source, a_database, a_name, t.batch)
$function$;

CREATE OR REPLACE FUNCTION lockstep.consumed(a_consumer bigint)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(
        (select max(d.last_batch) from lockstep.deliveries d
         where d.consumer = a_consumer and d.state = 'acknowledged'),
        (select c.start_batch from lockstep.consumers c where c.id = a_consumer))
$function$;

CREATE OR REPLACE FUNCTION lockstep.consumer_steps(a_consumer bigint)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
    owner lockstep.consumers;
begin
    select * into owner from lockstep.consumers c where c.id = a_consumer for no key update;
    if owner.dropped_at is not null then
        perform lockstep.refuse('deliveries_of_live_consumers', 'the consumer is dropped');
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.consumers_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.batches b where (b.source, b.id) = (new.source, new.start_batch)
               and b.state <> 'acknowledged') then
        perform lockstep.refuse('consumers_start_acknowledged', 'the batch is not acknowledged');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.consumers_begin_kept()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if coalesce(new.start_batch, 0) < lockstep.forgotten_through(new.source) then
        perform lockstep.refuse('consumers_start_kept', 'changes behind that batch are gone');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.consumers_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (new.id, new.source, new.name, new.start_batch, new.made_at)
        is distinct from (old.id, old.source, old.name, old.start_batch, old.made_at) then
        perform lockstep.refuse('consumers_stay', 'a consumer stays as it was made');
    end if;
    if old.dropped_at is not null then
        perform lockstep.refuse('consumers_dropped_once', 'the consumer is dropped');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.covered(a_source text, a_database text, a_name text, a_batch bigint)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
    select exists (
        select from lockstep.writes w
        where (w.source, w.database, w.name) = (a_source, a_database, a_name)
          and w.step = 'merge' and w.settled_at is not null
          and a_batch between w.first_batch and w.last_batch
    )
$function$;

CREATE OR REPLACE FUNCTION lockstep.deliveries_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    perform lockstep.consumer_steps(new.consumer);
    if new.state <> 'out' then
        perform lockstep.refuse('deliveries_begin_out', 'a delivery begins as out');
    end if;
    if exists (select from lockstep.batches b where b.source = new.source and b.id <= new.last_batch
               and (b.state in ('capturing', 'captured', 'merged')
                    or b.id in (new.first_batch, new.last_batch) and b.state <> 'acknowledged')) then
        perform lockstep.refuse('deliveries_of_acknowledged_batches', 'a batch is not acknowledged');
    end if;
    if new.first_batch is distinct from (
        select min(b.id) from lockstep.batches b
        where b.source = new.source and b.state = 'acknowledged' and b.id > lockstep.given(new.consumer)) then
        perform lockstep.refuse('deliveries_go_on', 'it does not go on where the last one ended');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.deliveries_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    perform lockstep.consumer_steps(old.consumer);
    if (new.id, new.source, new.consumer, new.first_batch, new.last_batch, new.delivered_at)
        is distinct from
       (old.id, old.source, old.consumer, old.first_batch, old.last_batch, old.delivered_at) then
        perform lockstep.refuse('deliveries_stay', 'a delivery keeps its batches');
    end if;
    if old.state = 'acknowledged' then
        perform lockstep.refuse('deliveries_acknowledged_once', 'the delivery is acknowledged');
    end if;
    if old.state = 'rolled back' then
        perform lockstep.refuse('deliveries_rolled_back_once', 'the delivery is rolled back');
    end if;
    if new.state = 'acknowledged' and exists (
        select from lockstep.deliveries d
        where d.consumer = new.consumer and d.state = 'out' and d.id < new.id) then
        perform lockstep.refuse('deliveries_acknowledged_in_order', 'an older delivery is out');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.deliveries_rolled_back()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.deliveries d
               where d.consumer = new.consumer and d.state = 'out' and d.id > new.id) then
        perform lockstep.refuse('deliveries_rolled_back_newest_first', 'a newer delivery is out');
    end if;
    return null;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.forgotten_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (select from lockstep.batches b
                   where (b.source, b.id) = (new.source, new.through) and b.state = 'acknowledged') then
        perform lockstep.refuse('forgotten_acknowledged', 'the batch is not acknowledged');
    end if;
    if exists (select from lockstep.forgotten f where f.source = new.source
               and (f.through > new.through or f.unlisted_at is null)) then
        perform lockstep.refuse('forgotten_goes_on', 'what was forgotten before is still listed, or is more');
    end if;
    if exists (select from lockstep.holding h
               where h.source = new.source and h.through < new.through) then
        perform lockstep.refuse('forgotten_unneeded', 'somebody still needs changes up to that batch');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.forgotten_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (new.source, new.through, new.token, new.noted_at)
        is distinct from (old.source, old.through, old.token, old.noted_at)
        or old.unlisted_at is not null and new.unlisted_at is distinct from old.unlisted_at
        or old.deleted_at is not null and new.deleted_at is distinct from old.deleted_at
        or old.pruned_at is not null then
        perform lockstep.refuse('forgotten_move_on', 'what was done to forgotten changes stays done');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.forgotten_through(a_source text)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(max(f.through), 0) from lockstep.forgotten f where f.source = a_source
$function$;

CREATE OR REPLACE FUNCTION lockstep.given(a_consumer bigint)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(
        (select max(d.last_batch) from lockstep.deliveries d
         where d.consumer = a_consumer and d.state <> 'rolled back'),
        (select c.start_batch from lockstep.consumers c where c.id = a_consumer), 0)
$function$;

CREATE OR REPLACE FUNCTION lockstep.handovers_alone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.batches b where b.source = new.source and b.id <> new.batch
               and b.state in ('capturing', 'captured', 'merged')) then
        perform lockstep.refuse('handovers_alone', 'another batch of the source is unfinished');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.load_chunks_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (select from lockstep.loads l where l.id = new.load and l.schema is not null
                   and l.joined_batch is null and l.void is null) then
        perform lockstep.refuse('load_chunks_while_reading', 'the load is not being read');
    end if;
    if tg_op = 'INSERT' and new.number > 0 and not exists (
            select from lockstep.load_chunks c
            where c.load = new.load and c.number = new.number - 1
              and c.through::text = new.after::text) then
        perform lockstep.refuse('load_chunks_go_on', 'a chunk begins where the one before it ends');
    end if;
    if tg_op = 'UPDATE' and (old.rows is not null
            or (new.after::text, new.through::text) is distinct from
               (old.after::text, old.through::text)) then
        perform lockstep.refuse('load_chunks_read_once', 'a chunk that was read stays as it is');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.loads_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if old.void is not null then
        perform lockstep.refuse('loads_void_once', 'a load that is void stays so');
    end if;
    if old.schema is not null and (
        new.schema::text, new.server_uuid, new.low_base, new.low_number, new.low_offset)
        is distinct from (
        old.schema::text, old.server_uuid, old.low_base, old.low_number, old.low_offset) then
        perform lockstep.refuse('loads_read_once', 'what a load was begun with stays');
    end if;
    if new.joined_batch is not null and old.joined_batch is null and (
            not exists (select from lockstep.load_chunks c
                        where c.load = new.id and c.through is null)
            or exists (select from lockstep.load_chunks c
                       where c.load = new.id and c.rows is null)) then
        perform lockstep.refuse('loads_joined_whole', 'not all of its chunks are read');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.newest_same(of_source text, of_mirror text, version bigint)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce((
        select max(u.delta_version) from lockstep.upkept u
        where (u.source, u.mirror, u.shows) = (of_source, of_mirror, version)
    ), version)
$function$;

CREATE OR REPLACE FUNCTION lockstep.prepared_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if new.ended_by is not null or new.abandoned then
        perform lockstep.refuse('prepared_begin_open', 'a prepared transaction begins as open');
    end if;
    if not exists (select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse('prepared_while_capturing',
            'prepared transactions are recorded while their batch is capturing');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.prepared_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (new.id, new.source, new.batch, new.format_id, new.gtrid, new.bqual, new.position,
        new.path, new.images, new.size, new.sha256)
        is distinct from
       (old.id, old.source, old.batch, old.format_id, old.gtrid, old.bqual, old.position,
        old.path, old.images, old.size, old.sha256) then
        perform lockstep.refuse('prepared_stay', 'a prepared transaction stays as it was recorded');
    end if;
    if new.abandoned <> old.abandoned and not (new.abandoned and exists (
        select from lockstep.batches b where b.id = new.batch and b.state = 'abandoned')) then
        perform lockstep.refuse('prepared_abandoned_with_batch', 'its batch is not abandoned');
    end if;
    if old.ended_by is not null and (new.ended_by is not null or not exists (
        select from lockstep.batches b where b.id = old.ended_by and b.state = 'abandoned')) then
        perform lockstep.refuse('prepared_ended_once', 'a live batch ended it');
    end if;
    if old.ended_by is null and new.ended_by is not null and not exists (
        select from lockstep.batches b where b.id = new.ended_by and b.state = 'capturing') then
        perform lockstep.refuse('prepared_ended_while_capturing', 'the batch that ends it is not capturing');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.prune(a_source text, above bigint, last bigint, through bigint)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
    gone bigint := 0;
    met bigint;
begin
    perform lockstep.require_deleted(a_source, case when last <= through then through end);
    perform set_config('lockstep.pruning', 'on', true);

    delete from lockstep.segment_files x using lockstep.segments s
    where s.id = x.segment and s.source = a_source and s.batch > above and s.batch <= last;
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.revised_files x using lockstep.segments s
    where s.id = x.segment and s.source = a_source and s.batch > above and s.batch <= last;
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.segments s
    where s.source = a_source and s.batch <= last
      and exists (
          select from lockstep.segments n
          where (n.source, n.database, n.name) = (s.source, s.database, s.name)
            and n.batch > s.batch and n.batch <= prune.through);
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.version_sets v
    where v.source = a_source and v.batch <= last
      and exists (
          select from lockstep.version_sets n
          where (n.source, n.database, n.name) = (v.source, v.database, v.name)
            and n.batch > v.batch and n.batch <= prune.through);
    get diagnostics met = row_count; gone := gone + met;
    delete from lockstep.source_files x
    where x.source = a_source and x.batch > above and x.batch <= last;
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.writes w
    where w.source = a_source and w.last_batch <= last
      and (w.settled_at is not null or w.given_up_at is not null)
      and exists (
          select from lockstep.writes n
          where (n.source, n.database, n.name, n.app_id) = (w.source, w.database, w.name, w.app_id)
            and n.settled_at is not null and n.last_batch between w.last_batch and prune.through
            and n.txn_version > w.txn_version
            and n.delta_version > coalesce(w.delta_version, -1));
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.set_witnesses w
    where w.source = a_source and w.batch <= last
      and exists (
          select from lockstep.set_witnesses n
          where (n.source, n.origin) = (w.source, w.origin)
            and n.batch > w.batch and n.batch <= prune.through);
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.deliveries d
    where d.source = a_source and d.last_batch <= last
      and d.state <> 'out'
      and exists (
          select from lockstep.deliveries n
          where n.consumer = d.consumer and n.state = 'acknowledged' and n.last_batch > d.last_batch);
    get diagnostics met = row_count; gone := gone + met;

    delete from lockstep.prepared p
    where p.source = a_source and p.batch <= last and (p.abandoned or p.ended_by <= last)
      and not exists (
          select from lockstep.table_states t
          where t.source = a_source and t.stopped_batch <= coalesce(p.ended_by, p.batch));
    get diagnostics met = row_count; gone := gone + met;

    perform set_config('lockstep.pruning', '', true);
    return gone;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.prune_batches(a_source text, above bigint, through bigint, most integer, OUT gone bigint, OUT reached bigint, OUT ended boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    met bigint;
    batches bigint[];
    tokens bigint[];
begin
    perform lockstep.require_deleted(a_source, through);
    perform set_config('lockstep.pruning', 'on', true);
    set constraints lockstep.batches_follows, lockstep.batches_start_at_predecessors_end deferred;

    select max(x.id), count(*) < most into reached, ended from (
        select b.id from lockstep.batches b
        where b.source = a_source and b.id > above and b.id < prune_batches.through
        order by b.id limit most) x;
    reached := coalesce(reached, above);

    with went as (
        delete from lockstep.batches b
        where b.source = a_source and b.id > above and b.id <= reached
          and b.state in ('acknowledged', 'abandoned')
          and (b.state = 'abandoned' or b.start_decision is null)
          and (not b.by_gtid or exists (
              select from lockstep.batches n
              where n.source = a_source and n.id > b.id and n.by_gtid and n.state <> 'abandoned'))
          and not exists (select from lockstep.batch_uses u
                          where (u.source, u.batch) = (b.source, b.id))
        returning b.id, b.token
    )
    select coalesce(array_agg(w.id), '{}'), coalesce(array_agg(distinct w.token), '{}')
    into batches, tokens from went w;
    gone := cardinality(batches);

    update lockstep.batches b set
        forgotten_predecessor = coalesce(b.forgotten_predecessor, b.predecessor),
        predecessor = null,
        follows = (select max(w.id) from lockstep.batches w
                   where w.source = a_source and w.id < b.id and w.state <> 'abandoned')
    where b.source = a_source and b.follows = any(batches);
    set constraints lockstep.batches_follows, lockstep.batches_start_at_predecessors_end immediate;

    delete from lockstep.leases l
    where l.source = a_source and l.token = any(tokens)
      and l.token < (select s.token from lockstep.sources s where s.name = a_source)
      and not exists (select from lockstep.lease_uses u
                      where (u.source, u.token) = (l.source, l.token));
    get diagnostics met = row_count; gone := gone + met;

    perform set_config('lockstep.pruning', '', true);
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.prune_leases(a_source text, above bigint, through bigint, most integer, OUT gone bigint, OUT reached bigint, OUT ended boolean)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
declare
    met bigint;
begin
    perform lockstep.require_deleted(a_source, through);
    perform set_config('lockstep.pruning', 'on', true);

    select max(x.token), count(*) < most into reached, ended from (
        select l.token from lockstep.leases l
        where l.source = a_source and l.token > above and l.token < (
            select b.token from lockstep.batches b
            where (b.source, b.id) = (a_source, prune_leases.through))
        order by l.token limit most) x;
    reached := coalesce(reached, above);

    delete from lockstep.decisions d
    where d.source = a_source and d.token > above and d.token <= reached
      and d.kind in ('start', 'idle', 'refusal', 'failure')
      and not exists (select from lockstep.batches b
                      where (b.source, b.start_decision) = (d.source, d.id));
    get diagnostics gone = row_count;
    if ended then
        delete from lockstep.forgotten f
        where f.source = a_source and exists (
            select from lockstep.forgotten n
            where n.source = a_source and n.pruned_at is not null
              and n.through > f.through and n.through < prune_leases.through
        ) and f.pruned_at is not null;
        get diagnostics met = row_count; gone := gone + met;
    end if;
    delete from lockstep.leases l
    where l.source = a_source and l.token > above and l.token <= reached
      and not exists (select from lockstep.lease_uses u
                      where (u.source, u.token) = (l.source, l.token));
    get diagnostics met = row_count; gone := gone + met;

    perform set_config('lockstep.pruning', '', true);
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.pruned_through(a_source text)
 RETURNS bigint
 LANGUAGE sql
 STABLE
AS $function$
    select coalesce(max(f.through), 0) from lockstep.forgotten f
    where f.source = a_source and f.deleted_at is not null
$function$;

CREATE OR REPLACE FUNCTION lockstep.refuse(rule text, complaint text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    raise exception using errcode = 'integrity_constraint_violation', constraint = rule, message = complaint;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.refuse_forgotten_predecessor()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    perform lockstep.refuse('batches_begin_behind', 'a batch begins behind one that is there');
    return null;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.require_deleted(a_source text, through bigint)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (select from lockstep.forgotten f
                   where (f.source, f.through) = (a_source, require_deleted.through)
                     and f.deleted_at is not null) then
        perform lockstep.refuse('pruned_deleted', 'files of these batches may still be there');
    end if;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.revised_files_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (
        select from lockstep.revisions r
        join lockstep.segments s on s.id = new.segment and s.source = r.source
        join lockstep.batches b on b.id = s.batch and b.state = 'acknowledged'
        where r.id = new.revision and r.state = 'open') then
        perform lockstep.refuse('revised_files_of_acknowledged',
            'an open revision has files of acknowledged batches of its source');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.revisions_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (new.id, new.source, new.token, new.begun_at) is distinct from
       (old.id, old.source, old.token, old.begun_at) or old.state <> 'open' then
        perform lockstep.refuse('revisions_end_once', 'a revision is settled or given up, once');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.segments_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse('segments_while_capturing', 'segments are recorded while their batch is capturing');
    end if;
    if exists (select from lockstep.table_versions v
               where (v.source, v.database, v.name, v.version)
                   = (new.source, new.database, new.name, new.schema_version)
               and v.knowledge <> 'known') then
        perform lockstep.refuse('segments_of_known_versions', 'the version has no columns');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.sources_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if new.name <> old.name or new.lock_key <> old.lock_key or new.token < old.token then
        perform lockstep.refuse('sources_token_grows', 'a source keeps its key and its token never falls');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.stays()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if tg_op = 'DELETE' and current_setting('lockstep.pruning', true) = 'on' then
        return old;
    end if;
    perform lockstep.refuse(tg_argv[0], 'rows of ' || tg_table_name || ' are never changed or deleted');
    return null;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.table_events_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if exists (select from lockstep.table_events e
               where (e.batch, e.database, e.name) = (new.batch, new.database, new.name)
               and (e.ordinal < new.ordinal and e.sequence > new.sequence
                    or e.ordinal > new.ordinal and e.sequence < new.sequence)) then
        perform lockstep.refuse('table_events_ascend', 'an event lies before an earlier one');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.table_life_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if new.batch is not null and not exists (
            select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse('table_life_while_capturing', 'the batch is not capturing');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.table_orders_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
    found text;
begin
    select t.condition into found from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.done_batch is not null then
        perform lockstep.refuse('table_orders_begin_open', 'an order begins as open');
    end if;
    if new.kind = 'resume' and found <> 'paused' then
        perform lockstep.refuse('table_orders_resume_paused', 'the table is not paused');
    end if;
    if new.kind = 'release' and found <> 'quarantined' then
        perform lockstep.refuse('table_orders_release_quarantined', 'the table is not quarantined');
    end if;
    if new.kind = 'reload' and found = 'dropped' then
        perform lockstep.refuse('table_orders_reload_there', 'the table was dropped');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.table_orders_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (new.id, new.source, new.token, new.database, new.name, new.kind, new.author, new.reason,
        new.ordered_at, new.schema::text, new.renames::text)
        is distinct from
       (old.id, old.source, old.token, old.database, old.name, old.kind, old.author, old.reason,
        old.ordered_at, old.schema::text, old.renames::text) then
        perform lockstep.refuse('table_orders_stay', 'an order stays as it was given');
    end if;
    if old.done_batch is not null and (new.done_batch is not null or not exists (
        select from lockstep.batches b where b.id = old.done_batch and b.state = 'abandoned')) then
        perform lockstep.refuse('table_orders_done_once', 'a live batch carried it out');
    end if;
    if new.done_batch is not null and exists (
        select from lockstep.table_orders o
        where (o.source, o.database, o.name) = (new.source, new.database, new.name) and o.id > new.id) then
        perform lockstep.refuse('table_orders_newest_counts', 'there is a newer order');
    end if;
    if new.done_batch is not null and exists (
        select from lockstep.batches b where b.id = new.done_batch and b.state <> 'capturing') then
        perform lockstep.refuse('table_orders_done_while_capturing', 'the batch is not capturing');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.table_states_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if new.event is null or tg_op = 'UPDATE' and new.event = old.event and (
        new.condition, new.generation, new.mirror, new.changelog, new.reason, new.hint,
        new.position, new.mirror_version, new.changelog_generation, new.stopped_batch,
        new.stopped_base, new.stopped_number, new.stopped_offset, new.adopted, new.remedy,
        new.mirror_generation) is distinct from (
        old.condition, old.generation, old.mirror, old.changelog, old.reason, old.hint,
        old.position, old.mirror_version, old.changelog_generation, old.stopped_batch,
        old.stopped_base, old.stopped_number, old.stopped_offset, old.adopted, old.remedy,
        old.mirror_generation) then
        perform lockstep.refuse('table_states_told', 'a state changes with an event');
    end if;
    return null;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.upkept_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (
        select from lockstep.writes w
        join lockstep.table_states t using (source, database, name)
        where w.source = new.source and coalesce(w.mirror, t.mirror) = new.mirror
          and w.delta_version = new.shows) then
        perform lockstep.refuse('upkept_of_a_write', 'no settled write made the version that it shows');
    end if;
    if exists (
        select from lockstep.writes w
        join lockstep.table_states t using (source, database, name)
        where w.source = new.source and coalesce(w.mirror, t.mirror) = new.mirror
          and w.delta_version > new.shows and w.delta_version <= new.delta_version) then
        perform lockstep.refuse('upkept_unchanged', 'the mirror was written to between the two');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.version_sets_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (select from lockstep.batches b where b.id = new.batch
                   and b.state = 'acknowledged') then
        perform lockstep.refuse('version_sets_acknowledged', 'the batch is not acknowledged');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.while_capturing()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if not exists (select from lockstep.batches b where b.id = new.batch and b.state = 'capturing') then
        perform lockstep.refuse(tg_argv[0],
            'rows of ' || tg_table_name || ' are recorded while their batch is capturing');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.writes_begin()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
    the_table lockstep.table_states;
begin
    select * into the_table from lockstep.table_states t
    where (t.source, t.database, t.name) = (new.source, new.database, new.name);
    if new.settled_at is not null then
        perform lockstep.refuse('writes_intent_first', 'a write is an intent before it is settled');
    end if;
    if new.step <> 'replay' and exists (
               select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'captured'
               and (b.state not in ('merged', 'acknowledged')
                    or b.id < the_table.behind_batch or the_table.behind_batch is null)) then
        perform lockstep.refuse('writes_of_captured_batches', 'only captured batches are merged');
    end if;
    if new.step = 'replay' and exists (
               select from lockstep.batches b where b.source = new.source
               and b.id in (new.first_batch, new.last_batch) and b.state <> 'acknowledged') then
        perform lockstep.refuse('writes_replay_acknowledged', 'only acknowledged batches are replayed');
    end if;
    if the_table.condition not in ('active', 'dropped') then
        perform lockstep.refuse('writes_of_active_tables', 'the table is set aside');
    end if;
    if new.step <> 'replay' and exists (
               select from lockstep.writes w
               where (w.source, w.database, w.name, w.app_id, w.step)
                   = (new.source, new.database, new.name, new.app_id, new.step)
               and w.settled_at is not null
               and w.first_batch <= new.last_batch and new.first_batch <= w.last_batch) then
        perform lockstep.refuse('writes_never_overlap', 'a settled write of this table covers these batches');
    end if;
    return new;
end
$function$;

CREATE OR REPLACE FUNCTION lockstep.writes_move()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
    if (new.id, new.source, new.token, new.database, new.name, new.app_id, new.txn_version,
        new.first_batch, new.last_batch, new.step, new.intended_at)
        is distinct from
       (old.id, old.source, old.token, old.database, old.name, old.app_id, old.txn_version,
        old.first_batch, old.last_batch, old.step, old.intended_at) then
        perform lockstep.refuse('writes_intent_stays', 'an intent is never regrouped');
    end if;
    if old.settled_at is not null then
        perform lockstep.refuse('writes_settled_once', 'a settled write stays as it is');
    end if;
    if old.given_up_at is not null then
        perform lockstep.refuse('writes_given_up_once', 'a write that was given up stays so');
    end if;
    if exists (select from lockstep.writes w where w.app_id = new.app_id
               and w.delta_version >= new.delta_version) then
        perform lockstep.refuse('writes_delta_version_ascends', 'a later write has a later version');
    end if;
    return new;
end
$function$;

CREATE TRIGGER batches_abandoned AFTER UPDATE ON lockstep.batches FOR EACH ROW WHEN ((new.state = 'abandoned'::text)) EXECUTE FUNCTION lockstep.batches_abandoned();

CREATE TRIGGER batches_begin BEFORE INSERT ON lockstep.batches FOR EACH ROW EXECUTE FUNCTION lockstep.batches_begin();

CREATE TRIGGER batches_begin_behind BEFORE INSERT ON lockstep.batches FOR EACH ROW WHEN ((new.forgotten_predecessor IS NOT NULL)) EXECUTE FUNCTION lockstep.refuse_forgotten_predecessor();

CREATE TRIGGER batches_go BEFORE DELETE ON lockstep.batches FOR EACH ROW WHEN ((current_setting('lockstep.pruning'::text, true) = 'on'::text)) EXECUTE FUNCTION lockstep.batches_go();

CREATE TRIGGER batches_keep BEFORE UPDATE ON lockstep.batches FOR EACH ROW EXECUTE FUNCTION lockstep.batches_keep();

CREATE TRIGGER batches_move BEFORE UPDATE ON lockstep.batches FOR EACH ROW WHEN ((current_setting('lockstep.pruning'::text, true) IS DISTINCT FROM 'on'::text)) EXECUTE FUNCTION lockstep.batches_move();

CREATE TRIGGER batches_stay BEFORE DELETE ON lockstep.batches FOR EACH ROW EXECUTE FUNCTION lockstep.stays('batches_stay');

CREATE TRIGGER capture_scopes_begin BEFORE INSERT ON lockstep.capture_scopes FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('capture_scopes_while_capturing');

CREATE TRIGGER capture_scopes_stay BEFORE DELETE OR UPDATE ON lockstep.capture_scopes FOR EACH ROW EXECUTE FUNCTION lockstep.stays('capture_scopes_stay');

CREATE TRIGGER consumers_begin BEFORE INSERT ON lockstep.consumers FOR EACH ROW EXECUTE FUNCTION lockstep.consumers_begin();

CREATE TRIGGER consumers_begin_kept BEFORE INSERT ON lockstep.consumers FOR EACH ROW EXECUTE FUNCTION lockstep.consumers_begin_kept();

CREATE TRIGGER consumers_move BEFORE UPDATE ON lockstep.consumers FOR EACH ROW EXECUTE FUNCTION lockstep.consumers_move();

CREATE TRIGGER consumers_stay BEFORE DELETE ON lockstep.consumers FOR EACH ROW EXECUTE FUNCTION lockstep.stays('consumers_stay');

CREATE TRIGGER database_versions_begin BEFORE INSERT ON lockstep.database_versions FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('database_versions_while_capturing');

CREATE TRIGGER database_versions_stay BEFORE DELETE OR UPDATE ON lockstep.database_versions FOR EACH ROW EXECUTE FUNCTION lockstep.stays('database_versions_stay');

CREATE TRIGGER decisions_stay BEFORE DELETE OR UPDATE ON lockstep.decisions FOR EACH ROW EXECUTE FUNCTION lockstep.stays('decisions_stay');

CREATE TRIGGER deliveries_begin BEFORE INSERT ON lockstep.deliveries FOR EACH ROW EXECUTE FUNCTION lockstep.deliveries_begin();

CREATE TRIGGER deliveries_move BEFORE UPDATE ON lockstep.deliveries FOR EACH ROW EXECUTE FUNCTION lockstep.deliveries_move();

CREATE TRIGGER deliveries_rolled_back AFTER UPDATE ON lockstep.deliveries FOR EACH ROW WHEN ((new.state = 'rolled back'::text)) EXECUTE FUNCTION lockstep.deliveries_rolled_back();

CREATE TRIGGER deliveries_stay BEFORE DELETE ON lockstep.deliveries FOR EACH ROW EXECUTE FUNCTION lockstep.stays('deliveries_stay');

CREATE TRIGGER extents_stay BEFORE DELETE OR UPDATE ON lockstep.extents FOR EACH ROW EXECUTE FUNCTION lockstep.stays('extents_stay');

CREATE TRIGGER forgotten_begin BEFORE INSERT ON lockstep.forgotten FOR EACH ROW EXECUTE FUNCTION lockstep.forgotten_begin();

CREATE TRIGGER forgotten_move BEFORE UPDATE ON lockstep.forgotten FOR EACH ROW EXECUTE FUNCTION lockstep.forgotten_move();

CREATE TRIGGER forgotten_stay BEFORE DELETE ON lockstep.forgotten FOR EACH ROW EXECUTE FUNCTION lockstep.stays('forgotten_stay');

CREATE TRIGGER handovers_alone BEFORE INSERT ON lockstep.handovers FOR EACH ROW EXECUTE FUNCTION lockstep.handovers_alone();

CREATE TRIGGER handovers_begin BEFORE INSERT ON lockstep.handovers FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('handovers_while_capturing');

CREATE TRIGGER handovers_stay BEFORE DELETE OR UPDATE ON lockstep.handovers FOR EACH ROW EXECUTE FUNCTION lockstep.stays('handovers_stay');

CREATE TRIGGER leases_stay BEFORE DELETE OR UPDATE ON lockstep.leases FOR EACH ROW EXECUTE FUNCTION lockstep.stays('leases_stay');

CREATE TRIGGER ledger_stays BEFORE DELETE OR UPDATE ON lockstep.ledger FOR EACH ROW EXECUTE FUNCTION lockstep.stays('ledger_stays');

CREATE TRIGGER load_chunks_begin BEFORE INSERT OR UPDATE ON lockstep.load_chunks FOR EACH ROW EXECUTE FUNCTION lockstep.load_chunks_begin();

CREATE TRIGGER loads_move BEFORE UPDATE ON lockstep.loads FOR EACH ROW EXECUTE FUNCTION lockstep.loads_move();

CREATE TRIGGER overrides_stay BEFORE DELETE OR UPDATE ON lockstep.overrides FOR EACH ROW EXECUTE FUNCTION lockstep.stays('overrides_stay');

CREATE TRIGGER prepared_begin BEFORE INSERT ON lockstep.prepared FOR EACH ROW EXECUTE FUNCTION lockstep.prepared_begin();

CREATE TRIGGER prepared_move BEFORE UPDATE ON lockstep.prepared FOR EACH ROW EXECUTE FUNCTION lockstep.prepared_move();

CREATE TRIGGER prepared_stay BEFORE DELETE ON lockstep.prepared FOR EACH ROW EXECUTE FUNCTION lockstep.stays('prepared_stay');

CREATE TRIGGER revised_files_begin BEFORE INSERT ON lockstep.revised_files FOR EACH ROW EXECUTE FUNCTION lockstep.revised_files_begin();

CREATE TRIGGER revised_files_stay BEFORE DELETE OR UPDATE ON lockstep.revised_files FOR EACH ROW EXECUTE FUNCTION lockstep.stays('revised_files_stay');

CREATE TRIGGER revisions_move BEFORE UPDATE ON lockstep.revisions FOR EACH ROW EXECUTE FUNCTION lockstep.revisions_move();

CREATE TRIGGER revisions_stay BEFORE DELETE ON lockstep.revisions FOR EACH ROW EXECUTE FUNCTION lockstep.stays('revisions_stay');

CREATE TRIGGER schema_statements_begin BEFORE INSERT ON lockstep.schema_statements FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('schema_statements_while_capturing');

CREATE TRIGGER schema_statements_stay BEFORE DELETE OR UPDATE ON lockstep.schema_statements FOR EACH ROW EXECUTE FUNCTION lockstep.stays('schema_statements_stay');

CREATE TRIGGER segment_files_stay BEFORE DELETE OR UPDATE ON lockstep.segment_files FOR EACH ROW EXECUTE FUNCTION lockstep.stays('segment_files_stay');

CREATE TRIGGER segments_begin BEFORE INSERT ON lockstep.segments FOR EACH ROW EXECUTE FUNCTION lockstep.segments_begin();

CREATE TRIGGER segments_stay BEFORE DELETE OR UPDATE ON lockstep.segments FOR EACH ROW EXECUTE FUNCTION lockstep.stays('segments_stay');

CREATE TRIGGER set_witnesses_begin BEFORE INSERT ON lockstep.set_witnesses FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('set_witnesses_while_capturing');

CREATE TRIGGER set_witnesses_stay BEFORE DELETE OR UPDATE ON lockstep.set_witnesses FOR EACH ROW EXECUTE FUNCTION lockstep.stays('set_witnesses_stay');

CREATE TRIGGER snapshot_files_stay BEFORE DELETE OR UPDATE ON lockstep.snapshot_files FOR EACH ROW EXECUTE FUNCTION lockstep.stays('snapshot_files_stay');

CREATE TRIGGER snapshots_begin BEFORE INSERT ON lockstep.snapshots FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('snapshots_while_capturing');

CREATE TRIGGER snapshots_stay BEFORE DELETE OR UPDATE ON lockstep.snapshots FOR EACH ROW EXECUTE FUNCTION lockstep.stays('snapshots_stay');

CREATE TRIGGER source_files_begin BEFORE INSERT ON lockstep.source_files FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('source_files_while_capturing');

CREATE TRIGGER source_files_stay BEFORE DELETE OR UPDATE ON lockstep.source_files FOR EACH ROW EXECUTE FUNCTION lockstep.stays('source_files_stay');

CREATE TRIGGER sources_move BEFORE UPDATE ON lockstep.sources FOR EACH ROW EXECUTE FUNCTION lockstep.sources_move();

CREATE TRIGGER table_events_begin BEFORE INSERT ON lockstep.table_events FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('table_events_while_capturing');

CREATE TRIGGER table_events_order BEFORE INSERT ON lockstep.table_events FOR EACH ROW EXECUTE FUNCTION lockstep.table_events_begin();

CREATE TRIGGER table_events_stay BEFORE DELETE OR UPDATE ON lockstep.table_events FOR EACH ROW EXECUTE FUNCTION lockstep.stays('table_events_stay');

CREATE TRIGGER table_life_begin BEFORE INSERT ON lockstep.table_life FOR EACH ROW EXECUTE FUNCTION lockstep.table_life_begin();

CREATE TRIGGER table_life_stays BEFORE DELETE OR UPDATE ON lockstep.table_life FOR EACH ROW EXECUTE FUNCTION lockstep.stays('table_life_stays');

CREATE TRIGGER table_orders_begin BEFORE INSERT ON lockstep.table_orders FOR EACH ROW EXECUTE FUNCTION lockstep.table_orders_begin();

CREATE TRIGGER table_orders_move BEFORE UPDATE ON lockstep.table_orders FOR EACH ROW EXECUTE FUNCTION lockstep.table_orders_move();

CREATE TRIGGER table_orders_stay BEFORE DELETE ON lockstep.table_orders FOR EACH ROW EXECUTE FUNCTION lockstep.stays('table_orders_stay');

CREATE TRIGGER table_states_move AFTER INSERT OR UPDATE ON lockstep.table_states FOR EACH ROW EXECUTE FUNCTION lockstep.table_states_move();

CREATE TRIGGER table_versions_begin BEFORE INSERT ON lockstep.table_versions FOR EACH ROW EXECUTE FUNCTION lockstep.while_capturing('table_versions_while_capturing');

CREATE TRIGGER table_versions_stay BEFORE DELETE OR UPDATE ON lockstep.table_versions FOR EACH ROW EXECUTE FUNCTION lockstep.stays('table_versions_stay');

CREATE TRIGGER upkept_begin BEFORE INSERT ON lockstep.upkept FOR EACH ROW EXECUTE FUNCTION lockstep.upkept_begin();

CREATE TRIGGER upkept_stay BEFORE DELETE OR UPDATE ON lockstep.upkept FOR EACH ROW EXECUTE FUNCTION lockstep.stays('upkept_stay');

CREATE TRIGGER version_sets_begin BEFORE INSERT ON lockstep.version_sets FOR EACH ROW EXECUTE FUNCTION lockstep.version_sets_begin();

CREATE TRIGGER version_sets_stay BEFORE DELETE OR UPDATE ON lockstep.version_sets FOR EACH ROW EXECUTE FUNCTION lockstep.stays('version_sets_stay');

CREATE TRIGGER writes_begin BEFORE INSERT ON lockstep.writes FOR EACH ROW EXECUTE FUNCTION lockstep.writes_begin();

CREATE TRIGGER writes_move BEFORE UPDATE ON lockstep.writes FOR EACH ROW EXECUTE FUNCTION lockstep.writes_move();

CREATE TRIGGER writes_stay BEFORE DELETE ON lockstep.writes FOR EACH ROW EXECUTE FUNCTION lockstep.stays('writes_stay');
