//! Content that no capture writes is refused.

use std::io::Cursor;
use std::sync::Arc;

use cg_format::codec::Codec;
use cg_format::entity::EntityPos;
use cg_format::{
    BlockBox, BlockId, BlockPos, ComponentId, ComponentShape, Editor as _, EntityTypeId, Limits,
};
use cg_registry::portable::{NamedBlock, NamedComponent};
use cg_registry::{BlockOffer, ComponentSpec};

use super::*;
use crate::file::{FileOptions, SnapshotFile};
use crate::kept::KeptWriter;
use crate::memory::Memory;
use crate::pack::PackWriter;
use crate::section::Prepared;
use crate::{CaptureOptions, RestoreJob, RestoreOptions, Unverifiable, capture};

const STONE: BlockId = BlockId::new(1);

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    let registration = Registration {
        blocks: [":air", "game:stone", "game:gold"].map(|text| BlockOffer::new(name(text))).into(),
        entities: vec![name("game:sheep")],
        dimensions: vec![name("game:arena")],
        sides: vec![name("game:light")],
        ..Registration::default()
    };
    catalog.register(&registration).expect("new names");
    catalog
}

fn host(catalog: &Catalog) -> (Memory, Region) {
    let region = Region::new(
        catalog.dimension("game:arena").expect("registered"),
        BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15)),
    );
    let mut host = Memory::new(catalog);
    host.fill(region.dimension(), region.area(), STONE).expect("known");
    (host, region)
}

fn at() -> ChunkAt {
    ChunkAt::default()
}

/// A snapshot of one section of stone, whose bytes are replaced by another chunk with a valid checksum.
fn forged(change: impl FnOnce(&mut Chunk, &Catalog)) -> Snapshot {
    let catalog = catalog();
    let (host, region) = host(&catalog);
    let snapshot = capture(&host, &catalog, region, &CaptureOptions::named("forged")).expect("captured");
    let mut chunk = snapshot.decode(at(), snapshot.kept.get(0).expect("one")).expect("sound");
    change(&mut chunk, &catalog);
    let Prepared { bytes, checksum, .. } = Prepared::new(&chunk);
    let mut kept = KeptWriter::default();
    kept.push(&bytes, checksum);
    Snapshot::new(snapshot.info, snapshot.names, snapshot.places, kept.finish(), snapshot.entities)
}

#[track_caller]
fn check_refused(snapshot: &Snapshot, expected: &str) {
    let bytes = snapshot.to_bytes(&FileOptions::default()).expect("nothing is lost");
    let file = SnapshotFile::open(Cursor::new(bytes), Limits::default());
    let read = file.and_then(|mut file| file.load(Unverifiable::Fail)).expect("the checksums are right");
    let found: Vec<String> = read.verify().iter().map(ToString::to_string).collect();
    assert_eq!(found, [expected]);
    let catalog = catalog();
    let (mut host, region) = host(&catalog);
    host.set_block(region.dimension(), BlockPos::new(1, 2, 3), BlockId::new(0)).expect("known");
    let mut job = RestoreJob::new(Arc::new(read), &catalog, RestoreOptions::default()).expect("it fits");
    assert_eq!(job.run(&mut host, &mut |_| {}).expect_err("forged").to_string(), expected);
    assert_eq!(host.block(region.dimension(), BlockPos::new(1, 2, 3)), Some(BlockId::new(0)));
}

#[test]
fn a_section_that_refers_to_entities_is_refused() {
    let forged = forged(|chunk, _| assert!(chunk.add_entity(EntityId::from_bytes([7; 16]))));
    check_refused(
        &forged,
        "chunk 0, 0, 0 of dimension 0: entity section: references to entities must be zero or absent, found 1 (at byte 0)",
    );
}

#[test]
fn a_section_whose_ids_have_no_names_is_refused() {
    let gold = BlockId::new(2);
    let of_gold = forged(|chunk, catalog| {
        chunk.set_block(cg_format::LocalPos::new(3, 3, 3), gold, &catalog.current_schema()).expect("known");
    });
    check_refused(
        &of_gold,
        "chunk 0, 0, 0 of dimension 0 uses the block 2, which the snapshot does not name",
    );
    let lit = forged(|chunk, catalog| {
        chunk.set_side(catalog.side_kind("game:light").expect("registered"), vec![1]);
    });
    check_refused(
        &lit,
        "chunk 0, 0, 0 of dimension 0 uses the side kind 2, which the snapshot does not name",
    );
}

