//! The names of region files.

use std::path::Path;

use super::RegionPos;

/// The place in a file name that ends in `r.X.Z.mca`, whatever stands before it.
///
/// ```
/// use std::path::Path;
/// use cg_anvil::region::{RegionPos, region_pos};
/// let place = RegionPos::new(-1, 0);
/// assert_eq!(region_pos(Path::new("region/r.-1.0.mca")), place);
/// assert_eq!(region_pos(Path::new("1.20.1_city_r.-1.0.mca")), place);
/// assert_eq!(region_pos(Path::new("backup.mca")), None);
/// ```
pub fn region_pos(path: &Path) -> Option<RegionPos> {
    split_name(path).map(|(_, pos)| pos)
}

/// The prefix and place of a region file's name.
pub(crate) fn split_name(path: &Path) -> Option<(&str, RegionPos)> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".mca")?;
    let (rest, z) = stem.rsplit_once('.')?;
    let (rest, x) = rest.rsplit_once('.')?;
    let prefix = rest.strip_suffix('r')?;
    if prefix.ends_with(|last: char| last.is_ascii_alphanumeric()) {
        return None;
    }
    Some((prefix, RegionPos::new(number(x)?, number(z)?)?))
}

/// A number as the game writes it: no plus, no leading zero.
pub(crate) fn number(text: &str) -> Option<i32> {
    text.parse().ok().filter(|number: &i32| number.to_string() == text)
}
