//! Staging in an engine alone: whichever batch fails, the commit is there completely or not at all after recovery.

use super::*;
use crate::engine::{ALL_KEYS, CommitSeq, Fault, MemEngine, RowVisitor, Scan, Snapshot, Value};
use cg_format::{ChunkAt, ChunkPos, Dimension};
use expect_test::expect;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LIMIT_BYTES: u64 = 4096;

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0))
}

fn draft(fill: u8, len: usize) -> Draft {
    Draft::plain(Codec::None, 3, |out| out.extend(vec![fill; len]))
}

/// Many rows of all kinds. Rows of one group are not adjacent, so that they must be gathered.
fn rows() -> Batch {
    let mut batch = Batch::new();
    for x in 0..40 {
        batch.put(Space::ChunkL0, key::chunk(at(x)), draft(x as u8, 300), Stamp::Commit);
        batch.put(Space::Entity, [x as u8; 16], draft(x as u8, 50), Stamp::Keep(1));
    }
    batch.delete(Space::Object, b"gone");
    batch.delete_range(Space::WorldProperty, b"a", b"m");
    for x in 0..40 {
        batch.delete(Space::ChunkDelta, key::delta(at(x), 1));
        batch.put(Space::OpacityPatch, key::opacity_patch(at(x)), draft(1, 9), Stamp::Commit);
    }
    batch
}

/// The rows before the commit.
fn begun(engine: MemEngine) -> MemEngine {
    let mut batch = Batch::new();
    batch.put(Space::Object, b"gone", draft(1, 1), Stamp::Commit);
    for name in [b"b", b"l", b"m"] {
        batch.put(Space::WorldProperty, name, draft(1, 1), Stamp::Commit);
    }
    for x in 0..40 {
        batch.put(Space::ChunkDelta, key::delta(at(x), 1), draft(1, 1), Stamp::Commit);
        batch.put(Space::ChunkL0, key::chunk(at(x)), draft(0, 100), Stamp::Commit);
    }
    engine.commit(batch, &[], Level::Process).unwrap();
    engine
}

fn contents(view: &dyn Readable) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    for family in Family::ALL {
        view.scan(family, ALL_KEYS, |key, row| {
            found.push((family, key.to_vec(), row.to_vec()));
            ControlFlow::<()>::Continue(())
        })
        .unwrap();
    }
    found
}

fn write(engine: &dyn Engine) -> Result<(), EngineError> {
    let seq = engine.last_commit().next().get();
    let staged = Staged::stage(engine, rows(), seq, LIMIT_BYTES)?;
    staged.commit(engine)?;
    staged.roll_forward(engine)
}

fn reopened(engine: &dyn Engine) -> Box<dyn Engine> {
    let crate::engine::Reopened::Writable(engine) = engine.reopening()(&|_| Ok(true)).unwrap() else {
        panic!("writable")
    };
    engine
}

#[test]
fn what_is_staged_ends_as_what_is_written_at_once() {
    let (at_once, staged) = (begun(MemEngine::new()), begun(MemEngine::new()));
    at_once.commit(rows(), &[], Level::Process).unwrap();
    write(&staged).unwrap();
    assert!(contents(&at_once) == contents(&staged));
    assert_eq!(staged.last_commit(), CommitSeq::new(2));
    assert!(staged.batch_count() > 8, "it took parts");
}