/// The error of a reader for a snapshot with a changed sheep.
fn refused(change: impl FnOnce(&mut Snapshot)) -> String {
    let catalog = catalog();
    let (mut host, region) = host(&catalog);
    let kind = catalog.entity_type("game:sheep").expect("registered");
    let position = EntityPos::new(region.dimension(), BlockPos::new(1, 1, 1), [0.0; 3]).expect("a position");
    let sheep = Entity::new(kind, Owner::Chunk(at()), position);
    host.put_entity(EntityId::from_bytes([9; 16]), sheep).unwrap_or_else(|never| match never {});
    let mut snapshot = capture(&host, &catalog, region, &CaptureOptions::named("sheep")).expect("captured");
    assert_eq!(snapshot.entities.len(), 1);
    change(&mut snapshot);
    let bytes = snapshot.to_bytes(&FileOptions::default()).expect("nothing is lost");
    let opened = SnapshotFile::open(Cursor::new(bytes), Limits::default()).map(drop);
    opened.expect_err("no capture writes it").to_string()
}

#[test]
fn an_entity_that_was_not_captured_is_refused() {
    let no_name = "snapshot entities: entity kind is 0, allowed is a kind that has a name (at byte 20)";
    assert_eq!(refused(|snapshot| snapshot.names.entities.clear()), no_name);
    let elsewhere = "snapshot entities: entity is 0, allowed is an entity that stands in the box and belongs to one \
                     of its chunks (at byte 20)";
    let change = |change: fn(&mut Entity)| refused(|snapshot| change(&mut snapshot.entities[0].1));
    let far = |sheep: &mut Entity| {
        let position = EntityPos::new(at().dimension, BlockPos::new(1, 16, 1), [0.0; 3]);
        sheep.position = position.expect("a position");
    };
    assert_eq!(change(far), elsewhere);
    let other_chunk = |sheep: &mut Entity| {
        sheep.owner = Owner::Chunk(ChunkAt::new(at().dimension, cg_format::ChunkPos::constant(0, 1, 0)));
    };
    assert_eq!(change(other_chunk), elsewhere);
    let other_dimension = |sheep: &mut Entity| {
        sheep.owner = Owner::Chunk(ChunkAt::new(cg_format::Dimension::new(7), at().pos));
    };
    assert_eq!(change(other_dimension), elsewhere);
}

/// A file may contain a million unused names. A world that registered them would keep them permanently.
#[test]
fn names_that_nothing_uses_are_forgotten() {
    let catalog = catalog();
    let (mut host, region) = host(&catalog);
    let sheep = EntityId::from_bytes([3; 16]);
    let position = EntityPos::new(region.dimension(), BlockPos::new(1, 1, 1), [0.0; 3]).expect("a position");
    let kind = catalog.entity_type("game:sheep").expect("registered");
    let put = host.put_entity(sheep, Entity::new(kind, Owner::Chunk(at()), position));
    put.unwrap_or_else(|never| match never {});
    let honest = capture(&host, &catalog, region, &CaptureOptions::named("honest")).expect("captured");
    let mut forged = honest.clone();
    let gold = catalog.block_id("game:gold").expect("registered");
    let block = NamedBlock { name: name("game:gold"), opaque: true, components: vec![] };
    forged.names.blocks.insert(gold, block.into());
    forged.names.sides.insert(catalog.side_kind("game:light").expect("registered"), name("game:light"));
    forged.names.entities.insert(EntityTypeId::new(7), name("game:cow"));
    let spec = ComponentSpec { shape: ComponentShape::Variable, default_bytes: vec![], fields: vec![] };
    forged
        .names
        .components
        .insert(ComponentId::variable(0), NamedComponent { name: name("game:heat"), spec }.into());
    let bytes = forged.to_bytes(&FileOptions::default()).expect("written");
    let file = |bytes: &[u8]| SnapshotFile::open(Cursor::new(bytes.to_vec()), Limits::default());
    let mut read = file(&bytes).expect("sound").load(Unverifiable::Fail).expect("sound");
    assert_eq!(read.verify().len(), 0);
    assert_eq!(read.names.blocks.len(), 2);
    read.forget_unused_names();
    assert_eq!(read.names, honest.names);
    let mut again = honest.clone();
    again.forget_unused_names();
    assert_eq!(again, honest, "a capture names what it uses");

    let mut pack = PackWriter::new(Vec::new(), Codec::Lz4).expect("memory is left");
    pack.region(&forged).expect("whole chunks");
    let (bytes, _) = pack.finish().expect("memory is left");
    let (_, region) = crate::pack::check(&bytes[..], Limits::default()).expect("sound");
    let wanted = region.expect("there is one").registration(&Catalog::new());
    assert_eq!(wanted.blocks.iter().map(|block| block.name.as_str()).collect::<Vec<_>>(), ["game:stone"]);
    assert_eq!(wanted.entities, [name("game:sheep")]);
    assert_eq!((wanted.components.len(), wanted.sides.len(), wanted.dimensions.len()), (0, 0, 1));
}
