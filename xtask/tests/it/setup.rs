//! `cargo xtask setup` on machines without a C++ compiler.

use std::fs;
use std::path::Path;
use std::process::Output;

use expect_test::{Expect, expect};

use crate::machine::{Lists, Machine, User, stderr};

/// A compiler that compiles nothing and says so with success, which is all that set-up asks.
const COMPILER: &str =
    r#"[ "$1" = --version ] && echo "c++ 12.2.0" && exit; while [ "$1" != -o ]; do shift; done; touch "$2""#;

/// A machine on which only the C++ compiler is missing.
fn machine(name: &str, user: User, lists: Lists) -> Machine {
    let machine = Machine::new(name, user, lists);
    machine.program("c++.package", COMPILER);
    machine.installs(r#"/bin/mv "$ROOT/bin/c++.package" "$ROOT/bin/c++""#);
    fs::create_dir(machine.dir().join("libraries")).unwrap();
    fs::write(machine.dir().join("libraries/libclang.so"), "").unwrap();
    fs::write(machine.dir().join("libraries/librocksdb.a"), "!<arch>\n").unwrap();
    machine.program("cc", "echo /nowhere");
    machine
}

fn setup(machine: &Machine, vars: &[(&str, &str)]) -> Output {
    let libraries = machine.dir().join("libraries");
    let mut command = machine.command(Path::new(env!("CARGO_BIN_EXE_xtask")));
    command.arg("setup").env("LIBCLANG_PATH", &libraries).env("ROCKSDB_LIB_DIR", libraries);
    command.envs(vars.iter().copied()).output().unwrap()
}

#[track_caller]
fn check(machine: &Machine, output: &Output, errors: Expect, log: Expect) {
    errors.assert_eq(&stderr(output));
    log.assert_eq(&machine.log());
}

#[test]
fn package_lists_are_fetched_before_a_name_is_taken_for_a_pattern() {
    let machine = machine("missing_lists", User::Root, Lists::Missing);
    let output = setup(&machine, &[]);
    assert!(output.status.success());
    check(
        &machine,
        &output,
        expect![[r#"
        set-up: there is no working C++20 compiler `c++`, and RocksDB needs one; to run: apt-get update && apt-get install -y --no-install-recommends g++
        $ apt-get update
        $ apt-get install -y --no-install-recommends g++
        set-up: C++ compiler: c++ 12.2.0
    "#]],
        expect![[r#"
        apt-get update
        apt-get install -y --no-install-recommends g++
    "#]],
    );
}

#[test]
fn package_lists_that_are_there_are_not_fetched() {
    let machine = machine("fetched_lists", User::Root, Lists::Fetched);
    assert!(setup(&machine, &[]).status.success());
    expect![[r#"
        apt-get install -y --no-install-recommends g++
    "#]]
    .assert_eq(&machine.log());
}

#[test]
fn nothing_that_only_matches_is_installed() {
    let machine = machine("useless_lists", User::Root, Lists::Useless);
    let output = setup(&machine, &[]);
    assert!(!output.status.success());
    check(
        &machine,
        &output,
        expect![[r#"
        set-up: there is no working C++20 compiler `c++`, and RocksDB needs one; to run: apt-get update && apt-get install -y --no-install-recommends g++
        $ apt-get update
        error: there is no working C++20 compiler `c++`, and RocksDB needs one, and no package source of this system has g++
    "#]],
        expect![[r#"
        apt-get update
    "#]],
    );
}

#[test]
fn a_script_does_not_try_sudo_and_prints_the_command() {
    let machine = machine("script", User::Sudoer, Lists::Missing);
    let output = setup(&machine, &[]);
    assert!(!output.status.success());
    check(
        &machine,
        &output,
        expect![[r#"
        error: there is no working C++20 compiler `c++`, and RocksDB needs one. Nobody is here to allow the use of root, so have this run:
            sudo apt-get update && sudo apt-get install -y --no-install-recommends g++
    "#]],
        expect![[""]],
    );
}

#[test]
fn who_is_not_root_and_has_no_sudo_is_told_so() {
    let machine = machine("plain", User::Plain, Lists::Fetched);
    let output = setup(&machine, &[("CI", "true")]);
    assert!(!output.status.success());
    check(
        &machine,
        &output,
        expect![[r#"
        error: there is no working C++20 compiler `c++`, and RocksDB needs one. This user is not root, and there is no sudo, so have this run:
            sudo apt-get install -y --no-install-recommends g++
    "#]],
        expect![[""]],
    );
}

#[test]
fn ci_uses_sudo_and_lets_no_package_ask() {
    let machine = machine("ci", User::Sudoer, Lists::Fetched);
    assert!(setup(&machine, &[("CI", "true")]).status.success());
    expect![[r#"
        sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++
        apt-get install -y --no-install-recommends g++
    "#]]
    .assert_eq(&machine.log());
}

#[test]
fn a_compiler_that_the_person_names_is_not_replaced() {
    let machine = machine("named", User::Root, Lists::Fetched);
    let output = setup(&machine, &[("CXX", "ccache nowhere-c++")]);
    assert!(!output.status.success());
    check(
        &machine,
        &output,
        expect![[r#"
        error: CXX is set; correct or unset it: cannot run `ccache nowhere-c++ --version`: No such file or directory (os error 2)
    "#]],
        expect![[""]],
    );
    machine.program("ccache", "shift; exec c++ \"$@\"");
    machine.program("c++", COMPILER);
    let output = setup(&machine, &[("CXX", "ccache c++")]);
    assert!(output.status.success(), "{}", stderr(&output));
    expect![[""]].assert_eq(&machine.log());
}
