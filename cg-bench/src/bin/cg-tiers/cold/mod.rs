//! The bytes of saves on disk once all of them are cold, beside the same saves as one Zstandard stream for each region.
//!
//! Each save is imported into a new world, demoted as if no player came for a year, and closed. The content hash must be
//! the same after the import, after the demotion and after another open, so that no byte is saved by losing one.

mod ours;
mod streams;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ours::Ours;
use streams::Streams;

use crate::failure::Failure;

/// At most this many times the streams in total.
const AIM: f64 = 1.0;
/// At most this many times the streams for each save whose files take more than [`LARGE_BYTES`].
const AIM_EACH: f64 = 1.15;
const LARGE_BYTES: u64 = 4_000_000;
/// Folders of `CG_WORLDS` with region files or saves of the game.
const FOLDERS: [&str; 3] = ["mca", "mca_old", "java26"];

/// Which saves.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Folders of saves, or region files [default: what is in `mca`, `mca_old` and `java26` of `CG_WORLDS`].
    saves: Vec<PathBuf>,
}

/// The figures of one save, or of all together.
#[derive(Debug, Default)]
struct Figures {
    streams: Streams,
    ours: Ours,
}

impl Figures {
    fn ratio(&self) -> f64 {
        self.ours.stored_bytes() as f64 / self.streams.compressed_bytes as f64
    }

    fn print(&self, name: &str) {
        let Self { streams, ours } = self;
        let families: String = ours.groups().iter().map(|(_, bytes)| format!(" {} |", kb(*bytes))).collect();
        println!(
            "| {name} | {} | {} | {} |{families} {} | {:.2} |",
            kb(streams.file_bytes),
            kb(streams.compressed_bytes),
            kb(ours.stored_bytes()),
            kb(ours.engine_files_bytes),
            self.ratio(),
        );
    }
}

/// Measures each save and prints a table in kB.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let saves = if options.saves.is_empty() { default_saves()? } else { options.saves.clone() };
    let groups: String = Ours::default().groups().iter().map(|(name, _)| format!(" {name} |")).collect();
    println!("| save, in kB | its files | streams | ours |{groups} engine's files | ratio |");
    println!("|---|{}", "--:|".repeat(Ours::default().groups().len() + 5));
    let (mut all, mut missed, mut time) = (Figures::default(), Vec::new(), Duration::ZERO);
    for save in &saves {
        let name = save.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let (ours, demotion) = Ours::measure(save).map_err(|error| format!("{}: {error}", save.display()))?;
        let figures = Figures { streams: Streams::measure(save)?, ours };
        figures.print(&name);
        if figures.streams.file_bytes > LARGE_BYTES && figures.ratio() > AIM_EACH {
            missed.push(format!("{name} {:.2}", figures.ratio()));
        }
        all.streams.add(&figures.streams);
        all.ours.add(&figures.ours);
        time += demotion;
    }
    all.print("total");
    let met = if all.ratio() <= AIM { "met" } else { "missed" };
    println!("\nin total ≤ {AIM}: {met}");
    println!(
        "each save above 4 MB ≤ {AIM_EACH}: {}",
        match missed.as_slice() {
            [] => "met".to_owned(),
            missed => format!("missed by {}", missed.join(", ")),
        }
    );
    println!("the demotions took {time:.1?}, {:.1?} for a chunk", time / all.ours.chunks.max(1) as u32);
    Ok(())
}

/// The saves in [`FOLDERS`], sorted.
fn default_saves() -> Result<Vec<PathBuf>, Failure> {
    let worlds = std::env::var_os("CG_WORLDS").ok_or("name saves, or set CG_WORLDS to a folder of them")?;
    let mut saves = Vec::new();
    for folder in FOLDERS {
        let folder = Path::new(&worlds).join(folder);
        let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() || path.extension().is_some_and(|extension| extension == "mca") {
                saves.push(path);
            }
        }
    }
    saves.sort();
    Ok(saves)
}

fn kb(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e3)
}
