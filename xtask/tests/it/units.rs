//! `cargo xtask setup` compiles RocksDB in units: with a cargo, a crate, a compiler and an archiver that are scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use expect_test::{Expect, expect};

use crate::machine::{Lists, Machine, User, stderr};

/// The crate's build: a probe, then each source. `build` compiles on its own; `check` does the same.
const CARGO: &str = r#"case "$1" in
metadata) /bin/cat "$ROOT/metadata"; exit ;;
esac
echo "cargo $1" >>"$LOG"
for target; do :; done
out="$target/release/build/librocksdb-sys-1/out"
/bin/mkdir -p "$out" && cd "$ROOT/crate" && ${CXX:=c++} -E "$out/probe.c" || exit
for source in rocksdb/*.cc build_version.cc; do
"$CXX" -O3 $("$ROOT/odd" "$source") $CXXFLAGS -I . -o "$out/1-${source##*/}.o" -c "$source" || exit
done
ar cq "$out/librocksdb.a" "$out"/*.o"#;

/// An object names what was compiled. `$ROOT/compiles` says whether, given the sources.
const COMPILER: &str = r#"case "$1" in
--version) echo "c++ 12.2.0"; /bin/cat "$ROOT/family"; exit ;;
-E) echo gcc; exit ;;
esac
while [ $# -gt 1 ]; do case "$1" in -o) object=$2 ;; esac; shift; done
case "$1" in
-) read -r _ first && read -r _ second; what="unit $first $second" ;;
*) what=$1 ;;
esac
"$ROOT/compiles" "$what" || exit
echo "$what" >"$object""#;

const ARCHIVER: &str = r#"archive=$2; shift 2; { echo '!<arch>'; /bin/cat "$@"; } >"$archive""#;

/// A machine with a crate of four sources, of which two make a unit.
fn machine(name: &str) -> Machine {
    let machine = Machine::new(&format!("units_{name}"), User::Root, Lists::Fetched);
    let root = machine.dir();
    let sources = root.join("crate/rocksdb");
    fs::create_dir_all(&sources).unwrap();
    for source in ["a.cc", "b.cc", "env_posix.cc", "../build_version.cc"] {
        let text = if source.starts_with("..") { "#define VERSION\n" } else { "" };
        fs::write(sources.join(source), text).unwrap();
    }
    fs::write(root.join("crate/rocksdb_lib_sources.txt"), "a.cc\nb.cc\nenv_posix.cc\nbuild_version.cc\n")
        .unwrap();
    let manifest = root.join("crate/Cargo.toml");
    let metadata = format!(
        r#"{{"packages": [{{"id": "1", "name": "librocksdb-sys", "version": "0", "manifest_path": "{}"}}],
        "resolve": {{"nodes": [{{"id": "1", "features": []}}]}}}}"#,
        manifest.display()
    );
    fs::write(root.join("metadata"), metadata).unwrap();
    fs::write(root.join("family"), "Copyright (C) 2022 Free Software Foundation, Inc.\n").unwrap();
    fs::write(root.join("libclang.so"), "").unwrap();
    machine.program("cargo", CARGO);
    machine.program("c++", COMPILER);
    machine.program("ar", ARCHIVER);
    machine.program("cc", "echo /nowhere");
    machine.program("../odd", ":");
    machine.program("../compiles", ":");
    machine
}

fn setup(machine: &Machine) -> Command {
    let mut command = machine.command(Path::new(env!("CARGO_BIN_EXE_xtask")));
    let root = machine.dir();
    command.arg("setup").env("LIBCLANG_PATH", root).env("CG_CACHE_DIR", root.join("cache"));
    command
}

fn run(machine: &Machine) -> Output {
    setup(machine).output().unwrap()
}

/// The entries of the cache, without hashes and process ids.
fn cache(machine: &Machine) -> Vec<String> {
    let is_hex = |character: char| character.is_ascii_hexdigit();
    let short = |name: String| match name.split_once('-') {
        Some((kind, rest)) => format!("{kind}{}", rest.trim_matches(is_hex)),
        None => name,
    };
    let entries = fs::read_dir(machine.dir().join("cache")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| short(entry.unwrap().file_name().into_string().unwrap())).collect();
    names.sort();
    names
}

fn entry(machine: &Machine) -> PathBuf {
    let entries = fs::read_dir(machine.dir().join("cache")).unwrap();
    let mut dirs = entries.map(|entry| entry.unwrap().path()).filter(|path| path.join("key.txt").is_file());
    let dir = dirs.next().unwrap();
    assert_eq!(dirs.next(), None);
    dir
}

fn archive(machine: &Machine) -> String {
    fs::read_to_string(entry(machine).join("librocksdb.a")).unwrap()
}

/// Standard error without what differs between machines: the cache's key, the counts of cores, the times.
fn said(machine: &Machine, output: &Output) -> String {
    let text = stderr(output).replace(&machine.dir().display().to_string(), "ROOT");
    let lines = text.lines().filter(|line| line.starts_with("set-up: ") || line.contains("error: "));
    let lines = lines.filter(|line| {
        !["compiling RocksDB's C++", "why: ", "compiled at once", "set-up: compiled in ", "is ready in"]
            .iter()
            .any(|text| line.contains(text))
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[track_caller]
fn check(machine: &Machine, said_expected: Expect, archive_expected: Expect) {
    let output = run(machine);
    assert!(output.status.success(), "{}", stderr(&output));
    said_expected.assert_eq(&said(machine, &output));
    archive_expected.assert_eq(&archive(machine));
    assert_eq!(cache(machine), ["probes", "rocksdb", "rocksdb.lock"]);
}

#[test]
fn sources_are_compiled_in_units_as_the_crate_compiles_them() {
    let machine = machine("made");
    check(
        &machine,
        expect![[""]],
        expect![[r#"
            !<arch>
            build_version.cc
            unit "rocksdb/a.cc" "rocksdb/b.cc"
            rocksdb/env_posix.cc
        "#]],
    );
    expect![["cargo check\n"]].assert_eq(&machine.log());
    let key = fs::read_to_string(entry(&machine).join("key.txt")).unwrap();
    assert!(key.contains("\nunits 1: "), "{key}");
    // A second run finds it.
    let output = run(&machine);
    assert_eq!((output.status.success(), stderr(&output).as_str()), (true, ""));
    assert_eq!(machine.log(), "cargo check\n");
}

#[test]
fn a_unit_that_is_rejected_is_compiled_file_by_file() {
    let machine = machine("rejected");
    machine.program(
        "../compiles",
        r#"case "$1" in unit*) echo "rocksdb/b.cc:1:12: error: redefinition of 'int x'" >&2; exit 1 ;; esac"#,
    );
    check(
        &machine,
        expect![[r#"
        set-up: 2 files, rocksdb/a.cc to rocksdb/b.cc, do not compile as one unit, so they are compiled one by one: rocksdb/b.cc:1:12: error: redefinition of 'int x'
    "#]],
        expect![[r#"
            !<arch>
            build_version.cc
            rocksdb/a.cc
            rocksdb/b.cc
            rocksdb/env_posix.cc
        "#]],
    );
}

#[test]
fn a_file_that_is_rejected_ends_the_build() {
    let machine = machine("file");
    machine.program(
        "../compiles",
        r#"case "$1" in unit*|rocksdb/*) echo "rocksdb/b.cc:1:12: error: no" >&2; exit 1 ;; esac"#,
    );
    let output = run(&machine);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("did not compile (exit status 1)"), "{text}");
    assert!(!machine.log().contains("cargo build"), "{}", machine.log());
}

#[test]
fn a_compiler_that_was_killed_is_no_rejection() {
    let machine = machine("killed");
    machine.program("../compiles", r#"case "$1" in unit*) kill -9 $PPID ;; esac"#);
    for small in ["rocksdb/env_posix.cc", "build_version.cc"] {
        fs::remove_file(machine.dir().join("crate").join(small)).unwrap();
    }
    machine.program("cargo", &CARGO.replace(" build_version.cc", ""));
    let output = run(&machine);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("was killed although it ran alone"), "{text}");
    assert!(text.contains("or set CG_ROCKSDB_ARCHIVE"), "{text}");
    assert!(!text.contains("one by one"), "{text}");
    // Its log is kept until the next run, which compiles from nothing.
    assert_eq!(cache(&machine), ["probes", "rocksdb.build-", "rocksdb.lock"]);
    machine.program("../compiles", ":");
    check(
        &machine,
        expect![[""]],
        expect![[r#"
        !<arch>
        unit "rocksdb/a.cc" "rocksdb/b.cc"
    "#]],
    );
}

#[test]
fn a_full_disk_is_no_rejection_and_leaves_nothing() {
    let machine = machine("full");
    machine.program(
        "../compiles",
        r#"case "$1" in unit*) echo "cc1plus: fatal error: error writing to x.s: No space left on device" >&2; exit 1 ;; esac"#,
    );
    let output = run(&machine);
    assert_eq!(output.status.code(), Some(1));
    let text = said(&machine, &output);
    assert!(
        text.contains("error: the disk of ROOT/cache is full: free 1 GB there, or set CG_CACHE_DIR"),
        "{text}"
    );
    assert!(!text.contains("one by one"), "{text}");
    assert_eq!(cache(&machine), ["probes", "rocksdb.lock"]);
}

#[test]
fn a_full_disk_is_no_missing_compiler() {
    let machine = machine("full_probe");
    machine.program("../compiles", r#"echo "x.s: No space left on device" >&2; exit 1"#);
    let output = run(&machine);
    let text = said(&machine, &output);
    assert!(text.contains("the disk of ROOT/cache is full"), "{text}");
    assert_eq!(machine.log(), "", "nothing is installed");
}

#[test]
fn a_compiler_that_is_too_old_is_named_so() {
    let machine = machine("old");
    machine.program("../compiles", r#"echo "c++: error: unrecognized option '-std=c++20'" >&2; exit 1"#);
    let output = run(&machine);
    assert!(stderr(&output).contains("install a newer one and name it in CXX"), "{}", stderr(&output));
}

#[test]
fn without_a_network_the_command_to_run_is_named() {
    let machine = machine("network");
    machine.program("cargo", "echo 'error: failed to download from `https://index`' >&2; exit 101");
    let text = stderr(&run(&machine));
    assert!(
        text.contains("cargo could not download a crate: connect to the network, or run `cargo fetch`"),
        "{text}"
    );
}

#[test]
fn flags_that_differ_are_left_to_the_crate() {
    let machine = machine("odd");
    machine.program("../odd", r#"case "$1" in *b.cc) echo -mavx2 ;; esac"#);
    let output = run(&machine);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = said(&machine, &output);
    assert!(text.contains("the crate's build cannot be recorded"), "{text}");
    assert_eq!(machine.log(), "cargo check\ncargo build\n");
    assert!(archive(&machine).contains("rocksdb/b.cc\n"), "{}", archive(&machine));
}

#[test]
fn a_compiler_that_was_not_tried_compiles_as_the_crate_does() {
    let machine = machine("clang");
    fs::write(machine.dir().join("family"), "Target: x86_64-pc-linux-gnu\n").unwrap();
    check(
        &machine,
        expect![""],
        expect![[r#"
        !<arch>
        rocksdb/a.cc
        rocksdb/b.cc
        build_version.cc
        rocksdb/env_posix.cc
    "#]],
    );
    assert_eq!(machine.log(), "cargo build\n");
    let key = fs::read_to_string(entry(&machine).join("key.txt")).unwrap();
    assert!(!key.contains("units"), "{key}");
}

#[test]
fn of_two_at_once_one_compiles() {
    let machine = machine("two");
    let spawn = || setup(&machine).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    for child in [spawn(), spawn()] {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    assert_eq!(machine.log(), "cargo check\n");
    assert_eq!(cache(&machine), ["probes", "rocksdb", "rocksdb.lock"]);
}

#[test]
fn what_killed_builds_left_is_removed_and_what_others_need_is_kept() {
    let machine = machine("leftovers");
    let dir = machine.dir().join("cache");
    for name in [
        "rocksdb-0a.build-7/units",
        "rocksdb-0a.new-7",
        "rocksdb-0b.build",
        "rocksdb-0c.build-8",
        "other.build",
    ] {
        fs::create_dir_all(dir.join(name)).unwrap();
    }
    let lock = fs::File::create(dir.join("rocksdb-0c.lock")).unwrap();
    lock.lock().unwrap();
    assert!(run(&machine).status.success());
    let left = |name: &str| dir.join(name).exists();
    assert!(!left("rocksdb-0a.build-7") && !left("rocksdb-0a.new-7") && !left("rocksdb-0b.build"));
    assert!(left("rocksdb-0c.build-8") && left("other.build"));
}
