//! What the handle of a host and its thread share.

use std::sync::Arc;
use std::time::Duration;

use cg_store::World;
use cg_store::engine::EngineError;
use cg_store::prelude::Durability;
use parking_lot::{Condvar, Mutex};

use super::batch::Batch;
use super::damage::Verdicts;
use super::seen::Seen;
use super::writes::{SavedColumn, Write, Writes};
use crate::codec::OnDamage;
use crate::error::Error;

/// How a host uses a world.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The game whose names the host uses: `java`, `bedrock` or a word of the host. A world is of one game. `None`: any.
    pub game: Option<String>,
    /// How long submitted columns are collected for one commit, from the first of them on. Default 50 ms. Columns that follow
    /// each other within a tenth of this time stay in one commit for as long again.
    pub group: Duration,
    /// Memory for what was submitted and is not committed. Default 256 MiB. While the world takes no commits, what does not fit
    /// is refused; otherwise it waits.
    pub held_bytes: usize,
    /// What a load does if a chunk is damaged.
    pub on_damage: OnDamage,
    /// The durability that the world was opened with: at the safe levels a submitted column is saved at once.
    pub durability: Durability,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            game: None,
            group: Duration::from_millis(50),
            held_bytes: 256 << 20,
            on_damage: OnDamage::Refuse,
            durability: Durability::Balanced,
        }
    }
}

/// What submitted columns are doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMetrics {
    /// Columns and lists of writes that are accepted and not committed.
    pub pending: u64,
    /// Their memory.
    pub pending_bytes: u64,
    /// The same, of those that the world refused to take for now.
    pub held: u64,
    /// Saves that equal what was stored.
    pub unchanged: u64,
    /// Groups that were committed.
    pub groups: u64,
    /// Lists that the world refused for good after they were accepted. Each is in the log.
    pub refused: u64,
}

/// What the thread of groups shares with the handle.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) world: World,
    pub(super) options: HostOptions,
    /// Serialises commits of groups, so that they are in the order of acceptance.
    pub(super) committing: Mutex<()>,
    pub(super) state: Mutex<State>,
    /// Wakes the thread of groups.
    pub(super) wake: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// What is collected.
    pub(super) open: Batch,
    /// What is committed now, or is held because the world refused it for now.
    pub(super) taken: Option<Arc<Batch>>,
    /// Why the last commit of a group failed, if the world may take it later.
    pub(super) held: Option<Arc<Error>>,
    pub(super) seen: Seen,
    pub(super) verdicts: Verdicts,
    /// The first failure of something that was accepted and is refused for good, until a flush reports it.
    pub(super) refused: Option<Error>,
    pub(super) is_closed: bool,
    pub(super) metrics: HostMetrics,
}

impl State {
    /// Takes note of columns that were accepted when there were `epoch` saves, so that the next save of each is compared with
    /// them.
    pub(super) fn note(&mut self, writes: &Writes, epoch: u64) {
        for write in &writes.all {
            if let Write::Column(saved) = write {
                let SavedColumn { column, is_part, digest, .. } = &**saved;
                // A column that was submitted while this one was committed comes after it.
                let is_newest = !self.seen.is_saved_since(&column.at, epoch);
                self.seen.saved(column, is_newest.then_some(*digest), *is_part);
                self.verdicts.forget(&column.at);
            }
            if let Write::Entity(id, _) = write {
                self.seen.moved(*id);
            }
        }
        if writes.is_raw() {
            self.seen.forget_content();
            self.verdicts.clear();
        }
    }

    /// Refuses calls after the world was closed.
    pub(super) const fn check_open(&self) -> Result<(), Error> {
        if self.is_closed { Err(Error::Closed("the world")) } else { Ok(()) }
    }

    /// The memory of what waits.
    pub(super) fn pending_bytes(&self) -> usize {
        self.open.memory_bytes() + self.taken.as_ref().map_or(0, |batch| batch.memory_bytes())
    }

    /// Forgets the content of the columns of a list that failed. The host was shown what it was shown before.
    pub(super) fn forget(&mut self, writes: &Writes) {
        for saved in writes.columns() {
            self.seen.refused(&saved.column.at, &saved.shown);
        }
        if writes.is_raw() {
            self.seen.forget_content();
        }
    }

    /// The verdict on a column of a list that is known to be damaged: it would be refused when it is committed.
    pub(super) fn verdict(&self, writes: &Writes) -> Option<Error> {
        writes.columns().find_map(|saved| self.verdicts.find(&saved.column.at))
    }

    /// Adds to the columns of a list what the host was shown of each until now.
    pub(super) fn recall(&self, writes: &mut Writes) {
        for write in &mut writes.all {
            // Nothing else has the column yet.
            if let Write::Column(saved) = write
                && let Some(saved) = Arc::get_mut(saved)
            {
                saved.shown = self.seen.shown(&saved.column.at);
            }
        }
    }
}

impl Inner {
    /// Refuses a world that is open for reading.
    pub(super) fn check_writable(&self) -> Result<(), Error> {
        if self.world.engine().caps().read_only {
            return Err(cg_store::Error::from(EngineError::OpenedReadOnly).into());
        }
        Ok(())
    }

    /// Waits until all that is committed is as durable as a commit was asked to be, which had nothing to write.
    pub(super) fn reach(&self, durability: Option<Durability>) -> Result<(), Error> {
        let durability = durability.unwrap_or(self.options.durability);
        let metrics = self.world.metrics();
        let reached = match durability {
            Durability::Fast | Durability::Balanced => return Ok(()),
            Durability::Process => metrics.last_written,
            Durability::Safe | Durability::SafeBatch => metrics.last_synced,
        };
        if reached < metrics.last_commit { Ok(self.world.flush()?) } else { Ok(()) }
    }
}
