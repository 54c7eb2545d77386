//! Salvage of a staged commit that is committed and whose intent or parts are damaged.
//!
//! Its sound parts are rolled forward, the damaged ones are copied to quarantine, and then intent and parts are
//! deleted. The writes of a damaged part are lost: those rows stay as they were before the commit.
//!
//! **Invariant**: nothing is deleted that was not rolled forward or copied before. An interrupted salvage is repeated
//! from its beginning, and the copies have the same keys as before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};

use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::key::{self, Family};
use cg_format::{Problem, Space};

use super::{Intent, damaged, fill};
use crate::engine::{Batch, Engine, EngineError, Level, Met, Place, Readable, scan_skipping_damage};

/// A row of a staged commit that cannot be rolled forward as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostRow {
    /// The key of the intent or of a part.
    pub(crate) key: Vec<u8>,
    /// The fault of the row.
    pub(crate) what: String,
    /// Empty if the engine cannot read the bytes, or if the row is missing.
    bytes: Vec<u8>,
}

/// The remaining rows of one commit.
#[derive(Debug, Default)]
struct Remains {
    sound: Vec<u32>,
    lost: Vec<LostRow>,
}

/// The remaining rows of commits that are committed, not completely rolled forward, and damaged.
#[derive(Debug, Default)]
pub(crate) struct Salvage(BTreeMap<u64, Remains>);

impl Salvage {
    /// Finds the damaged commits. Commits without damage are ignored.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for rows of a newer release, which are not damaged; errors of the engine other than
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
            // The intent may be in the unreadable gap only if it is of the newest commit.
            commits.entry(newest).or_default();
        }
        let mut found = Self::default();
        for (seq, (has_intent, mut parts)) in commits {
            let row_key = key::intent(seq);
            let mut remains = Remains::default();
            let mut intent = None;
            match read(view, &row_key, Intent::decode)? {
                Ok(Some(found)) => {
                    // Other parts were left by an interrupted commit with the same number, which was never committed.
                    parts = (0..found.part_count).collect();
                    intent = Some(found);
                }
                // Parts that were never committed, or a gap that contains no staged commit.
                Ok(None) if !has_intent => continue,
                Ok(None) => remains.lost.push(missing(&row_key)),
                // A commit without a readable intent is committed only if it is the newest, because no commit follows
                // it. If none of its parts can be read either, there may be no such commit. But the world cannot be
                // opened while its intent is unreadable.
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

    /// The lost rows, with the number of their commit; empty if nothing is damaged.
    pub(crate) fn lost(&self) -> impl Iterator<Item = (u64, &LostRow)> {
        self.0.iter().flat_map(|(seq, remains)| remains.lost.iter().map(|lost| (*seq, lost)))
    }

    /// The number of parts that are rolled forward.
    pub(crate) fn sound_parts(&self) -> u64 {
        self.0.values().map(|remains| remains.sound.len() as u64).sum()
    }

    /// Copies the damaged rows, rolls forward the sound parts, and deletes both. May be repeated after a failure.
    ///
    /// # Errors
    /// The errors of the engine.
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

/// Reads and decodes a row; `None` if there is none.
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
                // The row is sound, and only a newer release can use it.
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
