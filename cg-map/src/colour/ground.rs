//! The colours of ground: a block's own, or that of what it is made of.

use super::mixed;

/// The colour of ground: its own, or that of what it is made of. Otherwise the material that nothing is known of.
pub(super) fn ground(identifier: &str) -> Result<[u8; 3], &str> {
    if let Some(rgb) = known(identifier) {
        return Ok(rgb);
    }
    for tail in DYED {
        if let Some(rgb) = identifier.strip_suffix(tail).and_then(dye) {
            return Ok(dyed(rgb, tail));
        }
    }
    for tail in WOODEN {
        if let Some(rgb) = identifier.strip_suffix(tail).and_then(planks) {
            return Ok(rgb);
        }
    }
    if let Some(rgb) = ore(identifier).or_else(|| copper(identifier)) {
        return Ok(rgb);
    }
    for tail in SHAPES {
        let Some(material) = identifier.strip_suffix(tail) else { continue };
        let plural = format!("{material}s");
        let block = format!("{material}_block");
        let found = [material, &plural, &block].into_iter().find_map(known);
        return found.map_or_else(|| ground(material), Ok);
    }
    for head in FINISHES {
        if let Some(material) = identifier.strip_prefix(head) {
            return ground(material);
        }
    }
    words(identifier).ok_or(identifier)
}

/// Suffixes of blocks that are dyed.
const DYED: [&str; 9] = [
    "_wool",
    "_carpet",
    "_concrete",
    "_concrete_powder",
    "_glazed_terracotta",
    "_terracotta",
    "_bed",
    "_shulker_box",
    "_candle_cake",
];

/// Suffixes of blocks that are made of planks.
const WOODEN: [&str; 11] = [
    "_planks",
    "_stairs",
    "_slab",
    "_fence",
    "_fence_gate",
    "_door",
    "_trapdoor",
    "_shelf",
    "_mosaic",
    "_mosaic_slab",
    "_mosaic_stairs",
];

/// Suffixes of the shapes that a block can be cut into.
const SHAPES: [&str; 6] = ["_stairs", "_slab", "_wall", "_fence", "_bars", "_pillar"];

/// Prefixes of finishes, which hardly change a block's colour.
const FINISHES: [&str; 12] = [
    "infested_",
    "waxed_",
    "polished_",
    "chiseled_",
    "cracked_",
    "smooth_",
    "cut_",
    "suspicious_",
    "potted_",
    "trapped_",
    "cobbled_",
    "mossy_",
];

