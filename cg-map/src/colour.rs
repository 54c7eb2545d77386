//! The colours of blocks, told from their names.
//!
//! A table of well-known names comes first, then words in the name (the wood, the dye, the stone), then an earthy colour
//! drawn from the name itself, so that an unknown block looks the same on every map.

mod ground;
mod sheer;

use ground::ground;
use sheer::sheer;

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
/// use cg_map::{Paint, paint_of};
/// assert_eq!(paint_of("minecraft:cave_air"), Paint::Air);
/// assert_eq!(paint_of("minecraft:oak_stairs[facing=north]"), paint_of("minecraft:oak_planks"));
/// assert_eq!(paint_of("minecraft:water[level=3]"), Paint::Water);
/// ```
pub fn paint_of(name: &str) -> Paint {
    let name = name.split_once('[').map_or(name, |(base, _)| base);
    let identifier = name.split_once(':').map_or(name, |(_, identifier)| identifier);
    sheer(identifier).unwrap_or_else(|| Paint::Solid { rgb: ground(identifier).unwrap_or_else(guessed) })
}

/// How a block is drawn by the tables and rules; `None` where only its name is left to draw a colour from.
fn meant(identifier: &str) -> Option<Paint> {
    sheer(identifier).or_else(|| Some(Paint::Solid { rgb: ground(identifier).ok()? }))
}

/// A colour for a block that nothing is known of.
fn guessed(identifier: &str) -> [u8; 3] {
    let has = |word: &str| identifier.split('_').any(|part| part == word);
    let rgb = earthy(identifier);
    if has("leaves") {
        mixed(rgb, [70, 112, 40], 0.75)
    } else if has("ore") {
        mixed(rgb, if has("deepslate") { [80, 80, 84] } else { [126, 126, 126] }, 0.75)
    } else {
        rgb
    }
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

/// The share of the second colour in the first.
fn mixed(a: [u8; 3], b: [u8; 3], share: f32) -> [u8; 3] {
    [0, 1, 2].map(|c: usize| (f32::from(a[c]) * (1.0 - share) + f32::from(b[c]) * share) as u8)
}

#[cfg(test)]
mod tests {
    use cg_minecraft::game::{BLOCKS, Fill};

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
    fn no_block_of_the_game_is_drawn_in_a_colour_of_its_name() {
        let guessed: Vec<_> =
            BLOCKS.iter().map(|block| block.name).filter(|name| meant(name).is_none()).collect();
        assert!(guessed.is_empty(), "drawn in a colour of their names: {guessed:?}");
    }

    #[test]
    fn what_bodies_pass_through_hides_no_ground() {
        let hides = |block: &str| matches!(meant(block), Some(Paint::Solid { .. }));
        let open = BLOCKS.iter().filter(|block| block.fill == Fill::Open).map(|block| block.name);
        let hiding: Vec<_> = open.filter(|block| hides(block)).collect();
        assert_eq!(hiding, ["end_gateway", "end_portal", "lava", "powder_snow"]);
    }

    #[test]
    fn blocks_of_newer_versions() {
        same("minecraft:waxed_weathered_copper_trapdoor", "minecraft:weathered_copper");
        same("minecraft:oxidized_copper_golem_statue", "minecraft:oxidized_copper");
        same("minecraft:resin_brick_stairs", "minecraft:resin_block");
        same("minecraft:stripped_pale_oak_log", "minecraft:pale_oak_planks");
        same("minecraft:polished_sulfur_slab", "minecraft:sulfur");
        same("minecraft:chiseled_cinnabar", "minecraft:cinnabar");
        same("minecraft:dead_horn_coral_block", "minecraft:dead_tube_coral_block");
        for (block, rgb, opacity) in [
            ("minecraft:exposed_copper_lantern[hanging=true]", [161, 126, 104], 0.5),
            ("minecraft:iron_chain[axis=y]", [150, 150, 150], 0.5),
            ("minecraft:potted_open_eyeblossom", [230, 140, 50], 0.5),
            ("minecraft:pale_oak_wall_hanging_sign", [228, 218, 217], 0.4),
            ("minecraft:lime_candle", [112, 185, 26], 0.4),
        ] {
            assert_eq!(paint_of(block), Paint::Sheer { rgb, opacity }, "{block}");
        }
        assert_eq!(paint_of("minecraft:diamond_ore").rgb(), [117, 159, 156]);
        assert_eq!(paint_of("minecraft:structure_void"), Paint::Air);
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
