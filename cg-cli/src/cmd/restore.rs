//! `cg restore`: the world of an archive.

mod segmented;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cg_anvil::import::{clear_unfinished, makes_world};
use cg_format::archive::{ArchiveReader, LINE_BYTES, is_of_segments};
use cg_format::frame::FrameView;
use cg_format::{Limits, Space};
use cg_store::engine::{COMMIT_SEQUENCE_KEY, CommitSeq, Engine};
use cg_store::error::ArchiveError;
use cg_store::view::Copied;
use cg_store::{Error, Identity, OpenError, World};
use clap::ValueHint;
use indicatif::ProgressBar;
use serde::Serialize;

use super::archive::STANDARD;
use super::copy::target::There;
use crate::args::{WaitArg, options};
use crate::output::{Failure, Outcome, Output, bytes_text, counted};
use crate::place::{Address, Place, PlaceParser};

/// Make the world of a file that `cg archive` wrote. Writes only what is new.
///
/// The file is read once from front to back, from standard input where it is `-`. Nothing opens as a world before the whole
/// file was read and each of its checksums found right. A damaged or cut file ends the command with exit code 1 and the place of
/// the damage, and what this command wrote is removed; from a database its owner removes it. If the command was killed,
/// `--resume` goes on after the last row that is there, or begins again if these are of another file; of a restore that was
/// finished, and whose world was not written since, it reads the head of the file alone. The world is the one that
/// was archived; opened for writing, it becomes one of a new incarnation. That of a segmented world needs a directory, and its
/// part of another file is deleted by hand. JSON:
/// `{"world","commit":N,"rows":N,"bytes":N,"continued":BOOL}`: rows and bytes that this call restored.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The archive; `-` is standard input.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The world: a directory that does not exist or is empty, or the address of a world that does not exist.
    #[arg(value_name = "WORLD", value_hint = ValueHint::DirPath, value_parser = PlaceParser)]
    to: Place,
    /// Continue a restore that was cut short, or begin it again.
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    wait: WaitArg,
}

#[derive(Debug, Serialize)]
struct Report {
    world: String,
    commit: u64,
    rows: u64,
    bytes: u64,
    continued: bool,
}

pub(crate) fn run(args: &Args, out: &Output) -> Result<Outcome, Failure> {
    let to = &args.to;
    // Before anything is made.
    let mut file = args.open()?;
    if file.is_of_segments {
        return segmented::run(args, file, out);
    }
    match args.wait.when_free(out, || There::find(to))? {
        There::Nothing => {}
        There::Half if args.resume => {}
        There::Half => {
            return Err(Failure::refused(format!(
                "{to} holds a part of a world, or one whose making was cut short; --resume continues a restore"
            )));
        }
        There::World(commit) if args.resume && args.is_restored(&mut file, commit, out)? => {
            let mut copied = Copied::default();
            (copied.commit, copied.is_continued) = (commit, true);
            return args.print(copied, out);
        }
        There::World(_) | There::Other => return Err(There::refusal(to).into()),
    }
    let mut restored = restore(args, &mut file, out);
    if let (Some(path), Err(ArchiveError::Store(Error::Open(error)))) = (begun_in(to)?, &restored)
        && matches!(error, OpenError::HalfCreated { .. } | OpenError::NotEmpty { .. })
    {
        if args.is_standard() {
            return Err(Failure::refused(format!(
                "{to} holds a part of another world; delete the directory, and give the archive once more"
            )));
        }
        clear_unfinished(path)?;
        restored = restore(args, &mut args.open()?, out);
    }
    let copied = restored.map_err(|error| args.failure(error))?;
    // What the store takes for a world is one that opens.
    let options = options();
    args.wait.when_free(out, || to.open_read_only(World::builder().options(&options)))?;
    args.print(copied, out)
}

/// The directory, if it holds a world whose making was cut short.
fn begun_in(to: &Place) -> Result<Option<&Path>, Error> {
    match to {
        Place::Directory(path) => Ok(makes_world(path)?.then_some(path)),
        Place::Address(_) => Ok(None),
    }
}

/// Bytes in which an archive has its line and its head; an upper bound.
const HEAD_BYTES: u64 = 8192;

/// The archive, and how long it is if that is known.
struct Input {
    reader: Box<dyn Read + Send>,
    len_bytes: Option<u64>,
    is_of_segments: bool,
}

impl Input {
    /// Reads the line of the archive, and puts it back.
    fn of(mut reader: impl Read + Send + 'static, len_bytes: Option<u64>) -> io::Result<Self> {
        let mut line = Vec::new();
        reader.by_ref().take(LINE_BYTES as u64).read_to_end(&mut line)?;
        let is_of_segments = is_of_segments(&line);
        Ok(Self { reader: Box::new(io::Cursor::new(line).chain(reader)), len_bytes, is_of_segments })
    }
}

impl Args {
    fn is_standard(&self) -> bool {
        self.file == Path::new(STANDARD)
    }