/// Blocks whose colour is their own.
#[expect(clippy::too_many_lines, reason = "it is a table")]
pub(super) fn known(identifier: &str) -> Option<[u8; 3]> {
    Some(match identifier {
        "grass_block" => [112, 156, 72],
        "moss_block" | "moss_carpet" => [92, 112, 46],
        "pale_moss_block" | "pale_moss_carpet" => [110, 116, 108],
        "podzol" => [112, 82, 44],
        "mycelium" => [124, 106, 112],
        "dirt" | "coarse_dirt" => [134, 96, 67],
        "rooted_dirt" => [144, 104, 77],
        "dirt_path" | "grass_path" => [152, 126, 70],
        "farmland" => [110, 72, 42],
        "mud" | "muddy_mangrove_roots" => [62, 58, 62],
        "packed_mud" | "mud_bricks" => [142, 106, 80],
        "clay" => [160, 166, 178],
        "sand" => [220, 208, 162],
        "sandstone" => [217, 204, 156],
        "red_sand" => [190, 104, 36],
        "red_sandstone" => [187, 100, 30],
        "gravel" => [132, 127, 126],
        "stone" | "stone_bricks" | "stone_button" => [126, 126, 126],
        "cobblestone" => [122, 122, 122],
        "mossy_cobblestone" | "mossy_stone_bricks" => [112, 122, 98],
        "granite" => [150, 104, 86],
        "diorite" => [188, 188, 190],
        "andesite" => [136, 137, 137],
        "tuff" | "tuff_bricks" => [108, 110, 103],
        "calcite" => [223, 224, 220],
        "deepslate" | "deepslate_bricks" | "deepslate_tiles" | "cobbled_deepslate" => [80, 80, 84],
        "dripstone_block" => [134, 108, 93],
        "bedrock" => [70, 70, 70],
        "obsidian" | "crying_obsidian" => [20, 16, 32],
        "snow_block" | "powder_snow" | "powder_snow_cauldron" => [238, 244, 248],
        "packed_ice" => [142, 180, 250],
        "blue_ice" => [116, 168, 253],
        "lava" | "flowing_lava" | "lava_cauldron" => [222, 98, 22],
        "magma_block" => [142, 64, 32],
        "netherrack" => [98, 38, 38],
        "nether_bricks" | "nether_brick_fence" => [44, 22, 27],
        "red_nether_bricks" => [70, 8, 10],
        "soul_sand" | "soul_soil" => [82, 62, 50],
        "basalt" => [74, 74, 79],
        "gilded_blackstone" => [60, 46, 38],
        "blackstone" | "polished_blackstone_bricks" => [44, 38, 46],
        "crimson_nylium" => [132, 32, 32],
        "warped_nylium" => [44, 116, 102],
        "nether_wart_block" => [116, 4, 6],
        "warped_wart_block" => [22, 120, 122],
        "shroomlight" => [242, 150, 74],
        "ochre_froglight" => [246, 232, 178],
        "verdant_froglight" => [224, 240, 216],
        "pearlescent_froglight" => [242, 226, 236],
        "glowstone" => [200, 160, 96],
        "sea_lantern" => [180, 206, 196],
        "jack_o_lantern" => [216, 152, 50],
        "end_stone" | "end_stone_bricks" => [221, 224, 166],
        "purpur_block" => [170, 126, 170],
        "chorus_plant" | "chorus_flower" => [120, 84, 124],
        "prismarine" => [100, 158, 150],
        "prismarine_bricks" => [100, 172, 160],
        "dark_prismarine" => [52, 92, 76],
        "sponge" | "wet_sponge" => [196, 192, 75],
        "terracotta" => [152, 94, 68],
        "bricks" => [151, 98, 83],
        "bone_block" => [210, 206, 180],
        "hay_block" => [172, 144, 20],
        "honey_block" | "honeycomb_block" | "bee_nest" | "beehive" => [226, 152, 36],
        "slime_block" => [112, 192, 92],
        "melon" => [114, 147, 30],
        "pumpkin" | "carved_pumpkin" => [198, 119, 24],
        "cactus" => [86, 128, 44],
        "bamboo" => [94, 144, 25],
        "bamboo_block" => [128, 140, 58],
        "stripped_bamboo_block" => [194, 173, 81],
        "mangrove_roots" => [76, 60, 40],
        "dried_kelp_block" => [50, 60, 40],
        "bookshelf" => [118, 95, 60],
        "crafting_table" | "chest" | "barrel" | "loom" | "composter" => [140, 104, 58],
        "ender_chest" | "enchanting_table" => [44, 60, 62],
        "furnace" | "blast_furnace" | "smoker" | "dispenser" | "dropper" | "observer" => [110, 110, 110],
        "anvil" | "chipped_anvil" | "damaged_anvil" | "hopper" | "cauldron" | "water_cauldron" => {
            [70, 70, 72]
        }
        "tnt" => [176, 66, 50],
        "cartography_table" => [104, 82, 62],
        "fletching_table" => [196, 180, 132],
        "smithing_table" => [56, 58, 70],
        "lectern" => [160, 126, 76],
        "stonecutter" | "grindstone" => [124, 120, 116],
        "jukebox" | "note_block" => [104, 68, 48],
        "bell" => [224, 182, 62],
        "campfire" => [134, 92, 52],
        "soul_campfire" => [88, 148, 150],
        "cake" | "candle_cake" => [234, 214, 198],
        "decorated_pot" => [140, 78, 60],
        "beacon" => [118, 220, 215],
        "conduit" => [160, 140, 112],
        "dragon_egg" => [14, 10, 18],
        "sniffer_egg" => [146, 72, 58],
        "dried_ghast" => [196, 190, 190],
        "shulker_box" => [148, 100, 148],
        "target" => [228, 176, 166],
        "lodestone" => [146, 147, 152],
        "respawn_anchor" => [50, 22, 84],
        "piston" | "piston_head" => [152, 130, 90],
        "sticky_piston" => [124, 140, 92],
        "redstone_lamp" => [112, 66, 34],
        "daylight_detector" => [132, 116, 96],
        "crafter" => [112, 98, 98],
        "command_block" => [180, 132, 94],
        "chain_command_block" => [132, 168, 150],
        "repeating_command_block" => [126, 108, 178],
        "structure_block" | "jigsaw" => [84, 74, 88],
        "test_block" | "test_instance_block" => [118, 122, 126],
        "spawner" | "trial_spawner" | "vault" => [38, 52, 66],
        "end_portal_frame" => [92, 120, 96],
        "end_portal" | "end_gateway" => [12, 18, 28],
        "quartz_block" | "quartz_bricks" | "quartz" => [235, 229, 222],
        "gold_block" => [246, 208, 62],
        "raw_gold_block" => [221, 169, 46],
        "iron_block" | "heavy_core" => [220, 220, 220],
        "raw_iron_block" => [166, 136, 108],
        "copper_block" | "cut_copper" => [192, 108, 80],
        "raw_copper_block" => [154, 106, 80],
        "exposed_copper" | "exposed_cut_copper" => [161, 126, 104],
        "weathered_copper" | "weathered_cut_copper" => [108, 153, 110],
        "oxidized_copper" | "oxidized_cut_copper" => [82, 162, 132],
        "diamond_block" => [98, 237, 228],
        "emerald_block" => [42, 203, 88],
        "lapis_block" => [31, 67, 140],
        "redstone_block" => [176, 25, 5],
        "coal_block" => [16, 16, 16],
        "netherite_block" | "ancient_debris" => [76, 62, 60],
        "amethyst_block" | "budding_amethyst" => [134, 98, 192],
        "sculk" | "sculk_catalyst" | "sculk_sensor" | "calibrated_sculk_sensor" => [13, 30, 36],
        "sculk_shrieker" => [94, 112, 96],
        "creaking_heart" => [92, 80, 78],
        "sulfur" | "potent_sulfur" | "sulfur_bricks" => [214, 200, 92],
        "cinnabar" | "cinnabar_bricks" => [158, 58, 52],
        "resin_block" | "resin_bricks" => [204, 88, 24],
        "oak_leaves" => [66, 108, 34],
        "spruce_leaves" => [54, 88, 54],
        "birch_leaves" => [102, 138, 70],
        "jungle_leaves" => [54, 122, 24],
        "acacia_leaves" => [94, 118, 38],
        "dark_oak_leaves" => [48, 88, 24],
        "mangrove_leaves" => [72, 116, 40],
        "cherry_leaves" => [230, 174, 204],
        "pale_oak_leaves" => [116, 124, 112],
        "azalea_leaves" | "azalea" => [90, 115, 44],
        "flowering_azalea_leaves" | "flowering_azalea" => [116, 112, 68],
        "brown_mushroom_block" => [150, 112, 82],
        "red_mushroom_block" => [200, 46, 44],
        "mushroom_stem" => [203, 196, 186],
        _ => return None,
    })
}

