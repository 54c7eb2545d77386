//! The pause of a world's commits while another node takes over.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cg_store::{Error, Property, World, WorldOptions};

use crate::bench::Bench;
use crate::database::Network;
use crate::failure::Failure;
use crate::row::{Bound, Figure, Row, ms};

/// How long commits go on before the failure and after it.
const AROUND: Duration = Duration::from_secs(1);

/// The word by which the command says that the new primary is promoted.
const PROMOTED: &str = "promoted";

/// Measures a failover for each delay: from the end of the promotion to the next acknowledged commit.
///
/// # Errors
/// Of the database, or of the command.
pub(crate) fn run(bench: &Bench) -> Result<Vec<Row>, Failure> {
    let Some(command) = &bench.options.fail else {
        eprintln!("\n*** NOT MEASURED, failover: --fail names no command that does one ***\n");
        return Ok(Vec::new());
    };
    let mut rows = Vec::new();
    for delay in Bench::delays() {
        rows.extend(at(&bench.database.over(delay)?, command)?);
    }
    rows.sort_by_key(|row| row.what.clone());
    Ok(rows)
}

fn at(network: &Network<'_>, command: &str) -> Result<[Row; 2], Failure> {
    let (engine, _) = network.create(&format!("failover {}", network.delay.as_micros()))?;
    let world = World::builder().options(&WorldOptions::safe()).create_over(engine)?;
    let is_over = AtomicBool::new(false);
    let (promoted, acknowledged) = thread::scope(|scope| {
        let committing = scope.spawn(|| {
            let mut acknowledged = Vec::new();
            while !is_over.load(Ordering::Acquire) {
                let time = (acknowledged.len() as u64).to_le_bytes().to_vec();
                world.transaction(|tx| {
                    tx.set_property(Property::Time, Some(time));
                    Ok::<_, Error>(())
                })?;
                acknowledged.push(Instant::now());
            }
            Ok::<_, Error>(acknowledged)
        });
        thread::sleep(AROUND);
        let promoted = fail(command);
        thread::sleep(AROUND);
        is_over.store(true, Ordering::Release);
        let acknowledged = committing.join().map_err(|_| "the thread of commits panicked")??;
        Ok::<_, Failure>((promoted?, acknowledged))
    })?;
    world.close()?;
    let next = acknowledged.iter().find(|time| **time > promoted).ok_or("no commit followed")?;
    let longest = acknowledged.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default();
    let row = |what: &str, time: Duration, bound| Row {
        what: what.to_owned(),
        delay: network.delay,
        figure: Figure::Time(time),
        best: None,
        p99: None,
        calls: None,
        trips: None,
        bound,
    };
    let bound = Bound::trips(network.delay, 0, &[("", ms(1000.0))]);
    Ok([
        row("failover: promoted to the next commit", *next - promoted, Some(bound)),
        row("failover: the longest pause", longest, None),
    ])
}

/// Lets the primary fail, and returns when the new one was promoted.
fn fail(command: &str) -> Result<Instant, Failure> {
    let mut shell = Command::new("sh");
    let mut child = shell.args(["-c", command]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let said = child.stderr.take().ok_or("its standard error is piped")?;
    let (mut promoted, mut all) = (None, String::new());
    for line in BufReader::new(said).lines() {
        let line = line?;
        if line.contains(PROMOTED) {
            promoted.get_or_insert_with(Instant::now);
        }
        all.push_str(&line);
        all.push('\n');
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!("`{command}`: {status}\n{all}").into());
    }
    Ok(promoted.ok_or_else(|| format!("`{command}` did not say that a node was promoted\n{all}"))?)
}
