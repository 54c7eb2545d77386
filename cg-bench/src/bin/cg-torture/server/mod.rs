//! A server of many players that is killed again and again, on a segmented world and beside it on a plain one.
//!
//! After each kill every player is there once, every item is somewhere once, and no deed is gone that was told to survive. Both
//! servers are killed at the same moments, and what their ticks waited for is printed for both.

mod game;
pub(crate) mod host;
mod side;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cg_bench::order::percentile;

use crate::failure::Failure;
use crate::report::plural;
use crate::rng::Rng;
use game::Game;
use host::Message;
use side::SideKind;

const SIDES: [SideKind; 2] = [SideKind::Segmented, SideKind::Plain];
/// A server that writes an item in two batches must be caught within this many kills.
const CONTROL_KILLS: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(60);
/// The whole world is verified at intervals of this many kills.
const KILLS_PER_VERIFY: u64 = 5;
/// A tick that is too long.
const LONG_TICK: Duration = Duration::from_millis(20);

/// How many players play, and for how long between two kills.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    players: u32,
    life_ms: u64,
}

impl Size {
    pub(crate) const CI: Self = Self { players: 12, life_ms: 1500 };
    pub(crate) const WHOLE: Self = Self { players: 50, life_ms: 10_000 };
}

/// What the lives of a server came to.
#[derive(Debug, Default)]
struct Tally {
    ticks: Vec<Duration>,
    kept: BTreeMap<u32, u64>,
    moved: u64,
    crossed: u64,
    now: u64,
}

/// A server that runs.
struct Server {
    child: Child,
    messages: Receiver<Message>,
    reader: JoinHandle<()>,
}

/// Kills both servers so often, then one that writes items in two batches.
pub(crate) fn run(seed: u64, kills: u64, size: Size) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let rng = &mut Rng::stream(seed, 4);
    let mut tallies = SIDES.map(|side| (side, Tally::default()));
    for (side, _) in &tallies {
        create(*side, &dir.path().join(side.word()), seed, size)?;
    }
    let mut laid = 0;
    for kill in 0..kills {
        let life = Duration::from_millis(size.life_ms / 2 + rng.below(size.life_ms));
        let mut servers = Vec::new();
        for (side, tally) in &tallies {
            let dir = dir.path().join(side.word());
            servers.push(Server::start(*side, &dir, seed, size, tally.now, false)?);
        }
        thread::sleep(life);
        for server in &mut servers {
            server.child.kill()?;
        }
        for ((side, tally), server) in tallies.iter_mut().zip(servers) {
            server.end(tally)?;
            let is_last = kill + 1 == kills;
            laid = judge(
                *side,
                &dir.path().join(side.word()),
                size,
                tally,
                is_last || kill % KILLS_PER_VERIFY == 0,
            )
            .map_err(|wrong| format!("{}, after {}: {wrong}", side.word(), plural(kill + 1, "kill")))?;
        }
    }
    println!(
        "server: seed {seed}, {} in each of two worlds, {}",
        plural(size.players.into(), "player"),
        plural(kills, "kill")
    );
    println!(
        "server: every item and player is there once; at the end {} lay about, or in chests and vaults",
        plural(laid as u64, "item")
    );
    print(&mut tallies);
    for (side, tally) in &tallies {
        if tally.moved == 0 {
            return Err(format!("{}: no chunk went to another tier", side.word()).into());
        }
    }
    control(seed, size, &dir.path().join("control"))
}

fn create(kind: SideKind, dir: &Path, seed: u64, size: Size) -> Result<(), Failure> {
    let created = kind.create(dir)?;
    Game::begin(&created, size.players, seed)?;
    Ok(created.close()?)
}