/// The colour of a dye.
pub(super) fn dye(word: &str) -> Option<[u8; 3]> {
    Some(match word {
        "white" => [234, 236, 237],
        "light_gray" => [142, 142, 134],
        "gray" => [62, 68, 71],
        "black" => [22, 22, 26],
        "brown" => [114, 72, 41],
        "red" => [161, 39, 35],
        "orange" => [240, 118, 20],
        "yellow" => [248, 198, 40],
        "lime" => [112, 185, 26],
        "green" => [85, 110, 28],
        "cyan" => [21, 138, 145],
        "light_blue" => [58, 175, 217],
        "blue" => [53, 57, 157],
        "purple" => [122, 42, 173],
        "magenta" => [190, 69, 180],
        "pink" => [238, 141, 172],
        _ => return None,
    })
}

/// A dye on a material: terracotta is fired clay and dulls every dye.
fn dyed(rgb: [u8; 3], material: &str) -> [u8; 3] {
    if material == "_terracotta" { mixed(rgb, [152, 94, 68], 0.55) } else { rgb }
}

/// The colour of a wood's planks.
pub(super) fn planks(wood: &str) -> Option<[u8; 3]> {
    Some(match wood {
        "oak" | "petrified_oak" => [162, 131, 79],
        "spruce" => [115, 85, 49],
        "birch" => [192, 175, 121],
        "jungle" => [160, 115, 81],
        "acacia" => [168, 90, 50],
        "dark_oak" => [67, 43, 20],
        "mangrove" => [118, 54, 49],
        "cherry" => [227, 179, 173],
        "pale_oak" => [228, 218, 217],
        "bamboo" => [194, 173, 81],
        "crimson" => [101, 49, 71],
        "warped" => [43, 105, 99],
        _ => return None,
    })
}

