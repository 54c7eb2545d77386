//! The content hash: one number for what a world holds, whatever the tiers, the order of writes and the issued ids.
//!
//! Every chunk, entity, property, object and spatial record is written as one record in which names replace ids. The
//! SHA-256 digests of all records are added modulo 2^256. A sum does not depend on order, and a record does not depend
//! on its place. Versions are not content: neither those of chunks nor those of objects.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::key::{self, Family};
use cg_format::record::RecordView;
use cg_format::wire::{Reader, Writer};
use cg_format::{BlockArea, ChunkAt, DecodeError, Dimension, RecordId, Section, Space};
use cg_registry::{Catalog, ListKind};
use sha2::{Digest, Sha256};

use crate::admin::Admin;
use crate::engine::{ALL_KEYS, Readable, ReadableExt as _};
use crate::kinds::object;
use crate::kinds::property::Property;
use crate::kinds::record::{scan_area, scan_records};
use crate::read::chunk::{Area, decode};
use crate::storage::error::{ConflictKey, Damage, Error};
use crate::storage::meta::open_row;

/// The hash of a world's content, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash(pub [u8; 32]);

impl std::fmt::Display for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Admin<'_> {
    /// Adds the chunks of an area, and calls `also` with each.
    fn hash_chunks(
        &self,
        view: &dyn Readable,
        catalog: &Catalog,
        area: Area<'_>,
        sum: &mut Sum,
        mut also: impl FnMut(ChunkAt, &Chunk),
    ) -> Result<(), Error> {
        let mut value = Vec::new();
        let failed = self.read.walk(view, area, |stored| {
            let hashed = stored.and_then(|stored| {
                let chunk = self.read.decode(catalog, stored)?;
                value.clear();
                chunk.encode(&mut value);
                let record = chunk_record(catalog, stored.at, &chunk, &value)
                    .map_err(|problem| decode::damage(stored, problem))?;
                sum.add(&record);
                also(stored.at, &chunk);
                Ok(())
            });
            match hashed {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}

/// Writes a chunk with names. Its canonical bytes contain ids only in the palette, in components and in side kinds. The
/// packed cells between palette and components are the same in every world.
fn chunk_record(catalog: &Catalog, at: ChunkAt, chunk: &Chunk, value: &[u8]) -> Result<Record, DecodeError> {
    let mut record = Record::new("chunk");
    record.position(catalog, at);
    let mut reader = Reader::new(value, Section::ChunkHeader);
    reader.take("format version", 8)?;
    let component_offset_bytes = reader.u64("component offset")?;
    reader.take("entity offset", 8)?;
    reader.take("layered block count", 8)?;
    let palette_count = reader.u64("block palette count")?;
    for _ in 0..palette_count {
        record.name(catalog.block_name(cg_format::BlockId::new(reader.u64("block palette")?)));
    }
    let cells = component_offset_bytes.saturating_sub(reader.offset_bytes());
    record.bytes(reader.take_items("cells", cells, 1)?);
    let mut components: BTreeMap<&str, Record> = BTreeMap::new();
    for (component, place, bytes) in chunk.components() {
        let name = catalog.component_name(component).map_or("", |name| name.as_str());
        let column = components.entry(name).or_insert_with(|| Record::new(name));
        column.bytes(&[place.layer]);
        column.bytes(&place.cell.index().to_le_bytes());
        column.bytes(bytes);
    }
    record.records(components.into_values());
    for id in chunk.entities() {
        record.bytes(&id.to_bytes());
    }
    let mut sides: BTreeMap<&str, Record> = BTreeMap::new();
    for (kind, bytes) in chunk.sides() {
        let name = catalog.list(ListKind::Sides).name(kind.get().into()).map_or("", |name| name.as_str());
        let mut side = Record::new(name);
        side.bytes(bytes);
        sides.insert(name, side);
    }
    record.records(sides.into_values());
    Ok(record)
}

fn entity_record(catalog: &Catalog, id: cg_format::EntityId, entity: &Entity) -> Record {
    let mut record = Record::new("entity");
    record.bytes(&id.to_bytes());
    record.name(catalog.list(ListKind::Entities).current_name(entity.kind.get()));
    match &entity.owner {
        Owner::Chunk(at) => record.position(catalog, *at),
        Owner::Detached(reason) => record.bytes(reason.as_str().as_bytes()),
    }
    record.point(catalog, entity.position);
    let mut components: BTreeMap<&str, Record> = BTreeMap::new();
    for (component, bytes) in entity.components() {
        let name = catalog.component_name(component).map_or("", |name| name.as_str());
        let mut column = Record::new(name);
        column.bytes(bytes);
        components.insert(name, column);
    }
    record.records(components.into_values());
    record
}

fn spatial_record(catalog: &Catalog, id: RecordId, view: &RecordView<'_>) -> Record {
    let mut record = Record::new("spatial record");
    record.bytes(&id.to_bytes());
    record.point(catalog, view.position);
    record.bytes(&view.timestamp.to_le_bytes());
    record.bytes(view.kind.as_bytes());
    record.bytes(view.payload);
    record
}

/// The bytes of one record: fields, each after its length, so that different lists of fields have different bytes.
#[derive(Default)]
struct Record(Vec<u8>);

impl Record {
    fn new(kind: &str) -> Self {
        let mut record = Self::default();
        record.bytes(kind.as_bytes());
        record
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let mut writer = Writer::new(&mut self.0);
        writer.u64(bytes.len() as u64);
        writer.bytes(bytes);
    }

    fn name(&mut self, name: Option<&cg_registry::Name>) {
        self.bytes(name.map_or("", |name| name.as_str()).as_bytes());
    }

    fn position(&mut self, catalog: &Catalog, at: ChunkAt) {
        self.name(catalog.list(ListKind::Dimensions).current_name(at.dimension.get()));
        for c in [at.pos.x(), at.pos.y(), at.pos.z()] {
            self.bytes(&c.to_le_bytes());
        }
    }

    fn point(&mut self, catalog: &Catalog, at: EntityPos) {
        let block = at.block();
        self.name(catalog.list(ListKind::Dimensions).current_name(at.dimension().get()));
        for c in [block.x, block.y, block.z] {
            self.bytes(&c.to_le_bytes());
        }
        for f in at.fraction() {
            self.bytes(&f.to_le_bytes());
        }
    }

    fn records(&mut self, records: impl ExactSizeIterator<Item = Self>) {
        self.bytes(&(records.len() as u64).to_le_bytes());
        for record in records {
            self.bytes(&record.0);
        }
    }
}

/// A sum of digests modulo 2^256, least significant limb first.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    limbs: [u64; 4],
    count: u64,
}

impl Sum {
    fn add(&mut self, record: &Record) {
        let digest: [u8; 32] = Sha256::digest(&record.0).into();
        let mut carry = false;
        for (limb, bytes) in self.limbs.iter_mut().zip(digest.chunks_exact(8)) {
            let bytes = bytes.try_into().expect("chunks of 8 bytes");
            let (sum, over) = limb.overflowing_add(u64::from_le_bytes(bytes));
            let (sum, over_again) = sum.overflowing_add(carry.into());
            (*limb, carry) = (sum, over || over_again);
        }
        self.count += 1;
    }

    pub(crate) fn finish(self) -> ContentHash {
        let mut all = Record::new("cherrygrove content 1");
        all.bytes(&self.count.to_le_bytes());
        for limb in self.limbs {
            all.bytes(&limb.to_le_bytes());
        }
        ContentHash(Sha256::digest(&all.0).into())
    }
}

impl Admin<'_> {
    /// See [`World::content_hash`](crate::World::content_hash).
    pub(crate) fn content_hash(&self, area: Area<'_>) -> Result<ContentHash, Error> {
        let mut sum = Sum::default();
        self.add_content(&self.shared.registry.catalog(), area, &|_| false, &mut sum)?;
        Ok(sum.finish())
    }

    /// Adds what the world holds in an area, by the names of a catalog that has all of the world's, but for what `leave_out`
    /// says of properties and spatial records.
    pub(crate) fn add_content(
        &self,
        catalog: &Catalog,
        area: Area<'_>,
        leave_out: &dyn Fn(&ConflictKey) -> bool,
        sum: &mut Sum,
    ) -> Result<(), Error> {
        match area {
            Area::World => self.add_all(catalog, leave_out, sum),
            Area::Box(dimension, area) => {
                self.add_area(catalog, dimension, &area.blocks().into(), leave_out, sum)
            }
            Area::Blocks(dimension, area) => self.add_area(catalog, dimension, area, leave_out, sum),
        }
    }

    fn add_all(
        &self,
        catalog: &Catalog,
        leave_out: &dyn Fn(&ConflictKey) -> bool,
        sum: &mut Sum,
    ) -> Result<(), Error> {
        let engine = self.commit.drained_engine()?;
        let view = engine.snapshot()?;
        self.hash_chunks(&view, catalog, Area::World, sum, |_, _| {})?;
        view.try_scan(Family::Entity, ALL_KEYS, |key, row| -> Result<(), Error> {
            let id = key::decode_entity(key)
                .map_err(|problem| Damage::of_row(Space::Entity, key, "an entity", problem))?;
            let entity = self.read.decode_entity(catalog, id, row)?;
            sum.add(&entity_record(catalog, id, &entity));
            Ok(())
        })?;
        for (family, space) in
            [(Family::WorldMeta, Space::WorldMeta), (Family::WorldProperties, Space::WorldProperty)]
        {
            view.try_scan(family, ALL_KEYS, |key, row| -> Result<(), Error> {
                if space == Space::WorldMeta && !Property::is_own(key) {
                    return Ok(());
                }
                if str::from_utf8(key).is_ok_and(|name| leave_out(&ConflictKey::Property(name.to_owned()))) {
                    return Ok(());
                }
                let bytes = open_row(space, key, row, || "a property", |frame| Ok(frame.payload()))?;
                let mut record = Record::new("property");
                record.bytes(&[space.byte()]);
                record.bytes(key);
                record.bytes(bytes);
                sum.add(&record);
                Ok(())
            })?;
        }
        view.try_scan(Family::Object, ALL_KEYS, |key, row| -> Result<(), Error> {
            if let Some(bytes) = object::decode(key, row)?.bytes {
                let mut record = Record::new("object");
                record.bytes(key);
                record.bytes(bytes);
                sum.add(&record);
            }
            Ok(())
        })?;
        let failed = scan_records(&view, |record| match record {
            Ok((id, record)) => {
                if !leave_out(&ConflictKey::Record(id)) {
                    sum.add(&spatial_record(catalog, id, &record));
                }
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn add_area(
        &self,
        catalog: &Catalog,
        dimension: Dimension,
        area: &BlockArea,
        leave_out: &dyn Fn(&ConflictKey) -> bool,
        sum: &mut Sum,
    ) -> Result<(), Error> {
        let engine = self.commit.drained_engine()?;
        let view = engine.snapshot()?;
        let mut owned = Vec::new();
        self.hash_chunks(&view, catalog, Area::Blocks(dimension, area), sum, |at, chunk| {
            owned.extend(chunk.entities().iter().map(|id| (*id, at)));
        })?;
        // Sorted by id, because their rows are adjacent in that order.
        owned.sort_unstable();
        for (id, at) in owned {
            let Some(row) = view.get(Space::Entity, &key::entity(id))? else { continue };
            let entity = self.read.decode_entity(catalog, id, &row)?;
            if entity.owner == Owner::Chunk(at) {
                sum.add(&entity_record(catalog, id, &entity));
            }
        }
        let blocks = area.whole_chunks();
        let failed =
            scan_area(&view, &[], self.shared.record_shape, dimension, &blocks, |record| match record {
                Ok((id, record)) => {
                    if blocks.contains(record.position.block()) && !leave_out(&ConflictKey::Record(id)) {
                        sum.add(&spatial_record(catalog, id, &record));
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => ControlFlow::Break(error),
            })?;
        failed.map_or(Ok(()), Err)
    }
}
