//! Rules that the options of all commands follow.

use std::collections::BTreeSet;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, CommandFactory as _};

use crate::cmd::{Args, EXIT_CODES};
use crate::failure::Code;

/// Meaning of an option that is given several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Several {
    /// All of them together: its help says so.
    Union,
    /// The command refuses a second one in its own words: `usage.rs` of the integration tests has them.
    OneBox,
}

const SEVERAL: [(&str, &str, Several); 22] = [
    ("compact", "box", Several::Union),
    ("export", "box", Several::Union),
    ("hash", "box", Several::Union),
    ("map", "box", Several::Union),
    ("overlay reset-damaged", "box", Several::OneBox),
    ("pack", "box", Several::OneBox),
    ("unpack", "box", Several::OneBox),
    ("pack", "objects", Several::Union),
    ("unpack", "objects", Several::Union),
    ("pack", "properties", Several::Union),
    ("unpack", "properties", Several::Union),
    ("prune", "box", Several::Union),
    ("quarantine add", "box", Several::OneBox),
    ("records list", "box", Several::Union),
    ("registry plan", "pack", Several::Union),
    ("registry replace", "block", Several::Union),
    ("registry replace", "pack", Several::Union),
    ("schem export", "box", Several::OneBox),
    ("settings", "unset", Several::Union),
    ("snapshot create", "box", Several::OneBox),
    ("snapshot restore", "box", Several::OneBox),
    ("verify", "arenas", Several::Union),
];

/// Values of all kinds that options take.
const VALUES: [&str; 5] = ["1", "30d", "blocks", "minecraft:stone", "00000000-0000-0000-0000-000000000001"];

/// Every command with its words, those with subcommands too.
pub(super) fn commands() -> Vec<(String, Command)> {
    fn add(words: &str, command: &Command, all: &mut Vec<(String, Command)>) {
        for command in command.get_subcommands().filter(|command| command.get_name() != "help") {
            let words = format!("{words} {}", command.get_name());
            all.push((words.trim_start().to_owned(), command.clone()));
            add(&words, command, all);
        }
    }
    let mut root = Args::command();
    root.build();
    let mut all = Vec::new();
    add("", &root, &mut all);
    all
}

/// The options of a command, apart from those that end it with a text.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let ends = |arg: &Arg| {
        matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        )
    };
    command.get_arguments().filter(move |arg| !arg.is_positional() && !ends(arg))
}

fn parse<'a>(command: &'a str, args: impl IntoIterator<Item = &'a String>) -> Result<(), clap::Error> {
    let args = args.into_iter().map(String::as_str);
    let words = ["cg"].into_iter().chain(command.split(' ')).chain(args);
    Args::command().try_get_matches_from(words).map(drop)
}

/// An option by one of its names, with values that it takes.
fn given(command: &str, arg: &Arg, name: &str) -> Vec<String> {
    let count = if arg.get_action().takes_values() {
        arg.get_num_args().map_or(1, |range| range.min_values())
    } else {
        0
    };
    let choices = arg.get_possible_values().into_iter().map(|choice| choice.get_name().to_owned());
    let mut tried = choices.chain(VALUES.map(str::to_owned)).map(|value| {
        let values = vec![value; count];
        [vec![name.to_owned()], values].concat()
    });
    let is_taken = |args: &Vec<String>| match parse(command, args) {
        Ok(()) => true,
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::WrongNumberOfValues
        ),
    };
    tried.find(is_taken).unwrap_or_else(|| panic!("`cg {command} {name}` takes none of {VALUES:?}"))
}

/// All names of an option: long and short ones, and aliases that the help does not show.
fn names(arg: &Arg) -> Vec<String> {
    let long = arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default());
    let short = arg.get_short().into_iter().chain(arg.get_all_short_aliases().unwrap_or_default());
    long.map(|name| format!("--{name}")).chain(short.map(|name| format!("-{name}"))).collect()
}

