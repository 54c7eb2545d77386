//! Every way in which a schema may change, over encoded chunks.

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, LocalPos, SchemaView};
use cg_registry::kept::Owner;
use cg_registry::{
    BlockOffer, Catalog, ComponentOffer, FieldOffer, HexBytes, KeptComponents, LOST_COMPONENTS, Name,
    PackManifest, Policy, Rename, Size, UpgradeError, UpgradeFunctions, Upgrader, reconcile,
};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn here() -> CellLayer {
    CellLayer::base(LocalPos::new(1, 2, 3))
}

/// A world of one pack: `a:box` with what a test gives it, `a:plain` with nothing.
struct World {
    catalog: Catalog,
    pack: PackManifest,
    policy: Policy,
    functions: UpgradeFunctions,
}

impl World {
    fn new(components: Vec<ComponentOffer>, of_box: &[&str]) -> Self {
        let pack = PackManifest {
            pack: "a".into(),
            version: "1".into(),
            namespaces: vec!["a".into()],
            components,
            blocks: vec![
                BlockOffer { opaque: false, ..BlockOffer::new(name("a:air")) },
                BlockOffer {
                    components: of_box.iter().map(|text| name(text)).collect(),
                    ..BlockOffer::new(name("a:box"))
                },
                BlockOffer::new(name("a:plain")),
            ],
            ..PackManifest::default()
        };
        let functions = UpgradeFunctions::default();
        let mut world = Self { catalog: Catalog::new(), pack, policy: Policy::default(), functions };
        world.open();
        world
    }

    #[track_caller]
    fn open(&mut self) {
        self.policy.conversions = self.functions.conversions();
        let plan = reconcile(&self.catalog, std::slice::from_ref(&self.pack), &self.policy);
        plan.apply(&mut self.catalog).unwrap_or_else(|error| panic!("{error}"));
    }

    fn of_box(&mut self, components: &[&str]) {
        self.pack.blocks[1].components = components.iter().map(|text| name(text)).collect();
    }

    fn box_id(&self) -> BlockId {
        self.catalog.block_id("a:box").unwrap()
    }

    /// A stored chunk with one box, whose component holds some bytes.
    fn chunk(&self, component: &str, bytes: &[u8]) -> Stored {
        let schema = self.catalog.current_schema();
        let mut chunk = Chunk::filled(BlockId::new(0), &schema).unwrap();
        chunk.set_block(here().cell, self.box_id(), &schema).unwrap();
        if !component.is_empty() {
            chunk.set_component(here(), self.catalog.component_id(component).unwrap(), bytes).unwrap();
        }
        Stored { generation: schema.generation(), value: chunk.to_bytes() }
    }

    fn upgrade(&self, stored: &Stored) -> Result<Stored, UpgradeError> {
        let schema = self.catalog.schema(stored.generation).unwrap();
        let chunk = Chunk::decode(&stored.value, &schema).unwrap();
        assert!(!chunk.has_unread_components());
        let upgrader = Upgrader::new(&self.catalog, &self.functions);
        let done = upgrader.upgrade(&chunk, stored.generation)?;
        let chunk = done.map_or(chunk, |done| done.chunk);
        let generation = self.catalog.current_generation();
        assert_eq!(upgrader.upgrade(&chunk, generation).unwrap(), None, "an upgraded chunk stays as it is");
        assert_eq!(chunk.validate(&self.catalog.current_schema()), Ok(()));
        Ok(Stored { generation, value: chunk.to_bytes() })
    }

    /// The bytes of a component of the box after decoding with the newest generation.
    #[track_caller]
    fn read(&self, stored: &Stored, component: &str) -> Option<Vec<u8>> {
        assert_eq!(stored.generation, self.catalog.current_generation());
        let chunk = Chunk::decode(&stored.value, &self.catalog.current_schema()).unwrap();
        chunk.component(here(), self.catalog.component_id(component).unwrap()).map(<[u8]>::to_vec)
    }

    /// The components that are kept aside in a chunk.
    fn kept(&self, stored: &Stored) -> Vec<(Owner, Vec<u8>)> {
        let chunk = Chunk::decode(&stored.value, &self.catalog.schema(stored.generation).unwrap()).unwrap();
        let side = chunk.side(LOST_COMPONENTS);
        let kept = side.map(|bytes| KeptComponents::decode(bytes, None).unwrap()).unwrap_or_default();
        kept.iter().map(|(owner, bytes)| (owner, bytes.to_vec())).collect()
    }
}

