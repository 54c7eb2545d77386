//! The plan of each statement is an index scan, whatever the statistics say.

use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

use super::{GET, HAS, HEAD, IS_EMPTY, PAGE, PAGE_TO, SESSION, SLICES, SLICES_MIXED, Sql};

/// The statements of `v1.sql` that read or remove rows, with parameters for its variables.
fn of_functions() -> Vec<(&'static str, String)> {
    let v1 = super::V1;
    let cut = |from: &str, to: &str| {
        let rest = v1.split_once(from).expect("the statement is there").1;
        format!("{from}{}", rest.split_once(to).expect("the statement ends").0)
    };
    let guards = cut("SELECT q.n, octet_length(q.v)", ";").replace("INTO g", "");
    let range = cut("DELETE FROM {schema}.cg_row WHERE seg = p_seg AND fam", ";");
    let keys = cut("DELETE FROM {schema}.cg_row WHERE ctid", ";");
    let statement = |text: String, names: &[(&str, &str)]| {
        names.iter().fold(text, |text, (name, parameter)| text.replace(name, parameter))
    };
    let place = cut("UPDATE {schema}.cg_head SET seq", ";");
    let families = ("p_seg", "$1::int8");
    vec![
        (
            "the head by its place",
            statement(
                place,
                &[
                    ("p_seg", "$1::int8"),
                    ("p_epoch", "$2::int8"),
                    ("p_session", "$3::int8"),
                    ("p_batches", "$4::int8"),
                    ("p_seq", "$5::int8"),
                    ("p_n", "$6::int8"),
                    ("p_token", "$7::uuid"),
                    ("= head_at", "= $8::tid"),
                    (" INTO h.quorum, head_at", ""),
                ],
            ),
        ),
        (
            "the newest commit by its place",
            statement(
                cut("UPDATE {schema}.cg_row SET v = p_newest", ";"),
                &[families, ("p_newest", "$2::bytea"), ("= newest_at", "= $3::tid"), (" INTO newest_at", "")],
            ),
        ),
        (
            "guards",
            statement(
                guards,
                &[
                    families,
                    ("guard_f", "$2::int2[]"),
                    ("guard_k", "$3::bytea[]"),
                    ("guard_v", "$4::bytea[]"),
                ],
            ),
        ),
        (
            "a range",
            statement(
                range,
                &[
                    families,
                    ("range_f[i]", "$2::int2"),
                    ("range_from[i]", "$3::bytea"),
                    ("range_to[i]", "$4::bytea"),
                ],
            ),
        ),
        ("deletes", statement(keys, &[families, ("delete_f", "$2::int2[]"), ("delete_k", "$3::bytea[]")])),
    ]
}

/// Values for the parameters of a statement, by its name. They do not matter: plans are generic.
fn values(name: &str) -> &'static str {
    match name {
        "get" | "has" => "0, 8::int2, ''::bytea",
        "deletes" => "0, '{8}'::int2[], '{}'::bytea[]",
        "guards" => "0, '{8}'::int2[], '{}'::bytea[], '{}'::bytea[]",
        "slices" => "0, '{8}'::int2[], '{}'::bytea[], '{}'::bytea[], '{}'::bytea[], '{1}', '{1}'",
        "slices with records" => {
            "0, '{8}'::int2[], '{}'::bytea[], '{}'::bytea[], '{}'::bytea[], '{1}', '{1}', '{}'::bytea[], '{1}', '{1}'"
        }
        "is_empty" => "0, '\\xff'::bytea",
        "a page" => "0, 8::int2, ''::bytea, 128, 1000000",
        "a page with an end" => "0, 8::int2, ''::bytea, 128, 1000000, '\\xff'::bytea",
        "the head by its place" => "0, 1, 1, 1, 1, 1, NULL, '(0,1)'",
        "the newest commit by its place" => "0, ''::bytea, '(0,1)'",
        "a range" => "0, 8::int2, ''::bytea, '\\xff'::bytea",
        _ => "0",
    }
}

