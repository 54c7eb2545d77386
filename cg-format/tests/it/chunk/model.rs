//! A schema for tests, and a chunk as anybody would write it down: the oracle of all edits.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::chunk::{CellLayer, Chunk, ChunkView, EditError};
use cg_format::{BlockId, CellOrder, ComponentId, ComponentShape, EntityId, LocalPos, SchemaView, SideKind};
use proptest::prelude::*;

pub(super) const WIDE: ComponentId = ComponentId::fixed(1);
pub(super) const EMPTY: ComponentId = ComponentId::fixed(2);
pub(super) const BYTE: ComponentId = ComponentId::fixed(3);
pub(super) const TEXT: ComponentId = ComponentId::variable(4);
pub(super) const LIST: ComponentId = ComponentId::variable(5);

/// Blocks up to 9 have the components that their number says; blocks from 1,000,000 on are unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestSchema;

impl SchemaView for TestSchema {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        match block.get() {
            1 => Some(&[BYTE]),
            2 => Some(&[WIDE, BYTE]),
            3 => Some(&[TEXT]),
            4 => Some(&[WIDE, EMPTY, TEXT, LIST]),
            5 => Some(&[LIST]),
            1_000_000.. => None,
            _ => Some(&[]),
        }
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        match component {
            WIDE => Some(ComponentShape::Fixed { width_bytes: 5 }),
            EMPTY => Some(ComponentShape::Fixed { width_bytes: 0 }),
            BYTE => Some(ComponentShape::Fixed { width_bytes: 1 }),
            TEXT | LIST => Some(ComponentShape::Variable),
            _ => None,
        }
    }

    fn default_bytes(&self, component: ComponentId) -> &[u8] {
        match component {
            WIDE => b"wide!",
            BYTE => &[7],
            TEXT => b"text",
            _ => b"",
        }
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        block.get() != 0
    }
}

/// Something that is done to a chunk.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    Set(LocalPos, BlockId),
    SetLayer(CellLayer, BlockId),
    ChangeKind(CellLayer, BlockId),
    Push(LocalPos, BlockId),
    Remove(CellLayer),
    Component(CellLayer, ComponentId, Vec<u8>),
    AddEntity(EntityId),
    RemoveEntity(EntityId),
    SetSide(SideKind, Vec<u8>),
    RemoveSide(SideKind),
    FillSlice(u8, BlockId),
    Pack,
}

/// A block and the bytes of its components.
type Block = (BlockId, BTreeMap<ComponentId, Vec<u8>>);

/// A chunk without any packing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Naive {
    cells: Vec<Vec<Block>>,
    entities: BTreeSet<EntityId>,
    sides: BTreeMap<SideKind, Vec<u8>>,
}

fn new_block(block: BlockId, keep: &BTreeMap<ComponentId, Vec<u8>>) -> Block {
    let components = TestSchema.components_of(block).expect("the tests' blocks are known");
    let bytes = |component: &ComponentId| {
        keep.get(component).cloned().unwrap_or_else(|| TestSchema.default_bytes(*component).to_vec())
    };
    (block, components.iter().map(|component| (*component, bytes(component))).collect())
}

impl Naive {
    pub(super) fn filled(block: BlockId) -> Self {
        let cells = vec![vec![new_block(block, &BTreeMap::new())]; LocalPos::COUNT];
        Self { cells, entities: BTreeSet::new(), sides: BTreeMap::new() }
    }

    fn at(&mut self, at: CellLayer) -> Option<&mut Block> {
        self.cells[usize::from(at.cell.index())].get_mut(usize::from(at.layer))
    }

