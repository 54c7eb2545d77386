//! `cg registry list`: every list of names with its ids, schemas and packs.

use std::collections::BTreeMap;
use std::fmt;

use cg_format::{BlockId, ComponentShape, SchemaView};
use cg_registry::{Catalog, ListKind};
use serde::Serialize;

use crate::args::WorldArg;
use crate::cmd::name_of;
use crate::output::{Failure, Outcome, Output, hex};
use crate::shown::shown;

/// List what the world knows by name: ids, sizes and defaults of components, packs, the schema generation.
///
/// JSON: `{"schema_generation":N,"lists":{"blocks":[{"id","name",…}],…},"renames":[…],"packs":[…]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// Show only this list: blocks, components, entities, structures, dimensions or sides.
    #[arg(long, value_name = "LIST", value_parser = list_named)]
    list: Option<ListKind>,
}

#[derive(Debug, Serialize)]
struct Report {
    schema_generation: u32,
    lists: BTreeMap<ListKind, Vec<Entry>>,
    renames: Vec<RenameReport>,
    packs: Vec<PackReport>,
}

#[derive(Debug, Serialize)]
struct Entry {
    id: u64,
    name: String,
    #[serde(flatten)]
    details: Details,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Details {
    Block {
        opaque: bool,
        components: Vec<String>,
    },
    Component {
        /// Bytes of one instance; `null` for variable size.
        width_bytes: Option<u32>,
        default_hex: String,
        replaced_by: Option<String>,
    },
    Name {},
}

#[derive(Debug, Serialize)]
struct RenameReport {
    list: ListKind,
    id: u64,
    name: String,
}

#[derive(Debug, Serialize)]
struct PackReport {
    pack: String,
    version: String,
    present: bool,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open(out)?;
    let catalog = world.catalog();
    let lists = ListKind::ALL.into_iter().filter(|list| args.list.is_none_or(|only| only == *list));
    let report = Report {
        schema_generation: catalog.current_generation(),
        lists: lists.map(|list| (list, entries(&catalog, list))).collect(),
        renames: catalog
            .renames()
            .iter()
            .map(|row| RenameReport { list: row.list, id: row.id, name: row.name.to_string() })
            .collect(),
        packs: catalog
            .packs()
            .into_iter()
            .map(|row| PackReport {
                pack: row.pack.clone(),
                version: row.version.clone(),
                present: row.present,
            })
            .collect(),
    };
    out.print(&report)?;
    Ok(Outcome::Good)
}

fn list_named(name: &str) -> Result<ListKind, String> {
    let found = ListKind::ALL.into_iter().find(|list| list.row() == name);
    found.ok_or_else(|| format!("the lists are {}", ListKind::ALL.map(ListKind::row).join(", ")))
}

fn entries(catalog: &Catalog, list: ListKind) -> Vec<Entry> {
    let names = (0..).zip(catalog.list(list).names());
    names
        .map(|(id, name)| Entry { id, name: name.to_string(), details: details(catalog, list, id) })
        .collect()
}

fn details(catalog: &Catalog, list: ListKind, index: u64) -> Details {
    let schema = catalog.current_schema();
    match list {
        ListKind::Blocks => {
            let block = BlockId::new(index);
            let components = schema.components_of(block).unwrap_or(&[]);
            let name = |id: &cg_format::ComponentId| name_of(catalog, ListKind::Components, id.index());
            Details::Block {
                opaque: schema.is_opaque(block),
                components: components.iter().map(name).collect(),
            }
        }
        ListKind::Components => {
            // Which of the two ids an index has is what the schema knows.
            let ids = [cg_format::ComponentId::fixed(index), cg_format::ComponentId::variable(index)];
            let Some((id, spec)) = ids.into_iter().find_map(|id| Some((id, catalog.component_spec(id)?)))
            else {
                return Details::Name {};
            };
            let newest = catalog.newest_registration(id);
            Details::Component {
                width_bytes: match spec.shape {
                    ComponentShape::Fixed { width_bytes } => Some(width_bytes),
                    ComponentShape::Variable => None,
                },
                default_hex: hex(&spec.default_bytes),
                replaced_by: (newest != id).then(|| name_of(catalog, ListKind::Components, newest.index())),
            }
        }
        _ => Details::Name {},
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "schema generation {}", self.schema_generation)?;
        for (list, entries) in &self.lists {
            writeln!(f, "{list}: {}", entries.len())?;
            for entry in entries {
                writeln!(f, "  {:>5}  {}{}", entry.id, entry.name, entry.details)?;
            }
        }
        for RenameReport { list, id, name } in &self.renames {
            writeln!(f, "{} {id} is also found as {name}", list.noun(1))?;
        }
        for PackReport { pack, version, present } in &self.packs {
            let (pack, version) = (shown(pack), shown(version));
            writeln!(f, "pack {pack} {version}{}", if *present { "" } else { " (missing)" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block { opaque, components } => {
                f.write_str(if *opaque { "" } else { "  (not opaque)" })?;
                if !components.is_empty() {
                    write!(f, "  with {}", components.join(", "))?;
                }
                Ok(())
            }
            Self::Component { width_bytes, default_hex, replaced_by } => {
                match width_bytes {
                    Some(1) => f.write_str("  1 byte")?,
                    Some(width) => write!(f, "  {width} bytes")?,
                    None => f.write_str("  variable size")?,
                }
                if default_hex.bytes().any(|digit| digit != b'0') {
                    write!(f, ", new instances hold {default_hex}")?;
                }
                replaced_by.as_ref().map_or(Ok(()), |newest| write!(f, ", replaced by {newest}"))
            }
            Self::Name {} => Ok(()),
        }
    }
}
