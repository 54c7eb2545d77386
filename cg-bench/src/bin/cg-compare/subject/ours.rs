//! Worlds of this workspace, in each tier.

use std::ops::ControlFlow;

use cg_bench::settled;
use cg_format::{BlockId, Dimension, LocalPos, Tier};
use cg_store::layer::create_world;
use cg_store::opacity::Keep;
use cg_store::view::Area;
use cg_store::{Durability, Error, Resources, Transaction, World, WorldOptions, WriteBatch};

use super::{About, FIXED, Kind, Loaded, Memory, Role, Setting, Subject, Until};
use crate::columns::Column;
use crate::failure::Failure;
use crate::place::{BOTTOM, HEIGHT, Place};
use crate::workload::Workload;

/// The threads of a world's engine.
const THREADS: usize = 2;
/// Why a world whose chunks are in clusters is not written to.
const WRITES_ARE_HOT: &str = "saves go to L0: see the row of L0";

/// A world whose chunks are in one tier.
struct Ours {
    name: &'static str,
    tier: Tier,
    /// Whether a small change is stored as a delta.
    deltas: bool,
    /// Whether the opacity map is kept.
    opacity: bool,
}

/// Each tier, and the options that cost or save most.
pub(super) fn all() -> Vec<Box<dyn Kind>> {
    let with =
        |name, tier, deltas, opacity| -> Box<dyn Kind> { Box::new(Ours { name, tier, deltas, opacity }) };
    vec![
        with(FIXED, Tier::L0, false, false),
        with("ours, opacity map", Tier::L0, false, true),
        with("ours, deltas", Tier::L0, true, false),
        with("ours, L1", Tier::L1, false, false),
        with("ours, L2", Tier::L2, false, false),
    ]
}

impl Ours {
    fn options(&self, memory: Memory) -> WorldOptions {
        let base = WorldOptions {
            cache_bytes: memory.cache_bytes,
            resources: Some(Resources::new(memory.engine_bytes, THREADS)),
            min_free_bytes: Some(0),
            deltas: self.deltas,
            opacity: if self.opacity { Keep::On } else { Keep::AsStored },
            ..WorldOptions::balanced()
        };
        settled::options(self.tier, base)
    }
}

impl Kind for Ours {
    fn about(&self) -> About {
        let switch = |on: bool| if on { "on" } else { "off" };
        About {
            name: self.name.to_owned(),
            role: Role::Ours,
            version: format!("cg-store {}", env!("CARGO_PKG_VERSION")),
            durability: "submitted or accepted: in memory, written by a thread, synced about a second later; process: in the \
                         log; synced: fdatasync of the log"
                .to_owned(),
            options: format!(
                "balanced; chunks in {:?}, deltas {}, opacity map {}; decoded chunks in memory; RocksDB below, a checksum a row",
                self.tier,
                switch(self.deltas),
                switch(self.opacity)
            ),
        }
    }

    fn create(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let options = self.options(setting.memory);
        let world = create_world(setting.dir, setting.catalog.clone(), &options)?;
        Ok(Box::new(Opened { world, dimension: setting.dimension }))
    }

    fn open(&self, setting: &Setting<'_>) -> Result<Box<dyn Subject>, Failure> {
        let world = World::builder().options(&self.options(setting.memory)).open(setting.dir)?;
        Ok(Box::new(Opened { world, dimension: setting.dimension }))
    }

    fn compact(&self, setting: &Setting<'_>) -> Result<(), Failure> {
        let world = World::builder().options(&self.options(setting.memory)).open(setting.dir)?;
        settled::settle(&world)?;
        Ok(world.close()?)
    }

    fn cannot(&self, workload: Workload) -> Option<&'static str> {
        if self.tier != Tier::L0 && workload.writes() {
            return Some(WRITES_ARE_HOT);
        }
        (self.deltas && !workload.sets_single_blocks())
            .then_some("deltas take part in changes of single blocks")
    }
}

struct Opened {
    world: World,
    dimension: Dimension,
}

impl Opened {
    fn submit(&self, write: impl Fn(&mut WriteBatch) -> Result<(), Failure>) -> Result<(), Failure> {
        loop {
            let mut batch = WriteBatch::with_capacity(1);
            write(&mut batch)?;
            match self.world.submit(batch) {
                Ok(_) => return Ok(()),
                Err(refused) if matches!(refused.error, Error::Busy { .. }) => self.world.wait_for_room()?,
                Err(refused) => return Err(refused.error.into()),
            }
        }
    }
}

/// The mode of a transaction; `None` of what is submitted.
fn mode(until: Until) -> Option<Durability> {
    match until {
        Until::Submitted => None,
        Until::Accepted => Some(Durability::Balanced),
        Until::Process => Some(Durability::Process),
        Until::Synced => Some(Durability::Safe),
    }
}

impl Subject for Opened {
    fn save(&mut self, at: Place, column: &Column, until: Until) -> Result<(), Failure> {
        let Some(mode) = mode(until) else {
            return self
                .submit(|batch| Ok(batch.save_column(self.dimension, at.x, at.z, column.held().clone())?));
        };
        let save = |tx: &mut Transaction<'_>| tx.save_column(self.dimension, at.x, at.z, column.held());
        let committed = self.world.transaction_at(mode, save);
        match committed {
            Err(Error::Busy { .. }) if until == Until::Accepted => {
                self.world.wait_for_room()?;
                self.save(at, column, until)
            }
            other => Ok(other.map(drop)?),
        }
    }

    fn load(&mut self, at: Place) -> Result<Option<Loaded>, Failure> {
        let heights = BOTTOM..=BOTTOM + HEIGHT as i64 - 1;
        let column = self.world.column(self.dimension, at.x, at.z, heights)?;
        Ok((!column.is_absent()).then_some(Loaded::Column(column)))
    }

    fn load_area(&mut self, places: &[Place]) -> Result<Vec<Option<Loaded>>, Failure> {
        let mut asked = Vec::with_capacity(places.len() * HEIGHT);
        for at in places {
            for index in 0..HEIGHT {
                asked.push(at.chunk(self.dimension, index)?);
            }
        }
        let mut found = self.world.load_many(&asked).into_iter();
        let mut columns = Vec::with_capacity(places.len());
        for _ in places {
            let mut chunks = Vec::new();
            for found in found.by_ref().take(HEIGHT) {
                chunks.extend(found?);
            }
            columns.push((!chunks.is_empty()).then_some(Loaded::Shared(chunks)));
        }
        Ok(columns)
    }

    fn set_block(
        &mut self,
        at: Place,
        index: usize,
        cell: LocalPos,
        block: BlockId,
        until: Until,
    ) -> Result<(), Failure> {
        let pos = at.block(index, cell)?;
        let Some(mode) = mode(until) else {
            return self.submit(|batch| {
                batch.set_block(self.dimension, pos, block);
                Ok(())
            });
        };
        self.world.transaction_at(mode, |tx| tx.set_block(self.dimension, pos, block).map(drop))?;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        Ok(self.world.flush()?)
    }

    fn scan(&mut self) -> Result<u64, Failure> {
        let mut count = 0;
        let damaged = self.world.read_view(|view| {
            view.for_each_decoded(Area::World, |chunk| match chunk {
                Ok(_) => {
                    count += 1;
                    ControlFlow::Continue(())
                }
                Err(error) => ControlFlow::Break(error),
            })
        })?;
        damaged.map_or(Ok(count), |error| Err(error.into()))
    }

    fn share(&self) -> Option<Box<dyn Subject + Send>> {
        Some(Box::new(Self { world: self.world.clone(), dimension: self.dimension }))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.world.close()?)
    }
}
