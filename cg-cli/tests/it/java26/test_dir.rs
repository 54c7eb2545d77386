//! A temporary directory of saves, worlds and exports, and what `cg` says of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_store::engine::{Batch, Level, Stamp};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::save::{Layout, Save};
use crate::cmd::{Said, run, text};
use crate::held;

/// How an import or an export ended, and its report; none where it did not begin.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) code: i32,
    pub(super) report: Value,
    pub(super) err: String,
}

impl Done {
    /// The report of a run that ended so.
    #[track_caller]
    pub(super) fn ended(self, code: i32) -> Value {
        assert_eq!(self.code, code, "{}{}", self.err, self.report);
        self.report
    }

    /// The report of a run that ended well and complained of nothing.
    #[track_caller]
    pub(super) fn good(self) -> Value {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.report);
        self.report
    }

    /// A run that was refused before it began.
    #[track_caller]
    pub(super) fn refused(self) -> String {
        assert_eq!((self.code, &self.report), (2, &Value::Null), "{}", self.err);
        // Of an option that is not known, nothing is shown.
        assert!(!self.err.contains("unexpected argument"), "{}", self.err);
        self.err
    }
}

pub(super) struct TestDir(TempDir);

impl TestDir {
    pub(super) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    /// A path by name; one that is absolute stays what it is.
    pub(super) fn at(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// A save to be made.
    pub(super) fn save(&self, name: &str) -> Save {
        Save::at(self.at(name))
    }

    pub(super) fn import(&self, save: impl AsRef<Path>, world: &str, options: &[&str]) -> Done {
        done("import", &[&self.at(save), &self.at(world)], options)
    }

    pub(super) fn export(&self, world: &str, out: &str, options: &[&str]) -> Done {
        let out = self.at(out);
        done("export", &[&self.at(world)], &[&["--mca", text(&out)], options].concat())
    }

    /// Imports a save into a new world and exports that; both end well.
    #[track_caller]
    pub(super) fn round(&self, save: &str, options: &[&str]) -> (Value, Value) {
        let imported = self.import(save, "world", options).good();
        (imported, self.export("world", "out", &[]).good())
    }

    /// Imports with a kill after a while, each time somewhat later, until one run ends; says how often it was killed.
    pub(super) fn import_killed(&self, save: &str, world: &str, options: &[&str]) -> (Done, u32) {
        for kills in 0.. {
            if self.killed_after(Duration::from_millis(30 + 60 * u64::from(kills)), save, world, options) {
                continue;
            }
            return (self.import(save, world, options), kills);
        }
        unreachable!("a delay is longer than the import")
    }

    /// Begins an import and kills it after a while; says whether it was still at work.
    pub(super) fn killed_after(&self, after: Duration, save: &str, world: &str, options: &[&str]) -> bool {
        let (save, world) = (self.at(save), self.at(world));
        let mut child = Command::new(env!("CARGO_BIN_EXE_cg"))
            .args([&["import", text(&save), text(&world)], options].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("cg is built with the tests");
        std::thread::sleep(after);
        let was_at_work = child.try_wait().expect("a child").is_none();
        let _ended = child.kill();
        child.wait().expect("reaped");
        was_at_work
    }

    /// Runs `cg VERB WORLD ARGS…`; a verb may be two words.
    pub(super) fn cg(&self, verb: &str, world: &str, args: &[&str]) -> Said {
        let world = self.at(world);
        run(&verb.split(' ').chain([text(&world)]).chain(args.iter().copied()).collect::<Vec<_>>())
    }

    /// The dimensions that `cg info` names, with what it says of each.
    #[track_caller]
    pub(super) fn dimensions(&self, world: &str) -> Value {
        let said = self.cg("info", world, &["--json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        said.json()["dimensions"].clone()
    }

    /// The keys of objects that begin so.
    #[track_caller]
    pub(super) fn objects(&self, world: &str, prefix: &str) -> Vec<String> {
        let listed = self.cg("object list", world, &["--prefix", prefix, "--json"]).json();
        let keys = list(&listed["objects"]).iter();
        keys.map(|object| object["key"].as_str().expect("text").to_owned()).collect()
    }

    /// Makes of a world one that an older `cg` imported: it knows no layout.
    #[track_caller]
    pub(super) fn forget_layout(&self, world: &str) {
        let keys = self.objects(world, "minecraft/layout");
        assert_ne!(keys, [""; 0], "the import left no record of the layout");
        for key in keys {
            self.cg("object delete", world, &[&key, "--yes"]).good();
        }
    }

    /// Writes a row that says nothing over another.
    pub(super) fn spoil(&self, world: &str, space: Space, key: &[u8]) {
        let world = held::open(&self.at(world));
        let mut batch = Batch::new();
        batch.put(space, key, Draft::plain(Codec::None, 0, |out| out.push(0xee)), Stamp::Commit);
        world.engine().commit(batch, &[], Level::Process).expect("the disk takes it");
        world.close().expect("closed");
    }

    pub(super) fn hash(&self, world: &str) -> String {
        self.cg("hash", world, &[]).good()
    }
}

/// Runs a verb with `--json`.
pub(super) fn done(verb: &str, paths: &[&Path], options: &[&str]) -> Done {
    let words = [verb].into_iter().chain(paths.iter().map(|path| text(path))).chain(options.iter().copied());
    let said = run(&words.chain(["--json"]).collect::<Vec<_>>());
    let report = if said.out.is_empty() { Value::Null } else { said.json() };
    Done { code: said.code, report, err: said.err }
}

/// Layouts in a report, for dimensions that all have one layout.
pub(super) fn layouts(dimensions: &[&str], layout: Layout) -> Value {
    let named = dimensions.iter().map(|name| ((*name).to_owned(), json!(layout.text())));
    Value::Object(named.collect())
}

/// The values of a list.
#[track_caller]
pub(super) fn list(value: &Value) -> &[Value] {
    let Value::Array(list) = value else { panic!("no list: {value}") };
    list
}

/// The texts of a list.
#[track_caller]
pub(super) fn texts(value: &Value) -> Vec<&str> {
    list(value).iter().map(|text| text.as_str().expect("text")).collect()
}
