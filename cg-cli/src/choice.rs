//! Values of options that are choices of `cg-anvil`: their spellings and help.

use cg_anvil::export::{Damaged, LayoutChoice};
use cg_anvil::import::{Merge, MergeFiles};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A spelling, its help, and what it means.
type Choice<T> = (&'static str, &'static str, T);

/// Reads `--merge`.
pub(crate) fn merge() -> impl TypedValueParser<Value = Merge> {
    of([
        (
            "replace",
            "The save's columns and entities replace the world's; all of a replaced column goes, its entities too",
            Merge::Replace,
        ),
        (
            "keep",
            "The world's columns and entities are kept; a column that the world has any part of stays as it is",
            Merge::Keep,
        ),
    ])
}

/// Reads `--merge-files`.
pub(crate) fn merge_files() -> impl TypedValueParser<Value = MergeFiles> {
    of([
        ("keep", "They stay", MergeFiles::Keep),
        (
            "replace",
            "They are deleted, if the imported save has a `level.dat` of its own",
            MergeFiles::Replace,
        ),
    ])
}

/// Reads `--layout`.
pub(crate) fn layout() -> impl TypedValueParser<Value = LayoutChoice> {
    of([
        (
            "as-imported",
            "That in which each dimension was imported, beside the same `level.dat`; else that in which the game of the \
             `level.dat` looks; of a world without one, the old layout",
            LayoutChoice::AsImported,
        ),
        ("old", "`region/`, `DIM-1/` and `DIM1/`, for Minecraft up to 1.21.11", LayoutChoice::Old),
        ("new", "`dimensions/minecraft/overworld/` and so on, for Minecraft from 26.1 on", LayoutChoice::New),
    ])
}

/// Reads `--damaged`.
pub(crate) fn damaged() -> impl TypedValueParser<Value = Damaged> {
    of([
        (
            "leave-out",
            "They are left out: the game generates them anew, and what was built there is gone",
            Damaged::LeaveOut,
        ),
        (
            "regenerate",
            "They are written with what is left, and say that they were only begun: the game generates the terrain again, \
             also over what is left",
            Damaged::Regenerate,
        ),
    ])
}

fn of<T: Copy + Send + Sync + 'static, const N: usize>(
    choices: [Choice<T>; N],
) -> impl TypedValueParser<Value = T> {
    let values = choices.map(|(name, help, _)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).map(move |said| {
        let meant = choices.iter().find(|(name, ..)| *name == said);
        meant.expect("the parser accepts no other").2
    })
}