/// A chunk's value with the generation that its frame would name.
#[derive(Debug, Clone, PartialEq)]
struct Stored {
    generation: u32,
    value: Vec<u8>,
}

fn fixed(text: &str, default: &[u8]) -> ComponentOffer {
    let default_bytes = Some(HexBytes(default.to_vec()));
    ComponentOffer { default_bytes, ..ComponentOffer::fixed(name(text), default.len() as u32) }
}

#[test]
fn a_block_gains_a_component_with_its_default() {
    let mut world = World::new(vec![fixed("a:old", &[1]), fixed("a:new", &[7, 8])], &["a:old"]);
    let stored = world.chunk("a:old", &[5]);
    world.of_box(&["a:old", "a:new"]);
    world.open();
    let upgraded = world.upgrade(&stored).unwrap();
    assert_eq!(world.read(&upgraded, "a:old"), Some(vec![5]));
    assert_eq!(world.read(&upgraded, "a:new"), Some(vec![7, 8]));
    assert_eq!(world.upgrade(&upgraded).unwrap(), upgraded);
}

#[test]
fn a_block_gains_a_component_that_the_host_fills() {
    let mut world = World::new(vec![fixed("a:old", &[1]), fixed("a:new", &[7])], &["a:old"]);
    let stored = world.chunk("a:old", &[5]);
    let old = world.catalog.component_id("a:old").unwrap();
    world.functions.gained(name("a:new"), move |gained| {
        Some(vec![gained.chunk.component(gained.at, old)?.first()? * 2])
    });
    world.of_box(&["a:old", "a:new"]);
    world.open();
    let upgraded = world.upgrade(&stored).unwrap();
    assert_eq!(world.read(&upgraded, "a:new"), Some(vec![10]));
}

#[test]
fn a_lost_component_is_kept_and_comes_back() {
    let mut world = World::new(vec![ComponentOffer::variable(name("a:items"))], &["a:items"]);
    let stored = world.chunk("a:items", b"diamonds");
    let items = world.catalog.component_id("a:items").unwrap();
    world.of_box(&[]);
    world.open();
    let without = world.upgrade(&stored).unwrap();
    assert_eq!(world.read(&without, "a:items"), None);
    let owner = Owner { at: here(), block: world.box_id(), component: items };
    assert_eq!(world.kept(&without), [(owner, b"diamonds".to_vec())]);

    world.of_box(&["a:items"]);
    world.open();
    let back = world.upgrade(&without).unwrap();
    assert_eq!(world.read(&back, "a:items"), Some(b"diamonds".to_vec()));
    assert_eq!(world.kept(&back), []);
    assert_eq!(back.value, stored.value, "as if nothing had happened");
    assert_eq!(world.upgrade(&stored).unwrap(), back, "also when it was never upgraded in between");
}

#[test]
fn kept_bytes_go_with_the_block_that_owned_them() {
    let mut world = World::new(vec![fixed("a:x", &[0])], &["a:x"]);
    let stored = world.chunk("a:x", &[9]);
    world.of_box(&[]);
    world.open();
    let without = world.upgrade(&stored).unwrap();
    let schema = world.catalog.current_schema();
    let mut chunk = Chunk::decode(&without.value, &schema).unwrap();
    chunk.set_block(here().cell, world.catalog.block_id("a:plain").unwrap(), &schema).unwrap();
    let replaced = Stored { value: chunk.to_bytes(), ..without };
    world.of_box(&["a:x"]);
    world.pack.blocks[2].components = vec![name("a:x")];
    world.open();
    let upgraded = world.upgrade(&replaced).unwrap();
    assert_eq!(world.read(&upgraded, "a:x"), Some(vec![0]), "another block does not inherit them");
    assert_eq!(world.kept(&upgraded), []);
}

