//! What each command does with an address in the place of a world.

use std::collections::BTreeSet;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};

use super::options::commands;
use crate::cmd::Args;

/// What a command does with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stance {
    /// It works, as with a directory.
    Works,
    /// It refuses it, and says so.
    Refuses(&'static str),
    /// It has no world.
    NoWorld,
}

use Stance::{NoWorld, Refuses, Works};

const ARENAS: &str = "arenas lie over a world in a directory, `cg copy` makes one";
const SEGMENTS: &str = "a world in a database has no segments";
const VACUUM: &str = "a database compacts itself; `cg tiers demote` makes its rows small";
const LOSS: &str = "a database is recovered by its own means; a host that goes on with a restored one sets `accept_lost_commits` for one open";
const ID: &str = "00000000-0000-0000-0000-000000000001";

/// Every command with arguments, where `W` is the address.
const ALL: [(&str, &str, Stance); 49] = [
    ("accept-loss", "W", Refuses(LOSS)),
    ("archive", "W file", Works),
    ("checkpoint", "W dir", Refuses("use `cg copy`")),
    ("compact", "W", Refuses(VACUUM)),
    ("completions", "bash", NoWorld),
    ("copy", "W dir", Works),
    ("dump", "W --chunk 0 0 0", Works),
    ("export", "W --mca dir", Works),
    ("get", "W --chunk 0 0 0", Works),
    ("hash", "W", Works),
    ("import", "save W", Works),
    ("info", "W", Works),
    ("map", "W -o file", Works),
    ("object delete", "W key", Works),
    ("object get", "W key", Works),
    ("object list", "W", Works),
    ("object put", "W key --text x", Works),
    ("opacity delete", "W", Works),
    ("opacity rebuild", "W", Works),
    ("overlay diff", "W dir", Refuses(ARENAS)),
    ("overlay merge", "W dir", Refuses(ARENAS)),
    ("overlay reset-damaged", "W dir --chunk 0 0 0", Refuses(ARENAS)),
    ("overlay salvage", "dir", NoWorld),
    ("pack", "W file", Works),
    ("prune", "W --outside-radius 1", Works),
    ("quarantine add", "W --chunk 0 0 0", Works),
    ("quarantine delete", "W space key commit", Works),
    ("quarantine list", "W", Works),
    ("records add", "W --at 0 0 0 --kind a:b --text x", Works),
    ("records delete", "W ID", Works),
    ("records list", "W", Works),
    ("records shape", "W", Works),
    ("registry check", "W", Works),
    ("registry list", "W", Works),
    ("registry plan", "W --pack file", Works),
    ("registry replace", "W --block a b", Works),
    ("schem export", "W file", Works),
    ("schem import", "file W --at 0 0 0", Works),
    ("schem info", "file", NoWorld),
    ("segments accept", "W", Refuses(SEGMENTS)),
    ("segments compact", "W --segment 0 0 0", Refuses(SEGMENTS)),
    ("segments delete", "W --segment 0 0 0", Refuses(SEGMENTS)),
    ("segments list", "W", Refuses(SEGMENTS)),
    ("snapshot create", "W name", Works),
    ("snapshot delete", "W name", Works),
    ("snapshot diff", "W name", Works),
    ("snapshot export", "W name file", Works),
    ("snapshot import", "file W", Works),
    ("snapshot list", "W", Works),
];

/// The rest of [`ALL`]. Of `verify`, the option `--arenas` is refused.
const MORE: [(&str, &str, Stance); 10] = [
    ("restore", "file W", Works),
    ("settings", "W name=x", Works),
    ("snapshot restore", "W name", Works),
    ("snapshot show", "W name", Works),
    ("tiers", "W", Works),
    ("tiers demote", "W --after 30d", Works),
    ("tiers purge", "W --all", Works),
    ("tiers simulate", "file", NoWorld),
    ("unpack", "file W", Works),
    ("verify", "W", Works),
];