    /// Does the same to both, and compares what they answer.
    #[track_caller]
    pub(super) fn apply(&mut self, chunk: &mut Chunk, edit: &Edit) {
        match edit {
            Edit::Set(cell, block) => {
                let place = self.at((*cell).into()).unwrap();
                let old = place.0;
                if old != *block {
                    *place = new_block(*block, &BTreeMap::new());
                }
                assert_eq!(chunk.set_block(*cell, *block, &TestSchema), Ok(old));
            }
            Edit::SetLayer(at, block) | Edit::ChangeKind(at, block) => {
                let keeps = matches!(edit, Edit::ChangeKind(..));
                let count = self.cells[usize::from(at.cell.index())].len();
                let expected = match self.at(*at) {
                    None => Err(EditError::NoLayer { at: *at, count }),
                    Some(place) => {
                        let old = place.clone();
                        if old.0 != *block {
                            *place =
                                new_block(*block, if keeps { &old.1 } else { const { &BTreeMap::new() } });
                        }
                        Ok(old.0)
                    }
                };
                let found = if keeps {
                    chunk.change_kind(*at, *block, &TestSchema)
                } else {
                    chunk.set_layer(*at, *block, &TestSchema)
                };
                assert_eq!(found, expected);
            }
            Edit::Push(cell, block) => {
                let layers = &mut self.cells[usize::from(cell.index())];
                let layer = layers.len() as u8;
                layers.push(new_block(*block, &BTreeMap::new()));
                assert_eq!(chunk.push_layer(*cell, *block, &TestSchema), Ok(layer));
            }
            Edit::Remove(at) => {
                let layers = &mut self.cells[usize::from(at.cell.index())];
                let expected = if at.layer > 0 && usize::from(at.layer) < layers.len() {
                    Ok(layers.remove(at.layer.into()).0)
                } else {
                    Err(EditError::NoLayer { at: *at, count: layers.len() })
                };
                assert_eq!(chunk.remove_layer(at.cell, at.layer), expected);
            }
            Edit::Component(at, component, bytes) => {
                let expected = match self.at(*at).and_then(|block| block.1.get_mut(component)) {
                    None => Err(EditError::NoComponent { at: *at, component: *component }),
                    Some(old) => match TestSchema.shape(*component).unwrap() {
                        ComponentShape::Fixed { width_bytes } if bytes.len() != width_bytes as usize => {
                            let (component, found) = (*component, bytes.len());
                            Err(EditError::WrongWidth { component, width_bytes, found })
                        }
                        _ => {
                            old.clone_from(bytes);
                            Ok(())
                        }
                    },
                };
                assert_eq!(chunk.set_component(*at, *component, bytes), expected);
            }
            Edit::AddEntity(id) => assert_eq!(chunk.add_entity(*id), self.entities.insert(*id)),
            Edit::RemoveEntity(id) => assert_eq!(chunk.remove_entity(*id), self.entities.remove(id)),
            Edit::SetSide(kind, data) => {
                assert_eq!(chunk.set_side(*kind, data.clone()), self.sides.insert(*kind, data.clone()));
            }
            Edit::RemoveSide(kind) => assert_eq!(chunk.remove_side(*kind), self.sides.remove(kind)),
            Edit::FillSlice(x, block) => {
                for cell in LocalPos::all().filter(|cell| cell.x() == *x) {
                    self.apply(chunk, &Edit::Set(cell, *block));
                }
            }
            Edit::Pack => chunk.pack(),
        }
    }

    /// Compares everything that can be asked of a chunk and of a view.
    #[track_caller]
    pub(super) fn check(&self, chunk: &Chunk, view: &ChunkView<'_>) {
        let mut layer0 = Vec::new();
        let mut upper = Vec::new();
        let mut components = Vec::new();
        let mut counts: BTreeMap<BlockId, u32> = BTreeMap::new();
        for (cell, layers) in LocalPos::all().zip(&self.cells) {
            assert_eq!(chunk.layer_count(cell), layers.len());
            assert_eq!(view.layer_count(cell), layers.len());
            assert_eq!(chunk.layer(cell, layers.len() as u8), None);
            assert_eq!(view.layer(cell, layers.len() as u8), None);
            for (layer, (block, has)) in (0..).zip(layers) {
                let at = CellLayer::new(cell, layer);
                assert_eq!(chunk.layer(cell, layer), Some(*block), "{at:?}");
                assert_eq!(view.layer(cell, layer), Some(*block), "{at:?}");
                *counts.entry(*block).or_default() += 1;
                for component in [WIDE, EMPTY, BYTE, TEXT, LIST] {
                    let bytes = has.get(&component).map(Vec::as_slice);
                    assert_eq!(chunk.component(at, component), bytes, "{at:?} {component:?}");
                    assert_eq!(view.component(at, component), bytes, "{at:?} {component:?}");
                }
                components.extend(has.iter().map(|(component, bytes)| (*component, at, bytes.as_slice())));
                if layer == 0 {
                    assert_eq!((chunk.block(cell), view.block(cell)), (*block, *block));
                    layer0.push(*block);
                } else {
                    upper.push((at, *block));
                }
            }
        }
        components.sort_by_key(|(component, at, _)| (*component, *at));
        assert!(chunk.components().eq(components.iter().copied()));
        assert!(view.components().eq(components.iter().copied()));
        assert!(chunk.upper_layers().eq(upper.iter().copied()));
        assert!(view.upper_layers().eq(upper.iter().copied()));
        let palette: BTreeMap<BlockId, u32> =
            chunk.palette().iter().map(|entry| (entry.block, entry.count)).collect();
        assert_eq!((&palette, chunk.palette().len()), (&counts, counts.len()));
        let mut kinds = chunk.kinds();
        kinds.sort_unstable();
        assert!(kinds.iter().eq(counts.keys()), "{kinds:?}");
        assert!(chunk.entities().iter().eq(&self.entities));
        assert!(view.entities().eq(self.entities.iter().copied()));
        let sides = || self.sides.iter().map(|(kind, data)| (*kind, data.as_slice()));
        assert!(chunk.sides().eq(sides()));
        assert!(view.sides().eq(sides()));
        for kind in (0..4).map(SideKind::new) {
            let data = self.sides.get(&kind).map(Vec::as_slice);
            assert_eq!((chunk.side(kind), view.side(kind)), (data, data));
        }
        for order in CellOrder::ALL {
            let mut ours: Box<[BlockId; 4096]> = vec![BlockId::default(); 4096].try_into().unwrap();
            let mut views = ours.clone();
            chunk.unpack(order, &mut ours);
            view.unpack(order, &mut views);
            for (index, cell) in order.cells().enumerate() {
                let block = layer0[usize::from(cell.index())];
                assert_eq!((ours[index], views[index]), (block, block), "{order:?} {cell:?}");
            }
        }
        assert!(!chunk.has_unread_components() && !view.has_unread_components());
    }

