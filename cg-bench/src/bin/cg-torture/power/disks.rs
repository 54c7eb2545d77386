//! Power cuts of real file systems: ext4, xfs and btrfs on a loop device over a file whose writes and syncs are recorded.
//!
//! The recorded file is a disk with a cache of writes. What the file system makes of its journal is its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum as _;

use super::judge::{judge, judge_copies};
use super::promise::Against;
use super::record::{DISK, Recorded, Scene, WORLD};
use crate::disk::{Left, Manner, Mounted, ROOT, Skipped, Tree};
use crate::failure::Failure;
use crate::image::scratch;
use crate::rng::Rng;

/// A control must be caught within this many cuts.
const CONTROL_CUTS: u64 = 60;
const CONTROLS: [Against; 2] = [Against::PowerCutOfBadDisk, Against::PowerCutMistaken];

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum System {
    Ext4,
    Xfs,
    Btrfs,
}

impl System {
    /// The word for it.
    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The bytes of its disk: little more than it takes at least.
    const fn len_bytes(self) -> u64 {
        match self {
            Self::Ext4 => 96 << 20,
            Self::Xfs => 320 << 20,
            Self::Btrfs => 160 << 20,
        }
    }

    /// An empty disk in a directory.
    fn make(self, dir: &Path) -> Result<(), Failure> {
        let disk = dir.join(DISK);
        fs::File::create(&disk)?.set_len(self.len_bytes())?;
        tool(Command::new(format!("mkfs.{}", self.word())).arg("-q").arg(&disk)).map(drop)
    }
}

/// A disk that is mounted through a loop device. Dropped, it is unmounted.
pub(crate) struct Attached {
    device: String,
    at: PathBuf,
}

impl Attached {
    /// Mounts the disk in a file.
    pub(crate) fn mount(system: System, disk: &Path, at: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(at)?;
        let device = tool(Command::new("losetup").args(["--find", "--show"]).arg(disk))?.trim().to_owned();
        let attached = Self { device, at: at.to_owned() };
        tool(Command::new("mount").args(["-t", &system.word(), &attached.device]).arg(at))?;
        Ok(attached)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // It may not be mounted, where mounting failed.
        let _ = Command::new("umount").arg("--quiet").arg(&self.at).status();
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// Cuts the power that number of times on each of these file systems.
pub(crate) fn run(seed: u64, cuts: u64, systems: &[System]) -> Result<(), Failure> {
    let (mut failed, mut tested) = (Vec::new(), 0);
    let mut why_not = Vec::new();
    for (system, index) in systems.iter().zip(0..) {
        if let Err(why) = is_there(*system) {
            println!("disks: SKIPPED on {}: {why}", system.word());
            why_not.push(format!("{}: {why}", system.word()));
            continue;
        }
        tested += 1;
        let recorded = Recorded::on_disk(*system, Rng::stream(seed, index).next())?;
        for against in CONTROLS {
            control(*system, &recorded, seed ^ index, against)?;
        }
        for number in 0..cuts {
            let image =
                Cut::of(&recorded, &mut Rng::stream(seed ^ index, number), Manner::OF_POWER_CUTS.as_slice());
            if let Err(wrong) = image.judged(*system, &recorded, Against::PowerCut)? {
                let line = format!("{} cut {number}, {image:?}: {wrong}", system.word());
                println!("disks: {line}");
                failed.push(line);
            }
        }
        let (ops, lost) = (recorded.recording.ops.len(), failed.len());
        println!(
            "disks: seed {seed}, {}: {cuts} cuts of {ops} operations; {lost} failed so far",
            system.word()
        );
    }
    match failed.first() {
        Some(first) => Err(format!("{} cuts failed; {first}", failed.len()).into()),
        None if tested == 0 => Err(Skipped(why_not.join("; ")).into()),
        None => Ok(()),
    }
}

/// Cuts in which a worker's commits at `Process` are called `Safe`, or the disk ignores syncs, must be caught.
fn control(system: System, recorded: &Recorded, seed: u64, against: Against) -> Result<(), Failure> {
    for number in 0..CONTROL_CUTS {
        let cut = Cut::of(recorded, &mut Rng::stream(!seed, number), &[Manner::Nothing]);
        if let Err(wrong) = cut.judged(system, recorded, against)? {
            println!("disks: {}: control {against:?} caught after cut {number}: {wrong}", system.word());
            return Ok(());
        }
    }
    Err(format!("control {against:?} was not caught in {CONTROL_CUTS} cuts on {}", system.word()).into())
}

/// Whether the system can make such a disk and mount it.
fn is_there(system: System) -> Result<(), Failure> {
    let dir = scratch()?;
    system.make(dir.path())?;
    Attached::mount(system, &dir.path().join(DISK), &dir.path().join("mount")).map(drop)
}

/// A disk of a system, and where it is mounted while something works on it.
pub(crate) fn with_disk(
    system: System,
    dir: &Path,
    work: impl FnOnce(&Path, &Path) -> Result<(), Failure>,
) -> Result<crate::disk::Recording, Failure> {
    let [empty, fuse, mount] = ["empty", "fuse", "mount"].map(|name| dir.join(name));
    fs::create_dir(&empty)?;
    fs::create_dir(&fuse)?;
    system.make(&empty)?;
    let mounted = Mounted::mount(Tree::read(&empty)?, &fuse, None)?;
    let worked = Attached::mount(system, &fuse.join(DISK), &mount).and_then(|attached| {
        let worked = work(&mount, &fuse);
        drop(attached);
        worked
    });
    let recording = mounted.end()?;
    worked.map(|()| recording)
}

/// One power cut.
#[derive(Debug)]
struct Cut {
    before: usize,
    manner: Manner,
    rng: Rng,
}

impl Cut {
    fn of(recorded: &Recorded, rng: &mut Rng, manners: &[Manner]) -> Self {
        let messages = recorded.messages();
        let before = if rng.one_in(2) {
            messages[rng.below(messages.len() as u64) as usize] + 1
        } else {
            rng.below(recorded.recording.ops.len() as u64 + 1) as usize
        };
        let manner = manners[rng.below(manners.len() as u64) as usize];
        Self { before, manner, rng: rng.clone() }
    }

    fn judged(
        &self,
        system: System,
        recorded: &Recorded,
        against: Against,
    ) -> Result<Result<String, String>, Failure> {
        let ops = &recorded.recording.ops[..self.before];
        let ignores_syncs = against == Against::PowerCutOfBadDisk;
        let left = Left::of(&recorded.recording.base, ops, self.manner, self.rng.clone(), ignores_syncs);
        let promise = recorded.promise(self.before, against);
        let dir = scratch()?;
        let (disk, mount) = (dir.path().join(DISK), dir.path().join("mount"));
        let node = left.named(ROOT, DISK.as_ref()).ok_or("the disk has no name")?;
        fs::write(&disk, left.bytes(node))?;
        let _attached = match Attached::mount(system, &disk, &mount) {
            Ok(attached) => attached,
            Err(error) => return Ok(Err(format!("the file system is not mounted: {error}"))),
        };
        Ok(match judge(&mount.join(WORLD), recorded.seed, &promise)? {
            Ok(_) if recorded.scene == Scene::Copies => judge_copies(&mount, recorded.seed, &promise)?,
            judged => judged,
        })
    }
}

/// Runs a tool of the system; its output.
fn tool(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
