//! One deed in which one call fails, and what is left afterwards.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use clap::ValueEnum as _;
use tempfile::TempDir;

use super::deed::Deed;
use crate::disk::{Call, Fault, Left, Manner, Mounted, Recording, Tree};
use crate::failure::Failure;
use crate::image::scratch;
use crate::keeper::Work;
use crate::power::{Against, CRASHED, Ended as Worked, Promise, WORLD, ended, judge, judge_copies, verdict};
use crate::rng::Rng;

/// The errors that calls fail with.
pub(crate) const ERRORS: [(&str, i32); 2] = [("EIO", 5), ("ENOSPC", 28)];

/// The world that deeds are done to.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) tree: Tree,
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    /// What is imported.
    pub(crate) save: TempDir,
    /// The hash of its content.
    pub(crate) hash: String,
    /// The world that is compacted and archived, and the archive that is restored.
    pub(crate) kept: Tree,
    /// The hash of that world's content.
    pub(crate) kept_hash: String,
}

/// A deed, and the call that fails in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) deed: Deed,
    pub(crate) fault: Option<Fault>,
    /// Only a keeper does it wrongly. The control.
    pub(crate) is_wrong: bool,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(fault) = self.fault else { return write!(f, "{}", self.deed.word()) };
        let error = ERRORS.iter().find(|(_, number)| *number == fault.errno).map_or("?", |(name, _)| name);
        let call = format!("{:?}", fault.call).to_lowercase();
        write!(f, "{} {call} {} {error}", self.deed.word(), fault.number)
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split_whitespace().collect();
        let case = || {
            let [deed, call, number, error] = parts[..] else { return None };
            let deed = Deed::from_str(deed, true).ok()?;
            let call = Call::from_str(call, true).ok()?;
            let errno = ERRORS.iter().find(|(name, _)| *name == error)?.1;
            let fault = Fault { call, number: number.parse().ok()?, errno, is_kept_secret: false };
            Some(Self { deed, fault: Some(fault), is_wrong: false })
        };
        case().ok_or_else(|| format!("`{text}` is no case; one is written as `safe sync 3 EIO`"))
    }
}

/// The end of a case.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The calls of each kind that were made.
    pub(crate) recording: Recording,
    /// The worker's error, if it ended with one.
    pub(crate) error: Option<String>,
    /// What is wrong with what was left, if anything is.
    pub(crate) wrong: Option<String>,
}

impl Case {
    /// Does the deed, and judges what is left of it after the process has ended, and after a power cut.
    pub(crate) fn run(self, base: &Base, keep: Option<&Path>) -> Result<Ended, Failure> {
        let dir = scratch()?;
        let mount = dir.path().join("mount");
        std::fs::create_dir(&mount)?;
        let tree = match self.deed {
            Deed::Create | Deed::Import => Tree::default(),
            deed if deed.work().is_some() => base.kept.clone(),
            _ => base.tree.clone(),
        };
        let mounted = Mounted::mount(tree, &mount, self.fault)?;
        let worked = self.work(base, &mount);
        let recording = mounted.end()?;
        let Worked { out: told, error } = worked?;
        // A crash, a panic and a hang are no errors that a caller gets.
        let wrong = match error.as_ref().filter(|error| error.starts_with(CRASHED)) {
            Some(crashed) => Some(crashed.clone()),
            None => self.judge(base, &recording, &told, dir.path(), keep)?,
        };
        Ok(Ended { recording, error, wrong })
    }

    fn work(self, base: &Base, mount: &Path) -> Result<Worked, Failure> {
        if self.deed == Deed::Import {
            return import(&mount.join(WORLD), base.save.path());
        }
        let mut command = Command::new(std::env::current_exe()?);
        if let Some(work) = self.deed.work() {
            command.arg("keeper").arg("--dir").arg(mount).args(["--work", &work.word()]);
            return ended(command.args(self.is_wrong.then_some("--wrongly")));
        }
        command.arg("worker").arg("--world").arg(mount.join(WORLD)).args(["--seed", &base.seed.to_string()]);
        let mount = mount.to_str().ok_or("the directory's name is no text")?;
        ended(command.args(self.deed.orders(base.steps, mount)))
    }

    fn judge(
        self,
        base: &Base,
        recording: &Recording,
        told: &[u8],
        dir: &Path,
        keep: Option<&Path>,
    ) -> Result<Option<String>, Failure> {
        let cut = Left::of(&recording.base, &recording.ops, Manner::Nothing, Rng::new(0), false);
        let states =
            [("behind the process", &recording.tree, Against::Kill), ("cut off", &cut, Against::PowerCut)];
        for (name, tree, against) in states {
            let mut promise = Promise::of(told, base.seed, self.deed.level(), against);
            if self.deed == Deed::Prune {
                promise.pruned_from = Some(base.steps);
            }
            if self.deed != Deed::Create {
                promise.is_made = true;
                promise.least = promise.least.max(base.steps);
                promise.most = promise.most.max(base.steps);
            }
            let state = dir.join("state");
            tree.write(&state)?;
            let world = state.join(WORLD);
            let judged = match self.deed.work() {
                Some(work) => judge_kept(&state, work, base, told)?,
                None if self.deed == Deed::Import => judge_import(&world, base, told)?,
                None => match judge(&world, base.seed, &promise)? {
                    Ok(_) => judge_copies(&state, base.seed, &promise)?,
                    wrong => wrong,
                },
            };
            if let Err(wrong) = judged {
                if let Some(keep) = keep {
                    std::fs::create_dir_all(keep)?;
                    let kept = keep.join(format!("{self} {name}").replace(' ', "-"));
                    tree.write(&kept)?;
                    let why = format!("{self}, {name}: {wrong}\nworker seed {}, {promise:?}\n", base.seed);
                    std::fs::write(kept.with_extension("txt"), why)?;
                }
                return Ok(Some(format!("{name}: {wrong}")));
            }
        }
        Ok(None)
    }
}

/// Runs an importer.
pub(crate) fn import(world: &Path, save: &Path) -> Result<Worked, Failure> {
    ended(
        Command::new(std::env::current_exe()?)
            .arg("importer")
            .arg("--world")
            .arg(world)
            .arg("--save")
            .arg(save),
    )
}

fn judge_import(world: &Path, base: &Base, told: &[u8]) -> Result<Result<String, String>, Failure> {
    let told = String::from_utf8_lossy(told);
    if !told.contains("made") && !world.exists() {
        return Ok(Ok("absent".to_owned()));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("importer").arg("--world").arg(world).arg("--save").arg(base.save.path());
    command.args(["--hash", &base.hash]).args(told.contains("made").then_some("--made"));
    verdict(command.args(told.contains("ended").then_some("--ended")))
}

/// The verdict of a keeper on what is left of its work, with which it goes on to the end.
fn judge_kept(state: &Path, work: Work, base: &Base, told: &[u8]) -> Result<Result<String, String>, Failure> {
    let told = String::from_utf8_lossy(told);
    let steps = told.lines().filter(|line| line.starts_with("batch ")).count();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("keeper").arg("--dir").arg(state).args(["--work", &work.word(), "--hash", &base.kept_hash]);
    command.args(["--seed", &base.seed.to_string(), "--steps", &steps.to_string()]);
    verdict(command.args(told.lines().any(|line| line.starts_with("end ")).then_some("--ended")))
}
