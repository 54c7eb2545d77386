//! `cargo xtask python` on machines without Python: the independent reader is part of the tests.

use std::fs;
use std::path::Path;
use std::process::Output;

use expect_test::expect;

use crate::machine::{Lists, Machine, User, stderr};

/// An interpreter whose environments log what they run.
const PYTHON: &str = r#"case "$1" in
--version) echo "Python 3.11.2" ;;
-m) /bin/mkdir -p "$3/bin" && /bin/ln -s "$ROOT/bin/in-environment" "$3/bin/python" ;;
esac"#;

fn run(machine: &Machine) -> Output {
    machine.program("python3.package", PYTHON);
    machine.program("in-environment", r#"echo "python ${1##*/} $2" >>"$LOG""#);
    machine.installs(r#"/bin/mv "$ROOT/bin/python3.package" "$ROOT/bin/python3""#);
    let worlds = machine.dir().join("worlds");
    fs::create_dir(&worlds).unwrap();
    let mut command = machine.command(Path::new(env!("CARGO_BIN_EXE_xtask")));
    command.args(["python", "testdata/independent/check_export.py", "argument"]).env("CG_WORLDS", worlds);
    command.env("CI", "true").output().unwrap()
}

#[test]
fn ci_installs_python_with_what_makes_environments() {
    let machine = Machine::new("python_ci", User::Sudoer, Lists::Fetched);
    let output = run(&machine);
    assert!(output.status.success(), "{}", stderr(&output));
    expect![[r#"
        sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv
        apt-get install -y --no-install-recommends python3-venv
        python -m pip
        python check_export.py argument
    "#]]
    .assert_eq(&machine.log());
}

#[test]
fn in_ci_a_reader_that_cannot_run_is_a_failure() {
    let machine = Machine::new("python_plain", User::Plain, Lists::Fetched);
    let output = run(&machine);
    assert!(!output.status.success());
    expect![[r#"
        error: skipped in CI: testdata/independent/check_export.py cannot run: no python3 with the modules venv and ensurepip, which the independent reader needs. This user is not root, and there is no sudo, so have this run:
            sudo apt-get install -y --no-install-recommends python3-venv
    "#]].assert_eq(&stderr(&output));
}
