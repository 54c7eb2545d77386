//! The benchmark of the document about Gaia: operations on one column of chunks each, over 24×24 columns, ten times.
//!
//! `cargo xtask bench gaia` runs it; it is no benchmark of criterion, which states no single operation. A column is 24
//! sections, 98,304 blocks. The table has the least, average, median, 95th percentile and largest duration of all
//! operations, what a run over all columns takes, and the ratio to a reference that does the same work on the same
//! machine, run by run in turns. Beside it stand the figures that the document has of its own system.
//!
//! | operation | what is measured | reference |
//! |---|---|---|
//! | restore to a host | a snapshot of the column over the host's chunks, every changed block told | block by block, as the document shows it |
//! | restore to a world | the same as one transaction of a world on disk at `Process` | a transaction that saves the finished chunks |
//! | analyse | what the document calls so: the tick thread copies the column's sections | a clone of each chunk |
//! | capture | a snapshot made of that copy, which is left to another thread | the capture from the host |
//! | read | the column's snapshot from the bytes of its file, checked | a copy of the bytes of its sections |
//!
//! Before a restore some blocks of each column were changed, scattered, so that nearly every section is touched: 1 %,
//! 10 % and all of them; with 0 % it restores what is there, as a restore that is queued again and again does.
//!
//! With `--test` and `--quick` there are 4×4 columns and two runs: they show that it runs.
#![allow(missing_docs, reason = "a program")]
#![allow(clippy::print_stdout, reason = "the figures are for a person")]

mod columns;
mod host;
mod series;
mod stored;

use cg_format::LocalPos;
use columns::{Columns, HEIGHT};
use series::{HEADING, Series, in_turns, row};
use stored::Stored;

/// The share of blocks that are others before a restore, in percent.
const SHARES: [u64; 4] = [0, 1, 10, 100];
/// The figures of the document, on its Ryzen 9 5900X: the least and the largest of ten runs, in milliseconds. 56,623,104
/// blocks in the totals that it states are 27 to 29 million a second.
const DOCUMENT: [&str; 2] = [
    "| the document, restoring | 1.62–1.72 | 2.09–2.22 | 2.04–2.11 | 2.35–3.09 | 3.32–4.91 | 1980–2083 | 27–29 M | | |",
    "| the document, analyzing | 0.003–0.005 | 0.005–0.018 | 0.005–0.011 | 0.007–0.027 | 0.138–2.164 | | | | |",
];
/// The memory of a block that the document estimates: about 35 MB for 40 million.
const DOCUMENT_BYTES: f64 = 35.0 / 40.0;

fn main() {
    let is_short = std::env::args().any(|arg| arg == "--quick" || arg == "--test");
    let (side, runs) = if is_short { (4, 2) } else { (24, 10) };
    let mut stored = Stored::new();
    let columns = Columns::generated(stored.catalog(), side);
    stored.finish(&columns);
    let operations = columns.all.len();
    let blocks = operations as u64 * HEIGHT as u64 * LocalPos::COUNT as u64;
    println!("\n{runs} runs of {operations} operations, {blocks} blocks in a run; times in ms\n\n{HEADING}");
    let print = |what: &str, [ours, reference]: &[Series; 2], to: &str| {
        println!("{}", row(what, ours, (to, reference), blocks));
    };
    for percent in SHARES {
        let damaged = columns.damaged(percent);
        let restore = |blocks| format!("restore to a {blocks}, {percent} % changed");
        let host =
            in_turns(runs, || host::restore(&columns, &damaged), || host::by_block(&columns, &damaged));
        print(&restore("host"), &host, "block by block");
        let world = in_turns(runs, || stored.restore(&columns, &damaged), || stored.save(&columns, &damaged));
        print(&restore("world"), &world, "save by a transaction");
    }
    let copies = in_turns(runs, || host::copy(&columns), || host::clone(&columns));
    print("analyse: copy on the tick", &copies, "clone of each chunk");
    let captures = in_turns(runs, || host::capture_copy(&columns), || host::capture_host(&columns));
    print("capture of the copy, elsewhere", &captures, "capture from the host");
    let reads = in_turns(runs, || host::read(&columns), || host::copy_bytes(&columns));
    print("read from the bytes of a file", &reads, "memcpy of the sections");
    for line in DOCUMENT {
        println!("{line}");
    }
    let [separate, together] = columns.memory_bytes().map(|bytes| bytes as f64 / blocks as f64);
    println!(
        "\nmemory of a block: {separate:.3} bytes as {operations} snapshots, {together:.3} as one; the document \
         estimates {DOCUMENT_BYTES:.3}"
    );
}
