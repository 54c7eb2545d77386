//! A process that imports a save, and one that judges what is left of such a world.

use std::path::{Path, PathBuf};

use cg_anvil::column::{Blocks, Column, Section};
use cg_anvil::import::{ImportOptions, import};
use cg_anvil::region::{ColumnPos, RegionWriter};
use cg_anvil::write;
use cg_store::view::Area;
use cg_store::{Error, OpenError, World};

use crate::failure::Failure;
use crate::reading;
use crate::subject;

const DATA_VERSION: i32 = 3955;
/// Columns of the save along each axis.
const SIDE: i32 = 6;

/// What an importer is told.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Orders {
    /// The world.
    #[arg(long)]
    world: PathBuf,
    /// The save.
    #[arg(long)]
    save: PathBuf,
    /// Judge the world: it was made.
    #[arg(long)]
    made: bool,
    /// Judge the world: the import ended.
    #[arg(long)]
    ended: bool,
    /// Judge the world: the hash of its content when the import has ended, at once or after it was called again.
    #[arg(long)]
    hash: Option<String>,
}

/// Imports into a new world and tells what was done, or judges.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let options = subject::options();
    let builder = World::builder().options(&options);
    let Some(hash) = &orders.hash else {
        let world = builder.create(&orders.world)?;
        println!("made");
        import(&orders.save, &world, &ImportOptions::default(), |_| {})?;
        let hash = world.content_hash(Area::World)?;
        world.close()?;
        println!("ended {hash}");
        return Ok(());
    };
    let world = match builder.open(&orders.world) {
        Ok(world) => world,
        Err(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotAWorld { .. })) if !orders.made => {
            println!("half made");
            return Ok(());
        }
        Err(error) => return Err(format!("the world does not open for writing: {error}").into()),
    };
    reading::verify(&world)?;
    let mut found = world.content_hash(Area::World)?.to_string();
    if found != *hash && !orders.ended {
        import(&orders.save, &world, &ImportOptions::default(), |_| {})?;
        reading::verify(&world)?;
        found = world.content_hash(Area::World)?.to_string();
    }
    if found != *hash {
        return Err(format!("the content is {found}, not {hash}").into());
    }
    world.close()?;
    println!("imported");
    Ok(())
}

/// Writes a small save.
pub(crate) fn save(dir: &Path) -> Result<(), Failure> {
    let mut region = RegionWriter::create(&dir.join("region"), ColumnPos::new(0, 0).region())?;
    for (x, z) in (0..SIDE).flat_map(|x| (0..SIDE).map(move |z| (x, z))) {
        let mut column = Column::new(ColumnPos::new(x, z), DATA_VERSION);
        for y in -4..2 {
            let name = format!("minecraft:block{}", (x * 7 + z * 3 + y).rem_euclid(11));
            column.sections.push(Section { blocks: Some(Blocks::uniform(&name)), ..Section::new(y) });
        }
        region.put(ColumnPos::new(x, z).slot(), &write::column(&column)?, 0)?;
    }
    region.finish()?;
    Ok(())
}
