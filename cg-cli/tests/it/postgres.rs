//! `cg` on worlds in PostgreSQL, at the server that `CG_PG_URL` names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use cg_format::Space;
use cg_postgres::{Address, Options, PostgresEngine};
use cg_store::engine::{Engine as _, Readable as _};
use serde_json::{Value, json};

use crate::cmd::copy::{enlarge, rows};
use crate::cmd::{Said, Sample, run, text};
use crate::worlds;

/// A world of one test. Its schema is removed when the value is dropped.
pub(crate) struct TestWorld {
    /// With its password.
    text: String,
    pub(crate) address: Address,
}

/// A world that is not there yet, on the server of the tests.
///
/// `None` without a server, after saying so loudly; in CI the address is set, and empty where another step has a server.
pub(crate) fn world() -> Option<TestWorld> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let stated = std::env::var("CG_PG_URL").ok();
    let is_stated = stated.is_some();
    let Some(url) = stated.filter(|url| !url.is_empty()) else {
        let message =
            "no server: set CG_PG_URL to the address of one, postgres://USER:PASSWORD@HOST/DATABASE";
        assert!(is_stated || std::env::var_os("CI").is_none(), "{message}");
        eprintln!("\n*** NOT TESTED: {message} ***\n");
        return None;
    };
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let text = with(&url, &format!("world=cli%20test%20{}%20{n}", std::process::id()));
    let address = text.parse().expect("CG_PG_URL is an address");
    Some(TestWorld { text, address })
}

/// An address with one more parameter.
fn with(url: &str, parameter: &str) -> String {
    format!("{url}{}{parameter}", if url.contains('?') { '&' } else { '?' })
}

impl TestWorld {
    /// Runs a command on the world. Removes the note of the commit that is shown.
    fn cg(&self, verb: &str, args: &[&str]) -> Said {
        let mut said = self.cg_with_note(verb, args);
        let begins = format!("cg: {} as of commit ", self.shown());
        if let Some((_, rest)) = said.err.strip_prefix(&begins).and_then(|note| note.split_once('\n')) {
            said.err = String::from(rest);
        }
        said
    }

    fn cg_with_note(&self, verb: &str, args: &[&str]) -> Said {
        let words = verb.split(' ').chain([&*self.text]).chain(args.iter().copied());
        run(&words.collect::<Vec<_>>())
    }

    /// The address as messages show it.
    fn shown(&self) -> String {
        self.address.to_string()
    }

    fn hold(&self) -> PostgresEngine {
        PostgresEngine::open(&self.address, &Options::default()).expect("it is free")
    }
}

impl TestWorld {
    /// Removes what is there.
    pub(crate) fn remove(&self) {
        let base = self.text.split('?').next().unwrap_or_default();
        let base = format!("{base}?target_session_attrs=read-write");
        let drop = format!("DROP SCHEMA IF EXISTS \"cg_{}\" CASCADE", self.address.world());
        let ended = Command::new("psql").args([&*base, "-qXc", &drop]).output();
        if !ended.is_ok_and(|ended| ended.status.success()) {
            eprintln!("psql could not remove the world {}", self.address);
        }
    }
}

impl Drop for TestWorld {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Every file below a folder, with its bytes.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(next) = dirs.pop() {
        for entry in fs::read_dir(next).expect("it is a directory") {
            let path = entry.expect("it is readable").path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = fs::read(&path).expect("it is readable");
                all.insert(path.strip_prefix(dir).expect("lies in it").to_owned(), bytes);
            }
        }
    }
    all
}

/// An `info` without what a place has for itself.
fn info(said: &Said) -> Value {
    let mut info = said.json();
    let fields = info.as_object_mut().expect("an object");
    assert!(fields.remove("disk_bytes").and_then(|bytes| bytes.as_u64()).is_some_and(|bytes| bytes > 0));
    fields.remove("database");
    info
}

/// A `verify` without what a place has for itself: a database has a row for the file `world.cg`, and over a network only
/// moves store when a chunk was accessed.
fn verified(said: &Said) -> Value {
    assert_eq!(said.code, 0, "{said:?}");
    let mut report = said.json();
    let checked = report["checked"].as_object_mut().expect("an object");
    assert!(checked.remove("worldMeta").and_then(|rows| rows.as_u64()).is_some_and(|rows| rows > 0));
    assert!(checked.remove("index").is_some());
    report
}

