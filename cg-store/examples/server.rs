//! A game server in small: 20 ticks a second, of which none waits for the disk.
//!
//! `cargo run -p cg-store --example server [DIRECTORY]` walks into new land for three seconds and stops. It opens the world
//! again, walks back over stored land, and says what it did.
//!
//! | thread | what it asks of the world |
//! |---|---|
//! | tick | `peek`, `load_in_background` and `poll`, `submit`, `tick`: nothing that waits for the disk |
//! | generators | nothing: they make chunks, which the tick submits |
//! | shop | `transact`: it reads before it writes, and may wait |

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cg_store::prelude::*;
use cg_store::{LoadTicket, PrefetchOptions};
use uuid::Uuid;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const TICK: Duration = Duration::from_millis(50);
/// The time of a tick that the world may spend on its own work.
const BUDGET: Duration = Duration::from_millis(5);
const VIEW_CHUNKS: u8 = 2;
/// The number of goods in a new chest.
const GOODS: u8 = 100;
const PLAYER: EntityId = EntityId::new(Uuid::from_u128(1));

fn main() -> Result<()> {
    let temporary = tempfile::tempdir()?;
    let dir = std::env::args_os().nth(1).map_or_else(|| temporary.path().join("world"), Into::into);
    for direction in [1.0, -1.0] {
        println!("{}", run(&dir, 60, TICK, direction)?);
    }
    Ok(())
}

/// Opens the world, or creates it, and plays for some ticks.
pub(crate) fn run(dir: &Path, ticks: u64, pace: Duration, direction: f64) -> Result<Report> {
    let prefetch =
        PrefetchOptions { width_chunks: VIEW_CHUNKS, height_chunks: 1, ..PrefetchOptions::default() };
    let options = WorldOptions { prefetch: Some(prefetch), ..WorldOptions::balanced() };
    let world = if dir.exists() {
        World::builder().options(&options).open(dir)?
    } else {
        World::builder().options(&options).create(dir)?
    };
    let names = Names::register(&world)?;
    let begun = names.spawn(&world)?;
    let is_over = AtomicBool::new(false);
    let (server, sold) = thread::scope(|scope| -> Result<_> {
        let shop = scope.spawn(|| {
            let mut sold = 0;
            while !is_over.load(Ordering::Relaxed) {
                sold += u64::from(sell(&world, names)?);
                thread::sleep(pace);
            }
            Ok::<_, Error>(sold)
        });
        let played = Server::new(&world, names, begun).play(ticks, pace, direction);
        is_over.store(true, Ordering::Relaxed);
        let sold = shop.join().map_err(|_| "the shop panicked")??;
        Ok((played?, sold))
    })?;
    let report = server.shut_down(begun, sold)?;
    // Closing saves everything. The directory is free once the last handle is dropped.
    world.close()?;
    Ok(report)
}

/// The ids of the game's names in this world.
#[derive(Clone, Copy)]
struct Names {
    overworld: Dimension,
    air: BlockId,
    stone: BlockId,
    chest: BlockId,
    goods: SideKind,
    player: EntityTypeId,
    sheep: EntityTypeId,
    /// An entity's coins.
    purse: ComponentId,
}

impl Names {
    fn register(world: &World) -> Result<Self> {
        let names = world.registry();
        let [air, stone, chest] = names.register_blocks([":air", "game:stone", "game:chest"])?;
        Ok(Self {
            overworld: names.register_dimension("game:overworld")?,
            air,
            stone,
            chest,
            goods: names.register_side("game:goods")?,
            player: names.register_entity("game:player")?,
            sheep: names.register_entity("game:sheep")?,
            purse: names.register_component(ComponentOffer::fixed(Name::new("game:purse")?, 4))?,
        })
    }

    /// The chunk of the shop's chest.
    fn market(self) -> ChunkAt {
        ChunkAt::new(self.overworld, BlockPos::new(0, 0, 0).chunk())
    }

    /// Where the player is stored, or a new player in a new chunk with a chest.
    fn spawn(self, world: &World) -> Result<EntityPos> {
        let spawned = world.transact(|tx| -> Result<_> {
            if let Some(player) = tx.entity(PLAYER)? {
                return Ok(player.position);
            }
            let position = EntityPos::new(self.overworld, BlockPos::new(8, 0, 8), [0.5; 3])?;
            let mut player = Entity::new(self.player, Owner::Chunk(self.market()), position);
            player.set_component(self.purse, 0_u32.to_le_bytes().to_vec())?;
            tx.save(self.market(), self.generate(tx.catalog(), self.market())?);
            tx.put_entity(PLAYER, player);
            Ok(position)
        });
        Ok(spawned?.value)
    }

    /// Stone below, air above, and a chest in every fourth chunk.
    fn generate(self, catalog: &Catalog, at: ChunkAt) -> Result<Chunk, Error> {
        let schema = catalog.current_schema();
        let mut chunk = Chunk::filled(if at.pos.y() < 0 { self.stone } else { self.air }, &schema)?;
        if at.pos.y() == 0 && at.pos.x().rem_euclid(4) == 0 {
            chunk.set_block(LocalPos::new(4, 0, 4), self.chest, &schema)?;
            chunk.set_side(self.goods, vec![GOODS]);
        }
        Ok(chunk)
    }
}

