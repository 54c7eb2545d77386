//! A plan as text for confirmation by a person.

use std::fmt::{self, Write as _};

use super::plan::{Action, Cost, Plan, What};
use crate::schema::shape_text;
use crate::{Conversion, Name};

/// The maximum number of names shown from a list.
const SHOWN: usize = 3;

impl Plan {
    /// The dry run: the verdict, then one line for each action with its cost and whether it cannot be undone.
    pub fn report(&self) -> String {
        let mut out = String::new();
        self.write_report(&mut out).expect("a string takes any text");
        out
    }

    fn write_report(&self, out: &mut String) -> fmt::Result {
        let refused = self.refusals().count();
        let rewrites = self.actions.iter().filter(|action| action.cost == Cost::RewriteOnLoad).count();
        match refused {
            0 if self.is_unchanged() => writeln!(out, "accepted: the registry stays as it is")?,
            0 if rewrites == 0 => writeln!(out, "accepted: no stored chunk is touched")?,
            0 => {
                let (before, after) = self.generations();
                writeln!(
                    out,
                    "accepted: stored chunks are converted as they are loaded (schema generation {before} to {after})"
                )?;
            }
            1 => writeln!(out, "refused for 1 reason, the world is unchanged")?,
            _ => writeln!(out, "refused for {refused} reasons, the world is unchanged")?,
        }
        for action in &self.actions {
            writeln!(out, "  {:<8} {}{}", action.cost, action.what, note(action))?;
        }
        Ok(())
    }
}

const fn note(action: &Action) -> &'static str {
    if action.reversible { "" } else { " (cannot be undone)" }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report())
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PackAdded { pack, version } => write!(f, "pack `{pack}` {version} is new"),
            Self::PackUpdated { pack, from, to } if from == to => {
                write!(f, "pack `{pack}` {to} has other namespaces")
            }
            Self::PackUpdated { pack, from, to } => write!(f, "pack `{pack}` goes from {from} to {to}"),
            Self::PackReturned { pack, version } => write!(f, "pack `{pack}` {version} is back"),
            Self::PackMissing { pack, version, entries, placeholder } => {
                write!(f, "pack `{pack}` {version} is missing")?;
                let counts = entries.iter().map(|(list, count)| format!("{count} {}", list.noun(*count)));
                let counts: Vec<_> = counts.collect();
                if !counts.is_empty() {
                    write!(f, "; its {} keep their ids and bytes", counts.join(", "))?;
                }
                match placeholder {
                    Some(placeholder) => write!(f, ", shown as `{placeholder}`"),
                    None => Ok(()),
                }
            }
            Self::Register { pack, list, first_id, names } => {
                let last_id = first_id + (names.len() as u64).saturating_sub(1);
                let (count, noun) = (names.len(), list.noun(names.len()));
                write!(f, "pack `{pack}` registers {count} {noun}: ")?;
                write_names(f, names)?;
                match names.len() {
                    1 => write!(f, "; id {first_id}"),
                    _ => write!(f, "; ids {first_id} to {last_id}"),
                }
            }
            Self::Renamed { list, id, old, new } => {
                let noun = list.noun(1);
                write!(f, "{noun} `{old}` is also found as `{new}`; its id stays {id}")
            }
            Self::Aliased { list, id, name, earlier } => {
                let noun = list.noun(1);
                write!(f, "{noun} `{name}` is also found as `{earlier}`, its earlier name; its id stays {id}")
            }
            Self::United { list, old, new, old_id, new_id, cut } => {
                let noun = list.noun(1);
                write!(f, "{noun} `{old}` (id {old_id}) becomes `{new}` (id {new_id}): the world has both")?;
                if cut.is_empty() { Ok(()) } else { write!(f, "; losing {}", cut.join(", ")) }
            }
            Self::KeptApart { list, old, new } => {
                let noun = list.noun(1);
                write!(f, "{noun} `{old}` and {noun} `{new}` stay two entries: the world has both")
            }
            Self::NoLongerOffered { pack, list, names } => {
                let (count, noun) = (names.len(), list.noun(names.len()));
                write!(f, "pack `{pack}` no longer offers {count} {noun}, kept: ")?;
                write_names(f, names)
            }
            Self::ComponentDescribed { component, default_bytes } => {
                write!(f, "component `{component}`: new instances hold ")?;
                if default_bytes.0.is_empty() { f.write_str("nothing") } else { write!(f, "{default_bytes}") }
            }
            Self::TypesChanged { component, narrowed } if narrowed.is_empty() => {
                write!(f, "component `{component}` has other types, which allow what they allowed")
            }
            Self::TypesChanged { component, narrowed } => {
                let narrowed = narrowed.join(", ");
                write!(
                    f,
                    "component `{component}` has types that may not allow stored values of {narrowed}; `cg registry check` finds these"
                )
            }
            Self::ComponentReplaced { old, new, from, to, by, cut, blocks } => {
                let (from, to) = (shape_text(*from), shape_text(*to));
                let by = match by {
                    Conversion::Prefix => "from the front",
                    Conversion::Fields => "by field names",
                    Conversion::Function => "by the host's function",
                };
                write!(f, "component `{old}` goes from {from} to {to} as `{new}`, carried over {by}")?;
                if !cut.is_empty() {
                    write!(f, ", losing {}", cut.join(", "))?;
                }
                write!(f, "; {blocks} {}", if *blocks == 1 { "block has it" } else { "blocks have it" })
            }
            Self::BlockChanged { block, gains, loses } => {
                write!(f, "block `{block}`")?;
                if !gains.is_empty() {
                    f.write_str(" gains ")?;
                    write_names(f, gains)?;
                }
                if !gains.is_empty() && !loses.is_empty() {
                    f.write_str(" and")?;
                }
                if !loses.is_empty() {
                    f.write_str(" loses ")?;
                    write_names(f, loses)?;
                    f.write_str(", whose bytes are kept")?;
                }
                Ok(())
            }
            Self::OpacityChanged { block, opaque } => {
                write!(f, "block `{block}` {} what is behind it", if *opaque { "hides" } else { "shows" })
            }
            Self::Refused(refusal) => write!(f, "{refusal}"),
        }
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, names: &[Name]) -> fmt::Result {
    for (at, name) in names.iter().take(SHOWN).enumerate() {
        write!(f, "{}`{name}`", if at == 0 { "" } else { ", " })?;
    }
    match names.len().saturating_sub(SHOWN) {
        0 => Ok(()),
        more => write!(f, " and {more} more"),
    }
}
