//! Sync: a cache of 10,000 chunks that is brought up to date while little of them changes.
//!
//! | group | what is allowed |
//! |---|---|
//! | by area | 1.5 × a cache of 1,000 chunks in which the same 100 changed; where nothing changed, and where those that did lie apart, is stated |
//! | by position | stated: each of the 10,000 is asked about with its version |
//!
//! An iteration is all that is said until the cache has everything, as bytes: requests, answers over a synced world on
//! disk, and the transactions of the cache, which lies in memory.
#![allow(missing_docs, reason = "criterion's macros make public items")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_bench::world::{Generator, Scene};
use cg_format::{BlockId, Chunk, ChunkAt, ChunkBox, ChunkPos, LocalPos};
use cg_registry::ListKind;
use cg_store::{Error, World, WorldOptions};
use cg_sync::{SyncClient, SyncLimits, SyncOutcome, SyncReply, SyncRequest, SyncServer, SyncServerLimits};
use criterion::{Criterion, criterion_group, criterion_main};

const SEED: u64 = 7;
/// Chunks of one transaction while the server's world is made.
const AT_ONCE: usize = 1000;
/// The sides of the boxes.
const LARGE: [i64; 3] = [25, 16, 25];
const SMALL: [i64; 3] = [10, 10, 10];
/// How many chunks change between two requests.
const CHANGED: usize = 100;

fn options() -> WorldOptions {
    WorldOptions { cache_bytes: 256 << 20, min_free_bytes: Some(0), ..WorldOptions::process() }
}

/// A server, and a cache of a box of it.
struct Pair {
    server: World,
    client: SyncClient,
    generator: Generator,
    area: ChunkBox,
    places: Vec<ChunkAt>,
    turn: u64,
}

impl Pair {
    fn new(dir: &std::path::Path, sides: [i64; 3]) -> Self {
        let server = World::builder().options(&options()).create(dir).expect("an empty directory");
        let generator = Generator::in_world(Scene::Hills, SEED, &server).expect("new names");
        let dimension = generator.dimension();
        let [x, y, z] = sides.map(|side| side - 1);
        let corner = |x, y, z| ChunkPos::new(x, y, z).expect("a place in the world");
        let area = ChunkBox::new(corner(0, 0, 0), corner(x, y, z));
        let places: Vec<_> = area.iter().map(|pos| ChunkAt::new(dimension, pos)).collect();
        for some in places.chunks(AT_ONCE) {
            let saved = server.transaction(|tx| {
                for at in some {
                    tx.save(*at, Arc::new(generator.chunk(at.pos).chunk_without_entities()));
                }
                Ok::<_, Error>(())
            });
            saved.expect("the disk has room");
        }
        let cache = World::builder().options(&options()).in_memory().expect("a world");
        let names = server.catalog();
        let name = names.list(ListKind::Dimensions).name(dimension.get()).expect("is registered");
        cache.registry().register_dimension(name.as_str()).expect("a new name");
        let client = SyncClient::open(cache).expect("nothing is there");
        let pair = Self { server, client, generator, area, places, turn: 0 };
        pair.by_area();
        pair
    }

    /// Changes a block in chunks at equal distances, until this many have changed.
    fn change(&mut self, each: usize) {
        self.turn += 1;
        let cell = LocalPos::from_index((self.turn % 4096) as u16).expect("below 4096");
        let schema = self.generator.schema();
        let changed = self.server.transaction(|tx| {
            for at in self.places.iter().step_by(each).take(CHANGED) {
                let mut chunk = Chunk::clone(&*tx.load(*at)?.expect("is stored"));
                let other = BlockId::new(u64::from(chunk.block(cell).get() == 0));
                chunk.set_block(cell, other, schema).expect("a registered block");
                tx.save(*at, chunk);
            }
            Ok::<_, Error>(())
        });
        changed.expect("the disk has room");
        self.server.flush().expect("syncs");
    }

    /// Sends a request and its answer as bytes.
    fn say(&self, request: &SyncRequest) -> SyncOutcome {
        let asked = SyncRequest::decode(&request.encode(), SyncLimits::default()).expect("is sound");
        let reply = SyncServer::new(self.server.clone(), SyncServerLimits::default())
            .answer(&asked)
            .expect("answers");
        let told = SyncReply::decode(&reply.encode(), SyncLimits::default()).expect("is sound");
        self.client.apply(request, &told).expect("applies")
    }

    fn by_area(&self) -> u64 {
        let dimension = self.generator.dimension();
        self.say(&self.client.request_area(dimension, self.area).expect("reads"));
        let mut updated = 0;
        while let Some(request) = self.client.request_stale(4096).expect("reads") {
            updated += self.say(&request).updated;
        }
        updated
    }

    fn by_position(&self) -> u64 {
        self.say(&self.client.request(&self.places).expect("reads")).updated
    }

    /// Changes this many before each iteration; the time excludes it.
    fn measure(&mut self, times: u64, each: Option<usize>, sync: impl Fn(&Self) -> u64) -> Duration {
        let mut total = Duration::ZERO;
        for _ in 0..times {
            if let Some(each) = each {
                self.change(each);
            }
            let begun = Instant::now();
            let updated = black_box(sync(self));
            total += begun.elapsed();
            assert_eq!(updated, if each.is_some() { CHANGED as u64 } else { 0 }, "what changed was brought");
        }
        total
    }
}

fn sync(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut small = Pair::new(&dir.path().join("small"), SMALL);
    let mut large = Pair::new(&dir.path().join("large"), LARGE);
    assert_eq!((small.places.len(), large.places.len()), (1000, 10_000));

    let mut group = criterion.benchmark_group("sync: by area");
    group.bench_function("ref: 100 of 1,000 chunks changed <= 1.5", |bench| {
        bench.iter_custom(|times| small.measure(times, Some(1), Pair::by_area));
    });
    group.bench_function("100 of 10,000 chunks changed", |bench| {
        bench.iter_custom(|times| large.measure(times, Some(1), Pair::by_area));
    });
    group.bench_function("100 of 10,000 chunks changed, each 100 from the last", |bench| {
        bench.iter_custom(|times| large.measure(times, Some(100), Pair::by_area));
    });
    group.bench_function("none of 10,000 chunks changed", |bench| {
        bench.iter_custom(|times| large.measure(times, None, Pair::by_area));
    });
    group.finish();

    let mut group = criterion.benchmark_group("sync: by position");
    group.bench_function("100 of 10,000 chunks changed", |bench| {
        bench.iter_custom(|times| large.measure(times, Some(1), Pair::by_position));
    });
    group.bench_function("none of 10,000 chunks changed", |bench| {
        bench.iter_custom(|times| large.measure(times, None, Pair::by_position));
    });
    group.finish();
}

criterion_group!(benches, sync);
criterion_main!(benches);
