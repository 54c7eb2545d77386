-- The tables of records: partitions of `records`, which is made with the first of them. All keys of family 9 whose first
-- 33 bytes are equal are of one table cube. A row here says where those of `k_bytes` bytes are, for good: in the table
-- `name`, or in cg_row if there is no name. Keys of other lengths are in cg_row.
CREATE TABLE {schema}.cg_table (
    k_from bytea PRIMARY KEY,
    k_to bytea NOT NULL,
    k_bytes int4 NOT NULL,
    name text
);
CREATE UNIQUE INDEX ON {schema}.cg_table (k_from) INCLUDE (k_to, name) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX ON {schema}.cg_table (name);

-- The columns from the key are generated, so they cannot contradict it. Those from the frame are null if it does not decode.
CREATE FUNCTION {schema}.cg_make_records_1(p_k_bytes int4) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    levels int4 := (p_k_bytes - 49) / 4;
    s text := {name};
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
    ALTER TABLE {schema}.records ALTER COLUMN v SET STORAGE EXTERNAL;
    EXECUTE format('CREATE INDEX records_children ON %I.records (%s)', s, left(names, -2));
    PERFORM {schema}.cg_grant_1('records');
END $body$;

-- Who reads cg_row also reads the table.
CREATE FUNCTION {schema}.cg_grant_1(p_name text) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    s text := {name};
    g record;
BEGIN
    FOR g IN SELECT CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END AS who
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(c.relacl) a
        WHERE n.nspname = s AND c.relname = 'cg_row' AND a.privilege_type = 'SELECT' AND a.grantee <> c.relowner
    LOOP
        EXECUTE format('GRANT SELECT ON %I.%I TO %s', s, p_name, g.who);
    END LOOP;
END $body$;

-- Decides where the records of a table cube are. At most a sixth of the locks of the server are for the tables: a scan of
-- all of them takes three for each.
CREATE FUNCTION {schema}.cg_make_table_1(p_from bytea, p_to bytea, p_k_bytes int4, p_name text, p_max int8) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    s text := {name};
    most int8 := least(p_max, current_setting('max_locks_per_transaction')::int8
        * (current_setting('max_connections')::int8 + current_setting('max_prepared_transactions')::int8) / 6);
    known int4;
    made int8;
BEGIN
    LOCK TABLE {schema}.cg_table IN SHARE ROW EXCLUSIVE MODE;
    PERFORM FROM {schema}.cg_table WHERE k_from = p_from;
    IF FOUND THEN
        RETURN;
    END IF;
    SELECT count(*), min(k_bytes) INTO made, known FROM {schema}.cg_table WHERE name IS NOT NULL;
    IF known <> p_k_bytes THEN
        RETURN;
    END IF;
    IF p_name IS NULL OR made >= most THEN
        INSERT INTO {schema}.cg_table VALUES (p_from, p_to, p_k_bytes, NULL);
        RETURN;
    END IF;
    IF made = 0 THEN
        PERFORM {schema}.cg_make_records_1(p_k_bytes);
    END IF;
    -- PARTITION OF would wait for everyone who reads `records`.
    EXECUTE format('CREATE TABLE %1$I.%2$I (LIKE %1$I.records INCLUDING ALL)', s, p_name);
    EXECUTE format('ALTER TABLE %1$I.records ATTACH PARTITION %1$I.%2$I FOR VALUES FROM (%3$L) TO (%4$L)', s, p_name, p_from, p_to);
    PERFORM {schema}.cg_grant_1(p_name);
    INSERT INTO {schema}.cg_table VALUES (p_from, p_to, p_k_bytes, p_name);
END $body$;

