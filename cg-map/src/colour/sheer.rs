//! Blocks that are not simply ground: air, water, and those that the ground is seen through.

use super::ground::{copper, dye, ground, known, planks};
use super::{Paint, meant};

const GREEN: [u8; 3] = [96, 120, 60];
const GREY: [u8; 3] = [150, 150, 150];

/// How a block is drawn that is not simply ground.
pub(super) fn sheer(identifier: &str) -> Option<Paint> {
    match identifier {
        "air" | "cave_air" | "void_air" | "barrier" | "light" | "structure_void" | "moving_piston" => {
            return Some(Paint::Air);
        }
        "water" | "bubble_column" | "seagrass" | "tall_seagrass" | "kelp" | "kelp_plant" => {
            return Some(Paint::Water);
        }
        _ => {}
    }
    let found = plant(identifier).or_else(|| thing(identifier)).or_else(|| family(identifier));
    if let Some((rgb, opacity)) = found {
        return Some(Paint::Sheer { rgb, opacity });
    }
    if let Some(potted) = identifier.strip_prefix("potted_") {
        let rgb = meant(potted).or_else(|| meant(potted.strip_suffix("_bush")?))?.rgb();
        return Some(Paint::Sheer { rgb, opacity: 0.5 });
    }
    (identifier.ends_with("_air") && !identifier.contains("stair")).then_some(Paint::Air)
}

/// Colour of a plant, and the share of light that it keeps.
fn plant(identifier: &str) -> Option<([u8; 3], f32)> {
    Some(match identifier {
        "lily_pad" => ([32, 112, 40], 0.75),
        "short_grass" | "grass" | "tall_grass" | "fern" | "large_fern" => ([98, 150, 58], 0.35),
        "dead_bush" | "short_dry_grass" | "tall_dry_grass" | "leaf_litter" => ([134, 100, 48], 0.45),
        "bush" | "sweet_berry_bush" | "firefly_bush" => ([70, 110, 55], 0.6),
        "sugar_cane" => ([140, 185, 95], 0.7),
        "vine" | "glow_lichen" | "cave_vines" | "cave_vines_plant" => ([60, 110, 36], 0.5),
        "weeping_vines" | "weeping_vines_plant" => ([130, 24, 24], 0.5),
        "twisting_vines" | "twisting_vines_plant" => ([24, 132, 124], 0.5),
        "pale_hanging_moss" => ([110, 116, 108], 0.5),
        "hanging_roots" => ([160, 116, 92], 0.4),
        "crimson_roots" | "crimson_fungus" => ([146, 32, 46], 0.45),
        "warped_roots" | "warped_fungus" | "nether_sprouts" => ([28, 138, 126], 0.45),
        "nether_wart" => ([116, 4, 6], 0.7),
        "wheat" => ([190, 170, 75], 0.75),
        "carrots" | "potatoes" | "beetroots" | "torchflower_crop" | "pitcher_crop" => ([90, 140, 45], 0.7),
        "melon_stem" | "attached_melon_stem" | "pumpkin_stem" | "attached_pumpkin_stem" => {
            ([110, 140, 50], 0.4)
        }
        "cocoa" => ([150, 95, 48], 0.6),
        "big_dripleaf" => ([104, 144, 46], 0.75),
        "big_dripleaf_stem" | "small_dripleaf" => ([92, 128, 44], 0.45),
        "mangrove_propagule" => ([100, 160, 72], 0.3),
        "sea_pickle" => ([92, 98, 56], 0.5),
        "frogspawn" => ([106, 92, 84], 0.5),
        "dandelion" | "golden_dandelion" => ([240, 215, 60], 0.5),
        "poppy" | "red_tulip" => ([205, 45, 40], 0.5),
        "blue_orchid" | "cornflower" => ([75, 120, 225], 0.5),
        "allium" | "lilac" => ([190, 120, 225], 0.5),
        "azure_bluet" | "oxeye_daisy" | "white_tulip" | "lily_of_the_valley" => ([225, 230, 220], 0.45),
        "orange_tulip" | "torchflower" | "open_eyeblossom" => ([230, 140, 50], 0.5),
        "closed_eyeblossom" => ([98, 92, 98], 0.5),
        "pink_tulip" | "peony" | "pink_petals" | "spore_blossom" | "cactus_flower" => ([230, 165, 205], 0.5),
        "rose_bush" => ([175, 35, 40], 0.5),
        "wither_rose" => ([42, 44, 34], 0.5),
        "pitcher_plant" => ([112, 136, 190], 0.6),
        "sunflower" => ([240, 205, 50], 0.5),
        "wildflowers" => ([240, 220, 90], 0.4),
        "brown_mushroom" => ([150, 115, 85], 0.45),
        "red_mushroom" => ([200, 50, 45], 0.45),
        _ => return None,
    })
}

