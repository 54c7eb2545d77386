//! Plans: what changed packs may do, checked as reports.

use super::*;
use crate::{BlockOffer, ComponentOffer, FieldOffer, HexBytes, ListKind, Name, Rename, Size};
use expect_test::{Expect, expect};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn pack(json: &str) -> PackManifest {
    PackManifest::from_json(json).unwrap()
}

/// A small game: a machine with a fixed and a crate with a variable component.
fn game() -> PackManifest {
    pack(
        r#"{ "pack": "game", "version": "1", "namespaces": ["", "game"],
             "components": [
                { "name": "game:power", "size": 2, "fields": [
                    { "name": "level", "width_bytes": 1 }, { "name": "limit", "width_bytes": 1, "default": "64" } ] },
                { "name": "game:items", "size": "variable" } ],
             "blocks": [
                { "name": ":air", "opaque": false },
                { "name": "game:machine", "components": ["game:power"] },
                { "name": "game:crate", "components": ["game:items"] } ],
             "entities": ["game:cow"], "dimensions": ["game:home"], "sides": ["game:light"] }"#,
    )
}

fn addon() -> PackManifest {
    pack(
        r#"{ "pack": "addon", "version": "0.1", "namespaces": ["addon"],
             "components": [{ "name": "addon:heat", "size": 4 }],
             "blocks": [{ "name": "addon:oven", "components": ["addon:heat", "game:power"] },
                        { "name": "addon:wire", "opaque": false }] }"#,
    )
}

fn world() -> Catalog {
    let mut catalog = Catalog::new();
    reconcile(&catalog, &[game(), addon()], &Policy::default()).apply(&mut catalog).unwrap();
    catalog
}

/// Plans a change of the packs of [`world`], and checks that applying the plan does exactly what it contains.
#[track_caller]
fn check(edit: impl FnOnce(&mut Vec<PackManifest>, &mut Policy), expected: Expect) -> Catalog {
    let stored = world();
    let mut catalog = stored.clone();
    let (mut packs, mut policy) = (vec![game(), addon()], Policy::default());
    edit(&mut packs, &mut policy);
    let plan = reconcile(&catalog, &packs, &policy);
    expected.assert_eq(&plan.report());
    match plan.apply(&mut catalog) {
        Ok(changes) => {
            assert_eq!(changes.is_empty(), plan.is_unchanged());
            assert!(
                reconcile(&catalog, &packs, &policy).is_unchanged(),
                "a second time there is nothing to do"
            );
        }
        Err(error) => {
            assert!(!plan.is_accepted(), "{error}");
            assert_eq!(catalog, stored, "a refused plan changes nothing");
        }
    }
    catalog
}

