//! What can still be had of a commit that counts and whose intent or parts are damaged.
//!
//! Its sound parts are rolled forward, the damaged ones are copied into the quarantine, and then intent and parts are
//! deleted. What a damaged part would have written is lost: those rows stay as they were before the commit.
//!
//! **Invariant**: nothing is deleted that was not rolled forward or copied before. Cut off anywhere, it is done again from
//! its beginning, and the copies have the same keys as before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::key::{self, Family};
use cg_format::{Problem, Space};

use super::{Intent, damaged, fill};
use crate::engine::{Batch, Engine, EngineError, Level, Place, Readable};
use crate::engine::{Met, scan_skipping_damage};

/// A row of a commit that cannot be rolled forward as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostRow {
    /// Of the intent or of a part.
    pub(crate) key: Vec<u8>,
    /// What is wrong with it.
    pub(crate) what: String,
    /// Empty if the engine cannot read them, or if there is no such row.
    bytes: Vec<u8>,
}

/// What is there of one commit.
#[derive(Debug, Default)]
struct Remains {
    sound: Vec<u32>,
    lost: Vec<LostRow>,
}

/// What is there of commits that count, are not rolled forward to their end, and are damaged.
#[derive(Debug, Default)]
pub(crate) struct Salvage(BTreeMap<u64, Remains>);

impl Salvage {
    /// Looks for what is damaged. Commits of which nothing is damaged are none of its business.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for what a newer release wrote, which is no damage; what the engine says, unless that is
    /// damage.
    pub(crate) fn find(view: &dyn Readable, newest: u64) -> Result<Self, EngineError> {
        let mut commits = BTreeMap::<u64, (bool, BTreeSet<u32>)>::new();
        let tag = Space::Intent.index_tag().expect("it is in the index family");
        let (from, to) = ([tag], [tag + 1]);
        let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let mut has_gap = false;
        scan_skipping_damage(view, Family::Index, range, |met| {
            match met {
                Met::Row(row_key, _) => {
                    if let Ok(seq) = key::decode_intent(row_key) {
                        commits.entry(seq).or_default().0 = true;
                    } else if let Ok((seq, part)) = key::decode_staged(row_key) {
                        commits.entry(seq).or_default().1.insert(part);
                    }
                }
                Met::Gap { .. } => has_gap = true,
            }
            ControlFlow::<()>::Continue(())
        })?;
        if has_gap {
            // Its intent may lie where nobody can read; that of any other commit is gone.
            commits.entry(newest).or_default();
        }
        let mut found = Self::default();
        for (seq, (has_intent, mut parts)) in commits {
            let row_key = key::intent(seq);
            let mut remains = Remains::default();
            let mut intent = None;
            match read(view, &row_key, Intent::decode)? {
                Ok(Some(found)) => {
                    // Others were left by a commit that was cut off under the same number, and never counted.
                    parts = (0..found.part_count).collect();
                    intent = Some(found);
                }
                // Parts that never counted, or a gap with nothing of this kind in it.
                Ok(None) if !has_intent => continue,
                Ok(None) => remains.lost.push(missing(&row_key)),
                // Without its intent a commit counts if it is the newest: nobody commits after it. Where none of its parts
                // can be read there may be none, but the world stays closed for as long as nobody can ask for the intent.
                Err(_) if !has_intent && seq != newest => continue,
                Err(lost) => remains.lost.push(lost),
            }
            if let Some(last) = parts.last() {
                parts.extend(0..*last);
            }
            let mut sum = Intent::default();
            for part in parts {
                let row_key = key::staged(seq, part);
                let read = read(view, &row_key, |payload| {
                    sum.add(payload);
                    fill(&mut Batch::new(), payload)
                })?;
                match read {
                    Ok(Some(())) => remains.sound.push(part),
                    Ok(None) => remains.lost.push(missing(&row_key)),
                    Err(lost) => remains.lost.push(lost),
                }
            }
            if remains.lost.is_empty() && intent.is_some_and(|intent| intent != sum) {
                let what = "its parts are sound and not those that it sums".to_owned();
                let row = view.get(Space::Intent, &row_key)?;
                let bytes = row.map_or_else(Vec::new, |row| row.to_vec());
                remains.lost.push(LostRow { key: row_key.to_vec(), what, bytes });
            }
            if !remains.lost.is_empty() {
                found.0.insert(seq, remains);
            }
        }
        Ok(found)
    }

