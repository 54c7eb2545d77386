//! Finishes transfers that failed or that a crash interrupted.

use cg_store::Error;

use super::error::lost_segment;
use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::rows::{transfer_property, whole};
use super::transfer::{Transfer, decode};
use super::transfers::{NotTransferred, Transfers};

impl<H: SegmentHome> Transfers<H> {
    /// As [`resolve`](Self::resolve), but succeeds if only the loss of the segment that is about to
    /// be deleted prevents it.
    pub(super) fn resolve_except(&self, deleted: SegmentPos) -> Result<(), Error> {
        match self.resolve() {
            Err(error) if lost_segment(&error) == Some(deleted) => Ok(()),
            resolved => resolved,
        }
    }

    /// Finishes the transfer that failed before, if one did. The caller keeps others from transferring entities.
    pub(super) fn resolve(&self) -> Result<(), Error> {
        if self.borders().is_unfinished() {
            let _others_wait = self.borders().close();
            self.finish()?;
        }
        Ok(())
    }

    /// Finishes the transfer that failed before, if that is possible at once. If it fails, entities in transit are
    /// refused.
    pub(super) fn try_to_resolve(&self) {
        // Does not wait: a transfer may wait for a segment that this thread keeps open.
        if self.borders().is_unfinished()
            && let Some(_alone) = self.borders().moving().try_lock()
            && let Err(error) = self.resolve()
        {
            tracing::warn!(%error, "a crossing of a border is still not finished");
        }
    }

    /// Finishes a transfer that a crash interrupted. If a segment of it is lost, the world is opened nevertheless:
    /// otherwise the segment could not be deleted.
    pub(super) fn finish_at_open(&self) -> Result<(), Error> {
        match self.finish() {
            Err(error) if lost_segment(&error).is_some() => {
                tracing::warn!(%error, "a crossing of a border is not finished");
                self.borders().set_unfinished(true);
                Ok(())
            }
            finished => {
                for Transfer { id, .. } in &*self.borders().stuck() {
                    tracing::warn!(%id, "an entity cannot cross a border because of damage; quarantine it");
                }
                finished
            }
        }
    }

    /// As [`leave`](Self::leave), for one entity after the other. Returns those that damage keeps where they are.
    fn leave_if_sound(&self, transfers: Vec<Transfer>) -> Result<Vec<Transfer>, Error> {
        let mut stuck = Vec::new();
        for transfer in transfers {
            match self.leave(std::slice::from_ref(&transfer), self.root().level()) {
                Err(Error::Corrupt(_)) => stuck.push(transfer),
                left => left?,
            }
        }
        Ok(stuck)
    }

    /// Finishes the transfer that failed before, and what is left of departures of records. The caller keeps others out.
    pub(super) fn finish(&self) -> Result<(), Error> {
        let departs = self.finish_departures()?;
        let Some(bytes) = self.root().world().property(&transfer_property()?)? else {
            self.borders().stuck().clear();
            self.borders().set_unfinished(departs);
            return Ok(());
        };
        let transfers = whole("crossing", &bytes, decode)?;
        let (count, all) = (transfers.len(), transfers.clone());
        let (mut arrived, mut missing, mut stuck) = (Vec::new(), Vec::new(), Vec::new());
        for transfer in transfers {
            match self.borders().is_where(&transfer) {
                // An entity that stays in its segment is put again: nothing was committed after the transfer.
                Ok([true, true]) if self.root().segment_of(transfer.to) != transfer.from => {
                    arrived.push(transfer);
                }
                Ok([true, _]) => missing.push(transfer),
                Ok([false, _]) => {}
                Err(Error::Corrupt(_)) => stuck.push(transfer),
                Err(error) => return Err(error),
            }
        }
        stuck.extend(self.leave_if_sound(arrived)?);
        let refused = match self.arrive(&missing, self.root().level()) {
            Ok(()) => {
                stuck.extend(self.leave_if_sound(missing.clone())?);
                false
            }
            Err(NotTransferred::Broken(error)) => return Err(error),
            // Refused now as before the crash.
            Err(NotTransferred::Refused(_)) => true,
        };
        let (is_stuck, are_fewer) = (!stuck.is_empty(), stuck.len() < count);
        *self.borders().stuck() = stuck;
        if refused {
            self.give_up(&missing, self.root().level())?;
        } else if are_fewer {
            self.end(&all, self.root().level())?;
        }
        self.borders().set_unfinished(is_stuck || departs);
        Ok(())
    }
}
