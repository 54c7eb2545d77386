//! Saves made folder by folder, each column told apart by the block that it is of.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cg_anvil::column::{Blocks, Column, EntityColumn, Section};
use cg_anvil::region::{ColumnPos, RegionWriter};
use cg_anvil::{nbt, write};

use crate::maker;

/// 1.21.11, the last version of the old layout.
pub(super) const OLD: i32 = 4671;
/// 26.1.1, whose dimensions are all below `dimensions/`.
pub(super) const NEW: i32 = 4788;

pub(super) const OVERWORLD: &str = "minecraft:overworld";
pub(super) const NETHER: &str = "minecraft:the_nether";
pub(super) const END: &str = "minecraft:the_end";
pub(super) const VANILLA: [&str; 3] = [OVERWORLD, NETHER, END];

/// A column's place.
pub(super) type At = (i32, i32);

/// Mark that tells the content of one folder from that of another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// The blocks are `test:<name>`.
    pub(super) name: &'static str,
    /// When the first column was written, in seconds since 1970; each further one a second later.
    pub(super) time: u32,
    /// The first number of every entity's UUID.
    pub(super) number: i32,
}

pub(super) const LIVE: Mark = Mark { name: "live", time: 1_700_000_000, number: 1 };
/// Written after what is live, as a server does that was started with the wrong folders.
pub(super) const STRAY: Mark = Mark { name: "stray", time: 1_760_000_000, number: 2 };
/// Another save of the same world.
pub(super) const LATER: Mark = Mark { name: "later", time: 1_780_000_000, number: 3 };

/// Where the game keeps dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// The save's own folder, `DIM-1` and `DIM1`.
    Old,
    /// `dimensions/<namespace>/<name>`.
    Dimensions,
}

pub(super) use Layout::{Dimensions, Old};

impl Layout {
    /// As reports name it.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Old => "old",
            Dimensions => "dimensions",
        }
    }

    /// The folder of one of the game's own dimensions; empty for the save's own.
    pub(super) fn folder(self, dimension: &str) -> &'static str {
        match (self, dimension) {
            (Old, OVERWORLD) => "",
            (Old, NETHER) => "DIM-1",
            (Old, END) => "DIM1",
            (Dimensions, OVERWORLD) => "dimensions/minecraft/overworld",
            (Dimensions, NETHER) => "dimensions/minecraft/the_nether",
            (Dimensions, END) => "dimensions/minecraft/the_end",
            _ => panic!("{dimension} has no folder in {self:?}"),
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Old => Dimensions,
            Dimensions => Old,
        }
    }
}

/// A path below a folder; an empty folder is the save's own.
pub(super) fn below(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// The path of a file of a save whose vanilla dimensions were moved: only what is below their region folders moves.
pub(super) fn moved(name: &str, from: Layout, to: Layout) -> String {
    let moved = VANILLA.iter().find_map(|dimension| {
        let rest = name.strip_prefix(&below(from.folder(dimension), ""))?;
        let is_region = ["region/", "entities/", "poi/"].iter().any(|folder| rest.starts_with(folder));
        is_region.then(|| below(to.folder(dimension), rest))
    });
    moved.unwrap_or_else(|| name.to_owned())
}

/// A save in the making.
#[derive(Debug)]
pub(super) struct Save(PathBuf);

impl Save {
    /// An empty folder, or one that is there.
    pub(super) fn at(path: PathBuf) -> Self {
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, and the folders around it.
    pub(super) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("below the save")).expect("a folder");
        fs::write(path, bytes).expect("written");
        self
    }

    /// Makes an empty folder.
    pub(super) fn folder(&self, name: &str) -> &Self {
        fs::create_dir_all(self.0.join(name)).expect("a folder");
        self
    }

    /// A `level.dat` of this version and name.
    pub(super) fn level(&self, data_version: i32, name: &str) -> &Self {
        self.file("level.dat", level(data_version, name))
    }

    /// A dimension: columns, and in the first of them an entity and a point of interest.
    pub(super) fn dimension(&self, folder: &str, mark: Mark, columns: &[At]) -> &Self {
        let first = columns.get(..1).unwrap_or_default();
        self.blocks(folder, mark, columns).entities(folder, mark, first).points(folder, mark, first)
    }

    /// The game's own three dimensions, with a column each and two in the overworld.
    pub(super) fn vanilla(&self, layout: Layout, mark: Mark) -> &Self {
        self.dimension(layout.folder(OVERWORLD), mark, &[(0, 0), (-1, 33)])
            .dimension(layout.folder(NETHER), mark, &[(3, 4)])
            .dimension(layout.folder(END), mark, &[(-5, -6)])
    }

    /// Region files of columns.
    pub(super) fn blocks(&self, folder: &str, mark: Mark, columns: &[At]) -> &Self {
        let slot = |(time, &at): (u32, &At)| (at, document(&column(at, mark)), time);
        self.slots(&below(folder, "region"), (mark.time..).zip(columns).map(slot))
    }

    /// A pig in each of these columns. Slots are older than any column.
    pub(super) fn entities(&self, folder: &str, mark: Mark, columns: &[At]) -> &Self {
        // No two dimensions have the same.
        let number = folder.bytes().map(i32::from).sum();
        let slot = |&at: &At| (at, entities(at, mark, number), mark.time - 100);
        self.slots(&below(folder, "entities"), columns.iter().map(slot))
    }

    /// A point of interest in each of these columns. Slots are older than any column.
    pub(super) fn points(&self, folder: &str, mark: Mark, columns: &[At]) -> &Self {
        let slot = |&at: &At| (at, points(at, mark), mark.time - 200);
        self.slots(&below(folder, "poi"), columns.iter().map(slot))
    }

    /// Writes region files with these slots: place, NBT and time.
    pub(super) fn slots(&self, folder: &str, slots: impl IntoIterator<Item = (At, Vec<u8>, u32)>) -> &Self {
        let mut writers = BTreeMap::new();
        for ((x, z), bytes, time) in slots {
            let writer = writers.entry((x >> 5, z >> 5)).or_insert_with(|| {
                let pos = ColumnPos::new(x, z).region();
                RegionWriter::create(&self.0.join(folder), pos).expect("a file")
            });
            writer.put(ColumnPos::new(x, z).slot(), &bytes, time).expect("written");
        }
        for writer in writers.into_values() {
            writer.finish().expect("finished");
        }
        self
    }
}

