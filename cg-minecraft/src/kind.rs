//! Which block states own a block entity, and which hide what is behind them.
//!
//! A kind of block always has the same components, and which these are is fixed when it is registered. So a table of
//! the game's own block entities decides for `minecraft:`; of other namespaces the importer sees for itself.

use cg_registry::{BlockOffer, Name};

use crate::content::BLOCK_ENTITY;
use crate::game::{self, Fill};

/// Whether blocks of this state have a block entity in the game.
///
/// ```
/// use cg_minecraft::kind;
/// assert!(kind::owns_block_entity("minecraft:red_shulker_box[facing=up]"));
/// assert!(!kind::owns_block_entity("minecraft:stone"));
/// ```
pub fn owns_block_entity(state: &str) -> bool {
    let Some(block) = base(state).strip_prefix("minecraft:") else { return false };
    WITH_BLOCK_ENTITY.binary_search(&block).is_ok()
        || block != "piston_head" && WITH_BLOCK_ENTITY_SUFFIX.iter().any(|suffix| block.ends_with(suffix))
}

/// Whether the importer decides by what it sees if blocks of this state have a block entity.
pub fn is_foreign(state: &str) -> bool {
    !base(state).starts_with("minecraft:") && state.contains(':')
}

/// Whether a block of this state hides what is behind it.
///
/// For the blocks of the game a table decides, by state where states differ. For others it is a short rule: a state
/// that can hold water, a door, a plant or glass is not opaque; whatever is not named is.
///
/// ```
/// use cg_minecraft::kind;
/// assert!(kind::is_opaque("minecraft:stone"));
/// assert!(kind::is_opaque("minecraft:oak_slab[type=double,waterlogged=false]"));
/// assert!(!kind::is_opaque("minecraft:oak_leaves[distance=7,persistent=false]"));
/// assert!(!kind::is_opaque("create:shaft[axis=x,waterlogged=false]"));
/// ```
pub fn is_opaque(state: &str) -> bool {
    is_opaque_in_game(state).unwrap_or_else(|| {
        let block = base(state);
        let block = block.rsplit_once(':').map_or(block, |(_, block)| block);
        let can_be_wet = state.contains("waterlogged=");
        let named = TRANSPARENT.binary_search(&block).is_ok();
        !can_be_wet && !named && !TRANSPARENT_SUFFIX.iter().any(|suffix| block.ends_with(suffix))
    })
}

/// As [`is_opaque`], by the table of the game's blocks alone; `None` for a block that it does not know.
pub fn is_opaque_in_game(state: &str) -> Option<bool> {
    let (block, properties) = state.split_once('[').unwrap_or((state, "]"));
    Some(match game::find(block.strip_prefix("minecraft:")?)?.fill {
        Fill::Cube => true,
        Fill::CubeIf(property) => properties.trim_end_matches(']').split(',').any(|pair| pair == property),
        Fill::Part | Fill::Open => false,
    })
}

/// Offer that registers a block state.
pub fn offer(name: Name, owns_block_entity: bool, opaque: bool) -> BlockOffer {
    let components = owns_block_entity.then(|| Name::new(BLOCK_ENTITY).expect("a literal name"));
    BlockOffer { components: components.into_iter().collect(), opaque, ..BlockOffer::new(name) }
}

/// A state's block, without its properties.
pub fn base(state: &str) -> &str {
    state.split_once('[').map_or(state, |(block, _)| block)
}

/// Blocks of the game with block entities, from 1.13 to 26.2, sorted. Also by names they no longer have.
const WITH_BLOCK_ENTITY: [&str; 47] = [
    "barrel",
    "beacon",
    "bee_nest",
    "beehive",
    "bell",
    "blast_furnace",
    "brewing_stand",
    "calibrated_sculk_sensor",
    "campfire",
    "chain_command_block",
    "chest",
    "chiseled_bookshelf",
    "command_block",
    "comparator",
    "conduit",
    "crafter",
    "creaking_heart",
    "daylight_detector",
    "decorated_pot",
    "dispenser",
    "dropper",
    "enchanting_table",
    "end_gateway",
    "end_portal",
    "ender_chest",
    "furnace",
    "hopper",
    "jigsaw",
    "jukebox",
    "lectern",
    "moving_piston",
    "potent_sulfur",
    "repeating_command_block",
    "sculk_catalyst",
    "sculk_sensor",
    "sculk_shrieker",
    "smoker",
    "soul_campfire",
    "spawner",
    "structure_block",
    "suspicious_gravel",
    "suspicious_sand",
    "test_block",
    "test_instance_block",
    "trapped_chest",
    "trial_spawner",
    "vault",
];

