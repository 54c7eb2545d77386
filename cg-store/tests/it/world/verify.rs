//! Verification finds whatever is planted, and nothing in a sound world.

use super::*;
use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo};
use cg_format::entity::Reason;
use cg_format::{ClusterTier, Limits, Space, key};
use expect_test::{Expect, expect};

over_both_engines! {
    a_sound_world_of_all_tiers_is_clean
    a_quick_look_decodes_nothing
    an_orphaned_reference
    a_wrong_owner
    an_owner_that_does_not_know_it
    an_entity_in_two_chunks
    a_version_from_the_future
    a_slot_from_the_future
    a_shadow_that_is_newer_than_what_hides_it
    a_key_that_nobody_knows
    a_chunk_that_does_not_decode
    a_block_that_was_never_issued
    a_chunk_in_a_dimension_that_was_never_issued
    side_data_of_a_kind_that_was_never_issued
    an_entity_type_that_was_never_issued
    a_map_that_says_something_else_than_the_chunks
    a_map_that_nobody_can_judge
    an_entity_in_dimensions_that_were_never_issued
    components_of_an_entity_that_do_not_fit_the_registry
    an_entity_of_an_unknown_schema_generation
    a_reference_from_a_cold_chunk_names_its_row
    what_is_damaged_says_what_helps
    a_registry_that_cannot_be_read
    a_quarantined_row_under_another_commit
}

/// A sound world with a chunk and a cow in it.
fn base(world: &World) -> (Ids, ChunkAt) {
    let ids = Ids::register(world);
    let a = ids.at(1, 2, 3);
    save(world, [(a, marked(world, &ids, 1))]);
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(a));
        Ok::<_, Error>(())
    });
    put.expect("puts");
    assert_sound(world);
    (ids, a)
}

#[track_caller]
fn found(world: &World, expected: Expect) {
    expected.assert_eq(&findings(world).join("\n"));
}

fn put_chunk(at: ChunkAt, chunk: &Chunk) -> (Space, Vec<u8>, Option<Draft>) {
    (Space::ChunkL0, key::chunk(at).to_vec(), Some(Draft::plain(Codec::None, 0, |out| chunk.encode(out))))
}

fn put_entity(id: EntityId, entity: &Entity) -> (Space, Vec<u8>, Option<Draft>) {
    (Space::Entity, key::entity(id).to_vec(), Some(Draft::plain(Codec::None, 0, |out| entity.encode(out))))
}

fn a_sound_world_of_all_tiers_is_clean(world: &World) {
    let (ids, a) = base(world);
    let (b, c, gone) = (ids.at(-1, 0, 0), ids.at(-20, 0, 0), ids.at(40, 0, 0));
    save(world, [b, c, gone].map(|at| (at, filled(world, ids.machine))));
    demote(world, ClusterTier::L1, &[b], true);
    demote(world, ClusterTier::L2, &[c, gone], false);
    save(world, [(b, marked(world, &ids, 4))]);
    world
        .transaction(|tx| {
            tx.delete(gone);
            tx.set_property(Property::Named(name("game:note")), Some(vec![1]));
            tx.set_property(Property::Key, Some(vec![1; 16]));
            Ok::<_, Error>(())
        })
        .expect("commits");
    world.opacity().fold(1).expect("folds");
    let mut calls = 0;
    let report = world.verify(VerifyDepth::Full, |_| calls += 1).expect("verifies");
    assert!(report.is_ok(), "{:?}", report.findings);
    assert_eq!(calls, 0, "progress is told every 1024 rows");
    let checked = |what: &str| report.checked.get(what).copied().unwrap_or(0);
    assert_eq!((checked("chunks"), checked("references"), checked("entity")), (3, 1, 1));
    assert_eq!((checked("chunkl0"), checked("chunkl1"), checked("chunkl2")), (3, 1, 2), "{a}");
}

fn a_quick_look_decodes_nothing(world: &World) {
    let (ids, a) = base(world);
    plant(world, [(Space::ChunkL0, key::chunk(ids.at(0, 0, 0)).to_vec(), Some(plain(b"no chunk")))]);
    let before = world.metrics().stats;
    let report = world.verify(VerifyDepth::Quick, |_| {}).expect("verifies");
    assert!(report.is_ok(), "the frame is sound: {:?}", report.findings);
    assert_eq!((world.metrics().stats - before).chunks_decoded, 0, "{a}");
    assert_eq!(findings(world).len(), 1);
}