#[test]
fn a_new_world_and_one_that_stays() {
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `game` 1 is new
          free     pack `addon` 0.1 is new
          free     pack `game` registers 2 components: `game:power`, `game:items`; ids 0 to 1
          free     pack `addon` registers 1 component: `addon:heat`; id 2
          free     pack `game` registers 3 blocks: `:air`, `game:machine`, `game:crate`; ids 0 to 2
          free     pack `addon` registers 2 blocks: `addon:oven`, `addon:wire`; ids 3 to 4
          free     pack `game` registers 1 entity: `game:cow`; id 0
          free     pack `game` registers 1 dimension: `game:home`; id 0
          free     pack `game` registers 1 side kind: `game:light`; id 2
    "#]]
    .assert_eq(&reconcile(&Catalog::new(), &[game(), addon()], &Policy::default()).report());
    check(
        |_, _| (),
        expect![[r#"
        accepted: the registry stays as it is
    "#]],
    );
}

#[test]
fn a_plan_for_another_state_is_not_applied() {
    let mut catalog = world();
    let plan = reconcile(&Catalog::new(), &[game()], &Policy::default());
    let error = plan.apply(&mut catalog).unwrap_err().to_string();
    expect!["the catalog has changed since: blocks has 5 entries, not 0; reconcile again"].assert_eq(&error);
    assert_eq!(catalog, world());
}

#[test]
fn blocks_gain_and_lose_components() {
    let catalog = check(
        |packs, _| {
            packs[0].blocks[1].components = vec![name("game:items")];
            packs[0].blocks[2].opaque = false;
        },
        expect![[r#"
            accepted: stored chunks are converted as they are loaded (schema generation 0 to 1)
              on load  block `game:machine` gains `game:items` and loses `game:power`, whose bytes are kept
              free     block `game:crate` shows what is behind it
        "#]],
    );
    assert_eq!(catalog.current_generation(), 1);
}

#[test]
fn components_grow_shrink_and_change_their_kind() {
    let field = |name: &str, width_bytes| FieldOffer::new(name, width_bytes);
    let catalog = check(
        |packs, _| {
            packs[0].components[0].size = Size::Fixed(6);
            packs[0].components[0].fields = vec![field("limit", 1), field("level", 1), field("heat", 4)];
        },
        expect![[r#"
            accepted: stored chunks are converted as they are loaded (schema generation 0 to 1)
              on load  component `game:power` goes from 2 bytes to 6 bytes as `game:power@2`, carried over by field names; 2 blocks have it
        "#]],
    );
    assert_eq!(catalog.component_id("game:power").unwrap().index(), 3);
    assert_eq!(catalog.component_id("game:power@2").unwrap().index(), 3);

    let shrink = |packs: &mut Vec<PackManifest>| packs[1].components[0].size = Size::Fixed(2);
    check(
        |packs, _| shrink(packs),
        expect![[r#"
        refused for 1 reason, the world is unchanged
          REFUSED  component `addon:heat` would go from 4 bytes to 2 bytes and lose the last 2 bytes; register an upgrade function, or allow shrinking
    "#]],
    );
    check(
        |packs, policy| {
            shrink(packs);
            policy.allow_shrink = true;
        },
        expect![[r#"
            accepted: stored chunks are converted as they are loaded (schema generation 0 to 1)
              on load  component `addon:heat` goes from 4 bytes to 2 bytes as `addon:heat@2`, carried over from the front, losing the last 2 bytes; 1 block has it (cannot be undone)
        "#]],
    );
    let kind = |packs: &mut Vec<PackManifest>| packs[1].components[0].size = Size::Variable;
    check(
        |packs, _| kind(packs),
        expect![[r#"
        refused for 1 reason, the world is unchanged
          REFUSED  component `addon:heat` would go from 4 bytes to variable size; only an upgrade function of the host can carry it over
    "#]],
    );
    check(
        |packs, policy| {
            kind(packs);
            policy.conversions.insert("addon:heat".into());
        },
        expect![[r#"
            accepted: stored chunks are converted as they are loaded (schema generation 0 to 1)
              on load  component `addon:heat` goes from 4 bytes to variable size as `addon:heat@2`, carried over by the host's function; 1 block has it (cannot be undone)
        "#]],
    );
    check(
        |packs, _| packs[1].components[0].default_bytes = Some(HexBytes(vec![1, 2, 3, 4])),
        expect![[r#"
            accepted: no stored chunk is touched
              free     component `addon:heat`: new instances hold 01020304
        "#]],
    );
}

#[test]
fn entries_are_renamed() {
    let rename = |list, old, new| Rename { list, old: name(old), new: name(new) };
    let catalog = check(
        |packs, _| {
            packs[1].components[0].name = name("addon:warmth");
            packs[1].blocks[0] = BlockOffer {
                components: vec![name("addon:warmth"), name("game:power")],
                ..BlockOffer::new(name("addon:stove"))
            };
            packs[1].renamed = vec![
                rename(ListKind::Blocks, "addon:oven", "addon:stove"),
                rename(ListKind::Components, "addon:heat", "addon:warmth"),
                rename(ListKind::Blocks, "addon:never_was", "addon:wire"),
            ];
        },
        expect![[r#"
            accepted: no stored chunk is touched
              free     block `addon:oven` is also found as `addon:stove`; its id stays 3
              free     component `addon:heat` is also found as `addon:warmth`; its id stays 2
              free     block `addon:wire` is also found as `addon:never_was`, its earlier name; its id stays 4
        "#]],
    );
    assert_eq!(catalog.block_id("addon:oven"), catalog.block_id("addon:stove"));
    assert_eq!(catalog.component_id("addon:heat"), catalog.component_id("addon:warmth"));
    check(
        |packs, _| packs[1].renamed = vec![rename(ListKind::Blocks, "addon:oven", "addon:wire")],
        expect![[r#"
            accepted: the registry stays as it is
              free     block `addon:oven` and block `addon:wire` stay two entries: the world has both
        "#]],
    );
    check(
        |packs, _| {
            packs[1].renamed = vec![rename(ListKind::Blocks, "addon:oven", "addon:stove")];
            packs[1].blocks.push(BlockOffer::new(name("addon:stove")));
        },
        expect![[r#"
            refused for 1 reason, the world is unchanged
              REFUSED  blocks `addon:oven` of pack `addon` is offered again as `addon:stove` by pack `addon`; an entry has one owner
              free     block `addon:oven` is also found as `addon:stove`; its id stays 3
              free     block `addon:stove` is also found as `addon:oven`; its id stays 3
        "#]],
    );
}

#[test]
fn packs_go_and_come_back() {
    let gone = check(
        |packs, _| {
            packs.pop();
        },
        expect![[r#"
            accepted: no stored chunk is touched
              free     pack `addon` 0.1 is missing; its 2 blocks, 1 component keep their ids and bytes
        "#]],
    );
    let back = reconcile(&gone, &[game(), addon()], &Policy::default());
    expect![[r#"
        accepted: no stored chunk is touched
          free     pack `addon` 0.1 is back
    "#]]
    .assert_eq(&back.report());
    let still = reconcile(&gone, &[game()], &Policy::default());
    expect![[r#"
        accepted: the registry stays as it is
          free     pack `addon` 0.1 is missing; its 2 blocks, 1 component keep their ids and bytes
    "#]]
    .assert_eq(&still.report());
    check(
        |packs, policy| {
            packs.pop();
            policy.missing = MissingPacks::Refuse;
        },
        expect![[r#"
            refused for 1 reason, the world is unchanged
              REFUSED  pack `addon` 0.1 is missing, and the policy refuses to open without it; 3 of its names are in the world
        "#]],
    );
    check(
        |packs, policy| {
            packs.pop();
            policy.missing = MissingPacks::Placeholder(name("addon:unknown"));
        },
        expect![[r#"
            refused for 1 reason, the world is unchanged
              REFUSED  the placeholder `addon:unknown` is neither in the world nor offered; choose a block that is
        "#]],
    );
    check(
        |packs, policy| {
            packs.pop();
            policy.missing = MissingPacks::Placeholder(name("game:crate"));
        },
        expect![[r#"
            accepted: no stored chunk is touched
              free     pack `addon` 0.1 is missing; its 2 blocks, 1 component keep their ids and bytes, shown as `game:crate`
        "#]],
    );
    let policy = Policy { missing: MissingPacks::Placeholder(name("game:crate")), ..Policy::default() };
    let plan = reconcile(&world(), &[game()], &policy);
    let shown: Vec<_> = plan.stand_ins().iter().map(|(from, to)| (from.get(), to.get())).collect();
    assert_eq!(shown, [(3, 2), (4, 2)]);
    check(
        |packs, _| {
            packs[1].version = "0.2".into();
            packs[1].blocks.pop();
        },
        expect![[r#"
            accepted: no stored chunk is touched
              free     pack `addon` goes from 0.1 to 0.2
              free     pack `addon` no longer offers 1 block, kept: `addon:wire`
        "#]],
    );
}

#[test]
fn names_have_one_owner() {
    let fork = || PackManifest { pack: "fork".into(), ..addon() };
    check(
        |packs, _| packs.push(fork()),
        expect![[r#"
        refused for 4 reasons, the world is unchanged
          REFUSED  `addon` is the namespace of pack `addon`, and pack `fork` claims it too; remove one of them
          REFUSED  blocks `addon:oven` of pack `addon` is offered again as `addon:oven` by pack `fork`; an entry has one owner
          REFUSED  blocks `addon:wire` of pack `addon` is offered again as `addon:wire` by pack `fork`; an entry has one owner
          REFUSED  components `addon:heat` of pack `addon` is offered again as `addon:heat` by pack `fork`; an entry has one owner
    "#]],
    );
    check(
        |packs, _| packs[1] = fork(),
        expect![[r#"
        refused for 1 reason, the world is unchanged
          REFUSED  `addon` is the namespace of pack `addon`, which is not offered; pack `fork` may take it over only if the policy allows takeovers
    "#]],
    );
    check(
        |packs, policy| {
            packs[1] = fork();
            policy.allow_takeover = true;
        },
        expect![[r#"
            accepted: no stored chunk is touched
              free     pack `fork` 0.1 is new
              free     pack `addon` 0.1 is missing
        "#]],
    );
    check(
        |packs, _| packs[1].entities.push(name("game:pig")),
        expect![[r#"
            refused for 1 reason, the world is unchanged
              REFUSED  pack `addon` offers entity `game:pig`, which is in none of its namespaces
        "#]],
    );
    check(
        |packs, _| packs[1].entities.push(name("addon:pig").revised(2).unwrap()),
        expect![[r#"
            refused for 1 reason, the world is unchanged
              REFUSED  pack `addon` offers entity `addon:pig@2`; `@` is the registry's own
        "#]],
    );
    check(
        |packs, _| packs.push(addon()),
        expect![[r#"
        refused for 4 reasons, the world is unchanged
          REFUSED  pack `addon` is offered twice; remove one of them
          REFUSED  blocks `addon:oven` of pack `addon` is offered again as `addon:oven` by pack `addon`; an entry has one owner
          REFUSED  blocks `addon:wire` of pack `addon` is offered again as `addon:wire` by pack `addon`; an entry has one owner
          REFUSED  components `addon:heat` of pack `addon` is offered again as `addon:heat` by pack `addon`; an entry has one owner
    "#]],
    );
    check(
        |packs, _| {
            packs[1].pack = String::new();
            packs[0].namespaces.push("a:b".into());
            packs[0].version = "1".repeat(256);
        },
        expect![[r#"
            refused for 3 reasons, the world is unchanged
              REFUSED  pack "game" cannot be remembered: its name or version has 256 bytes, at most 255 are allowed
              REFUSED  pack "" cannot be remembered: it has no name
              REFUSED  `addon` is the namespace of pack `addon`, which is not offered; pack `` may take it over only if the policy allows takeovers
        "#]],
    );
}

#[test]
fn what_does_not_add_up_is_refused_with_all_reasons() {
    check(
        |packs, _| {
            packs[1].components.push(ComponentOffer::fixed(name("addon:huge"), 1 << 20));
            packs[1].blocks.push(BlockOffer {
                components: vec![name("addon:no_such"), name("addon:huge")],
                ..BlockOffer::new(name("addon:bad"))
            });
            packs[0].blocks[1].components = vec![name("game:power").revised(2).unwrap()];
            packs[0].sides = (0..65_536).map(|n| name(&format!("game:{n}"))).collect();
        },
        expect![[r#"
            refused for 4 reasons, the world is unchanged
              REFUSED  component `addon:huge` of pack `addon`: a width of 1048576 bytes is over the 65536 allowed; make it variable
              REFUSED  block `addon:bad` of pack `addon`: block `addon:bad` names component `addon:no_such`, which is not registered
              REFUSED  block `game:machine` of pack `game`: "game:power@2" cannot be registered: '@' at byte 10 is not allowed there
              REFUSED  pack `game` brings 65536 new side kinds; the list has room for 65533
              free     pack `game` no longer offers 1 side kind, kept: `game:light`
        "#]],
    );
}