#[test]
fn whichever_batch_fails_the_commit_is_there_wholly_or_not_at_all() {
    let (before, after) = (begun(MemEngine::new()), begun(MemEngine::new()));
    after.commit(rows(), &[], Level::Process).unwrap();
    let (before, after) = (contents(&before), contents(&after));
    let (mut seen_before, mut seen_after) = (0, 0);
    for nth in 1.. {
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let engine = begun(MemEngine::new().with_fault({
            let left = Arc::clone(&left);
            move |_| (left.fetch_sub(1, Ordering::Relaxed) == 1).then_some(Fault::Write)
        }));
        left.store(nth, Ordering::Relaxed);
        if write(&engine).is_ok() {
            break;
        }
        let engine = reopened(&engine);
        let is_committed = engine.last_commit() == CommitSeq::new(2);
        // Recovery is interrupted too, and finished then.
        left.store(2, Ordering::Relaxed);
        let _cut_off = Unfinished::find(&engine).unwrap().finish(&*engine);
        let engine = reopened(&*engine);
        Unfinished::find(&*engine).unwrap().finish(&*engine).unwrap();
        let found = contents(&engine);
        assert!(found == if is_committed { after.clone() } else { before.clone() }, "batch {nth}");
        *(if is_committed { &mut seen_after } else { &mut seen_before }) += 1;
    }
    assert!(seen_before > 4 && seen_after > 4, "{seen_before} and {seen_after}");
}

/// Every state between two batches, as a reader of one chunk sees it.
#[test]
fn nobody_ever_meets_half_a_chunk() {
    let engine = begun(MemEngine::new());
    let staged = Staged::stage(&engine, rows(), 2, LIMIT_BYTES).unwrap();
    staged.commit(&engine).unwrap();
    let mut states: Vec<Snapshot<'_>> = Vec::new();
    for number in 0..staged.intent.part_count {
        let mut batch = Batch::new();
        let read = staged.read_part(&engine, number, |_, part| {
            fill(&mut batch, part).unwrap();
            Ok(())
        });
        read.unwrap();
        assert!(batch.len_bytes() <= LIMIT_BYTES);
        engine.commit(batch.maintenance(), &[], Level::Process).unwrap();
        states.push(engine.snapshot().unwrap());
    }
    let mut half_way = 0;
    for state in &states {
        let is_new = |x| {
            let has = |space, key: &[u8]| state.get(space, key).unwrap();
            let is_new = has(Space::ChunkL0, &key::chunk(at(x))).unwrap().len() > 200;
            assert_eq!(has(Space::ChunkDelta, &key::delta(at(x), 1)).is_none(), is_new);
            assert_eq!(has(Space::OpacityPatch, &key::opacity_patch(at(x))).is_some(), is_new);
            is_new
        };
        let new = (0..40).filter(|x| is_new(*x)).count();
        half_way += usize::from((1..40).contains(&new));
    }
    assert!(half_way > 1, "the commit is in parts");
}

#[track_caller]
fn check_damage(engine: &MemEngine, expected: expect_test::Expect) {
    let before = contents(engine);
    let error = Unfinished::find(engine).unwrap_err();
    expected.assert_eq(&error.to_string());
    assert!(matches!(error, EngineError::Corrupt { .. }));
    assert!(contents(engine) == before);
}

#[test]
fn damage_behind_an_intent_is_named_and_parts_without_one_are_deleted() {
    let committed = || {
        let engine = begun(MemEngine::new());
        Staged::stage(&engine, rows(), 2, LIMIT_BYTES).unwrap().commit(&engine).unwrap();
        engine
    };
    let plant = |engine: &MemEngine, row_key: &[u8], draft: Option<Draft>| {
        let mut batch = Batch::new();
        match draft {
            Some(draft) => batch.put(Space::Intent, row_key, draft, Stamp::Commit),
            None => batch.delete(Space::Intent, row_key),
        }
        engine.commit(batch.maintenance(), &[], Level::Process).unwrap();
    };
    let engine = committed();
    plant(&engine, &key::staged(2, 3), None);
    check_damage(
        &engine,
        expect!["index row 04000000000000000200000003 is damaged: part 3 of 40 of commit 2 is missing"],
    );
    let engine = committed();
    plant(&engine, &key::staged(2, 3), Some(draft(9, 9)));
    check_damage(
        &engine,
        expect![
            "index row 04000000000000000200000003 is damaged: intent: part version is 9, and this release reads up to 1; use a newer release (at byte 0)"
        ],
    );
    let engine = committed();
    plant(&engine, &key::staged(2, 3), Some(Draft::plain(Codec::None, 0, |out| out.push(1))));
    check_damage(
        &engine,
        expect![
            "index row 040000000000000002 is damaged: it is of 40 parts of 23582 bytes with checksum 6f243a15, and there are 40 parts of 22994 bytes with checksum 5aaaf887"
        ],
    );
    let engine = committed();
    plant(&engine, &key::intent(2), Some(draft(9, 9)));
    check_damage(
        &engine,
        expect![
            "index row 040000000000000002 is damaged: intent: intent version is 9, and this release reads up to 1; use a newer release (at byte 0)"
        ],
    );

    let engine = begun(MemEngine::new());
    let before = contents(&engine);
    let _never_committed = Staged::stage(&engine, rows(), 2, LIMIT_BYTES).unwrap();
    let unfinished = Unfinished::find(&engine).unwrap();
    assert_eq!(unfinished.first_commit(), None);
    assert!(unfinished.parts.len() > 3);
    unfinished.finish(&engine).unwrap();
    assert!(contents(&engine) == before);
}

