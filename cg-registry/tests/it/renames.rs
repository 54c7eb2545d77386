//! Renames: earlier names of new worlds, worlds that have both names, and names that leave a world.

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{ComponentId, LocalPos};
use cg_registry::kept::Owner;
use cg_registry::portable::{IdRemap, Names, Used};
use cg_registry::{
    Catalog, KeptComponents, LOST_COMPONENTS, ListKind, PackManifest, Policy, Registration, UpgradeFunctions,
    Upgrader, reconcile,
};

const OLD: &str = r#"{"pack":"mod","version":"1","namespaces":["mod",""],
    "components":[{"name":"mod:inv","size":2,"fields":[{"name":"a","width_bytes":2}]}],
    "blocks":[{"name":":air"},{"name":"mod:ore","components":["mod:inv"]}],
    "entities":["mod:golem"],"dimensions":["mod:below"],"sides":["mod:light"]}"#;

/// The pack after the renames; the bag is wider than the inventory.
const NEW: &str = r#"{"pack":"mod","version":"2","namespaces":["mod",""],
    "components":[{"name":"mod:bag","size":4,"fields":[{"name":"b","width_bytes":1,"default":"09"},{"name":"a","width_bytes":3}]}],
    "blocks":[{"name":":air"},{"name":"mod:rich_ore","components":["mod:bag"]}],
    "entities":["mod:robot"],"dimensions":["mod:deep"],"sides":["mod:glow"],
    "renamed":[{"list":"blocks","old":"mod:ore","new":"mod:rich_ore"},{"list":"components","old":"mod:inv","new":"mod:bag"},
        {"list":"entities","old":"mod:golem","new":"mod:robot"},{"list":"dimensions","old":"mod:below","new":"mod:deep"},
        {"list":"sides","old":"mod:light","new":"mod:glow"}]}"#;

