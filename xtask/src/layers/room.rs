//! The rooms of a crate: the top modules from top to bottom, as its root file's documentation draws them.
//!
//! The figure is a fenced block of `text`. A line of it is `room/`, two spaces and what the room is; a line that begins
//! with a space goes on with the one above it. A room uses the rooms below it, never one above.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};

use super::house::{House, ROOT};
use super::source::README;

/// The names of the rooms from top to bottom, or `None` for a crate without a figure.
///
/// # Errors
/// A line is no room's, or a room has two.
pub(super) fn figure(text: &str) -> Result<Option<Vec<String>>> {
    let text = text.strip_prefix(README).unwrap_or(text);
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let fences = lines.split(|line| line.starts_with("```")).skip(1).step_by(2);
    let drawn = fences.into_iter().find(|block| block.iter().any(|line| room(line).is_some()));
    let Some(drawn) = drawn else { return Ok(None) };
    let mut rooms = Vec::new();
    for line in drawn.iter().filter(|line| !line.is_empty() && !line.starts_with(' ')) {
        let room = room(line).with_context(|| format!("no line of a room: {line:?}"))?;
        ensure!(!rooms.contains(&room), "{room} has two lines");
        rooms.push(room);
    }
    Ok(Some(rooms))
}

/// The name in a line of the form `room/  what it is`.
fn room(line: &str) -> Option<String> {
    let (name, rest) = line.split_once('/')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (is_name && rest.starts_with("  ")).then(|| name.to_owned())
}

/// Every room that does not exist, and every module that is in none.
pub(super) fn missing(rooms: &[String], house: &House) -> Vec<String> {
    let drawn: BTreeSet<_> = rooms.iter().cloned().collect();
    let gone = drawn.difference(&house.modules).map(|room| format!("{room} is in the figure and no module"));
    let homeless = house.modules.difference(&drawn).map(|name| format!("{name} is a module in no room"));
    gone.chain(homeless).collect()
}

/// Every arrow from a room to one above it, or to the root.
pub(super) fn upward(rooms: &[String], house: &House) -> Vec<String> {
    let height = |name: &str| {
        let depth = rooms.iter().position(|room| room == name);
        if name == ROOT { Some(0) } else { depth.map(|depth| depth + 1) }
    };
    let upward = house.arrows.iter().filter(|arrow| height(&arrow.to) < height(&arrow.from));
    upward
        .map(|arrow| {
            let (from, to, path) = (&arrow.from, &arrow.to, &arrow.path);
            format!("{}: {from} uses {to}, which is above it: crate::{path}", arrow.place)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{figure, missing, upward};
    use crate::layers::house::{House, Sources, read};

    const FIGURE: &str = "//! A store.\n//!\n//! ```text\n//! tree -> no figure\n//! ```\n//! ```text\n\
        //! api/      handles,\n//!           and errors\n//! storage/  rows\n//! rt/       threads\n//! ```\nmod api;\n";

    fn rooms() -> Vec<String> {
        figure(FIGURE).expect("the figure is right").expect("there is one")
    }

    fn house(files: &[(&str, &str)]) -> House {
        let sources: Sources =
            files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect();
        read("/lib.rs", &sources).expect("the crate is whole")
    }

    #[test]
    fn the_figure_is_read_from_top_to_bottom() {
        assert_eq!(rooms(), ["api", "storage", "rt"]);
        assert_eq!(figure("//! A crate.\n//! ```text\n//! a -> b/c\n//! ```\n").unwrap(), None);
        let after_readme = format!("#![doc = include_str!(\"../README.md\")]\n{FIGURE}");
        assert_eq!(figure(&after_readme).unwrap(), Some(rooms()));
        assert_eq!(figure("//! A crate.\n// api/  no documentation\n").unwrap(), None);
    }

    #[test]
    fn a_figure_with_a_wrong_line_is_refused() {
        let error = |line: &str| figure(&FIGURE.replace("rt/       threads", line)).unwrap_err().to_string();
        assert_eq!(error("rt        threads"), "no line of a room: \"rt        threads\"");
        assert_eq!(error("api/      again"), "api has two lines");
    }

    #[test]
    fn only_arrows_downwards_pass() {
        let storage = "use crate::rt::Pool;\nfn f() -> crate::Error {\n  crate::api::open()\n}";
        let house = house(&[
            ("/lib.rs", "mod api; mod storage; mod rt; pub use api::Error; pub struct Own;"),
            ("/api.rs", "use crate::rt::Pool;\nuse crate::storage::Row;"),
            ("/storage.rs", storage),
            ("/rt.rs", "use crate::Own;"),
        ]);
        assert_eq!(
            upward(&rooms(), &house),
            [
                "/storage.rs:2: storage uses api, which is above it: crate::Error",
                "/storage.rs:3: storage uses api, which is above it: crate::api::open",
                "/rt.rs:1: rt uses the root, which is above it: crate::Own",
            ]
        );
    }

    #[test]
    fn every_room_is_a_module_and_every_module_a_room() {
        let house = house(&[
            ("/lib.rs", "mod api; mod rt; mod extra;"),
            ("/api.rs", ""),
            ("/rt.rs", ""),
            ("/extra.rs", ""),
        ]);
        assert_eq!(
            missing(&rooms(), &house),
            ["storage is in the figure and no module", "extra is a module in no room"]
        );
    }
}
