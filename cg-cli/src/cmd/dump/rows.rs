//! Rows as the engine holds them, past everything that a world checks when it is opened.

use std::ops::ControlFlow;

use cg_format::cluster::{Slot, StoredCluster};
use cg_format::frame::FrameView;
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ClusterTier, Dimension, Space};
use cg_registry::codec::is_registry_row;
use cg_registry::{Catalog, ListKind};
use cg_store::OpenError;
use cg_store::directory::{self, WorldFile};
use cg_store::engine::{
    ALL_KEYS, Access, Budget, Engine, Readable as _, ReadableExt as _, RocksEngine, RocksOptions,
};

use crate::args::WorldArg;
use crate::cmd::name_of;
use crate::output::{Failure, Output, hex, unhex};
use crate::place::Place;

/// Memory for an engine that reads a handful of rows.
const ENGINE_BYTES: usize = 32 << 20;

/// An engine opened for reading, and the registry if it can be read.
pub(super) struct Rows {
    engine: Box<dyn Engine>,
    catalog: Result<Catalog, String>,
}

impl Rows {
    pub(super) fn open(world: &WorldArg, out: &Output) -> Result<Self, Failure> {
        let engine: Box<dyn Engine> = match world.place() {
            Place::Directory(path) => {
                WorldFile::read(path)?;
                let options = RocksOptions::new(Budget::new(ENGINE_BYTES, 1)).with_access(Access::ReadOnly);
                let opened =
                    world.when_free(out, || RocksEngine::open(&directory::engine_dir(path), &options));
                Box::new(opened.map_err(|source| OpenError::Engine { at: path.as_path().into(), source })?)
            }
            Place::Address(address) => Box::new(address.reader()?),
        };
        let catalog = read_catalog(&*engine)?;
        Ok(Self { engine, catalog })
    }

    /// The registry; a failure if it is damaged.
    pub(super) fn catalog(&self) -> Result<&Catalog, Failure> {
        self.catalog.as_ref().map_err(|error| {
            Failure::damaged(format!(
                "the world's registry cannot be read ({error}); name the row itself with --row"
            ))
        })
    }

