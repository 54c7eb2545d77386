//! Random operations on overlays and on a naive model of them, with reopening.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::entity::Reason;
use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::overlay::ArenaRow;
use cg_format::{ChunkBox, Space, key};
use cg_layers::CHUNK_RESET;
use cg_store::engine::{Batch, Level};
use cg_store::verify::VerifyDepth;
use proptest::prelude::*;

use super::*;

const PLACES: i64 = 6;
/// The place of a cow that is detached.
const NOWHERE: i64 = -1;

#[derive(Debug, Clone)]
enum Step {
    /// In one transaction; a cell of `None` deletes the chunk.
    Write(Vec<(i64, Option<u16>)>),
    PutCow(u128, i64),
    MoveCow(u128, i64),
    DeleteCow(u128),
    Reset,
    Merge,
    Sweep,
    Reopen,
    /// Rows of chunks are damaged, or those of their ancestors, and given up.
    Damage(Vec<i64>, bool),
    /// In the base, under the overlay.
    Below(i64, Option<u16>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = 0..PLACES;
    let cell = prop::option::weighted(0.8, 0..40_u16);
    let cow = 1..4_u128;
    let step = prop_oneof![
        4 => prop::collection::vec((place.clone(), cell.clone()), 1..4).prop_map(Step::Write),
        2 => (cow.clone(), place.clone()).prop_map(|(id, x)| Step::PutCow(id, x)),
        2 => (cow.clone(), place.clone()).prop_map(|(id, x)| Step::MoveCow(id, x)),
        1 => cow.prop_map(Step::DeleteCow),
        1 => Just(Step::Reset),
        1 => Just(Step::Merge),
        1 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
        2 => (prop::collection::vec(place.clone(), 1..4), prop::bool::weighted(0.3))
            .prop_map(|(places, of_ancestors)| Step::Damage(places, of_ancestors)),
        1 => (place, cell).prop_map(|(x, cell)| Step::Below(x, cell)),
    ];
    prop::collection::vec(step, 1..40)
}

/// Content of a layer: the marked cell of each chunk, and where each cow is.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    chunks: BTreeMap<i64, u16>,
    cows: BTreeMap<u128, i64>,
}

impl Model {
    fn write(&mut self, x: i64, cell: Option<u16>) {
        if let Some(cell) = cell {
            self.chunks.insert(x, cell);
        } else {
            self.chunks.remove(&x);
            self.cows.retain(|_, at| *at != x);
        }
    }

    /// Shows what is below; what is here of no chunk there is detached.
    fn show(&mut self, x: i64, below: &Self) {
        if let Some(cell) = below.chunks.get(&x) {
            self.chunks.insert(x, *cell);
        } else {
            self.chunks.remove(&x);
            for at in self.cows.values_mut().filter(|at| **at == x) {
                *at = NOWHERE;
            }
        }
    }

    fn cows_in(&self, x: i64) -> Vec<EntityId> {
        self.cows.iter().filter(|(_, at)| **at == x).map(|(id, _)| uuid(*id)).collect()
    }
}

/// A chunk of the model.
fn chunk(world: &World, ids: &Ids, model: &Model, x: i64, cell: u16) -> Chunk {
    let mut chunk = marked(world, ids, cell);
    for id in model.cows_in(x) {
        chunk.add_entity(id);
    }
    chunk
}

/// Somewhere that overlays are opened again.
trait Shelf {
    fn open(&self, base: &World) -> Overlay<World>;
    fn reopens(&self) -> bool;
}

struct OnDisk(Disk);

impl Shelf for OnDisk {
    fn open(&self, base: &World) -> Overlay<World> {
        let dir = self.0.root().join("arena");
        if dir.exists() {
            Overlay::open(&dir, base.clone(), &options()).expect("opens")
        } else {
            on_disk(&self.0, base)
        }
    }

    fn reopens(&self) -> bool {
        true
    }
}

/// With these options.
struct InMemory(cg_store::WorldOptions);

impl Shelf for InMemory {
    fn open(&self, base: &World) -> Overlay<World> {
        Overlay::in_memory(base.clone(), &self.0).expect("a base like any other")
    }

    fn reopens(&self) -> bool {
        false
    }
}