/// Opens with a pack, and checks that another opening changes nothing and that the rows decode to the same catalog.
#[track_caller]
fn open(catalog: &mut Catalog, pack: &str) -> String {
    let pack = PackManifest::from_json(pack).expect("sound");
    let plan = reconcile(catalog, std::slice::from_ref(&pack), &Policy::default());
    plan.apply(catalog).unwrap_or_else(|error| panic!("{error}"));
    let again = reconcile(catalog, &[pack], &Policy::default());
    assert!(again.is_unchanged(), "{again}");
    let rows = catalog.encode_full();
    let read = Catalog::decode(rows.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    assert_eq!(&read.expect("decodes"), catalog);
    plan.report()
}

fn opened(packs: &[&str]) -> Catalog {
    let mut catalog = Catalog::new();
    for pack in packs {
        open(&mut catalog, pack);
    }
    catalog
}

/// A world with both names: the old pack, then what came from elsewhere under the new names alone.
fn both() -> Catalog {
    let mut catalog = opened(&[OLD]);
    let mut names = names_of(&opened(&[NEW]));
    names.aliases.clear();
    catalog.register(&names.registration(&catalog)).expect("new names");
    catalog
}

fn names_of(catalog: &Catalog) -> Names {
    let used = Used {
        blocks: ["mod:ore", "mod:rich_ore"].iter().filter_map(|name| catalog.block_id(name)).collect(),
        entities: ["mod:golem", "mod:robot"].iter().filter_map(|name| catalog.entity_type(name)).collect(),
        ..Used::default()
    };
    Names::of(catalog, &used).expect("its own ids")
}

fn cell(x: u8) -> CellLayer {
    CellLayer::base(LocalPos::new(x, 2, 3))
}

#[test]
fn a_rename_gives_the_current_name() {
    let catalog = opened(&[OLD, NEW]);
    let ore = catalog.block_id("mod:ore").expect("is known");
    assert_eq!(catalog.block_name(ore).expect("issued").as_str(), "mod:rich_ore");
    let bag = catalog.component_id("mod:inv").expect("is known");
    assert_eq!(catalog.component_name(bag).expect("issued").as_str(), "mod:bag@2");
    assert_eq!(catalog.list(ListKind::Blocks).name(ore.get()).expect("issued").as_str(), "mod:ore");
}

#[test]
fn a_new_world_knows_the_earlier_names() {
    let mut catalog = Catalog::new();
    let report = open(&mut catalog, NEW);
    assert!(
        report.contains("block `mod:rich_ore` is also found as `mod:ore`, its earlier name; its id stays 1"),
        "{report}"
    );
    assert_eq!(catalog.block_id("mod:ore"), catalog.block_id("mod:rich_ore"));
    assert_eq!(catalog.component_id("mod:inv"), catalog.component_id("mod:bag"));
    assert_eq!(catalog.entity_type("mod:golem"), catalog.entity_type("mod:robot"));
    assert_eq!(catalog.dimension("mod:below"), catalog.dimension("mod:deep"));
    let ore = catalog.block_id("mod:ore").expect("is known");
    assert_eq!(catalog.block_name(ore).expect("issued").as_str(), "mod:rich_ore");
}

#[test]
fn names_leave_a_world_with_all_their_aliases() {
    let renamed = opened(&[OLD, NEW]);
    let names = names_of(&renamed);
    let ore = renamed.block_id("mod:ore").expect("is known");
    assert_eq!(names.block(ore).expect("used").as_str(), "mod:rich_ore");
    assert_eq!(names.aliases.get(&(ListKind::Blocks, ore.get())).expect("has some")[0].as_str(), "mod:ore");
    // Into a world of the new pack, of the old one, and one without either.
    for packs in [&[NEW][..], &[OLD]] {
        let there = opened(packs);
        assert_eq!(names.missing_in(&there), []);
        assert_eq!(names.registration(&there), Registration::default());
        let remap = IdRemap::new(&names, &there).expect("has all");
        assert_eq!(
            remap.entity(renamed.entity_type("mod:robot").expect("is known")),
            there.entity_type("mod:golem").or(there.entity_type("mod:robot"))
        );
    }
    assert_eq!(names.missing_in(&Catalog::new()).len(), 3);
    // And the names of the old world into one of the new pack.
    let old = names_of(&opened(&[OLD]));
    assert_eq!(old.missing_in(&opened(&[NEW])), []);
}

#[test]
fn a_world_with_both_names_unites_them() {
    let mut catalog = both();
    let (ore, rich) =
        (catalog.block_id("mod:ore").expect("has it"), catalog.block_id("mod:rich_ore").expect("has it"));
    let [inv, bag] = ["mod:inv", "mod:bag"].map(|name| catalog.component_id(name).expect("has it"));
    let [golem, robot] = ["mod:golem", "mod:robot"].map(|name| catalog.entity_type(name).expect("has it"));
    assert!(ore != rich && inv != bag && golem != robot);
    let schema = catalog.current_schema();
    let mut chunk = Chunk::filled(catalog.block_id(":air").expect("has it"), &schema).expect("known");
    chunk.set_block(cell(1).cell, ore, &schema).expect("known");
    chunk.set_block(cell(2).cell, rich, &schema).expect("known");
    chunk.set_component(cell(1), inv, &[7, 1]).expect("has it");
    chunk.set_component(cell(2), bag, &[1, 2, 3, 4]).expect("has it");
    let generation = catalog.current_generation();

    let report = open(&mut catalog, NEW);
    for line in [
        "block `mod:ore` (id 1) becomes `mod:rich_ore` (id 2): the world has both",
        "component `mod:inv` (id 0) becomes `mod:bag` (id 1): the world has both",
        "entity `mod:golem` (id 0) becomes `mod:robot` (id 1): the world has both",
    ] {
        assert!(report.contains(line), "{report}");
    }
    assert_eq!(catalog.block_id("mod:ore"), Some(rich));
    assert_eq!(catalog.block_name(ore).expect("issued").as_str(), "mod:rich_ore");
    assert_eq!((catalog.newest_entity_type(golem), catalog.entity_type("mod:golem")), (robot, Some(robot)));

    let functions = UpgradeFunctions::default();
    let upgrader = Upgrader::new(&catalog, &functions);
    let done = upgrader.upgrade(&chunk, generation).expect("converts").expect("has changes").chunk;
    assert_eq!((done.block(cell(1).cell), done.block(cell(2).cell)), (rich, rich));
    assert_eq!(done.component(cell(1), bag), Some(&[9, 7, 1, 0][..]));
    assert_eq!(done.component(cell(2), bag), Some(&[1, 2, 3, 4][..]));
    let value = upgrader.upgrade_value(inv, &[7, 1]).expect("converts");
    assert_eq!((value.0, &*value.1), (bag, &[9, 7, 1, 0][..]));

    // A later layout of the united component goes on from there.
    let wider = NEW.replace(r#""size":4"#, r#""size":5"#).replace(r#""width_bytes":3"#, r#""width_bytes":4"#);
    open(&mut catalog, &wider);
    let newest = catalog.component_id("mod:inv").expect("has it");
    let upgrader = Upgrader::new(&catalog, &functions);
    let done = upgrader.upgrade(&chunk, generation).expect("converts").expect("has changes").chunk;
    assert_eq!(done.component(cell(1), newest), Some(&[9, 7, 1, 0, 0][..]));
    assert_eq!(done.component(cell(2), newest), Some(&[1, 2, 3, 4, 0][..]));
}

#[test]
fn what_cannot_be_united_is_no_dead_end() {
    let mut catalog = opened(&[OLD]);
    let elsewhere = opened(&[&NEW.replace(
        r#""size":4,"fields":[{"name":"b","width_bytes":1,"default":"09"},{"name":"a","width_bytes":3}]"#,
        r#""size":"variable""#,
    )]);
    let mut names = names_of(&elsewhere);
    names.aliases.clear();
    catalog.register(&names.registration(&catalog)).expect("new names");
    let (ore, inv) =
        (catalog.block_id("mod:ore").expect("has it"), catalog.component_id("mod:inv").expect("has it"));
    let schema = catalog.current_schema();
    let mut chunk = Chunk::filled(ore, &schema).expect("known");
    chunk.set_component(cell(1), inv, &[7, 1]).expect("has it");
    let generation = catalog.current_generation();
    let text = NEW.replace(
        r#""size":4,"fields":[{"name":"b","width_bytes":1,"default":"09"},{"name":"a","width_bytes":3}]"#,
        r#""size":"variable""#,
    );
    let report = open(&mut catalog, &text);
    assert!(
        report.contains("component `mod:inv` and component `mod:bag` stay two entries: the world has both"),
        "{report}"
    );
    let functions = UpgradeFunctions::default();
    let done = Upgrader::new(&catalog, &functions)
        .upgrade(&chunk, generation)
        .expect("converts")
        .expect("has changes")
        .chunk;
    let rich = catalog.block_id("mod:rich_ore").expect("has it");
    assert_eq!(done.block(cell(1).cell), rich);
    let kept = KeptComponents::decode(done.side(LOST_COMPONENTS).expect("is kept"), None).expect("sound");
    let owner = Owner { at: cell(1), block: rich, component: ComponentId::fixed(inv.index()) };
    assert_eq!(kept.get(owner), Some(&[7, 1][..]));
}

/// A block becomes one that gains a component, and then one without it. Through both, the component is kept; in one step
/// it must be so too.
#[test]
fn a_union_takes_effect_in_its_generation() {
    let first = r#"{"pack":"mod","version":"1","namespaces":["mod"],"components":[{"name":"mod:inv","size":"variable"}],
        "blocks":[{"name":"mod:a"},{"name":"mod:b"}]}"#;
    let second = r#"{"pack":"mod","version":"2","namespaces":["mod"],"components":[{"name":"mod:inv","size":"variable"}],
        "blocks":[{"name":"mod:c"},{"name":"mod:b","components":["mod:inv"]}],
        "renamed":[{"list":"blocks","old":"mod:a","new":"mod:b"}]}"#;
    let third = r#"{"pack":"mod","version":"3","namespaces":["mod"],"components":[{"name":"mod:inv","size":"variable"}],
        "renamed":[{"list":"blocks","old":"mod:a","new":"mod:c"}]}"#;
    let mut catalog = opened(&[first]);
    let old = catalog.block_id("mod:a").expect("has it");
    let chunk = Chunk::filled(old, &catalog.current_schema()).expect("known");
    open(&mut catalog, second);
    let functions = UpgradeFunctions::default();
    let stop =
        Upgrader::new(&catalog, &functions).upgrade(&chunk, 0).expect("converts").expect("changes").chunk;
    assert_eq!(stop.kinds(), [catalog.block_id("mod:b").expect("has it")]);
    open(&mut catalog, third);
    let upgrader = Upgrader::new(&catalog, &functions);
    let stepped = upgrader.upgrade(&stop, 1).expect("converts").expect("changes").chunk;
    let direct = upgrader.upgrade(&chunk, 0).expect("converts").expect("changes").chunk;
    assert_eq!(direct.kinds(), [catalog.block_id("mod:c").expect("has it")]);
    let kept = KeptComponents::decode(direct.side(LOST_COMPONENTS).expect("is kept"), None).expect("sound");
    assert_eq!(kept.iter().count(), 4096);
    assert_eq!(direct, stepped);
}

