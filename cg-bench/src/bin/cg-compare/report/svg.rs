//! Plots as inline SVG: horizontal bars, and lines, both on a scale of powers of ten.
//!
//! Colours are classes of the page's style sheet, so that light and dark are its matter.

use std::fmt::Write as _;

/// The width of every plot, in its own units.
const WIDTH: f64 = 880.0;
/// Where bars begin, after their names.
const BARS_LEFT: f64 = 220.0;
/// Room for the value after the longest bar.
const BARS_RIGHT: f64 = 190.0;
const BAR_STEP: f64 = 26.0;
const BAR_HEIGHT: f64 = 16.0;
/// The shortest bar: the least value has one too.
const BAR_LEAST: f64 = 24.0;
/// The height of a plot of lines, and the room around it.
const LINES_HEIGHT: f64 = 320.0;
const LINES_LEFT: f64 = 70.0;
const LINES_RIGHT: f64 = 230.0;
const LINES_TOP: f64 = 14.0;
const LINES_BOTTOM: f64 = 34.0;
/// The least distance between two names at the ends of lines.
const NAME_STEP: f64 = 15.0;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// The class that colours it.
    pub(crate) class: String,
    pub(crate) value: f64,
    /// The least and the most of all rounds.
    pub(crate) range: (f64, f64),
    /// The text after it.
    pub(crate) text: String,
}

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) class: String,
    /// A value for each place on the horizontal axis, where there is one.
    pub(crate) values: Vec<Option<f64>>,
}

/// Text that is safe in markup.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Bars under one another; their lengths are logarithms, and a thin line shows the range of the rounds.
pub(crate) fn bars(label: &str, bars: &[Bar]) -> String {
    let height = BAR_STEP * bars.len() as f64 + 6.0;
    let mut out = begin(label, height);
    let positive = || bars.iter().flat_map(|bar| [bar.range.0, bar.range.1]).filter(|value| *value > 0.0);
    let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
    let room = WIDTH - BARS_LEFT - BARS_RIGHT - BAR_LEAST;
    let length = |value: f64| {
        if most > least && value > 0.0 {
            BAR_LEAST + room * (value / least).log10() / (most / least).log10()
        } else {
            BAR_LEAST
        }
    };
    for (index, bar) in bars.iter().enumerate() {
        let Bar { class, value, range, .. } = bar;
        let top = 4.0 + BAR_STEP * index as f64;
        let (middle, text_y) = (top + BAR_HEIGHT / 2.0, top + 12.5);
        let (name, text) = (escaped(&bar.name), escaped(&bar.text));
        let (long, from, to) = (length(*value), BARS_LEFT + length(range.0), BARS_LEFT + length(range.1));
        let end = BARS_LEFT + long.max(length(range.1)) + 8.0;
        let name_x = BARS_LEFT - 10.0;
        writeln!(
            out,
            "<text class=\"name {class}\" x=\"{name_x}\" y=\"{text_y:.1}\">{name}</text>\
             <rect class=\"{class}\" x=\"{BARS_LEFT}\" y=\"{top:.1}\" width=\"{long:.1}\" height=\"{BAR_HEIGHT}\" rx=\"2\"/>\
             <line class=\"range\" x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{middle:.1}\" y2=\"{middle:.1}\"/>\
             <text x=\"{end:.1}\" y=\"{text_y:.1}\">{text}</text>"
        )
        .expect("a string takes all");
    }
    out.push_str("</svg>\n");
    out
}

/// Lines over named places; heights are logarithms. `text_of` writes a power of ten at the left.
pub(crate) fn lines(label: &str, places: &[&str], lines: &[Line], text_of: impl Fn(f64) -> String) -> String {
    let values = || lines.iter().flat_map(|line| line.values.iter().flatten()).filter(|value| **value > 0.0);
    let lowest = values().fold(f64::INFINITY, |least, value| least.min(*value));
    let highest = values().fold(0.0_f64, |most, value| most.max(*value));
    let mut out = begin(label, LINES_HEIGHT);
    if lowest > highest {
        out.push_str("</svg>\n");
        return out;
    }
    let (low, high) = (lowest.log10().floor(), highest.log10().ceil().max(lowest.log10().floor() + 1.0));
    let (bottom, right) = (LINES_HEIGHT - LINES_BOTTOM, WIDTH - LINES_RIGHT);
    let y = |value: f64| bottom - (bottom - LINES_TOP) * (value.log10() - low) / (high - low);
    let steps = places.len().saturating_sub(1).max(1) as f64;
    let x = |index: usize| LINES_LEFT + (right - LINES_LEFT) * index as f64 / steps;
    for power in low as i32..=high as i32 {
        let (at, text) = (y(10_f64.powi(power)), text_of(10_f64.powi(power)));
        let (text_x, text_y) = (LINES_LEFT - 8.0, at + 4.0);
        writeln!(
            out,
            "<line class=\"grid\" x1=\"{LINES_LEFT}\" x2=\"{right}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"name\" x=\"{text_x}\" y=\"{text_y:.1}\">{}</text>",
            escaped(&text)
        )
        .expect("a string takes all");
    }
    for (index, place) in places.iter().enumerate() {
        let (at, text_y) = (x(index), LINES_HEIGHT - 12.0);
        writeln!(out, "<text class=\"place\" x=\"{at:.1}\" y=\"{text_y}\">{}</text>", escaped(place))
            .expect("a string takes all");
    }
    for line in lines {
        draw(&mut out, line, &x, &y);
    }
    name_ends(&mut out, lines, right + 10.0, &y);
    out.push_str("</svg>\n");
    out
}

