//! Random operations on a segmented world and on a naive model of it, with crashes and reopening.

use std::collections::BTreeMap;

use cg_layers::Arenas;

use cg_tiering::GameTick;
use proptest::prelude::*;

use super::transfer::{Crashing, whereabouts};
use super::values::id;
use super::*;

/// A chunk by its number, and what it is filled with; `None`: it is deleted.
type Fill = (usize, Option<bool>);

/// Two chunks in each of three segments.
const PLACES: [i64; 6] = [0, 5, 16, 20, 32, 47];

#[derive(Debug, Clone)]
enum Step {
    Save(usize, bool),
    Delete(usize),
    Put(u128, usize),
    Cross(Vec<(u128, usize)>),
    DeleteCow(u128),
    /// An object and a record in one transaction.
    Sign(u8, usize),
    DeleteSign(u8),
    DeleteSegment(i64),
    /// An overlay in which chunks are filled, or deleted, and then cows are put, merged into whatever segments that touches.
    Merge(Vec<(usize, Option<bool>)>, Vec<(u128, usize)>),
    Reopen,
}

/// A step, and how many commits are made before the power goes, if it goes.
fn steps() -> impl Strategy<Value = Vec<(Step, Option<i64>)>> {
    let place = 0..PLACES.len();
    let cow = 1..4_u128;
    let fills = prop::collection::vec((place.clone(), prop::option::weighted(0.8, any::<bool>())), 1..4);
    let cows = prop::collection::vec((cow.clone(), place.clone()), 0..3);
    let step = prop_oneof![
        3 => (fills, cows).prop_map(|(fills, cows)| Step::Merge(fills, cows)),
        4 => (place.clone(), any::<bool>()).prop_map(|(place, kind)| Step::Save(place, kind)),
        1 => place.clone().prop_map(Step::Delete),
        3 => (cow.clone(), place.clone()).prop_map(|(cow, place)| Step::Put(cow, place)),
        3 => prop::collection::vec((cow.clone(), place.clone()), 1..3).prop_map(Step::Cross),
        1 => cow.prop_map(Step::DeleteCow),
        4 => (1..3_u8, place.clone()).prop_map(|(sign, place)| Step::Sign(sign, place)),
        2 => (1..3_u8).prop_map(Step::DeleteSign),
        1 => (0..3_i64).prop_map(Step::DeleteSegment),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec((step, prop::option::weighted(0.3, 0..6_i64)), 1..40)
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    chunks: BTreeMap<usize, bool>,
    cows: BTreeMap<u128, usize>,
    signs: BTreeMap<u8, usize>,
}

fn segment_of(place: usize) -> i64 {
    PLACES[place] / 16
}

impl Model {
    /// The state after a step that ended well; `None` if the step must be refused.
    fn after(&self, step: &Step) -> Option<Self> {
        let mut next = self.clone();
        match step {
            Step::Save(place, kind) => drop(next.chunks.insert(*place, *kind)),
            Step::Delete(place) => {
                next.chunks.remove(place);
                next.cows.retain(|_, at| at != place);
            }
            Step::Put(cow, place) => {
                let is_elsewhere = self.cows.get(cow).is_some_and(|at| segment_of(*at) != segment_of(*place));
                if is_elsewhere || !self.chunks.contains_key(place) {
                    return None;
                }
                next.cows.insert(*cow, *place);
            }
            Step::Cross(travels) => {
                let travels: BTreeMap<_, _> = travels.iter().copied().collect();
                for (cow, place) in travels {
                    if !self.cows.contains_key(&cow) || !self.chunks.contains_key(&place) {
                        return None;
                    }
                    next.cows.insert(cow, place);
                }
            }
            Step::DeleteCow(cow) => drop(next.cows.remove(cow)),
            Step::Sign(sign, place) => {
                if self.signs.get(sign).is_some_and(|at| segment_of(*at) != segment_of(*place)) {
                    return None;
                }
                next.signs.insert(*sign, *place);
            }
            Step::DeleteSign(sign) => drop(next.signs.remove(sign)),
            Step::DeleteSegment(x) => {
                next.chunks.retain(|place, _| segment_of(*place) != *x);
                next.cows.retain(|_, place| segment_of(*place) != *x);
                next.signs.retain(|_, place| segment_of(*place) != *x);
            }
            Step::Merge(fills, cows) => {
                let fills: BTreeMap<_, _> = fills.iter().copied().collect();
                for (place, kind) in fills {
                    if let Some(kind) = kind {
                        next.chunks.insert(place, kind);
                    } else {
                        next.chunks.remove(&place);
                        next.cows.retain(|_, at| *at != place);
                    }
                }
                let cows: BTreeMap<_, _> = cows.iter().copied().collect();
                for (cow, place) in cows {
                    if !next.chunks.contains_key(&place) {
                        return None;
                    }
                    next.cows.insert(cow, place);
                }
            }
            Step::Reopen => {}
        }
        Some(next)
    }
}

fn perform<H: SegmentHome>(
    world: &SegmentedWorld<H>,
    ids: &Ids,
    model: &Model,
    step: &Step,
) -> Result<(), Error> {
    let at = |place: usize| ids.at(PLACES[place], 0, 0);
    match step {
        Step::Save(place, kind) => world.transaction(at(*place), |tx| {
            let mut chunk = filled(world.root(), if *kind { ids.stone } else { ids.glass });
            for (cow, _) in model.cows.iter().filter(|(_, here)| *here == place) {
                chunk.add_entity(uuid(*cow));
            }
            tx.save(at(*place), chunk);
            Ok(())
        }),
        Step::Delete(place) => world.transaction(at(*place), |tx| {
            tx.delete(at(*place));
            Ok::<_, Error>(())
        }),
        Step::Put(cow, place) => world.transaction(at(*place), |tx| {
            tx.put_entity(uuid(*cow), ids.cow_in(at(*place)));
            Ok::<_, Error>(())
        }),
        Step::Cross(travels) => {
            let travels: BTreeMap<_, _> = travels.iter().copied().collect();
            world
                .transfer_entities(travels.into_iter().map(|(cow, place)| (uuid(cow), ids.cow_in(at(place)))))
        }
        Step::DeleteCow(cow) => match model.cows.get(cow) {
            Some(place) => world.transaction(at(*place), |tx| {
                tx.delete_entity(uuid(*cow));
                Ok(())
            }),
            None => Ok(()),
        },
        Step::Sign(sign, place) => world.transaction(at(*place), |tx| {
            tx.put_object(format!("sign/{sign}"), [*place as u8])?;
            tx.put_record(id((*sign).into()), sign_at(at(*place))?);
            Ok(())
        }),
        Step::DeleteSign(sign) => match model.signs.get(sign) {
            Some(place) => world.transaction(at(*place), |tx| {
                tx.delete_object(format!("sign/{sign}"))?;
                tx.delete_record(id((*sign).into()));
                Ok(())
            }),
            None => Ok(()),
        },
        Step::DeleteSegment(x) => match world.segments().delete(segment(ids, *x)) {
            Err(error) if matches!(error.layer(), Some(SegmentError::Missing { .. })) => Ok(()),
            other => other,
        },
        Step::Merge(fills, cows) => {
            let overlay = Overlay::in_memory(world.clone(), &options())?;
            edit(&overlay, world, ids, model, (fills, cows))?;
            overlay.merge_into(world).map(drop)
        }
        Step::Reopen => Ok(()),
    }
}

fn sign_at(at: ChunkAt) -> Result<cg_format::record::Record, Error> {
    let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3])?;
    Ok(cg_format::record::Record::new(position, "game:sign", 0, Vec::new()).expect("short"))
}

