//! The colours of blocks, told from their names.
//!
//! A table of well-known names comes first, then words in the name (the wood, the dye, the stone), then an earthy colour
//! drawn from the name itself, so that an unknown block looks the same on every map.

/// How a block is drawn from above.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Paint {
    /// Not at all.
    Air,
    /// As water, the darker the deeper.
    Water,
    /// As something through which the ground is seen: a plant, glass, a rail.
    Sheer {
        /// Its colour.
        rgb: [u8; 3],
        /// The share of light that it keeps.
        opacity: f32,
    },
    /// As ground.
    Solid {
        /// Its colour.
        rgb: [u8; 3],
    },
}

impl Paint {
    /// The colour in full light; that of shallow water for water, black for air.
    pub const fn rgb(self) -> [u8; 3] {
        match self {
            Self::Air => [0; 3],
            Self::Water => [62, 112, 192],
            Self::Sheer { rgb, .. } | Self::Solid { rgb } => rgb,
        }
    }
}

/// How a block of a name is drawn. States and namespaces make no difference.
///
/// ```
/// use cg_cli::map::{Paint, paint_of};
/// assert_eq!(paint_of("minecraft:cave_air"), Paint::Air);
/// assert_eq!(paint_of("minecraft:oak_stairs[facing=north]"), paint_of("minecraft:oak_planks"));
/// assert_eq!(paint_of("minecraft:water[level=3]"), Paint::Water);
/// ```
pub fn paint_of(name: &str) -> Paint {
    let name = name.split_once('[').map_or(name, |(base, _)| base);
    let identifier = name.split_once(':').map_or(name, |(_, identifier)| identifier);
    special(identifier).unwrap_or_else(|| Paint::Solid { rgb: solid(identifier) })
}

/// What is not simply ground.
fn special(identifier: &str) -> Option<Paint> {
    let sheer = |rgb, opacity| Some(Paint::Sheer { rgb, opacity });
    match identifier {
        "air" | "cave_air" | "void_air" | "barrier" | "light" | "structure_void" | "moving_piston" => {
            return Some(Paint::Air);
        }
        "water" | "bubble_column" | "seagrass" | "tall_seagrass" | "kelp" | "kelp_plant" => {
            return Some(Paint::Water);
        }
        "glass" | "glass_pane" => return sheer([205, 225, 230], 0.35),
        "tinted_glass" => return sheer([44, 38, 46], 0.7),
        "ice" | "frosted_ice" => return sheer([150, 185, 245], 0.8),
        "snow" => return sheer([234, 240, 245], 0.95),
        "lily_pad" => return sheer([32, 112, 40], 0.75),
        "cobweb" | "string" | "tripwire" => return sheer([220, 222, 225], 0.3),
        "short_grass" | "grass" | "tall_grass" | "fern" | "large_fern" => return sheer([98, 150, 58], 0.35),
        "dead_bush" | "short_dry_grass" | "tall_dry_grass" | "leaf_litter" => {
            return sheer([134, 100, 48], 0.45);
        }
        "sugar_cane" => return sheer([140, 185, 95], 0.7),
        "vine" | "glow_lichen" | "cave_vines" | "cave_vines_plant" => return sheer([60, 110, 36], 0.5),
        "wheat" => return sheer([190, 170, 75], 0.75),
        "carrots" | "potatoes" | "beetroots" | "torchflower_crop" | "pitcher_crop" => {
            return sheer([90, 140, 45], 0.7);
        }
        "dandelion" => return sheer([240, 215, 60], 0.5),
        "poppy" | "red_tulip" => return sheer([205, 45, 40], 0.5),
        "blue_orchid" | "cornflower" => return sheer([75, 120, 225], 0.5),
        "allium" | "lilac" => return sheer([190, 120, 225], 0.5),
        "azure_bluet" | "oxeye_daisy" | "white_tulip" | "lily_of_the_valley" => {
            return sheer([225, 230, 220], 0.45);
        }
        "orange_tulip" | "torchflower" => return sheer([230, 140, 50], 0.5),
        "pink_tulip" | "peony" | "pink_petals" => return sheer([230, 165, 205], 0.5),
        "rose_bush" => return sheer([175, 35, 40], 0.5),
        "sunflower" => return sheer([240, 205, 50], 0.5),
        "wildflowers" => return sheer([240, 220, 90], 0.4),
        "brown_mushroom" => return sheer([150, 115, 85], 0.45),
        "red_mushroom" => return sheer([200, 50, 45], 0.45),
        "redstone_wire" => return sheer([150, 15, 10], 0.5),
        "torch" | "wall_torch" | "lantern" | "redstone_torch" | "redstone_wall_torch" => {
            return sheer([250, 205, 110], 0.6);
        }
        "lever" | "repeater" | "comparator" | "chain" | "end_rod" => return sheer([150, 150, 150], 0.5),
        "ladder" | "scaffolding" => return sheer([175, 140, 85], 0.6),
        "fire" | "soul_fire" => return sheer([250, 150, 40], 0.8),
        _ => {}
    }
    let ends = |tail: &str| identifier.strip_suffix(tail);
    if let Some(dye) = ends("_stained_glass").or(ends("_stained_glass_pane")).and_then(dye) {
        return sheer(dye, 0.5);
    }
    if ends("rail").is_some() {
        return sheer([125, 110, 90], 0.6);
    }
    if ends("_sapling").is_some() || ends("_button").is_some() || ends("_pressure_plate").is_some() {
        return sheer([96, 120, 60], 0.3);
    }
    if ends("_sign").is_some()
        || ends("_banner").is_some()
        || ends("_candle").is_some()
        || identifier == "candle"
    {
        return sheer([165, 140, 100], 0.4);
    }
    (identifier.ends_with("_air") && !identifier.contains("stair")).then_some(Paint::Air)
}

