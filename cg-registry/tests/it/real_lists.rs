//! The block lists of real worlds: a pack of 78 mods comes, changes, goes and returns.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use cg_registry::types::{Content, Type};
use cg_registry::{
    BlockOffer, Catalog, ComponentOffer, FieldOffer, ListKind, Name, PackManifest, Policy, reconcile,
};
use expect_test::expect;

/// The lists, or `None` with a loud word where they are not there. On a build server they must be.
fn lists() -> Option<PathBuf> {
    let beside = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/worlds"));
    let dir = std::env::var_os("CG_WORLDS").map_or_else(beside, PathBuf::from).join("registry");
    if dir.is_dir() {
        return Some(dir);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "the sample worlds are missing: set CG_WORLDS to their directory"
    );
    // Written past the test harness, which shows the output of `eprintln!` only when a test fails.
    let text = format!("SKIPPED: no sample worlds at {}; set CG_WORLDS to run this test\n", dir.display());
    std::io::stderr().write_all(text.as_bytes()).unwrap();
    None
}

/// A Forge world's blocks as one pack per namespace, in the order of their ids there.
fn forge_packs(file: &str) -> Option<Vec<PackManifest>> {
    let text = std::fs::read_to_string(lists()?.join(file)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let version_of: BTreeMap<&str, &str> = json["mods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["id"].as_str().unwrap(), entry["version"].as_str().unwrap()))
        .collect();
    let mut blocks: Vec<(u64, &String)> =
        json["blocks"].as_object().unwrap().iter().map(|(name, id)| (id.as_u64().unwrap(), name)).collect();
    blocks.sort_unstable();
    let mut packs: Vec<PackManifest> = Vec::new();
    for (_, name) in blocks {
        let name = Name::new(name).unwrap();
        let namespace = name.namespace().to_owned();
        let at = packs.iter().position(|pack| pack.pack == namespace).unwrap_or_else(|| {
            packs.push(PackManifest {
                pack: namespace.clone(),
                version: version_of.get(&*namespace).copied().unwrap_or("unknown").into(),
                namespaces: vec![namespace.clone()],
                ..PackManifest::default()
            });
            packs.len() - 1
        });
        packs[at].blocks.push(BlockOffer::new(name));
    }
    // Mods without blocks are packs as well.
    for (id, version) in version_of {
        if packs.iter().all(|pack| pack.pack != id) {
            let (pack, namespaces) = (id.into(), vec![id.into()]);
            packs.push(PackManifest { pack, version: version.into(), namespaces, ..PackManifest::default() });
        }
    }
    Some(packs)
}

/// Minecraft's own blocks of one version, one entry per block, or one per state.
fn vanilla(file: &str, version: &str) -> Option<PackManifest> {
    let text = std::fs::read_to_string(lists()?.join(file)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let names = json.as_array().unwrap().iter().map(|block| block["name"].as_str().unwrap());
    let blocks = names.map(|name| BlockOffer::new(Name::new(format!("minecraft:{name}")).unwrap())).collect();
    let (pack, namespaces) = ("minecraft".into(), vec!["minecraft".into()]);
    Some(PackManifest { pack, version: version.into(), namespaces, blocks, ..PackManifest::default() })
}

fn names(catalog: &Catalog) -> Vec<String> {
    catalog.list(ListKind::Blocks).names().iter().map(ToString::to_string).collect()
}

/// Applies packs and checks that nothing that was there moved. Returns the report's first lines.
#[track_caller]
fn open(catalog: &mut Catalog, packs: &[PackManifest], lines: usize) -> String {
    let before = names(catalog);
    let mut rows = catalog.encode_full();
    let plan = reconcile(catalog, packs, &Policy::default());
    let changes = plan.apply(catalog).unwrap_or_else(|error| panic!("{error}"));
    let after = names(catalog);
    assert_eq!(after[..before.len()], before, "an id moved");
    for (id, name) in after.iter().enumerate() {
        assert_eq!(catalog.block_id(name).map(cg_format::BlockId::get), Some(id as u64));
    }
    rows.extend(changes.encode_tail());
    let read = Catalog::decode(rows.iter().map(|(row, bytes)| (row.as_str(), bytes.as_slice()))).unwrap();
    assert_eq!(&read, catalog, "rows and tails give the same catalog");
    let report = plan.report();
    let shown: Vec<_> = report.lines().filter(|line| !line.contains(" is new")).take(lines).collect();
    shown.join("\n")
}

#[test]
fn a_pack_of_78_mods_comes_changes_goes_and_returns() {
    let Some(mut packs) = forge_packs("forge_1.20.1_modpack_blocks.json") else { return };
    assert!(packs.len() >= 78, "{} packs", packs.len());
    let mut catalog = Catalog::new();
    open(&mut catalog, &[], 1);
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `minecraft` registers 1003 blocks: `minecraft:air`, `minecraft:stone`, `minecraft:granite` and 1000 more; ids 0 to 1002
          free     pack `tacz` registers 6 blocks: `tacz:gun_smith_table`, `tacz:workbench_a`, `tacz:workbench_b` and 3 more; ids 1003 to 1008
          free     pack `buildersdelight` registers 903 blocks: `buildersdelight:acacia_planks_1`, `buildersdelight:acacia_planks_2`, `buildersdelight:acacia_planks_3` and 900 more; ids 1009 to 1911
          free     pack `mapperbase` registers 7 blocks: `mapperbase:steel_block`, `mapperbase:steel_stairs`, `mapperbase:steel_slab` and 4 more; ids 1912 to 1918
          free     pack `embellishcraft` registers 1114 blocks: `embellishcraft:basalt`, `embellishcraft:slate`, `embellishcraft:marble` and 1111 more; ids 1919 to 3032"#]].assert_eq(&open(&mut catalog, &packs, 6));
    assert_eq!(catalog.list(ListKind::Blocks).len(), 6681);

    // Every position is the one that the lists give, for the rest of this world's life.
    let pinned: Vec<String> =
        packs.iter().flat_map(|pack| &pack.blocks).map(|block| block.name.to_string()).collect();
    assert_eq!(names(&catalog), pinned);

    // An update: two blocks fewer, one more, sorted another way.
    let create = packs.iter().position(|pack| pack.pack == "create").unwrap();
    let original = packs[create].clone();
    packs[create].version = "6.1.0".into();
    packs[create].blocks.drain(..2);
    packs[create].blocks.reverse();
    packs[create].blocks.push(BlockOffer::new(Name::new("create:brand_new").unwrap()));
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `create` goes from 6.0.8 to 6.1.0
          free     pack `create` registers 1 block: `create:brand_new`; id 6681
          free     pack `create` no longer offers 2 blocks, kept: `create:schematicannon`, `create:schematic_table`"#]].assert_eq(&open(&mut catalog, &packs, 9));

    // Gone, with all its blocks; the others stay.
    let removed = packs.remove(create);
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `create` 6.1.0 is missing; its 644 blocks keep their ids and bytes"#]]
    .assert_eq(&open(&mut catalog, &packs, 9));

    // Back in its first form.
    packs.push(original);
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `create` 6.0.8 is back
          free     pack `create` goes from 6.1.0 to 6.0.8
          free     pack `create` no longer offers 1 block, kept: `create:brand_new`"#]]
    .assert_eq(&open(&mut catalog, &packs, 9));
    assert_eq!(names(&catalog)[..pinned.len()], pinned);
    assert_eq!(names(&catalog).len(), pinned.len() + 1, "only the update's new block was added");
    assert_eq!(removed.pack, "create");
}

/// A component of every mod with blocks, in the first of them, that counts up to a number.
fn with_counters(packs: &[PackManifest], of: Option<Type>) -> Vec<PackManifest> {
    let mut packs = packs.to_vec();
    for pack in &mut packs {
        let Some(first) = pack.blocks.first_mut() else { continue };
        let counter = Name::new(format!("{}:counter", pack.pack)).unwrap();
        first.components.push(counter.clone());
        let fields = vec![FieldOffer { of: of.clone(), ..FieldOffer::new("count", 2) }];
        pack.components.push(ComponentOffer { fields, ..ComponentOffer::fixed(counter, 2) });
    }
    packs
}

#[test]
fn types_come_to_a_pack_of_78_mods_and_narrow() {
    let Some(packs) = forge_packs("forge_1.20.1_modpack_blocks.json") else { return };
    let owners = packs.iter().filter(|pack| !pack.blocks.is_empty()).count();
    let mut catalog = Catalog::new();
    open(&mut catalog, &with_counters(&packs, None), 1);
    let untyped = catalog.clone();
    let ranged = |max| with_counters(&packs, Some(Type::Unsigned { min: 0, max }));
    expect![[r#"
        accepted: no stored chunk is touched
          free     component `minecraft:counter` has types that may not allow stored values of `count` (0 to 999); `cg registry check` finds these
          free     component `tacz:counter` has types that may not allow stored values of `count` (0 to 999); `cg registry check` finds these"#]].assert_eq(&open(&mut catalog, &ranged(999), 3));
    expect![[r#"
        accepted: no stored chunk is touched
          free     component `minecraft:counter` has other types, which allow what they allowed
          free     component `tacz:counter` has other types, which allow what they allowed"#]]
    .assert_eq(&open(&mut catalog, &ranged(1000), 3));
    expect![[r#"
        accepted: no stored chunk is touched
          free     component `minecraft:counter` has types that may not allow stored values of `count` (0 to 10); `cg registry check` finds these
          free     component `tacz:counter` has types that may not allow stored values of `count` (0 to 10); `cg registry check` finds these"#]].assert_eq(&open(&mut catalog, &ranged(10), 3));
    // The packs go back to what they were before they had types: these stay.
    expect!["accepted: the registry stays as it is"].assert_eq(&open(
        &mut catalog,
        &with_counters(&packs, None),
        3,
    ));
    let (with, without) = (catalog.encode_full(), untyped.encode_full());
    assert_eq!(with[..without.len()], without, "types change no other row");
    assert_eq!(with.len(), without.len() + 1);
    let checks = packs.iter().filter_map(|pack| {
        let id = catalog.component_id(&format!("{}:counter", pack.pack))?;
        Some(catalog.types(id).map(|types: &Content| (types.check(&[10, 0]), types.check(&[11, 0]).is_err())))
    });
    let checks: Vec<_> = checks.collect();
    assert_eq!(checks, vec![Some((Ok(()), true)); owners]);
}

#[test]
fn a_world_follows_minecraft_from_1_18_to_1_21() {
    let versions = [
        ("minecraft_1.18_blocks_trimmed.json", "1.18"),
        ("minecraft_1.20_blocks_trimmed.json", "1.20"),
        ("minecraft_1.21.4_blocks_trimmed.json", "1.21.4"),
        ("minecraft_1.21.4_blocks_full.json", "1.21.4"),
    ];
    let mut catalog = Catalog::new();
    let mut shown = Vec::new();
    for (file, version) in versions {
        let Some(pack) = vanilla(file, version) else { return };
        shown.push(open(&mut catalog, &[pack], 4));
    }
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `minecraft` registers 898 blocks: `minecraft:air`, `minecraft:stone`, `minecraft:granite` and 895 more; ids 0 to 897
        accepted: no stored chunk is touched
          free     pack `minecraft` goes from 1.18 to 1.20
          free     pack `minecraft` registers 105 blocks: `minecraft:cherry_planks`, `minecraft:mangrove_planks`, `minecraft:bamboo_planks` and 102 more; ids 898 to 1002
        accepted: no stored chunk is touched
          free     pack `minecraft` goes from 1.20 to 1.21.4
          free     pack `minecraft` registers 93 blocks: `minecraft:pale_oak_wood`, `minecraft:pale_oak_planks`, `minecraft:pale_oak_sapling` and 90 more; ids 1003 to 1095
          free     pack `minecraft` no longer offers 1 block, kept: `minecraft:grass`
        accepted: the registry stays as it is
          free     pack `minecraft` no longer offers 1 block, kept: `minecraft:grass`"#]].assert_eq(&shown.join("\n"));
    assert_eq!(catalog.block_name(cg_format::BlockId::new(0)).unwrap().as_str(), "minecraft:air");
}

#[test]
fn one_mod_over_two_ages_of_the_game() {
    let mut catalog = Catalog::new();
    for file in ["forge_1.12.2_twilightforest_blocks.json", "forge_1.16.5_twilightforest_blocks.json"] {
        let Some(packs) = forge_packs(file) else { return };
        open(&mut catalog, &packs, 1);
    }
    // Blocks of 1.12 keep their ids although 1.16 numbers them otherwise.
    assert_eq!(catalog.block_id("minecraft:grass").map(cg_format::BlockId::get), Some(2));
    expect!["1186"].assert_eq(&catalog.list(ListKind::Blocks).len().to_string());
}
