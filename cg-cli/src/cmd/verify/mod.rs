//! `cg verify`: every row through frame, key and decoder, every reference to its other end.

mod lost;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cg_anvil::import::{Unfinished, unfinished};
use cg_anvil::mapping::kept::{self, KeptCount};
use cg_layers::{Arenas, SegmentedWorld};
use cg_registry::Catalog;
use cg_snapshot::SnapshotInfo;
use cg_store::quarantine::LostChunks;
use cg_store::verify::{Finding, VerifyDepth, VerifyReport};
use cg_store::{Error, World};
use clap::ValueHint;
use serde::Serialize;

use self::lost::{Lost, snapshots};
use super::{directory_of, unfinished_text};
use crate::args::{WorldArg, options};
use crate::output::{Failure, Outcome, Output, bytes_text, counted, grouped, hex};
use crate::place::{DirectoryParser, Place};
use crate::shown::shown;

/// Look at every row of the world and report what is wrong. Changes nothing.
///
/// Chunks that are lost are named by the box around them, with the command that sets them aside, and with the commands
/// that then restore them from snapshots that the world keeps.
///
/// Of a segmented world, which holds `root` and `segments`, all worlds are verified, and that each segment belongs to the
/// root, each chunk is in its segment and each entity in one. Directories of arenas beside `root` are verified with it;
/// those elsewhere, and those over a world that is not segmented, are named with --arenas.
///
/// JSON: `{"ok":BOOL,"checked":{NAME:N},"problems":[{"space","key","what"}]}`; space and key are what
/// `cg dump --row` takes, and key is empty for rows that cannot be listed. A problem that costs chunks has
/// `"dimension","min":[X,Y,Z],"max":[X,Y,Z]` in chunks and `"command"` too, and where snapshots have some of them
/// `"copies":[{"snapshot","created_ms","command"}]`. Where the engine rewrites files of some spaces no
/// more because one was damaged, `"held":[SPACE]` too. Where `db` has logs, tables or blob files that the world does not use,
/// `"stray":[NAME]` too; they may be moved away, and do not count against `ok`. Where an import could not read all of a save,
/// `"unread":{"columns":N,"kept_slots":N,"kept_bytes":N}` too: that is no damage of the world, and does not count against
/// `ok`; with --quick only columns of which slots are kept as bytes are counted. While an import is unfinished,
/// `"unfinished_import":{"save","begun","imported_columns"}` too, and `ok` is false. Of a segmented world
/// `"segments":N` too, and each problem in one of its worlds has `"world"`, such as `segments/0.3.0.0`. Where there are
/// arenas, `"arenas":N` too, their directories, and a problem in one has its directory as `"world"`. Exit code 1 if `ok` is false.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    world: WorldArg,
    /// Check keys and checksums only, not what the rows say.
    #[arg(long)]
    quick: bool,
    /// A directory of arenas over this world, which holds `overlay`; may be given several times.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, value_parser = DirectoryParser)]
    arenas: Vec<PathBuf>,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    arenas: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<usize>,
    checked: BTreeMap<&'static str, u64>,
    problems: Vec<Problem>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stray: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<Unread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished_import: Option<Unfinished>,
}

#[derive(Debug, Default, Serialize)]
struct Problem {
    /// Which world of a segmented world, or which directory of arenas.
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<String>,
    space: &'static str,
    key: String,
    what: String,
    #[serde(flatten)]
    lost: Option<Lost>,
}

/// Columns and slots that an import could not read.
#[derive(Debug, Serialize)]
struct Unread {
    columns: u64,
    kept_slots: u64,
    kept_bytes: u64,
}

