//! Wrong usage, and directories that are no worlds.

use expect_test::{Expect, expect};

use super::{Sample, run, text};

#[track_caller]
fn check(args: &[&str], code: i32, expected: Expect) {
    let said = run(args);
    assert_eq!((said.code, said.out.as_str()), (code, ""), "{}", said.err);
    expected.assert_eq(&said.err);
}

#[test]
fn help_names_the_exit_codes() {
    let out = run(&["--help"]).good();
    assert!(
        out.contains(
            "Exit codes: 0 all is well; 1 something is damaged, refused or not there; 2 wrong usage."
        )
    );
}

#[test]
fn arguments_that_do_not_fit_exit_with_two() {
    check(
        &["info"],
        2,
        expect![[r#"
        error: the following required arguments were not provided:
          <WORLD>

        Usage: cg info <WORLD>

        For more information, try '--help'.
    "#]],
    );
    check(
        &["get", "w"],
        2,
        expect![[r#"
        error: the following required arguments were not provided:
          <--chunk <X> <Y> <Z>|--block <X> <Y> <Z>>

        Usage: cg get <--chunk <X> <Y> <Z>|--block <X> <Y> <Z>> <WORLD>

        For more information, try '--help'.
    "#]],
    );
    check(
        &["hash", "w", "--box", "1", "2", "3"],
        2,
        expect![[r#"
        error: 6 values required for '--box <X0> <Y0> <Z0> <X1> <Y1> <Z1>' but 3 were provided

        Usage: cg hash [OPTIONS] <WORLD>

        For more information, try '--help'.
    "#]],
    );
}

#[test]
fn what_is_no_world_is_said_so() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for verb in ["info", "verify", "hash"] {
        let said = run(&[verb, text(dir.path())]);
        assert_eq!((said.code, said.out.as_str()), (1, ""));
        let start = format!("cg: {} is not a world: ", dir.path().display());
        assert!(said.err.starts_with(&start), "{}", said.err);
    }
}

#[test]
fn an_unknown_dimension_is_answered_with_the_known_ones() {
    let said = Sample::new().cg("get", &["--dimension", "nether", "--chunk", "0", "0", "0"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    expect![[r#"
        cg: the world has no dimension `nether`; it has `game:overworld`, `game:moon`
    "#]]
    .assert_eq(&said.err);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::{Command, Stdio};
    let sample = Sample::new();
    let mut cg = Command::new(env!("CARGO_BIN_EXE_cg"))
        .args(["dump", text(&sample.path()), "--chunk", "0", "4", "-1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cg is built with the tests");
    drop(cg.stdout.take());
    let output = cg.wait_with_output().expect("cg ends by itself");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