/// Edits an overlay as a step does before it merges.
fn edit<H: SegmentHome>(
    overlay: &Overlay<SegmentedWorld<H>>,
    world: &SegmentedWorld<H>,
    ids: &Ids,
    model: &Model,
    (fills, cows): (&[Fill], &[(u128, usize)]),
) -> Result<(), Error> {
    let at = |place: usize| ids.at(PLACES[place], 0, 0);
    let fills: BTreeMap<_, _> = fills.iter().copied().collect();
    overlay.transaction(|tx| {
        for (place, kind) in fills {
            let Some(kind) = kind else {
                tx.delete(at(place));
                continue;
            };
            let mut chunk = filled(world.root(), if kind { ids.stone } else { ids.glass });
            for (cow, _) in model.cows.iter().filter(|(_, here)| **here == place) {
                chunk.add_entity(uuid(*cow));
            }
            tx.save(at(place), chunk);
        }
        Ok::<_, Error>(())
    })?;
    overlay.transaction(|tx| {
        for (cow, place) in cows {
            tx.put_entity(uuid(*cow), ids.cow_in(at(*place)));
        }
        Ok(())
    })
}

/// Merges what a step says, and calls it again if the power goes in the middle. Returns the world, opened again then, and how
/// the last call ended.
fn promote_twice(
    home: &Crashing,
    world: SegmentedWorld<Crashing>,
    ids: &Ids,
    model: &Model,
    (fills, cows): (&[Fill], &[(u128, usize)]),
    commits: i64,
) -> (SegmentedWorld<Crashing>, Result<(), Error>) {
    let above = home.another();
    let arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("a base");
    let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
    if let Err(refused) = edit(&overlay, &world, ids, model, (fills, cows)) {
        return (world, Err(refused));
    }
    home.fuse.set(commits);
    let merged = overlay.merge_into(&world).map(drop);
    if !home.fuse.is_burnt() {
        home.fuse.set(i64::MAX);
        return (world, merged);
    }
    drop((overlay, arenas, world));
    let world = home.open(false);
    let arenas = Arenas::over(above, world.clone(), &options()).expect("the same base");
    let overlay = arenas.resume(0).expect("is leased");
    let merged = overlay.merge_into(&world).map(drop);
    (world, merged)
}

