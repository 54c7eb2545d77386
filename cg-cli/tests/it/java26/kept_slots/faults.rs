//! A save of faults, one in each slot, and its slots byte by byte.
#![expect(clippy::big_endian_bytes, reason = "region files are big-endian by their own definition")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cg_anvil::column::{Blocks, Section};
use cg_anvil::nbt::{self, CompoundWriter};
use cg_anvil::region::{ColumnPos, compress};

use super::super::save::{At, LIVE, NEW, OLD, Save, column, document, points};
use crate::maker::{self, Stored};

/// When every slot was written.
pub(super) const TIME: u32 = 1_700_000_000;

/// The place of the nth fault: one row of a region, then the next.
pub(super) fn place(index: usize) -> At {
    ((index % 32) as i32, (index / 32) as i32)
}

type Fields = fn(&mut CompoundWriter<'_>);

/// Sections that cannot be mapped, each beside one that can.
pub(super) const SECTIONS: [(&str, Fields); 19] = [
    ("too few words", |out| states(out, 3, &[0; 255])),
    ("too many words", |out| states(out, 3, &[0; 257])),
    ("no words", |out| states(out, 3, &[])),
    ("an index past the palette", |out| states(out, 3, &[-1; 256])),
    ("no palette", |out| out.compound("block_states", |out| out.long_array("data", &[0; 256]))),
    ("an empty palette", |out| states(out, 0, &[0; 256])),
    ("a comma in a name", |out| named(out, "test:a,b")),
    ("an equals sign in a name", |out| named(out, "test:a=b")),
    ("a bracket in a name", |out| named(out, "test:a]b")),
    ("a name that is no text", |out| named(out, "test:no_text")),
    ("no name", |out| palette(out, |_| ())),
    ("a number for a property", |out| {
        palette(out, |entry| {
            entry.string("Name", "test:a").expect("short");
            entry.compound("Properties", |out| out.int("level", 3));
        });
    }),
    ("a bracket in a property", |out| {
        palette(out, |entry| {
            entry.string("Name", "test:a").expect("short");
            entry.compound("Properties", |out| out.string("a", "b[c").expect("short"));
        });
    }),
    ("a state in two shapes", |out| {
        palette(out, |entry| {
            entry.string("id", "test:a").expect("short");
            entry.compound("Properties", |out| out.string("type", "top").expect("short"));
        });
    }),
    ("two names of a state", |out| {
        palette(out, |entry| {
            entry.string("Name", "test:a").expect("short");
            entry.string("id", "test:b").expect("short");
        });
    }),
    ("a wrapped name beside another", |out| {
        palette(out, |entry| {
            entry.string("", "test:a").expect("short");
            entry.string("id", "test:b").expect("short");
        });
    }),
    ("a name twice in a state", |out| {
        palette(out, |entry| {
            entry.string("Name", "test:a").expect("short");
            entry.string("Name", "test:b").expect("short");
        });
    }),
    ("a palette of numbers", |out| out.compound("block_states", |out| out.doubles("palette", &[1.0]))),
    ("a name that is too long for the world", |out| named(out, &"é".repeat(30_000))),
];

fn palette(out: &mut CompoundWriter<'_>, entry: impl Fn(&mut CompoundWriter<'_>)) {
    out.compound("block_states", |out| {
        let written = out.compounds("palette", 0..1, |out, _| {
            entry(out);
            Ok::<_, nbt::TooLong>(())
        });
        written.expect("short");
    });
}

fn named(out: &mut CompoundWriter<'_>, name: &str) {
    palette(out, |entry| entry.string("Name", name).expect("short enough"));
}

fn states(out: &mut CompoundWriter<'_>, count: usize, words: &[i64]) {
    out.compound("block_states", |out| {
        let written =
            out.compounds("palette", 0..count, |entry, state| entry.string("Name", &format!("test:{state}")));
        written.expect("short");
        out.long_array("data", words);
    });
}

