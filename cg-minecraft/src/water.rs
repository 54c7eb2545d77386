//! Water beside a block: `waterlogged=true` as a second layer, and back.
//!
//! Layer 0 keeps the state with `waterlogged=false`, layer 1 is [`WATER`]. The way back sees exactly that pair, so
//! nothing is lost: a state that says `waterlogged=false` never has water in layer 1 in a save.
//! Kelp, seagrass and bubble columns are water without saying so; they stay as they are.

/// The state that a waterlogged cell holds in layer 1.
pub const WATER: &str = "minecraft:water[level=0]";

const WET: &str = "waterlogged=true";
const DRY: &str = "waterlogged=false";

/// The state of layer 0 when this state also holds water; `None` when the state is whole in layer 0.
///
/// ```
/// use cg_minecraft::water;
/// let dry = water::split("minecraft:oak_fence[east=true,waterlogged=true,west=false]").expect("it is wet");
/// assert_eq!(dry, "minecraft:oak_fence[east=true,waterlogged=false,west=false]");
/// assert_eq!(water::join(&dry, water::WATER).unwrap(), "minecraft:oak_fence[east=true,waterlogged=true,west=false]");
/// assert_eq!(water::split(&dry), None);
/// ```
pub fn split(state: &str) -> Option<String> {
    replace_property(state, WET, DRY)
}

/// The single state of a cell with these two layers; `None` when no single state says both.
pub fn join(layer_0: &str, layer_1: &str) -> Option<String> {
    if layer_1 == WATER { replace_property(layer_0, DRY, WET) } else { None }
}

fn replace_property(state: &str, from: &str, to: &str) -> Option<String> {
    let (name, inside) = state.split_once('[')?;
    let properties: Vec<_> = inside.strip_suffix(']')?.split(',').collect();
    if !properties.contains(&from) {
        return None;
    }
    let replaced: Vec<_> =
        properties.into_iter().map(|property| if property == from { to } else { property }).collect();
    Some(format!("{name}[{}]", replaced.join(",")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::game::{self, BLOCKS};

    #[test]
    fn only_the_whole_property_counts() {
        assert_eq!(split("a:b[waterlogged=true]").as_deref(), Some("a:b[waterlogged=false]"));
        assert_eq!(split("a:b[not_waterlogged=true]"), None);
        assert_eq!(split("a:b[waterlogged=truely]"), None);
        assert_eq!(split("a:waterlogged=true"), None);
        assert_eq!(split("minecraft:kelp[age=3]"), None);
    }

    #[test]
    fn only_still_water_beside_a_dry_state_is_folded_back() {
        assert_eq!(join("a:b[waterlogged=false]", WATER).as_deref(), Some("a:b[waterlogged=true]"));
        assert_eq!(join("a:b[waterlogged=false]", "minecraft:water[level=1]"), None);
        assert_eq!(join("a:b[waterlogged=true]", WATER), None);
        assert_eq!(join("minecraft:stone", WATER), None);
    }

    #[test]
    fn every_block_of_the_game_that_can_hold_water_is_split() {
        let mut wet = 0;
        for block in *BLOCKS {
            let name = format!("minecraft:{}", block.name);
            let state = game::complete(&name, game::NEWEST_TESTED);
            let (dry, full) = (state.replace(WET, DRY), state.replace(DRY, WET));
            if dry == full {
                assert_eq!(split(&state), None, "{state}");
                continue;
            }
            assert_eq!(split(&full).as_deref(), Some(&*dry));
            assert_eq!(join(&dry, WATER), Some(full));
            wet += 1;
        }
        assert_eq!(wet, 432);
    }

    proptest! {
        #[test]
        fn the_way_back_is_exact(
            before in prop::collection::vec("[a-z]{1,4}=[a-z]{1,4}", 0..3),
            after in prop::collection::vec("[x-z]{1,4}=[a-z]{1,4}", 0..3),
        ) {
            let mut parts = before;
            parts.push(WET.to_owned());
            parts.extend(after);
            let state = format!("a:b[{}]", parts.join(","));
            let dry = split(&state).expect("it is wet");
            prop_assert_eq!(split(&dry), None);
            prop_assert_eq!(join(&dry, WATER), Some(state));
        }
    }
}
