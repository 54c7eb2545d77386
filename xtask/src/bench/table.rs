//! Results as a table, on a screen and in a page.

use super::measured::{Measured, Work};

/// One line: benchmark, median, spread, rate, ratios.
pub(super) type Row = [String; 5];

const HEAD: [&str; 5] = ["benchmark", "median", "spread", "rate", "ratio to reference"];

/// A row per result in the order of the groups, references first.
pub(super) fn rows(results: &[Measured]) -> Vec<Row> {
    let mut sorted: Vec<_> = results.iter().collect();
    sorted.sort_by(|a, b| {
        let key = |result: &Measured| (result.group.clone(), result.reference().is_none(), result.id());
        key(a).cmp(&key(b))
    });
    let row = |result: &Measured| {
        let spread = 100.0 * result.deviation_ns / result.median_ns;
        [
            result.id(),
            time(result.median_ns),
            format!("± {spread:.1} %"),
            result.work.map_or(String::new(), |work| rate(work, result.median_ns)),
            ratios(result, results),
        ]
    };
    sorted.into_iter().map(row).collect()
}

/// The table in columns.
pub(super) fn text(rows: &[Row]) -> String {
    let head = HEAD.map(str::to_owned);
    let lines: Vec<_> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let [id, median, spread, rate] = [0, 1, 2, 3].map(width);
    let line = |row: &Row| {
        let [name, time, deviation, speed, ratios] = row;
        let line = format!("{name:id$}  {time:>median$}  {deviation:>spread$}  {speed:>rate$}  {ratios}");
        format!("{}\n", line.trim_end())
    };
    lines.into_iter().map(line).collect()
}

/// The table in Markdown.
pub(super) fn markdown(rows: &[Row]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut out = line(&HEAD.map(str::to_owned));
    out.push_str("|---|--:|--:|--:|---|\n");
    out.extend(rows.iter().map(|row| line(row)));
    out
}

/// `3.10 x memcpy, 0.55 x lz4`: this result's median divided by that of each reference of its group.
fn ratios(result: &Measured, results: &[Measured]) -> String {
    if result.reference().is_some() {
        return "(reference)".to_owned();
    }
    let group = results.iter().filter(|other| other.group == result.group);
    let mut ratios = Vec::new();
    for reference in group.clone() {
        let Some(name) = reference.reference() else { continue };
        let same_parameter = reference.parameter == result.parameter;
        let is_matched = group
            .clone()
            .any(|other| other.function == reference.function && other.parameter == result.parameter);
        if same_parameter || (reference.parameter.is_none() && !is_matched) {
            let ratio = result.median_ns / reference.median_ns;
            ratios.push(format!(
                "{ratio:.2} x {name}{}",
                reference.aim().map_or(String::new(), |aim| met(ratio, aim))
            ));
        }
    }
    ratios.join(", ")
}

/// Whether a ratio is what was aimed at.
fn met(ratio: f64, aim: f64) -> String {
    if ratio <= aim {
        format!(" (<= {aim}: met)")
    } else {
        format!(" (<= {aim}: missed by {:.2} x)", ratio / aim)
    }
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.2} ns"),
        ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

fn rate(work: Work, ns: f64) -> String {
    let (amount, unit) = match work {
        Work::Bytes(bytes) => (bytes, "B"),
        Work::Elements(elements) => (elements, ""),
    };
    let per_second = amount / ns * 1e9;
    let (scaled, prefix) = match per_second {
        n if n < 1e3 => (n, ""),
        n if n < 1e6 => (n / 1e3, "k"),
        n if n < 1e9 => (n / 1e6, "M"),
        n => (n / 1e9, "G"),
    };
    format!("{scaled:.1} {prefix}{unit}/s")
}

#[cfg(test)]
mod tests {
    use super::super::measured::{Measured, Work};
    use super::{markdown, rows, text};

    fn measured(group: &str, function: &str, parameter: Option<&str>, median_ns: f64) -> Measured {
        let parameter = parameter.map(str::to_owned);
        let (group, function) = (group.to_owned(), function.to_owned());
        Measured { group, function, parameter, median_ns, deviation_ns: median_ns / 50.0, work: None }
    }

    #[test]
    fn a_ratio_is_held_against_the_aim_that_its_reference_states() {
        let results = [
            measured("load", "ref: get <= 1.3", Some("L0"), 100.0),
            measured("load", "ref: get <= 1.3", Some("L1"), 100.0),
            measured("load", "ref: memcpy", None, 10.0),
            measured("load", "ours", Some("L0"), 130.0),
            measured("load", "ours", Some("L1"), 260.0),
        ];
        let ratios: Vec<_> = rows(&results).into_iter().map(|row| row[4].clone()).collect();
        let expected = [
            "(reference)",
            "(reference)",
            "(reference)",
            "1.30 x get (<= 1.3: met), 13.00 x memcpy",
            "2.60 x get (<= 1.3: missed by 2.00 x), 26.00 x memcpy",
        ];
        assert_eq!(ratios, expected);
    }

    #[test]
    fn each_result_stands_beside_the_references_of_its_group() {
        let mut results = [
            measured("decode", "chunk", Some("terrain"), 3_000.0),
            measured("decode", "chunk", Some("library"), 9_000.0),
            measured("decode", "ref: lz4", Some("terrain"), 6_000.0),
            measured("decode", "ref: lz4", None, 1_000.0),
            measured("decode", "ref: memcpy", Some("terrain"), 150.0),
            measured("unpack", "4 bits", None, 12.5),
        ];
        results[0].work = Some(Work::Bytes(1500.0));
        results[5].work = Some(Work::Elements(10.0));
        let rows = rows(&results);
        assert_eq!(
            text(&rows),
            "\
benchmark                      median   spread        rate  ratio to reference
decode/ref: lz4               1.00 us  ± 2.0 %              (reference)
decode/ref: lz4/terrain       6.00 us  ± 2.0 %              (reference)
decode/ref: memcpy/terrain  150.00 ns  ± 2.0 %              (reference)
decode/chunk/library          9.00 us  ± 2.0 %              9.00 x lz4
decode/chunk/terrain          3.00 us  ± 2.0 %  500.0 MB/s  0.50 x lz4, 20.00 x memcpy
unpack/4 bits                12.50 ns  ± 2.0 %   800.0 M/s
"
        );
        assert_eq!(
            markdown(&rows[4..]),
            "\
| benchmark | median | spread | rate | ratio to reference |
|---|--:|--:|--:|---|
| decode/chunk/terrain | 3.00 us | ± 2.0 % | 500.0 MB/s | 0.50 x lz4, 20.00 x memcpy |
| unpack/4 bits | 12.50 ns | ± 2.0 % | 800.0 M/s |  |
"
        );
    }
}
