//! Wrong usage, and directories that are no worlds.

use expect_test::{Expect, expect};
use serde_json::json;

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
    let codes = "Exit codes:\n  0  all is well\n  1  something is damaged, lost or refused, or a check has findings\n";
    assert!(out.contains(codes), "{out}");
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
fn a_second_box_is_refused_where_one_is_wanted() {
    let sample = Sample::new();
    let file = sample.beside("file");
    let cases: [(&str, &[&str], &str); 4] = [
        ("pack", &[text(&file)], "run `cg pack` once for each box, with a file of its own"),
        ("snapshot create", &["s"], "run `cg snapshot create` once for each box, with a name of its own"),
        ("schem export", &[text(&file)], "run `cg schem export` once for each box, with a file of its own"),
        ("quarantine add", &["--yes"], "run `cg quarantine add` once for each box"),
    ];
    let files = sample.files();
    for (verb, args, instead) in cases {
        let area = ["--box", "0", "64", "-16", "15", "79", "-1"];
        let said = sample.cg(verb, &[args, &area, &area, &["--json"]].concat());
        let message = format!("--box is given 2 times, and this command takes one; {instead}");
        let error: serde_json::Value = serde_json::from_str(&said.err).expect("JSON");
        let expected = json!({ "error": { "code": "usage", "message": message } });
        assert_eq!((said.code, said.out, error), (2, String::new(), expected), "{verb}");
    }
    assert!(!file.exists() && sample.files() == files, "nothing was written");
    // Of six numbers and four neither is taken for the other.
    let area = ["--box", "1", "2", "3", "4", "5", "6", "--box", "1", "2", "3", "4", "--yes"];
    let said = sample.cg("prune", &area);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
    assert!(said.err.starts_with("error: 6 values required for '--box"), "{}", said.err);
    assert!(sample.files() == files);
}

#[test]
fn what_is_no_world_is_said_so() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for verb in ["info", "verify", "hash"] {
        let said = run(&[verb, text(dir.path())]);
        assert_eq!((said.code, said.out.as_str()), (4, ""));
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
fn an_unknown_dimension_is_the_same_error_in_every_command() {
    let sample = Sample::new();
    let out = sample.beside("out");
    let all: [(&str, &[&str]); 6] = [
        ("get", &["--chunk", "0", "0", "0"]),
        ("map", &["--out", text(&out)]),
        ("export", &["--mca", text(&out)]),
        ("hash", &["--box", "0", "0", "0", "1", "1", "1"]),
        ("records list", &[]),
        ("snapshot create", &["mars", "--box", "0", "0", "0", "1", "1", "1"]),
    ];
    let message = "the world has no dimension `nether`; it has `game:overworld`, `game:moon`";
    for (verb, args) in all {
        let said = sample.cg(verb, &[args, &["-d", "nether"]].concat());
        assert_eq!((said.code, said.out, said.err), (2, String::new(), format!("cg: {message}\n")), "{verb}");
        let said = sample.cg(verb, &[args, &["-d", "nether", "--json"]].concat());
        let error: serde_json::Value = serde_json::from_str(&said.err).expect("JSON");
        let expected = json!({ "error": { "code": "unknown_dimension", "message": message } });
        assert_eq!((said.code, said.out, error), (2, String::new(), expected), "{verb}");
    }
    assert!(!out.exists());
}

#[test]
fn errors_are_json_where_results_are() {
    let error = |said: super::Said| {
        assert_eq!((said.out.as_str(), said.err.lines().count()), ("", 1), "{said:?}");
        let error: serde_json::Value = serde_json::from_str(&said.err).expect("JSON");
        (said.code, error["error"].clone())
    };
    let absent = "chunk 9 9 9 of game:overworld is not stored: it was never generated, or was deleted";
    let found = error(Sample::new().cg("get", &["--chunk", "9", "9", "9", "--json"]));
    assert_eq!(found, (4, json!({ "code": "absent", "message": absent })));
    let (code, found) = error(run(&["--json", "hash", "w", "--box", "1", "2", "3"]));
    assert_eq!((code, &found["code"]), (2, &json!("usage")));
    let message = found["message"].as_str().expect("text");
    assert!(message.starts_with("6 values required for '--box"), "{message}");
    assert!(run(&["--json", "--help"]).good().contains("Usage: cg"), "help is no error");
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

#[test]
fn every_shell_gets_a_script_that_names_the_commands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = run(&["completions", shell]).good();
        assert!(["quarantine", "dry-run"].iter().all(|word| script.contains(word)), "{shell}: {script}");
    }
    assert_eq!(run(&["completions", "dos"]).code, 2);
}

/// RocksDB ends the process where it is refused memory or a thread, and no handler can help it.
#[test]
#[cfg(target_os = "linux")]
fn too_little_memory_is_a_message_and_no_abort() {
    let sample = Sample::new();
    let with_limit = |kib: u32, args: &str| {
        let line = format!("ulimit -v {kib}; exec \"$0\" {args} \"$1\"");
        let (cg, world) = (env!("CARGO_BIN_EXE_cg"), sample.path());
        std::process::Command::new("sh").args(["-c", &line, cg, text(&world)]).output().expect("a shell")
    };
    let runs_at_all = |kib: &u32| with_limit(*kib, "--version").status.success();
    let least = (1..40).map(|step| step * 10_240).find(runs_at_all).expect("it needs no 400 MiB");
    let mut refused = 0;
    for step in 1..30 {
        // The last leave room for all that the system's allocator reserves for threads.
        let said = with_limit(least + step * step * 1024, "verify --quick");
        let message = String::from_utf8_lossy(&said.stderr);
        if said.status.success() {
            continue;
        }
        assert_eq!(said.status.code(), Some(1), "{message}");
        // What is refused just above what is asked for at the start is refused to a thread.
        let of_a_thread = message.starts_with("cg: cannot start the world's threads: ");
        assert!(
            of_a_thread
                || message.contains("the system refuses this process what the engine needs, ")
                    && message.ends_with("; raise the limits of the process (`ulimit -a` shows them)\n"),
            "{message}"
        );
        refused += 1;
    }
    assert!((1..29).contains(&refused), "{refused} of 29 limits are too low");
}