#[test]
fn an_option_that_is_given_twice_is_refused_or_a_union() {
    let (mut count, mut met) = (0, BTreeSet::new());
    for (words, command) in commands() {
        for arg in options(&command) {
            let names = names(arg);
            let first = given(&words, arg, &names[0]);
            let long = arg.get_long().unwrap_or_default();
            let several = SEVERAL.iter().find(|(command, option, _)| (*command, *option) == (&*words, long));
            for name in &names {
                count += 1;
                let twice = parse(&words, first.iter().chain(&given(&words, arg, name)));
                let kind = twice.as_ref().map_err(clap::Error::kind);
                let said = twice.as_ref().map_or_else(ToString::to_string, |()| String::new());
                let is_refused = kind == Err(ErrorKind::ArgumentConflict)
                    && said.contains("cannot be used multiple times");
                assert_eq!(is_refused, several.is_none(), "`cg {words} {} … {name} …`: {said}", names[0]);
            }
            if let Some((command, option, several)) = several {
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let expected = match several {
                    Several::Union => "may be given several times",
                    Several::OneBox => "only one box",
                };
                assert!(help.contains(expected), "`cg {words} --{option}`: {help}");
                met.insert((*command, *option));
            }
        }
    }
    let known: BTreeSet<_> = SEVERAL.iter().map(|(command, option, _)| (*command, *option)).collect();
    assert_eq!(met, known);
    assert!(count > 150, "{count} options");
}

#[test]
fn a_dimension_is_named_the_same_way_everywhere() {
    let mut count = 0;
    for (words, command) in commands() {
        for arg in options(&command) {
            let names = names(arg);
            if ["--dimension", "--dim", "-d"].iter().any(|name| names.iter().any(|other| other == name)) {
                let visible = arg.get_visible_aliases().unwrap_or_default();
                let found = (arg.get_long(), visible.as_slice(), arg.get_short());
                assert_eq!(found, (Some("dimension"), &["dim"][..], Some('d')), "`cg {words}`");
                let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("[default: "), "`cg {words}`: {help}");
                count += 1;
            }
        }
    }
    assert!(count > 10, "{count} commands");
    let (_, hash) = commands().into_iter().find(|(words, _)| words == "hash").expect("is a command");
    let help = options(&hash).find(|arg| arg.get_long() == Some("dimension")).and_then(Arg::get_help);
    let help = help.expect("has a help").to_string();
    assert!(
        help.contains("[default: everything that the world holds; with `--box` minecraft:overworld, or the world's first]"),
        "{help}"
    );
}

#[test]
fn room_on_the_disk_is_asked_for_where_something_is_written() {
    // What these write has no limit of its own.
    const WITHOUT: [&str; 6] =
        ["copy", "overlay salvage", "restore", "segments accept", "segments compact", "segments delete"];
    for (words, command) in commands() {
        let about =
            command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
        let writes = about.contains("Writes") && !WITHOUT.contains(&&*words);
        let is_asked = options(&command).any(|arg| arg.get_long() == Some("min-free"));
        assert_eq!(is_asked, writes, "`cg {words}`: {about}");
    }
}

#[test]
fn a_command_with_a_world_can_wait_for_it() {
    for (words, command) in commands() {
        let mut positions = command.get_positionals().map(|arg| arg.get_id().as_str());
        let opens = positions.any(|id| id == "path" || id == "from")
            || ["overlay salvage", "restore"].contains(&&*words);
        let waits = options(&command).any(|arg| arg.get_long() == Some("wait"));
        assert_eq!(waits, opens, "`cg {words}`");
    }
}

#[test]
fn help_and_docs_have_every_code() {
    let docs = include_str!("../../../../docs/operations.md");
    for code in Code::ALL {
        let row = format!("\n| `{}` | {} |", code.as_str(), code.exit());
        assert!(docs.contains(&row), "{row}");
        assert!(EXIT_CODES.contains(code.as_str()), "{code:?}");
        assert!(EXIT_CODES.contains(&format!("\n  {}  ", code.exit())), "{code:?}");
        assert!(docs.contains(&format!("\n| {} | ", code.exit())), "{code:?}");
    }
}

#[test]
fn each_command_has_a_row_in_the_page_of_the_tool() {
    let page = include_str!("../../../../docs/tool.md");
    let missing: Vec<_> = Args::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .filter(|name| !page.lines().any(|line| line.starts_with(&format!("| `cg {name}"))))
        .collect();
    assert_eq!(missing, [""; 0]);
}
