//! Which chunks a group has: the whole of L1, a slab of L1 with one x, an aligned cube of L2, or half a cube with two x.

use super::super::Refused;
use super::side;

/// How many groups a cluster has.
pub(crate) fn count(scale_level: u8, directory_version: u8) -> Result<u16, Refused> {
    match (scale_level, directory_version) {
        (1, 3) => Ok(4),
        (2, 4 | 5) => Ok(128),
        (1 | 2, 1 | 2) => Ok(side(scale_level)?.pow(3) / 64),
        (1 | 2, _) => Err(format!("directory version {directory_version} of scale level {scale_level}")),
        _ => Err(format!("scale level {scale_level}")),
    }
}

/// The group of a slot, and its place there.
pub(crate) fn of_slot(scale_level: u8, directory_version: u8, slot: u16) -> (u16, u16) {
    if scale_level == 1 {
        let (x, y, z) = (slot / 16, slot / 4 % 4, slot % 4);
        return if directory_version == 3 { (x, y * 4 + z) } else { (0, slot) };
    }
    let (x, y, z) = (slot / 256, slot / 16 % 16, slot % 16);
    let cube = (x / 4 * 4 + y / 4) * 4 + z / 4;
    if directory_version >= 4 {
        return (cube * 2 + x % 4 / 2, (x % 2 * 4 + y % 4) * 4 + z % 4);
    }
    (cube, (x % 4 * 4 + y % 4) * 4 + z % 4)
}

/// The slot of a place of a group.
pub(crate) fn slot_at(scale_level: u8, directory_version: u8, group: u16, place: u16) -> u16 {
    if scale_level == 1 {
        let (x, y, z) = (group, place / 4, place % 4);
        return if directory_version == 3 { (x * 4 + y) * 4 + z } else { place };
    }
    let (cube, first_x) = if directory_version >= 4 { (group / 2, group % 2 * 2) } else { (group, 0) };
    let (gx, gy, gz) = (cube / 16, cube / 4 % 4, cube % 4);
    let (ix, iy, iz) = (first_x + place / 16, place / 4 % 4, place % 4);
    ((gx * 4 + ix) * 16 + gy * 4 + iy) * 16 + gz * 4 + iz
}