impl Unread {
    /// Counts it; `None` where all was read.
    fn count(world: &World, depth: VerifyDepth) -> Result<Option<Self>, Failure> {
        let KeptCount { slots, bytes, old_slots, .. } = kept::count(world)?;
        let is_quick = depth == VerifyDepth::Quick;
        let columns = if is_quick { slots - old_slots } else { kept::torn_columns(world)? };
        Ok((columns > 0).then_some(Self { columns, kept_slots: slots, kept_bytes: bytes }))
    }
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let depth = if args.quick { VerifyDepth::Quick } else { VerifyDepth::Full };
    let place = args.world.place();
    if let Some(path) = place.segmented() {
        return run_segmented(args, path, depth, out);
    }
    if !args.arenas.is_empty() {
        place.directory("arenas lie over a world in a directory, leave out --arenas")?;
    }
    let world = args.world.open(out)?;
    let rows = world.usage()?.families.iter().map(|family| family.row_count).sum();
    let progress = out.progress_of("rows checked", rows);
    let found = world.verify(depth, |rows| progress.set_position(rows));
    progress.finish_and_clear();
    let mut report = Report::new(found?, place, &world.catalog(), &snapshots(&world)?);
    let usage = world.usage()?;
    let families = usage.families.into_iter().filter(|family| family.is_held);
    report.held = families.map(|family| family.family.name()).collect();
    report.stray = usage.stray_files;
    report.unread = Unread::count(&world, depth)?;
    report.unfinished_import = unfinished(&world)?;
    report.ok &= report.unfinished_import.is_none();
    for pool in &args.arenas {
        let opened = args.world.when_free(out, || Arenas::open_read_only(pool, world.clone(), &options()));
        let verified = opened.and_then(|arenas| arenas.verify(depth, |_| {}));
        report.ok &= verified.as_ref().is_ok_and(VerifyReport::is_ok);
        report.add_arenas(pool, verified, |arena, lost| {
            Lost::of_arena(arena, lost, place, pool, &world.catalog())
        });
    }
    out.print(&report)?;
    Ok(Outcome::good_if(report.ok))
}

/// Verifies the root, the segments, and what must hold between them.
fn run_segmented(args: &Args, path: &Path, depth: VerifyDepth, out: &Output) -> Result<Outcome, Failure> {
    let progress = out.progress_of("rows checked", 0);
    let found = args.world.when_free(out, || {
        SegmentedWorld::verify(path, depth, &options(), &args.arenas, |rows| progress.set_position(rows))
    });
    progress.finish_and_clear();
    let found = found?;
    let mut report = Report { ok: found.is_ok(), ..Report::default() };
    report.add("root".into(), Ok(found.root), path);
    report.segments = Some(found.segments.len());
    for (segment, verified) in found.segments {
        report.add(directory_of(Some(segment)), verified, path);
    }
    let any_lost = |found: &Result<VerifyReport, Error>| {
        found.iter().flat_map(|found| &found.findings).any(|finding| finding.lost.is_some())
    };
    let names_chunks = found.arenas.iter().any(|(_, verified)| any_lost(verified));
    let catalog = if names_chunks {
        World::builder().open_read_only(path.join("root"))?.catalog()
    } else {
        Arc::default()
    };
    for (pool, verified) in found.arenas {
        report.add_arenas(pool.strip_prefix(path).unwrap_or(&pool), verified, |arena, lost| {
            Lost::of_arena(arena, lost, args.world.place(), &pool, &catalog)
        });
    }
    report.problems.extend(found.findings.into_iter().map(|what| Problem { what, ..Problem::default() }));
    out.print(&report)?;
    Ok(Outcome::good_if(report.ok))
}

impl Report {
    fn new(
        found: VerifyReport,
        world: &Place,
        catalog: &Catalog,
        snapshots: &[(String, SnapshotInfo)],
    ) -> Self {
        let ok = found.is_ok();
        let problem = |finding: Finding| Problem {
            world: None,
            space: finding.family.name(),
            key: hex(&finding.key),
            what: finding.what,
            lost: finding.lost.map(|lost| Lost::new(&lost, world, catalog, snapshots)),
        };
        let problems = found.findings.into_iter().map(problem).collect();
        Self { ok, checked: found.checked, problems, ..Self::default() }
    }

