//! Power cuts: what was acknowledged as `Safe` is there, and nothing in part, whatever else reached the disk.
//!
//! Workers are recorded on a file system that notes every write and every sync. From a recording any number of states are made
//! that a power cut may leave, and each is opened for writing by a process that compares it with the model.

pub(crate) mod disks;
pub(crate) mod judge;
mod promise;
mod record;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cg_bench::order::shuffle;
use clap::ValueEnum as _;

pub(crate) use judge::{CRASHED, Ended, ended, judge, judge_copies, verdict};
pub(crate) use promise::{Against, Promise};
pub(crate) use record::WORLD;
use record::{Recorded, Scene};

use crate::disk::{Left, Manner};
use crate::failure::Failure;
use crate::image::scratch;
use crate::report::plural;
use crate::rng::Rng;

/// The images that are made even where the time is limited.
const LEAST_IMAGES: u64 = 100;
/// The same of images within closes. A run that states how many images it makes has all of these.
const LEAST_IMAGES_OF_CLOSES: u64 = 40;
/// Half of the minute that the fast checks have for it: a busy machine takes longer for the least number.
const TIME: Duration = Duration::from_secs(30);
/// A control must be caught within this many images.
const CONTROL_IMAGES: u64 = 60;
/// Images that are made and opened at once.
const THREADS: u64 = 2;

/// The size of a run.
#[derive(Debug, Clone)]
pub(crate) struct Size {
    /// How many images; as many as fit into a minute when left out.
    pub(crate) images: Option<u64>,
    /// The number of the first image.
    pub(crate) from: u64,
    /// Where the images that fail are kept; the first of them when left out.
    pub(crate) keep: Option<PathBuf>,
}

/// Records, makes images and judges them.
pub(crate) fn run(seed: u64, size: &Size) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut recorded = Vec::new();
    for (scene, index) in Scene::value_variants().iter().zip(0..) {
        recorded.push(Recorded::make(*scene, Rng::stream(seed, index).next())?);
    }
    for made in &recorded {
        let ops = &made.recording.ops;
        println!(
            "power: recording {}: {} operations, {} syncs, {} messages",
            made.scene.word(),
            ops.len(),
            ops.iter().filter(|op| op.is_sync()).count(),
            made.messages().len()
        );
    }
    let recording = begun.elapsed();
    for control in [Against::PowerCutOfBadDisk, Against::PowerCutMistaken] {
        let caught = (0..CONTROL_IMAGES).find_map(|number| {
            match Image::of(&recorded, seed, number, control).judged(&recorded, None) {
                Ok(Ok(_)) => None,
                Ok(Err(wrong)) => Some(Ok((number, wrong))),
                Err(failure) => Some(Err(failure)),
            }
        });
        match caught.transpose()? {
            Some((number, wrong)) => {
                println!("power: control {control:?} caught after {}: {wrong}", plural(number + 1, "image"));
            }
            None => {
                return Err(format!("control {control:?} was not caught in {CONTROL_IMAGES} images").into());
            }
        }
    }
    let mut closes: Vec<_> = Image::of_closes(&recorded, seed).collect();
    shuffle(&mut closes, seed);
    let begun_closes = Instant::now();
    let killed = judged(&recorded, size, |index| {
        let goes_on =
            size.images.is_some() || index < LEAST_IMAGES_OF_CLOSES || begun_closes.elapsed() < TIME / 2;
        closes.get(index as usize).filter(|_| goes_on).cloned()
    })?;
    println!(
        "power: {} of {} within {}, killed or cut at a step; {} failed",
        plural(killed.judged, "image"),
        closes.len(),
        plural(recorded.iter().map(|made| made.closes().len() as u64).sum(), "close"),
        killed.failed.len()
    );
    killed.check()?;
    let begun_images = Instant::now();
    let tally = judged(&recorded, size, |index| {
        let goes_on = match size.images {
            Some(images) => index < images,
            None => index < LEAST_IMAGES || begun_images.elapsed() < TIME,
        };
        goes_on.then(|| Image::of(&recorded, seed, size.from + index, Against::PowerCut))
    })?;
    println!(
        "power: seed {seed}, {} from {} on, {} recordings in {:.1} s; {}; {} failed",
        plural(tally.judged, "image"),
        size.from,
        recorded.len(),
        recording.as_secs_f64(),
        tally.found.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", "),
        tally.failed.len()
    );
    tally.check()
}

/// Results of a number of images.
#[derive(Debug, Default)]
struct Tally {
    judged: u64,
    found: BTreeMap<&'static str, u64>,
    failed: BTreeMap<u64, String>,
}