fn run<H: Shelf>(shelf: &H, steps: Vec<Step>) {
    let (base, ids) = template();
    let at = |x| ids.at(x, 0, 0);
    let mut below = Model { chunks: (0..4).map(|x| (x, x as u16)).collect(), cows: BTreeMap::from([(1, 0)]) };
    // What the overlay shows; a place that it has not written follows the base.
    let mut shown = below.clone();
    let mut is_written = false;
    let mut overlay = shelf.open(&base);
    for step in steps {
        match step {
            Step::Write(writes) => {
                // The last word for each place counts.
                let writes: BTreeMap<_, _> = writes.into_iter().collect();
                let written = overlay.transaction(|tx| {
                    for (x, cell) in &writes {
                        match cell {
                            Some(cell) => tx.save(at(*x), chunk(&base, &ids, &shown, *x, *cell)),
                            None => tx.delete(at(*x)),
                        }
                        shown.write(*x, *cell);
                    }
                    Ok::<_, Error>(())
                });
                written.expect("writes");
                is_written = true;
            }
            Step::PutCow(id, x) | Step::MoveCow(id, x) => {
                let put = overlay.transaction(|tx| {
                    tx.put_entity(uuid(id), ids.cow_in(at(x)));
                    Ok::<_, Error>(())
                });
                if shown.chunks.contains_key(&x) {
                    put.expect("the chunk is there");
                    shown.cows.insert(id, x);
                    is_written = true;
                } else {
                    assert!(
                        matches!(put, Err(Error::OwnerAbsent { at: absent, .. }) if absent == at(x)),
                        "{put:?}"
                    );
                }
            }
            Step::DeleteCow(id) => {
                let deleted = overlay.transaction(|tx| {
                    tx.delete_entity(uuid(id));
                    Ok::<_, Error>(())
                });
                deleted.expect("deletes");
                is_written = true;
                shown.cows.remove(&id);
            }
            Step::Reset => {
                overlay.reset().expect("resets");
                shown = below.clone();
                is_written = false;
            }
            Step::Merge => {
                let merged = overlay.merge_into(&base).expect("nothing was changed below");
                assert_eq!(merged.changes == 0, shown == below);
                below = shown.clone();
                is_written = false;
            }
            Step::Damage(places, of_ancestors) => {
                let space = if of_ancestors { Space::ChunkDelta } else { Space::ChunkL0 };
                let damaged = damage(&overlay, space, places.iter().map(|x| (*x, at(*x))));
                let area = ChunkBox::new(at(0).pos, at(PLACES - 1).pos);
                let done = overlay.reset_damaged(ids.overworld, area).expect("resets");
                let count = damaged.len() as u64;
                if of_ancestors {
                    assert_eq!((done.chunks, done.ancestors), (0, count));
                } else {
                    assert_eq!((done.chunks, done.ancestors), (count, 0));
                    for x in damaged {
                        shown.show(x, &below);
                    }
                }
                assert_eq!(overlay.arenas().verify(VerifyDepth::Full, |_| {}).expect("reads").findings, []);
            }
            Step::Sweep => {
                overlay.arenas().sweep(3).expect("sweeps");
            }
            Step::Reopen if shelf.reopens() => {
                drop(overlay);
                overlay = shelf.open(&base);
            }
            Step::Below(x, cell) if !is_written => {
                let saved = base.transaction(|tx| {
                    match cell {
                        Some(cell) => tx.save(at(x), chunk(&base, &ids, &below, x, cell)),
                        None => tx.delete(at(x)),
                    }
                    Ok::<_, Error>(())
                });
                saved.expect("saves");
                below.write(x, cell);
                shown = below.clone();
            }
            Step::Reopen | Step::Below(..) => {}
        }
        compare(&overlay, &base, &ids, &shown, &below);
    }
}

/// Writes rows that say nothing over those of an overlay, where it has some. Returns the places.
fn damage(
    overlay: &Overlay<World>,
    space: Space,
    places: impl Iterator<Item = (i64, ChunkAt)>,
) -> BTreeSet<i64> {
    let arenas = overlay.arenas();
    let engine = arenas.engine();
    let row_key = format!("arena/{:08x}", overlay.arena());
    let row = engine.get(Space::WorldMeta, row_key.as_bytes()).expect("reads").expect("is there");
    let frame = FrameView::open(Space::WorldMeta, row_key.as_bytes(), &row).expect("is sound");
    let lease = ArenaRow::decode(frame.payload()).expect("is sound").lease;
    let mut found = BTreeSet::new();
    let mut batch = Batch::new();
    for (x, at) in places {
        let row_key = key::overlay_chunk(lease, at);
        if engine.get(space, &row_key).expect("reads").is_some() && found.insert(x) {
            let nonsense = Draft::plain(Codec::None, 0, |out| out.push(0xee));
            batch.put(space, row_key, nonsense, Stamp::Commit);
        }
    }
    engine.commit(batch, &[], Level::Process).expect("commits");
    found
}

#[track_caller]
fn compare(overlay: &Overlay<World>, base: &World, ids: &Ids, shown: &Model, below: &Model) {
    let at = |x| ids.at(x, 0, 0);
    let places: Vec<_> = (0..PLACES).map(at).collect();
    for (x, found) in (0..PLACES).zip(overlay.load_many(&places)) {
        let expected = shown.chunks.get(&x).map(|cell| chunk(base, ids, shown, x, *cell));
        assert_eq!(found.expect("loads").as_deref(), expected.as_ref(), "chunk {x} of the overlay");
        let expected = below.chunks.get(&x).map(|cell| chunk(base, ids, below, x, *cell));
        assert_eq!(base.load(at(x)).expect("loads").as_deref(), expected.as_ref(), "chunk {x} of the base");
    }
    for id in 1..4 {
        let owner = |cow: Option<Entity>| cow.map(|cow| cow.owner);
        let of_place = |x: &i64| match *x {
            NOWHERE => Owner::Detached(Reason::new(CHUNK_RESET).expect("is short")),
            x => Owner::Chunk(at(x)),
        };
        let expected = |model: &Model| model.cows.get(&id).map(of_place);
        assert_eq!(
            owner(overlay.entity(uuid(id)).expect("reads")),
            expected(shown),
            "cow {id} of the overlay"
        );
        assert_eq!(owner(base.entity(uuid(id)).expect("reads")), expected(below), "cow {id} of the base");
    }
    let differs = |x: &i64| {
        let of = |model: &Model| model.chunks.get(x).map(|cell| (*cell, model.cows_in(*x)));
        of(shown) != of(below)
    };
    let expected: Vec<_> = (0..PLACES).filter(differs).map(at).collect();
    let found: Vec<_> =
        overlay.diff().expect("compares").chunks.into_iter().map(|(place, _)| place).collect();
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn an_overlay_in_memory_is_its_model(steps in steps()) {
        run(&InMemory(options()), steps);
    }

    #[test]
    fn an_overlay_of_deltas_is_its_model(steps in steps(), remembers: bool) {
        let cache_bytes = if remembers { 1 << 20 } else { 0 };
        run(&InMemory(cg_store::WorldOptions { deltas: true, cache_bytes, ..options() }), steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn an_overlay_on_disk_is_its_model(steps in steps()) {
        run(&OnDisk(Disk::new()), steps);
    }
}
