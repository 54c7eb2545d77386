//! Damage that can be done to a copy of a world, as a line of text that goes from process to process.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use cg_format::key::{self, Family};
use cg_format::{BlockId, LocalPos};
use cg_store::World;
use rocksdb::{BoundColumnFamily, DB, IteratorMode, Options};

use crate::failure::Failure;
use crate::subject;

/// One damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Damage {
    /// None: a control.
    Intact,
    /// One bit of a file is flipped.
    Flip { file: String, bit: u64 },
    /// A file is gone.
    Delete { file: String },
    /// A chunk's row stands at another chunk's key, put there behind the store's back: a control.
    Misplace,
    /// A block was changed by a transaction that no step explains: a control.
    Change,
    /// An entity's row was deleted behind the store's back: a control.
    Drop,
}

impl Damage {
    /// Does it.
    pub(crate) fn apply(&self, world: &Path) -> Result<(), Failure> {
        match self {
            Self::Intact => Ok(()),
            Self::Flip { file, bit } => {
                let path = world.join(file);
                let mut bytes = fs::read(&path)?;
                let byte = bytes.get_mut((bit / 8) as usize).ok_or("no such bit")?;
                *byte ^= 1 << (bit % 8);
                replace(&path, &bytes)
            }
            Self::Delete { file } => Ok(fs::remove_file(world.join(file))?),
            Self::Misplace => raw(world, |db| {
                let chunks = family(db, Family::ChunkL0)?;
                let first =
                    db.iterator_cf(&chunks, IteratorMode::Start).next().ok_or("there is no chunk")??;
                let last = db.iterator_cf(&chunks, IteratorMode::End).next().ok_or("there is no chunk")??;
                if first.0 == last.0 {
                    return Err("there is one chunk only".into());
                }
                Ok(db.put_cf(&chunks, first.0, last.1)?)
            }),
            Self::Change => {
                let world = World::builder().options(&subject::options()).open(world)?;
                world.transaction(|tx| {
                    for place in 0..crate::size::PLACES {
                        if let Some(chunk) = tx.load(subject::at(place))? {
                            let pos = subject::at(place).pos.block(LocalPos::new(7, 7, 7));
                            // Neither kind of block is in every chunk.
                            let old = chunk.block(pos.local()).get();
                            let new = BlockId::new(if old == 2 { 4 } else { 2 });
                            tx.set_block(subject::at(place).dimension, pos, new)?;
                            return Ok::<_, Failure>(());
                        }
                    }
                    Err("there is no chunk".into())
                })?;
                Ok(world.close()?)
            }
            Self::Drop => raw(world, |db| {
                let key = key::entity(subject::entity_id(0));
                Ok(db.delete_cf(&family(db, Family::Entity)?, key)?)
            }),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Intact => f.write_str("intact"),
            Self::Flip { file, bit } => write!(f, "flip {file} {bit}"),
            Self::Delete { file } => write!(f, "delete {file}"),
            Self::Misplace => f.write_str("misplace"),
            Self::Change => f.write_str("change"),
            Self::Drop => f.write_str("drop"),
        }
    }
}

impl FromStr for Damage {
    type Err = Failure;

    fn from_str(line: &str) -> Result<Self, Failure> {
        let words: Vec<&str> = line.split(' ').collect();
        Ok(match words.as_slice() {
            ["intact"] => Self::Intact,
            ["flip", file, bit] => Self::Flip { file: (*file).into(), bit: bit.parse()? },
            ["delete", file] => Self::Delete { file: (*file).into() },
            ["misplace"] => Self::Misplace,
            ["change"] => Self::Change,
            ["drop"] => Self::Drop,
            _ => return Err(format!("no such damage: {line}").into()),
        })
    }
}

/// Writes a file anew: the old one may be a link that another copy shares.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::remove_file(path)?;
    Ok(fs::write(path, bytes)?)
}

/// Opens the database under a world, past everything that the store adds.
fn raw(world: &Path, act: impl FnOnce(&DB) -> Result<(), Failure>) -> Result<(), Failure> {
    let path = world.join("db");
    let options = Options::default();
    let families = DB::list_cf(&options, &path)?;
    let db = DB::open_cf(&options, &path, families)?;
    act(&db)
}

fn family(db: &DB, family: Family) -> Result<Arc<BoundColumnFamily<'_>>, Failure> {
    Ok(db.cf_handle(family.name()).ok_or("no such family")?)
}
