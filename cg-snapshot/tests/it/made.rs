//! Schematics of any form, made field by field.

use std::io::Write as _;

use cg_snapshot::nbt::{self, CompoundWriter};
use cg_snapshot::schem::{SchemError, SchemLimits, Schematic};
use flate2::Compression;
use flate2::write::GzEncoder;

/// A tree, compressed.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(bytes).expect("memory takes it");
    out.finish().expect("memory takes it")
}

/// A file of version 2 whose fields are given, beside those that are asked for by size and palette.
pub(crate) fn version_2(
    [width, height, length]: [i16; 3],
    states: &[&str],
    data: &[u8],
    more: impl FnOnce(&mut CompoundWriter<'_>),
) -> Vec<u8> {
    gzip(&nbt::document(|root| {
        root.int("Version", 2);
        root.int("DataVersion", 2975);
        root.short("Width", width);
        root.short("Height", height);
        root.short("Length", length);
        root.compound("Palette", |palette| {
            (0..).zip(states).for_each(|(index, state)| palette.named_int(state, index).expect("short"));
        });
        root.byte_array("BlockData", data);
        more(root);
    }))
}

/// A file whose fields are given.
pub(crate) fn fields(fields: impl FnOnce(&mut CompoundWriter<'_>)) -> Vec<u8> {
    gzip(&nbt::document(fields))
}

pub(crate) fn read(file: &[u8]) -> Result<Schematic, SchemError> {
    Schematic::read(file, &SchemLimits::default())
}