/// Moves one thing out of the chest, and a coin into the purse: both or neither, whatever else happens to chest and player.
fn sell(world: &World, names: Names) -> Result<bool, Error> {
    let sold = world.transact(|tx| {
        let chest = tx.load(names.market())?;
        let goods = chest.and_then(|chunk| chunk.side(names.goods)?.first().copied()).unwrap_or(0);
        let Some(mut player) = tx.entity(PLAYER)?.filter(|_| goods > 0) else { return Ok::<_, Error>(false) };
        tx.set_side(names.market(), names.goods, Some(vec![goods - 1]))?;
        let coins = coins(&player, names) + 1;
        player.set_component(names.purse, coins.to_le_bytes().to_vec())?;
        tx.put_entity(PLAYER, player);
        Ok(true)
    });
    Ok(sold?.value)
}

fn coins(player: &Entity, names: Names) -> u32 {
    let stored = player.component(names.purse).and_then(|bytes| bytes.try_into().ok());
    stored.map_or(0, u32::from_le_bytes)
}

/// Threads that make land.
struct Generators {
    jobs: Sender<ChunkAt>,
    made: Receiver<Result<(ChunkAt, Chunk), Error>>,
    threads: Vec<JoinHandle<()>>,
}

impl Generators {
    fn start(names: Names, catalog: &Arc<Catalog>) -> Self {
        let (jobs, next) = channel();
        let (done, made) = channel();
        let next: Arc<Mutex<Receiver<ChunkAt>>> = Arc::new(Mutex::new(next));
        let generator = |_| {
            let (next, done, catalog) = (Arc::clone(&next), done.clone(), Arc::clone(catalog));
            thread::spawn(move || {
                // In the loop's condition the lock would be held while a chunk is made.
                let job = || next.lock().ok()?.recv().ok();
                while let Some(at) = job() {
                    // It fails if the game is over.
                    drop(done.send(names.generate(&catalog, at).map(|chunk| (at, chunk))));
                }
            })
        };
        Self { jobs, made, threads: (0..2).map(generator).collect() }
    }

    /// Ends the threads once they have made what they were asked for.
    fn end(&mut self) -> Result<()> {
        // They end with the sender of their jobs.
        self.jobs = channel().0;
        let joined = self.threads.drain(..).try_for_each(JoinHandle::join);
        Ok(joined.map_err(|_| "a generator panicked")?)
    }
}

struct Server<'w> {
    world: &'w World,
    names: Names,
    generators: Generators,
    loading: Vec<(Vec<ChunkAt>, LoadTicket)>,
    /// Chunks that are loaded or generated now, and damaged ones: those are asked for once.
    asked: HashSet<ChunkAt>,
    /// Chunks in view that are there.
    ready: HashSet<ChunkAt>,
    batch: WriteBatch,
    player: EntityPos,
    report: Report,
}

impl<'w> Server<'w> {
    fn new(world: &'w World, names: Names, player: EntityPos) -> Self {
        Self {
            world,
            names,
            generators: Generators::start(names, &world.catalog()),
            loading: Vec::new(),
            asked: HashSet::new(),
            ready: HashSet::from([names.market()]),
            batch: WriteBatch::new(),
            player,
            report: Report::default(),
        }
    }

    fn play(mut self, ticks: u64, pace: Duration, direction: f64) -> Result<Self> {
        let first = self.world.tiers().clock().now().get() + 1;
        for now in first..first + ticks {
            let begun = Instant::now();
            self.tick(GameTick::new(now), direction)?;
            let took = begun.elapsed();
            self.report.slowest = self.report.slowest.max(took);
            thread::sleep(pace.saturating_sub(took));
        }
        Ok(self)
    }

    fn tick(&mut self, now: GameTick, direction: f64) -> Result<()> {
        self.collect()?;
        self.walk(direction)?;
        self.look_around()?;
        self.submit()?;
        let player = PlayerAt { id: PLAYER, dimension: self.names.overworld, block: self.player.block() };
        for met in self.world.tick(now, &[player], BUDGET)?.damaged {
            eprintln!("damage in {}: {}", met.place, met.message);
        }
        self.report.ticks += 1;
        Ok(())
    }

    /// Takes what was loaded and generated since the last tick.
    fn collect(&mut self) -> Result<()> {
        for (asked, pending) in std::mem::take(&mut self.loading) {
            let Some(found) = pending.poll() else {
                self.loading.push((asked, pending));
                continue;
            };
            for (at, found) in asked.into_iter().zip(found) {
                match found {
                    Ok(Some(_)) => {
                        self.asked.remove(&at);
                        self.ready.insert(at);
                        self.report.loaded += 1;
                    }
                    Ok(None) => self.generators.jobs.send(at)?,
                    // It stays asked for: a damaged chunk is not absent, and nothing is generated over it.
                    Err(error) => eprintln!("{at} is not loaded: {error}"),
                }
            }
        }
        let made: Vec<_> = self.generators.made.try_iter().collect::<Result<_, Error>>()?;
        made.into_iter().try_for_each(|(at, chunk)| self.save(at, chunk))
    }

