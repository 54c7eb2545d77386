//! The report as one page without anything beside it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::svg::{Bar, Line, bars, escaped, lines};
use super::table::{three_digits, value, verdicts};
use super::{Measured, Report, Row, profile, stats, verdict};
use crate::figures::Figures;
use crate::subject::Role;
use crate::workload::Unit;

/// Colours of subjects: ours are greens, others have the rest, limits are grey.
const STYLE: &str = "
:root { color-scheme: light dark; --page: #fff; --ink: #1d2329; --soft: #5c6670; --rule: #d9dee3; --good: #0b7a3b; --bad: #b3261e;
  --o0: #0b7a3b; --o1: #35a162; --o2: #7cc79a; --o3: #3f8f8a; --o4: #7fb7b3;
  --r0: #2f6fd0; --r1: #c25b12; --r2: #8a4bc2; --r3: #b8860b; --r4: #c2356f; --r5: #6b7f1f; --r6: #8c564b; --r7: #5f7fa8; --r8: #d07fb0; --r9: #a05a2c; --l0: #8b949e; }
@media (prefers-color-scheme: dark) { :root { --page: #14181c; --ink: #e4e8ec; --soft: #9aa5b0; --rule: #323a42; --good: #5fd08d; --bad: #ff8a80;
  --o0: #4fce85; --o1: #2fa566; --o2: #1d7a48; --o3: #5fc4bd; --o4: #2f8f88;
  --r0: #6ea3f5; --r1: #f0944d; --r2: #bd8cf0; --r3: #e0b53f; --r4: #f07fa9; --r5: #b3c95a; --r6: #c99a8f; --r7: #98b4d8; --r8: #e7a9cf; --r9: #d69a70; --l0: #8b949e; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.5rem 4rem; max-width: 74rem; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2.6rem 0 .4rem; padding-top: .8rem; border-top: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.8rem 0 .2rem; } p { margin: .3rem 0; overflow-wrap: anywhere; } .soft { color: var(--soft); font-size: .87rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; margin: .6rem 0; width: 100%; font-size: .87rem; }
th, td { text-align: left; padding: .22rem .7rem .22rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wins { color: var(--good); font-weight: 600; } .loses { color: var(--bad); font-weight: 600; } .failed { color: var(--bad); font-weight: 700; }
svg { display: block; width: 100%; height: auto; margin: .4rem 0; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .name { text-anchor: end; } svg text.o0, svg text.o1, svg text.o2, svg text.o3, svg text.o4 { font-weight: 700; } svg .place { text-anchor: middle; fill: var(--soft); } svg .grid { stroke: var(--rule); }
svg .range { stroke: var(--ink); stroke-width: 1.5; opacity: .65; } svg polyline.line { fill: none; stroke-width: 2; }
a { color: inherit; } details { margin: .2rem 0; } summary { cursor: pointer; color: var(--soft); font-size: .87rem; }
";

/// How conditions begin that a reader must not miss.
const LOUD: &str = "!!!";
/// The workloads that show how a store grows, with how many chunks each has.
const GROWTH: [(&str, &str); 3] = [("grown-10k", "10⁴"), ("grown-100k", "10⁵"), ("grown-1m", "10⁶")];

/// The whole page.
pub(crate) fn page(report: &Report) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    write!(out, "<title>The store beside others</title><style>{STYLE}{}</style>\n<body>\n", colours(report))
        .expect("a string takes all");
    head(&mut out, report);
    summary(&mut out, report);
    limits(&mut out, report);
    growth(&mut out, report);
    for measured in &report.workloads {
        workload(&mut out, report, measured);
    }
    subjects(&mut out, report);
    out.push_str("</body></html>\n");
    out
}

/// The class of a subject, by its place among those of its role.
fn class(report: &Report, name: &str) -> String {
    let role = |of: &str| report.subjects.iter().find(|about| about.name == of).map(|about| about.role);
    let mine = role(name).unwrap_or(Role::Rival);
    let before = report.subjects.iter().take_while(|about| about.name != name);
    let place = before.filter(|about| about.role == mine).count();
    match mine {
        Role::Ours => format!("o{}", place % 5),
        Role::Rival => format!("r{}", place % 10),
        Role::Limit => "l0".to_owned(),
    }
}

fn colours(report: &Report) -> String {
    let classes = report.subjects.iter().map(|about| class(report, &about.name)).chain(["l0".to_owned()]);
    let classes: BTreeSet<_> = classes.collect();
    classes
        .iter()
        .map(|class| format!("rect.{class}, circle.{class} {{ fill: var(--{class}) }} polyline.{class} {{ stroke: var(--{class}) }}\n"))
        .collect()
}

fn head(out: &mut String, report: &Report) {
    let Report { columns, rounds, .. } = report;
    writeln!(out, "<h1>The store beside others</h1><p>{}. {rounds} rounds.</p>", escaped(columns))
        .expect("a string takes all");
    for condition in &report.conditions {
        let class = if condition.starts_with(LOUD) { "failed" } else { "soft" };
        writeln!(out, "<p class=\"{class}\">{}</p>", escaped(condition)).expect("a string takes all");
    }
    out.push_str(
        "<p class=\"soft\">Values are medians of the rounds; ± is half the range. Each measurement has a process of its own, and the \
         content of every store is compared with what was saved. Bars and lines are drawn on a scale of powers of ten.</p>\n",
    );
    for failure in report.failures() {
        writeln!(out, "<p class=\"failed\">FAILED: {}</p>", escaped(&failure)).expect("a string takes all");
    }
}

/// Ours beside the best of the others; each line leads to its workload.
fn summary(out: &mut String, report: &Report) {
    out.push_str("<h2>Ours beside the best of the others</h2>\n");
    for sentence in verdict::sentences(report) {
        writeln!(out, "<p>{}</p>", escaped(&sentence)).expect("a string takes all");
    }
    let names: Vec<_> = report.workloads.iter().map(|measured| measured.name.as_str()).collect();
    grid(out, &verdicts(report), &[0, 2, 3, 5, 7, 9], &names);
}

/// A table whose first line is its head. The last cell of each other line is a link, where there is a target for it.
fn grid(out: &mut String, lines: &[Vec<String>], numbers: &[usize], targets: &[&str]) {
    out.push_str("<div class=\"scroll\"><table>\n");
    for (index, line) in lines.iter().enumerate() {
        let tag = if index == 0 { "th" } else { "td" };
        let target = index.checked_sub(1).and_then(|index| targets.get(index));
        out.push_str("<tr>");
        for (column, cell) in line.iter().enumerate() {
            let class = match cell.as_str() {
                "wins" | "loses" => cell,
                _ if numbers.contains(&column) => "n",
                _ => "",
            };
            let text = match target.filter(|_| column + 1 == line.len()) {
                Some(target) => format!("<a href=\"#{target}\">{}</a>", escaped(cell)),
                None => escaped(cell),
            };
            write!(out, "<{tag} class=\"{class}\">{text}</{tag}>").expect("a string takes all");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

/// Writes the times that the machine needs for the bytes of a column.
fn limits(out: &mut String, report: &Report) {
    out.push_str("<h2>What the machine needs for the bytes of one terrain column</h2>\n");
    let drawn = report.limits.iter().filter_map(|(name, values)| {
        let summed = stats::summary(values.iter().copied())?;
        let text = value(Unit::Nanoseconds, summed.median);
        let range = (summed.least, summed.most);
        Some(Bar { name: name.clone(), class: "l0".to_owned(), value: summed.median, range, text })
    });
    out.push_str(&bars("what the machine needs", &drawn.collect::<Vec<_>>()));
}

/// Time and disk of worlds of growing size, if there are at least two sizes.
fn growth(out: &mut String, report: &Report) {
    let sizes: Vec<_> = GROWTH
        .iter()
        .filter_map(|(name, place)| {
            Some((report.workloads.iter().find(|measured| measured.name == *name)?, *place))
        })
        .collect();
    if sizes.len() < 2 {
        return;
    }
    let places: Vec<_> = sizes.iter().map(|(_, place)| *place).collect();
    let drawn = |of: &dyn Fn(&Figures) -> f64| -> Vec<Line> {
        let line = |name: &String| {
            let of_size = |measured: &Measured| {
                let row = measured.rows.iter().find(|row| row.subject == *name)?;
                Some(stats::summary(row.figures()?.into_iter().map(of))?.median)
            };
            let values: Vec<_> = sizes.iter().map(|(measured, _)| of_size(measured)).collect();
            Line { name: report.shown(name), class: class(report, name), values }
        };
        let lines = report.subjects.iter().map(|about| line(&about.name));
        lines.filter(|line| line.values.iter().any(Option::is_some)).collect()
    };
    out.push_str("<h2>Growth with the number of chunks</h2><h3>a column, just opened</h3>\n");
    out.push_str(&lines("time of a column", &places, &drawn(&|figures| figures.value), |ns| {
        value(Unit::Nanoseconds, ns)
    }));
    out.push_str("<h3>bytes of all files</h3>\n");
    let disk = drawn(&|figures| figures.disk_bytes as f64);
    out.push_str(&lines("bytes of all files", &places, &disk, |bytes| value(Unit::Bytes, bytes)));
}

fn workload(out: &mut String, report: &Report, measured: &Measured) {
    let Measured { name, title, unit, .. } = measured;
    let [title_text, facts] = [title, &measured.facts(report.rounds)].map(|text| escaped(text));
    writeln!(out, "<h2 id=\"{name}\">{title_text}</h2><p class=\"soft\">{facts}</p>")
        .expect("a string takes all");
    let mut summed: Vec<_> = measured.rows.iter().filter_map(|row| Some((row, row.summary()?))).collect();
    summed.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
    let best = summed.first().map_or(1.0, |(_, summed)| summed.median);
    let drawn: Vec<_> = summed
        .iter()
        .map(|(row, summed)| Bar {
            name: report.shown(&row.subject),
            class: class(report, &row.subject),
            value: summed.median,
            range: (summed.least, summed.most),
            text: format!(
                "{}  ({}×, ± {:.0} %)",
                value(*unit, summed.median),
                three_digits(summed.median / best),
                100.0 * summed.spread
            ),
        })
        .collect();
    out.push_str(&bars(title, &drawn));
    why(out, report, measured);
    latencies(out, report, measured);
    amounts(out, report, &summed.iter().map(|(row, _)| *row).collect::<Vec<_>>());
    for row in measured.rows.iter().filter(|row| row.figures().is_none()) {
        let (word, class) = if row.failed() { ("FAILED", "failed") } else { ("not applicable", "soft") };
        let reason = escaped(row.reason().unwrap_or_default());
        writeln!(out, "<p class=\"{class}\">{}: {word}: {reason}</p>", escaped(&report.shown(&row.subject)))
            .expect("a string takes all");
    }
}

/// Where the time goes of a row that ours loses.
fn why(out: &mut String, report: &Report, measured: &Measured) {
    let Some(loss) = profile::loss(report, measured) else { return };
    writeln!(
        out,
        "<h3>why ours loses</h3><p>{}</p><p class=\"soft\">times, sleeps, written and read are of one {}</p>",
        escaped(&loss.why),
        escaped(&measured.per)
    )
    .expect("a string takes all");
    grid(out, &loss.lines, &[1, 2, 3, 4, 5, 6, 7, 8], &[]);
}

/// The percentiles of single calls.
fn latencies(out: &mut String, report: &Report, measured: &Measured) {
    let mut places = Vec::new();
    let mut drawn = Vec::new();
    for row in &measured.rows {
        let figures = row.figures().unwrap_or_default();
        let points: Vec<_> = figures.iter().filter_map(|figures| Some(figures.latency?.points())).collect();
        let Some(first) = points.first() else { continue };
        places = first.map(|(name, _)| name).to_vec();
        let median = |index: usize| stats::summary(points.iter().map(|points| points[index].1 as f64));
        let values = (0..first.len()).map(|index| median(index).map(|summed| summed.median)).collect();
        drawn.push(Line { name: report.shown(&row.subject), class: class(report, &row.subject), values });
    }
    if !drawn.is_empty() {
        out.push_str("<h3>latency of single calls</h3>\n");
        out.push_str(&lines("latency of single calls", &places, &drawn, |ns| value(Unit::Nanoseconds, ns)));
    }
}

/// Bytes and memory, as a table that is closed at first.
fn amounts(out: &mut String, report: &Report, rows: &[&Row]) {
    let head = [
        "subject",
        "written",
        "written ÷ saved",
        "on disk",
        "on disk ÷ held",
        "peak memory",
        "compared columns",
    ];
    let line = |row: &&Row| {
        let median =
            |of: fn(&Figures) -> u64| row.median(|figures| Some(of(figures) as f64)).unwrap_or_default();
        let (written, saved) =
            (median(|figures| figures.written_bytes), median(|figures| figures.saved_bytes));
        let disk = median(|figures| figures.disk_bytes);
        let stored = row.median(|figures| Some(figures.held_bytes? as f64));
        vec![
            report.shown(&row.subject),
            value(Unit::Bytes, written),
            if saved > 0.0 { three_digits(written / saved) } else { String::new() },
            value(Unit::Bytes, disk),
            stored.map_or(String::new(), |stored| three_digits(disk / stored)),
            value(Unit::Bytes, median(|figures| figures.peak_bytes)),
            format!("{}", median(|figures| figures.compared_columns)),
        ]
    };
    let lines: Vec<_> =
        std::iter::once(head.map(str::to_owned).to_vec()).chain(rows.iter().map(line)).collect();
    out.push_str("<details><summary>bytes and memory</summary>");
    grid(out, &lines, &[1, 2, 3, 4, 5, 6], &[]);
    out.push_str("</details>\n");
}

/// Writes the facts of each subject, with what its saves survive.
fn subjects(out: &mut String, report: &Report) {
    out.push_str("<h2>Subjects</h2><div class=\"scroll\"><table><tr><th>subject</th><th>version</th><th>what a save survives</th><th>options</th></tr>\n");
    for about in &report.subjects {
        let [name, version, durability, options] =
            [&report.shown(&about.name), &about.version, &about.durability, &about.options]
                .map(|text| escaped(text));
        writeln!(out, "<tr><td>{name}</td><td>{version}</td><td>{durability}</td><td>{options}</td></tr>")
            .expect("a string takes all");
    }
    out.push_str("</table></div>\n");
}
