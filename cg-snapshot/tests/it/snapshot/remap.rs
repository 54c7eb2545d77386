//! A snapshot that comes into another registry is found by names.

use std::sync::Arc;

use cg_format::chunk::CellLayer;
use cg_format::{ChunkAt, ChunkSource, Limits, Lookup};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, KeptComponents, ListKind, Name, Registration, STALE};
use cg_snapshot::file::{FileOptions, SnapshotFile};
use cg_snapshot::memory::Memory;
use cg_snapshot::{RestoreJob, RestoreOptions, Snapshot, SnapshotError, Unverifiable};
use proptest::prelude::*;

use super::made::{FACING, ITEMS, LIGHT, arena, around, captured, catalog, host, other_catalog, yard};

fn through_a_file(snapshot: &Snapshot) -> Snapshot {
    let bytes = snapshot.to_bytes(&FileOptions::default()).expect("nothing is lost");
    let mut file = SnapshotFile::open(std::io::Cursor::new(bytes), Limits::default()).expect("sound");
    file.load(Unverifiable::Fail).expect("sound")
}

/// Lists the content of a chunk by names.
fn by_names(host: &Memory, catalog: &Catalog, at: ChunkAt) -> Option<Vec<String>> {
    let chunk = host.lookup(at).map_or_else(|never| match never {}, Lookup::here)?;
    let all = cg_format::LocalPos::all().map(|cell| (CellLayer::base(cell), chunk.block(cell)));
    let blocks = all.chain(chunk.upper_layers());
    let mut said: Vec<String> =
        blocks.map(|(at, block)| format!("{at:?} {}", catalog.block_name(block).expect("issued"))).collect();
    for (component, at, bytes) in chunk.components() {
        said.push(format!("{at:?} {} {bytes:?}", catalog.component_name(component).expect("issued")));
    }
    for (kind, bytes) in chunk.sides() {
        let name = catalog.list(ListKind::Sides).name(kind.get().into()).expect("issued");
        said.push(format!("{name} {bytes:?}"));
    }
    for id in chunk.entities() {
        let entity = cg_format::EntitySource::entity(host, *id).unwrap_or_else(|never| match never {});
        let entity = entity.expect("referred to");
        let kind = catalog.list(ListKind::Entities).name(entity.kind.get()).expect("issued");
        let components = entity
            .components()
            .map(|(it, bytes)| format!("{} {bytes:?}", catalog.component_name(it).expect("issued")));
        let components: Vec<_> = components.collect();
        said.push(format!("{id} {kind} {:?} {components:?}", entity.position.block()));
    }
    said.sort();
    Some(said)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn by_names_it_is_the_same_there(seed in 0_u64..1000) {
        let (here, there) = (catalog(), other_catalog());
        let original = host(seed);
        let snapshot = through_a_file(&captured(&original, around()));
        let mut live = Memory::new(&there);
        let mut job = RestoreJob::new(Arc::new(snapshot), &there, RestoreOptions::default()).unwrap();
        let report = job.run(&mut live, &mut |_| {}).unwrap();
        prop_assert!(report.remap.is_remapped);
        prop_assert_eq!(report.remap.components_left.len(), 0);
        for pos in around().chunks().iter() {
            let expected = by_names(&original, &here, ChunkAt::new(arena(&here), pos));
            prop_assert_eq!(by_names(&live, &there, ChunkAt::new(arena(&there), pos)), expected);
        }
    }
}

#[test]
fn unknown_names_are_said_and_can_be_registered() {
    let mut fresh = Catalog::new();
    let error = yard().arrive(&fresh).unwrap_err();
    assert_eq!(error.to_string(), "one name is not registered: dimension `game:arena`");
    let dimensions = vec![Name::new("game:arena").unwrap()];
    fresh.register(&Registration { dimensions, ..Registration::default() }).unwrap();
    let error = yard().arrive(&fresh).unwrap_err();
    let expected = "8 names are not registered: component `game:facing`, component `game:items`, \
                    block `game:stone`, block `game:dirt`, block `game:chest`, block `game:water`, \
                    entity `game:sheep`, side kind `game:light`";
    // Components are in the order of their ids: those of a fixed size first.
    assert_eq!(error.to_string(), expected);
    assert!(matches!(error, SnapshotError::UnknownNames { names } if names.len() == 8));

    let registration = yard().names().registration(&fresh);
    fresh.register(&registration).unwrap();
    assert!(yard().names().missing_in(&fresh).is_empty());
    let (arrived, _) = yard().arrive(&fresh).unwrap();
    assert!(arrived.names().are_those_of(&fresh));
    let spec = |catalog: &Catalog, name| catalog.component_spec(catalog.component_id(name).unwrap()).cloned();
    for name in [ITEMS, FACING] {
        assert_eq!(spec(&fresh, name), spec(&catalog(), name));
    }
    assert!(fresh.side_kind(LIGHT).is_some());
    assert_eq!(arrived.names().registration(&fresh), Registration::default());
}

#[test]
fn components_of_another_kind_of_size_are_kept_beside_and_counted() {
    let mut there = Catalog::new();
    let name = |text| Name::new(text).unwrap();
    there
        .register(&Registration {
            components: vec![ComponentOffer::fixed(name(ITEMS), 9), ComponentOffer::fixed(name(FACING), 2)],
            blocks: vec![BlockOffer {
                components: vec![name(ITEMS), name(FACING)],
                ..BlockOffer::new(name("game:chest"))
            }],
            dimensions: vec![name("game:arena")],
            ..Registration::default()
        })
        .unwrap();
    let missing = yard().names().registration(&there);
    there.register(&missing).unwrap();
    let (arrived, report) = yard().arrive(&there).unwrap();
    // One chest, and the sheep.
    assert_eq!(report.components_left.into_iter().collect::<Vec<_>>(), [(ITEMS.to_owned(), 2)]);
    assert_eq!(arrived.entities()[0].1.components().len(), 0);
    assert!(arrived.verify().is_empty());
    // That of the chest is in its chunk, and the sheep's comes beside it with the restore.
    let mut live = Memory::new(&there);
    let mut job = RestoreJob::new(Arc::new(arrived), &there, RestoreOptions::default()).unwrap();
    job.run(&mut live, &mut |_| {}).unwrap();
    let kept = around().chunks().iter().filter_map(|pos| {
        let chunk = live
            .lookup(ChunkAt::new(arena(&there), pos))
            .map_or_else(|never| match never {}, Lookup::here)?;
        let kept = KeptComponents::decode(chunk.side(STALE)?, None).expect("sound");
        Some(kept.iter().map(|(_, bytes)| bytes.to_vec()).collect::<Vec<_>>())
    });
    let mut kept: Vec<Vec<u8>> = kept.flatten().collect();
    kept.sort();
    let of_sheep =
        host(0).entities().next().and_then(|(_, sheep)| Some(sheep.components().next()?.1.to_vec()));
    assert!(kept.len() == 2 && kept.contains(&of_sheep.expect("it has some")), "{kept:?}");
}
