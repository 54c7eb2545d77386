//! Laws for any bytes that are taken for a chunk. The fuzz target and the replay of its corpus both call this.

use cg_format::chunk::{CellLayer, Chunk, ChunkView, trace};
use cg_format::{BlockId, ComponentId, ComponentShape, LocalPos, SchemaView};

/// Blocks with no, fixed, variable and both components, and blocks and components that are unknown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema;

impl SchemaView for Schema {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        const FIXED: ComponentId = ComponentId::fixed(0);
        const VARIABLE: ComponentId = ComponentId::variable(1);
        match block.get() {
            1 => Some(&[FIXED]),
            2 => Some(&[VARIABLE]),
            3 => Some(&[FIXED, VARIABLE]),
            200.. => None,
            _ => Some(&[]),
        }
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        match (component.index(), component.is_variable()) {
            (0, false) => Some(ComponentShape::Fixed { width_bytes: 2 }),
            (1, true) => Some(ComponentShape::Variable),
            _ => None,
        }
    }

    fn default_bytes(&self, component: ComponentId) -> &[u8] {
        if component.is_variable() { b"" } else { &[0, 0] }
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        block.get() != 0
    }
}

/// Decodes bytes by every road, compares the answers, and says whether they are a chunk.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let view = ChunkView::new(bytes, &Schema);
    let decoded = Chunk::decode(bytes, &Schema);
    let traced = trace(bytes, &Schema).1;
    let (view, chunk) = match (view, decoded) {
        (Ok(view), Ok(chunk)) => (view, chunk),
        (Err(view), Err(decoded)) => {
            assert_eq!(view, decoded);
            assert_eq!(traced, Err(decoded));
            return false;
        }
        (view, decoded) => panic!("a view and a decoder disagree: {view:?}, {decoded:?}"),
    };
    assert_eq!(traced, Ok(()));
    assert_eq!(chunk.validate(&Schema), Ok(()));

    let canonical = chunk.to_bytes();
    assert!(canonical.len() <= bytes.len(), "canonical bytes are the shortest");
    let again = Chunk::decode(&canonical, &Schema).expect("canonical bytes decode");
    assert!(again == chunk, "canonical bytes hold the same chunk");
    assert!(again.to_bytes() == canonical, "canonical bytes are a fixed point");

    for cell in LocalPos::all() {
        assert_eq!(view.block(cell), chunk.block(cell));
        assert_eq!(view.layer_count(cell), chunk.layer_count(cell));
    }
    assert!(view.upper_layers().eq(chunk.upper_layers()));
    assert!(view.components().eq(chunk.components()));
    for (component, at, data) in chunk.components() {
        assert_eq!(view.component(at, component), Some(data));
    }
    assert!(view.sides().eq(chunk.sides()));
    assert_eq!(view.has_unread_components(), chunk.has_unread_components());
    let mut entities: Vec<_> = view.entities().collect();
    entities.sort_unstable();
    assert_eq!(entities, chunk.entities());

    // An edit that is taken back leaves the same bytes; one that is refused leaves the chunk alone.
    let mut edited = chunk.clone();
    let corner = LocalPos::new(0, 0, 0);
    if let Ok(layer) = edited.push_layer(corner, BlockId::new(3), &Schema) {
        assert_eq!(edited.validate(&Schema), Ok(()));
        assert_eq!(edited.layer(corner, layer), Some(BlockId::new(3)));
        assert!(edited.component(CellLayer::new(corner, layer), ComponentId::fixed(0)).is_some());
        assert_eq!(edited.remove_layer(corner, layer), Ok(BlockId::new(3)));
    }
    assert!(edited == chunk && edited.to_bytes() == canonical);
    true
}
