//! A writer of rows, and what a world has to hold after its commits.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use cg_engine::{
    ALL_KEYS, Batch, Engine as _, Family, Guard, Level, Readable as _, ReadableExt as _, Space, Stamp,
};
use cg_format::frame::{Codec, Draft, FrameView};
use cg_postgres::PostgresEngine;

use crate::database::TestWorld;

/// The newest batches that have a row of their own. Each batch deletes that of an older one.
const KEPT: u64 = 64;
/// The bytes of a row of a batch that is sent in parts.
const LARGE_BYTES: usize = 5 << 19;

/// A writer, and the number of its batches and commits. All of them were acknowledged.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) world: TestWorld,
    pub(crate) engine: PostgresEngine,
    pub(crate) batches: u64,
    pub(crate) commits: u64,
    /// The longest call since it was last taken.
    pub(crate) longest: Duration,
    /// One batch in this many is sent in parts.
    large: u64,
}

impl Writer {
    pub(crate) fn new(world: TestWorld, engine: PostgresEngine, large: u64) -> Self {
        Self { world, engine, batches: 0, commits: 0, longest: Duration::ZERO, large }
    }

    /// Writes one batch, or a run of three.
    pub(crate) fn step(&mut self) {
        let number = self.batches + 1;
        let (batches, commits) = match number % 10 {
            3 => (3, 3),
            7 => (1, 0),
            _ => (1, 1),
        };
        let began = Instant::now();
        let written = match number % 10 {
            3 => {
                let run = (number..number + batches).map(|number| batch(number, self.large)).collect();
                self.engine.commit_run(self.engine.last_commit().next(), run, Level::Power)
            }
            7 => self.engine.commit(batch(number, self.large).maintenance(), &[], Level::Power),
            _ => {
                // A batch that were applied twice would meet its own row.
                let absent = Guard::absent(Space::Object, own_key(number));
                self.engine.commit(batch(number, self.large), &[absent], Level::Power)
            }
        };
        self.longest = self.longest.max(began.elapsed());
        let seq = written.unwrap_or_else(|error| panic!("batch {number}: {error}"));
        (self.batches, self.commits) = (self.batches + batches, self.commits + commits);
        assert_eq!(seq.get(), self.commits, "batch {number}");
    }

    /// Checks that the world holds every batch once and whole.
    pub(crate) fn check(&self) {
        self.check_rows(&self.engine);
        let head = self.world.run("SELECT seq || ' ' || batches FROM {schema}.cg_head");
        assert_eq!(head, Some(format!("{} {}", self.commits, self.batches)));
    }

    /// Checks the rows of an engine over the same world.
    pub(crate) fn check_rows(&self, engine: &PostgresEngine) {
        let mut found = BTreeMap::new();
        let visit = |key: &[u8], row: &[u8]| {
            let payload = FrameView::open(Space::Object, key, row).expect("is sealed").payload().to_vec();
            let number = payload[..8].try_into().expect("eight bytes");
            assert!(payload.chunks(8).all(|part| part == number), "{}", key.escape_ascii());
            found.insert(key.to_vec(), (u64::from_le_bytes(number), payload.len()));
            ControlFlow::<()>::Continue(())
        };
        assert_eq!(engine.scan(Family::Object, ALL_KEYS, visit).expect("scans"), None);
        let model = model(self.batches, self.large);
        let differs = |key: &&Vec<u8>| found.get(*key) != model.get(*key);
        let differing = found.keys().chain(model.keys()).find(differs);
        let differing = differing.map(|key| (key.escape_ascii().to_string(), found.get(key), model.get(key)));
        assert_eq!(differing, None, "a row, its batch and bytes as stored and as acknowledged");
        assert_eq!(engine.last_commit().get(), self.commits);
    }
}

/// Checks that a reader beside the writer sees whole batches.
pub(crate) fn check_whole(engine: &PostgresEngine) {
    let keys = [(Space::Object, &b"first"[..]), (Space::Object, b"last")];
    let [first, last] = &engine.get_many(&keys)[..] else { panic!("two answers") };
    let number = |row: &Option<cg_engine::Value<'_>>, key| {
        let row = row.as_ref()?;
        Some(FrameView::open(Space::Object, key, row).expect("is sealed").payload().to_vec())
    };
    let [first, last] = [(first, b"first" as &[u8]), (last, b"last")]
        .map(|(row, key)| number(row.as_ref().expect("reads go on"), key));
    assert_eq!(first, last, "a batch is torn");
}

/// The key of the row that only one batch writes.
fn own_key(number: u64) -> Vec<u8> {
    format!("of {number}").into_bytes()
}

/// The keys that a batch writes and the sizes of their rows.
fn puts(number: u64, large: u64) -> Vec<(Vec<u8>, usize)> {
    let ring = format!("ring {}", number % 7).into_bytes();
    let mut puts = vec![(b"first".to_vec(), 8), (own_key(number), 8), (ring, 800), (b"last".to_vec(), 8)];
    if number % large == large - 1 {
        puts.extend((0..3).map(|n| (format!("large {n}").into_bytes(), LARGE_BYTES)));
    }
    puts
}

/// The key that a batch deletes.
fn deleted(number: u64) -> Option<Vec<u8>> {
    number.checked_sub(KEPT).map(own_key)
}

/// A batch that writes its number to every row of it.
fn batch(number: u64, large: u64) -> Batch {
    let mut batch = Batch::new();
    for (key, len_bytes) in puts(number, large) {
        let payload = number.to_le_bytes().repeat(len_bytes / 8);
        let draft = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(&payload));
        batch.put(Space::Object, key, draft, Stamp::Commit);
    }
    if let Some(key) = deleted(number) {
        batch.delete(Space::Object, key);
    }
    batch
}

/// The batch that wrote each row last, and its bytes, after a number of batches.
fn model(batches: u64, large: u64) -> BTreeMap<Vec<u8>, (u64, usize)> {
    let mut rows = BTreeMap::new();
    let newest_large = (batches + 1) / large * large;
    let begin = batches.saturating_sub(2 * KEPT).min(newest_large.saturating_sub(1)).max(1);
    for number in begin..=batches {
        rows.extend(puts(number, large).into_iter().map(|(key, len_bytes)| (key, (number, len_bytes))));
        deleted(number).map(|key| rows.remove(&key));
    }
    rows
}