/// Families of such blocks, by the end of their names: one of each colour, wood, metal or head.
///
/// Beds have none since 26.2. They stay here, because saves of before have them, and a kind that was registered with
/// the component keeps it.
const WITH_BLOCK_ENTITY_SUFFIX: [&str; 9] = [
    "_banner",
    "_bed",
    "_head",
    "_shelf",
    "_sign",
    "_skull",
    "copper_chest",
    "copper_golem_statue",
    "shulker_box",
];

/// Blocks that do not hide what is behind them and do not say so by `waterlogged`, sorted. For what the table of the
/// game's blocks does not have: names of mods, and of versions that are newer than it.
const TRANSPARENT: [&str; 55] = [
    "air",
    "allium",
    "azalea",
    "azure_bluet",
    "bamboo",
    "barrier",
    "beacon",
    "beetroots",
    "bell",
    "blue_orchid",
    "brewing_stand",
    "bubble_column",
    "cactus",
    "cake",
    "carrots",
    "chorus_flower",
    "cobweb",
    "cocoa",
    "comparator",
    "cornflower",
    "dandelion",
    "dead_bush",
    "dragon_egg",
    "end_gateway",
    "end_portal",
    "fern",
    "fire",
    "flower_pot",
    "frosted_ice",
    "grass",
    "honey_block",
    "hopper",
    "ice",
    "kelp",
    "large_fern",
    "lever",
    "lilac",
    "lily_of_the_valley",
    "lily_pad",
    "melon_stem",
    "moving_piston",
    "nether_portal",
    "peony",
    "poppy",
    "potatoes",
    "pumpkin_stem",
    "redstone_wire",
    "repeater",
    "rose_bush",
    "seagrass",
    "slime_block",
    "snow",
    "spawner",
    "structure_void",
    "water",
];