/// Colour of a block that was made or does not grow, and the share of light that it keeps.
fn thing(identifier: &str) -> Option<([u8; 3], f32)> {
    Some(match identifier {
        "glass" | "glass_pane" => ([205, 225, 230], 0.35),
        "tinted_glass" => ([44, 38, 46], 0.7),
        "ice" | "frosted_ice" => ([150, 185, 245], 0.8),
        "snow" => ([234, 240, 245], 0.95),
        "cobweb" | "string" | "tripwire" => ([220, 222, 225], 0.3),
        "redstone_wire" => ([150, 15, 10], 0.5),
        "torch" | "wall_torch" | "lantern" | "redstone_torch" | "redstone_wall_torch" => {
            ([250, 205, 110], 0.6)
        }
        "soul_torch" | "soul_wall_torch" | "soul_lantern" => ([110, 220, 226], 0.6),
        "copper_torch" | "copper_wall_torch" => ([150, 216, 140], 0.6),
        "lever" | "repeater" | "comparator" | "chain" | "iron_chain" | "end_rod" | "tripwire_hook" => {
            (GREY, 0.5)
        }
        "iron_bars" => ([136, 139, 135], 0.5),
        "ladder" | "scaffolding" => ([175, 140, 85], 0.6),
        "fire" => ([250, 150, 40], 0.8),
        "soul_fire" => ([92, 214, 222], 0.8),
        "nether_portal" => ([110, 46, 190], 0.75),
        "amethyst_cluster" | "large_amethyst_bud" | "medium_amethyst_bud" | "small_amethyst_bud" => {
            ([164, 126, 214], 0.6)
        }
        "pointed_dripstone" => ([134, 108, 93], 0.7),
        "sulfur_spike" => (known("sulfur")?, 0.7),
        "sculk_vein" => ([13, 60, 66], 0.5),
        "resin_clump" => ([226, 110, 40], 0.5),
        "brewing_stand" => ([124, 108, 88], 0.6),
        "flower_pot" => ([124, 68, 53], 0.5),
        "turtle_egg" => ([222, 216, 190], 0.6),
        "candle" => ([234, 210, 158], 0.4),
        _ => return None,
    })
}

/// Families of such blocks, by the ends of their names.
fn family(identifier: &str) -> Option<([u8; 3], f32)> {
    let ends = |tail: &str| identifier.strip_suffix(tail);
    if let Some(dye) = ends("_stained_glass").or(ends("_stained_glass_pane")).and_then(dye) {
        return Some((dye, 0.5));
    }
    if ends("rail").is_some() {
        return Some(([125, 110, 90], 0.6));
    }
    if ends("_sapling").is_some() {
        return Some((GREEN, 0.3));
    }
    if let Some(material) = ends("_button").or(ends("_pressure_plate")) {
        let rgb = match material {
            "heavy_weighted" => known("iron_block"),
            "light_weighted" => known("gold_block"),
            _ => planks(material).or_else(|| ground(material).ok()),
        };
        return Some((rgb.unwrap_or(GREEN), 0.3));
    }
    if let Some(head) = ends("_sign").or(ends("_banner")).or(ends("_candle")) {
        let material = ["_wall_hanging", "_hanging", "_wall"].iter().find_map(|tail| head.strip_suffix(tail));
        let material = material.unwrap_or(head);
        return Some((dye(material).or_else(|| planks(material)).unwrap_or([165, 140, 100]), 0.4));
    }
    if identifier == "sign" || identifier == "wall_sign" {
        return Some(([165, 140, 100], 0.4));
    }
    if let Some(head) = ends("_skull").or(ends("_head")) {
        let rgb = match head.strip_suffix("_wall").unwrap_or(head) {
            "skeleton" => [200, 198, 186],
            "wither_skeleton" | "dragon" => [44, 44, 46],
            "zombie" => [84, 118, 62],
            "creeper" => [92, 160, 82],
            "piglin" => [222, 150, 126],
            "player" => [150, 110, 86],
            _ => return None,
        };
        return Some((rgb, 0.6));
    }
    if ["_coral", "_coral_fan", "_coral_wall_fan"].iter().any(|tail| ends(tail).is_some()) {
        return Some((meant(&format!("{}_coral_block", identifier.split("_coral").next()?))?.rgb(), 0.6));
    }
    let lets_light = ["_bars", "_chain", "_grate", "_lantern", "lightning_rod"];
    if lets_light.iter().any(|tail| ends(tail).is_some()) {
        return Some((copper(identifier)?, 0.5));
    }
    None
}