#[test]
fn a_component_grows_shrinks_and_grows_again() {
    let mut world = World::new(vec![fixed("a:x", &[0, 0])], &["a:x"]);
    let stored = world.chunk("a:x", &[1, 2]);
    world.pack.components[0] = fixed("a:x", &[7, 7, 7, 7]);
    world.open();
    let grown = world.upgrade(&stored).unwrap();
    assert_eq!(world.read(&grown, "a:x"), Some(vec![1, 2, 7, 7]));

    world.pack.components[0] = fixed("a:x", &[7]);
    let refused = reconcile(&world.catalog, &[world.pack.clone()], &world.policy);
    assert!(!refused.is_accepted());
    world.policy.allow_shrink = true;
    world.open();
    let shrunk = world.upgrade(&grown).unwrap();
    assert_eq!(world.read(&shrunk, "a:x"), Some(vec![1]));
    assert_eq!(world.upgrade(&stored).unwrap(), shrunk, "in one go or in two");
}

#[test]
fn fields_are_found_by_name_when_they_move() {
    let field = |text: &str, width_bytes| FieldOffer::new(text, width_bytes);
    let mut offer = ComponentOffer::fixed(name("a:x"), 3);
    offer.fields = vec![field("level", 1), field("limit", 2)];
    let mut world = World::new(vec![offer.clone()], &["a:x"]);
    let stored = world.chunk("a:x", &[5, 1, 2]);
    offer.size = Size::Fixed(6);
    offer.fields = vec![field("limit", 4), field("added", 1), field("level", 1)];
    world.pack.components[0] = offer;
    world.open();
    let moved = world.upgrade(&stored).unwrap();
    assert_eq!(world.read(&moved, "a:x"), Some(vec![1, 2, 0, 0, 0, 5]));

    let old = world.catalog.schema(0).unwrap().components_of(world.box_id()).unwrap()[0];
    let value = Upgrader::new(&world.catalog, &world.functions).upgrade_value(old, &[5, 1, 2]).unwrap();
    let expected = (world.catalog.component_id("a:x").unwrap(), vec![1, 2, 0, 0, 0, 5]);
    assert_eq!((value.0, value.1.into_owned()), expected, "an entity's component comes the same way");
}

#[test]
fn a_component_changes_its_kind_by_the_hosts_function() {
    let mut world = World::new(vec![fixed("a:price", &[0; 4])], &["a:price"]);
    let stored = world.chunk("a:price", &1234_u32.to_le_bytes());
    world.functions.converted(name("a:price"), |old| {
        let number = u32::from_le_bytes(old.bytes.try_into().ok()?);
        (number != 666).then(|| number.to_string().into_bytes())
    });
    let refused = world.chunk("a:price", &666_u32.to_le_bytes());
    world.pack.components[0] = ComponentOffer::variable(name("a:price"));
    world.open();
    let text = world.upgrade(&stored).unwrap();
    assert_eq!(world.read(&text, "a:price"), Some(b"1234".to_vec()));
    let error = world.upgrade(&refused).unwrap_err();
    assert_eq!(error, UpgradeError::FunctionRefused { component: "a:price".into(), len_bytes: 4 });
    world.functions = UpgradeFunctions::default();
    let error = world.upgrade(&stored).unwrap_err();
    assert_eq!(error, UpgradeError::FunctionMissing { component: "a:price".into() });

    let newest = world.catalog.component_id("a:price").unwrap();
    let upgrader = Upgrader::new(&world.catalog, &world.functions);
    let value = upgrader.upgrade_value(newest, b"12").unwrap();
    assert_eq!((value.0, &*value.1), (newest, &b"12"[..]), "the newest registration stays");
}

#[test]
fn a_renamed_component_and_block_keep_ids_and_bytes() {
    let mut world = World::new(vec![fixed("a:x", &[0])], &["a:x"]);
    let stored = world.chunk("a:x", &[3]);
    let (block, component) = (world.box_id(), world.catalog.component_id("a:x"));
    let rename = |list, old, new| Rename { list, old: name(old), new: name(new) };
    world.pack.components[0].name = name("a:y");
    world.pack.blocks[1] = BlockOffer { components: vec![name("a:y")], ..BlockOffer::new(name("a:chest")) };
    world.pack.renamed = vec![
        rename(cg_registry::ListKind::Blocks, "a:box", "a:chest"),
        rename(cg_registry::ListKind::Components, "a:x", "a:y"),
    ];
    world.open();
    assert_eq!(world.catalog.current_generation(), 0, "no chunk is concerned");
    assert_eq!(
        (world.catalog.block_id("a:chest"), world.catalog.block_id("a:box")),
        (Some(block), Some(block))
    );
    assert_eq!(world.catalog.component_id("a:y"), component);
    assert_eq!(world.upgrade(&stored).unwrap(), stored);
    // The renamed component grows under its new name.
    world.pack.components[0] = fixed("a:y", &[1, 2]);
    world.open();
    assert_eq!(world.read(&world.upgrade(&stored).unwrap(), "a:x"), Some(vec![3, 2]));
}

