//! Points from decimal text: exact to the block, which a float is not far from the origin.

use cg_format::BlockPos;

use crate::output::Failure;

/// The block of a point, and the fraction of it along each axis.
pub(crate) fn point(coordinates: &[String]) -> Result<(BlockPos, [f32; 3]), Failure> {
    let [x, y, z] = coordinates else {
        return Err(Failure::usage("a position has three coordinates"));
    };
    let part = |axis: char, text: &str| {
        split(text).ok_or_else(|| {
            let allowed = "a decimal number from -2^63 to below 2^63";
            Failure::usage(format!("{axis} is `{text}`, allowed is {allowed}"))
        })
    };
    let [(x, along_x), (y, along_y), (z, along_z)] = [part('x', x)?, part('y', y)?, part('z', z)?];
    Ok((BlockPos::new(x, y, z), [along_x, along_y, along_z]))
}

/// The block that a coordinate is in, and the nearest fraction; `None` if it is no decimal number or outside `i64`.
fn split(text: &str) -> Option<(i64, f32)> {
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, exponent) = match rest.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let all = format!("{whole}{part}");
    if all.is_empty() || !all.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = all.trim_start_matches('0');
    if digits.is_empty() {
        return Some((0, 0.0));
    }
    // How many of the digits are before the point; fewer than none if zeros follow it.
    let point = i64::from(exponent) + whole.len() as i64 - (all.len() - digits.len()) as i64;
    if point > 19 {
        return None;
    }
    let before = usize::try_from(point).unwrap_or(0);
    let (whole, part) = digits.split_at(before.min(digits.len()));
    let whole: i128 = if before == 0 { 0 } else { format!("{whole:0<before$}").parse().ok()? };
    let part: f64 = format!("0.0{part}e{}", point.min(0) + 1).parse().ok()?;
    let (block, fraction) = match (is_negative, part > 0.0) {
        (false, _) => (whole, part as f32),
        (true, false) => (-whole, 0.0),
        (true, true) => (-whole - 1, (1.0 - part) as f32),
    };
    // A fraction may round up to a whole block.
    let (block, fraction) = if fraction < 1.0 { (block, fraction) } else { (block + 1, 0.0) };
    Some((i64::try_from(block).ok()?, fraction))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn numbers_at_the_edge_of_the_world_are_exact() {
        assert_eq!(split("9223372036854775807"), Some((i64::MAX, 0.0)));
        assert_eq!(split("-9223372036854775808"), Some((i64::MIN, 0.0)));
        assert_eq!(split("922337203685477580.7e1"), Some((i64::MAX, 0.0)));
        assert_eq!(split("0.00000009223372036854775807e26"), Some((i64::MAX, 0.0)));
        assert_eq!(split("-1e-400"), Some((0, 0.0)));
        assert_eq!(split("0e99999"), Some((0, 0.0)));
        for outside in
            ["9223372036854775808", "-9223372036854775808.5", "9223372036854775807.99999999", "1e19"]
        {
            assert_eq!(split(outside), None, "{outside}");
        }
        for wrong in
            ["", "-", ".", "e5", "--1", "1e", "1e5.0", "1e99999999999", "0x10", "1_000", "٣", "infinity"]
        {
            assert_eq!(split(wrong), None, "{wrong}");
        }
    }
}
