//! `.cargo/linker`: it links as `cc` does, and installs one where there is none.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::{Expect, expect};

use crate::machine::{Lists, Machine, User, stderr};

/// A `cc` that logs what it links.
const CC: &str = r#"[ "$1" = -print-file-name=Scrt1.o ] && echo "$LOG" && exit; echo "cc $*" >>"$LOG""#;

const INSTALL: &str = r#"/bin/mv "$ROOT/bin/cc.package" "$ROOT/bin/cc""#;

fn machine(name: &str, user: User, lists: Lists) -> Machine {
    let machine = Machine::new(&format!("linker_{name}"), user, lists);
    machine.program("cc.package", CC);
    machine.installs(INSTALL);
    // Cargo starts rustc and keeps what it prints; rustc starts the linker.
    machine.program("cargo", r#""$ROOT/bin/rustc" "$@"; exit"#);
    machine.program("rustc", r#"exec 2>"$ROOT/kept"; "$ROOT/linker" "$@"; exit"#);
    let linker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cargo/linker");
    // A copy, since what it locks is itself.
    let status = Command::new("cp").arg(linker).arg(machine.dir()).status();
    assert!(status.unwrap().success());
    machine
}

fn linker(machine: &Machine) -> Command {
    let mut command = machine.command(&machine.dir().join("bin/cargo"));
    command.args(["main.o", "-o", "two words"]);
    command
}

fn in_ci(machine: &Machine) -> Command {
    let mut command = linker(machine);
    command.env("CI", "true");
    command
}

#[track_caller]
fn check(machine: &Machine, mut linker: Command, status: i32, errors: Expect, log: Expect) {
    let output = linker.output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
    // First what is seen at once, then what rustc is told, which shows it when the linker fails.
    let kept = fs::read_to_string(machine.dir().join("kept")).unwrap();
    errors.assert_eq(&format!("{}rustc:\n{kept}", stderr(&output)));
    log.assert_eq(&machine.log());
}

#[test]
fn arguments_and_status_are_those_of_cc() {
    let machine = machine("passes", User::Root, Lists::Fetched);
    machine.program("cc", r#"printf '<%s>' "$@" >>"$LOG""#);
    check(
        &machine,
        linker(&machine),
        0,
        expect![[r#"
        rustc:
    "#]],
        expect!["<main.o><-o><two words>"],
    );
    // A fault in what is linked: the C library is there, so nothing is installed.
    machine.program(
        "cc",
        r#"[ "$1" = -print-file-name=Scrt1.o ] && echo "$LOG" && exit; echo undefined >&2; exit 7"#,
    );
    check(
        &machine,
        linker(&machine),
        7,
        expect![[r#"
            rustc:
            undefined
        "#]],
        expect!["<main.o><-o><two words>"],
    );
}

#[test]
fn root_without_cc_gets_one() {
    let machine = machine("root", User::Root, Lists::Missing);
    check(
        &machine,
        linker(&machine),
        0,
        expect![[r#"
            set-up: Rust links with cc, and there is none that works; to run: apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
            rustc:
        "#]],
        expect![[r#"
        apt-get update
        apt-get install -y --no-install-recommends gcc libc6-dev
        cc main.o -o two words
    "#]],
    );
}

#[test]
fn a_compiler_without_the_c_library_is_completed() {
    let machine = machine("no_libc", User::Root, Lists::Fetched);
    machine.program(
        "cc",
        r#"[ "$1" = -print-file-name=Scrt1.o ] && echo Scrt1.o && exit; echo 'no Scrt1.o' >&2; exit 1"#,
    );
    check(
        &machine,
        linker(&machine),
        0,
        expect![[r#"
            set-up: Rust links with cc, and there is none that works; to run: apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
            rustc:
            no Scrt1.o
        "#]],
        expect![[r#"
        apt-get update
        apt-get install -y --no-install-recommends gcc libc6-dev
        cc main.o -o two words
    "#]],
    );
}

#[test]
fn a_script_does_not_try_sudo_and_prints_the_command() {
    let machine = machine("script", User::Sudoer, Lists::Fetched);
    check(
        &machine,
        linker(&machine),
        1,
        expect![[r#"
            rustc:
            set-up: Rust links with cc, and there is none that works. Nobody is here to allow the use of root, so have this run:
                sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev
        "#]],
        expect![[""]],
    );
}

#[test]
fn ci_uses_sudo() {
    let machine = machine("ci", User::Sudoer, Lists::Fetched);
    check(
        &machine,
        in_ci(&machine),
        0,
        expect![[r#"
            set-up: Rust links with cc, and there is none that works; to run: sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev
            rustc:
        "#]],
        expect![[r#"
        sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update
        apt-get update
        sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev
        apt-get install -y --no-install-recommends gcc libc6-dev
        cc main.o -o two words
    "#]],
    );
}

#[test]
fn who_is_not_root_and_has_no_sudo_is_told_so() {
    let machine = machine("plain", User::Plain, Lists::Fetched);
    check(
        &machine,
        in_ci(&machine),
        1,
        expect![[r#"
            rustc:
            set-up: Rust links with cc, and there is none that works. This user is not root, and there is no sudo, so have this run:
                sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev
        "#]],
        expect![[""]],
    );
}

#[test]
fn another_system_is_told_what_is_missing() {
    let machine = machine("no_apt", User::Root, Lists::Fetched);
    fs::remove_file(machine.dir().join("bin/apt-get")).unwrap();
    check(
        &machine,
        linker(&machine),
        1,
        expect![[r#"
            rustc:
            set-up: Rust links with cc, and there is none that works. Install it with this system's package manager (on Debian: gcc libc6-dev).
        "#]],
        expect![[""]],
    );
}

#[test]
fn an_installation_that_fails_is_not_taken_for_one() {
    let machine = machine("fails", User::Root, Lists::Fetched);
    machine.installs("echo 'E: no space left' >&2; exit 100");
    check(
        &machine,
        linker(&machine),
        1,
        expect![[r#"
            set-up: Rust links with cc, and there is none that works; to run: apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
            E: no space left
            rustc:
            set-up: Rust links with cc, and there is none that works. It could not be installed. To see more:
                apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
        "#]],
        expect![[r#"
        apt-get update
        apt-get install -y --no-install-recommends gcc libc6-dev
    "#]],
    );
}

#[test]
fn of_several_that_find_no_cc_one_installs_it() {
    let machine = machine("several", User::Root, Lists::Fetched);
    machine.installs(&format!("/bin/sleep 0.5\n{INSTALL}"));
    let spawn = || linker(&machine).stderr(Stdio::null()).spawn().unwrap();
    let linkers: Vec<_> = (0..4).map(|_| spawn()).collect();
    for mut linker in linkers {
        assert!(linker.wait().unwrap().success());
    }
    let log = machine.log();
    assert_eq!(log.matches("apt-get install").count(), 1, "{log}");
    assert_eq!(log.matches("cc main.o -o two words").count(), 4, "{log}");
}
