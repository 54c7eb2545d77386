//! A box of a world as a schematic of version 3.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use cg_format::{BlockBox, Dimension};
use cg_snapshot::schem::{SchemError, SchemHead, SchemWriter};
use cg_store::{Error, World};
use serde::Serialize;

use super::slab::{Slabs, TooWide};
use super::survey::{Pass, Survey, Trouble};
use crate::new_file::NewFile;

/// Blocks along one side of a schematic at most.
const MAX_SIDE: u128 = u16::MAX as u128;

/// Choices of an export.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExportOptions {
    /// The number of the game's version that the file is said to be of. Default: the newest that the box's chunks and
    /// entities say they came with, or 1.21.1's (3955) when none says one.
    pub data_version: Option<i32>,
}

/// Report of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// Blocks along x.
    pub width: u16,
    /// Blocks along y.
    pub height: u16,
    /// Blocks along z.
    pub length: u16,
    /// The number of the game's version that the file says.
    pub data_version: i32,
    /// Blocks, those of air too.
    pub blocks: u64,
    /// States.
    pub states: u64,
    /// Block entities.
    pub block_entities: u64,
    /// Entities; riders are in their vehicles.
    pub entities: u64,
    /// Biomes; none if no chunk of the box says any.
    pub biomes: u64,
    /// Chunks of the box that are not stored, and were written as air.
    pub absent_chunks: u64,
    /// Content that a schematic cannot hold, or that could not be read: in words, and how often.
    pub not_exported: BTreeMap<String, u64>,
}

/// Why an export ended early. No file is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The world could not be read on.
    #[error(transparent)]
    Store(Error),
    /// The file is there: nothing is overwritten.
    #[error("{} is there already; delete it or choose another name", .0.display())]
    Exists(PathBuf),
    /// The box is larger than a schematic can be.
    #[error("the box is {} × {} × {} blocks, and a schematic has at most {MAX_SIDE} along each side", .0[0], .0[1], .0[2])]
    TooLarge([u128; 3]),
    /// The box is too wide.
    #[error(transparent)]
    TooWide(#[from] TooWide),
    /// The file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of writing it.
        source: SchemError,
    },
}

impl ExportError {
    /// Whether something else should have been asked for.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Exists(_) | Self::TooLarge(_) | Self::TooWide(_))
    }
}

/// Writes a box, both corners included, as a schematic; `watch` is told how many layers are done, of twice the height.
///
/// Goes through the box twice, the palette stands before the blocks, and both times sees the world as it was at one moment:
/// a concurrent writer is not seen and not held up. Holds at most sixteen layers of it, its block
/// entities and entities in memory, and the UUIDs of what stands in it. The file has its name only when it is whole.
///
/// # Errors
/// [`ExportError`].
pub fn export(
    world: &World,
    dimension: Dimension,
    area: BlockBox,
    file: &Path,
    options: &ExportOptions,
    mut watch: impl FnMut(u64),
) -> Result<ExportReport, ExportError> {
    let [Ok(width), Ok(height), Ok(length)] = area.size().map(u16::try_from) else {
        return Err(ExportError::TooLarge(area.size()));
    };
    let slabs = Slabs::new(area)?;
    // Before the work, not after it.
    let mut out = NewFile::create(file).map_err(|error| failed(file, SchemError::Io(error).into()))?;
    let head = SchemHead::sized([width, height, length]);
    let written = world.read_view(|view| {
        let mut survey = Survey::new(view, dimension, area);
        write(&mut survey, slabs, &mut out, head, *options, &mut watch)
    });
    let report = written.map_err(|trouble| failed(file, trouble))?;
    out.finish().map_err(|error| failed(file, SchemError::Io(error).into()))?;
    Ok(report)
}

fn failed(file: &Path, trouble: Trouble) -> ExportError {
    match trouble {
        Trouble::Store(error) => ExportError::Store(error),
        Trouble::Schem(SchemError::Io(error)) if error.kind() == io::ErrorKind::AlreadyExists => {
            ExportError::Exists(file.to_owned())
        }
        Trouble::Schem(source) => ExportError::File { path: file.to_owned(), source },
    }
}

fn write(
    survey: &mut Survey<'_, '_>,
    slabs: Slabs,
    out: &mut NewFile,
    head: SchemHead,
    options: ExportOptions,
    watch: &mut impl FnMut(u64),
) -> Result<ExportReport, Trouble> {
    let [width, height, length] = head.size;
    let mut numbers = Vec::new();
    let mut layers = 0;
    for slab in slabs.iter() {
        survey.states(&slab, &mut numbers, Pass::Count)?;
        survey.biomes(&slab, &mut numbers, Pass::Count)?;
        layers += (slab.cells() / slab.layer_cells()) as u64;
        watch(layers);
    }
    let entities = survey.entities()?;
    let data_version = options.data_version.or(survey.data_version).unwrap_or(head.data_version);
    let head = SchemHead { data_version, ..head };
    let mut writer = SchemWriter::new(BufWriter::new(out), &head)?;
    write_grids(survey, slabs, &mut writer, |done| watch(layers + done))?;
    writer.finish(&entities)?.flush().map_err(SchemError::Io)?;
    let blocks = u64::from(width) * u64::from(height) * u64::from(length);
    let has_biomes = !survey.biomes.names.is_empty();
    let mut not_exported = std::mem::take(&mut survey.missed);
    if has_biomes && survey.without_biome > 0 {
        not_exported.insert(
            "biomes of blocks that have none: they got the most common one".to_owned(),
            survey.without_biome,
        );
    }
    Ok(ExportReport {
        width,
        height,
        length,
        data_version: head.data_version,
        blocks,
        states: survey.states.names.len() as u64,
        block_entities: survey.block_entities.len() as u64,
        entities: entities.len() as u64,
        biomes: if has_biomes { blocks } else { 0 },
        absent_chunks: survey.absent_chunks,
        not_exported,
    })
}

fn write_grids<W: io::Write>(
    survey: &mut Survey<'_, '_>,
    slabs: Slabs,
    writer: &mut SchemWriter<W>,
    mut watch: impl FnMut(u64),
) -> Result<(), Trouble> {
    writer.blocks(&survey.states.names, &survey.states.counts)?;
    let (mut numbers, mut layers) = (Vec::new(), 0);
    for slab in slabs.iter() {
        survey.states(&slab, &mut numbers, Pass::Write)?;
        writer.cells(&numbers)?;
        layers += (slab.cells() / slab.layer_cells()) as u64;
        watch(layers);
    }
    writer.block_entities(&survey.block_entities)?;
    if survey.biomes.names.is_empty() {
        return Ok(());
    }
    let mut counts = survey.biomes.counts.clone();
    if let Some(most) = counts.get_mut(usize::from(survey.most_common_biome())) {
        *most += survey.without_biome;
    }
    writer.biomes(&survey.biomes.names, &counts)?;
    for slab in slabs.iter() {
        survey.biomes(&slab, &mut numbers, Pass::Write)?;
        writer.cells(&numbers)?;
    }
    Ok(())
}