/// Runs a test in a session of the server, if there is one.
fn in_session(test: impl AsyncFnOnce(Client)) {
    let stated = std::env::var("CG_PG_URL").ok();
    let is_stated = stated.is_some();
    let Some(url) = stated.filter(|url| !url.is_empty()) else {
        assert!(is_stated || std::env::var_os("CI").is_none(), "no server: set CG_PG_URL");
        eprintln!("\n*** NOT TESTED: no server: set CG_PG_URL ***\n");
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("builds");
    runtime.block_on(async {
        let mut config: Config = url.split('?').next().expect("is there").parse().expect("is an address");
        let options: Vec<_> = SESSION.iter().map(|(name, value)| format!("-c {name}={value}")).collect();
        config.options(options.join(" "));
        config.target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
        if let Ok(password) = std::env::var("PGPASSWORD") {
            config.password(password);
        }
        let (client, connection) = config.connect(NoTls).await.expect("connects");
        tokio::spawn(connection);
        test(client).await;
    });
}

/// The plan of a statement.
async fn plan(client: &Client, explain: &str) -> String {
    let plan = client.simple_query(explain).await.expect("is planned");
    let line = |message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or_default().to_owned()),
        _ => None,
    };
    plan.into_iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// Statements that functions of `records_v1.sql` run in a table of records, with values for their parameters. A function
/// plans each anew.
fn of_tables() -> Vec<(&'static str, String)> {
    let cut = |from: &str| {
        let rest = super::V1.split_once(from).expect("the statement is there").1;
        format!("{from}{}", rest.split_once('\'').expect("the statement ends").0)
    };
    let (of_row, of_table) = (
        cut("SELECT k, v FROM %1$I.cg_row WHERE seg = $1 AND fam = 9"),
        cut("SELECT k, v FROM %1$I.%2$I WHERE seg = $1 AND k >= a.f"),
    );
    let ranges = |query: &str| {
        format!(
            "SELECT r.k FROM (SELECT greatest(b.f, '\\x01') AS f, least(b.t, '\\x02') AS t \
             FROM unnest('{{\\\\x01,\\\\x0105}}'::bytea[], '{{\\\\x0102,\\\\x02}}'::bytea[]) b(f, t)) a, LATERAL ({query}) r"
        )
    };
    let both = format!("SELECT k, v FROM (({of_row}) UNION ALL ({of_table})) q ORDER BY k LIMIT $5");
    vec![
        ("ranges", ranges(&of_table)),
        ("ranges beside other rows", ranges(&both)),
        ("removed ranges", cut("DELETE FROM %I.%I WHERE seg = $1 AND k >= $2")),
        (
            "a point",
            "SELECT (SELECT r.v FROM %I.%I r WHERE r.seg = $1 AND r.k = a.k) FROM unnest('{\\\\x01}'::bytea[]) a(k)".into(),
        ),
    ]
}