/// The colour of what is made of copper, by how far it has weathered.
pub(super) fn copper(identifier: &str) -> Option<[u8; 3]> {
    let has = |word: &str| identifier.split('_').any(|part| part == word);
    if !(has("copper") || identifier.ends_with("lightning_rod")) || has("ore") || has("raw") {
        return None;
    }
    let stage = ["exposed", "weathered", "oxidized"].into_iter().find(|stage| has(stage));
    known(&stage.map_or("copper_block".into(), |stage| format!("{stage}_copper")))
}

/// The colour of an ore of the game: grains in stone.
fn ore(identifier: &str) -> Option<[u8; 3]> {
    let mineral = identifier.strip_suffix("_ore")?;
    let (mineral, stone) = if let Some(mineral) = mineral.strip_prefix("deepslate_") {
        (mineral, "deepslate")
    } else if let Some(mineral) = mineral.strip_prefix("nether_") {
        (mineral, "netherrack")
    } else {
        (mineral, "stone")
    };
    let block = if matches!(mineral, "iron" | "copper" | "gold") { "raw_" } else { "" };
    let grains = known(&format!("{block}{mineral}_block"))?;
    Some(mixed(grains, known(stone)?, 0.7))
}

/// Colour by single words in a name, for blocks that no table has.
fn words(identifier: &str) -> Option<[u8; 3]> {
    let has = |word: &str| identifier.split('_').any(|part| part == word);
    if has("leaves") || has("ore") {
        return None;
    }
    if has("log") || has("wood") || has("stem") || has("hyphae") {
        let wood = identifier.trim_start_matches("stripped_");
        let wood = wood.rsplit_once('_').map_or(wood, |(wood, _)| wood);
        let inside = if identifier.starts_with("stripped_") { 1.0 } else { 0.45 };
        return Some(mixed([62, 48, 30], planks(wood).unwrap_or([140, 110, 70]), inside));
    }
    if has("coral") {
        if has("dead") {
            return Some([130, 124, 120]);
        }
        let vivid = ["tube", "brain", "bubble", "fire", "horn"].into_iter().position(has);
        let colours = [[48, 86, 206], [207, 91, 159], [165, 26, 162], [163, 35, 46], [216, 199, 66]];
        return Some(vivid.and_then(|at| colours.get(at).copied()).unwrap_or([130, 124, 120]));
    }
    let material = [
        ("grass", [108, 158, 66]),
        ("dirt", [134, 96, 67]),
        ("sandstone", [217, 204, 156]),
        ("sand", [220, 208, 162]),
        ("cobblestone", [122, 122, 122]),
        ("deepslate", [80, 80, 84]),
        ("stone", [126, 126, 126]),
        ("bricks", [146, 104, 90]),
        ("brick", [146, 104, 90]),
        ("copper", [192, 108, 80]),
        ("iron", [210, 210, 210]),
        ("gold", [240, 204, 66]),
        ("quartz", [235, 229, 222]),
        ("snow", [248, 252, 253]),
        ("ice", [150, 185, 245]),
        ("planks", [162, 131, 79]),
        ("concrete", [130, 134, 138]),
        ("asphalt", [58, 58, 60]),
        ("moss", [92, 112, 46]),
        ("glass", [190, 212, 220]),
        ("sulfur", [214, 200, 92]),
        ("cinnabar", [158, 58, 52]),
    ];
    material.into_iter().find(|(word, _)| has(word)).map(|(_, rgb)| rgb)
}
