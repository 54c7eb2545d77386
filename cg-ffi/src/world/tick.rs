//! The tick of a world: chunks move between tiers.

use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cg_format::{BlockPos, ChunkBox, Dimension, EntityId};
use cg_store::ErrorKind;
use cg_store::tiers::KeepLoaded;
use cg_tiering::{GameTick, PlayerAt};

use super::World;
use crate::call::call;
use crate::error::{CG_OK, Fault};
use crate::handle::{self, Held, Kind, Object};
use crate::memory::{self, Out, OutStruct, Values};
use crate::place;
use crate::types::{cg_box, cg_error, cg_handle, cg_player_at, cg_tick_report};

/// A box that stays in the hot tier.
struct Pin {
    _kept: KeepLoaded,
}

impl Object for Pin {}

impl Held for Pin {
    const KIND: Kind = Kind::Pin;
}

/// Moves chunks between tiers. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_tick(
    world: cg_handle,
    now: i64,
    players: *const cg_player_at,
    count: usize,
    budget_us: u32,
    out: *mut cg_tick_report,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_tick", error, || {
            let out = if out.is_null() { None } else { Some(OutStruct::new(out, "out")?) };
            let world = handle::find::<World>(world)?;
            let now = u64::try_from(now);
            let now = now.map_err(|_| Fault::invalid("now is negative; ticks count from 0"))?;
            let mut at = Vec::new();
            for player in Values::new(players, count, "players")?.iter() {
                let cg_player_at { id, dimension, reserved, block } = player;
                place::reserved(reserved, "a player")?;
                at.push(PlayerAt {
                    id: EntityId::from_bytes(id),
                    dimension: Dimension::new(dimension.into()),
                    block: BlockPos::new(block.x, block.y, block.z),
                });
            }
            let host = world.host()?;
            let store = host.world();
            let budget = Duration::from_micros(budget_us.into());
            let report = store.tick(GameTick::new(now), &at, budget)?;
            let prefetched = store.metrics().stats.prefetched;
            let before = world.prefetched.swap(prefetched, Ordering::Relaxed);
            if let Some(out) = out {
                out.put(&cg_tick_report {
                    struct_size: 0,
                    is_idle: u32::from(!report.work_left),
                    chunks_moved: report.moves.moved(),
                    chunks_prefetched: prefetched.saturating_sub(before),
                });
            }
            Ok(CG_OK)
        })
    }
}

/// Keeps a box in the hot tier. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_keep_loaded(
    world: cg_handle,
    dimension: u32,
    chunks: *const cg_box,
    pin: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_keep_loaded", error, || {
            let out = Out::new(pin, "pin")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let cg_box { min, max } = memory::value(chunks, "chunks")?;
            place::ordered(min, max)?;
            let bounds = ChunkBox::new(place::chunk_pos(min)?, place::chunk_pos(max)?);
            let host = world.host()?;
            let kept = host.world().tiers().keep_loaded(Dimension::new(dimension.into()), &bounds);
            let kept = kept.map_err(|error| Fault::of(ErrorKind::TooLarge, error.to_string()))?;
            out.put(handle::give(Pin { _kept: kept })?);
            Ok(CG_OK)
        })
    }
}