#[test]
fn a_copied_world_shows_the_same_and_comes_back() {
    let Some(there) = world() else { return };
    let sample = Sample::new();
    let real = worlds::folder().map(|folder| folder.join("mca/1.18_superflat_r.0.0.mca"));
    let (from, dimension) = match &real {
        Some(region) => {
            let from = sample.beside("real");
            let said = run(&["import", text(region), text(&from)]);
            assert!(said.code <= 1, "{said:?}");
            (from, "minecraft:overworld")
        }
        None => (sample.path(), "game:overworld"),
    };
    let here = |verb: &str, args: &[&str]| {
        let words = verb.split(' ').chain([text(&from)]).chain(args.iter().copied());
        run(&words.collect::<Vec<_>>())
    };
    here("records add", &["--dimension", dimension, "--at", "1", "2", "3", "--kind", "a:b", "--text", "x"])
        .good();
    here("snapshot create", &["s", "--dimension", dimension, "--box", "0", "0", "0", "40", "70", "40"])
        .good();
    let said = run(&["copy", text(&from), &there.text, "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(said.json()["to"], json!(there.shown()));
    assert_eq!(said.json()["hash"], here("hash", &["--json"]).json()["hash"]);

    let asked = there.cg("info", &["--json"]);
    assert_eq!(info(&asked), info(&here("info", &["--json"])));
    let database = &asked.json()["database"];
    assert_eq!(
        (&database["address"], &database["replication"]),
        (&json!(there.shown()), &json!(there.address.replication().to_string()))
    );
    let shown = there.cg("info", &[]).good();
    assert!(shown.contains(&format!("database  {}, replication: ", there.shown())), "{shown}");
    let commit = database["last_commit"].as_u64().expect("a number");
    let noted = there.cg_with_note("hash", &[]).err;
    assert_eq!(
        noted.replace(',', ""),
        format!("cg: {} as of commit {commit}\n", there.shown()).replace(',', "")
    );
    for (verb, args) in [
        ("dump", &["--dimension", dimension, "--chunk", "0", "4", "-1"][..]),
        ("dump", &["--row", "worldMeta", "commitSequence"]),
        ("dump", &["--row", "worldMeta", "registry/blocks"]),
        ("get", &["--dimension", dimension, "--chunk", "0", "0", "0"]),
        ("get", &["--dimension", dimension, "--block", "3", "-60", "5"]),
        ("hash", &[]),
        ("hash", &["--all"]),
        ("hash", &["--dimension", dimension, "--box", "0", "0", "0", "30", "90", "30"]),
        ("object list", &[]),
        ("quarantine list", &[]),
        ("records list", &["--dimension", dimension]),
        ("records shape", &["--dimension", dimension]),
        ("registry list", &[]),
        ("snapshot list", &[]),
        ("snapshot show", &["s"]),
        ("snapshot diff", &["s"]),
        ("tiers", &[]),
    ] {
        for json in [&[][..], &["--json"]] {
            let args = [args, json].concat();
            let (one, other) = (here(verb, &args), there.cg(verb, &args));
            assert_eq!((one.code, one.out, one.err), (other.code, other.out, other.err), "{verb} {args:?}");
        }
    }
    for depth in [&["--json"][..], &["--json", "--quick"]] {
        assert_eq!(verified(&there.cg("verify", depth)), verified(&here("verify", depth)));
    }
    let beside = |name: &str| sample.beside(name);
    for (verb, option) in [("map", "-o"), ("export", "--mca")] {
        let [one, other] = ["here", "there"].map(|name| beside(&format!("{verb} {name}")));
        let said = [here(verb, &[option, text(&one)]), there.cg(verb, &[option, text(&other)])];
        let [said, of_other] = said.map(|said| (said.code, said.out.replace("there", "here"), said.err));
        assert_eq!(said, of_other, "{verb}");
        if one.is_dir() {
            assert!(files(&one) == files(&other), "{verb}");
        } else {
            assert!(fs::read(one).ok() == fs::read(other).ok(), "{verb}");
        }
    }

    let back = sample.beside("back");
    let said = run(&["copy", &there.text, text(&back), "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(rows(&back) == rows(&from));
    let said = run(&["copy", text(&from), &there.text]);
    let full = format!("cg: {} already holds rows; a world is created where there are none\n", there.shown());
    assert_eq!((said.code, said.err), (1, full));
}

#[test]
fn commands_write_the_same() {
    let Some(there) = world() else { return };
    let sample = Sample::new();
    run(&["copy", text(&sample.path()), &there.text]).good();
    for (verb, args) in [
        ("object put", &["key", "--text", "content"][..]),
        (
            "records add",
            &[
                "--at",
                "1",
                "2",
                "3",
                "--kind",
                "a:b",
                "--text",
                "x",
                "--id",
                "00000000-0000-0000-0000-000000000007",
            ],
        ),
        ("settings", &["name=Grove", "spawn=moon 1 2 3", "raining=true"]),
        ("settings", &["--unset", "raining", "seed=-3"]),
        ("settings", &[]),
        ("opacity rebuild", &[]),
        ("opacity delete", &[]),
        ("snapshot create", &["s", "--box", "0", "64", "-16", "15", "79", "-1"]),
        ("registry replace", &["--block", "game:grass_block", "game:stone", "--yes"]),
        ("snapshot restore", &["s"]),
        ("tiers demote", &["--after", "30d"]),
        ("prune", &["--box", "0", "80", "-16", "15", "95", "-1", "--yes"]),
        ("tiers purge", &["--all"]),
        ("quarantine add", &["--chunk", "0", "4", "-1", "--yes"]),
        ("quarantine add", &["--commit", "--yes"]),
        ("quarantine delete", &["ChunkL0", "00", "1", "--yes"]),
        ("records delete", &["00000000-0000-0000-0000-000000000007", "--yes"]),
        ("snapshot delete", &["s", "--yes"]),
        ("object delete", &["key", "--yes"]),
    ] {
        let (here, said) = (sample.cg(verb, args), there.cg(verb, args));
        // The copy became another world by a commit of its own.
        let out = |said: &Said| said.out.replace(|c: char| c.is_ascii_digit(), "");
        assert_eq!((said.code, out(&said), &said.err), (here.code, out(&here), &here.err), "{verb}");
        let hash = |said: Said| said.good();
        assert_eq!(hash(there.cg("hash", &["--all"])), hash(sample.cg("hash", &["--all"])), "{verb}");
    }
    assert_eq!(verified(&there.cg("verify", &["--json"])), verified(&sample.cg("verify", &["--json"])));
}

#[test]
fn commands_make_worlds() {
    let (Some(packed), Some(imported)) = (world(), world()) else { return };
    let sample = Sample::new();
    let pack = sample.beside("pack");
    sample
        .cg("pack", &[text(&pack), "--without-records", "--box", "0", "64", "-16", "15", "79", "-1"])
        .good();
    run(&["unpack", text(&pack), &packed.text, "--dry-run"]).good();
    let said = packed.cg("info", &[]);
    let absent = format!("cg: {} is not a world: the database has no schema for it\n", packed.shown());
    assert_eq!((said.code, said.err), (4, absent));
    run(&["unpack", text(&pack), &packed.text]).good();
    let dir = sample.beside("unpacked");
    run(&["unpack", text(&pack), text(&dir)]).good();
    assert_eq!(packed.cg("hash", &[]).good(), run(&["hash", text(&dir)]).good());

    let Some(folder) = worlds::folder() else { return };
    let region = folder.join("mca/1.18_superflat_r.0.0.mca");
    let said = run(&["import", text(&region), &imported.text]);
    let dir = sample.beside("imported");
    let here = run(&["import", text(&region), text(&dir)]);
    assert_eq!((said.code, said.out, said.err), (here.code, here.out, here.err));
    assert_eq!(imported.cg("hash", &[]).good(), run(&["hash", text(&dir)]).good());
}

#[test]
fn a_second_writer_waits_or_is_told_of_the_first() {
    let Some(there) = world() else { return };
    run(&["copy", text(&Sample::new().path()), &there.text]).good();
    let held = there.hold();
    let said = there.cg("object put", &["key", "--text", "x", "--json"]);
    assert_eq!((said.code, said.out.as_str()), (3, ""), "{said:?}");
    let error: Value = serde_json::from_str(&said.err).expect("one line of JSON");
    assert_eq!(error["error"]["code"], json!("held"));
    let message = error["error"]["message"].as_str().unwrap_or_default();
    let owner = format!("process {} on ", std::process::id());
    assert!(message.contains(&there.shown()) && message.contains(&owner), "{message}");
    // Readers go on.
    there.cg("hash", &[]).good();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| there.cg("object put", &["key", "--text", "x", "--wait", "60"]));
        thread::sleep(Duration::from_secs(2));
        assert!(!waiting.is_finished());
        held.close().expect("it is sound");
        drop(held);
        let said = waiting.join().expect("it ends");
        assert!(said.code == 0 && said.err.contains("; waiting for 60 s at most\n"), "{said:?}");
    });
    // Who takes the world needs not wait.
    let held = there.hold();
    run(&["object", "put", &with(&there.text, "take=yes"), "other", "--text", "x"]).good();
    drop(held);
}

#[test]
fn what_is_wrong_with_an_address_is_named() {
    let Some(there) = world() else { return };
    let said = there.cg("hash", &[]);
    let absent = format!("cg: {} is not a world: the database has no schema for it\n", there.shown());
    assert_eq!((said.code, said.out.as_str(), said.err), (4, "", absent.clone()));
    let said = there.cg("object put", &["key", "--text", "x"]);
    assert_eq!((said.code, said.err), (4, absent));
    let (account, place) = there.text.split_once('@').expect("has a user");
    let (scheme, user) = account.rsplit_once('/').expect("has a scheme");
    let user = user.split(':').next().expect("has a name");
    let said = run(&["hash", &format!("{scheme}/{user}:topsecret@{place}")]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let begins = format!("cg: {}: ", there.shown());
    let named = format!("password authentication failed for user \"{user}\"");
    assert!(said.err.contains(&begins[4..]) && said.err.contains(&named), "{said:?}");
    assert!(!said.err.contains("topsecret"), "{said:?}");
    let said = there.cg("checkpoint", &["dir"]);
    assert_eq!(said.code, 2);
    assert!(said.err.ends_with("use `cg copy`\n"), "{said:?}");
}

/// Starts a copy that ends when the value is dropped or killed.
fn start(sample: &Sample, to: &TestWorld, more: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cg"));
    command.args(["copy", text(&sample.path()), &to.text, "--wait", "60"]).args(more);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("cg is built with the tests")
}

/// Waits until a process ended, or until something holds.
fn wait_until(child: &mut Child, mut holds: impl FnMut() -> bool) -> Option<ExitStatus> {
    loop {
        let ended = child.try_wait().expect("it is ours");
        if ended.is_some() || holds() {
            return ended;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_copy_that_is_killed_at_each_part_goes_on() {
    let Some(there) = world() else { return };
    let sample = Sample::new();
    enlarge(&sample);
    let (mut reader, mut mark, mut kills) = (None, None, 0);
    // The row that says how far the copy came is another one after each part.
    let mut is_further = || {
        if reader.is_none() {
            reader = PostgresEngine::open_read_only(&there.address, &Options::default()).ok();
        }
        let Some(reader) = &reader else { return false };
        let now = reader.get(Space::WorldMeta, b"state").expect("reads").map(|row| row.to_vec());
        let is_further = now.is_some() && now != mark;
        mark = now.or_else(|| mark.take());
        is_further
    };
    loop {
        let resume: &[&str] = if kills == 0 { &[] } else { &["--resume"] };
        let mut child = start(&sample, &there, resume);
        let ended = wait_until(&mut child, &mut is_further);
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        match ended {
            Some(status) => {
                assert!(status.success(), "{status} after {kills} kills");
                break;
            }
            None => kills += 1,
        }
        assert!(kills < 50, "no part is kept");
    }
    // 24 MB are seven parts; one may be stored while the process is killed.
    assert!((4..=7).contains(&kills), "{kills}");
    let hash = |said: Said| said.good();
    assert_eq!(hash(there.cg("hash", &["--all"])), hash(sample.cg("hash", &["--all"])));
    assert_eq!(verified(&there.cg("verify", &["--json"])), verified(&sample.cg("verify", &["--json"])));
    let back = sample.beside("back");
    run(&["copy", &there.text, text(&back)]).good();
    assert!(rows(&back) == rows(&sample.path()));
}

/// Kills a copy in the middle; `false` if it was finished before.
fn kill(sample: &Sample, to: &TestWorld) -> bool {
    let mut child = start(sample, to, &[]);
    let has_rows = || {
        let engine = PostgresEngine::open_read_only(&to.address, &Options::default());
        engine.is_ok_and(|engine| {
            matches!(cg_store::World::builder().open_read_only_over(engine), Err(error) if error.to_string().contains("never finished"))
        })
    };
    let _ended = wait_until(&mut child, has_rows);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    has_rows()
}

#[test]
fn a_killed_copy_goes_on_and_that_of_another_state_is_refused() {
    let sample = Sample::new();
    enlarge(&sample);
    let mut worlds = std::iter::repeat_with(world).take(10).flatten();
    let Some(there) = worlds.find(|there| kill(&sample, there)) else {
        let is_tried = std::env::var_os("CG_PG_URL").is_some_and(|url| !url.is_empty());
        assert!(!is_tried, "10 copies were finished before they were killed");
        return;
    };
    let said = run(&["copy", text(&sample.path()), &there.text]);
    assert_eq!(said.code, 1);
    assert!(said.err.ends_with("; --resume continues a copy\n"), "{said:?}");
    let other = Sample::new();
    let said = run(&["copy", text(&other.path()), &there.text, "--resume"]);
    let expected = format!(
        "cg: {} holds a part of a copy of another state; remove it as its owner with `DROP SCHEMA \"cg_{}\" CASCADE;`, and run the command again\n",
        there.shown(),
        there.address.world()
    );
    assert_eq!((said.code, said.err), (1, expected));
    let said = run(&["copy", text(&sample.path()), &there.text, "--resume", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(said.json()["continued"], json!(true));
    let said = run(&["copy", text(&sample.path()), &there.text, "--resume", "--json"]);
    assert_eq!((said.code, said.json()["rows"].clone()), (0, json!(0)), "{said:?}");
}