/// The colour of ground: its own, or that of what it is made of.
fn solid(identifier: &str) -> [u8; 3] {
    if let Some(rgb) = known(identifier) {
        return rgb;
    }
    for tail in DYED {
        if let Some(rgb) = identifier.strip_suffix(tail).and_then(dye) {
            return dyed(rgb, tail);
        }
    }
    for tail in WOODEN {
        if let Some(rgb) = identifier.strip_suffix(tail).and_then(planks) {
            return rgb;
        }
    }
    for tail in SHAPES {
        let Some(material) = identifier.strip_suffix(tail) else { continue };
        let plural = format!("{material}s");
        let block = format!("{material}_block");
        if let Some(rgb) = [material, &plural, &block].into_iter().find_map(known) {
            return rgb;
        }
        return solid(material);
    }
    for head in FINISHES {
        if let Some(material) = identifier.strip_prefix(head) {
            return solid(material);
        }
    }
    words(identifier).unwrap_or_else(|| earthy(identifier))
}

/// What is dyed.
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

/// What is made of planks.
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

/// What a block can be cut into.
const SHAPES: [&str; 6] = ["_stairs", "_slab", "_wall", "_fence", "_bars", "_pillar"];

/// What can be done to a block without changing its colour much.
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
fn known(identifier: &str) -> Option<[u8; 3]> {
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
        "dripstone_block" | "pointed_dripstone" => [134, 108, 93],
        "bedrock" => [70, 70, 70],
        "obsidian" | "crying_obsidian" => [20, 16, 32],
        "snow_block" | "powder_snow" => [238, 244, 248],
        "packed_ice" => [142, 180, 250],
        "blue_ice" => [116, 168, 253],
        "lava" | "flowing_lava" => [222, 98, 22],
        "magma_block" => [142, 64, 32],
        "netherrack" => [98, 38, 38],
        "nether_bricks" | "nether_brick_fence" => [44, 22, 27],
        "red_nether_bricks" => [70, 8, 10],
        "soul_sand" | "soul_soil" => [82, 62, 50],
        "basalt" => [74, 74, 79],
        "blackstone" | "polished_blackstone_bricks" => [44, 38, 46],
        "crimson_nylium" => [132, 32, 32],
        "warped_nylium" => [44, 116, 102],
        "nether_wart_block" | "nether_wart" => [116, 4, 6],
        "warped_wart_block" => [22, 120, 122],
        "shroomlight" => [242, 150, 74],
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
        "bookshelf" => [118, 95, 60],
        "crafting_table" | "chest" | "barrel" | "loom" | "composter" => [140, 104, 58],
        "ender_chest" | "enchanting_table" => [44, 60, 62],
        "furnace" | "blast_furnace" | "smoker" | "dispenser" | "dropper" | "observer" => [110, 110, 110],
        "anvil" | "hopper" | "cauldron" | "water_cauldron" => [70, 70, 72],
        "tnt" => [176, 66, 50],
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
        "sculk" | "sculk_catalyst" | "sculk_sensor" => [13, 30, 36],
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
        "sweet_berry_bush" | "bush" | "firefly_bush" => [70, 110, 55],
        "brown_mushroom_block" => [150, 112, 82],
        "red_mushroom_block" => [200, 46, 44],
        "mushroom_stem" => [203, 196, 186],
        _ => return None,
    })
}

