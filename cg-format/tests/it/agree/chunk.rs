//! Chunks against the naive ones: built, decoded, viewed, and mutated.

use std::collections::BTreeMap;

use cg_format::chunk::{CellLayer, Chunk, ChunkView};
use cg_format::{BlockId, CellOrder, ComponentId, ComponentShape, EntityId, LocalPos, SchemaView, SideKind};
use proptest::prelude::*;

use crate::long::size;
use crate::naive::chunk::{CELLS, Chunk as Naive, Parts};
use crate::naive::{self, Dice, Schema, hex};

// The adapter: everything below this section speaks of naive chunks and of bytes.

/// A naive schema as a codec asks for it.
struct Known {
    naive: Schema,
    lists: BTreeMap<u64, Vec<ComponentId>>,
}

impl Known {
    fn new(naive: &Schema) -> Self {
        let ids = |list: &Vec<u64>| list.iter().map(|id| ComponentId::new(*id)).collect();
        let lists = naive.blocks.iter().map(|(block, list)| (*block, ids(list))).collect();
        Self { naive: naive.clone(), lists }
    }
}

impl SchemaView for Known {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        self.lists.get(&block.get()).map(Vec::as_slice)
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        Some(match self.naive.components.get(&component.get())? {
            Some(width_bytes) => ComponentShape::Fixed { width_bytes: *width_bytes },
            None => ComponentShape::Variable,
        })
    }

    fn default_bytes(&self, component: ComponentId) -> &[u8] {
        const ZEROS: [u8; 16] = [0; 16];
        let width = self.naive.components.get(&component.get()).copied().flatten().unwrap_or(0);
        &ZEROS[..width as usize]
    }

    fn is_opaque(&self, _: BlockId) -> bool {
        true
    }
}

fn pos(cell: u16) -> LocalPos {
    LocalPos::from_index(cell).expect("below 4096")
}

fn slot(cell: u16, layer: u8) -> CellLayer {
    CellLayer::new(pos(cell), layer)
}

/// The same chunk, built by editing.
fn built(naive: &Naive, known: &Known) -> Chunk {
    let lowest: Vec<BlockId> = naive.cells.iter().map(|layers| BlockId::new(layers[0])).collect();
    let lowest: Box<[BlockId; CELLS]> = lowest.try_into().expect("a kind for each cell");
    let mut chunk = Chunk::from_blocks(&lowest, CellOrder::Xyz, known).expect("known blocks");
    for (cell, layers) in naive.cells.iter().enumerate() {
        for block in &layers[1..] {
            chunk.push_layer(pos(cell as u16), BlockId::new(*block), known).expect("room for a layer");
        }
    }
    for ((cell, layer, component), bytes) in &naive.components {
        chunk
            .set_component(slot(*cell, *layer), ComponentId::new(*component), bytes)
            .expect("the block has the component");
    }
    for entity in &naive.entities {
        assert!(chunk.add_entity(EntityId::from_bytes(*entity)), "entities differ");
    }
    for (kind, bytes) in &naive.sides {
        chunk.set_side(SideKind::new(*kind), bytes.clone());
    }
    chunk
}

fn encoded(chunk: &Chunk) -> Vec<u8> {
    let mut out = Vec::new();
    chunk.encode(&mut out);
    out
}

/// Everything of a chunk that can be asked for, as a naive chunk; without what the schema could not read.
fn listed(chunk: &Chunk) -> Naive {
    let layers = |cell| {
        let block = |layer| chunk.layer(pos(cell), layer as u8).expect("below the layer count").get();
        (0..chunk.layer_count(pos(cell))).map(block).collect()
    };
    let component = |(component, slot, bytes): (ComponentId, CellLayer, &[u8])| {
        ((slot.cell.index(), slot.layer, component.get()), bytes.to_vec())
    };
    Naive {
        cells: (0..CELLS as u16).map(layers).collect(),
        components: chunk.components().map(component).collect(),
        unread: Vec::new(),
        entities: chunk.entities().iter().map(|id| id.to_bytes()).collect(),
        sides: chunk.sides().map(|(kind, bytes)| (kind.get(), bytes.to_vec())).collect(),
    }
}

// The laws.