#[test]
fn who_commits_in_between_keeps_the_parts_from_counting() {
    let engine = begun(MemEngine::new());
    let staged = Staged::stage(&engine, rows(), 2, LIMIT_BYTES).unwrap();
    engine.commit(Batch::new(), &[], Level::Process).unwrap();
    let error = staged.commit(&engine).unwrap_err();
    assert!(matches!(error, EngineError::Conflict { expected: Some(1), found: Some(2), .. }), "{error}");
    assert_eq!(Unfinished::find(&engine).unwrap().first_commit(), None);
}

#[test]
fn what_belongs_together_must_fit_one_batch() {
    let mut batch = rows();
    batch.put(Space::ChunkDelta, key::delta(at(7), 2), draft(1, 500), Stamp::Commit);
    let limit = |limit_bytes: u64| check(&batch, limit_bytes + AROUND_A_PART_BYTES);
    // The chunk, the deleted delta, the new one, and the outline.
    let len_bytes = (32 + 24 + 300) + 40 + (40 + 24 + 500) + (33 + 24 + 9);
    let too_long = TooLong {
        space: Space::ChunkL0,
        key: key::chunk(at(7)).into(),
        len_bytes,
        limit_bytes: len_bytes - 1,
    };
    assert_eq!(limit(len_bytes), Ok(()));
    assert_eq!(limit(len_bytes - 1), Err(too_long));
}

/// An engine in which one row, and every range that contains it, cannot be read.
struct Hidden<'e>(&'e MemEngine, Vec<u8>);

impl Hidden<'_> {
    fn damage(&self) -> EngineError {
        damaged(&self.1, "a damaged block")
    }
}

impl Readable for Hidden<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        if key == self.1 { Err(self.damage()) } else { self.0.get(space, key) }
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        keys.iter().map(|(space, key)| self.get(*space, key)).collect()
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        use std::ops::RangeBounds as _;
        if scan.family == Family::Index && scan.range.contains(&self.1[..]) {
            return Err(self.damage());
        }
        self.0.scan_rows(scan, visit)
    }
}

/// It is unknown whether the newest commit must be rolled forward. So the world cannot be opened, and salvage must
/// help.
#[test]
fn an_intent_that_nobody_can_ask_for_is_set_aside() {
    let engine = begun(MemEngine::new());
    let before = contents(&engine);
    let newest = engine.last_commit().get();
    let hidden = Hidden(&engine, key::intent(newest).to_vec());
    assert!(matches!(Unfinished::find(&hidden), Err(EngineError::Corrupt { .. })));
    let salvage = salvage::Salvage::find(&hidden, newest).unwrap();
    let lost: Vec<_> = salvage.lost().map(|(seq, row)| (seq, row.key.clone())).collect();
    assert_eq!((lost, salvage.sound_parts()), (vec![(newest, key::intent(newest).to_vec())], 0));
    salvage.roll_forward(&engine).unwrap();
    let copy = key::quarantine(Space::Intent, &key::intent(newest), newest);
    assert!(engine.get(Space::Quarantine, &copy).unwrap().is_some());
    assert_eq!(contents(&engine).len(), before.len() + 1, "and nothing else was written");
}