-- Makes tables before a commit that needs many: each takes five locks until its transaction ends. They are empty if the
-- commit fails, and a later one finds them.
CREATE FUNCTION {schema}.cg_make_tables_1(
    p_seg int8, p_epoch int8, p_from bytea[], p_to bytea[], p_k_bytes int4[], p_name text[], p_max int8
) RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM {schema}.cg_make_table_1(a.f, a.t, a.b, a.n, p_max) FROM unnest(p_from, p_to, p_k_bytes, p_name) a(f, t, b, n)
        WHERE EXISTS (SELECT FROM {schema}.cg_head h WHERE h.seg = p_seg AND h.epoch = p_epoch)
            AND NOT EXISTS (SELECT FROM {schema}.cg_table c WHERE c.k_from = a.f);
END $body$;

-- Puts records of one table cube. The payload begins at byte `put_p` of the row.
CREATE FUNCTION {schema}.cg_put_records_1(
    p_seg int8, p_from bytea, p_to bytea, p_k_bytes int4, p_name text, p_max int8,
    put_k bytea[], put_v bytea[], put_p int4[], put_kind text[], put_at int8[],
    put_bx int8[], put_by int8[], put_bz int8[], put_x float8[], put_y float8[], put_z float8[]
) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    s text := {name};
    t {schema}.cg_table;
BEGIN
    SELECT * INTO t FROM {schema}.cg_table WHERE k_from = p_from;
    IF NOT FOUND THEN
        PERFORM {schema}.cg_make_table_1(p_from, p_to, p_k_bytes, p_name, p_max);
        SELECT * INTO t FROM {schema}.cg_table WHERE k_from = p_from;
    END IF;
    IF t.name IS NULL OR t.k_bytes <> p_k_bytes THEN
        PERFORM {schema}.cg_put_1(p_seg, array_fill(9::int2, ARRAY[cardinality(put_k)]), put_k, put_v);
        RETURN;
    END IF;
    EXECUTE format('INSERT INTO %I.%I (seg, k, block_x, block_y, block_z, x, y, z, at, kind, payload, v) '
        'SELECT $1, a.k, a.bx, a.by, a.bz, a.x, a.y, a.z, a.at, a.kind, substring(a.v FROM a.p), a.v '
        'FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) a(k, v, p, kind, at, bx, by, bz, x, y, z) '
        'ON CONFLICT (seg, k) DO UPDATE SET (block_x, block_y, block_z, x, y, z, at, kind, payload, v) = '
        '(excluded.block_x, excluded.block_y, excluded.block_z, excluded.x, excluded.y, excluded.z, excluded.at, '
        'excluded.kind, excluded.payload, excluded.v)', s, t.name)
        USING p_seg, put_k, put_v, put_p, put_kind, put_at, put_bx, put_by, put_bz, put_x, put_y, put_z;
END $body$;

-- Rows of family 9, or slices of them: the place of each in the array, and null if it is absent. Stable functions see the
-- state that the calling statement sees.
CREATE FUNCTION {schema}.cg_records_1(p_seg int8, p_k bytea[], p_s int4[] DEFAULT NULL, p_l int4[] DEFAULT NULL)
RETURNS TABLE (n int8, v bytea) STABLE ROWS 1 LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    s text := {name};
    t record;
BEGIN
    FOR t IN SELECT q.name, array_agg(q.n) AS n, array_agg(q.k) AS k, array_agg(q.s) AS s, array_agg(q.l) AS l
        FROM (SELECT a.*, (SELECT c.name FROM {schema}.cg_table c
                WHERE c.k_from = substring(a.k FROM 1 FOR 33) AND c.k_bytes = octet_length(a.k)) AS name
            FROM unnest(p_k, p_s, p_l) WITH ORDINALITY a(k, s, l, n) OFFSET 0) q GROUP BY q.name
    LOOP
        IF t.name IS NULL THEN
            RETURN QUERY SELECT a.n, (SELECT CASE WHEN a.l IS NULL THEN r.v ELSE substring(r.v FROM a.s FOR a.l) END
                    FROM {schema}.cg_row r WHERE r.seg = p_seg AND r.fam = 9 AND r.k = a.k)
                FROM unnest(t.n, t.k, t.s, t.l) a(n, k, s, l);
        ELSE
            RETURN QUERY EXECUTE format(
                'SELECT a.n, (SELECT CASE WHEN a.l IS NULL THEN r.v ELSE substring(r.v FROM a.s FOR a.l) END '
                'FROM %I.%I r WHERE r.seg = $1 AND r.k = a.k) FROM unnest($2, $3, $4, $5) a(n, k, s, l)', s, t.name)
                USING p_seg, t.n, t.k, t.s, t.l;
        END IF;
    END LOOP;