/// Our decoder and our view read what the naive decoder reads, and refuse what it refuses. Tells which.
#[track_caller]
fn check(bytes: &[u8], schema: &Schema) -> bool {
    let known = Known::new(schema);
    let ours = Chunk::decode(bytes, &known);
    let view = ChunkView::new(bytes, &known);
    let naive = match naive::chunk::decode(bytes, schema) {
        Ok(naive) => naive,
        Err(reason) => {
            let [decoded, viewed] = [ours.is_ok(), view.is_ok()];
            assert!(
                !decoded && !viewed,
                "naive: {reason}; decode takes it: {decoded}, view: {viewed}\n{}",
                hex(bytes)
            );
            return false;
        }
    };
    let (ours, view) = match (ours, view) {
        (Ok(ours), Ok(view)) => (ours, view),
        // An id that the schema does not know, where the blocks, all of them known, call for another component or
        // for none: "unknown, so keep it" to the naive reader, a contradiction to ours, which is the better answer.
        (Err(_), Err(_))
            if !naive.unread.is_empty() && naive::chunk::places(&naive.cells, schema).is_some() =>
        {
            return true;
        }
        (ours, view) => {
            panic!("naive takes it; decode: {:?}, view: {:?}\n{}", ours.err(), view.err(), hex(bytes))
        }
    };
    assert_eq!(ours.has_unread_components(), !naive.unread.is_empty(), "unread\n{}", hex(bytes));
    let mut readable = naive.clone().sorted();
    readable.unread.clear();
    assert!(listed(&ours).sorted() == readable, "decoded differently\n{}", hex(bytes));
    let again = naive::chunk::encode(&naive, schema).expect("what was decoded can be encoded");
    let found = encoded(&ours);
    assert!(found == again, "encoded differently, ours first\n{}\n{}", hex(&found), hex(&again));
    check_view(&view, &naive, schema);
    true
}

/// The view gives every block, layer, component, entity and side, and nothing else.
#[track_caller]
fn check_view(view: &ChunkView<'_>, naive: &Naive, schema: &Schema) {
    for (cell, layers) in naive.cells.iter().enumerate() {
        let cell = pos(cell as u16);
        assert_eq!(view.block(cell).get(), layers[0]);
        for (layer, block) in layers.iter().enumerate() {
            assert_eq!(view.layer(cell, layer as u8), Some(BlockId::new(*block)));
        }
        if let Ok(above) = u8::try_from(layers.len()) {
            assert_eq!(view.layer(cell, above), None);
        }
    }
    for ((cell, layer, component), bytes) in &naive.components {
        assert_eq!(view.component(slot(*cell, *layer), ComponentId::new(*component)), Some(&bytes[..]));
    }
    for component in schema.components.keys() {
        for (cell, layers) in naive.cells.iter().enumerate().step_by(37) {
            for layer in 0..=layers.len().min(255) {
                let expected =
                    naive.components.get(&(cell as u16, layer as u8, *component)).map(Vec::as_slice);
                let found = view.component(slot(cell as u16, layer as u8), ComponentId::new(*component));
                assert_eq!(found, expected, "component {component:x} of cell {cell} layer {layer}");
            }
        }
    }
    let entities: Vec<[u8; 16]> = view.entities().map(EntityId::to_bytes).collect();
    assert_eq!(entities, naive.entities);
    for (kind, bytes) in &naive.sides {
        assert_eq!(view.side(SideKind::new(*kind)), Some(&bytes[..]));
    }
    let absent = (0..u16::MAX).find(|kind| !naive.sides.contains_key(kind)).expect("fewer sides than kinds");
    assert_eq!(view.side(SideKind::new(absent)), None);
    let mut blocks: Box<[BlockId; CELLS]> = vec![BlockId::new(0); CELLS].try_into().expect("as many");
    view.unpack(CellOrder::Xyz, &mut blocks);
    assert!(
        blocks.iter().zip(&naive.cells).all(|(block, layers)| block.get() == layers[0]),
        "unpacked differently"
    );
}

fn kinds() -> impl Strategy<Value = usize> {
    prop_oneof![Just(1), Just(2), Just(3), Just(5), Just(17), Just(256), Just(257), Just(4096)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(size(24, 200)))]

    #[test]
    fn the_same_chunk_gives_the_same_bytes(seed: u64, kinds in kinds()) {
        let (naive, schema) = naive::chunk::random(&mut Dice(seed), kinds);
        let bytes = naive::chunk::encode(&naive, &schema).expect("encodable");
        let known = Known::new(&schema);
        let ours = built(&naive, &known);
        prop_assert_eq!(hex(&encoded(&ours)), hex(&bytes));
        prop_assert!(Chunk::decode(&bytes, &known).as_ref() == Ok(&ours), "decoded is not what was built");
        prop_assert!(check(&bytes, &schema));
    }

    #[test]
    fn what_the_schema_forgot_is_kept_alike(seed: u64, kinds in 1_usize..20, forget_a_block: bool) {
        let mut dice = Dice(seed);
        let (naive, mut schema) = naive::chunk::random(&mut dice, kinds);
        let bytes = naive::chunk::encode(&naive, &schema).expect("encodable");
        if forget_a_block {
            let at = dice.below(schema.blocks.len() as u64) as usize;
            let block = *schema.blocks.keys().nth(at).expect("below the count");
            schema.blocks.remove(&block);
        } else {
            let at = dice.below(schema.components.len() as u64) as usize;
            let component = *schema.components.keys().nth(at).expect("below the count");
            schema.components.remove(&component);
        }
        prop_assert!(check(&bytes, &schema));
    }
}

