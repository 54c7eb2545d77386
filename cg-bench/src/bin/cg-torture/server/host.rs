//! The process of a server: twenty ticks a second, in which players walk and act, until it is killed.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use cg_store::engine::Level;
use cg_store::prelude::*;
use cg_store::{Durable, WriteTicket};

use super::game::{Act, Game, Holder, player_id};
use super::side::{Side, SideKind};
use crate::failure::Failure;
use crate::rng::Rng;

const TICK: Duration = Duration::from_millis(50);
/// The time of a tick that maintenance may take. A build without optimisation takes several times as long for the same.
const BUDGET: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5 } else { 1 });

/// What the process is to do.
#[derive(Debug, clap::Args)]
pub(crate) struct Orders {
    /// Where the world is.
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    side: SideKind,
    #[arg(long)]
    players: u32,
    #[arg(long)]
    seed: u64,
    /// The first tick.
    #[arg(long)]
    now: u64,
    /// Write the one who gives an item a tick before the one who gets it, as a control.
    #[arg(long)]
    splits: bool,
}

/// A message of the process, one a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// All that is to be seen at first is loaded.
    Ready,
    /// A player's deeds up to this one survive a kill.
    Kept { player: u32, deeds: u64 },
    /// A player went to another segment.
    Crossed,
    /// How long a tick waited for the store, and how many chunks it moved between tiers.
    Tick { micros: u64, moved: u64 },
}

impl Message {
    fn line(self) -> String {
        match self {
            Self::Ready => "ready".to_owned(),
            Self::Kept { player, deeds } => format!("kept {player} {deeds}"),
            Self::Crossed => "crossed".to_owned(),
            Self::Tick { micros, moved } => format!("tick {micros} {moved}"),
        }
    }

    /// The message of a line; `None` for a part of one.
    pub(super) fn of(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let word = words.next()?;
        let mut number = || words.next()?.parse::<u64>().ok();
        Some(match word {
            "ready" => Self::Ready,
            "kept" => Self::Kept { player: number()?.try_into().ok()?, deeds: number()? },
            "crossed" => Self::Crossed,
            "tick" => Self::Tick { micros: number()?, moved: number()? },
            _ => return None,
        })
    }
}

struct Host<'g> {
    side: &'g Side,
    game: Game,
    /// What is accepted later, in the order of submission.
    accepting: VecDeque<(u32, u64, WriteTicket)>,
    /// What is accepted and may still be lost.
    keeping: Vec<(u32, u64, Durable)>,
    /// What a control writes a tick too late.
    late: Vec<(ChunkAt, Vec<Holder>)>,
    told: Vec<Message>,
}

/// Plays until it is killed.
pub(crate) fn run(orders: &Orders) -> Result<(), Failure> {
    let side = orders.side.open(&orders.dir)?;
    let game = Game::read(&side, orders.players)?;
    let (accepting, keeping) = (VecDeque::new(), Vec::new());
    let mut host = Host { side: &side, game, accepting, keeping, late: Vec::new(), told: Vec::new() };
    for player in 0..orders.players {
        for loaded in side.load_in_background(&host.game.view_of(player)?.0).wait()? {
            loaded?;
        }
    }
    host.told.push(Message::Ready);
    let rng = &mut Rng::stream(orders.seed, orders.now + 2);
    let mut due = Instant::now();
    for now in orders.now.. {
        let late = Instant::now().saturating_duration_since(due);
        due += TICK + late.saturating_sub(TICK);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let begun = Instant::now();
        host.act(rng, now, orders.splits)?;
        let report = side.tick(GameTick::new(now), &host.game.players_at(), BUDGET)?;
        if let Some(damage) = report.damaged.first() {
            return Err(format!("a tick met damage: {damage:?}").into());
        }
        let micros = begun.elapsed().as_micros() as u64;
        host.told.push(Message::Tick { micros, moved: report.moves.moved() });
        host.note()?;
        host.tell()?;
    }
    Ok(())
}

impl Host<'_> {
    /// Everything that a tick thread asks of the store, but for its tick.
    fn act(&mut self, rng: &mut Rng, now: u64, splits: bool) -> Result<(), Failure> {
        for (at, holders) in std::mem::take(&mut self.late) {
            self.write(at, &holders)?;
        }
        let players: Vec<_> = self.game.players.keys().copied().collect();
        for player in players {
            for act in self.game.step(rng, now, player)? {
                self.carry_out(act, splits)?;
            }
            // Once in two seconds each.
            if now % 40 == u64::from(player) % 40 {
                let (view, ahead) = self.game.view_of(player)?;
                self.side.open_ahead(ahead);
                drop(self.side.load_in_background(&view));
            }
        }
        Ok(())
    }

    fn carry_out(&mut self, act: Act, splits: bool) -> Result<(), Failure> {
        match act {
            Act::Deed { player, at, holders } => {
                let (now, later) = if splits { holders.split_at(1) } else { (&*holders, &[][..]) };
                let ticket = self.write(at, now)?;
                if !later.is_empty() {
                    self.late.push((at, later.to_vec()));
                } else if let Some(of) = self.game.players.get(&player) {
                    self.accepting.push_back((player, of.deeds, ticket));
                }
            }
            Act::Dig { at, block } => {
                let mut batch = WriteBatch::new();
                self.game.dig(block, &mut batch);
                drop(self.submit(at, batch)?);
            }
            Act::Enter { player, at, is_across: false } => drop(self.write(at, &[Holder::Player(player)])?),
            Act::Enter { player, is_across: true, .. } => {
                self.side.cross(player_id(player), self.game.entity_of(player)?)?;
                self.told.push(Message::Crossed);
                if let Some(of) = self.game.players.get(&player) {
                    self.told.push(Message::Kept { player, deeds: of.deeds });
                }
            }
        }
        Ok(())
    }

    /// Submits what holders have now.
    fn write(&mut self, at: ChunkAt, holders: &[Holder]) -> Result<WriteTicket, Failure> {
        let mut batch = WriteBatch::new();
        for holder in holders {
            self.game.write(*holder, &mut batch)?;
        }
        self.submit(at, batch)
    }

    fn submit(&self, at: ChunkAt, mut batch: WriteBatch) -> Result<WriteTicket, Failure> {
        loop {
            match self.side.submit(at, batch) {
                Ok(ticket) => return Ok(ticket),
                Err(refused) if matches!(refused.error, Error::Busy { .. }) => {
                    batch = refused.batch;
                    thread::sleep(Duration::from_millis(1));
                }
                Err(refused) => return Err(refused.error.into()),
            }
        }
    }

    /// Notes what is accepted, and what survives a kill.
    fn note(&mut self) -> Result<(), Failure> {
        while self.accepting.front().is_some_and(|(.., ticket)| ticket.is_finished()) {
            if let Some((player, deeds, ticket)) = self.accepting.pop_front() {
                self.keeping.push((player, deeds, ticket.wait()?.durable()));
            }
        }
        let told = &mut self.told;
        self.keeping.retain(|(player, deeds, durable)| {
            let is_kept = durable.has_reached(Level::Process);
            if is_kept {
                told.push(Message::Kept { player: *player, deeds: *deeds });
            }
            !is_kept
        });
        Ok(())
    }

    fn tell(&mut self) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let lines: String = self.told.drain(..).map(|message| message.line() + "\n").collect();
        out.write_all(lines.as_bytes())?;
        Ok(out.flush()?)
    }
}
