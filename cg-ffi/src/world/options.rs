//! How a world is opened.

use std::time::Duration;

use cg_host::{HostOptions, OnDamage};
use cg_registry::PackManifest;
use cg_store::{Durability, WorldOptions};

use crate::error::Fault;
use crate::memory::{self, Values};
use crate::text;
use crate::types::cg_options;

/// What must be there, and what is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Open,
    Create,
    OpenOrCreate,
    ReadOnly,
}

/// The caller's options.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) mode: Mode,
    pub(super) world: WorldOptions,
    pub(super) host: HostOptions,
    pub(super) packs: Vec<PackManifest>,
}

impl Options {
    /// Reads the caller's options; those of a null pointer are the default ones.
    ///
    /// # Safety
    /// The caller keeps the header's rules of memory.
    pub(super) unsafe fn read(given: *const cg_options) -> Result<Self, Fault> {
        let given = if given.is_null() {
            cg_options::DEFAULT
        } else {
            // SAFETY: as the caller says.
            unsafe { memory::sized(given, "options") }?
        };
        let mode = match given.mode {
            0 => Mode::Open,
            1 => Mode::Create,
            2 => Mode::OpenOrCreate,
            3 => Mode::ReadOnly,
            found => return Err(Fault::invalid(format!("mode {found} of the options is none"))),
        };
        let on_damage = match given.on_damage {
            0 => OnDamage::Refuse,
            1 => OnDamage::Partial,
            found => return Err(Fault::invalid(format!("on_damage {found} of the options is none"))),
        };
        if given.reserved != 0 {
            return Err(Fault::invalid("a reserved field of the options is not 0"));
        }
        let durability = durability(given.durability)?.unwrap_or(Durability::Balanced);
        // SAFETY: as the caller says.
        let (game, signature, packs) = unsafe {
            let manifests = Values::new(given.manifests, given.manifest_count, "manifests of the options")?;
            let mut packs = Vec::new();
            for (at, manifest) in manifests.iter().enumerate() {
                let what = format!("manifest {at}");
                let json = text::text(manifest, &what)?;
                let pack = PackManifest::from_json(json);
                packs.push(pack.map_err(|error| Fault::invalid(format!("{what} is {error}")))?);
            }
            (text::text(given.game, "game")?, text::text(given.signature, "signature")?, packs)
        };
        let defaults = (WorldOptions::default(), HostOptions::default());
        let or = |given: u64, default: u64| if given == 0 { default } else { given };
        let own = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let group = match given.group_ms {
            0 => defaults.1.group,
            ms => Duration::from_millis(ms.into()),
        };
        let held_bytes = or(given.held_bytes, defaults.1.held_bytes as u64);
        let host = HostOptions {
            game: own(game),
            group,
            held_bytes: usize::try_from(held_bytes).unwrap_or(usize::MAX),
            on_damage,
            durability,
        };
        let world = WorldOptions {
            durability,
            cache_bytes: or(given.cache_bytes, defaults.0.cache_bytes),
            queue_bytes: or(given.queue_bytes, defaults.0.queue_bytes),
            min_free_bytes: (given.min_free_bytes != 0).then_some(given.min_free_bytes),
            signature: own(signature),
            ..defaults.0
        };
        Ok(Self { mode, world, host, packs })
    }
}

/// The numbers of durabilities, from 1 on.
const DURABILITIES: [Durability; 5] =
    [Durability::Fast, Durability::Balanced, Durability::Process, Durability::Safe, Durability::SafeBatch];

/// A durability; `None` for the default one.
pub(crate) fn durability(number: u32) -> Result<Option<Durability>, Fault> {
    let Some(at) = number.checked_sub(1) else { return Ok(None) };
    let found = DURABILITIES.get(at as usize).copied();
    found.map(Some).ok_or_else(|| Fault::invalid(format!("durability {number} is none")))
}

/// The number of a durability.
pub(super) fn number_of(durability: Durability) -> u32 {
    let at = DURABILITIES.iter().position(|known| *known == durability);
    at.map_or(0, |at| at as u32 + 1)
}
