//! The world's clock: stored beside heat, and set by an explicit call if it is wrong.

use std::time::Duration;

use cg_format::frame::{self, Codec, Draft, FrameView, Stamp};
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Section, Space};
use cg_tiering::GameTick;

use super::{Due, MoveCounts, Work};
use crate::engine::{Batch, Level, Readable};
use crate::maintain::state::MaintainState;
use crate::storage::error::{Damage, Error};

/// The row that holds the world's clock, a `u64`, as maintenance last wrote it.
const CLOCK_KEY: &[u8] = b"gameClock";

/// Adds the clock to a batch.
pub(super) fn put_clock(batch: &mut Batch, now: GameTick) {
    let row = Draft::plain(Codec::None, 0, |out| Writer::new(out).u64(now.get()));
    batch.put(Space::WorldMeta, CLOCK_KEY, row, Stamp::Commit);
}

/// The clock as it was last written; 0 in a world that never ticked.
pub(crate) fn read_clock(view: &dyn Readable) -> Result<GameTick, Error> {
    let Some(row) = view.get(Space::WorldMeta, CLOCK_KEY)? else { return Ok(GameTick::default()) };
    let ticks =
        FrameView::open(Space::WorldMeta, CLOCK_KEY, &row).and_then(|frame| decode_clock(frame.payload()));
    let damage = |problem| Damage::of_row(Space::WorldMeta, CLOCK_KEY, "the world's clock", problem);
    ticks.map(GameTick::new).map_err(damage)
}

fn decode_clock(payload: &[u8]) -> Result<u64, DecodeError> {
    let mut reader = Reader::at_offset(payload, frame::LEN_BYTES as u64, Section::Frame);
    let ticks = reader.u64("game clock")?;
    reader.end("bytes after the clock")?;
    Ok(ticks)
}

impl MaintainState {
    /// See [`Tiers::set_clock`](crate::tiers::Tiers::set_clock).
    pub(crate) fn set_clock(&self, to: GameTick) -> Result<(), Error> {
        self.shared.check_open()?;
        self.maintenance.set_clock(to, |work| {
            self.end_moves(work)?;
            let mut batch = Batch::new();
            put_clock(&mut batch, to);
            self.shared.engine()?.commit(batch.maintenance(), &[], Level::Power)?;
            self.activity.tiering.restart(to);
            work.know_nothing();
            Ok(())
        })?;
        // Prefetch follows no player from here on.
        self.prefetch(&[], to, Duration::ZERO);
        Ok(())
    }

    /// Drops the plan, and waits for the moves in progress.
    fn end_moves(&self, work: &mut Work) -> Result<(), Error> {
        work.know_nothing();
        let due = Due::until(self.activity.tiering.now(), None);
        self.work(work, due, &mut MoveCounts::default())?;
        work.skipped_low_disk = None;
        Ok(())
    }
}
