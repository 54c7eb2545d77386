//! Scenes of the tests: groups, full disks, cows, damaged rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, EntityId};
use cg_host::{Column, ColumnAt, HostOptions, Writes};
use cg_registry::ComponentOffer;
use cg_store::World;
use cg_store::engine::MemEngine;

use crate::maker::{Made, STONE, WATER, known, name, number, over, uniform};

/// As good as for ever.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// A host whose groups take this long.
pub(crate) fn grouped(group: Duration) -> Made {
    let options = HostOptions { group, ..HostOptions::default() };
    over(World::builder().in_memory().expect("memory"), options, known(0))
}

/// A host whose disk has as much room as the number says.
pub(crate) fn disk(held_bytes: usize, group: Duration) -> (Made, Arc<AtomicU64>) {
    let room = Arc::new(AtomicU64::new(u64::MAX));
    let free = Arc::clone(&room);
    let engine = MemEngine::new().with_free_bytes(move || free.load(Ordering::SeqCst));
    let world = World::builder().over(engine).expect("memory");
    let options = HostOptions { held_bytes, group, ..HostOptions::default() };
    (over(world, options, known(0)), room)
}

/// Leaves no room, and waits until the world has noticed.
pub(crate) fn fill_disk(room: &AtomicU64) {
    room.store(0, Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(1200));
}

/// Two sections of stone, with cows in the upper one.
pub(crate) fn with(made: &Made, at: ColumnAt, cows: &[u8]) -> Column {
    let mut column = uniform(at, &[STONE, STONE]);
    column.entities = cows.iter().map(|id| made.cow(*id)).collect();
    column
}

/// The cows of a column.
pub(crate) fn cows(column: &Column) -> Vec<u8> {
    column.entities.iter().map(|entity| entity.id.to_bytes()[0]).collect()
}

/// The id of a cow.
pub(crate) fn cow_id(id: u8) -> EntityId {
    EntityId::from_bytes([id; 16])
}

/// A column as it is stored, when all is written.
pub(crate) fn stored(made: &Made, at: ColumnAt) -> Option<Column> {
    made.host.flush().expect("written");
    made.host.load(&made.binding, at).expect("sound")
}

/// The number of the first cell.
pub(crate) fn first(column: &Column) -> u32 {
    number(&column.sections[0].layers[0], [0, 0, 0])
}

/// Gives a cow a component that the host does not know.
pub(crate) fn mood(made: &Made, id: u8) -> cg_format::ComponentId {
    let offer = ComponentOffer::variable(name("mod:mood"));
    let component = made.host.world().registry().register_component(offer).expect("new");
    let mut writes = Writes::new();
    writes.set_entity_component(cow_id(id), component, Some(vec![5]));
    made.host.commit(&mut writes, None).expect("it fits");
    component
}

/// Replaces the row of a chunk.
pub(crate) fn row(made: &Made, place: ChunkAt, bytes: Vec<u8>) {
    use cg_format::{Space, codec::Codec, frame::Draft};
    use cg_store::engine::{Batch, Level, Stamp};
    let mut batch = Batch::new();
    let draft = Draft::plain(Codec::None, 0, |out| out.extend(&bytes));
    batch.put(Space::ChunkL0, cg_format::key::chunk(place), draft, Stamp::Commit);
    made.host.world().engine().commit(batch, &[], Level::Process).expect("sound");
    made.host.world().cache().clear();
    made.host.forget();
}

/// Saves three sections, and damages the middle one.
pub(crate) fn damage(made: &Made) -> ChunkAt {
    made.save(&uniform(made.at, &[STONE, STONE, STONE]));
    made.host.flush().expect("sound");
    let place = ChunkAt::new(made.at.dimension, made.block(0, 16, 0).chunk());
    row(made, place, b"these bytes are no chunk".to_vec());
    place
}

/// Replaces the damaged row by a sound one.
pub(crate) fn repair(made: &Made, place: ChunkAt) {
    let schema = made.host.world().catalog().current_schema();
    let chunk = Chunk::filled(made.binding.block(WATER).expect("sound"), &schema).expect("sound");
    row(made, place, chunk.to_bytes());
    assert!(made.host.world().load(place).expect("sound").is_some(), "repaired");
}
