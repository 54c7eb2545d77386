//! An import that was begun and is not done: what it is, and how it is given up.

use std::fmt;

use cg_store::prelude::Durability;
use cg_store::{Error, World};
use serde::{Deserialize, Serialize};

use super::entities::{ADOPTIONS, adopted};
use super::error::ImportError;
use super::progress::{self, Stored};
use crate::mapping::unless_damaged;

/// An import that was begun and is not done. The world holds a part of the save, and all else that it held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Where the save was; `None` if what the world notes of the import is damaged.
    pub save: Option<String>,
    /// With which options it was begun, in words; `None` as above.
    pub begun: Option<String>,
    /// Columns that came so far, as far as that can be read.
    pub imported_columns: u64,
}

/// The import of a world that is not done. Reads what the world notes of it, a property for each region file.
///
/// # Errors
/// If the engine fails.
pub fn unfinished(world: &World) -> Result<Option<Unfinished>, Error> {
    // Where the names cannot be read, there is no telling.
    if unless_damaged(progress::all(world))?.is_none_or(|all| all.is_empty()) {
        return Ok(None);
    }
    let head = readable(progress::head(world))?.flatten();
    let mut imported_columns = 0;
    for number in 0.. {
        match readable(progress::file(world, number))? {
            Some(Some(file)) => imported_columns += file.report.imported_columns,
            Some(None) => break,
            None => {}
        }
    }
    let (save, begun) = head.map(|head| (head.path, head.choices.to_string())).unzip();
    Ok(Some(Unfinished { save: save.filter(|save| !save.is_empty()), begun, imported_columns }))
}

/// Gives up the import of a world that is not done: forgets how far it came, and changes nothing else. What came so far
/// stays. Entities that wait for a chunk which is stored by now become that chunk's.
///
/// # Errors
/// [`ImportError::Finished`] if there is none, and what the store says.
pub fn abandon(world: &World) -> Result<Unfinished, ImportError> {
    let unfinished = unfinished(world)?.ok_or(ImportError::Finished)?;
    for number in 0.. {
        let file = match readable(progress::file(world, number))? {
            Some(Some(file)) => file,
            Some(None) => break,
            None => continue,
        };
        let mut waiting = file.waiting;
        for page in 0..file.pages {
            match readable(progress::page(world, number, page))? {
                Some(page) if page.is_empty() => break,
                page => waiting.extend(page.unwrap_or_default()),
            }
        }
        for waiting in waiting.chunks(ADOPTIONS) {
            let adopted = adopted(world, waiting)?;
            world.transaction_at(Durability::Process, |tx| {
                for (id, entity) in adopted {
                    tx.put_entity(id, entity);
                }
                Stored::Ok(())
            })?;
        }
    }
    let all = progress::all(world)?;
    world.transaction_at(Durability::Process, |tx| {
        progress::clear(tx, all);
        Stored::Ok(())
    })?;
    world.flush()?;
    Ok(unfinished)
}

/// A part of the progress, or `None` where it is damaged.
fn readable<T>(read: Result<T, ImportError>) -> Result<Option<T>, Error> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(ImportError::Store(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.save, &self.begun) {
            (Some(save), Some(begun)) => write!(f, "import of {save} {begun}")?,
            _ => f.write_str("import of which the world does not say more")?,
        }
        write!(f, ", columns so far {}", self.imported_columns)
    }
}
