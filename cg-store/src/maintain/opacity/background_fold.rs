//! Folding tiles in the background: a thread of the pool does it, because one tile may take longer than a tick.

use super::Folding;
use crate::maintain::background::{Awaited, Background};
use crate::maintain::state::MaintainState;
use crate::maintain::tiering::{DamageLog, Due};
use crate::storage::error::Error;

/// The one tile that may be being folded.
#[derive(Debug, Default)]
pub(crate) struct BackgroundFold {
    making: Option<Background<Made>>,
}

/// The result of folding a tile, and the damage that was found.
#[derive(Debug)]
struct Made {
    folding: Result<Folding, Error>,
    damage: Vec<Error>,
}

/// The result of folding until the deadline.
#[derive(Debug, Default)]
pub(crate) struct FoldedTiles {
    /// The number of folded tiles.
    pub(crate) count: usize,
    /// Whether no known tile is left.
    pub(crate) is_all: bool,
}

impl MaintainState {
    /// Folds tiles that are known to have patches, one after the other, until the deadline. The next call continues
    /// with the tile that is being folded then.
    ///
    /// # Errors
    /// As [`fold_known_tile`](Self::fold_known_tile).
    pub(crate) fn fold_until(
        &self,
        behind: &mut BackgroundFold,
        due: Due,
        damage_log: &mut DamageLog,
    ) -> Result<FoldedTiles, Error> {
        let mut folded = FoldedTiles::default();
        loop {
            let making = match behind.making.take() {
                Some(making) => making,
                None if due.is_over() => return Ok(folded),
                None if self.activity.dirty_tiles.lock().next(self.activity.tiering.now()).is_none() => {
                    folded.is_all = true;
                    return Ok(folded);
                }
                None => self.in_background("folding a tile of the opacity map", |world| {
                    let mut damage = Vec::new();
                    let folding = world.fold_known_tile(&mut damage);
                    Ok(Made { folding, damage })
                }),
            };
            let Made { folding, damage } = match making.wait(due) {
                Awaited::Done(made) => made?,
                Awaited::Running(making) => {
                    behind.making = Some(making);
                    return Ok(folded);
                }
            };
            for damage in &damage {
                damage_log.report(damage);
            }
            match folding? {
                Folding::Done => folded.count += 1,
                Folding::Conflict => return Ok(folded),
                Folding::Searched | Folding::Nothing => {
                    folded.is_all = true;
                    return Ok(folded);
                }
            }
        }
    }
}