/// The NBT of a column with a section of stone at 4, one more with these fields, and what a column has besides.
pub(super) fn torn(
    (x, z): At,
    section: impl Fn(&mut CompoundWriter<'_>),
    more: impl Fn(&mut CompoundWriter<'_>),
) -> Vec<u8> {
    let bytes = nbt::document(|root| {
        root.int("DataVersion", NEW);
        root.int("xPos", x);
        root.int("zPos", z);
        root.string("Status", "minecraft:full").expect("short");
        root.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[i64::from(x); 37]));
        let written = root.compounds("sections", 0..2, |out, index| {
            if index == 0 {
                out.byte("Y", 4);
                named(out, "test:live");
            } else {
                section(out);
            }
            out.byte_array("SkyLight", &[0xff; 2048]);
            Ok::<_, nbt::TooLong>(())
        });
        written.expect("short");
        more(root);
    });
    // A text that no writer writes: a byte that begins nothing.
    let from = bytes.windows(12).position(|window| window == b"test:no_text");
    let mut bytes = bytes;
    if let Some(from) = from {
        bytes[from + 5] = 0xff;
    }
    bytes
}

/// A section of `test:live` with one more field in `block_states`.
fn live_with(out: &mut CompoundWriter<'_>, more: Fields) {
    out.byte("Y", 5);
    out.compound("block_states", |out| {
        let written = out.compounds("palette", 0..1, |entry, _| entry.string("Name", "test:live"));
        written.expect("short");
        more(out);
    });
}

/// Columns with fields that are not as the game has them.
fn wrong_kinds() -> [(&'static str, Fields, Fields); 9] {
    let none: Fields = |_| ();
    let sound: Fields = |out| {
        out.byte("Y", 5);
        named(out, "test:live");
    };
    [
        (
            "blocks in the form of before 21w37a",
            |out| {
                out.byte("Y", 5);
                let written = out.compounds("Palette", 0..1, |entry, _| entry.string("Name", "test:old"));
                written.expect("short");
                out.long_array("BlockStates", &[0; 256]);
            },
            none,
        ),
        (
            "a field beside the palette",
            |out| {
                live_with(out, |out| out.int("foo", 1));
            },
            none,
        ),
        (
            "no indices of another kind",
            |out| {
                live_with(out, |out| out.int_array("data", &[]));
            },
            none,
        ),
        (
            "no biomes of another kind",
            |out| {
                out.byte("Y", 5);
                out.byte_array("biomes", &[]);
                named(out, "test:live");
            },
            none,
        ),
        (
            "no light of another kind",
            |out| {
                out.byte("Y", 5);
                out.string("BlockLight", "").expect("short");
                named(out, "test:live");
            },
            none,
        ),
        (
            "a field of a section twice",
            |out| {
                out.byte("Y", 5);
                out.int("mod:a", 1);
                out.int("mod:a", 2);
                named(out, "test:live");
            },
            none,
        ),
        ("no entities of another kind", sound, |root| root.compound("entities", |_| ())),
        ("no block entities of another kind", sound, |root| {
            root.string("block_entities", "").expect("short");
        }),
        ("a field twice", sound, |root| {
            root.int("mod:a", 1);
            root.int("mod:a", 2);
        }),
    ]
}

/// All columns that can be read in part: what is wrong with each, and its NBT.
pub(super) fn torn_columns() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let none = |_: &mut CompoundWriter<'_>| ();
    for (what, fields) in SECTIONS {
        let at = place(all.len());
        let section = |out: &mut CompoundWriter<'_>| {
            out.byte("Y", 5);
            fields(out);
        };
        all.push((what.to_owned(), torn(at, section, none)));
    }
    let mut add = |what: &str, section: Fields, more: Fields| {
        let at = place(all.len());
        all.push((what.to_owned(), torn(at, section, more)));
    };
    let sound: Fields = |out| {
        out.byte("Y", 5);
        named(out, "test:live");
    };
    let none: Fields = |_| ();
    add(
        "a section twice",
        |out| {
            out.byte("Y", 4);
            named(out, "test:other");
        },
        none,
    );
    add("no Y", |out| named(out, "test:live"), none);
    add(
        "a Y beyond the world",
        |out| {
            out.int("Y", 300);
            named(out, "test:live");
        },
        none,
    );
    add(
        "light of another length",
        |out| {
            out.byte("Y", 5);
            out.byte_array("BlockLight", &[1; 100]);
            named(out, "test:live");
        },
        none,
    );
    add(
        "biomes of another kind",
        |out| {
            out.byte("Y", 5);
            out.int("biomes", 3);
            named(out, "test:live");
        },
        none,
    );
    for (what, section, more) in wrong_kinds() {
        add(what, section, more);
    }
    add("block entities that are numbers", sound, |root| root.doubles("block_entities", &[1.0]));
    add("entities that are a number", sound, |root| root.int("entities", 3));
    all
}

