CREATE TABLE {schema}.cg_schema (
    version int4 NOT NULL,
    min_reader int4 NOT NULL,
    min_writer int4 NOT NULL,
    made_by text NOT NULL
);

-- One row a segment: its owner, and its newest commit.
CREATE TABLE {schema}.cg_head (
    seg int8 PRIMARY KEY,
    epoch int8 NOT NULL,
    session int8 NOT NULL,
    seq int8 NOT NULL,
    batches int8 NOT NULL,
    token uuid,
    quorum bool NOT NULL,
    owner text NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE {schema}.cg_row (
    seg int8 NOT NULL,
    fam int2 NOT NULL,
    k bytea NOT NULL,
    v bytea NOT NULL,
    PRIMARY KEY (seg, fam, k)
) WITH (fillfactor = 95);
ALTER TABLE {schema}.cg_row ALTER COLUMN v SET STORAGE EXTERNAL;

CREATE FUNCTION {schema}.cg_check_quorum_1(p_quorum bool) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
    IF p_quorum AND (current_setting('synchronous_standby_names') = ''
            OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')) THEN
        RAISE EXCEPTION 'a commit would not wait for another node' USING ERRCODE = 'CG004',
            DETAIL = format('synchronous_standby_names is %L, synchronous_commit is %L',
                current_setting('synchronous_standby_names'), current_setting('synchronous_commit'));
    END IF;
END $body$;

-- The caller chooses an epoch that no other owner ever had, also none whose opening a failover took away.
CREATE FUNCTION {schema}.cg_open_1(p_seg int8, p_epoch int8, p_quorum bool, p_owner text) RETURNS {schema}.cg_head LANGUAGE plpgsql AS $body$
DECLARE
    h {schema}.cg_head;
    who text := p_owner || ', since ' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC';
BEGIN
    PERFORM {schema}.cg_check_quorum_1(p_quorum);
    INSERT INTO {schema}.cg_head AS old VALUES (p_seg, p_epoch, 1, 0, 0, NULL, p_quorum, who)
        ON CONFLICT (seg) DO UPDATE SET epoch = p_epoch, session = 1, token = NULL, quorum = p_quorum, owner = who
        RETURNING * INTO h;
    RETURN h;
END $body$;

-- Begins another session of the owner. Of another owner it changes nothing. It is a commit in both cases, so its answer
-- shows only what is replicated.
CREATE FUNCTION {schema}.cg_again_1(p_seg int8, p_epoch int8) RETURNS SETOF {schema}.cg_head LANGUAGE plpgsql AS $body$
DECLARE
    h {schema}.cg_head;
BEGIN
    UPDATE {schema}.cg_head SET session = session + (epoch = p_epoch)::int4 WHERE seg = p_seg RETURNING * INTO h;
    IF FOUND THEN
        PERFORM {schema}.cg_check_quorum_1(h.quorum);
        RETURN NEXT h;
    END IF;
END $body$;

CREATE FUNCTION {schema}.cg_put_1(p_seg int8, put_f int2[], put_k bytea[], put_v bytea[]) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
    IF cardinality(put_f) > 0 THEN
        INSERT INTO {schema}.cg_row SELECT p_seg, a.f, a.k, a.v FROM unnest(put_f, put_k, put_v) a(f, k, v)
            ON CONFLICT (seg, fam, k) DO UPDATE SET v = excluded.v;
    END IF;
END $body$;

-- It raises and never returns a refusal: then nothing is half done.
CREATE FUNCTION {schema}.cg_commit_1(
    p_seg int8, p_epoch int8, p_session int8, p_batches int8, p_seq int8, p_n int8, p_token uuid,
    guard_f int2[], guard_k bytea[], guard_v bytea[],
    range_f int2[], range_from bytea[], range_to bytea[],
    delete_f int2[], delete_k bytea[],
    p_newest bytea,
    put_f int2[], put_k bytea[], put_v bytea[]
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    -- Where this session put the two rows that each commit replaces. The index leads past every version of them that a long
    -- snapshot keeps.
    head_at tid := nullif(current_setting('cherrygrove.head', true), '');
    newest_at tid := nullif(current_setting('cherrygrove.newest', true), '');
    h {schema}.cg_head;
    g record;
BEGIN
    IF head_at IS NOT NULL THEN
        UPDATE {schema}.cg_head SET seq = p_seq, batches = batches + p_n, token = p_token
            WHERE ctid = head_at AND seg = p_seg AND epoch = p_epoch AND session = p_session AND batches = p_batches
            RETURNING quorum, ctid INTO h.quorum, head_at;
    END IF;
    IF h.quorum IS NULL THEN
        UPDATE {schema}.cg_head SET seq = p_seq, batches = batches + p_n, token = p_token
            WHERE seg = p_seg AND epoch = p_epoch AND session = p_session AND batches = p_batches
            RETURNING quorum, ctid INTO h.quorum, head_at;
    END IF;
    IF h.quorum IS NULL THEN
        SELECT * INTO h FROM {schema}.cg_head WHERE seg = p_seg;
        RAISE EXCEPTION 'the rows have another owner' USING ERRCODE = 'CG001',
            DETAIL = format('%s %s %s %s', h.epoch, h.session, h.batches, h.owner);
    END IF;
    PERFORM {schema}.cg_check_quorum_1(h.quorum);
    IF cardinality(guard_f) > 0 THEN
        -- Expected bytes: none for an absent row, 8 for a version, 12 for a checksum and a version.
        SELECT q.n, octet_length(q.v) AS len, encode(substring(q.v FROM 9 FOR 8), 'hex') AS version INTO g
            FROM (SELECT a.n, a.e, CASE WHEN a.f = 9 THEN (SELECT r.v FROM {schema}.cg_records_1(p_seg, ARRAY[a.k]) r)
                    ELSE (SELECT r.v FROM {schema}.cg_row r WHERE r.seg = p_seg AND r.fam = a.f AND r.k = a.k) END AS v
                FROM unnest(guard_f, guard_k, guard_v) WITH ORDINALITY a(f, k, e, n) OFFSET 0) q
            WHERE CASE WHEN q.e = ''::bytea THEN q.v IS NOT NULL
                ELSE substring(q.v FROM 17 - octet_length(q.e) FOR octet_length(q.e)) IS DISTINCT FROM q.e END
            ORDER BY q.n LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION 'a guarded row changed' USING ERRCODE = 'CG003',
                DETAIL = format('%s %s %s', g.n, coalesce(g.len, -1), coalesce(g.version, ''));
        END IF;
    END IF;
    FOR i IN 1 .. cardinality(range_f) LOOP
        DELETE FROM {schema}.cg_row WHERE seg = p_seg AND fam = range_f[i] AND k >= range_from[i] AND k < range_to[i];
        IF range_f[i] = 9 THEN
            PERFORM {schema}.cg_delete_records_between_1(p_seg, range_from[i], range_to[i]);
        END IF;
    END LOOP;
    IF cardinality(delete_f) > 0 THEN
        DELETE FROM {schema}.cg_row WHERE ctid = ANY (ARRAY(
            SELECT (SELECT r.ctid FROM {schema}.cg_row r WHERE r.seg = p_seg AND r.fam = a.f AND r.k = a.k)
                FROM unnest(delete_f, delete_k) a(f, k)));
        IF 9 = ANY (delete_f) THEN
            PERFORM {schema}.cg_delete_records_1(p_seg, ARRAY(SELECT a.k FROM unnest(delete_f, delete_k) a(f, k) WHERE a.f = 9));
        END IF;
    END IF;
    IF p_newest IS NOT NULL THEN
        UPDATE {schema}.cg_row SET v = p_newest
            WHERE ctid = newest_at AND seg = p_seg AND fam = 0 AND k = 'commitSequence' RETURNING ctid INTO newest_at;
        IF newest_at IS NULL THEN
            INSERT INTO {schema}.cg_row VALUES (p_seg, 0, 'commitSequence', p_newest)
                ON CONFLICT (seg, fam, k) DO UPDATE SET v = excluded.v RETURNING ctid INTO newest_at;
        END IF;
    END IF;
    PERFORM {schema}.cg_put_1(p_seg, put_f, put_k, put_v);
    -- A transaction that ends without a commit takes this back.
    PERFORM set_config('cherrygrove.head', head_at::text, false), set_config('cherrygrove.newest', newest_at::text, false);
END $body$;