#[test]
fn each_statement_is_an_index_scan_over_an_empty_a_small_and_a_large_table_of_records() {
    in_session(async |client| {
        let sql = Sql::new(format!("cg_plans of records {}", std::process::id()));
        let run = async |text: &str| client.batch_execute(&sql.text(text)).await.expect("runs");
        run("BEGIN; CREATE SCHEMA {schema}").await;
        run(&sql.tables()).await;
        run("SELECT {schema}.cg_make_table_1('\\x01', '\\x02', 57, 'records_0', 1000)").await;
        let fill = |to: u32| {
            format!(
                "INSERT INTO {{schema}}.records_0 (seg, k, v) SELECT 0, decode('01' || md5(i::text) || md5(i::text) || md5('') \
                 || repeat('07', 8), 'hex'), decode(repeat('00', 100), 'hex') FROM generate_series(1, {to}) i ON CONFLICT DO NOTHING; \
                 ANALYZE {{schema}}.records_0"
            )
        };
        for (size, rows) in [("empty", 0), ("small", 20), ("large", 20_000)] {
            if rows > 0 {
                run(&fill(rows)).await;
            }
            for (name, text) in of_tables() {
                let text = text
                    .replace("%1$I.cg_row", "{schema}.cg_row")
                    .replace("%1$I.%2$I", "{schema}.records_0")
                    .replace("%I.%I", "{schema}.records_0")
                    .replace("$1", "0")
                    .replace("$2", "'\\x01'")
                    .replace("$3", "'\\x0105'")
                    .replace("$5", "128");
                let plan = plan(&client, &format!("EXPLAIN {}", sql.text(&text))).await;
                let is_scan = plan.contains("Seq Scan on") || plan.contains("Bitmap");
                let bounded = |line: &str| line.contains("Index Cond: ((seg = 0) AND (k ");
                assert!(!is_scan && plan.lines().any(bounded), "{name}, a table that is {size}:\n{plan}");
            }
            let by_children = "EXPLAIN SELECT id FROM {schema}.records_0 WHERE child_1 = 3 AND child_2 = 4";
            let plan = plan(&client, &sql.text(by_children)).await;
            assert!(plan.contains("Index Cond: ((child_1 = 3) AND (child_2 = 4))"), "{plan}");
        }
        run("ROLLBACK").await;
    });
}

#[test]
fn each_statement_is_an_index_scan_over_an_empty_a_small_and_a_large_table() {
    in_session(async |client| {
        let sql = Sql::new(format!("cg_plans {}", std::process::id()));
        let run = async |text: &str| client.batch_execute(&sql.text(text)).await.expect("runs");
        // Nothing remains: it is rolled back.
        run("BEGIN; CREATE SCHEMA {schema}").await;
        run(&sql.tables()).await;
        let own = [
            ("get", GET),
            ("has", HAS),
            ("slices", SLICES),
            ("slices with records", SLICES_MIXED),
            ("a page", PAGE),
            ("a page with an end", PAGE_TO),
            ("is_empty", IS_EMPTY),
            ("head", HEAD),
        ];
        let statements: Vec<_> =
            own.into_iter().map(|(name, text)| (name, text.to_owned())).chain(of_functions()).collect();
        let fill = |to: u32| {
            format!(
                "INSERT INTO {{schema}}.cg_row SELECT 0, i % 12, decode(lpad(to_hex(i), 8, '0'), 'hex'), \
                 decode(repeat('00', 100), 'hex') FROM generate_series(1, {to}) i ON CONFLICT DO NOTHING; \
                 ANALYZE {{schema}}.cg_row"
            )
        };
        for (size, rows) in [("empty", 0), ("small", 20), ("large", 200_000)] {
            if rows > 0 {
                run(&fill(rows)).await;
            }
            run("DEALLOCATE ALL").await;
            for (n, (name, text)) in statements.iter().enumerate() {
                run(&format!("PREPARE p{n} AS {text}")).await;
                let explain = format!("EXPLAIN EXECUTE p{n}({})", values(name));
                let plan = plan(&client, &explain).await;
                let is_scan = plan.contains("Seq Scan") || plan.contains("Bitmap");
                let condition = match *name {
                    "the head by its place" | "the newest commit by its place" => "TID Cond: (ctid = ",
                    "head" | "is_empty" => "seg = ",
                    "slices" | "slices with records" => "k >= g.a) AND (k <= g.z)",
                    "a range" | "a page" | "a page with an end" => "k >= ",
                    _ => "k = ",
                };
                let bounded = |line: &str| line.contains(" Cond: ") && line.contains(condition);
                assert!(!is_scan && plan.lines().any(bounded), "{name}, a table that is {size}:\n{plan}");
            }
        }
        run("ROLLBACK").await;
    });
}
