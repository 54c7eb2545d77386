//! In which layout a dimension of a world was met, as an object of the world.
//!
//! The object `minecraft/layout/<dimension>` is a compound: byte `format_version`, string `layout`, byte array `level` and
//! byte `stray`. It counts only beside the `level.dat` that it came with, whose digest `level` is: another save's
//! `level.dat` says where a game looks then.

use cg_minecraft::name;
use cg_store::Error;
use cg_store::objects::ObjectKey;
use sha2::{Digest, Sha256};

use super::leftovers::{begin, parse};
use crate::nbt::{self, Value};
use crate::save::Layout;

/// How the keys of all these objects begin.
pub const LAYOUT_PREFIX: &str = "minecraft/layout/";

/// The first 16 bytes of SHA-256 over a `level.dat`.
pub type LevelDigest = [u8; 16];

/// The layout in which a dimension was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetLayout {
    /// The layout.
    pub layout: Layout,
    /// The `level.dat` beside it; `None` if there was none.
    pub level: Option<LevelDigest>,
    /// Whether the dimension is made of strays: then it has the folder of the dimension that they are of.
    pub is_stray: bool,
}

/// The object of a dimension's layout.
///
/// # Errors
/// [`Error::ObjectKey`] when the dimension's name is too long for a key.
pub fn layout_key(dimension: &str) -> Result<ObjectKey, Error> {
    ObjectKey::new(format!("{LAYOUT_PREFIX}{}", name::escaped(dimension)))
}

/// Digest by which a `level.dat` is known.
pub fn digest_of_level(bytes: &[u8]) -> LevelDigest {
    let whole: [u8; 32] = Sha256::digest(bytes).into();
    std::array::from_fn(|at| whole[at])
}

impl MetLayout {
    /// The object's bytes.
    pub fn encode(&self) -> Vec<u8> {
        nbt::payload(|out| {
            begin(out);
            let written = out.string("layout", &self.layout.to_string());
            written.expect("a short text");
            if let Some(level) = &self.level {
                out.byte_array("level", level);
            }
            out.byte("stray", self.is_stray.into());
        })
    }

    /// Reads an object; `None` when it is none of this format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let root = parse(bytes)?;
        let layout = root.text("layout")?;
        let layout = [Layout::Old, Layout::Dimensions]
            .into_iter()
            .find(|known| known.to_string() == layout.lossy())?;
        let level = match root.get("level") {
            None => None,
            Some(Value::ByteArray(level)) => Some(level.try_into().ok()?),
            Some(_) => return None,
        };
        Some(Self { layout, level, is_stray: root.int("stray")? != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_comes_back_and_nothing_else_is_one() {
        for (layout, level, is_stray) in [
            (Layout::Old, None, false),
            (Layout::Dimensions, Some([7; 16]), false),
            (Layout::Old, Some([0; 16]), true),
        ] {
            let met = MetLayout { layout, level, is_stray };
            assert_eq!(MetLayout::decode(&met.encode()), Some(met));
        }
        let other = |change: fn(&mut nbt::CompoundWriter<'_>)| {
            nbt::payload(|out| {
                begin(out);
                change(out);
            })
        };
        let named = |out: &mut nbt::CompoundWriter<'_>, name| out.string("layout", name).expect("short");
        let others =
            [vec![], other(|_| ()), other(|out| out.byte("stray", 0)), nbt::payload(|out| named(out, "old"))];
        for bytes in others {
            assert_eq!(MetLayout::decode(&bytes), None, "{bytes:?}");
        }
        let stray = |name: &'static str, level: &'static [u8]| {
            nbt::payload(|out| {
                begin(out);
                named(out, name);
                out.byte_array("level", level);
                out.byte("stray", 0);
            })
        };
        assert_eq!(MetLayout::decode(&stray("new", &[0; 16])), None);
        assert_eq!(MetLayout::decode(&stray("old", &[0; 15])), None);
        assert!(MetLayout::decode(&stray("old", &[0; 16])).is_some());
    }
}
