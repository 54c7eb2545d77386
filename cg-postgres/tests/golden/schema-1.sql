SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA cg_golden_dump;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE cg_golden_dump.cg_head (
    seg bigint NOT NULL,
    epoch bigint NOT NULL,
    session bigint NOT NULL,
    seq bigint NOT NULL,
    batches bigint NOT NULL,
    token uuid,
    quorum boolean NOT NULL,
    owner text NOT NULL
)
WITH (fillfactor='50');
CREATE FUNCTION cg_golden_dump.cg_again_1(p_seg bigint, p_epoch bigint) RETURNS SETOF cg_golden_dump.cg_head
    LANGUAGE plpgsql
    AS $$
DECLARE
    h "cg_golden_dump".cg_head;
BEGIN
    UPDATE "cg_golden_dump".cg_head SET session = session + (epoch = p_epoch)::int4 WHERE seg = p_seg RETURNING * INTO h;
    IF FOUND THEN
        PERFORM "cg_golden_dump".cg_check_quorum_1(h.quorum);
        RETURN NEXT h;
    END IF;
END $$;
CREATE FUNCTION cg_golden_dump.cg_check_quorum_1(p_quorum boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF p_quorum AND (current_setting('synchronous_standby_names') = ''
            OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')) THEN
        RAISE EXCEPTION 'a commit would not wait for another node' USING ERRCODE = 'CG004',
            DETAIL = format('synchronous_standby_names is %L, synchronous_commit is %L',
                current_setting('synchronous_standby_names'), current_setting('synchronous_commit'));
    END IF;
END $$;
CREATE FUNCTION cg_golden_dump.cg_columns_1(p_seg bigint, p_from bytea, p_rows bigint, p_bytes bigint) RETURNS TABLE(k bytea, v bytea, p integer, is_there boolean, kind text, at bigint, block_x bigint, block_y bigint, block_z bigint, x double precision, y double precision, z double precision)
    LANGUAGE plpgsql STABLE
    AS $_$
#variable_conflict use_column
DECLARE
    s text := 'cg_golden_dump';
    t record;
    rows_left int8 := p_rows;
    bytes_left int8 := p_bytes;
BEGIN
    FOR t IN SELECT c.name FROM "cg_golden_dump".cg_table c
        WHERE c.name IS NOT NULL AND c.k_from >= substring(p_from FROM 1 FOR 33) ORDER BY c.k_from
    LOOP
        FOR k, v, p, is_there, kind, at, block_x, block_y, block_z, x, y, z IN EXECUTE format('SELECT r.k, r.v, r.p, '
                'r.payload IS NOT DISTINCT FROM substring(r.v FROM r.p), kind, at, block_x, block_y, block_z, x, y, z '
                'FROM (SELECT *, octet_length(v) - octet_length(payload) + 1 AS p FROM %I.%I '
                'WHERE seg = $1 AND k >= $2 ORDER BY k LIMIT $3) r', s, t.name) USING p_seg, p_from, rows_left
        LOOP
            RETURN NEXT;
            rows_left := rows_left - 1;
            bytes_left := bytes_left - octet_length(v);
            IF rows_left <= 0 OR bytes_left <= 0 THEN
                RETURN;
            END IF;
        END LOOP;
    END LOOP;
END $_$;
CREATE FUNCTION cg_golden_dump.cg_commit_1(p_seg bigint, p_epoch bigint, p_session bigint, p_batches bigint, p_seq bigint, p_n bigint, p_token uuid, guard_f smallint[], guard_k bytea[], guard_v bytea[], range_f smallint[], range_from bytea[], range_to bytea[], delete_f smallint[], delete_k bytea[], p_newest bytea, put_f smallint[], put_k bytea[], put_v bytea[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    -- Where this session put the two rows that each commit replaces. The index leads past every version of them that a long
    -- snapshot keeps.
    head_at tid := nullif(current_setting('cherrygrove.head', true), '');
    newest_at tid := nullif(current_setting('cherrygrove.newest', true), '');
    h "cg_golden_dump".cg_head;
    g record;
BEGIN
    IF head_at IS NOT NULL THEN
        UPDATE "cg_golden_dump".cg_head SET seq = p_seq, batches = batches + p_n, token = p_token
            WHERE ctid = head_at AND seg = p_seg AND epoch = p_epoch AND session = p_session AND batches = p_batches
            RETURNING quorum, ctid INTO h.quorum, head_at;
    END IF;
    IF h.quorum IS NULL THEN
        UPDATE "cg_golden_dump".cg_head SET seq = p_seq, batches = batches + p_n, token = p_token
            WHERE seg = p_seg AND epoch = p_epoch AND session = p_session AND batches = p_batches
            RETURNING quorum, ctid INTO h.quorum, head_at;
    END IF;
    IF h.quorum IS NULL THEN
        SELECT * INTO h FROM "cg_golden_dump".cg_head WHERE seg = p_seg;
        RAISE EXCEPTION 'the rows have another owner' USING ERRCODE = 'CG001',
            DETAIL = format('%s %s %s %s', h.epoch, h.session, h.batches, h.owner);
    END IF;
    PERFORM "cg_golden_dump".cg_check_quorum_1(h.quorum);
    IF cardinality(guard_f) > 0 THEN
        -- Expected bytes: none for an absent row, 8 for a version, 12 for a checksum and a version.
        SELECT q.n, octet_length(q.v) AS len, encode(substring(q.v FROM 9 FOR 8), 'hex') AS version INTO g
            FROM (SELECT a.n, a.e, CASE WHEN a.f = 9 THEN (SELECT r.v FROM "cg_golden_dump".cg_records_1(p_seg, ARRAY[a.k]) r)
                    ELSE (SELECT r.v FROM "cg_golden_dump".cg_row r WHERE r.seg = p_seg AND r.fam = a.f AND r.k = a.k) END AS v
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
        DELETE FROM "cg_golden_dump".cg_row WHERE seg = p_seg AND fam = range_f[i] AND k >= range_from[i] AND k < range_to[i];
        IF range_f[i] = 9 THEN
            PERFORM "cg_golden_dump".cg_delete_records_between_1(p_seg, range_from[i], range_to[i]);
        END IF;
    END LOOP;
    IF cardinality(delete_f) > 0 THEN
        DELETE FROM "cg_golden_dump".cg_row WHERE ctid = ANY (ARRAY(
            SELECT (SELECT r.ctid FROM "cg_golden_dump".cg_row r WHERE r.seg = p_seg AND r.fam = a.f AND r.k = a.k)
                FROM unnest(delete_f, delete_k) a(f, k)));
        IF 9 = ANY (delete_f) THEN
            PERFORM "cg_golden_dump".cg_delete_records_1(p_seg, ARRAY(SELECT a.k FROM unnest(delete_f, delete_k) a(f, k) WHERE a.f = 9));
        END IF;
    END IF;
    IF p_newest IS NOT NULL THEN
        UPDATE "cg_golden_dump".cg_row SET v = p_newest
            WHERE ctid = newest_at AND seg = p_seg AND fam = 0 AND k = 'commitSequence' RETURNING ctid INTO newest_at;
        IF newest_at IS NULL THEN
            INSERT INTO "cg_golden_dump".cg_row VALUES (p_seg, 0, 'commitSequence', p_newest)
                ON CONFLICT (seg, fam, k) DO UPDATE SET v = excluded.v RETURNING ctid INTO newest_at;
        END IF;
    END IF;
    PERFORM "cg_golden_dump".cg_put_1(p_seg, put_f, put_k, put_v);
    -- A transaction that ends without a commit takes this back.
    PERFORM set_config('cherrygrove.head', head_at::text, false), set_config('cherrygrove.newest', newest_at::text, false);
END $$;
CREATE FUNCTION cg_golden_dump.cg_delete_records_1(p_seg bigint, p_k bytea[]) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    s text := 'cg_golden_dump';
    t record;
BEGIN
    FOR t IN SELECT c.name, array_agg(a.k) AS k FROM unnest(p_k) a(k), LATERAL (SELECT name FROM "cg_golden_dump".cg_table
            WHERE k_from = substring(a.k FROM 1 FOR 33) AND k_bytes = octet_length(a.k) AND name IS NOT NULL OFFSET 0) c GROUP BY c.name
    LOOP
        EXECUTE format('DELETE FROM %1$I.%2$I WHERE ctid = ANY (ARRAY('
            'SELECT (SELECT r.ctid FROM %1$I.%2$I r WHERE r.seg = $1 AND r.k = a.k) FROM unnest($2) a(k)))', s, t.name)
            USING p_seg, t.k;
    END LOOP;
END $_$;
CREATE FUNCTION cg_golden_dump.cg_delete_records_between_1(p_seg bigint, p_from bytea, p_to bytea) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    s text := 'cg_golden_dump';
    t record;
BEGIN
    FOR t IN SELECT c.name FROM "cg_golden_dump".cg_table c
        WHERE c.name IS NOT NULL AND c.k_from >= substring(p_from FROM 1 FOR 33) AND c.k_from < p_to
    LOOP
        EXECUTE format('DELETE FROM %I.%I WHERE seg = $1 AND k >= $2 AND k < $3', s, t.name) USING p_seg, p_from, p_to;
    END LOOP;
END $_$;
CREATE FUNCTION cg_golden_dump.cg_grant_1(p_name text) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    s text := 'cg_golden_dump';
    g record;
BEGIN
    FOR g IN SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
        WHERE n.nspname = s AND c.relname = 'cg_row' AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT ON %I.%I TO %s', s, p_name, g.who);
    END LOOP;
END $$;
CREATE FUNCTION cg_golden_dump.cg_make_records_1(p_k_bytes integer) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    levels int4 := (p_k_bytes - 49) / 4;
    s text := 'cg_golden_dump';
    at_byte int4;
    children text := '';
    names text := '';
BEGIN
    FOR i IN 1 .. levels LOOP
        at_byte := 29 + 4 * i;
        children := children || format(
            'child_%s int4 GENERATED ALWAYS AS ((get_byte(k, %s) << 24) | (get_byte(k, %s) << 16) | (get_byte(k, %s) << 8) | get_byte(k, %s)) STORED, ',
            i, at_byte, at_byte + 1, at_byte + 2, at_byte + 3);
        names := names || format('child_%s, ', i);
    END LOOP;
    EXECUTE format('CREATE TABLE %1$I.records (seg int8 NOT NULL, k bytea NOT NULL, %2$s'
        'id uuid GENERATED ALWAYS AS (encode(substring(k FROM %3$s), ''hex'')::uuid) STORED, '
        'block_x int8, block_y int8, block_z int8, x float8, y float8, z float8, at int8, kind text, payload bytea, '
        'v bytea NOT NULL, PRIMARY KEY (seg, k)) PARTITION BY RANGE (k)', s, children, p_k_bytes - 15);
    ALTER TABLE "cg_golden_dump".records ALTER COLUMN v SET STORAGE EXTERNAL;
    EXECUTE format('CREATE INDEX records_children ON %I.records (%s)', s, left(names, -2));
    PERFORM "cg_golden_dump".cg_grant_1('records');
END $_$;
CREATE FUNCTION cg_golden_dump.cg_make_table_1(p_from bytea, p_to bytea, p_k_bytes integer, p_name text, p_max bigint) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    s text := 'cg_golden_dump';
    most int8 := least(p_max, current_setting('max_locks_per_transaction')::int8
        * (current_setting('max_connections')::int8 + current_setting('max_prepared_transactions')::int8) / 6);
    known int4;
    made int8;
BEGIN
    LOCK TABLE "cg_golden_dump".cg_table IN SHARE ROW EXCLUSIVE MODE;
    PERFORM FROM "cg_golden_dump".cg_table WHERE k_from = p_from;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT count(*), min(k_bytes) INTO made, known FROM "cg_golden_dump".cg_table WHERE name IS NOT NULL;
    IF known <> p_k_bytes THEN
        RETURN;
    END IF;
    IF p_name IS NULL OR made >= most THEN
        INSERT INTO "cg_golden_dump".cg_table VALUES (p_from, p_to, p_k_bytes, NULL);
        RETURN;
    END IF;
    IF made = 0 THEN
        PERFORM "cg_golden_dump".cg_make_records_1(p_k_bytes);
    END IF;
    -- PARTITION OF would wait for everyone who reads `records`.
    EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.records INCLUDING ALL)', s, p_name);
    EXECUTE format('ALTER TABLE %1$I.records ATTACH PARTITION %1$I.%2$I FOR VALUES FROM (%3$L) TO (%4$L)', s, p_name, p_from, p_to);
    PERFORM "cg_golden_dump".cg_grant_1(p_name);
    INSERT INTO "cg_golden_dump".cg_table VALUES (p_from, p_to, p_k_bytes, p_name);
END $_$;
CREATE FUNCTION cg_golden_dump.cg_make_tables_1(p_seg bigint, p_epoch bigint, p_from bytea[], p_to bytea[], p_k_bytes integer[], p_name text[], p_max bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM "cg_golden_dump".cg_make_table_1(a.f, a.t, a.b, a.n, p_max) FROM unnest(p_from, p_to, p_k_bytes, p_name) a(f, t, b, n)
        WHERE EXISTS (SELECT FROM "cg_golden_dump".cg_head h WHERE h.seg = p_seg AND h.epoch = p_epoch)
            AND NOT EXISTS (SELECT FROM "cg_golden_dump".cg_table c WHERE c.k_from = a.f);
END $$;
CREATE FUNCTION cg_golden_dump.cg_open_1(p_seg bigint, p_epoch bigint, p_quorum boolean, p_owner text) RETURNS cg_golden_dump.cg_head
    LANGUAGE plpgsql
    AS $$
DECLARE
    h "cg_golden_dump".cg_head;
    who text := p_owner || ', since ' || to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') || ' UTC';
BEGIN
    PERFORM "cg_golden_dump".cg_check_quorum_1(p_quorum);
    INSERT INTO "cg_golden_dump".cg_head AS old VALUES (p_seg, p_epoch, 1, 0, 0, NULL, p_quorum, who)
        ON CONFLICT (seg) DO UPDATE SET epoch = p_epoch, session = 1, token = NULL, quorum = p_quorum, owner = who
        RETURNING * INTO h;
    RETURN h;
END $$;
CREATE FUNCTION cg_golden_dump.cg_put_1(p_seg bigint, put_f smallint[], put_k bytea[], put_v bytea[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF cardinality(put_f) > 0 THEN
        INSERT INTO "cg_golden_dump".cg_row SELECT p_seg, a.f, a.k, a.v FROM unnest(put_f, put_k, put_v) a(f, k, v)
            ON CONFLICT (seg, fam, k) DO UPDATE SET v = excluded.v;
    END IF;
END $$;
CREATE FUNCTION cg_golden_dump.cg_put_records_1(p_seg bigint, p_from bytea, p_to bytea, p_k_bytes integer, p_name text, p_max bigint, put_k bytea[], put_v bytea[], put_p integer[], put_kind text[], put_at bigint[], put_bx bigint[], put_by bigint[], put_bz bigint[], put_x double precision[], put_y double precision[], put_z double precision[]) RETURNS void
    LANGUAGE plpgsql
    AS $_$
DECLARE
    s text := 'cg_golden_dump';
    t "cg_golden_dump".cg_table;
BEGIN
    SELECT * INTO t FROM "cg_golden_dump".cg_table WHERE k_from = p_from;
    IF NOT FOUND THEN
        PERFORM "cg_golden_dump".cg_make_table_1(p_from, p_to, p_k_bytes, p_name, p_max);
        SELECT * INTO t FROM "cg_golden_dump".cg_table WHERE k_from = p_from;
    END IF;
    IF t.name IS NULL OR t.k_bytes <> p_k_bytes THEN
        PERFORM "cg_golden_dump".cg_put_1(p_seg, array_fill(9::int2, ARRAY[cardinality(put_k)]), put_k, put_v);
        RETURN;
    END IF;
    EXECUTE format('INSERT INTO %I.%I (seg, k, block_x, block_y, block_z, x, y, z, at, kind, payload, v) '
        'SELECT $1, a.k, a.bx, a.by, a.bz, a.x, a.y, a.z, a.at, a.kind, substring(a.v FROM a.p), a.v '
        'FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) a(k, v, p, kind, at, bx, by, bz, x, y, z) '
        'ON CONFLICT (seg, k) DO UPDATE SET (block_x, block_y, block_z, x, y, z, at, kind, payload, v) = '
        '(excluded.block_x, excluded.block_y, excluded.block_z, excluded.x, excluded.y, excluded.z, excluded.at, '
        'excluded.kind, excluded.payload, excluded.v)', s, t.name)
        USING p_seg, put_k, put_v, put_p, put_kind, put_at, put_bx, put_by, put_bz, put_x, put_y, put_z;
END $_$;
CREATE FUNCTION cg_golden_dump.cg_records_1(p_seg bigint, p_k bytea[], p_s integer[] DEFAULT NULL::integer[], p_l integer[] DEFAULT NULL::integer[]) RETURNS TABLE(n bigint, v bytea)
    LANGUAGE plpgsql STABLE ROWS 1
    AS $_$
#variable_conflict use_column
DECLARE
    s text := 'cg_golden_dump';
    t record;
BEGIN
    FOR t IN SELECT q.name, array_agg(q.n) AS n, array_agg(q.k) AS k, array_agg(q.s) AS s, array_agg(q.l) AS l
        FROM (SELECT a.*, (SELECT c.name FROM "cg_golden_dump".cg_table c
                WHERE c.k_from = substring(a.k FROM 1 FOR 33) AND c.k_bytes = octet_length(a.k)) AS name
            FROM unnest(p_k, p_s, p_l) WITH ORDINALITY a(k, s, l, n) OFFSET 0) q GROUP BY q.name
    LOOP
        IF t.name IS NULL THEN
            RETURN QUERY SELECT a.n, (SELECT CASE WHEN a.l IS NULL THEN r.v ELSE substring(r.v FROM a.s FOR a.l) END
                    FROM "cg_golden_dump".cg_row r WHERE r.seg = p_seg AND r.fam = 9 AND r.k = a.k)
                FROM unnest(t.n, t.k, t.s, t.l) a(n, k, s, l);
        ELSE
            RETURN QUERY EXECUTE format(
                'SELECT a.n, (SELECT CASE WHEN a.l IS NULL THEN r.v ELSE substring(r.v FROM a.s FOR a.l) END '
                'FROM %I.%I r WHERE r.seg = $1 AND r.k = a.k) FROM unnest($2, $3, $4, $5) a(n, k, s, l)', s, t.name)
                USING p_seg, t.n, t.k, t.s, t.l;
        END IF;
    END LOOP;
END $_$;
CREATE FUNCTION cg_golden_dump.cg_records_between_1(p_seg bigint, p_from bytea[], p_to bytea[], p_rows bigint, p_bytes bigint) RETURNS TABLE(k bytea, v bytea)
    LANGUAGE plpgsql STABLE
    AS $_$
#variable_conflict use_column
DECLARE
    s text := 'cg_golden_dump';
    t record;
    query text;
    of_table text;
    pos bytea := p_from[1];
    upto bytea;
    last bytea;
    i int4 := 1;
    j int4;
    rows_left int8 := p_rows;
    bytes_left int8 := p_bytes;
BEGIN
    WHILE i <= cardinality(p_from) LOOP
        SELECT c.k_from, c.k_to, c.name INTO t FROM "cg_golden_dump".cg_table c
            WHERE c.name IS NOT NULL AND c.k_from >= substring(pos FROM 1 FOR 33) ORDER BY c.k_from LIMIT 1;
        upto := t.k_from;
        query := 'SELECT k, v FROM %1$I.cg_row WHERE seg = $1 AND fam = 9 AND k >= a.f AND k < a.t ORDER BY k LIMIT $5';
        IF upto < p_to[i] THEN
            upto := t.k_to;
            of_table := 'SELECT k, v FROM %1$I.%2$I WHERE seg = $1 AND k >= a.f AND k < a.t ORDER BY k LIMIT $5';
            IF EXISTS (SELECT FROM "cg_golden_dump".cg_row r WHERE r.seg = p_seg AND r.fam = 9 AND r.k >= pos AND r.k < upto) THEN
                query := 'SELECT k, v FROM ((' || query || ') UNION ALL (' || of_table || ')) q ORDER BY k LIMIT $5';
            ELSE
                query := of_table;
            END IF;
        END IF;
        j := i;
        WHILE j < cardinality(p_from) AND coalesce(p_from[j + 1] < upto, true) LOOP
            j := j + 1;
        END LOOP;
        FOR k, v IN EXECUTE format('SELECT r.k, r.v FROM (SELECT greatest(b.f, $4) AS f, least(b.t, $6) AS t FROM unnest($2, $3) b(f, t)) a, '
                'LATERAL (' || query || ') r', s, t.name)
            USING p_seg, p_from[i:j], p_to[i:j], pos, rows_left, upto
        LOOP
            IF k <= last THEN
                RAISE EXCEPTION 'ranges are not read in their order';
            END IF;
            last := k;
            RETURN NEXT;
            rows_left := rows_left - 1;
            bytes_left := bytes_left - octet_length(v);
            IF rows_left <= 0 OR bytes_left <= 0 THEN
                RETURN;
            END IF;
        END LOOP;
        IF upto < p_to[j] THEN
            i := j;
            pos := upto;
        ELSE
            i := j + 1;
            pos := p_from[i];
        END IF;
    END LOOP;
END $_$;
CREATE TABLE cg_golden_dump.cg_row (
    seg bigint NOT NULL,
    fam smallint NOT NULL,
    k bytea NOT NULL,
    v bytea NOT NULL
)
WITH (fillfactor='95');
ALTER TABLE ONLY cg_golden_dump.cg_row ALTER COLUMN v SET STORAGE EXTERNAL;
CREATE TABLE cg_golden_dump.cg_schema (
    version integer NOT NULL,
    min_reader integer NOT NULL,
    min_writer integer NOT NULL,
    made_by text NOT NULL
);
CREATE TABLE cg_golden_dump.cg_table (
    k_from bytea NOT NULL,
    k_to bytea NOT NULL,
    k_bytes integer NOT NULL,
    name text
);
CREATE TABLE cg_golden_dump.records (
    seg bigint NOT NULL,
    k bytea NOT NULL,
    child_1 integer GENERATED ALWAYS AS (((((get_byte(k, 33) << 24) | (get_byte(k, 34) << 16)) | (get_byte(k, 35) << 8)) | get_byte(k, 36))) STORED,
    child_2 integer GENERATED ALWAYS AS (((((get_byte(k, 37) << 24) | (get_byte(k, 38) << 16)) | (get_byte(k, 39) << 8)) | get_byte(k, 40))) STORED,
    id uuid GENERATED ALWAYS AS ((encode(SUBSTRING(k FROM 42), 'hex'::text))::uuid) STORED,
    block_x bigint,
    block_y bigint,
    block_z bigint,
    x double precision,
    y double precision,
    z double precision,
    at bigint,
    kind text,
    payload bytea,
    v bytea NOT NULL
)
PARTITION BY RANGE (k);
ALTER TABLE ONLY cg_golden_dump.records ALTER COLUMN v SET STORAGE EXTERNAL;
CREATE TABLE cg_golden_dump.records_0_0_0_0 (
    seg bigint NOT NULL,
    k bytea NOT NULL,
    child_1 integer GENERATED ALWAYS AS (((((get_byte(k, 33) << 24) | (get_byte(k, 34) << 16)) | (get_byte(k, 35) << 8)) | get_byte(k, 36))) STORED,
    child_2 integer GENERATED ALWAYS AS (((((get_byte(k, 37) << 24) | (get_byte(k, 38) << 16)) | (get_byte(k, 39) << 8)) | get_byte(k, 40))) STORED,
    id uuid GENERATED ALWAYS AS ((encode(SUBSTRING(k FROM 42), 'hex'::text))::uuid) STORED,
    block_x bigint,
    block_y bigint,
    block_z bigint,
    x double precision,
    y double precision,
    z double precision,
    at bigint,
    kind text,
    payload bytea,
    v bytea NOT NULL
);
ALTER TABLE ONLY cg_golden_dump.records_0_0_0_0 ALTER COLUMN v SET STORAGE EXTERNAL;
CREATE TABLE cg_golden_dump.records_0_n2_0_0 (
    seg bigint NOT NULL,
    k bytea NOT NULL,
    child_1 integer GENERATED ALWAYS AS (((((get_byte(k, 33) << 24) | (get_byte(k, 34) << 16)) | (get_byte(k, 35) << 8)) | get_byte(k, 36))) STORED,
    child_2 integer GENERATED ALWAYS AS (((((get_byte(k, 37) << 24) | (get_byte(k, 38) << 16)) | (get_byte(k, 39) << 8)) | get_byte(k, 40))) STORED,
    id uuid GENERATED ALWAYS AS ((encode(SUBSTRING(k FROM 42), 'hex'::text))::uuid) STORED,
    block_x bigint,
    block_y bigint,
    block_z bigint,
    x double precision,
    y double precision,
    z double precision,
    at bigint,
    kind text,
    payload bytea,
    v bytea NOT NULL
);
ALTER TABLE ONLY cg_golden_dump.records_0_n2_0_0 ALTER COLUMN v SET STORAGE EXTERNAL;
ALTER TABLE ONLY cg_golden_dump.records ATTACH PARTITION cg_golden_dump.records_0_0_0_0 FOR VALUES FROM ('\x010000000000000000e00000000000000000000000000000000000000000000000') TO ('\x010000000000000000e00000000000000000000000000000000000000000000001');
ALTER TABLE ONLY cg_golden_dump.records ATTACH PARTITION cg_golden_dump.records_0_n2_0_0 FOR VALUES FROM ('\x010000000000000000724924924924924924924924924924924924924924924920') TO ('\x010000000000000000724924924924924924924924924924924924924924924921');
INSERT INTO cg_golden_dump.cg_head VALUES (0, 1151806663922765410, 1, 10, 11, '425c7180-634f-4c37-9a90-863169d36b5d', true, 'process 29122 on vm, since 2026-11-30 00:16:18 UTC');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x636f6d706f6e656e74536368656d6173', '\x010100008d40b1c7010000000000000000000000374fbaed01000000000000000000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x636f6d706f6e656e7473', '\x010100004b15e372010000000000000000000000374fbaed0000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x656e746974696573', '\x0101000018b94288010000000000000000000000374fbaed0000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x6c696e656167652f3030303030303030', '\x01010000dc362c66010000000000000000000000374fbaed0100000000000000374fbaedd87abf23');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x7061636b5265636f726473', '\x0101000045a6f4af010000000000000000000000374fbaed01000000000000000000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x72656e616d6573', '\x0101000085cc4cbd010000000000000000000000374fbaed01000000000000000000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x7369646573', '\x010100009fb8b9d0010000000000000000000000374fbaed0200000000000000100000003a6c6f73745f636f6d706f6e656e7473060000003a7374616c65');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x73747275637475726573', '\x01010000274c0060010000000000000000000000374fbaed0000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x6964656e74697479', '\x01010000f8146f3a020000000000000000000000374fbaed218a3ae5f69242299da5dd6737bd8256ab8e3604989341cd89e9c566cc6043fd');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x6c696d697473', '\x01010000b0f9b304020000000000000000000000374fbaed000000010000000000001000000000000000000100000000000000040000000000000004000000000000100000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x7265636f72645368617065', '\x010100004eef956f020000000000000000000000374fbaed10000000000200000200000008000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 4, '\x0000000000000000c49249249249249249249249249249249249249249249249', '\x010202009f943d96070000000000000000000000374fbaed0502000003000000dd000000faee0cfe0f00000028b52ffd04388506006c0200000000000000000000080800c2000000c29f000000603804020000b8847455b337a10405060754a81059d2011014420871f20112c827042304f9fbffdf0114c540ab9e3cc76543cb885ee01501a160247210a8439c01598825a007f102540832021c00f5735eb263797ae7352a742373f0d4c5d964cd52f4cc4b54c87dc880999772b89664d835adc09ffaa88130276570659260475aa43e8041f54f78159fd469acb85335935312e75eb6e9d78cca21ad99273943498979dc07bc01b72e9fc5acb894bbfbb9837be74ef00119b3b7699128b52ffd0438ad05009c01000200000000000000080008020000000800000001000180000055a8105d19360310144290a33d12e817d0b7ffffff0659a4a44840ff80b6a411293d8a8df2a2a028218a8632a1302805e29ffbc0275dc4b11dea34c338bfc19558a866349ca88c630e05107991cb1ac8d2152b79025282a28399b0a4443c7011882440a0ec832e6d6096ef604b5494332c3ca98dab9c0434992291c5109abed8c35bd0212cda309565208add11d6719cc5edb7c6efda1d8314c8acf98b28b52ffd0438950400cc00000200000000000000080180004fa8107dcf10144290d4071026fa013292150989a44362217990204802441ff3604739bc710d68244318bba0452b4cf1094c44421183e0431ddc70063064410a4b20420f6cf0021484400313604001f8e52e70498b58b64295a618e5273889894a46c2918a38e420009133725907b27483559e0129c1443ba663398803ef3eb7d802292ba0e86c');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 11, '\x050000000000000000c49249249249249249249249249249249249249249249249', '\x010100004a151e9a070000000000000000000000374fbaed0100000000000000000000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x626c6f636b536368656d6173', '\x0101000005ccff54080000000000000000000000374fbaed01000000000000000200000000000000000000000000000000000000000000000000000000000000000100000000000000010000000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x626c6f636b73', '\x01010000839bb9df080000000000000000000000374fbaed0200000000000000040000003a6169720a00000067616d653a73746f6e65');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x64696d656e73696f6e73', '\x0101000030e9cd6f080000000000000000000000374fbaed01000000000000000e00000067616d653a6f766572776f726c64');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 2, '\x0000000000000000c492492492492492492492492492492492492492492492cd', '\x010101001659b472090000000000000000000000374fbaed4002000022010001002a380208000402000317000502000430000d19000f0200ffdf60000000000000');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 11, '\x02010000000000000000c4924924924924924924924924924924924924924924924b', '\x0101000096b4f715090000000000000000000000374fbaed');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 11, '\x02020000000000000000c49249249249249249249249249249249249249249249249', '\x0101000005a4e5c2090000000000000000000000374fbaed');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 0, '\x636f6d6d697453657175656e6365', '\x01010000201b29270a0000000000000000000000374fbaed');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 8, '\x6b6579', '\x0101000067c6887d0a0000000000000000000000374fbaed0100000000000000000000000000000001636f6e74656e74');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 9, '\x0200000000000000010000000000000007', '\x01010000312ead9d0a0000000000000000000000374fbaed010000000000000000e000000000000000000000000000000000000000000000000000000000000020');
INSERT INTO cg_golden_dump.cg_row VALUES (0, 9, '\x0200000000000000020000000000000007', '\x01010000e63929040a0000000000000000000000374fbaed0100000000000000007249249249249249249249249249249249249249249249200000000400000160');
INSERT INTO cg_golden_dump.cg_schema VALUES (1, 1, 1, 'cg-postgres 0.1.0');
INSERT INTO cg_golden_dump.cg_table VALUES ('\x010000000000000000724924924924924924924924924924924924924924924920', '\x010000000000000000724924924924924924924924924924924924924924924921', 57, 'records_0_n2_0_0');
INSERT INTO cg_golden_dump.cg_table VALUES ('\x010000000000000000e00000000000000000000000000000000000000000000000', '\x010000000000000000e00000000000000000000000000000000000000000000001', 57, 'records_0_0_0_0');
INSERT INTO cg_golden_dump.records_0_0_0_0 VALUES (0, '\x010000000000000000e00000000000000000000000000000000000000000000000000000000000002000000000000000010000000000000007', DEFAULT, DEFAULT, DEFAULT, 10, 64, 3, 10.5, 64, 3.25, 1, 'game:sign', '\x7061796c6f61642031', '\x01010000ab9af4040a0000000000000000000000374fbaed010000000000000000000000000000000a00000000000000400000000000000003000000000000000000003f000000000000803e01000000000000000967616d653a7369676e7061796c6f61642031');
INSERT INTO cg_golden_dump.records_0_n2_0_0 VALUES (0, '\x010000000000000000724924924924924924924924924924924924924924924920000000040000016000000000000000020000000000000007', DEFAULT, DEFAULT, DEFAULT, -300, 64, 3, -299.5, 64, 3.25, 2, 'game:sign', '\x7061796c6f61642032', '\x01010000d576324a0a0000000000000000000000374fbaed01000000000000000000000000000000d4feffffffffffff400000000000000003000000000000000000003f000000000000803e02000000000000000967616d653a7369676e7061796c6f61642032');
ALTER TABLE ONLY cg_golden_dump.cg_head
    ADD CONSTRAINT cg_head_pkey PRIMARY KEY (seg);