/// The bytes of a `level.dat`.
pub(super) fn level(data_version: i32, name: &str) -> Vec<u8> {
    maker::gzip(&nbt::document(|root| {
        root.compound("Data", |data| {
            data.int("version", 19133);
            data.int("DataVersion", data_version);
            data.string("LevelName", name).expect("short");
            data.compound("Version", |version| {
                version.int("Id", data_version);
                let game = if data_version < 4772 { "1.21.11" } else { "26.1.1" };
                version.string("Name", game).expect("short");
                version.string("Series", "main").expect("short");
                version.byte("Snapshot", 0);
            });
        });
    }))
}

/// A column that is generated to the end, with everything that the game keeps beside blocks.
pub(super) fn column((x, z): At, mark: Mark) -> Column {
    let mut column = Column::new(ColumnPos::new(x, z), NEW);
    let blocks = Some(Blocks::uniform(&format!("test:{}", mark.name)));
    column.sections = vec![Section { blocks, sky_light: Some(vec![0xff; 2048]), ..Section::new(4) }];
    column.carried = nbt::payload(|out| {
        out.string("Status", "minecraft:full").expect("short");
        out.long("LastUpdate", 77);
        out.long("InhabitedTime", i64::from(x));
        out.int("yPos", -4);
    });
    column.left = Some(nbt::payload(|out| {
        out.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[i64::from(z); 37]));
        out.byte("isLightOn", 1);
        out.compound("structures", |out| out.compound("References", |_| ()));
        out.raw_compounds("block_ticks", [&nbt::payload(|out| out.int("p", -1))[..]].into_iter());
    }));
    column
}

pub(super) fn document(column: &Column) -> Vec<u8> {
    write::column(column).expect("a column of the game's form")
}

fn entities((x, z): At, mark: Mark, number: i32) -> Vec<u8> {
    let feet = [f64::from(x * 16) + 5.0, 70.0, f64::from(z * 16) + 5.0];
    let pig = maker::entity("minecraft:pig", [mark.number, x, z, number], feet, &[]);
    write::entities(&EntityColumn {
        pos: ColumnPos::new(x, z),
        data_version: NEW,
        stated: None,
        entities: vec![pig],
        list: Some(nbt::Tag::End),
        left: None,
    })
    .expect("entities")
}

/// A slot of points of interest; no two are equal.
pub(super) fn points((x, z): At, mark: Mark) -> Vec<u8> {
    nbt::document(|root| {
        root.int("DataVersion", NEW);
        root.compound("Sections", |sections| {
            sections.compound("4", |section| {
                section.byte("Valid", 1);
                section.int_array("mark", &[mark.number, x, z]);
            });
        });
    })
}