/// A port on which nothing listens, and a password.
const ADDRESS: &str = "postgres://user:secret@127.0.0.1:1/db?world=w";

fn all() -> impl Iterator<Item = (&'static str, &'static str, Stance)> {
    ALL.into_iter().chain(MORE)
}

fn words(command: &str, args: &str, world: &str) -> Vec<String> {
    let given = |word: &str| match word {
        "W" => world.to_owned(),
        "ID" => ID.to_owned(),
        other => other.to_owned(),
    };
    ["cg"].into_iter().chain(command.split(' ')).chain(args.split(' ')).map(given).collect()
}

#[test]
fn every_command_works_over_an_address_or_refuses_it_by_name() {
    let is_run = |command: &clap::Command| !command.has_subcommands() || command.get_name() == "tiers";
    let found: BTreeSet<_> =
        commands().into_iter().filter(|(_, command)| is_run(command)).map(|(words, _)| words).collect();
    let listed: BTreeSet<_> = all().map(|(command, ..)| command.to_owned()).collect();
    assert_eq!(found, listed, "a new command works over an address or refuses it: say which");
    for (command, args, stance) in all() {
        let parsed = Args::command().try_get_matches_from(words(command, args, "w"));
        assert!(parsed.is_ok(), "`cg {command} {args}`: {}", parsed.expect_err("it is none"));
        assert_eq!(args.split(' ').any(|word| word == "W"), stance != NoWorld, "`cg {command} {args}`");
    }
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_tool_without_postgresql_refuses_every_address() {
    for (command, args, stance) in all() {
        let parsed = Args::try_parse_from(words(command, args, ADDRESS)).map(drop);
        if stance == NoWorld {
            assert!(parsed.is_ok(), "`cg {command} {args}`");
            continue;
        }
        let error = parsed.expect_err("there is no PostgreSQL in it");
        let said = error.to_string();
        let expected = "error: this cg was built without PostgreSQL: build it with --features postgres\n";
        assert_eq!(error.kind(), ErrorKind::ValueValidation, "`cg {command} {args}`: {said}");
        assert!(said.starts_with(expected) && !said.contains("secret"), "`cg {command} {args}`: {said}");
    }
}

#[cfg(feature = "postgres")]
#[test]
fn commands_that_need_a_directory_say_what_to_use_instead() {
    use crate::failure::Code;
    use crate::output::{Format, Output};

    let refused = |command: &str, args: &str, instead: &str| {
        let parsed = Args::try_parse_from(words(command, args, ADDRESS)).expect("it is an address");
        let failure = parsed.command.run(&Output::new(Format::Json)).expect_err("it is no directory");
        let expected = format!(
            "postgres://user@127.0.0.1:1/db?world=w is no directory, and this command is for worlds in directories: {instead}"
        );
        assert_eq!((failure.code(), failure.to_string()), (Code::Usage, expected), "`cg {command} {args}`");
    };
    for (command, args, stance) in all() {
        match stance {
            Refuses(instead) => refused(command, args, instead),
            Works => drop(Args::try_parse_from(words(command, args, ADDRESS)).expect("it is an address")),
            NoWorld => {}
        }
    }
    refused("verify", "W --arenas dir", "arenas lie over a world in a directory, leave out --arenas");
}

#[test]
fn what_is_a_directory_whatever_it_holds_is_no_address() {
    for (command, args) in
        [("overlay salvage", "W"), ("checkpoint", "w W"), ("overlay diff", "w W"), ("verify", "w --arenas W")]
    {
        let error = Args::try_parse_from(words(command, args, ADDRESS)).map(drop).expect_err("no directory");
        let said = error.to_string();
        assert_eq!(error.kind(), ErrorKind::ValueValidation, "`cg {command} {args}`: {said}");
        let is_named = said.contains("takes a directory, and no address of a database\n");
        assert!(is_named && !said.contains("secret"), "`cg {command} {args}`: {said}");
    }
}
