//! Medians, and how far they can be trusted.

/// Some values together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// Half the distance between the least and the most, as a share of the median.
    pub(crate) spread: f64,
}

/// The summary of values; `None` of no value.
pub(crate) fn summary(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (least, most) = (*values.first()?, *values.last()?);
    let middle = values.len() / 2;
    let median = if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    };
    let spread = if median > 0.0 { (most - least) / 2.0 / median } else { 0.0 };
    Some(Summary { median, least, most, spread })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_and_the_spread_half_the_range() {
        let summed = summary([8.0, 2.0, 4.0]).expect("three values");
        assert_eq!(summed, Summary { median: 4.0, least: 2.0, most: 8.0, spread: 0.75 });
        let even = summary([1.0, 3.0, 2.0, 10.0]).expect("four values");
        assert_eq!((even.median, even.spread), (2.5, 1.8));
    }

    #[test]
    fn nothing_has_no_median_and_zeros_no_spread() {
        assert_eq!(summary([]), None);
        assert_eq!(summary([0.0, 0.0]).map(|summed| summed.spread), Some(0.0));
    }
}