#[test]
fn a_pack_goes_and_comes_back_larger() {
    let mut world = World::new(vec![fixed("a:x", &[0])], &["a:x"]);
    let stored = world.chunk("a:x", &[4]);
    let plan = reconcile(&world.catalog, &[], &Policy::default());
    plan.apply(&mut world.catalog).unwrap();
    assert_eq!(world.upgrade(&stored).unwrap(), stored, "not a byte changes while the pack is gone");
    world.pack.components[0] = fixed("a:x", &[0, 9]);
    world.open();
    assert_eq!(world.read(&world.upgrade(&stored).unwrap(), "a:x"), Some(vec![4, 9]));
}

#[test]
fn what_was_lost_small_comes_back_grown() {
    let mut world = World::new(vec![fixed("a:x", &[0])], &["a:x"]);
    let stored = world.chunk("a:x", &[4]);
    world.of_box(&[]);
    world.open();
    world.pack.components[0] = fixed("a:x", &[8, 8]);
    world.open();
    world.of_box(&["a:x"]);
    world.open();
    assert_eq!(world.read(&world.upgrade(&stored).unwrap(), "a:x"), Some(vec![4, 8]));
}

#[test]
fn upper_layers_are_upgraded_as_well() {
    let mut world = World::new(vec![fixed("a:x", &[0])], &["a:x"]);
    let schema = world.catalog.current_schema();
    let mut chunk = Chunk::filled(BlockId::new(0), &schema).unwrap();
    let layer = chunk.push_layer(here().cell, world.box_id(), &schema).unwrap();
    let (at, old) = (CellLayer::new(here().cell, layer), world.catalog.component_id("a:x").unwrap());
    chunk.set_component(at, old, &[6]).unwrap();
    world.pack.components[0] = fixed("a:x", &[0, 1]);
    world.open();
    let done = Upgrader::new(&world.catalog, &world.functions).upgrade(&chunk, 0).unwrap().unwrap();
    let new = world.catalog.component_id("a:x").unwrap();
    assert_eq!(done.chunk.component(at, new), Some(&[6, 1][..]));
    assert_eq!((done.converted, done.gained, done.kept, done.restored, done.dropped), (1, 0, 0, 0, 0));
}

#[test]
fn damaged_kept_bytes_and_unknown_generations_stop_an_upgrade() {
    let mut world = World::new(vec![fixed("a:x", &[0])], &["a:x"]);
    let stored = world.chunk("a:x", &[4]);
    let mut chunk = Chunk::decode(&stored.value, &world.catalog.current_schema()).unwrap();
    chunk.set_side(LOST_COMPONENTS, vec![9]);
    world.of_box(&[]);
    world.open();
    let upgrader = Upgrader::new(&world.catalog, &world.functions);
    assert!(matches!(upgrader.upgrade(&chunk, 0), Err(UpgradeError::Kept(_))));
    assert_eq!(upgrader.upgrade(&chunk, 2), Err(UpgradeError::Generation { found: 2, newest: 1 }));
}

#[test]
fn an_old_generation_reads_as_it_always_did() {
    let mut world = World::new(vec![fixed("a:x", &[0]), fixed("a:y", &[0])], &["a:x"]);
    let first = world.catalog.schema(0).unwrap();
    world.of_box(&["a:y"]);
    world.open();
    let block = world.box_id();
    let x = world.catalog.component_id("a:x").unwrap();
    let y = world.catalog.component_id("a:y").unwrap();
    assert_eq!(first.components_of(block), Some(&[x][..]), "a handle taken before");
    assert_eq!(world.catalog.schema(0).unwrap().components_of(block), Some(&[x][..]), "and one taken now");
    assert_eq!(world.catalog.current_schema().components_of(block), Some(&[y][..]));
    assert!(world.catalog.schema(2).is_none());
}