    /// The bytes of a row, or `None` if there is none.
    pub(super) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.engine.get(space, key)?.map(|row| row.to_vec()))
    }

    /// The row of the hottest tier that has a chunk. Damage in a hotter tier is not passed over.
    pub(super) fn holder_of(&self, at: ChunkAt) -> Result<(Space, Vec<u8>), Failure> {
        let hot = key::chunk(at);
        if self.engine.get(Space::ChunkL0, &hot)?.is_some() {
            return Ok((Space::ChunkL0, hot.to_vec()));
        }
        for tier in [ClusterTier::L1, ClusterTier::L2] {
            let (space, key) = (Space::of_cluster(tier), key::cluster(at.dimension, at.pos.cluster(tier)));
            let Some(row) = self.engine.get(space, &key)? else { continue };
            let absent = StoredCluster::open(tier, &key, &row)
                .is_ok_and(|cluster| cluster.chunk_info(Slot::of(at.pos, tier)).is_none());
            if !absent {
                return Ok((space, key.to_vec()));
            }
        }
        let (x, y, z) = (at.pos.x(), at.pos.y(), at.pos.z());
        let dimension = self.dimension(at.dimension);
        Err(Failure::absent(format!("chunk {x} {y} {z} of {dimension} is not stored in any tier")))
    }

    /// A row by its family's name and its key, in hexadecimal or as a name.
    pub(super) fn named(&self, family: &str, key: &str) -> Result<(Space, Vec<u8>), Failure> {
        let Some(family) = Family::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(family))
        else {
            let all = Family::ALL.map(Family::name).join(", ");
            return Err(Failure::usage(format!("the world has no family `{family}`; it has {all}")));
        };
        let space_of = |key: &[u8]| {
            Space::of_row(family, key).ok_or_else(|| {
                let name = family.name();
                Failure::usage(format!("{} is no key that {name} can have in this release", hex(key)))
            })
        };
        if let Some(bytes) = unhex(key) {
            let space = space_of(&bytes)?;
            // Some names consist of hexadecimal digits only, so they are tried too.
            if self.engine.get(space, &bytes)?.is_some() || self.get(space, key.as_bytes())?.is_none() {
                return Ok((space, bytes));
            }
        }
        Ok((space_of(key.as_bytes())?, key.into()))
    }

    /// Place that a key names, in words.
    pub(super) fn place(&self, space: Space, key: &[u8]) -> String {
        let cube = |tier| {
            let (dimension, pos) = key::decode_cluster(tier, key)?;
            let (x, y, z) = (pos.x(), pos.y(), pos.z());
            Ok(format!("cluster {x} {y} {z} of {}", self.dimension(dimension)))
        };
        let chunk = |at: ChunkAt| {
            let (x, y, z) = (at.pos.x(), at.pos.y(), at.pos.z());
            format!("chunk {x} {y} {z} of {}", self.dimension(at.dimension))
        };
        let place = match space {
            Space::ChunkL0 => key::decode_chunk(key).map(chunk),
            Space::ClusterL1 => cube(ClusterTier::L1),
            Space::ClusterL2 => cube(ClusterTier::L2),
            Space::Entity => key::decode_entity(key).map(|id| format!("entity {id}")),
            Space::Object => Ok(format!("object `{}`", key.escape_ascii())),
            Space::Record => key::decode_record(key).map(|(_, id)| format!("record {id}")),
            Space::RecordPlace => key::decode_record_place(key).map(|id| format!("the place of record {id}")),
            Space::OpacityTile => key::decode_opacity_tile(key)
                .map(|(dimension, [x, z])| format!("opacity tile {x} {z} of {}", self.dimension(dimension))),
            Space::OpacityPatch => {
                key::decode_opacity_patch(key).map(|at| format!("opacity patch of {}", chunk(at)))
            }
            Space::ChunkDelta => key::decode_delta(key)
                .map(|(at, commit)| format!("changes of commit {commit} to {}", chunk(at))),
            Space::Quarantine => key::decode_quarantine(key).map(|(space, key, commit)| {
                format!("quarantined by commit {commit}: {}", self.place(space, key))
            }),
            Space::ChangeLog => key::decode_change_log(key).map(|(space, commit, key)| {
                format!("changed by commit {commit}: {}", self.place(space, key))
            }),
            Space::Intent if key.len() == key::STAGED_LEN_BYTES => key::decode_staged(key)
                .map(|(commit, part)| format!("part {part} of commit {commit}, which is staged")),
            Space::Intent => key::decode_intent(key)
                .map(|commit| format!("commit {commit}, which is to be rolled forward")),
            _ => Ok(match str::from_utf8(key) {
                Ok(name) if !name.contains(char::is_control) => format!("row `{name}`"),
                _ => format!("{space:?} row"),
            }),
        };
        place.unwrap_or_else(|error| format!("{space:?} row with a key that names no place ({error})"))
    }

    fn dimension(&self, dimension: Dimension) -> String {
        match &self.catalog {
            Ok(catalog) => name_of(catalog, ListKind::Dimensions, dimension.get()),
            Err(_) => format!("dimension {}", dimension.get()),
        }
    }
}

/// The registry as it is stored, or in words why it cannot be read.
fn read_catalog(engine: &dyn Engine) -> Result<Result<Catalog, String>, Failure> {
    let mut rows = Vec::new();
    let damaged = engine.scan(Family::WorldMeta, ALL_KEYS, |key, row| {
        let Some(name) = str::from_utf8(key).ok().filter(|name| is_registry_row(name)) else {
            return ControlFlow::Continue(());
        };
        match FrameView::open(Space::WorldMeta, key, row) {
            Ok(frame) => {
                rows.push((name.to_owned(), frame.payload().to_vec()));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(format!("row `{name}`: {error}")),
        }
    })?;
    if let Some(damaged) = damaged {
        return Ok(Err(damaged));
    }
    let rows = rows.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    Ok(Catalog::decode(rows).map_err(|error| error.to_string()))
}