    /// What is lost, by the number of its commit; empty if nothing is damaged.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (u64, &LostRow)> {
        self.0.iter().flat_map(|(seq, remains)| remains.lost.iter().map(|lost| (*seq, lost)))
    }

    /// How many parts are rolled forward.
    pub(crate) fn sound_parts(&self) -> u64 {
        self.0.values().map(|remains| remains.sound.len() as u64).sum()
    }

    /// Copies what is damaged, rolls forward what is sound, and deletes both. May be done again after it failed.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) fn roll_forward(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        for (seq, Remains { sound, lost }) in &self.0 {
            for LostRow { key: row, bytes, .. } in lost {
                let mut batch = Batch::new();
                let copy = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(bytes));
                let copy_key = key::quarantine(Space::Intent, row, *seq);
                batch.put(Space::Quarantine, copy_key, copy, Stamp::Keep(*seq));
                engine.commit(batch.maintenance(), &[], Level::Process)?;
            }
            for part in sound {
                let row_key = key::staged(*seq, *part);
                let mut batch = Batch::new();
                let filled = read(engine, &row_key, |payload| fill(&mut batch, payload))?;
                match filled {
                    Ok(Some(())) => engine.commit(batch.maintenance(), &[], Level::Process)?,
                    Ok(None) => return Err(damaged(&row_key, "it was there a moment ago")),
                    Err(lost) => return Err(damaged(&row_key, &lost.what)),
                };
            }
            let mut batch = Batch::new();
            batch.delete(Space::Intent, key::intent(*seq));
            for part in sound {
                batch.delete(Space::Intent, key::staged(*seq, *part));
            }
            for lost in lost {
                batch.delete(Space::Intent, lost.key.as_slice());
            }
            engine.commit(batch.maintenance(), &[], Level::Power)?;
            tracing::warn!(
                commit = seq,
                rolled_forward = sound.len(),
                lost = lost.len(),
                "quarantined damage"
            );
        }
        Ok(())
    }
}

/// Reads a row and what is in it: `None` if there is none.
fn read<T>(
    view: &dyn Readable,
    row_key: &[u8],
    decode: impl FnOnce(&[u8]) -> Result<T, cg_format::DecodeError>,
) -> Result<Result<Option<T>, LostRow>, EngineError> {
    let lost = |what: String, bytes: &[u8]| LostRow { key: row_key.to_vec(), what, bytes: bytes.to_vec() };
    match view.get(Space::Intent, row_key) {
        Ok(None) => Ok(Ok(None)),
        Ok(Some(row)) => {
            let decoded = FrameView::open(Space::Intent, row_key, &row)
                .map_err(|problem| (problem, false))
                .and_then(|frame| decode(frame.payload()).map_err(|problem| (problem, true)));
            match decoded {
                Ok(decoded) => Ok(Ok(Some(decoded))),
                // Sound, and not for this release to give up.
                Err((problem, true)) if matches!(problem.problem, Problem::Newer { .. }) => {
                    Err(damaged(row_key, &problem.to_string()))
                }
                Err((problem, _)) => Ok(Err(lost(problem.to_string(), &row))),
            }
        }
        Err(EngineError::Corrupt { place: Place::Row { .. }, message }) => Ok(Err(lost(message, &[]))),
        Err(error @ EngineError::Corrupt { .. }) => Ok(Err(lost(error.to_string(), &[]))),
        Err(error) => Err(error),
    }
}

fn missing(row_key: &[u8]) -> LostRow {
    LostRow { key: row_key.to_vec(), what: "it is missing".to_owned(), bytes: Vec::new() }
}
