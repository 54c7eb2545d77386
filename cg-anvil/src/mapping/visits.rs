//! For how long no player was in the columns of a save when it was imported.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cg_format::{ChunkBox, Dimension};
use cg_store::view::Area;
use cg_store::{Error, World};

use super::Ids;
use crate::{Decoder, Payload};

/// When the columns of a dimension were last saved, and whether a player ever was near, as the save says.
///
/// The save's time is the newest at which any of them was saved: a game saves what players are near.
#[derive(Debug, Default)]
pub struct Visits {
    columns: HashMap<(i64, i64), Times>,
    newest: i64,
}

/// Times in a column's record, in game ticks.
#[derive(Debug, Clone, Copy)]
struct Times {
    last_update: i64,
    inhabited: i64,
}

impl Visits {
    /// Reads every chunk of a dimension: one of each column has the column's record. A column without a record, or with a
    /// damaged one, is not known.
    ///
    /// # Errors
    /// What the engine says, damage apart.
    pub fn read(world: &World, dimension: Dimension) -> Result<Self, Error> {
        let (mut visits, mut decoder) = (Self::default(), Decoder::default());
        let Some(column) = Ids::find(&world.catalog()).column else { return Ok(visits) };
        world.read_view(|view| {
            view.for_each_decoded(Area::Box(dimension, ChunkBox::EVERYTHING), |decoded| {
                if let Ok((at, chunk)) = decoded
                    && let Some(times) = chunk.side(column).and_then(|record| times(&mut decoder, record))
                {
                    visits.newest = visits.newest.max(times.last_update);
                    visits.columns.insert((at.pos.x(), at.pos.z()), times);
                }
                ControlFlow::<()>::Continue(())
            })
        })?;
        Ok(visits)
    }

    /// For how many ticks no player was in a column when it was imported; `None` if that is not known. A column in which
    /// no player ever was is older than any.
    pub fn unvisited_ticks(&self, x: i64, z: i64) -> Option<u64> {
        let times = self.columns.get(&(x, z))?;
        if times.inhabited == 0 {
            return Some(u64::MAX);
        }
        Some(self.newest.abs_diff(times.last_update))
    }
}

/// Times in a column's record, if it has both.
fn times(decoder: &mut Decoder, record: &[u8]) -> Option<Times> {
    let Ok(Payload::Column(column)) = decoder.decode(record) else { return None };
    let [last_update, inhabited] = ["LastUpdate", "InhabitedTime"].map(|name| column.carried_long(name));
    Some(Times { last_update: last_update?, inhabited: inhabited? })
}
