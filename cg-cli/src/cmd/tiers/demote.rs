//! `cg tiers demote`: lets game time pass without players.

use std::fmt;

use cg_store::tiers::MoveCounts;
use serde::Serialize;

use super::span::ticks;
use crate::args::WrittenWorldArg;
use crate::output::{Failure, Outcome, Output, bytes_text, grouped};

/// Move every chunk to the tier that it would reach after this much game time without players. Writes.
///
/// The world's own clock is not changed, and no content is: `cg hash` prints the same before and after. JSON:
/// `{"warmed","cooled","shadows_dropped","marks_forgotten","bytes_read","bytes_written","refused"}`. Exit code 1 if damage or a cluster's size
/// kept chunks where they are.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WrittenWorldArg,
    /// How much game time passes, as in 30d, 12h, 90m, 45s or 600t (ticks).
    #[arg(long, value_name = "SPAN", value_parser = ticks)]
    after: u64,
}

#[derive(Debug, Serialize)]
struct Report {
    warmed: u64,
    cooled: u64,
    shadows_dropped: u64,
    #[serde(rename = "marks_forgotten")]
    tombstones_purged: u64,
    bytes_read: u64,
    bytes_written: u64,
    refused: u64,
}

pub(super) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let world = args.world.open_for_writing(out)?;
    let progress = out.progress("chunks moved");
    let counts = world.tiers().demote_all(args.after, |counts| progress.set_position(counts.moved()));
    progress.finish_and_clear();
    let counts = counts?;
    world.close()?;
    let MoveCounts {
        warmed,
        cooled,
        shadows_dropped,
        tombstones_purged,
        bytes_read,
        bytes_written,
        refused,
        ..
    } = counts;
    out.print(&Report {
        warmed,
        cooled,
        shadows_dropped,
        tombstones_purged,
        bytes_read,
        bytes_written,
        refused,
    })?;
    Ok(Outcome::good_if(refused == 0))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [warmed, cooled] = [self.warmed, self.cooled].map(grouped);
        let [dropped, forgotten] = [self.shadows_dropped, self.tombstones_purged].map(grouped);
        writeln!(f, "{cooled} chunks moved into cold clusters, {warmed} into warm ones")?;
        writeln!(f, "{dropped} shadowed copies dropped, {forgotten} tombstones forgotten")?;
        writeln!(f, "{} read, {} written", bytes_text(self.bytes_read), bytes_text(self.bytes_written))?;
        if self.refused > 0 {
            writeln!(
                f,
                "{} moves refused: a row is damaged, or a cluster would be too large; `cg verify` tells which",
                grouped(self.refused)
            )?;
        }
        Ok(())
    }
}