    /// Builds the same chunk by another road: from the cells, then layers, then components, back to front.
    pub(super) fn rebuild(&self) -> Chunk {
        let layer0: Vec<BlockId> =
            CellOrder::Zyx.cells().map(|cell| self.cells[usize::from(cell.index())][0].0).collect();
        let layer0 = layer0.as_slice().try_into().unwrap();
        let mut chunk = Chunk::from_blocks(layer0, CellOrder::Zyx, &TestSchema).unwrap();
        for (cell, layers) in LocalPos::all().zip(&self.cells).rev() {
            for (block, _) in layers.iter().skip(1) {
                chunk.push_layer(cell, *block, &TestSchema).unwrap();
            }
            for (layer, (_, components)) in (0..).zip(layers) {
                for (component, bytes) in components {
                    chunk.set_component(CellLayer::new(cell, layer), *component, bytes).unwrap();
                }
            }
        }
        for entity in self.entities.iter().rev() {
            chunk.add_entity(*entity);
        }
        for (kind, data) in self.sides.iter().rev() {
            chunk.set_side(*kind, data.clone());
        }
        chunk
    }
}

/// Kinds of block: few with components, many without, and often the same.
pub(super) fn block() -> impl Strategy<Value = BlockId> {
    prop_oneof![6 => 0..6_u64, 2 => 6..40_u64, 1 => 40..5000_u64].prop_map(BlockId::new)
}

/// Cells, mostly from a small corner so that layers meet.
pub(super) fn cell() -> impl Strategy<Value = LocalPos> {
    prop_oneof![3 => 0..6_u16, 1 => 0..4096_u16].prop_map(|index| LocalPos::from_index(index).unwrap())
}

pub(super) fn entity() -> impl Strategy<Value = EntityId> {
    prop_oneof![(0..6_u8).prop_map(|byte| [byte; 16]), any::<[u8; 16]>()].prop_map(EntityId::from_bytes)
}

pub(super) fn edit() -> impl Strategy<Value = Edit> {
    let at = || (cell(), 0..4_u8).prop_map(|(cell, layer)| CellLayer::new(cell, layer));
    let component = prop::sample::select(vec![WIDE, EMPTY, BYTE, TEXT, LIST]);
    let bytes = || {
        prop_oneof![
            8 => prop::collection::vec(any::<u8>(), 0..8),
            1 => (250..300_usize, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
            1 => (65_500..65_600_usize, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
        ]
    };
    let kind = || (0..4_u16).prop_map(SideKind::new);
    prop_oneof![
        8 => (cell(), block()).prop_map(|(cell, block)| Edit::Set(cell, block)),
        2 => (at(), block()).prop_map(|(at, block)| Edit::SetLayer(at, block)),
        2 => (at(), block()).prop_map(|(at, block)| Edit::ChangeKind(at, block)),
        6 => (cell(), block()).prop_map(|(cell, block)| Edit::Push(cell, block)),
        6 => at().prop_map(Edit::Remove),
        6 => (at(), component, bytes()).prop_map(|(at, component, bytes)| Edit::Component(at, component, bytes)),
        2 => entity().prop_map(Edit::AddEntity),
        1 => entity().prop_map(Edit::RemoveEntity),
        2 => (kind(), bytes()).prop_map(|(kind, data)| Edit::SetSide(kind, data)),
        1 => kind().prop_map(Edit::RemoveSide),
        2 => (prop_oneof![Just(0), 0..16_u8], prop_oneof![1..6_u64, 0..40_u64].prop_map(BlockId::new)).prop_map(|(x, block)| Edit::FillSlice(x, block)),
        1 => Just(Edit::Pack),
    ]
}
