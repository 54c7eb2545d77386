//! Orders that no cache expects.

/// A Fisher-Yates shuffle with a small generator: always the same order for the same seed.
pub fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut bits = seed;
    for last in (1..items.len()).rev() {
        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        items.swap(last, (bits >> 33) as usize % (last + 1));
    }
}

/// The value below which `percent` of all lie; the least of none.
pub fn percentile<T: Ord + Copy + Default>(values: &mut [T], percent: f64) -> T {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    let place = (last as f64 * percent / 100.0).ceil() as usize;
    values.get(place.min(last)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_loses_nothing_and_is_the_same_again() {
        let sorted: Vec<u32> = (0..100).collect();
        let [mut once, mut again] = [sorted.clone(), sorted.clone()];
        shuffle(&mut once, 7);
        shuffle(&mut again, 7);
        assert!(once == again && once != sorted);
        once.sort_unstable();
        assert_eq!(once, sorted);
    }

    #[test]
    fn percentiles_are_values_that_occur() {
        let mut values: Vec<u32> = (1..=101).rev().collect();
        assert_eq!(
            [0.0, 50.0, 99.0, 100.0].map(|percent| percentile(&mut values, percent)),
            [1, 51, 100, 101]
        );
        assert_eq!(percentile::<u32>(&mut [], 50.0), 0);
    }
}
