//! A real world with one changed byte in a file: mended by the commands that the tool names.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Said, run, text};
use crate::long::size;
use crate::worlds;

/// An imported save, and the save.
struct Imported {
    dir: TempDir,
}

impl Imported {
    /// `None` if the shared worlds are not there.
    fn new() -> Option<Self> {
        let region = worlds::folder()?.join("mca/1.18.2_querz_terrain_r.0.0.mca");
        let imported = Self { dir: TempDir::new().expect("a temporary directory") };
        fs::create_dir_all(imported.path("s/region")).expect("is made");
        fs::copy(region, imported.path("s/region/r.0.0.mca")).expect("is copied");
        run(&["import", text(&imported.path("s")), text(&imported.path("w"))]).good();
        Some(imported)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn cg(&self, verb: &str, world: &str, args: &[&str]) -> Said {
        let path = self.path(world);
        run(&verb.split(' ').chain([text(&path)]).chain(args.iter().copied()).collect::<Vec<_>>())
    }

    fn copy(&self, from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        for folder in ["", "db"] {
            fs::create_dir_all(to.join(folder)).expect("is made");
            for entry in fs::read_dir(from.join(folder)).expect("lists") {
                let path = entry.expect("lists").path();
                if path.is_file() {
                    let name = path.strip_prefix(&from).expect("lies in it");
                    fs::copy(&path, to.join(name)).expect("is copied");
                }
            }
        }
    }

    /// Changes a byte of a world's largest file of a kind, so far in.
    fn flip(&self, world: &str, kind: &str, share: f64) {
        let file = largest(&self.path(world).join("db"), kind);
        let mut bytes = fs::read(&file).expect("reads");
        let at = (bytes.len() as f64 * share) as usize;
        bytes[at] ^= 0x10;
        fs::write(&file, bytes).expect("writes");
    }

    /// Runs what `cg verify` says, and returns how many chunks each command quarantined.
    fn obey(&self, world: &str) -> Vec<u64> {
        let found = self.cg("verify", world, &["--json"]);
        assert_eq!(found.code, 1, "{found:?}");
        let problems = found.json()["problems"].as_array().expect("a list").clone();
        let commands = problems.iter().map(|problem| {
            problem["command"].as_str().unwrap_or_else(|| panic!("no command: {problem}")).to_owned()
        });
        let commands: Vec<_> = commands.collect();
        let shown = self.cg("verify", world, &[]);
        let mut set_aside = Vec::new();
        for command in commands {
            assert!(shown.out.contains(&format!("\n  {command}\n")), "{}", shown.out);
            let words: Vec<_> = command.split(' ').skip(1).collect();
            let said = run(&words).good();
            let count = said.split(' ').next().expect("has words").replace(',', "");
            set_aside.push(count.parse().unwrap_or_else(|_| panic!("{said}")));
            assert!(said.ends_with("nothing in the box is damaged any more\n"), "{said}");
        }
        set_aside
    }

    /// Brings back what was quarantined, and compares the world with an undamaged one by all that lists chunks.
    fn restore(&self, world: &str, sound: &str) {
        self.cg("verify", world, &[]).good();
        let (save, path) = (self.path("s"), self.path(world));
        run(&["import", text(&save), text(&path), "--merge", "keep"]).good();
        for (verb, args) in [("hash", &[][..]), ("tiers settle", &["--after", "30d"]), ("hash", &[])] {
            let said = self.cg(verb, world, args).good();
            if verb == "hash" {
                assert_eq!(said, self.cg("hash", sound, &[]).good());
            }
        }
        self.cg("verify", world, &[]).good();
        let counts = |world: &str| {
            let info = self.cg("info", world, &["--json"]).json();
            [&info["chunks"], &info["damaged"], &info["entities"]].map(ToString::to_string)
        };
        assert_eq!(counts(world), counts(sound));
        let exported = |world: &str| {
            let out = self.path(&format!("{world}.save"));
            let said = self.cg("export", world, &["--mca", text(&out)]);
            (said.code, fs::read(out.join("region/r.0.0.mca")).expect("is exported"))
        };
        assert!(exported(world) == exported(sound));
        fs::remove_dir_all(self.path(&format!("{sound}.save"))).expect("is there");
        let drawn = |world: &str| {
            let out = self.path(&format!("{world}.png"));
            self.cg("map", world, &["--out", text(&out)]).good();
            fs::read(out).expect("is drawn")
        };
        assert!(drawn(world) == drawn(sound));
        fs::remove_file(self.path(&format!("{sound}.png"))).expect("is there");
    }
}

fn largest(folder: &Path, kind: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("lists").map(|entry| entry.expect("lists").path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == kind));
    files.max_by_key(|path| path.metadata().expect("is there").len()).expect("there is one")
}

#[test]
fn a_world_with_a_damaged_table_becomes_whole_by_what_verify_says() {
    let Some(imported) = Imported::new() else { return };
    imported.copy("w", "d");
    imported.flip("d", "sst", 0.5);
    let set_aside = imported.obey("d");
    assert!(matches!(set_aside[..], [1..=64]), "{set_aside:?}");
    imported.restore("d", "w");
}

#[test]
fn chunks_that_were_restored_one_by_one_are_listed_again() {
    let Some(imported) = Imported::new() else { return };
    imported.copy("w", "d");
    imported.flip("d", "sst", 0.5);
    let problem = imported.cg("verify", "d", &["--json"]).json()["problems"][0].clone();
    let corner = |name: &str| -> Vec<i64> {
        let corner = problem[name].as_array().expect("a position");
        corner.iter().map(|value| value.as_i64().expect("a number")).collect()
    };
    let (min, max) = (corner("min"), corner("max"));
    for x in min[0]..=max[0] {
        for y in min[1]..=max[1] {
            for z in min[2]..=max[2] {
                let place = [x, y, z].map(|value| value.to_string());
                let [x, y, z] = place.each_ref().map(String::as_str);
                imported.cg("quarantine set-aside", "d", &["--chunk", x, y, z, "--yes"]);
            }
        }
    }
    imported.restore("d", "w");
}

#[test]
fn a_settled_world_with_a_damaged_blob_becomes_whole_by_what_verify_says() {
    let Some(imported) = Imported::new() else { return };
    imported.cg("tiers settle", "w", &["--after", "30d"]).good();
    for share in size(&[0.5][..], &[0.2, 0.5, 0.9]) {
        let name = format!("d{share}");
        imported.copy("w", &name);
        imported.flip(&name, "blob", *share);
        let set_aside = imported.obey(&name);
        assert!(matches!(set_aside[..], [1..=64]), "at most a group: {set_aside:?}");
        imported.restore(&name, "w");
    }
}