/// One line with a dot at each of its values.
fn draw(out: &mut String, line: &Line, x: &dyn Fn(usize) -> f64, y: &dyn Fn(f64) -> f64) {
    let values = line.values.iter().enumerate();
    let points: Vec<_> = values
        .filter_map(|(index, value)| Some((x(index), y(value.filter(|value| *value > 0.0)?))))
        .collect();
    let path: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let (class, path) = (&line.class, path.join(" "));
    writeln!(out, "<polyline class=\"line {class}\" points=\"{path}\"/>").expect("a string takes all");
    for (x, y) in points {
        writeln!(out, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\"/>")
            .expect("a string takes all");
    }
}

/// The names of the lines at their ends, moved apart where they would overlap.
fn name_ends(out: &mut String, lines: &[Line], x: f64, y: &dyn Fn(f64) -> f64) {
    let end = |line: &Line| line.values.iter().rev().flatten().copied().find(|value| *value > 0.0).map(y);
    let mut ends: Vec<_> = lines.iter().filter_map(|line| Some((end(line)?, line))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let most = LINES_HEIGHT - 4.0 - NAME_STEP * ends.len() as f64;
    let mut next = LINES_TOP.min(most);
    for (index, (at, line)) in ends.iter().enumerate() {
        // What is below still needs its room.
        let latest = most + NAME_STEP * (index + 1) as f64;
        let text_y = at.max(next).min(latest.max(next));
        next = text_y + NAME_STEP;
        let (class, name) = (&line.class, escaped(&line.name));
        let (dot_y, text_x, text_y) = (text_y - 4.0, x + 10.0, text_y);
        writeln!(
            out,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{dot_y:.1}\" r=\"4\"/><text class=\"{class}\" x=\"{text_x:.1}\" y=\"{text_y:.1}\">{name}</text>"
        )
        .expect("a string takes all");
    }
}

fn begin(label: &str, height: f64) -> String {
    let label = escaped(label);
    format!("<svg role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {WIDTH} {height}\">\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(name: &str, value: f64) -> Bar {
        let (class, text) = ("c0".to_owned(), format!("{value}"));
        Bar { name: name.to_owned(), class, value, range: (value, value), text }
    }

    #[test]
    fn the_longest_bar_is_as_long_as_there_is_room_and_the_shortest_is_seen() {
        let drawn = bars("a <plot>", &[bar("one", 1.0), bar("ten", 10.0), bar("hundred", 100.0)]);
        for width in ["width=\"24.0\"", "width=\"247.0\"", "width=\"470.0\""] {
            assert!(drawn.contains(width), "{width} is missing in\n{drawn}");
        }
        assert!(drawn.contains("aria-label=\"a &lt;plot&gt;\""), "{drawn}");
    }

    #[test]
    fn a_line_leaves_out_what_it_has_no_value_of() {
        let line = Line {
            name: "a".to_owned(),
            class: "c1".to_owned(),
            values: vec![Some(10.0), None, Some(100.0)],
        };
        let drawn = lines("l", &["x", "y", "z"], &[line], |value| format!("{value}"));
        assert!(drawn.contains("points=\"70.0,286.0 650.0,14.0\""), "{drawn}");
        assert_eq!(drawn.matches("<circle").count(), 3, "two values and the name\n{drawn}");
    }

    #[test]
    fn nothing_is_an_empty_plot() {
        assert!(!lines("l", &["x"], &[], |value| format!("{value}")).contains("NaN"));
        assert!(!bars("b", &[]).contains("NaN"));
    }
}
