//! Places in the log of a server.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, Error, Result};

/// A byte in the log, counted from the beginning of the cluster; written `16/B374D848`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lsn(u64);

impl Lsn {
    /// How many bytes this place is after an earlier one; 0 if it is not after it.
    pub(super) fn bytes_after(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl FromStr for Lsn {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let half = |digits: &str| u32::from_str_radix(digits, 16).ok().map(u64::from);
        let halves = text.split_once('/').and_then(|(high, low)| Some((half(high)?, half(low)?)));
        let (high, low) =
            halves.with_context(|| format!("{text:?} is no place in the log, such as 0/3000148"))?;
        Ok(Self(high << 32 | low))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:X}/{:X}", self.0 >> 32, self.0 & u64::from(u32::MAX))
    }
}

/// The index of the standby that received most; the first of equals. `None` if there is none.
pub(super) fn furthest(received: &[Lsn]) -> Option<usize> {
    (0..received.len()).max_by_key(|&index| (received[index], std::cmp::Reverse(index)))
}

#[cfg(test)]
mod tests {
    use super::{Lsn, furthest};

    fn lsn(text: &str) -> Lsn {
        text.parse().expect("a place")
    }

    #[test]
    fn a_place_is_read_written_and_compared_as_a_number() {
        assert_eq!(lsn("16/B374D848").to_string(), "16/B374D848");
        // As text, the second would be the greater one.
        assert!(lsn("10/0") > lsn("9/FFFFFFFF"));
        assert_eq!(lsn("1/10").bytes_after(lsn("0/FFFFFFF0")), 32);
        assert_eq!(lsn("0/1").bytes_after(lsn("0/2")), 0);
        for text in ["", "1", "/", "1/G", "1/123456789", "-1/1"] {
            let error = text.parse::<Lsn>().unwrap_err().to_string();
            assert_eq!(error, format!("{text:?} is no place in the log, such as 0/3000148"));
        }
    }

    #[test]
    fn the_furthest_standby_is_chosen_and_the_first_of_equals() {
        assert_eq!(furthest(&[lsn("9/F0000000"), lsn("10/0")]), Some(1));
        assert_eq!(furthest(&[lsn("10/0"), lsn("9/F0000000")]), Some(0));
        assert_eq!(furthest(&[lsn("0/5"), lsn("0/5")]), Some(0));
        assert_eq!(furthest(&[]), None);
    }
}