    fn open(&self) -> Result<Input, Failure> {
        let failed = |error| Failure::io("read", &self.file, &error);
        if self.is_standard() {
            return Input::of(io::stdin(), None).map_err(failed);
        }
        let file = File::open(&self.file).map_err(failed)?;
        let data = file.metadata().map_err(failed)?;
        let len_bytes = data.is_file().then_some(data.len());
        Input::of(file, len_bytes).map_err(failed)
    }

    /// Whether the world that is there, with this newest commit, is the one of an archive, and was not written since. Reads
    /// the head of the archive.
    fn is_restored(&self, file: &mut Input, commit: CommitSeq, out: &Output) -> Result<bool, Failure> {
        let mut begin = Vec::new();
        let read = file.reader.by_ref().take(HEAD_BYTES).read_to_end(&mut begin);
        read.map_err(|error| Failure::io("read", &self.file, &error))?;
        let opened = ArchiveReader::open(&begin[..], Limits::default());
        let opened = opened.map_err(|fault| self.failure(fault.into()))?;
        let head = opened.head();
        let row = FrameView::open(Space::WorldMeta, COMMIT_SEQUENCE_KEY, &head.commit_row);
        let is_of_commit = row.is_ok_and(|row| row.header().version == commit.get());
        let options = options();
        let world =
            self.wait.when_free(out, || self.to.open_read_only(World::builder().options(&options)))?;
        let Identity { uuid, incarnation } = world.identity();
        Ok(is_of_commit && (head.uuid, head.incarnation) == (uuid.into_bytes(), incarnation.into_bytes()))
    }

    fn print(&self, copied: Copied, out: &Output) -> Result<Outcome, Failure> {
        out.print(&Report {
            world: self.to.to_string(),
            commit: copied.commit.get(),
            rows: copied.row_count,
            bytes: copied.len_bytes,
            continued: copied.is_continued,
        })?;
        Ok(Outcome::Good)
    }

    /// An error with the place that it is about.
    fn failure(&self, error: ArchiveError) -> Failure {
        match (&self.to, error) {
            (_, ArchiveError::Io(error)) => Failure::io("read", &self.file, &error),
            (Place::Address(address), error @ (ArchiveError::Fault(_) | ArchiveError::NoWorld { .. })) => {
                Failure::damaged(format!(
                    "{}: {error}; {address} holds a part of it: remove it as its owner with `{};`",
                    self.file.display(),
                    address.removal()
                ))
            }
            (Place::Directory(_), error @ (ArchiveError::Fault(_) | ArchiveError::NoWorld { .. })) => {
                Failure::damaged(format!("{}: {error}", self.file.display()))
            }
            (Place::Address(address), ArchiveError::Store(Error::Open(OpenError::HalfCreated { .. }))) => {
                Failure::refused(format!(
                    "{address} holds a part of another world; remove it as its owner with `{};`, and run the command again",
                    address.removal()
                ))
            }
            (_, error) => error.into(),
        }
    }
}

fn restore(args: &Args, input: &mut Input, out: &Output) -> Result<Copied, ArchiveError> {
    let options = options();
    let builder = World::builder().options(&options);
    input.watched(out, |from, show| match &args.to {
        Place::Directory(path) => builder.restore(from, path, show),
        Place::Address(address) => over(builder, from, address, show),
    })
}

fn over(
    builder: cg_store::WorldBuilder<'_>,
    from: &mut (dyn Read + Send),
    address: &Address,
    show: impl FnMut(&Copied),
) -> Result<Copied, ArchiveError> {
    let engine = engine_at(address)?;
    let copied = builder.restore_over(from, &engine, show)?;
    // Its statistics, by which `cg info` tells the size.
    engine.flush().and_then(|()| engine.close()).map_err(Error::from)?;
    Ok(copied)
}

/// The engine of an address, made if there is none.
fn engine_at(address: &Address) -> Result<impl Engine, Error> {
    Ok(match address.writer() {
        Err(error) if Address::is_absence(&error) => address.created()?,
        engine => engine?,
    })
}

impl Input {
    /// Calls a function with the bytes, and shows how far it is.
    fn watched<T>(
        &mut self,
        out: &Output,
        restore: impl FnOnce(&mut (dyn Read + Send), &mut dyn FnMut(&Copied)) -> T,
    ) -> T {
        let bar = match self.len_bytes {
            Some(len_bytes) => out.progress_of("bytes read", len_bytes),
            None => out.progress("bytes read"),
        };
        let mut from = Watched { reader: &mut self.reader, bar: bar.clone() };
        let mut show =
            |now: &Copied| bar.set_message(format!("{}, bytes read", counted(now.row_count, "row")));
        let restored = restore(&mut from, &mut show);
        bar.finish_and_clear();
        restored
    }
}

/// A reader that shows how far it is.
struct Watched<'r> {
    reader: &'r mut (dyn Read + Send),
    bar: ProgressBar,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { world, commit, rows, bytes, continued } = self;
        writeln!(f, "{world} is the world as of commit {commit}")?;
        let again = if *continued { ", behind those of an earlier call" } else { "" };
        writeln!(f, "restored {} ({}){again}", counted(*rows, "row"), bytes_text(*bytes))
    }
}
