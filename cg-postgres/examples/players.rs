//! A server process with sixty simulated players over three nodes. The primary is killed while they play.
//!
//! `cargo run -p cg-postgres --example players` starts the nodes with `cargo xtask postgres up`, plays for twenty seconds,
//! and kills the primary after eight. Each second is a line: the commits, the longest pause, the newest commit that a
//! reader sees, and the owner as the primary names it. At the end a reader's view of the world is counted: nothing may be
//! lost, and nothing doubled.

use std::error::Error;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cg_postgres::{Address, Options, PostgresEngine};
use cg_store::prelude::*;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Config, NoTls};

const PLAYERS: i64 = 60;
const THREADS: i64 = 6;
const SECONDS: u64 = 20;
const KILL_AT: u64 = 8;

type Failure = Box<dyn Error + Send + Sync>;

/// What all players did, as far as it was acknowledged.
#[derive(Default)]
struct Played {
    /// The acknowledged actions of each player.
    actions: Vec<AtomicU64>,
    /// The longest time that an action took, in microseconds, since it was last shown.
    slowest_us: AtomicU64,
    is_over: AtomicBool,
}

fn main() -> Result<(), Failure> {
    let printed = xtask(&["postgres", "up"])?;
    let cluster = printed.lines().last().unwrap_or_default();
    let address = cluster.parse::<Address>()?.with_world(&format!("players {}", std::process::id()))?;
    println!("the world is {address}");
    let engine = PostgresEngine::create(&address, &Options::default())?;
    let options = WorldOptions::safe();
    let world = World::builder().options(&options).create_over(engine)?;
    let meadow = world.registry().register_dimension("game:meadow")?;
    let [air, mark] = world.registry().register_blocks([":air", "game:mark"])?;
    world.transaction(|tx| {
        for player in 0..PLAYERS {
            tx.save(home(meadow, player)?, tx.new_chunk(air)?);
        }
        Ok::<_, Failure>(())
    })?;

    let played = Played { actions: (0..PLAYERS).map(|_| AtomicU64::new(0)).collect(), ..Played::default() };
    thread::scope(|scope| {
        let players: Vec<_> = (0..THREADS)
            .map(|first| {
                let (world, played) = (&world, &played);
                scope.spawn(move || {
                    play(world, meadow, mark, (first..PLAYERS).step_by(THREADS as usize), played)
                })
            })
            .collect();
        let killing = scope.spawn(|| {
            thread::sleep(Duration::from_secs(KILL_AT));
            println!("     the primary is killed, and a standby promoted");
            xtask(&["postgres", "fail"])
        });
        let reader = World::builder()
            .open_read_only_over(PostgresEngine::open_read_only(&address, &Options::default())?)?;
        let mut before = 0;
        for second in 1..=SECONDS {
            thread::sleep(Duration::from_secs(1));
            let all = total(&played);
            let slowest = Duration::from_micros(played.slowest_us.swap(0, Ordering::Relaxed));
            let seen = reader.refresh().map_or_else(|_| "nothing".into(), |commit| commit.to_string());
            println!(
                "{second:>3} s  {all:>6} commits  {:>5} in this second, the slowest took {slowest:>7.1?}; \
                 a reader sees {seen:>6}; {}",
                all - before,
                owner(cluster, address.world()).unwrap_or_else(|error| format!("no primary: {error}"))
            );
            before = all;
        }
        played.is_over.store(true, Ordering::Release);
        for player in players {
            player.join().map_err(|_| "a player panicked")??;
        }
        killing.join().map_err(|_| "the killer panicked")??;
        Ok::<_, Failure>(())
    })?;
    world.close()?;
    drop(world);
    count(&address, meadow, mark, &played)
}

/// The chunk of a player.
fn home(meadow: Dimension, player: i64) -> Result<ChunkAt, Failure> {
    Ok(ChunkAt::new(meadow, ChunkPos::new(player * 2, 0, 0)?))
}

/// Lets some players act in turn. Each action counts itself in an object and puts a mark into the player's chunk, in one
/// transaction.
fn play(
    world: &World,
    meadow: Dimension,
    mark: BlockId,
    players: impl Iterator<Item = i64> + Clone,
    played: &Played,
) -> Result<(), Failure> {
    for player in players.cycle() {
        if played.is_over.load(Ordering::Acquire) {
            return Ok(());
        }
        let actions = &played.actions[player as usize];
        let number = actions.load(Ordering::Relaxed) + 1;
        let begun = Instant::now();
        let cell = LocalPos::all().nth(number as usize % 4096).unwrap_or(LocalPos::new(0, 0, 0));
        let pos = home(meadow, player)?.pos.block(cell);
        world.transaction(|tx| {
            tx.set_block(meadow, pos, mark)?;
            tx.put_object(format!("player/{player}"), number.to_le_bytes().to_vec())
        })?;
        actions.store(number, Ordering::Relaxed);
        played.slowest_us.fetch_max(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The owner of the world, as the node says that takes writes.
fn owner(cluster: &str, world: &str) -> Result<String, Failure> {
    let mut config: Config = cluster.split('?').next().unwrap_or_default().parse()?;
    config.target_session_attrs(TargetSessionAttrs::ReadWrite).connect_timeout(Duration::from_millis(500));
    let head = format!("SELECT inet_server_port(), epoch, session, owner FROM \"cg_{world}\".cg_head");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (client, connection) = config.connect(NoTls).await?;
        let connection = tokio::spawn(connection);
        let row = client.query_one(&head, &[]).await?;
        connection.abort();
        let (port, epoch, session): (i32, i64, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let owner: String = row.try_get(3)?;
        let (owner, _since) = owner.split_once(", since").unwrap_or((&owner, ""));
        Ok(format!("port {port}: owner {epoch}, session {session}, {owner}"))
    })
}

fn total(played: &Played) -> u64 {
    played.actions.iter().map(|actions| actions.load(Ordering::Relaxed)).sum()
}

/// Opens the world again and counts what it has.
fn count(address: &Address, meadow: Dimension, mark: BlockId, played: &Played) -> Result<(), Failure> {
    let engine = PostgresEngine::open_read_only(address, &Options::default())?;
    let world = World::builder().open_read_only_over(engine)?;
    let (mut lost, mut doubled, mut unmarked) = (0, 0, 0);
    for (player, actions) in (0..PLAYERS).zip(&played.actions) {
        let acknowledged = actions.load(Ordering::Relaxed);
        let stored = world.objects().get(format!("player/{player}"))?;
        let stored =
            stored.and_then(|object| object.bytes.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes);
        lost += acknowledged.saturating_sub(stored);
        doubled += stored.saturating_sub(acknowledged);
        let chunk = world.load(home(meadow, player)?)?.ok_or("the chunk of a player is gone")?;
        let marks = LocalPos::all().filter(|cell| chunk.block(*cell) == mark).count() as u64;
        unmarked += acknowledged.min(4096).abs_diff(marks);
    }
    println!(
        "{} actions acknowledged: {lost} lost, {doubled} doubled, {unmarked} without their mark",
        total(played)
    );
    if lost + doubled + unmarked == 0 { Ok(()) } else { Err("the world is not what was acknowledged".into()) }
}

/// Runs `cargo xtask`, and returns what it printed.
fn xtask(args: &[&str]) -> Result<String, Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let ended =
        Command::new(cargo).arg("xtask").args(args).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !ended.status.success() {
        return Err(format!("cargo xtask {} failed: {}", args.join(" "), ended.status).into());
    }
    Ok(String::from_utf8(ended.stdout)?)
}