/// Opens a world as it was left, and returns how many items are not in a player's hands. An error if an item or a player is not
/// there once, or a deed is gone that was kept.
fn judge(kind: SideKind, dir: &Path, size: Size, tally: &Tally, verifies: bool) -> Result<usize, Failure> {
    let world = kind.open(dir)?;
    let game = Game::read(&world, size.players)?;
    for (player, kept) in &tally.kept {
        let deeds = game.players.get(player).map_or(0, |of| of.deeds);
        if deeds < *kept {
            return Err(format!("player {player} did {kept} deeds, and {deeds} are there").into());
        }
    }
    if verifies {
        world.verify()?;
    }
    world.close()?;
    Ok(game.items_laid())
}

/// Kills a server that writes who gives an item a tick before who gets it.
fn control(seed: u64, size: Size, dir: &Path) -> Result<(), Failure> {
    let kind = SideKind::Segmented;
    create(kind, dir, seed, size)?;
    let mut tally = Tally::default();
    for kill in 0..CONTROL_KILLS {
        let mut server = Server::start(kind, dir, seed, size, tally.now, true)?;
        thread::sleep(Duration::from_millis(size.life_ms.min(1500)));
        server.child.kill()?;
        server.end(&mut tally)?;
        // Kept deeds say nothing of it: only items may be wrong.
        tally.kept.clear();
        if let Err(caught) = judge(kind, dir, size, &tally, false) {
            println!("server: control in two batches caught after {}: {caught}", plural(kill + 1, "kill"));
            return Ok(());
        }
    }
    Err(format!("the control was not caught in {CONTROL_KILLS} kills").into())
}

impl Server {
    /// Starts a server, and returns when its players are in the world.
    fn start(
        kind: SideKind,
        dir: &Path,
        seed: u64,
        size: Size,
        now: u64,
        splits: bool,
    ) -> Result<Self, Failure> {
        let [seed, now, players] = [seed, now, size.players.into()].map(|number| number.to_string());
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("server").arg("--dir").arg(dir).args(["--side", kind.word(), "--players", &players]);
        command.args(["--seed", &seed, "--now", &now]).args(splits.then_some("--splits"));
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or("the process has no output")?;
        let (sender, messages) = channel();
        let reader = thread::spawn(move || {
            // The last line of a killed process may be a part of one.
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if Message::of(&line).is_none_or(|message| sender.send(message).is_err()) {
                    break;
                }
            }
        });
        match messages.recv_timeout(PATIENCE) {
            Ok(Message::Ready) => Ok(Self { child, messages, reader }),
            _ => Err(format!("the {} server did not begin: {}", kind.word(), child.wait()?).into()),
        }
    }

    /// Adds what a server told until it was killed.
    fn end(mut self, tally: &mut Tally) -> Result<(), Failure> {
        let status = self.child.wait()?;
        self.reader.join().map_err(|_| "the reader of a server panicked")?;
        if status.code().is_some() {
            return Err(format!("the server ended by itself: {status}").into());
        }
        for message in self.messages.try_iter() {
            match message {
                Message::Ready => {}
                Message::Kept { player, deeds } => {
                    let kept = tally.kept.entry(player).or_default();
                    *kept = deeds.max(*kept);
                }
                Message::Crossed => tally.crossed += 1,
                Message::Tick { micros, moved } => {
                    tally.ticks.push(Duration::from_micros(micros));
                    tally.moved += moved;
                    tally.now += 1;
                }
            }
        }
        Ok(())
    }
}

/// Markdown, ready for `docs`.
fn print(tallies: &mut [(SideKind, Tally)]) {
    println!(
        "\n| | ticks | p50 | p99 | p99.9 | longest | longer than 20 ms | deeds kept | borders crossed | chunks moved |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for (side, tally) in tallies {
        let long = tally.ticks.iter().filter(|tick| **tick > LONG_TICK).count();
        let [p50, p99, p999, longest] =
            [50.0, 99.0, 99.9, 100.0].map(|percent| format!("{:.2?}", percentile(&mut tally.ticks, percent)));
        println!(
            "| {} | {} | {p50} | {p99} | {p999} | {longest} | {long} | {} | {} | {} |",
            side.word(),
            tally.ticks.len(),
            tally.kept.values().sum::<u64>(),
            tally.crossed,
            tally.moved
        );
    }
    println!();
}
