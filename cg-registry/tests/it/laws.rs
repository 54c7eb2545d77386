//! Laws over any sequence of openings.

use cg_format::BlockId;
use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{LocalPos, SchemaView};
use cg_registry::{
    BlockOffer, Catalog, ComponentOffer, HexBytes, ListKind, MissingPacks, Name, PackManifest, Policy,
    Rename, UpgradeFunctions, Upgrader, reconcile,
};
use proptest::prelude::*;

const PACKS: u8 = 3;
const NAMES: u8 = 5;

fn name(pack: u8, kind: &str, number: u8) -> Name {
    Name::new(format!("p{pack}:{kind}{number}")).unwrap()
}

/// Generates the offer of a pack at one opening: widths of its components, components of its blocks, a rename.
fn any_pack(pack: u8) -> impl Strategy<Value = Option<PackManifest>> {
    let components = prop::collection::vec(1..4_u8, usize::from(NAMES));
    let owned = prop::option::of(prop::collection::vec((0..PACKS, 0..NAMES), 0..4));
    let blocks = prop::collection::vec((owned, any::<bool>()), usize::from(NAMES));
    let rename = prop::option::weighted(0.2, (0..NAMES, 0..NAMES));
    let manifest = (components, blocks, rename).prop_map(move |(components, blocks, rename)| {
        let mut out = PackManifest {
            pack: format!("p{pack}"),
            version: format!("{}", components.len()),
            namespaces: vec![format!("p{pack}")],
            ..PackManifest::default()
        };
        for (number, width) in (0..).zip(components) {
            let name = name(pack, "c", number);
            out.components.push(if number == 0 {
                ComponentOffer::variable(name)
            } else {
                let default_bytes = Some(HexBytes(vec![width; usize::from(width)]));
                ComponentOffer { default_bytes, ..ComponentOffer::fixed(name, width.into()) }
            });
        }
        for (number, (owned, opaque)) in (0..).zip(blocks) {
            if let Some(owned) = owned {
                let components = owned.into_iter().map(|(pack, number)| name(pack, "c", number)).collect();
                out.blocks.push(BlockOffer { name: name(pack, "b", number), components, opaque });
            }
        }
        if let Some((old, new)) = rename {
            let (old, new) = (name(pack, "b", old), name(pack, "b", new));
            out.renamed.push(Rename { list: ListKind::Blocks, old, new });
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
            let packs = [a, b, c].into_iter().flatten().collect();
            (packs, Policy { missing, allow_shrink, ..Policy::default() })
        },
    )
}

/// Opens with only what the world allows: a refused plan is made acceptable pack by pack.
fn open(catalog: &mut Catalog, packs: &[PackManifest], policy: &Policy) {
    let before = catalog.clone();
    let plan = reconcile(catalog, packs, policy);
    assert_eq!(plan.apply(catalog).is_ok(), plan.is_accepted());
    if !plan.is_accepted() {
        assert_eq!(*catalog, before, "a refused plan changes nothing");
        for pack in packs {
            let alone = PackManifest { renamed: Vec::new(), ..pack.clone() };
            let _ = reconcile(catalog, &[alone], &Policy { missing: MissingPacks::Keep, ..policy.clone() })
                .apply(catalog);
        }
    }
    for list in ListKind::ALL {
        let (old, new) = (before.list(list).names(), catalog.list(list).names());
        assert_eq!(new.get(..old.len()), Some(old), "the old list is the start of the new one");
        for (id, name) in new.iter().enumerate() {
            assert_eq!(catalog.list(list).id(name.as_str()), Some(id as u64), "id and name find each other");
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
    let mut chunk = Chunk::filled(BlockId::new(0), &schema).unwrap();
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
    fn an_upgrade_does_not_depend_on_the_stops(openings in prop::collection::vec(any_opening(), 2..6)) {
        let (mut catalog, functions) = (Catalog::new(), UpgradeFunctions::default());
        let mut start: Option<(u32, Chunk, u32, Chunk)> = None;
        for (packs, policy) in openings {
            open(&mut catalog, &packs, &policy);
            let upgrader = Upgrader::new(&catalog, &functions);
            match &mut start {
                None if catalog.list(ListKind::Blocks).is_empty() => {}
                None => {
                    let chunk = chunk_of_everything(&catalog);
                    let from = catalog.current_generation();
                    start = Some((from, chunk.clone(), from, chunk));
                }
                Some((from, original, stop, stepped)) => {
                    let direct = upgrader.upgrade(original, *from).unwrap();
                    let direct = direct.map_or_else(|| original.clone(), |done| done.chunk);
                    // The stepped chunk is stored and read at every stop.
                    let (schema, bytes) = (catalog.current_schema(), direct.to_bytes());
                    prop_assert_eq!(direct.validate(&schema), Ok(()));
                    prop_assert_eq!(&Chunk::decode(&bytes, &schema).unwrap(), &direct);
                    if let Some(done) = upgrader.upgrade(stepped, *stop).unwrap() {
                        *stepped = done.chunk;
                    }
                    *stop = catalog.current_generation();
                    prop_assert_eq!(stepped.to_bytes(), bytes);
                }
            }
        }
    }
}