    /// Saves new land, with a sheep on it.
    fn save(&mut self, at: ChunkAt, chunk: Chunk) -> Result<()> {
        self.batch.save(at, chunk);
        if at.pos.y() == 0 {
            let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3])?;
            let sheep = Entity::new(self.names.sheep, Owner::Chunk(at), position);
            self.batch.put_entity(EntityId::new(Uuid::new_v4()), sheep);
        }
        self.asked.remove(&at);
        self.ready.insert(at);
        self.report.generated += 1;
        Ok(())
    }

    /// Moves the player if the land is there. The shop may change the purse meanwhile: the batch keeps the rest of the entity.
    fn walk(&mut self, direction: f64) -> Result<()> {
        let [x, y, z] = self.player.to_f64();
        let to = EntityPos::from_f64(self.names.overworld, [x + 1.5 * direction, y, z])?;
        let at = ChunkAt::new(to.dimension(), to.block().chunk());
        if !self.ready.contains(&at) {
            self.report.steps_waited += 1;
            return Ok(());
        }
        self.batch.edit_entity(PLAYER, move |player| {
            player.position = to;
            Ok(())
        });
        if at.pos != self.player.block().chunk() {
            self.batch.move_entity(PLAYER, Owner::Chunk(at));
        }
        self.player = to;
        Ok(())
    }

    /// Asks for the chunks in view that are not there.
    fn look_around(&mut self) -> Result<()> {
        let here = self.player.block().chunk();
        let view = i64::from(VIEW_CHUNKS);
        let (low, high) = (here.offset(-view, -1 - here.y(), -view), here.offset(view, -here.y(), view));
        let (Some(low), Some(high)) = (low, high) else { return Err("the world ends here".into()) };
        let area = ChunkBox::new(low, high);
        // What is not submitted yet, because the queue was full, is not in the world: it would be generated again.
        self.ready.retain(|at| area.contains(at.pos) || self.batch.touches(*at));
        let mut unknown = Vec::new();
        for at in area.iter().map(|pos| ChunkAt::new(self.names.overworld, pos)) {
            if self.ready.contains(&at) || self.asked.contains(&at) {
                continue;
            }
            match self.world.peek(at) {
                Peek::Here(_) => {
                    self.ready.insert(at);
                    continue;
                }
                Peek::Absent => self.generators.jobs.send(at)?,
                Peek::NotLoaded => unknown.push(at),
            }
            self.asked.insert(at);
        }
        if !unknown.is_empty() {
            let pending = self.world.load_in_background(&unknown);
            self.loading.push((unknown, pending));
        }
        Ok(())
    }

    /// Gives the changes of this tick away.
    fn submit(&mut self) -> Result<()> {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return Ok(());
        }
        match self.world.submit(batch) {
            // If the world refuses the batch later, `flush` and `close` report it.
            Ok(ticket) => drop(ticket),
            // The queue is full. The next tick adds its changes to these and tries again.
            Err(refused) if refused.error.is_retryable() => {
                self.batch = refused.batch;
                self.report.put_off += 1;
            }
            Err(refused) => return Err(refused.error.into()),
        }
        Ok(())
    }

    /// Submits what is left, and compares what was done with what is stored.
    fn shut_down(mut self, begun: EntityPos, sold: u64) -> Result<Report> {
        self.loading.clear();
        self.generators.end()?;
        self.collect()?;
        self.submit()?;
        while !self.batch.is_empty() {
            // No tick any more: now it may wait.
            self.world.wait_for_room()?;
            self.submit()?;
        }
        let player = self.world.entity(PLAYER)?.ok_or("the player is gone")?;
        Ok(Report {
            from: begun.block(),
            to: player.position.block(),
            coins: coins(&player, self.names),
            sold,
            prefetched: self.world.metrics().stats.prefetched_used,
            ..self.report
        })
    }
}

/// Results of the server between opening and closing.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) ticks: u64,
    pub(crate) slowest: Duration,
    pub(crate) from: BlockPos,
    pub(crate) to: BlockPos,
    pub(crate) generated: u64,
    pub(crate) loaded: u64,
    pub(crate) prefetched: u64,
    pub(crate) steps_waited: u64,
    pub(crate) put_off: u64,
    pub(crate) sold: u64,
    pub(crate) coins: u32,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ticks, slowest, from, to, generated, loaded, prefetched, .. } = self;
        let Self { steps_waited, put_off, sold, coins, .. } = self;
        writeln!(f, "{ticks} ticks, the slowest took {slowest:?}; the player went from {from:?} to {to:?}")?;
        writeln!(f, "  {generated} chunks generated, {loaded} loaded, {prefetched} prefetched and used")?;
        write!(f, "  {steps_waited} steps waited for land, {put_off} submissions for room in the queue; ")?;
        write!(f, "{sold} things sold, {coins} coins in the purse")
    }
}