impl Tally {
    fn check(&self) -> Result<(), Failure> {
        let Some((number, wrong)) = self.failed.first_key_value() else { return Ok(()) };
        Err(format!("{} of {} images; image {number}: {wrong}", self.failed.len(), self.judged).into())
    }
}

/// Judges images until there is no next one.
fn judged(
    recorded: &[Recorded],
    size: &Size,
    image: impl Fn(u64) -> Option<Image> + Sync,
) -> Result<Tally, Failure> {
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let one = || -> Result<(), Failure> {
        loop {
            let Some(image) = image(next.fetch_add(1, Ordering::Relaxed)) else { return Ok(()) };
            let judged = image.judged(recorded, size.keep.as_deref())?;
            let mut tally = tally.lock().map_err(|_| "a thread panicked")?;
            tally.judged += 1;
            match judged {
                Ok(found) => *tally.found.entry(found).or_default() += 1,
                Err(wrong) => {
                    println!("power: image {}: {image}: {wrong}", image.number);
                    tally.failed.insert(image.number, format!("{image}: {wrong}"));
                }
            }
        }
    };
    std::thread::scope(|scope| -> Result<(), Failure> {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    Ok(tally.into_inner().map_err(|_| "a thread panicked")?)
}

/// One power cut, or one kill.
#[derive(Debug, Clone)]
struct Image {
    number: u64,
    /// Of the recordings.
    recording: usize,
    scene: Scene,
    /// Before this operation.
    cut: usize,
    manner: Manner,
    rng: Rng,
    against: Against,
}

impl std::fmt::Display for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} cut before operation {}, {:?} kept", self.scene.word(), self.cut, self.manner)
    }
}

impl Image {
    /// The image of a number.
    fn of(recorded: &[Recorded], seed: u64, number: u64, against: Against) -> Self {
        let mut rng = Rng::stream(seed, number);
        let recording = rng.below(recorded.len() as u64) as usize;
        let made = &recorded[recording];
        let messages = made.messages();
        // Half of them right after a message, where a promise is freshest.
        let cut = if rng.one_in(2) {
            messages[rng.below(messages.len() as u64) as usize] + 1
        } else {
            rng.below(made.recording.ops.len() as u64 + 1) as usize
        };
        let manner = match against {
            Against::PowerCutMistaken => Manner::Nothing,
            _ => Manner::OF_POWER_CUTS[rng.below(Manner::OF_POWER_CUTS.len() as u64) as usize],
        };
        Self { number, recording, scene: made.scene, cut, manner, rng, against }
    }

    /// A kill and a power cut before each operation of each close, and after the last.
    fn of_closes(recorded: &[Recorded], seed: u64) -> impl Iterator<Item = Self> {
        let places = recorded.iter().enumerate().flat_map(|(recording, made)| {
            made.closes()
                .into_iter()
                .flat_map(move |close| (close.start..=close.end).map(move |cut| (recording, made.scene, cut)))
        });
        let ways = [(Manner::Everything, Against::Kill), (Manner::Nothing, Against::PowerCut)];
        let images = places.flat_map(move |place| ways.map(|way| (place, way)));
        (0..).zip(images).map(move |(number, ((recording, scene, cut), (manner, against)))| {
            let rng = Rng::stream(seed, number);
            Self { number, recording, scene, cut, manner, rng, against }
        })
    }

    /// Makes it and has it judged; in short what was found, or what is wrong.
    fn judged(
        &self,
        recorded: &[Recorded],
        keep: Option<&Path>,
    ) -> Result<Result<&'static str, String>, Failure> {
        let made = &recorded[self.recording];
        let ops = &made.recording.ops[..self.cut];
        let is_ignored = self.against == Against::PowerCutOfBadDisk;
        let left = Left::of(&made.recording.base, ops, self.manner, self.rng.clone(), is_ignored);
        let promise = made.promise(self.cut, self.against);
        let dir = scratch()?;
        let image = dir.path().join("image");
        left.write(&image)?;
        let judged = match judge(&image.join(WORLD), made.seed, &promise)? {
            Ok(found) => judge_copies(&image, made.seed, &promise)?.map(|_| match found.as_str() {
                "absent" | "half made" | "made in part" => "not made yet",
                _ => "whole",
            }),
            wrong => wrong.map(|_| ""),
        };
        if let (Err(wrong), Some(keep)) = (&judged, keep) {
            std::fs::create_dir_all(keep)?;
            let kept = keep.join(format!("{}-{}", made.seed, self.number));
            left.write(&kept)?;
            let why = format!("{self}: {wrong}\nworker seed {}, {promise:?}\n", made.seed);
            std::fs::write(keep.join(format!("{}-{}.txt", made.seed, self.number)), why)?;
        }
        Ok(judged)
    }
}
