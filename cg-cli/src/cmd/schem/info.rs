//! `cg schem info`: what a schematic holds.

use std::collections::BTreeMap;
use std::fmt;

use cg_snapshot::schem::Grid;
use serde::Serialize;

use super::FileArg;
use crate::output::{Failure, Outcome, Output, counted, grouped};
use crate::shown::shown;

/// Say what a schematic holds: its size, blocks by state, block entities and entities by kind, biomes.
///
/// The whole file is read and checked, in little memory however large it is; one that is damaged or of another kind is
/// refused with the reason, exit code 1. States are spelled as the file spells them. JSON:
/// `{"version":N,"data_version":N,"width":N,"height":N,"length":N,"offset":[X,Y,Z],"states":{STATE:COUNT},
/// "block_entities":{ID:COUNT},"entities":{ID:COUNT},"biomes":{BIOME:COUNT},"palette":N,"unknown_fields":[NAME]}`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    file: FileArg,
}

#[derive(Debug, Serialize)]
struct Report {
    version: u8,
    data_version: i32,
    width: u16,
    height: u16,
    length: u16,
    offset: [i32; 3],
    states: BTreeMap<String, u64>,
    block_entities: BTreeMap<String, u64>,
    entities: BTreeMap<String, u64>,
    biomes: BTreeMap<String, u64>,
    /// Entries of the palette of blocks, also those that no block shows.
    palette: usize,
    unknown_fields: Vec<String>,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let schematic = args.file.read()?.schematic;
    let [width, height, length] = schematic.size();
    let named = |grid: Option<&Grid>| {
        let mut counts = BTreeMap::new();
        // A palette may say one name under two indices.
        for (_, name, count) in grid.into_iter().flat_map(Grid::states) {
            *counts.entry(name.to_owned()).or_default() += count;
        }
        counts
    };
    out.print(&Report {
        version: schematic.version(),
        data_version: schematic.data_version(),
        width,
        height,
        length,
        offset: schematic.offset(),
        states: named(schematic.blocks()),
        block_entities: by_kind(schematic.block_entities().map(|entity| entity.id)),
        entities: by_kind(schematic.entities().map(|entity| entity.id)),
        biomes: named(schematic.biomes()),
        palette: schematic.blocks().map_or(0, Grid::palette_len),
        unknown_fields: schematic.unknown_fields().keys().cloned().collect(),
    })?;
    Ok(Outcome::Good)
}

fn by_kind(kinds: impl Iterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, data_version, width, height, length, offset: [x, y, z], .. } = self;
        let blocks = u64::from(*width) * u64::from(*height) * u64::from(*length);
        writeln!(f, "Sponge schematic of version {version}, data version {data_version}")?;
        writeln!(f, "{width} × {height} × {length} (x, y, z): {}", counted(blocks, "block"))?;
        writeln!(f, "offset: {x} {y} {z}")?;
        for (what, counts) in [
            ("states", &self.states),
            ("block entities", &self.block_entities),
            ("entities", &self.entities),
            ("biomes", &self.biomes),
        ] {
            if counts.is_empty() {
                continue;
            }
            writeln!(f, "{what}:")?;
            let mut counts: Vec<_> = counts.iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            for (name, count) in counts {
                writeln!(f, "  {:>14}  {}", grouped(*count), shown(name))?;
            }
        }
        if !self.unknown_fields.is_empty() {
            let names: Vec<_> = self.unknown_fields.iter().map(|name| shown(name).to_string()).collect();
            writeln!(f, "unknown fields: {}", names.join(", "))?;
        }
        Ok(())
    }
}
