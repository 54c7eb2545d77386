//! The compilers that turn units into an archive: started, watched, and started again where that may help.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::archive::ARCHIVE;
use super::memory;
use super::progress::Progress;
use super::queue::{self, Next, Queue, Turn};
use super::record::Recorded;
use super::unit::{self, PEAK_BYTES, Unit};
use super::verdict;
use crate::process::Tool;
use crate::setup::{compiler, remedy, say};

/// Compiles what was recorded, in units.
pub(super) fn archive(recorded: &Recorded, work: &Path, progress: &mut Progress) -> Result<PathBuf> {
    let mut build = Build::new(recorded, work)?;
    let compiled = build.units(progress);
    if compiled.is_err() && !build.running.is_empty() {
        // They would go on writing into a folder that may be removed.
        say("waiting for the compilers that still run");
    }
    for mut process in build.running.drain(..) {
        process.child.wait()?;
    }
    compiled?;
    build.objects.sort();
    let archive = work.join(ARCHIVE);
    archiver().args(["crs"]).arg(&archive).args(&build.objects).capture()?;
    Ok(archive)
}

/// The archiver that the crate's build takes.
fn archiver() -> Tool {
    let stated = env::var("AR").ok().filter(|ar| !ar.trim().is_empty());
    compiler::words(stated.as_deref().unwrap_or("ar"))
}

/// One compiler.
#[derive(Debug)]
struct Process {
    turn: Turn,
    child: Child,
    object: PathBuf,
    log: PathBuf,
}

#[derive(Debug)]
struct Build<'a> {
    recorded: &'a Recorded,
    dir: PathBuf,
    queue: Queue,
    running: Vec<Process>,
    objects: Vec<PathBuf>,
    done_files: usize,
}

impl<'a> Build<'a> {
    fn new(recorded: &'a Recorded, work: &Path) -> Result<Self> {
        let read = |path: &String| -> Result<_> {
            let text = fs::read(recorded.dir.join(path)).with_context(|| format!("cannot read {path}"))?;
            Ok((path.clone(), String::from_utf8_lossy(&text).into_owned()))
        };
        let units = unit::plan(recorded.sources.iter().map(read).collect::<Result<_>>()?);
        let dir = work.join("units");
        fs::create_dir_all(&dir)?;
        let cores = thread::available_parallelism().map_or(1, Into::into);
        let at_once = queue::at_once(cores, memory::available_bytes());
        let files = recorded.sources.len();
        say(format!("{files} files in {} units, {at_once} compiled at once", units.len()));
        let queue = Queue::new(units, at_once);
        Ok(Self { recorded, dir, queue, running: Vec::new(), objects: Vec::new(), done_files: 0 })
    }

    /// Returns when every object is there.
    fn units(&mut self, progress: &mut Progress) -> Result<()> {
        loop {
            while let Some(turn) = self.queue.start() {
                let process = self.spawn(turn)?;
                self.running.push(process);
            }
            if self.running.is_empty() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(100));
            let mut index = 0;
            while let Some(process) = self.running.get_mut(index) {
                if let Some(status) = process.child.try_wait()? {
                    let process = self.running.swap_remove(index);
                    self.ended(process, status.code(), progress)?;
                } else {
                    index += 1;
                }
            }
            progress.show(|| self.done_files)?;
        }
    }

    fn spawn(&self, turn: Turn) -> Result<Process> {
        let name = turn.unit.name();
        let object = self.dir.join(format!("{name}.o"));
        let log = self.dir.join(format!("{name}.log"));
        // Messages are read in the language C. Temporary files are where there is most room, and removed with the rest.
        let tool = compiler::program().args(&self.recorded.flags).dir(&self.recorded.dir);
        let tool = tool.env("LC_ALL", "C").env("TMPDIR", &self.dir).arg("-o").arg(&object).arg("-c");
        let (tool, input) = if let Some(source) = turn.unit.single() {
            (tool.arg(source), Stdio::null())
        } else {
            let text = self.dir.join(format!("{name}.txt"));
            fs::write(&text, turn.unit.text()).with_context(|| format!("cannot write {}", text.display()))?;
            (tool.args(["-x", "c++", "-"]), File::open(&text)?.into())
        };
        let sink = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        let child = tool.command().stdin(input).stdout(Stdio::null()).stderr(sink).spawn();
        let child = child.with_context(|| format!("cannot run `{}`", compiler::program().line()))?;
        Ok(Process { turn, child, object, log })
    }

    fn ended(&mut self, process: Process, code: Option<i32>, progress: &Progress) -> Result<()> {
        let Process { turn, object, log, .. } = process;
        let errors = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
        let errors = String::from_utf8_lossy(&errors);
        let (count, name) = (turn.unit.sources.len(), describe(&turn.unit));
        match self.queue.end(turn, verdict::judge(code, &errors)) {
            Next::Compiled => {
                self.done_files += count;
                self.objects.push(object);
            }
            Next::Split => {
                let complaint = verdict::complaint(&errors).unwrap_or_default();
                progress.pause();
                say(format!(
                    "{name} do not compile as one unit, so they are compiled one by one: {complaint}"
                ));
            }
            Next::Again { at_once } => {
                progress.pause();
                say(format!(
                    "the compiler of {name} was killed, probably for want of memory; {at_once} at once from now on"
                ));
            }
            Next::TooLarge => {
                progress.pause();
                bail!(
                    "the compiler of {name} was killed although it ran alone; it takes {} MB of memory: end other \
                     programs or add swap and run this again, or set CG_ROCKSDB_ARCHIVE to an archive from another \
                     machine\n{}",
                    PEAK_BYTES / 1_000_000,
                    remedy::tail(&errors)
                );
            }
            Next::Failed(_) => {
                progress.pause();
                let end = code.map_or("a signal".to_owned(), |code| format!("exit status {code}"));
                bail!(
                    "{name} did not compile ({end}); the end of {}:\n{}",
                    log.display(),
                    remedy::tail(&errors)
                );
            }
        }
        Ok(())
    }
}

/// The unit in a message.
fn describe(unit: &Unit) -> String {
    match unit.sources.as_slice() {
        [] => "no file".to_owned(),
        [one] => one.path.clone(),
        [first, .., last] => format!("{} files, {} to {},", unit.sources.len(), first.path, last.path),
    }
}
