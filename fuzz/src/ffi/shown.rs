//! What the library lends is looked at, so that a tool for memory sees a pointer that is none.

use cherrygrove::*;

/// Looks at each byte.
pub(super) fn bytes(bytes: &[u8]) {
    std::hint::black_box(bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
}

/// Looks at all that a column lends.
///
/// # Safety
/// It is lent.
pub(super) unsafe fn column(column: &cg_column) {
    // SAFETY: it is lent.
    unsafe {
        for section in slice(column.sections, column.section_count) {
            for cells in slice(section.layers, section.layer_count.into()).iter().chain([&section.biomes]) {
                bytes(slice(cells.words, cells.words_len));
                std::hint::black_box(slice(cells.palette, cells.palette_len as usize).iter().sum::<u32>());
            }
            for light in [section.block_light, section.sky_light] {
                bytes(slice(light, if light.is_null() { 0 } else { 2048 }));
            }
        }
        let of_entities = slice(column.entities, column.entity_count).iter().map(|entity| entity.nbt);
        let of_blocks =
            slice(column.block_entities, column.block_entity_count).iter().map(|entity| entity.nbt);
        for nbt in of_entities.chain(of_blocks) {
            bytes(slice(nbt.ptr, nbt.len));
        }
        std::hint::black_box(slice(column.scheduled, column.scheduled_count).iter().map(|one| one.due).max());
    }
}

unsafe fn slice<'l, T>(first: *const T, count: usize) -> &'l [T] {
    // SAFETY: as the caller says.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}
