//! Name and version of a save, from its `level.dat`.

use serde::{Deserialize, Serialize};

use super::nbt::{self, Document};
use super::region::{Compression, decompress};

/// The largest tree that is read; those of large mod packs take a few megabytes.
const MAX_BYTES: usize = 64 << 20;

/// Name and version of a save, from its `level.dat`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The save's name; empty if it has none.
    pub name: String,
    /// The number of the game's version that wrote it; `None` before 1.9.
    pub data_version: Option<i32>,
}

impl Level {
    /// Reads the bytes of a file `level.dat`; `None` if they are none of Java Edition's.
    ///
    /// Decompresses all of it, at most 64 MiB.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut raw = Vec::new();
        decompress(Compression::Gzip, bytes, MAX_BYTES, &mut raw).ok()?;
        let root = Document::parse(&raw, &nbt::Limits::default()).ok()?.root;
        let data = root.compound("Data")?;
        let name = data.text("LevelName").map(|name| name.lossy().into_owned()).unwrap_or_default();
        Some(Self { name, data_version: data.int("DataVersion") })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn gzip(raw: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = flate2::read::GzEncoder::new(raw, flate2::Compression::default());
        encoder.read_to_end(&mut out).expect("memory is read without errors");
        out
    }

    #[test]
    fn a_level_is_read_and_nothing_else_is_one() {
        let raw = nbt::document(|root| {
            root.compound("Data", |data| {
                data.int("DataVersion", 4788);
                let _ = data.string("LevelName", "A \u{e9}");
            });
        });
        let level = Level { name: "A \u{e9}".to_owned(), data_version: Some(4788) };
        assert_eq!(Level::read(&gzip(&raw)), Some(level));
        let old = gzip(&nbt::document(|root| root.compound("Data", |_| ())));
        assert_eq!(Level::read(&old), Some(Level { name: String::new(), data_version: None }));
        // Bedrock Edition's is not compressed and has no `Data`.
        let others =
            [vec![], raw.clone(), gzip(&raw[..raw.len() - 2]), gzip(b"\x0a\0\0\0"), gzip(&raw)[..9].to_vec()];
        for other in others {
            assert_eq!(Level::read(&other), None, "{other:?}");
        }
    }
}
