//! The table of the game's blocks, which is generated, and looking a block up in it.
//!
//! `blocks.txt` has a line for each block: its name, what of its cell is full, and each property with its default value.
//! `testdata/tables/java_blocks.py` prints it and says what its sources are.

use std::sync::LazyLock;

/// Part of a block's cell that is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// In every state it is a cube that hides what is behind it.
    Cube,
    /// Only the states with this property are such a cube.
    CubeIf(&'static str),
    /// No state is, but bodies stop at it.
    Part,
    /// No state is, and bodies pass through it.
    Open,
}

/// A block of the game.
#[derive(Debug)]
pub struct Block {
    /// Without its namespace.
    pub name: &'static str,
    /// The part of its cell that is full.
    pub fill: Fill,
    /// By ascending key.
    pub properties: Vec<Property>,
}

/// A property of a block.
#[derive(Debug)]
pub struct Property {
    /// Its name.
    pub key: &'static str,
    /// Its value in the block's default state.
    pub default: &'static str,
    /// The first `DataVersion` in which the block has it.
    pub since: i32,
}

/// Blocks by ascending name, and then families.
struct Table {
    blocks: Vec<Block>,
    /// Blocks whose names end with what follows the `*` of a family's name, or begin with what is before it.
    families: Vec<Block>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let lines = include_str!("blocks.txt").lines().filter(|line| !line.starts_with('#'));
    let (families, blocks) = lines.map(block).partition(|block| block.name.contains('*'));
    Table { blocks, families }
});

/// Every block, by ascending name, without families.
pub static BLOCKS: LazyLock<&[Block]> = LazyLock::new(|| &TABLE.blocks);

/// The block of a name without namespace. One that the table does not have is of its family; `None` if it has none.
pub fn find(name: &str) -> Option<&'static Block> {
    let table: &'static Table = &TABLE;
    if let Ok(index) = table.blocks.binary_search_by_key(&name, |block| block.name) {
        return table.blocks.get(index);
    }
    let members = table.families.iter().filter(|family| is_member(name, family.name));
    // A wall sign is no sign, and whatever is in a pot is a pot.
    members.max_by_key(|family| (family.name.ends_with('*'), family.name.len()))
}

/// The blocks and families that have properties of this era or later, which an earlier era lacks.
pub(super) fn eras() -> Vec<i32> {
    let properties = TABLE.blocks.iter().flat_map(|block| &block.properties);
    let mut eras: Vec<_> = properties.map(|property| property.since).filter(|since| *since > 0).collect();
    eras.sort_unstable();
    eras.dedup();
    eras
}

fn is_member(name: &str, family: &str) -> bool {
    match family.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => family.strip_prefix('*').is_some_and(|end| name.ends_with(end)),
    }
}

/// The block of a line.
fn block(line: &'static str) -> Block {
    let mut words = line.split(' ');
    let name = words.next().unwrap_or_default();
    let fill = match words.next().unwrap_or_default() {
        "cube" => Fill::Cube,
        "part" => Fill::Part,
        "open" => Fill::Open,
        word => Fill::CubeIf(word.strip_prefix("cube:").unwrap_or_default()),
    };
    let properties = words.map(|word| {
        let (key, value) = word.split_once('=').unwrap_or_default();
        let (default, since) = value.split_once('@').unwrap_or((value, ""));
        Property { key, default, since: since.parse().unwrap_or(0) }
    });
    Block { name, fill, properties: properties.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_block() {
        assert!(BLOCKS.is_sorted_by(|a, b| a.name < b.name), "no name is there twice");
        assert_eq!((BLOCKS.len(), TABLE.families.len()), (1201, 22));
        for block in BLOCKS.iter().chain(&TABLE.families) {
            let keys = block.properties.iter().map(|property| property.key);
            assert!(keys.is_sorted_by(|a, b| a < b), "{block:?}");
            let is_word = |word: &str| {
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            };
            assert!(block.properties.iter().all(|one| is_word(one.key) && is_word(one.default)), "{block:?}");
            if let Fill::CubeIf(pair) = block.fill {
                let (key, value) = pair.split_once('=').expect("a property");
                assert!(
                    is_word(value) && block.properties.iter().any(|property| property.key == key),
                    "{block:?}"
                );
            }
        }
        let cubes = BLOCKS.iter().filter(|block| block.fill == Fill::Cube).count();
        assert_eq!(cubes, 381);
        assert_eq!(eras(), [1631, 2225, 2566, 2578, 2724, 3105, 3463, 3578, 3837, 4189, 4325]);
    }

    #[test]
    fn properties_and_their_defaults_are_those_of_the_source() {
        let list = include_str!("../../../testdata/tables/java_states.txt");
        let mut count = 0;
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<_> = line.split(' ').collect();
            let [name, axes @ .., _] = &words[..] else { panic!("{line}") };
            let block = find(name).filter(|block| block.name == *name).expect("the table has every block");
            assert_eq!(block.properties.len(), axes.len(), "{line}");
            for axis in axes {
                let (key, values) = axis.split_once('=').expect("a property");
                let own = block
                    .properties
                    .iter()
                    .find(|property| property.key == key)
                    .expect("it has this property");
                assert!(values.split(',').any(|value| value == own.default), "{line}");
            }
            count += 1;
        }
        assert_eq!(count, 1196);
    }

    #[test]
    fn a_newer_block_is_of_its_family() {
        let family = |name: &str| find(name).map(|block| block.name);
        for (name, expected) in [
            ("white_wool_slab", Some("*_slab")),
            ("poplar_wall_hanging_sign", Some("*_wall_hanging_sign")),
            ("poplar_hanging_sign", Some("*_hanging_sign")),
            ("poplar_wall_sign", Some("*_wall_sign")),
            ("poplar_fence_gate", Some("*_fence_gate")),
            ("stripped_poplar_log", Some("*_log")),
            ("potted_poplar_sapling", Some("potted_*")),
            ("heavy_weighted_pressure_plate", Some("heavy_weighted_pressure_plate")),
            ("oak_slab", Some("oak_slab")),
            ("straw_bed", None),
            ("shelf_mushroom", None),
            ("red_shrub", None),
            ("slab", None),
            ("", None),
        ] {
            assert_eq!(family(name), expected, "{name}");
        }
    }
}