ALTER TABLE ONLY cg_golden_dump.cg_row
    ADD CONSTRAINT cg_row_pkey PRIMARY KEY (seg, fam, k);
ALTER TABLE ONLY cg_golden_dump.cg_table
    ADD CONSTRAINT cg_table_pkey PRIMARY KEY (k_from);
ALTER TABLE ONLY cg_golden_dump.records
    ADD CONSTRAINT records_pkey PRIMARY KEY (seg, k);
ALTER TABLE ONLY cg_golden_dump.records_0_0_0_0
    ADD CONSTRAINT records_0_0_0_0_pkey PRIMARY KEY (seg, k);
ALTER TABLE ONLY cg_golden_dump.records_0_n2_0_0
    ADD CONSTRAINT records_0_n2_0_0_pkey PRIMARY KEY (seg, k);
CREATE UNIQUE INDEX cg_table_k_from_k_to_name_idx ON cg_golden_dump.cg_table USING btree (k_from) INCLUDE (k_to, name) WHERE (name IS NOT NULL);
CREATE UNIQUE INDEX cg_table_name_idx ON cg_golden_dump.cg_table USING btree (name);
CREATE INDEX records_children ON ONLY cg_golden_dump.records USING btree (child_1, child_2);
CREATE INDEX records_0_0_0_0_child_1_child_2_idx ON cg_golden_dump.records_0_0_0_0 USING btree (child_1, child_2);
CREATE INDEX records_0_n2_0_0_child_1_child_2_idx ON cg_golden_dump.records_0_n2_0_0 USING btree (child_1, child_2);
ALTER INDEX cg_golden_dump.records_children ATTACH PARTITION cg_golden_dump.records_0_0_0_0_child_1_child_2_idx;
ALTER INDEX cg_golden_dump.records_pkey ATTACH PARTITION cg_golden_dump.records_0_0_0_0_pkey;
ALTER INDEX cg_golden_dump.records_children ATTACH PARTITION cg_golden_dump.records_0_n2_0_0_child_1_child_2_idx;
ALTER INDEX cg_golden_dump.records_pkey ATTACH PARTITION cg_golden_dump.records_0_n2_0_0_pkey;