/// Reads the state of a world in the model's terms; panics if an entity is lost, doubled, or at odds with its chunk.
fn state<H: SegmentHome>(world: &SegmentedWorld<H>, ids: &Ids) -> Model {
    let places = PLACES.map(|x| ids.at(x, 0, 0));
    let mut model = Model::default();
    for (place, chunk) in world.load_many(&places).into_iter().enumerate() {
        if let Some(chunk) = chunk.expect("loads") {
            model.chunks.insert(place, chunk.block(LocalPos::new(0, 0, 0)) == ids.stone);
        }
    }
    for cow in 1..4 {
        let (chunks, rows) = whereabouts(world, &places, uuid(cow));
        let owner = world.entity(uuid(cow)).expect("reads").map(|cow| cow.owner);
        match owner {
            None => assert_eq!((chunks.len(), rows.len()), (0, 0), "cow {cow} is lost"),
            Some(owner) => {
                assert_eq!((chunks.len(), rows.len()), (1, 1), "cow {cow} is doubled");
                assert_eq!(owner, Owner::Chunk(chunks[0]));
                let place = places.iter().position(|at| *at == chunks[0]).expect("one of the places");
                model.cows.insert(cow, place);
            }
        }
    }
    for sign in 1..3 {
        let key = format!("sign/{sign}");
        let object = world.objects().get(&key).expect("reads").map(|object| usize::from(object.bytes[0]));
        let record = world.records().get(id(sign.into())).expect("reads");
        let expected = object.map(|place| sign_at(places[place]).expect("a point"));
        assert_eq!(record, expected, "sign {sign} is there in part");
        let has = |segment: &SegmentPos| {
            let look = |world: &World| {
                Ok(world.objects().get(&key)?.is_some() || world.records().get(id(sign.into()))?.is_some())
            };
            world.segments().with(*segment, look).expect("reads")
        };
        let homes = world.segments().list().into_iter().filter(has).count();
        assert_eq!(homes, usize::from(object.is_some()), "sign {sign} is in {homes} segments");
        model.signs.extend(object.map(|place| (sign, place)));
    }
    model
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_segmented_world_is_its_model_whatever_crashes(steps in steps()) {
        let home = Crashing::new();
        let mut world = home.open(true);
        let ids = register(&world);
        let mut model = Model::default();
        for (step, power) in steps {
            let after = model.after(&step);
            let done;
            if let Step::Merge(fills, cows) = &step {
                let commits = power.map_or(i64::MAX, |commits| 3 * commits);
                (world, done) = promote_twice(&home, world, &ids, &model, (fills, cows), commits);
            } else {
                home.fuse.set(power.unwrap_or(i64::MAX));
                done = perform(&world, &ids, &model, &step);
            }
            if home.fuse.is_burnt() || matches!(step, Step::Reopen) {
                drop(world);
                world = home.open(false);
                let now = state(&world, &ids);
                prop_assert!(now == model || Some(&now) == after.as_ref(), "{:?} left {:?}", step, now);
                model = now;
            } else {
                home.fuse.set(i64::MAX);
                prop_assert_eq!(done.is_ok(), after.is_some(), "{:?}: {:?}", step, done);
                model = after.unwrap_or(model);
                prop_assert_eq!(&state(&world, &ids), &model);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, max_shrink_iters: 20, ..ProptestConfig::default() })]

    #[test]
    fn a_segmented_world_on_disk_is_its_model(steps in steps()) {
        let disk = Disk::new();
        let (mut world, ids) = create(&disk);
        let mut model = Model::default();
        for (step, _) in steps.into_iter().take(12) {
            let after = model.after(&step);
            let done = perform(&world, &ids, &model, &step);
            prop_assert_eq!(done.is_ok(), after.is_some(), "{:?}: {:?}", step, done);
            model = after.unwrap_or(model);
            if matches!(step, Step::Reopen) {
                world.close().expect("closes");
                drop(world);
                world = open(&disk);
            }
            prop_assert_eq!(&state(&world, &ids), &model);
        }
    }
}
