//! Laws over any sequence of openings.

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, ComponentId};
use cg_format::{LocalPos, SchemaView};
use cg_registry::types::{Content, Type, TypedField};
use cg_registry::{
    BlockOffer, Catalog, ComponentOffer, HexBytes, ListKind, MissingPacks, Name, PackManifest, Policy,
    Rename, UpgradeFunctions, Upgrader, reconcile,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PACKS: u8 = 3;
const NAMES: u8 = 5;
/// The number of components of variable size.
const VARIABLE: u8 = 2;

fn name(pack: u8, kind: &str, number: u8) -> Name {
    Name::new(format!("p{pack}:{kind}{number}")).unwrap()
}

fn typed(width_bytes: u32, max: u64) -> TypedField {
    TypedField { name: "f".into(), width_bytes, of: Type::Unsigned { min: 0, max }, count: 1 }
}

/// Generates the offer of a pack at one opening: widths and defaults of its components, components of its blocks,
/// renames of both. A renamed component is not offered by its old name.
fn any_pack(pack: u8) -> impl Strategy<Value = Option<PackManifest>> {
    let types = prop::option::of((0..3_u8, 0..3_u64));
    let components = prop::collection::vec((1..4_u8, 1..4_u8, types), usize::from(NAMES));
    let owned = prop::option::of(prop::collection::vec((0..PACKS, 0..NAMES), 0..4));
    let blocks = prop::collection::vec((owned, any::<bool>()), usize::from(NAMES));
    let any_rename = || prop::option::weighted(0.3, (0..NAMES, 0..NAMES));
    let renames = (any_rename(), any_rename());
    let manifest = (components, blocks, renames).prop_map(move |(components, blocks, renames)| {
        let mut out = PackManifest {
            pack: format!("p{pack}"),
            version: format!("{}", components.len()),
            namespaces: vec![format!("p{pack}")],
            ..PackManifest::default()
        };
        for (number, (width, filler, types)) in (0..).zip(components) {
            if renames.1.is_some_and(|(old, new)| old == number && new != number) {
                continue;
            }
            let name = name(pack, "c", number);
            out.components.push(if number < VARIABLE {
                let content = types.map(|(kind, max)| match kind {
                    0 => Content::Text { max_bytes: max },
                    1 => Content::Bytes { max_bytes: max },
                    _ => Content::List { max_items: max, fields: vec![typed(1, max)] },
                });
                ComponentOffer { content, ..ComponentOffer::variable(name) }
            } else {
                let default_bytes = Some(HexBytes(vec![filler; usize::from(width)]));
                ComponentOffer { default_bytes, ..ComponentOffer::fixed(name, width.into()) }
            });
        }
        for (number, (owned, opaque)) in (0..).zip(blocks) {
            if let Some(owned) = owned {
                let components = owned.into_iter().map(|(pack, number)| name(pack, "c", number)).collect();
                out.blocks.push(BlockOffer { name: name(pack, "b", number), components, opaque });
            }
        }
        let lists = [(ListKind::Blocks, "b", renames.0), (ListKind::Components, "c", renames.1)];
        for (list, kind, rename) in lists {
            if let Some((old, new)) = rename {
                let (old, new) = (name(pack, kind, old), name(pack, kind, new));
                out.renamed.push(Rename { list, old, new });
            }
        }
        out
    });
    prop::option::weighted(0.9, manifest)
}

fn any_opening() -> impl Strategy<Value = (Vec<PackManifest>, Policy)> {
    let packs = (any_pack(0), any_pack(1), any_pack(2));
    (packs, prop::bool::weighted(0.8), prop::bool::weighted(0.1)).prop_map(
        |((a, b, c), allow_shrink, refuse)| {
            let missing = if refuse { MissingPacks::Refuse } else { MissingPacks::Keep };
            // Block 0 fills the chunk and never changes.
            let air = PackManifest {
                pack: "air".into(),
                version: "1".into(),
                namespaces: vec![String::new()],
                blocks: vec![BlockOffer::new(Name::new(":air").unwrap())],
                ..PackManifest::default()
            };
            let packs = [Some(air), a, b, c].into_iter().flatten().collect();
            (packs, Policy { missing, allow_shrink, ..Policy::default() })
        },
    )
}

/// Offers each entry of a world once, by whichever of its names comes first.
fn once(pack: &PackManifest, catalog: &Catalog) -> PackManifest {
    let mut out = PackManifest { renamed: Vec::new(), ..pack.clone() };
    let mut seen = BTreeSet::new();
    out.components.retain(|it| catalog.component_id(it.name.as_str()).is_none_or(|id| seen.insert(id)));
    let mut seen = BTreeSet::new();
    out.blocks.retain(|it| catalog.block_id(it.name.as_str()).is_none_or(|id| seen.insert(id)));
    out
}

/// Opens with only what the world allows: a refused plan is made acceptable pack by pack.
fn open(catalog: &mut Catalog, packs: &[PackManifest], policy: &Policy) {
    let before = catalog.clone();
    let plan = reconcile(catalog, packs, policy);
    assert_eq!(plan.apply(catalog).is_ok(), plan.is_accepted());
    if !plan.is_accepted() {
        assert_eq!(*catalog, before, "a refused plan changes nothing");
        for pack in packs {
            let policy = Policy { missing: MissingPacks::Keep, ..policy.clone() };
            for alone in [once(pack, catalog), PackManifest { blocks: Vec::new(), ..once(pack, catalog) }] {
                if reconcile(catalog, &[alone], &policy).apply(catalog).is_ok() {
                    break;
                }
            }
        }
    }
    for list in ListKind::ALL {
        let (old, new) = (before.list(list).names(), catalog.list(list).names());
        assert_eq!(new.get(..old.len()), Some(old), "the old list is the start of the new one");
        for (id, name) in new.iter().enumerate() {
            let newest = catalog.list(list).newest(id as u64);
            assert_eq!(catalog.list(list).id(name.as_str()), Some(newest), "id and name find each other");
        }
    }
    for generation in 0..=before.current_generation() {
        let (then, now) = (before.schema(generation).unwrap(), catalog.schema(generation).unwrap());
        for block in (0..before.list(ListKind::Blocks).len() as u64).map(BlockId::new) {
            assert_eq!(then.components_of(block), now.components_of(block), "a generation never changes");
        }
    }
}

/// One block of each kind, with bytes that tell instances apart.
fn chunk_of_everything(catalog: &Catalog) -> Chunk {
    let schema = catalog.current_schema();
    let air = catalog.block_id(":air").unwrap();
    assert_eq!(air.get(), 0);
    let mut chunk = Chunk::filled(air, &schema).unwrap();
    for (number, cell) in (0..catalog.list(ListKind::Blocks).len() as u64).zip(LocalPos::all()) {
        let block = BlockId::new(number);
        chunk.set_block(cell, block, &schema).unwrap();
        for component in schema.components_of(block).unwrap() {
            let len = schema.default_bytes(*component).len();
            let len = if component.is_variable() { 3 } else { len };
            let bytes = vec![number as u8 + 100; len];
            chunk.set_component(CellLayer::base(cell), *component, &bytes).unwrap();
        }
    }
    chunk
}

/// A chunk and values of one generation, and what they became through all stops since.
struct Travel {
    from: u32,
    chunk: Chunk,
    values: Vec<(ComponentId, Vec<u8>)>,
    stop: u32,
    stepped: Chunk,
    stepped_values: Vec<(ComponentId, Vec<u8>)>,
}

impl Travel {
    fn new(catalog: &Catalog) -> Self {
        let (chunk, from) = (chunk_of_everything(catalog), catalog.current_generation());
        let ids = catalog.list(ListKind::Components).names().iter();
        let ids = ids.filter_map(|name| catalog.component_id(name.as_str()));
        let schema = catalog.current_schema();
        let values: Vec<_> = ids.map(|id| (id, vec![77; schema.default_bytes(id).len().max(1)])).collect();
        Self { from, stop: from, stepped: chunk.clone(), chunk, stepped_values: values.clone(), values }
    }

    /// Checks that the result of one step is that of all stops. The chunk of the stops is stored and read at each.
    fn stop(&mut self, catalog: &Catalog) {
        let functions = UpgradeFunctions::default();
        let upgrader = Upgrader::new(catalog, &functions);
        let direct = upgrader.upgrade(&self.chunk, self.from).unwrap();
        let direct = direct.map_or_else(|| self.chunk.clone(), |done| done.chunk);
        let (schema, bytes) = (catalog.current_schema(), direct.to_bytes());
        assert_eq!(direct.validate(&schema), Ok(()));
        assert_eq!(Chunk::decode(&bytes, &schema).unwrap(), direct);
        if let Some(done) = upgrader.upgrade(&self.stepped, self.stop).unwrap() {
            self.stepped = Chunk::decode(&done.chunk.to_bytes(), &schema).unwrap();
        }
        self.stop = catalog.current_generation();
        assert_eq!(self.stepped, direct);
        assert_eq!(self.stepped.to_bytes(), bytes);
        let upgrade = |(id, bytes): &(ComponentId, Vec<u8>)| {
            let (id, bytes) = upgrader.upgrade_value(*id, bytes).unwrap();
            (id, bytes.into_owned())
        };
        self.stepped_values = self.stepped_values.iter().map(upgrade).collect();
        assert_eq!(self.stepped_values, self.values.iter().map(upgrade).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn ids_never_move_and_rows_say_everything(openings in prop::collection::vec(any_opening(), 1..6)) {
        let mut catalog = Catalog::new();
        for (packs, policy) in openings {
            open(&mut catalog, &packs, &policy);
            let rows = catalog.encode_full();
            let read = Catalog::decode(rows.iter().map(|(row, bytes)| (row.as_str(), bytes.as_slice())));
            prop_assert_eq!(read, Ok(catalog.clone()));
        }
    }

    #[test]
    fn an_upgrade_does_not_depend_on_the_stops(openings in prop::collection::vec(any_opening(), 2..7)) {
        let mut catalog = Catalog::new();
        let mut start: Option<Travel> = None;
        for (packs, policy) in openings {
            open(&mut catalog, &packs, &policy);
            match &mut start {
                None if catalog.list(ListKind::Blocks).is_empty() => {}
                None => start = Some(Travel::new(&catalog)),
                Some(travel) => travel.stop(&catalog),
            }
        }
    }
}
