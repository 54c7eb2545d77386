//! Spans of game time as people write them: `30d`, `90m`, `600t`.

use cg_tiering::GameTick;

const UNITS: [(char, u64); 5] = [
    ('d', 24 * 60 * 60 * GameTick::PER_SECOND),
    ('h', 60 * 60 * GameTick::PER_SECOND),
    ('m', 60 * GameTick::PER_SECOND),
    ('s', GameTick::PER_SECOND),
    ('t', 1),
];

/// Reads a span: a whole number and its unit. For clap, so the error is a sentence.
pub(in crate::cmd) fn ticks(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{text}` is no span of game time; write a number and d, h, m, s or t (ticks), as in 30d");
    let unit = text.chars().next_back().ok_or_else(wrong)?;
    let (_, unit_ticks) = UNITS.into_iter().find(|(letter, _)| *letter == unit).ok_or_else(wrong)?;
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(unit_ticks).ok_or_else(wrong)
}

/// A span in its two largest units: `1 d 3 h`.
pub(super) fn ticks_text(span_ticks: u64) -> String {
    let mut left = span_ticks;
    let mut parts = Vec::new();
    for (letter, unit_ticks) in UNITS {
        let count = left / unit_ticks;
        left %= unit_ticks;
        if count > 0 {
            parts.push(format!("{count} {letter}"));
        }
    }
    parts.truncate(2);
    if parts.is_empty() { "0 t".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_both_ways() {
        let read = ["30d", "90m", "5s", "7t", "0h"].map(|text| ticks(text).map(ticks_text));
        assert_eq!(read, ["30 d", "1 h 30 m", "5 s", "7 t", "0 t"].map(|text| Ok(text.to_owned())));
        for wrong in ["", "d", "5", "-5d", "5 d", "5w", "ä", "999999999999999d"] {
            let said = ticks(wrong).unwrap_err();
            assert!(said.starts_with(&format!("`{wrong}` is no span of game time")), "{said}");
        }
    }
}