/// Changes something that the layout gives a meaning, so that the parts still fit each other.
fn rearrange(parts: &mut Parts, dice: &mut Dice) {
    let swap = |count: usize, dice: &mut Dice| {
        (count > 1).then(|| (dice.below(count as u64) as usize, dice.below(count as u64) as usize))
    };
    match dice.below(12) {
        0 => {
            if let Some((a, b)) = swap(parts.layered.len(), dice) {
                parts.layered.swap(a, b);
            }
        }
        1 => {
            if let Some((a, b)) = swap(parts.palette.len(), dice) {
                parts.palette.swap(a, b);
            }
        }
        // A kind that nothing uses, and that no schema knows.
        2 => parts.palette.push(1_000_000 + dice.below(40)),
        3 => {
            if let Some((a, b)) = swap(parts.entities.len(), dice) {
                parts.entities.swap(a, b);
            }
        }
        4 => parts.entities.extend(parts.entities.first().copied()),
        5 => {
            if let Some((a, b)) = swap(parts.sides.len(), dice) {
                parts.sides.swap(a, b);
            }
        }
        6 => {
            let len = dice.below(9) as usize;
            parts.sides.push((dice.below(400) as u16, dice.bytes(len)));
        }
        7 => {
            let cell = dice.below(CELLS as u64) as usize;
            parts.ids[cell] = dice.below(parts.palette.len() as u64 + 1);
        }
        8 => parts.layered.push((dice.below(4096), dice.below(parts.palette.len() as u64))),
        9 => {
            if let Some((at, _)) = swap(parts.section.len(), dice) {
                parts.section[at] ^= 1 << dice.below(8);
            }
        }
        10 => {
            if let Some((at, _)) = swap(parts.section.len(), dice) {
                parts.section.remove(at);
            }
        }
        _ => {
            let at = dice.below(parts.section.len() as u64 + 1) as usize;
            parts.section.insert(at, dice.below(3) as u8);
        }
    }
}

/// Changes bytes without regard to what they mean; more often in the header, the layers and after them.
fn damage(bytes: &mut Vec<u8>, blocks_end: usize, dice: &mut Dice) {
    let from = [0, 0, blocks_end.min(bytes.len())][dice.below(3) as usize];
    let to = if dice.below(2) == 0 { bytes.len() } else { (from + 64).min(bytes.len()) };
    let Some(span) = to.checked_sub(from).filter(|span| *span > 0) else { return };
    let at = from + dice.below(span as u64) as usize;
    match dice.below(6) {
        0 | 1 => bytes[at] ^= 1 << dice.below(8),
        2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][dice.below(5) as usize],
        3 => bytes.truncate(at),
        4 => bytes.insert(at, dice.next() as u8),
        _ => {
            bytes.remove(at);
        }
    }
}

/// Mutations of small chunks, fifty of each; what percentage of them are still chunks. They are 10,000 in a
/// long run, otherwise 600.
fn judge(seed: u64, mut mutate: impl FnMut(Parts, &mut Dice) -> Vec<u8>) -> u32 {
    const OF_EACH: u32 = 50;
    let chunks = size(12, 200);
    let mut dice = Dice(seed);
    let mut taken = 0;
    for base in 0..chunks {
        let (parts, schema) = small(&mut dice, [1, 1, 2, 3, 5, 17][base as usize % 6]);
        for _ in 0..OF_EACH {
            taken += u32::from(check(&mutate(parts.clone(), &mut dice), &schema));
        }
    }
    100 * taken / (chunks * OF_EACH)
}

// Two tests, so that they run side by side. A mutator that only ever breaks, or never does, would show nothing.

#[test]
fn rearranged_chunks_are_judged_alike() {
    let taken = judge(20, |mut parts, dice| {
        for _ in 0..=dice.below(2) {
            rearrange(&mut parts, dice);
        }
        parts.bytes()
    });
    assert!((20..90).contains(&taken), "{taken} % were taken");
}

#[test]
fn damaged_chunks_are_judged_alike() {
    let taken = judge(21, |mut parts, dice| {
        if dice.below(2) == 0 {
            rearrange(&mut parts, dice);
        }
        let blocks_end = 40 + parts.palette.len() * 8 + 512 * naive::bits_for(parts.palette.len());
        let mut bytes = parts.bytes();
        damage(&mut bytes, blocks_end, dice);
        bytes
    });
    assert!((5..50).contains(&taken), "{taken} % were taken");
}

/// A kind that is in the palette and in no cell has no instances, so that it is unknown leaves nothing unread: what
/// is decoded must not change when it is written again without that kind.
#[test]
fn an_unused_unknown_kind_hides_no_component() {
    let schema = Schema { blocks: [(7, vec![1])].into(), components: [(1, Some(1))].into() };
    let mut naive = Naive::filled(7);
    naive.components = (0..CELLS as u16).map(|cell| ((cell, 0, 1), vec![cell as u8])).collect();
    let mut parts = Parts::of(&naive, &schema).expect("encodable");
    parts.palette.push(99);
    assert!(check(&parts.bytes(), &schema));
}

/// A chunk of a few kilobytes, so that thousands take seconds.
fn small(dice: &mut Dice, kinds: usize) -> (Parts, Schema) {
    loop {
        let (naive, schema) = naive::chunk::random(dice, kinds);
        let parts = Parts::of(&naive, &schema).expect("encodable");
        if parts.section.len() < 1_000 && parts.layered.len() < 100 {
            return (parts, schema);
        }
    }
}
