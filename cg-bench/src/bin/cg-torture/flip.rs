//! Flipping single bits of every file of a world, and deleting each: an error, the right rows, or a legal loss.

use crate::cut;
use crate::damage::Damage;
use crate::failure::Failure;
use crate::image::{Floor, Image};
use crate::kind::{MANIFEST, kind_of};
use crate::probe::Prober;
use crate::report::{Table, plural};
use crate::rng::Rng;
use crate::verdict::Verdict;

/// How many of 150 flips go into each kind of file. The headers of log records are aimed at in addition.
const SHARES: [(&str, u64); 11] = [
    ("SST", 40),
    ("blob", 20),
    ("WAL", 20),
    (WAL_HEADERS, 15),
    (MANIFEST, 15),
    ("OPTIONS", 10),
    ("CURRENT", 8),
    ("DURABLE", 8),
    ("world.cg", 8),
    ("IDENTITY", 4),
    ("OWNER", 2),
];
const WAL_HEADERS: &str = "WAL, record headers";
const LOG_HEADER_BYTES: u64 = 7;

/// Flips that many bits, and unless it is to be short every bit of the manifest.
pub(crate) fn run(seed: u64, flips: u64, short: bool) -> Result<(), Failure> {
    let image = Image::make(seed, Floor::Settled)?;
    let mut prober = Prober::new(&image)?;
    controls(&image, &mut prober)?;
    let mut table = Table::default();
    let mut broken = Vec::new();
    let mut probe = |row: &str, damage: Damage| {
        let (verdict, why) = prober.ask(&damage)?;
        table.count(row, verdict);
        if !verdict.is_kept() {
            broken.push(format!("{damage}: {verdict:?}, {why}"));
        }
        Ok::<_, Failure>(())
    };
    let rng = &mut Rng::stream(seed, 2);
    for (kind, share) in SHARES {
        let files = files_of(&image, kind)?;
        let len_bytes: u64 = files.iter().map(|(_, len_bytes)| len_bytes).sum();
        if len_bytes == 0 {
            return Err(format!("the world has no {kind}").into());
        }
        eprintln!("flip: {kind}, {}, {len_bytes} bytes", plural(files.len() as u64, "file"));
        if kind == MANIFEST && !short {
            for (file, len_bytes) in files {
                for bit in 0..len_bytes * 8 {
                    probe(kind, Damage::Flip { file: file.clone(), bit })?;
                }
            }
            continue;
        }
        let headers = if kind == WAL_HEADERS { cut::headers(&image)? } else { Vec::new() };
        for _ in 0..(flips * share).div_ceil(150) {
            let mut bit = if headers.is_empty() {
                rng.below(len_bytes * 8)
            } else {
                let header = headers[rng.below(headers.len() as u64) as usize];
                header * 8 + rng.below(LOG_HEADER_BYTES * 8)
            };
            let file = files.iter().find(|(_, len_bytes)| {
                let is_here = bit < len_bytes * 8;
                bit -= if is_here { 0 } else { len_bytes * 8 };
                is_here
            });
            let (file, _) = file.ok_or("no such bit")?;
            probe(kind, Damage::Flip { file: file.clone(), bit })?;
        }
    }
    for (file, _) in image.files()? {
        if let Some(kind) = kind_of(&file) {
            probe(&format!("delete: {kind}"), Damage::Delete { file })?;
        }
    }
    println!(
        "flip: seed {seed}, one bit each, {} of {} steps synced\n\n{table}",
        image.synced_steps(),
        Image::steps()
    );
    match broken.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            for case in &broken {
                println!("{case}");
            }
            Err(format!("{} cases broke the promise, the first: {first}", broken.len()).into())
        }
    }
}

/// Feeds the prober what it must see through.
fn controls(image: &Image, prober: &mut Prober<'_>) -> Result<(), Failure> {
    let (table, _) = files_of(image, "SST")?.into_iter().next().ok_or("the world has no SST")?;
    let controls = [
        (Damage::Intact, Verdict::Harmless),
        (Damage::Delete { file: table }, Verdict::OpenError),
        (Damage::Misplace, Verdict::ReadError),
        (Damage::Change, Verdict::Wrong),
        (Damage::Drop, Verdict::Lost),
    ];
    for (damage, expected) in controls {
        let (verdict, why) = prober.ask(&damage)?;
        println!("flip: control {damage}: {verdict:?} {why}");
        if verdict != expected {
            return Err(format!("control {damage} was judged {verdict:?}, not {expected:?}: {why}").into());
        }
    }
    Ok(())
}

fn files_of(image: &Image, kind: &str) -> Result<Vec<(String, u64)>, Failure> {
    let kind = if kind == WAL_HEADERS { "WAL" } else { kind };
    Ok(image.files()?.into_iter().filter(|(file, _)| kind_of(file) == Some(kind)).collect())
}