/// A slot as it is to be written: compression byte and payload.
pub(super) fn slot_of(at: At, nbt: &[u8]) -> Stored {
    maker::zlib(at, nbt)
}

/// Slots of `region/` that cannot be read at all, from an index on: what is wrong with each, and what it holds.
pub(super) fn unread_slots(from: usize) -> Vec<(&'static str, Stored)> {
    let mut all: Vec<(&'static str, Stored)> = Vec::new();
    let mut add = |what, stored: &dyn Fn(At) -> (u8, Vec<u8>)| {
        let at = place(from + all.len());
        let (compression, payload) = stored(at);
        all.push((what, Stored { slot: ColumnPos::new(at.0, at.1).slot(), compression, payload }));
    };
    let sound = |at: At| document(&column(at, LIVE));
    add("another column's", &|_| (2, compress(&sound((31, 31)))));
    add("a column of another region", &|(x, z)| (2, compress(&sound((x + 32, z)))));
    add("compression 9", &|_| (9, vec![1; 5000]));
    add("compression 127", &|at| (127, sound(at)));
    add("damaged zlib", &|at| {
        let mut payload = compress(&sound(at));
        let end = payload.len();
        payload[end / 2..].fill(0x55);
        (2, payload)
    });
    add("zlib that ends early", &|at| {
        let mut payload = compress(&sound(at));
        payload.truncate(20);
        (2, payload)
    });
    add("NBT that ends early", &|at| {
        let mut nbt = sound(at);
        nbt.truncate(100);
        (3, nbt)
    });
    add("no column", &|_| (2, compress(&nbt::document(|root| root.int("a", 1)))));
    add("no place", &|_| (2, compress(&nbt::document(|root| root.int("xPos", 1)))));
    add("points of interest", &|at| (2, compress(&points(at, LIVE))));
    add("nothing at all", &|_| (2, Vec::new()));
    add("a missing file", &|_| (0x82, Vec::new()));
    add("a file of garbage", &|_| (0x82, Vec::new()));
    all
}

/// The save: faults of columns and whole slots of all three folders, and one sound column at (31, 31).
pub(super) fn make(save: &Save) -> usize {
    save.level(OLD, "faults");
    let torn = torn_columns();
    let mut slots: Vec<_> =
        torn.iter().enumerate().map(|(index, (_, nbt))| slot_of(place(index), nbt)).collect();
    let unread = unread_slots(torn.len());
    let garbage = place(torn.len() + unread.len() - 1);
    let count = torn.len() + unread.len();
    slots.extend(unread.into_iter().map(|(_, stored)| stored));
    let mut sound = column((31, 31), LIVE);
    sound.sections = vec![Section { blocks: Some(Blocks::uniform("test:sound")), ..Section::new(0) }];
    slots.push(slot_of((31, 31), &document(&sound)));
    save.folder("region").folder("entities").folder("poi");
    let region = save.path().join("region/r.0.0.mca");
    write(&region, &slots);
    fs::write(save.path().join(format!("region/c.{}.{}.mcc", garbage.0, garbage.1)), [7; 9000])
        .expect("written");
    // Entities of a sound column, of a torn one, and of none; points of interest likewise.
    let entities = |payload: &[u8]| compress(payload);
    let of_numbers = nbt::document(|root| {
        root.int("DataVersion", NEW);
        root.int_array("Position", &[31, 31]);
        root.doubles("Entities", &[1.0]);
    });
    let elsewhere = nbt::document(|root| {
        root.int_array("Position", &[7, 7]);
        root.raw_compounds("Entities", [].into_iter());
    });
    let of_this = |(x, z): At| {
        nbt::document(|root| {
            root.int("DataVersion", NEW);
            root.int_array("Position", &[x, z]);
            root.raw_compounds("Entities", [].into_iter());
        })
    };
    // The root's name is "a".
    let named = |at: At| [&[10, 0, 1, b'a'], &of_this(at)[3..]].concat();
    let followed = |at: At| [&of_this(at)[..], b"\0"].concat();
    let stored = |at: At, compression, payload| Stored {
        slot: ColumnPos::new(at.0, at.1).slot(),
        compression,
        payload,
    };
    write(
        &save.path().join("entities/r.0.0.mca"),
        &[
            stored((31, 31), 2, entities(&of_numbers)),
            stored((0, 0), 2, entities(&elsewhere)),
            stored((1, 0), 77, vec![1, 2, 3]),
            stored((30, 30), 2, entities(&of_numbers[..40])),
            stored((28, 30), 2, entities(&named((28, 30)))),
            stored((27, 30), 2, entities(&followed((27, 30)))),
            stored((29, 30), 2, compress(&document(&sound))),
        ],
    );
    write(
        &save.path().join("poi/r.0.0.mca"),
        &[
            stored((31, 31), 2, compress(&points((31, 31), LIVE)[..30])),
            stored((0, 0), 5, vec![0; 70]),
            stored((2, 0), 2, compress(&points((2, 0), LIVE))),
            stored((30, 30), 2, compress(&nbt::document(|root| root.int("Sections", 3)))),
        ],
    );
    count
}

/// Writes a region file of these slots, all of one time.
pub(super) fn write(path: &Path, slots: &[Stored]) {
    maker::region(path, slots);
    for Stored { slot, .. } in slots {
        maker::stamp(path, (slot.x(), slot.z()), TIME);
    }
}

/// A slot as a file has it, without a reader of the crate: its time, its bytes with the head, and those of its `.mcc` file.
pub(super) type Raw = (u32, Vec<u8>, Option<Vec<u8>>);

/// The slots of a region file.
pub(super) fn raw_slots(path: &Path) -> BTreeMap<usize, Raw> {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let name = path.file_name().and_then(|name| name.to_str()).expect("text");
    let corner: Vec<i32> = name.split('.').filter_map(|part| part.parse().ok()).collect();
    let mut all = BTreeMap::new();
    for slot in (0..1024).filter(|slot| word(slot * 4) != 0) {
        let (from, sectors) = ((word(slot * 4) >> 8) as usize * 4096, (word(slot * 4) & 255) as usize);
        let stored = match bytes.get(from..) {
            Some(rest) if from >= 8192 && rest.len() >= 5 => {
                let stated = word(from) as usize + 4;
                let end = if stated > 4 && stated <= sectors * 4096 { stated } else { sectors * 4096 };
                rest[..end.min(rest.len())].to_vec()
            }
            // Only the place in the header is there.
            _ => word(slot * 4).to_be_bytes().to_vec(),
        };
        let external =
            format!("c.{}.{}.mcc", corner[0] * 32 + slot as i32 % 32, corner[1] * 32 + slot as i32 / 32);
        let external = fs::read(path.with_file_name(external)).ok();
        all.insert(slot, (word(4096 + slot * 4), stored, external));
    }
    all
}
