//! Long random histories of objects and records against maps, over both engines, queued and not, with reopening.

use std::sync::Arc;

use super::records::{id, record};
use super::*;
use cg_format::record::Record;
use cg_store::records::{RecordQuery, RecordSettings, RecordShape};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Step {
    Put(usize, u8),
    PutAt(usize, i64, u8),
    Delete(usize),
    List(usize, usize),
    PutRecord(u128, [i64; 3], u8, i64),
    Move(u128, [i64; 3]),
    DeleteRecord(u128),
    Query([i64; 3], [i64; 3], Option<i64>, Option<u8>),
    /// An object and a record in one transaction that is given up.
    Fail(usize, u128),
    Forget,
    Reopen,
}

const KEYS: [&str; 7] = ["a", "a/bricks", "a/lights", "ab", "b/bricks", "\u{ff}", "a/"];
const PREFIXES: [&str; 4] = ["", "a", "a/", "b"];

fn axis() -> impl Strategy<Value = i64> {
    prop_oneof![4 => -40_i64..40, 1 => -3000_i64..3000]
}

fn step() -> impl Strategy<Value = Step> {
    let (key, record) = (0..KEYS.len(), 0..9_u128);
    let place = || prop::array::uniform3(axis());
    prop_oneof![
        4 => (key.clone(), 0..3_u8).prop_map(|(key, value)| Step::Put(key, value)),
        2 => (key.clone(), 0..9_i64, 0..3_u8).prop_map(|(key, version, value)| Step::PutAt(key, version, value)),
        2 => key.clone().prop_map(Step::Delete),
        1 => (0..PREFIXES.len(), 1..4_usize).prop_map(|(prefix, count)| Step::List(prefix, count)),
        5 => (record.clone(), place(), 0..3_u8, 0..9_i64)
            .prop_map(|(n, at, kind, timestamp)| Step::PutRecord(n, at, kind, timestamp)),
        2 => (record.clone(), place()).prop_map(|(n, at)| Step::Move(n, at)),
        2 => record.clone().prop_map(Step::DeleteRecord),
        4 => (place(), place(), prop::option::of(0..9_i64), prop::option::of(0..3_u8))
            .prop_map(|(a, b, after, kind)| Step::Query(a, b, after, kind)),
        1 => (key, record).prop_map(|(key, n)| Step::Fail(key, n)),
        1 => Just(Step::Forget),
        1 => Just(Step::Reopen),
    ]
}

fn kind(n: u8) -> &'static str {
    ["sign", "grave", ""][usize::from(n)]
}

fn point(at: [i64; 3]) -> [f64; 3] {
    at.map(|axis| axis as f64 + 0.5)
}

/// The expected content of a world.
#[derive(Debug, Default)]
struct Model {
    /// Version and content; `None` is a deletion that is remembered.
    objects: BTreeMap<&'static str, (i64, Option<u8>)>,
    records: BTreeMap<u128, Record>,
}

