//! The tiles that had patches when the world was closed, so that the next open need not search the map for them.

use cg_format::frame::LEN_BYTES;
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Section, Space};

use crate::engine::{Batch, CommitSeq, Level};
use crate::kinds::opacity::TileKey;
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;
use crate::storage::meta::MetaRow;
use crate::storage::meta_view::MetaView;

/// Tiles of a whole map that are known to have patches.
#[derive(Debug, PartialEq, Eq)]
struct Unfolded {
    /// The last commit that is considered. After a later one, the row says nothing.
    last_commit: u64,
    /// Every tile that has patches, ascending. Some may have none.
    tiles: Vec<TileKey>,
}

/// Deletes the row of unfolded tiles.
pub(super) fn forget(batch: &mut Batch) {
    batch.delete(Space::WorldMeta, UNFOLDED.key);
}

/// Whether a row of `worldMeta` is written anew when the world is closed, so that damage in it needs no repair.
pub(crate) fn is_rewritten_at_close(key: &[u8]) -> bool {
    key == UNFOLDED.key.as_bytes()
}

/// The unfolded tiles: the last commit, a `u64`, and the key of each tile.
const UNFOLDED: MetaRow<Unfolded> = MetaRow {
    key: "unfoldedTiles",
    what: "the row of the tiles with patches",
    encode: |unfolded, out| {
        Writer::new(out).u64(unfolded.last_commit);
        out.extend(unfolded.tiles.as_flattened());
    },
    decode: decode_unfolded,
};

fn decode_unfolded(payload: &[u8]) -> Result<Unfolded, DecodeError> {
    let mut reader = Reader::at_offset(payload, LEN_BYTES as u64, Section::Frame);
    let (last_commit, mut tiles) = (reader.u64("last commit")?, Vec::new());
    while reader.left_bytes() > 0 {
        tiles.push(reader.array("tile")?);
    }
    Ok(Unfolded { last_commit, tiles })
}

/// The tiles with patches of a world that is being opened. `None` if only a search can find them: the process before ended
/// without closing the world, or did not know them itself.
pub(crate) fn tiles_at_open(view: &MetaView, last_commit: CommitSeq) -> Option<Vec<TileKey>> {
    match UNFOLDED.get(view) {
        Ok(unfolded) => {
            let unfolded = unfolded.filter(|found| found.last_commit == last_commit.get())?;
            Some(unfolded.tiles)
        }
        Err(error) => {
            // The search finds the same, and closing writes the row anew.
            tracing::warn!(%error, "the opacity map is searched for patches");
            None
        }
    }
}

impl MaintainState {
    /// Writes which tiles have patches, if that is known, before the world is closed. The caller makes sure that no commit
    /// is made from here on, and that all are synced. A failure is logged: without the row the next process searches.
    pub(crate) fn keep_unfolded_tiles(&self) {
        let tiles = if self.shared.map.is_whole() { self.activity.dirty_tiles.lock().all() } else { None };
        if let Err(error) = self.write_unfolded(tiles) {
            tracing::warn!(%error, "the next process searches the opacity map for patches");
        }
    }

    fn write_unfolded(&self, tiles: Option<Vec<TileKey>>) -> Result<(), Error> {
        self.commit.check_room_to_shrink()?;
        // After a failure, the engine may hold commits that the record of tiles knows nothing of.
        self.commit.queue.check()?;
        let engine = self.shared.engine()?;
        let last_commit = engine.last_commit().get();
        let stored = UNFOLDED.get(&*engine);
        let mut batch = Batch::new();
        match tiles.map(|tiles| Unfolded { last_commit, tiles }) {
            Some(unfolded) if stored.as_ref().is_ok_and(|stored| stored.as_ref() == Some(&unfolded)) => {}
            Some(unfolded) => UNFOLDED.put(&mut batch, &unfolded),
            None if stored
                .is_ok_and(|stored| stored.is_none_or(|stored| stored.last_commit != last_commit)) => {}
            None => batch.delete(Space::WorldMeta, UNFOLDED.key),
        }
        if !batch.is_empty() {
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        Ok(())
    }
}