fn dye(word: &str) -> Option<[u8; 3]> {
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

fn planks(wood: &str) -> Option<[u8; 3]> {
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

/// What single words in a name say, for blocks that no table has.
fn words(identifier: &str) -> Option<[u8; 3]> {
    let has = |word: &str| identifier.split('_').any(|part| part == word);
    if has("leaves") {
        return Some(mixed(earthy(identifier), [70, 112, 40], 0.75));
    }
    if has("log") || has("wood") || has("stem") || has("hyphae") {
        let wood = identifier.trim_start_matches("stripped_");
        let wood = wood.rsplit_once('_').map_or(wood, |(wood, _)| wood);
        let bark = if identifier.starts_with("stripped_") { 0.0 } else { 0.45 };
        return Some(mixed([62, 48, 30], planks(wood).unwrap_or([140, 110, 70]), bark));
    }
    if has("ore") {
        let stone = if has("deepslate") { [80, 80, 84] } else { [126, 126, 126] };
        return Some(mixed(earthy(identifier), stone, 0.75));
    }
    if has("coral") {
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
    ];
    material.into_iter().find(|(word, _)| has(word)).map(|(_, rgb)| rgb)
}

/// A muted colour between olive, ochre and grey, drawn from the name.
fn earthy(name: &str) -> [u8; 3] {
    // FNV-1a: short, and the same on every machine.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let part = |shift: u32| f32::from((hash >> shift) as u8) / 255.0;
    let (hue, saturation, light) = (20.0 + 80.0 * part(40), 0.14 + 0.22 * part(24), 0.36 + 0.24 * part(8));
    let chroma = (1.0 - (2.0 * light - 1.0).abs()) * saturation;
    let third = chroma * (1.0 - ((hue / 60.0) % 2.0 - 1.0).abs());
    let (red, green) = if hue < 60.0 { (chroma, third) } else { (third, chroma) };
    [red, green, 0.0].map(|c| ((c + light - chroma / 2.0) * 255.0) as u8)
}

/// So much of the second colour in the first.
fn mixed(a: [u8; 3], b: [u8; 3], share: f32) -> [u8; 3] {
    [0, 1, 2].map(|c: usize| (f32::from(a[c]) * (1.0 - share) + f32::from(b[c]) * share) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert_eq!(paint_of(a), paint_of(b), "{a} and {b}");
    }

    #[test]
    fn shapes_and_finishes_look_like_their_material() {
        same("minecraft:stone_brick_stairs", "minecraft:stone_bricks");
        same("minecraft:smooth_quartz_slab", "minecraft:quartz_block");
        same("minecraft:waxed_oxidized_cut_copper_stairs", "minecraft:oxidized_copper");
        same("minecraft:spruce_fence_gate[open=true]", "minecraft:spruce_planks");
        same("minecraft:infested_stone", "minecraft:stone");
        same("minecraft:red_carpet", "minecraft:red_wool");
        same("create:polished_granite_wall", "minecraft:granite");
    }

    #[test]
    fn dyes_and_woods_differ() {
        assert_ne!(paint_of("minecraft:red_wool"), paint_of("minecraft:blue_wool"));
        assert_ne!(paint_of("minecraft:red_terracotta"), paint_of("minecraft:red_concrete"));
        assert_ne!(paint_of("minecraft:stripped_birch_log"), paint_of("minecraft:birch_log"));
    }

    #[test]
    fn nothing_is_drawn_for_air_whatever_its_kind() {
        for air in [":air", "minecraft:void_air", "othermod:thin_air"] {
            assert_eq!(paint_of(air), Paint::Air, "{air}");
        }
        assert_ne!(paint_of("minecraft:oak_stairs"), Paint::Air);
    }

    #[test]
    fn an_unknown_block_keeps_one_muted_colour() {
        let Paint::Solid { rgb } = paint_of("mod:thingamajig") else { panic!("it is ground") };
        same("mod:thingamajig", "other:thingamajig[lit=true]");
        let spread = rgb.iter().max().zip(rgb.iter().min()).map(|(max, min)| max - min);
        assert!(spread.is_some_and(|spread| spread < 120), "{rgb:?} is gaudy");
    }
}
