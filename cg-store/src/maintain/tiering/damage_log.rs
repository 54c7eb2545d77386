//! Damage that maintenance found: each is reported once, even if several ticks find it.

use std::collections::HashSet;

use crate::engine::{EngineError, Gaps, Place};
use crate::storage::error::Error;

/// The maximum number of remembered reports. Above it, everything may be reported once more.
const REMEMBERED: usize = 1 << 12;

/// Damage that blocks maintenance in one place. The rest continues.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamageReport {
    /// Where, as exactly as is known.
    pub place: Place,
    /// The fault, with the message of the error that a load returns.
    pub message: String,
}

/// Reported damage, damage for the next tick to report, and the known unreadable gaps.
#[derive(Debug, Default)]
pub(crate) struct DamageLog {
    known: HashSet<String>,
    new: Vec<DamageReport>,
    pub(super) gaps: Gaps,
}

impl DamageLog {
    /// Records damage that blocks maintenance, unless it was reported before.
    pub(crate) fn report(&mut self, error: &Error) {
        let message = error.to_string();
        if self.known.contains(&message) {
            return;
        }
        tracing::warn!(%error, "damage keeps something as it is");
        if self.known.len() >= REMEMBERED {
            self.known.clear();
            self.new.clear();
        }
        let place = match error {
            Error::Corrupt(damage) => {
                Place::Row { family: damage.space.family(), key: damage.key.as_slice().into() }
            }
            Error::Engine(EngineError::Corrupt { place, .. }) => place.clone(),
            _ => Place::Unknown,
        };
        self.known.insert(message.clone());
        self.new.push(DamageReport { place, message });
    }

    /// Forgets the known unreadable gaps, so that they are read again.
    pub(crate) fn forget_gaps(&mut self) {
        self.gaps = Gaps::default();
    }

    /// Takes the damage that was found since the last call.
    pub(crate) fn take(&mut self) -> Vec<DamageReport> {
        std::mem::take(&mut self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::key::Family;

    #[test]
    fn each_damage_is_told_once() {
        let mut damage_log = DamageLog::default();
        let at = |key: usize| -> Error {
            let key = format!("{key:04}").into_bytes().into();
            let place = Place::Row { family: Family::ChunkL0, key };
            EngineError::Corrupt { place, message: "bad".into() }.into()
        };
        damage_log.report(&at(1));
        damage_log.report(&at(2));
        damage_log.report(&at(1));
        let places: Vec<_> = damage_log.take().into_iter().map(|met| met.place.to_string()).collect();
        assert_eq!(places, ["chunkl0 row 30303031", "chunkl0 row 30303032"]);
        damage_log.report(&at(2));
        assert_eq!(damage_log.take(), []);
        for key in 3..2 * REMEMBERED {
            damage_log.report(&at(key));
        }
        assert!(damage_log.take().len() <= REMEMBERED && damage_log.known.len() <= REMEMBERED);
        damage_log.report(&Error::Closed);
        assert_eq!(damage_log.take()[0].place, Place::Unknown);
    }
}
