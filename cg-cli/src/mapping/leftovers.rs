//! What of a save no chunk, entity or column record holds, as objects of a world.
//!
//! | object | what it holds |
//! |---|---|
//! | `minecraft/column/<dimension>/r.X.Z/<x>/<z>` | [`Leftovers`] of a column |
//! | `minecraft/poi/<dimension>/r.X.Z/<x>/<z>` | the column's points of interest, as the slot of `poi/` held them |
//! | `minecraft/file/<path>` | a file of the save, from the save's folder on |
//!
//! The dimension is escaped as in a property of a column, and `r.X.Z` is the region, so that a prefix lists a
//! dimension or a region.

use cg_store::{Error, ObjectKey};

use super::name;
use crate::anvil::column::{BlocksDigest, Column, is_carried, is_mapped, is_mapped_in_section};
use crate::anvil::nbt::{self, Compound, Value};
use crate::anvil::region::RegionPos;

/// How the keys of all objects begin that an import makes.
pub const PREFIX: &str = "minecraft/";
/// How the keys of files begin.
pub const FILE_PREFIX: &str = "minecraft/file/";

const COLUMN_PREFIX: &str = "minecraft/column/";
const POI_PREFIX: &str = "minecraft/poi/";
const FORMAT_VERSION: i64 = 1;

/// Fields of a column that follow from its blocks: wrong as soon as one was changed, and made anew by the game, or by
/// the mod, that finds none.
const FOLLOWS_FROM_BLOCKS: [&[u8]; 13] = [
    b"Heightmaps",
    b"HeightMap",
    b"isLightOn",
    b"LightPopulated",
    b"Lights",
    b"PostProcessing",
    b"block_ticks",
    b"fluid_ticks",
    b"TileTicks",
    b"LiquidTicks",
    b"ToBeTicked",
    b"LiquidsToBeTicked",
    b"starlight.light_version",
];

/// What of a column is kept beside its chunks, its record and its entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// The column's data version: what the fields' layout is of.
    pub data_version: i32,
    /// What the column's blocks came to when the fields were written.
    blocks: BlocksDigest,
    left: Option<Vec<u8>>,
    beside: Option<Vec<u8>>,
    /// By section.
    sections: Vec<(i32, Vec<u8>)>,
}

/// Whether the blocks of a column are those that what was kept of it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// Cell for cell.
    Same,
    /// Some are others.
    Changed,
}

/// The object of a column.
///
/// # Errors
/// [`Error::ObjectKey`] when the dimension's name is too long for a key.
pub fn column_key(dimension: &str, x: i32, z: i32) -> Result<ObjectKey, Error> {
    key(COLUMN_PREFIX, dimension, x, z)
}

/// The object of a column's points of interest.
///
/// # Errors
/// As [`column_key`].
pub fn poi_key(dimension: &str, x: i32, z: i32) -> Result<ObjectKey, Error> {
    key(POI_PREFIX, dimension, x, z)
}

/// The object of a file, by its path from the save's folder on with `/` between its parts.
///
/// # Errors
/// [`Error::ObjectKey`] when the path is too long for a key.
pub fn file_key(path: &str) -> Result<ObjectKey, Error> {
    ObjectKey::new(format!("{FILE_PREFIX}{path}"))
}

fn key(prefix: &str, dimension: &str, x: i32, z: i32) -> Result<ObjectKey, Error> {
    let region = RegionPos::of_column(x, z);
    let dimension = name::escaped(dimension);
    ObjectKey::new(format!("{prefix}{dimension}/r.{}.{}/{x}/{z}", region.x(), region.z()))
}

impl Leftovers {
    /// Takes from a column that was just read what nothing else holds.
    pub fn take(column: &mut Column) -> Self {
        let blocks = column.blocks_digest();
        let sections = column.sections.iter_mut();
        Self {
            data_version: column.data_version,
            blocks,
            left: column.left.take(),
            beside: column.beside.take(),
            sections: sections.filter_map(|section| Some((section.y, section.left.take()?))).collect(),
        }
    }

    /// Puts the fields back where they were taken from.
    ///
    /// Into a column with other blocks only those that do not follow from the blocks, and into one of another layout,
    /// which has other names for them, none.
    pub fn put_back(self, column: &mut Column) -> Blocks {
        if column.data_version != self.data_version {
            return Blocks::Changed;
        }
        let is_same = column.blocks_digest() == self.blocks;
        let stays = |name: &[u8]| is_same || !FOLLOWS_FROM_BLOCKS.contains(&name);
        let own = |name: &[u8]| !is_mapped(name) && !is_carried(name);
        column.left = only(self.left.as_deref(), |name| own(name) && stays(name));
        column.beside = only(self.beside.as_deref(), |name| !matches!(name, b"DataVersion" | b"Level"));
        for (y, left) in self.sections {
            if let Ok(index) = column.sections.binary_search_by_key(&y, |section| section.y)
                && let Some(section) = column.sections.get_mut(index)
            {
                section.left = only(Some(&left), |name| !is_mapped_in_section(name));
            }
        }
        if is_same { Blocks::Same } else { Blocks::Changed }
    }

    /// The object's bytes: a compound.
    pub fn encode(&self) -> Vec<u8> {
        nbt::payload(|out| {
            out.byte("format_version", FORMAT_VERSION as i8);
            out.int("data_version", self.data_version);
            out.byte_array("blocks", &self.blocks);
            for (name, fields) in [("column", &self.left), ("beside", &self.beside)] {
                if let Some(fields) = fields {
                    out.raw_compound(name, fields);
                }
            }
            let written = out.compounds("sections", self.sections.iter(), |out, (y, left)| {
                out.int("y", *y);
                out.raw_compound("section", left);
                Ok::<_, std::convert::Infallible>(())
            });
            written.unwrap_or_else(|never| match never {});
        })
    }