END $body$;

-- The rows of family 9 in ranges that ascend and do not overlap, in the order of their keys: at most `p_rows`, and none
-- that begins after `p_bytes` bytes. One query for all ranges in one table.
CREATE FUNCTION {schema}.cg_records_between_1(p_seg int8, p_from bytea[], p_to bytea[], p_rows int8, p_bytes int8)
RETURNS TABLE (k bytea, v bytea) STABLE LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    s text := {name};
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
        SELECT c.k_from, c.k_to, c.name INTO t FROM {schema}.cg_table c
            WHERE c.name IS NOT NULL AND c.k_from >= substring(pos FROM 1 FOR 33) ORDER BY c.k_from LIMIT 1;
        upto := t.k_from;
        query := 'SELECT k, v FROM %1$I.cg_row WHERE seg = $1 AND fam = 9 AND k >= a.f AND k < a.t ORDER BY k LIMIT $5';
        IF upto < p_to[i] THEN
            upto := t.k_to;
            of_table := 'SELECT k, v FROM %1$I.%2$I WHERE seg = $1 AND k >= a.f AND k < a.t ORDER BY k LIMIT $5';
            IF EXISTS (SELECT FROM {schema}.cg_row r WHERE r.seg = p_seg AND r.fam = 9 AND r.k >= pos AND r.k < upto) THEN
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
END $body$;

CREATE FUNCTION {schema}.cg_delete_records_between_1(p_seg int8, p_from bytea, p_to bytea) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    s text := {name};
    t record;
BEGIN
    FOR t IN SELECT c.name FROM {schema}.cg_table c
        WHERE c.name IS NOT NULL AND c.k_from >= substring(p_from FROM 1 FOR 33) AND c.k_from < p_to
    LOOP
        EXECUTE format('DELETE FROM %I.%I WHERE seg = $1 AND k >= $2 AND k < $3', s, t.name) USING p_seg, p_from, p_to;
    END LOOP;
END $body$;

CREATE FUNCTION {schema}.cg_delete_records_1(p_seg int8, p_k bytea[]) RETURNS void LANGUAGE plpgsql AS $body$
DECLARE
    s text := {name};
    t record;
BEGIN
    FOR t IN SELECT c.name, array_agg(a.k) AS k FROM unnest(p_k) a(k), LATERAL (SELECT name FROM {schema}.cg_table
            WHERE k_from = substring(a.k FROM 1 FOR 33) AND k_bytes = octet_length(a.k) AND name IS NOT NULL OFFSET 0) c GROUP BY c.name
    LOOP
        EXECUTE format('DELETE FROM %1$I.%2$I WHERE ctid = ANY (ARRAY('
            'SELECT (SELECT r.ctid FROM %1$I.%2$I r WHERE r.seg = $1 AND r.k = a.k) FROM unnest($2) a(k)))', s, t.name)
            USING p_seg, t.k;
    END LOOP;
END $body$;

-- The columns of rows from a key on, for a comparison: of the payload, where it would begin in the row, and whether it is
-- there.
CREATE FUNCTION {schema}.cg_columns_1(p_seg int8, p_from bytea, p_rows int8, p_bytes int8)
RETURNS TABLE (k bytea, v bytea, p int4, is_there bool, kind text, at int8, block_x int8, block_y int8, block_z int8, x float8, y float8, z float8)
STABLE LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    s text := {name};
    t record;
    rows_left int8 := p_rows;
    bytes_left int8 := p_bytes;
BEGIN
    FOR t IN SELECT c.name FROM {schema}.cg_table c
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
END $body$;