    /// Adds what was found in a directory of arenas. `lost` makes the command for chunks of an arena.
    fn add_arenas(
        &mut self,
        pool: &Path,
        verified: Result<VerifyReport, Error>,
        lost: impl Fn(u32, &LostChunks) -> Lost,
    ) {
        *self.arenas.get_or_insert_default() += 1;
        let begin = self.problems.len();
        let found = verified.iter().flat_map(|found| &found.findings);
        let found: Vec<_> = found.map(|finding| finding.arena.zip(finding.lost)).collect();
        self.add(pool.display().to_string(), verified, pool);
        for (problem, found) in self.problems.iter_mut().skip(begin).zip(found) {
            problem.lost = found.map(|(arena, chunks)| lost(arena, &chunks));
        }
    }

    /// Adds what was found in one world of a segmented world, or in a directory of arenas.
    fn add(&mut self, name: String, verified: Result<VerifyReport, Error>, dir: &Path) {
        let found = match verified {
            Ok(found) => found,
            Err(error) => {
                self.problems.push(Problem {
                    world: Some(name),
                    what: error.to_string(),
                    ..Problem::default()
                });
                return;
            }
        };
        for (what, count) in &found.checked {
            *self.checked.entry(what).or_default() += count;
        }
        for Finding { arena, family, key, what, lost, .. } in found.findings {
            let help = lost
                .filter(|_| arena.is_none())
                .map(|_| format!("; `cg verify {}` names the chunks", dir.join(&name).display()));
            let what = what + &help.unwrap_or_default();
            self.problems.push(Problem {
                world: Some(name.clone()),
                space: family.name(),
                key: hex(&key),
                what,
                lost: None,
            });
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Problem { world, space, key, what, lost } in &self.problems {
            let what = shown(what);
            if let Some(world) = world {
                write!(f, "{world}: ")?;
            }
            match (*space, key.as_str()) {
                ("", _) => writeln!(f, "{what}")?,
                (space, "") => writeln!(f, "{space}: {what}")?,
                (space, key) => writeln!(f, "{space} {key}: {what}")?,
            }
            if let Some(lost) = lost {
                writeln!(f, "  {}", shown(&lost.command))?;
                for copy in &lost.copies {
                    writeln!(f, "  then, for its state in a snapshot: {}", shown(&copy.command))?;
                }
            }
        }
        let checked: Vec<_> =
            self.checked.iter().map(|(what, count)| format!("{} {what}", grouped(*count))).collect();
        if let Some(segments) = self.segments {
            writeln!(f, "verified the root and {}", counted(segments as u64, "segment"))?;
        }
        if let Some(arenas) = self.arenas {
            let directories = if arenas == 1 { "directory" } else { "directories" };
            writeln!(f, "verified {arenas} {directories} of arenas")?;
        }
        writeln!(f, "checked {}", if checked.is_empty() { "nothing".into() } else { checked.join(", ") })?;
        for space in &self.held {
            write!(f, "{space}: a file was damaged, so none of its files is compacted any more")?;
            if self.problems.iter().any(|problem| problem.space == *space) {
                writeln!(f)?;
            } else {
                writeln!(f, "; every row can be read, so if it was replaced, delete db/DAMAGED")?;
            }
        }
        for name in &self.stray {
            writeln!(f, "db/{name}: a stray file that the world does not use; it may be moved away")?;
        }
        if let Some(Unread { columns, kept_slots, kept_bytes }) = &self.unread {
            let (columns, slots) = (counted(*columns, "column"), counted(*kept_slots, "slot"));
            let size = bytes_text(*kept_bytes);
            writeln!(
                f,
                "could not be read when imported: parts of {columns}; kept as bytes: {slots} ({size})"
            )?;
        }
        if let Some(import) = &self.unfinished_import {
            writeln!(f, "{}", unfinished_text(import))?;
        }
        match self.problems.len() {
            0 => writeln!(f, "no problem found"),
            count => writeln!(f, "{} found", counted(count as u64, "problem")),
        }
    }
}
