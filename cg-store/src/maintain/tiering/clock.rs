//! The world's clock: stored beside heat, and set by an explicit call if it is wrong.

use std::time::Duration;

use cg_format::wire::Writer;
use cg_tiering::GameTick;

use super::{Due, MoveCounts, Work};
use crate::engine::{Batch, Level};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;
use crate::storage::meta::decode_u64;
use crate::storage::row::MetaRow;

/// The world's clock, a `u64`, as maintenance last wrote it.
pub(crate) const CLOCK: MetaRow<GameTick> = MetaRow {
    key: "gameClock",
    what: "the world's clock",
    encode: |now, out| Writer::new(out).u64(now.get()),
    decode: |payload| decode_u64(payload, "game clock", "bytes after the clock").map(GameTick::new),
};

impl MaintainState {
    /// See [`Tiers::set_clock`](crate::tiers::Tiers::set_clock).
    pub(crate) fn set_clock(&self, to: GameTick) -> Result<(), Error> {
        self.shared.check_open()?;
        self.maintenance.set_clock(to, |work| {
            self.end_moves(work)?;
            let mut batch = Batch::new();
            CLOCK.put(&mut batch, &to);
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
