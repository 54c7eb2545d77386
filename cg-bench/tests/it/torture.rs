//! The small size of every torture, with its controls, and the ways in which a torture must fail.

use std::process::{Command, Output};

/// Fixed, so that the steps are the same on every machine; the moments of the kills are not.
const SEED: &str = "20";

fn torture(arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_cg-torture"))
        .args(["--seed", SEED])
        .args(arguments)
        .output()
        .expect("the program runs");
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output, text)
}

/// Checks the text that is printed when nothing is wrong: a torture that did nothing is no success.
#[track_caller]
fn check(arguments: &[&str], done: &[&str]) {
    let (output, text) = torture(arguments);
    assert!(output.status.success(), "{text}");
    for part in done {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
}

#[test]
fn killed_worlds_hold_every_reported_step_and_no_part_of_one() {
    check(
        &["--only", "kill", "--ci"],
        &[
            "kill: seed 20, 15 kills (",
            "0 lost, 0 torn, coins and items exact",
            "kill: control split caught after",
            "kill: control lie caught after",
        ],
    );
}

#[test]
fn flipped_bits_give_an_error_or_the_right_rows() {
    check(
        &["--only", "flip", "--ci"],
        &[
            "flip: control intact: Harmless",
            ".sst: OpenError",
            "flip: control misplace: ReadError Chunk(0)",
            "flip: control change: Wrong Chunk(0)",
            "flip: control drop: Lost Entity(0)",
            "| MANIFEST | 15 | 15 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
            "| WAL | 20 | 20 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
            "| delete: WAL | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |",
        ],
    );
}

#[test]
fn cut_logs_open_with_whole_steps_or_say_what_is_lost() {
    check(
        &["--only", "cut", "--ci"],
        &[
            "last records: ",
            "last sectors: 16 zeroed ends, ",
            "random places: 30 cuts, ",
            " zeroed ends, ",
            "log deleted: commits up to ",
            "cut: control without a promise caught: opened at commit ",
        ],
    );
}

#[test]
fn a_killed_promotion_is_there_wholly_or_not_at_all() {
    check(
        &["--only", "promote", "--ci"],
        &[
            "promote: seed 20, 600 chunks in ",
            " MiB resident, the longest load beside it ",
            "promote: killed at the parts: ",
            "promote: killed at the intent: ",
            "promote: killed at the carrying-out: 0 times as before, ",
            "promote: killed at the overlay intent: 0 times as before, ",
            "promote: 8 kills, 0 in between, opened again within ",
            "promote: control without an intent caught after ",
        ],
    );
}

#[test]
fn a_killed_merge_into_segments_is_whole_when_it_is_called_again() {
    check(
        &["--only", "segments", "--ci"],
        &[
            "segments: seed 20, 600 chunks into 4 segments in ",
            " MiB resident, the longest load of a chunk beside it ",
            "segments: killed as the root notes entities: ",
            "segments: killed as a segment stages its part: ",
            "segments: killed as a segment commits: ",
            "segments: killed as a segment writes its part: ",
            "segments: killed as the overlay forgets: ",
            "segments: 10 kills, all whole when merged again, opened again within ",
            "segments: control that commits values apart caught after ",
            " has a part of its chunks and values",
            "segments: control whose overlay forgets caught after ",
        ],
    );
}

#[test]
fn a_killed_server_has_every_player_and_every_item_once() {
    check(
        &["--only", "server", "--ci"],
        &[
            "server: seed 20, 12 players in each of two worlds, 3 kills",
            "server: every item and player is there once; at the end ",
            "| segmented | ",
            "| plain | ",
            "server: control in two batches caught after ",
        ],
    );
}

#[test]
fn killed_compactions_archives_and_restores_lose_nothing_and_go_on() {
    check(
        &["--only", "upkeep", "--ci"],
        &[
            "upkeep: compact in ",
            "upkeep: control of compact caught after ",
            "upkeep: compact-segments in ",
            "upkeep: control of compact-segments caught after ",
            "upkeep: archive in ",
            "upkeep: control of archive caught after ",
            "the archive is cut off",
            "upkeep: restore in ",
            "upkeep: control of restore caught after ",
            "none lost",
        ],
    );
}

#[test]
fn a_killed_transaction_of_a_segment_is_there_wholly_or_not_at_all() {
    check(
        &["--only", "transactions", "--ci"],
        &[
            "transactions: seed 20, 40 steps in ",
            "transactions: killed as the root notes where keys are, or a segment is made: ",
            "transactions: killed as a segment stages a transaction: ",
            "transactions: killed as a segment commits: ",
            "transactions: killed as a segment writes what it has staged: ",
            "transactions: 12 kills, 0 in part, none lost",
            "transactions: control in two commits caught after ",
            "it is neither as before nor as after",
        ],
    );
}

/// A failing torture ends with a failure, and says how to have it again.
#[test]
fn a_broken_worker_fails_the_run_and_the_run_can_be_repeated() {
    let (output, text) = torture(&["--only", "kill", "--break", "split", "--rounds", "200"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let repeat = "repeat: cargo xtask torture --only kill --seed 20 --rounds 200 --break split";
    assert!(text.contains("kill FAILED: after ") && text.contains(repeat), "{text}");
}