/// Runs steps over a world, and after each kind of step says whether it did what maps do.
#[expect(clippy::too_many_lines, reason = "an arm for each kind of step")]
fn run(mut world: World, steps: &[Step], shape: RecordShape, reopen: impl Fn(World) -> World) {
    let ids = Ids::register(&world);
    let mut model = Model::default();
    for step in steps {
        match step.clone() {
            Step::Put(key, value) => {
                let version = world.objects().put(KEYS[key], vec![value; 40]).expect("puts");
                let entry = model.objects.entry(KEYS[key]).or_insert((-1, None));
                if entry.1 != Some(value) {
                    *entry = (entry.0 + 1, Some(value));
                }
                assert_eq!(version, entry.0);
            }
            Step::PutAt(key, version, value) => {
                let stored = model.objects.get(KEYS[key]).map(|entry| entry.0);
                let put = world.objects().put_at_version(KEYS[key], version, vec![value; 40]);
                if let Some(expected) = stored.filter(|stored| *stored > version) {
                    let Err(Error::VersionGoesBack { key: found, stored, offered }) = put else {
                        panic!("went back: {put:?}");
                    };
                    assert_eq!(
                        (found.as_bytes(), stored, offered),
                        (KEYS[key].as_bytes(), expected, version)
                    );
                } else {
                    put.expect("puts");
                    model.objects.insert(KEYS[key], (version, Some(value)));
                }
            }
            Step::Delete(key) => {
                let was_there = world.objects().delete(KEYS[key]).expect("deletes");
                let entry = model.objects.get_mut(KEYS[key]);
                assert_eq!(was_there, entry.is_some_and(|entry| entry.1.take().is_some()));
            }
            Step::List(prefix, count) => {
                let (mut listed, mut position) = (Vec::new(), None);
                loop {
                    let page =
                        world.objects().list(PREFIXES[prefix], position.as_ref(), count).expect("lists");
                    assert!(
                        page.entries.len() <= count && (page.next.is_none() || page.entries.len() == count)
                    );
                    listed.extend(
                        page.entries.into_iter().map(|entry| (entry.key.as_bytes().to_vec(), entry.version)),
                    );
                    position = page.next;
                    if position.is_none() {
                        break;
                    }
                }
                let here = model
                    .objects
                    .iter()
                    .filter(|(key, entry)| key.starts_with(PREFIXES[prefix]) && entry.1.is_some());
                let expected: Vec<_> = here.map(|(key, entry)| (key.as_bytes().to_vec(), entry.0)).collect();
                assert_eq!(listed, expected);
            }
            Step::PutRecord(n, at, of, timestamp) => {
                let record = record(ids.overworld, point(at), kind(of), timestamp);
                let put = world.transaction(|tx| {
                    tx.put_record(id(n), record.clone());
                    Ok::<_, Error>(())
                });
                put.expect("puts");
                model.records.insert(n, record);
            }
            Step::Move(n, at) => {
                let position = record(ids.overworld, point(at), "", 0).position;
                let moved = world.transaction(|tx| tx.move_record(id(n), position)).expect("moves").value;
                let known = model.records.remove(&n);
                assert_eq!(moved, known.is_some());
                model.records.extend(known.map(|record| (n, record.moved_to(position))));
            }
            Step::DeleteRecord(n) => {
                let deleted = world.transaction(|tx| {
                    tx.delete_record(id(n));
                    Ok::<_, Error>(())
                });
                deleted.expect("deletes");
                model.records.remove(&n);
            }
            Step::Query(a, b, after, of) => {
                let [a, b] = [a, b].map(|[x, y, z]| BlockPos::new(x, y, z));
                let area = BlockBox::new(a, b);
                let mut query = RecordQuery::new(ids.overworld, area);
                query = after.map_or(query.clone(), |after| query.after(after));
                query = of.map_or(query.clone(), |of| query.of_kind(kind(of)));
                let found = world.records().in_leaves(&query).expect("reads");
                let found: BTreeMap<_, _> = found.into_iter().collect();
                // By definition: the leaf's number on each axis lies between those of the corners.
                let touched = |record: &Record| {
                    let leaf = |axis: i64| axis.div_euclid(shape.leaf_side_blocks());
                    let axes = |pos: BlockPos| [pos.x, pos.y, pos.z].map(leaf);
                    let (min, max, at) = (axes(area.min()), axes(area.max()), axes(record.position.block()));
                    (0..3).all(|axis| (min[axis]..=max[axis]).contains(&at[axis]))
                };
                let wanted = |record: &Record| {
                    after.is_none_or(|after| record.timestamp > after)
                        && of.is_none_or(|of| record.kind() == kind(of))
                };
                let expected = model.records.iter().filter(|(_, record)| touched(record) && wanted(record));
                assert_eq!(found, expected.map(|(n, record)| (id(*n), record.clone())).collect());
            }
            Step::Fail(key, n) => {
                let failed = world.transaction(|tx| {
                    tx.put_object(KEYS[key], [99; 3])?;
                    tx.put_record(id(n), record(ids.overworld, [7000.0; 3], "lost", 1));
                    tx.delete_record(id(n + 1));
                    Err::<(), _>(Error::Nested)
                });
                assert!(matches!(failed, Err(Error::Nested)));
            }
            Step::Forget => {
                // One more commit, so that every deletion is older than the newest.
                let set = world.transaction(|tx| {
                    tx.set_property(Property::Time, Some(world.last_commit().get().to_le_bytes().to_vec()));
                    Ok::<_, Error>(())
                });
                world.tiers().purge_tombstones_before(set.expect("commits").seq).expect("forgets");
                model.objects.retain(|_, entry| entry.1.is_some());
            }
            Step::Reopen => world = reopen(world),
        }
        holds(&world, &model);
    }
    world = reopen(world);
    holds(&world, &model);
    assert_sound(&world);
    let census = world.tiers().census().expect("counts");
    let here = model.objects.values().filter(|entry| entry.1.is_some()).count() as u64;
    assert_eq!((census.objects, census.records, census.damaged), (here, model.records.len() as u64, 0));
}

/// Every object and every record is as the model says.
fn holds(world: &World, model: &Model) {
    for key in KEYS {
        let object = world.objects().get(key).expect("reads").map(|object| (object.version, object.bytes));
        let expected = model.objects.get(key).and_then(|(version, value)| Some((*version, (*value)?)));
        assert_eq!(object, expected.map(|(version, value)| (version, Arc::from(vec![value; 40]))), "{key}");
    }
    for n in 0..11 {
        assert_eq!(world.records().get(id(n)).expect("reads").as_ref(), model.records.get(&n));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn objects_and_records_are_maps(
        steps in prop::collection::vec(step(), 20..120),
        durability in prop::sample::select(&[Durability::Process, Durability::Fast][..]),
        settings in prop::sample::select(&[
            RecordSettings { leaf_square_size: 16, tree_degree: 512, num_levels: 2, roots_per_table: 8 },
            RecordSettings { leaf_square_size: 5, tree_degree: 8, num_levels: 4, roots_per_table: 1 },
            RecordSettings { leaf_square_size: 7, tree_degree: 27, num_levels: 1, roots_per_table: 27 },
        ][..]),
    ) {
        let shape = RecordShape::new(settings).expect("a tree");
        let options = WorldOptions { durability, records: Some(shape), ..options() };
        run(World::builder().options(&options).in_memory().expect("a world in memory"), &steps, shape, |world| world);
        let disk = Disk::new();
        let world = World::builder().options(&options).create(disk.path()).expect("is created");
        run(world, &steps, shape, |world| {
            drop(world);
            World::builder().options(&options).open(disk.path()).expect("opens")
        });
    }
}