/// A block loses a component and gains another one. That the two are united afterwards changes nothing about it.
#[test]
fn united_components_convert_nothing_of_earlier_generations() {
    let pack = |components: &str, of_box: &str, renamed: &str| {
        format!(
            r#"{{"pack":"mod","version":"1","namespaces":["mod"],"components":[{components}],
                "blocks":[{{"name":"mod:box","components":["{of_box}"]}}],"renamed":[{renamed}]}}"#
        )
    };
    let inv = r#"{"name":"mod:inv","size":2}"#;
    let bag = r#"{"name":"mod:bag","size":2,"default":"0303"}"#;
    let both = format!("{inv},{bag}");
    let mut catalog = opened(&[&pack(&both, "mod:inv", "")]);
    let [inv, bag_id] = ["mod:inv", "mod:bag"].map(|name| catalog.component_id(name).expect("has it"));
    let block = catalog.block_id("mod:box").expect("has it");
    let mut chunk = Chunk::filled(block, &catalog.current_schema()).expect("known");
    chunk.set_component(cell(1), inv, &[7, 7]).expect("has it");
    open(&mut catalog, &pack(&both, "mod:bag", ""));
    let functions = UpgradeFunctions::default();
    let stop =
        Upgrader::new(&catalog, &functions).upgrade(&chunk, 0).expect("converts").expect("changes").chunk;
    let renamed = r#"{"list":"components","old":"mod:inv","new":"mod:bag"}"#;
    open(&mut catalog, &pack(bag, "mod:bag", renamed));
    assert_eq!(catalog.component_id("mod:inv"), Some(bag_id));
    let upgrader = Upgrader::new(&catalog, &functions);
    let direct = upgrader.upgrade(&chunk, 0).expect("converts").expect("changes").chunk;
    let stepped = upgrader.upgrade(&stop, 1).expect("converts").map_or(stop, |done| done.chunk);
    assert_eq!(direct, stepped);
    assert_eq!(direct.component(cell(1), bag_id), Some(&[3, 3][..]));
    let kept = KeptComponents::decode(direct.side(LOST_COMPONENTS).expect("is kept"), None).expect("sound");
    assert_eq!(kept.get(Owner { at: cell(1), block, component: inv }), Some(&[7, 7][..]));
}