fn an_orphaned_reference(world: &World) {
    let (_, _) = base(world);
    plant(world, [(Space::Entity, key::entity(uuid(1)).to_vec(), None)]);
    found(
        world,
        expect![
            "chunkl0: chunk 1, 2, 3 of dimension 0 refers to entity 00000000-0000-0000-0000-000000000001, which is not stored or damaged"
        ],
    );
}

fn a_wrong_owner(world: &World) {
    let (ids, _) = base(world);
    let b = ids.at(5, 5, 5);
    save(world, [(b, filled(world, ids.air))]);
    plant(world, [put_entity(uuid(1), &ids.cow_in(b))]);
    found(
        world,
        expect![
            "entity: its owner is chunk 5, 5, 5 of dimension 0, but chunk 1, 2, 3 of dimension 0 refers to it"
        ],
    );
}

fn an_owner_that_does_not_know_it(world: &World) {
    let (ids, a) = base(world);
    let detached = Owner::Detached(Reason::new("lost").expect("short"));
    plant(
        world,
        [
            put_entity(uuid(1), &ids.cow_in(a).owned_by(detached)),
            put_entity(uuid(2), &ids.cow_in(ids.at(9, 9, 9))),
        ],
    );
    found(
        world,
        expect![[r"
        entity: its owner is no chunk, but chunk 1, 2, 3 of dimension 0 refers to it
        entity: its owner is chunk 9, 9, 9 of dimension 0, but no chunk refers to it"]],
    );
}

fn an_entity_in_two_chunks(world: &World) {
    let (ids, _) = base(world);
    let mut twin = filled(world, ids.glass);
    twin.add_entity(uuid(1));
    plant(world, [put_chunk(ids.at(5, 5, 5), &twin)]);
    found(
        world,
        expect![[r"
        chunkl0: entity 00000000-0000-0000-0000-000000000001 is referred to by chunk 1, 2, 3 of dimension 0 too
        entity: its owner is chunk 1, 2, 3 of dimension 0, but chunk 5, 5, 5 of dimension 0 refers to it"]],
    );
}

fn a_version_from_the_future(world: &World) {
    let (_, a) = base(world);
    let mut batch = Batch::new();
    let chunk = world.load(a).expect("loads").expect("is there");
    let draft = Draft::plain(Codec::None, 0, |out| chunk.encode(out));
    batch.put(Space::ChunkL0, key::chunk(a), draft, Stamp::Keep(1000));
    world.engine().commit(batch, &[], Level::Process).expect("commits");
    found(world, expect!["chunkl0: version 1000 is newer than the last commit, 6"]);
}

/// Plants a chunk in a cluster under any version.
fn put_slot(world: &World, tier: ClusterTier, at: ChunkAt, version: u64, value: Vec<u8>) {
    let mut builder = ClusterBuilder::new(tier);
    builder.put(Slot::of(at.pos, tier), SlotInfo { version, schema_generation: 0 }, value);
    let draft = builder.finish(&mut Limits::default()).expect("is formed").expect("holds a chunk");
    let row = key::cluster(at.dimension, at.pos.cluster(tier)).to_vec();
    plant(world, [(Space::of_cluster(tier), row, Some(draft))]);
}

fn a_slot_from_the_future(world: &World) {
    let (ids, _) = base(world);
    put_slot(world, ClusterTier::L1, ids.at(20, 0, 0), 1000, filled(world, ids.glass).to_bytes());
    found(
        world,
        expect!["chunkl1: chunk 20, 0, 0 of dimension 0 has version 1000, newer than the last commit, 6"],
    );
}

fn a_shadow_that_is_newer_than_what_hides_it(world: &World) {
    let (ids, a) = base(world);
    let last = world.last_commit().get();
    // Below the hot copy, which is as old as the last commit but one.
    put_slot(world, ClusterTier::L1, a, last + 1, filled(world, ids.stone).to_bytes());
    put_slot(world, ClusterTier::L2, a, last + 2, filled(world, ids.stone).to_bytes());
    found(
        world,
        expect![[r"
        chunkl1: chunk 1, 2, 3 of dimension 0 has version 6, but a hotter copy with version 5 hides it
        chunkl2: chunk 1, 2, 3 of dimension 0 has version 7, but a hotter copy with version 5 hides it"]],
    );
}

fn a_key_that_nobody_knows(world: &World) {
    base(world);
    plant(
        world,
        [
            (Space::OpacityTile, vec![1; 7], Some(plain(b""))),
            (Space::Quarantine, vec![200, 1, 2], Some(plain(b""))),
            (Space::ChunkL0, vec![3; 5], Some(plain(b""))),
        ],
    );
    found(
        world,
        expect![[r"
        chunkl0: key: dimension needs 8 bytes and 5 are left (at byte 0)
        opacityMap: a key that this release does not know; the row is left alone
        index: a key that this release does not know; the row is left alone"]],
    );
}

fn a_chunk_that_does_not_decode(world: &World) {
    let (ids, _) = base(world);
    plant(world, [(Space::ChunkL0, key::chunk(ids.at(0, 0, 0)).to_vec(), Some(plain(b"no chunk")))]);
    put_slot(world, ClusterTier::L2, ids.at(50, 0, 0), 1, b"no chunk either".to_vec());
    found(
        world,
        expect![[r"
            chunkl0: chunk 0, 0, 0 of dimension 0 is damaged (ChunkL0 row 0000000000000000e00000000000000000000000000000000000000000000000): chunk header: format version is 7741253900696579950, and this release reads up to 1; use a newer release (at byte 0); restore it from a checkpoint or set it aside with `cg quarantine`
            chunkl2: chunk 50, 0, 0 of dimension 0 is damaged (ClusterL2 row 0000000000000000e00000000000000000000000000000000000000000000024): chunk header: format version is 7741253900696579950, and this release reads up to 1; use a newer release (at byte 0); restore it from a checkpoint or set its chunks aside with `cg quarantine`"]],
    );
}

fn a_block_that_was_never_issued(world: &World) {
    let (ids, _) = base(world);
    let strange = Chunk::filled(BlockId::new(77), &cg_format::schema::NoComponents).expect("any block");
    plant(world, [put_chunk(ids.at(0, 0, 0), &strange)]);
    found(world, expect!["chunkl0: block id 77 was never issued"]);
}

fn a_chunk_in_a_dimension_that_was_never_issued(world: &World) {
    let (ids, a) = base(world);
    let nowhere = ChunkAt::new(Dimension::new(9), a.pos);
    plant(world, [put_chunk(nowhere, &filled(world, ids.glass))]);
    found(world, expect!["chunkl0: dimension 9 was never issued"]);
}

fn side_data_of_a_kind_that_was_never_issued(world: &World) {
    let (ids, _) = base(world);
    let mut chunk = filled(world, ids.glass);
    chunk.set_side(SideKind::new(40), vec![1]);
    plant(world, [put_chunk(ids.at(0, 0, 0), &chunk)]);
    found(world, expect!["chunkl0: kind 40 of side data was never issued"]);
}

fn an_entity_type_that_was_never_issued(world: &World) {
    let (ids, a) = base(world);
    let mut cow = ids.cow_in(a);
    cow.kind = EntityTypeId::new(50);
    plant(world, [put_entity(uuid(1), &cow)]);
    found(world, expect!["entity: entity type 50 was never issued"]);
}

fn a_quarantined_row_under_another_commit(world: &World) {
    base(world);
    let next = world.last_commit().next().get();
    plant(world, [(Space::Quarantine, key::quarantine(Space::Entity, b"row", next), Some(plain(b"kept")))]);
    assert_sound(world);
    plant(world, [(Space::Quarantine, key::quarantine(Space::Entity, b"row", 3), Some(plain(b"kept")))]);
    found(world, expect!["index: its key says that commit 3 set it aside, its frame says 7"]);
}

fn an_entity_in_dimensions_that_were_never_issued(world: &World) {
    let (ids, a) = base(world);
    let elsewhere = ids.cow_in(ChunkAt::new(Dimension::new(9), a.pos));
    let detached = Owner::Detached(Reason::new("lost").expect("short"));
    plant(
        world,
        [put_entity(uuid(2), &elsewhere.clone().owned_by(detached)), put_entity(uuid(3), &elsewhere)],
    );
    found(
        world,
        expect![[r"
        entity: dimension 9 of its position was never issued
        entity: dimension 9 of its position was never issued
        entity: dimension 9 of its owner was never issued
        entity: its owner is chunk 1, 2, 3 of dimension 9, but no chunk refers to it"]],
    );
}

fn components_of_an_entity_that_do_not_fit_the_registry(world: &World) {
    let (ids, a) = base(world);
    let mut cow = ids.cow_in(a);
    cow.set_component(ids.items, vec![1; 77]).expect("short");
    cow.set_component(ids.power, vec![1; 4]).expect("short");
    plant(world, [put_entity(uuid(1), &cow)]);
    assert_sound(world);
    cow.set_component(ids.power, vec![1; 3]).expect("short");
    cow.set_component(ComponentId::fixed(60), vec![1]).expect("short");
    // The number of a component that there is, with the other shape.
    cow.set_component(ComponentId::variable(ids.power.index()), vec![1; 4]).expect("short");
    plant(world, [put_entity(uuid(1), &cow)]);
    found(
        world,
        expect![[r"
        entity: component `game:power` has 3 bytes, its schema says 4
        entity: component 0x3c was never issued
        entity: component 0x8000000000000000 was never issued"]],
    );
}

fn an_entity_of_an_unknown_schema_generation(world: &World) {
    let (ids, a) = base(world);
    let cow = ids.cow_in(a);
    let draft = Draft::plain(Codec::None, 3, |out| cow.encode(out));
    plant(world, [(Space::Entity, key::entity(uuid(1)).to_vec(), Some(draft))]);
    found(world, expect!["entity: its schema generation is 3, the registry has up to 0"]);
}

fn a_reference_from_a_cold_chunk_names_its_row(world: &World) {
    let (_, a) = base(world);
    demote(world, ClusterTier::L2, &[a], false);
    plant(world, [(Space::Entity, key::entity(uuid(1)).to_vec(), None)]);
    let report = world.verify(VerifyDepth::Full, |_| {}).expect("verifies");
    let row = key::cluster(a.dimension, a.pos.cluster(ClusterTier::L2));
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!((finding.space, finding.key.as_slice()), (Some(Space::ClusterL2), &row[..]));
}

fn what_is_damaged_says_what_helps(world: &World) {
    let (ids, a) = base(world);
    let b = ids.at(9, 9, 9);
    let rows = [
        (Space::ChunkL0, key::chunk(b).to_vec()),
        (Space::ClusterL1, key::cluster(b.dimension, b.pos.cluster(ClusterTier::L1)).to_vec()),
        (Space::Entity, key::entity(uuid(9)).to_vec()),
        (Space::OpacityPatch, key::opacity_patch(a).to_vec()),
    ];
    plant(world, rows.map(|(space, row)| (space, row, Some(plain(b"spoilt")))));
    let report = world.verify(VerifyDepth::Full, |_| {}).expect("verifies");
    let said: Vec<_> = report.findings.into_iter().map(|finding| finding.what).collect();
    assert!(said.iter().all(|what| !what.contains("cg verify")), "{said:?}");
    let helps = said.iter().map(|what| what.rsplit("; ").next().unwrap_or_default());
    expect![[r"
        restore it from a checkpoint or set its chunks aside with `cg quarantine`
        restore it from a checkpoint or set it aside with `cg quarantine`
        `cg opacity rebuild` draws the map anew
        restore it from a checkpoint or set it aside with `cg quarantine`"]]
    .assert_eq(&helps.collect::<Vec<_>>().join("\n"));
}

fn a_registry_that_cannot_be_read(world: &World) {
    base(world);
    plant(world, [(Space::WorldMeta, b"blocks".to_vec(), Some(plain(b"spoilt")))]);
    found(
        world,
        expect![
            "worldMeta: ids, chunks and references were not checked, for the registry cannot be read: the world's registry is damaged: row `blocks`: name list: name count needs 8 bytes and 6 are left (at byte 0); restore it from a backup"
        ],
    );
}

fn a_map_that_says_something_else_than_the_chunks(world: &World) {
    let (ids, a) = base(world);
    save(world, [(ids.at(4, 0, 0), filled(world, ids.stone)), (ids.at(-1, 0, 0), filled(world, ids.glass))]);
    world.opacity().fold(usize::MAX).expect("folds");
    let lines = |bits: u16| plain(&[bits.to_le_bytes(); 256].concat());
    let outside = [&[0; 8][..], &cg_format::morton::encode_2d([0, i64::MIN])].concat();
    let engine = world.engine();
    let stone = engine.get(Space::OpacityTile, &key::opacity_tile(a)).expect("reads").expect("is there");
    let stone = stone[cg_format::frame::LEN_BYTES..].to_vec();
    plant(
        world,
        [
            // A patch that hides too little, stripes over glass, a tile that is gone, and two over nothing.
            (Space::OpacityPatch, key::opacity_patch(a).to_vec(), Some(plain(&[0]))),
            (Space::OpacityPatch, key::opacity_patch(ids.at(-1, 0, 0)).to_vec(), Some(lines(0x5555))),
            (Space::OpacityTile, key::opacity_tile(ids.at(4, 0, 0)).to_vec(), None),
            (Space::OpacityTile, key::opacity_tile(ids.at(90, 0, 0)).to_vec(), Some(plain(&stone))),
            (Space::OpacityTile, outside, Some(plain(&stone))),
        ],
    );
    found(
        world,
        expect![[r"
        opacityMap: the opacity map is wrong in 256 columns of the tile, first at x -16, z 0 of dimension 0: it says opaque at y 0 to 0, 2 to 2, 4 to 4, 5 more, and by the chunks it is nowhere; it is a cache and no chunk is at fault: run `cg opacity rebuild`
        opacityMap: the opacity map is wrong in 1 column of the tile, first at x 16, z 49 of dimension 0: it says opaque nowhere, and by the chunks it is at y 32 to 32; it is a cache and no chunk is at fault: run `cg opacity rebuild`
        opacityMap: the opacity map is wrong in 256 columns of the tile, first at x 64, z 0 of dimension 0: it says opaque nowhere, and by the chunks it is at y 0 to 15; it is a cache and no chunk is at fault: run `cg opacity rebuild`
        opacityMap: the opacity map has a tile over which no chunk can lie; it is a cache and no chunk is at fault: run `cg opacity rebuild`
        opacityMap: the opacity map is wrong in 1 column of the tile, first at x 1424, z 49 of dimension 0: it says opaque at y 32 to 32, and by the chunks it is nowhere; it is a cache and no chunk is at fault: run `cg opacity rebuild`"]],
    );
    let report = world.verify(VerifyDepth::Quick, |_| {}).expect("verifies");
    assert!(report.is_ok(), "a quick look does not compare: {:?}", report.findings);
    assert_eq!(world.opacity().rebuild().expect("draws"), 5);
    assert_sound(world);
}

fn a_map_that_nobody_can_judge(world: &World) {
    let (ids, a) = base(world);
    let b = ids.at(2, 2, 3);
    save(world, [(b, filled(world, ids.stone))]);
    // Under one chunk of the tile lies damage, of which the map may say anything; beside it a patch lies.
    plant(world, [(Space::ChunkL0, key::chunk(b).to_vec(), Some(plain(b"no chunk")))]);
    assert_eq!(findings(world).len(), 1, "{:?}", findings(world));
    plant(world, [(Space::OpacityPatch, key::opacity_patch(a).to_vec(), Some(plain(&[1])))]);
    let said = findings(world);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[1].starts_with(
            "opacityMap: the opacity map is wrong in 256 columns of the tile, first at x 16, z 48"
        ),
        "{said:?}"
    );

    // Rows of a map that the world does not keep mean nothing.
    let off = WorldOptions { opacity: cg_store::opacity::Keep::Off, ..options() };
    let blind = World::builder().options(&off).in_memory().expect("a world");
    let ids = Ids::register(&blind);
    save(&blind, [(ids.at(0, 0, 0), filled(&blind, ids.stone))]);
    assert_sound(&blind);
    plant(&blind, [(Space::OpacityPatch, key::opacity_patch(ids.at(7, 0, 0)).to_vec(), Some(plain(&[1])))]);
    assert_sound(&blind);
}