    /// Reads an object; `None` when it is none of this format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let root = Compound::parse(bytes, &nbt::Limits::default()).ok()?;
        if root.long("format_version") != Some(FORMAT_VERSION) {
            return None;
        }
        let Some(Value::ByteArray(blocks)) = root.get("blocks") else { return None };
        let fields = |name| root.compound(name).map(|fields| fields.raw().to_vec());
        let section =
            |section: Compound<'_>| Some((section.int("y")?, section.compound("section")?.raw().to_vec()));
        Some(Self {
            data_version: root.int("data_version")?,
            blocks: blocks.try_into().ok()?,
            left: fields("column"),
            beside: fields("beside"),
            sections: root.list("sections")?.compounds().map(section).collect::<Option<_>>()?,
        })
    }
}

/// The fields of a compound whose names are wanted; `None` when that are none.
fn only(fields: Option<&[u8]>, is_wanted: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let fields = Compound::parse(fields?, &nbt::Limits::default()).ok()?;
    let mut wanted = fields.fields().filter(|field| is_wanted(field.name.0)).peekable();
    wanted.peek()?;
    Some(nbt::payload(|out| wanted.for_each(|field| out.raw_fields(field.raw))))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::anvil::column::{Blocks as Palette, Section};

    fn column(state: &str) -> Column {
        let mut column = Column::new(-1, 33, 3955);
        let left = Some(nbt::payload(|out| out.int("mod:depth", 4)));
        column.sections = vec![Section { blocks: Some(Palette::uniform(state)), left, ..Section::new(4) }];
        column.left = Some(nbt::payload(|out| {
            out.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[1]));
            out.byte("isLightOn", 1);
            out.compound("structures", |_| ());
            out.raw_compounds("block_ticks", [].into_iter());
        }));
        column
    }

    fn names(fields: Option<&Vec<u8>>) -> Vec<String> {
        let Some(fields) = fields else { return Vec::new() };
        let fields = Compound::parse(fields, &nbt::Limits::default()).expect("a compound");
        fields.fields().map(|field| field.name.lossy().into_owned()).collect()
    }

    #[test]
    fn keys_list_by_dimension_and_region() {
        let key = |key: Result<ObjectKey, Error>| key.map(|key| key.to_string());
        let found = [
            key(column_key("minecraft:overworld", -1, 33)),
            key(poi_key("a:b@c", 0, -1)),
            key(file_key("data/raids.dat")),
        ];
        let found: Vec<_> = found.into_iter().map(|key| key.expect("short")).collect();
        expect![[r"
            minecraft/column/minecraft:overworld/r.-1.1/-1/33
            minecraft/poi/a:b%40c/r.0.-1/0/-1
            minecraft/file/data/raids.dat"]]
        .assert_eq(&found.join("\n"));
        let error = file_key(&"x".repeat(512)).expect_err("too long").to_string();
        expect!["the key of an object has 527 bytes, allowed are 1 to 512"].assert_eq(&error);
    }

    #[test]
    fn fields_come_back_byte_for_byte_to_the_same_blocks() {
        let mut taken = column("a:stone");
        let leftovers = Leftovers::take(&mut taken);
        assert_eq!((&taken.left, &taken.sections[0].left), (&None, &None));
        let read = Leftovers::decode(&leftovers.encode()).expect("an object");
        assert_eq!(read, leftovers);
        assert_eq!(read.put_back(&mut taken), Blocks::Same);
        assert_eq!(taken, column("a:stone"));
    }

    #[test]
    fn what_follows_from_blocks_does_not_come_back_to_others() {
        let leftovers = Leftovers::take(&mut column("a:stone"));
        let mut dug = column("a:dirt");
        (dug.left, dug.sections[0].left) = (None, None);
        assert_eq!(leftovers.clone().put_back(&mut dug), Blocks::Changed);
        assert_eq!(names(dug.left.as_ref()), ["structures"]);
        assert_eq!(names(dug.sections[0].left.as_ref()), ["mod:depth"]);
        // A newer game has other names for the same.
        let mut newer = Column { data_version: 4000, left: None, ..column("a:stone") };
        assert_eq!(leftovers.put_back(&mut newer), Blocks::Changed);
        assert_eq!(newer.left, None);
    }

    #[test]
    fn an_object_that_another_wrote_puts_no_name_twice() {
        let mut leftovers = Leftovers::take(&mut column("a:stone"));
        leftovers.left = Some(nbt::payload(|out| {
            out.int("xPos", 7);
            out.long("InhabitedTime", 7);
            out.int("mod:a", 7);
        }));
        leftovers.sections[0].1 = nbt::payload(|out| out.int("Y", 7));
        leftovers.beside = Some(nbt::payload(|out| out.int("DataVersion", 7)));
        let mut column = column("a:stone");
        assert_eq!(leftovers.put_back(&mut column), Blocks::Same);
        assert_eq!(names(column.left.as_ref()), ["mod:a"]);
        assert_eq!((column.beside, column.sections[0].left.as_ref()), (None, None));
    }

    #[test]
    fn what_is_no_such_object_is_none() {
        let bytes = Leftovers::take(&mut column("a:stone")).encode();
        assert_eq!(Leftovers::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Leftovers::decode(&[0]), None);
        let newer = nbt::payload(|out| {
            out.raw_fields(&bytes[..bytes.len() - 1]);
            out.byte("format_version", 2);
        });
        assert_eq!(Leftovers::decode(&newer), None);
    }
}