/// Families of such blocks, by the end of their names.
const TRANSPARENT_SUFFIX: [&str; 28] = [
    "_air",
    "_banner",
    "_bars",
    "_bed",
    "_button",
    "_carpet",
    "_crop",
    "_door",
    "_fence_gate",
    "_fungus",
    "_grass",
    "_head",
    "_leaves",
    "_mushroom",
    "_pane",
    "_plant",
    "_plate",
    "_rail",
    "_roots",
    "_sapling",
    "_seagrass",
    "_skull",
    "_sprouts",
    "_tulip",
    "_vines",
    "glass",
    "torch",
    "vine",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_and_name_nothing_twice() {
        assert!(WITH_BLOCK_ENTITY.is_sorted() && TRANSPARENT.is_sorted());
        for block in WITH_BLOCK_ENTITY {
            assert!(game::find(block).is_some(), "{block} is a typing error, or newer than the table");
            assert!(!WITH_BLOCK_ENTITY_SUFFIX.iter().any(|suffix| block.ends_with(suffix)), "{block}");
        }
        for block in TRANSPARENT {
            assert!(!TRANSPARENT_SUFFIX.iter().any(|suffix| block.ends_with(suffix)), "{block}");
        }
    }

    #[test]
    fn owners_of_block_entities() {
        for state in [
            "minecraft:chest[facing=north,type=single,waterlogged=false]",
            "minecraft:oak_wall_sign[facing=north,waterlogged=false]",
            "minecraft:oak_wall_hanging_sign[facing=north,waterlogged=false]",
            "minecraft:white_bed[facing=north,occupied=false,part=head]",
            "minecraft:white_wall_banner[facing=north]",
            "minecraft:skeleton_skull[rotation=0]",
            "minecraft:piston_head[facing=up,short=false,type=normal]",
            "minecraft:shulker_box[facing=up]",
            "minecraft:spawner",
            "minecraft:waxed_oxidized_copper_chest[facing=north]",
            "minecraft:acacia_shelf[facing=north]",
        ] {
            let expected = !state.starts_with("minecraft:piston_head");
            assert_eq!(owns_block_entity(state), expected, "{state}");
        }
        assert!(!owns_block_entity("create:chest"));
        assert!(!owns_block_entity("minecraft:bookshelf"));
        assert!(is_foreign("create:chest") && !is_foreign("minecraft:stone") && !is_foreign("stone"));
    }

    #[test]
    fn what_hides_and_what_does_not() {
        for state in [
            "minecraft:stone",
            "minecraft:grass_block[snowy=false]",
            "minecraft:soul_sand",
            "minecraft:oak_slab[type=double,waterlogged=false]",
            "minecraft:sticky_piston[extended=false,facing=up]",
            "minecraft:snow[layers=8]",
            "minecraft:red_mushroom_block[down=true,east=true,north=true,south=true,up=true,west=true]",
            "a:bedrock",
            "a:lava[level=0]",
        ] {
            assert!(is_opaque(state), "{state}");
        }
        for state in [
            "minecraft:air",
            "minecraft:cave_air",
            "minecraft:water[level=0]",
            "minecraft:lava[level=0]",
            "minecraft:glass",
            "minecraft:tinted_glass",
            "minecraft:farmland[moisture=7]",
            "minecraft:grass_path",
            "minecraft:oak_slab",
            "minecraft:oak_slab[type=bottom,waterlogged=false]",
            "minecraft:piston[extended=true,facing=up]",
            "minecraft:snow[layers=1]",
            "minecraft:white_shulker_box[facing=up]",
            "minecraft:firefly_bush",
            "quark:framed_glass_pane",
            "minecraft:wall_torch[facing=north]",
            "minecraft:oak_fence[waterlogged=true]",
            "minecraft:tall_grass[half=upper]",
        ] {
            assert!(!is_opaque(state), "{state}");
        }
    }

    /// The states of a line of the list: its properties, of which the last counts fastest.
    fn states(block: &str, axes: &[&str]) -> Vec<String> {
        let mut states = vec![String::new()];
        for (name, values) in axes.iter().filter_map(|axis| axis.split_once('=')) {
            let more = |state: &String| {
                let comma = if state.is_empty() { "" } else { "," };
                values.split(',').map(|value| format!("{state}{comma}{name}={value}")).collect::<Vec<_>>()
            };
            states = states.iter().flat_map(more).collect();
        }
        let named = |state: String| match &*state {
            "" => format!("minecraft:{block}"),
            _ => format!("minecraft:{block}[{state}]"),
        };
        states.into_iter().map(named).collect()
    }

    /// The same state with its properties the other way round.
    fn turned(state: &str) -> String {
        let Some((block, properties)) = state.trim_end_matches(']').split_once('[') else {
            return state.to_owned();
        };
        format!("{block}[{}]", properties.rsplit(',').collect::<Vec<_>>().join(","))
    }

    #[test]
    fn every_state_of_26_2_is_what_its_source_says() {
        let list = include_str!("../../testdata/tables/java_states.txt");
        let (mut blocks, mut count) = (0, 0);
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<_> = line.split(' ').collect();
            let [block, axes @ .., answer] = &words[..] else { panic!("{line}") };
            let states = states(block, axes);
            assert!(matches!(*answer, "+" | "-") || answer.len() == states.len(), "{line}");
            for (state, digit) in states.iter().zip(answer.bytes().cycle()) {
                let hides = matches!(digit, b'+' | b'1');
                assert_eq!((is_opaque(state), is_opaque_in_game(state)), (hides, Some(hides)), "{state}");
                assert_eq!(is_opaque(&turned(state)), hides, "{state} with its properties in another order");
            }
            (blocks, count) = (blocks + 1, count + states.len());
        }
        assert_eq!((blocks, count), (1196, 32_366));
    }

    #[test]
    fn what_the_table_does_not_have_is_said() {
        assert_eq!(is_opaque_in_game("minecraft:chain[axis=y]"), Some(false), "as 1.21.8 called it");
        assert_eq!(is_opaque_in_game("minecraft:potent_sulfur[potent_sulfur_state=dry]"), Some(true));
        assert_eq!(is_opaque_in_game("minecraft:white_wool_slab[type=double,waterlogged=false]"), Some(true));
        assert_eq!(is_opaque_in_game("minecraft:straw_bed"), None, "it is of 26.3");
        assert_eq!(is_opaque_in_game("a:stone"), None);
    }
}
