//! Binds a host's own block type to the ids of a world, for games with an enum and no mods.

use std::collections::HashMap;
use std::hash::Hash;

use cg_format::BlockId;
use cg_registry::{BlockOffer, Name, NameError, Registration};

use crate::api::registry::WorldRegistry;
use crate::storage::error::Error;

/// A host's block type: a closed set of kinds with names.
///
/// A world stores names. Kinds may be added, reordered or removed between releases. A kind keeps its blocks as long as
/// it keeps its name.
pub trait BlockKind: Copy + Eq + Hash + 'static {
    /// The kind of a block that this release does not have. Such blocks are saved again unchanged, because a chunk
    /// keeps their ids: only reading them gives `UNKNOWN`.
    const UNKNOWN: Self;

    /// Every kind that can be stored, with its name; without `UNKNOWN`.
    fn kinds() -> impl IntoIterator<Item = (Self, &'static str)>;

    /// Whether the kind is opaque. Default: all are.
    fn is_opaque(self) -> bool {
        true
    }
}

/// The ids of a host's kinds in one world.
#[derive(Debug, Clone)]
pub struct Binding<K: BlockKind> {
    ids: HashMap<K, BlockId>,
    /// By id; kinds of other releases and hosts leave gaps.
    kinds: Vec<K>,
}

impl<K: BlockKind> Binding<K> {
    /// The id of a kind.
    ///
    /// # Panics
    /// For [`UNKNOWN`](BlockKind::UNKNOWN) and for kinds that [`kinds`](BlockKind::kinds) does not return: they have no
    /// name under which they could be stored. Leave the cells of unknown blocks unchanged instead of writing them.
    pub fn id(&self, kind: K) -> BlockId {
        *self.ids.get(&kind).expect("only kinds with a name can be stored")
    }

    /// The kind of a stored block.
    pub fn kind(&self, id: BlockId) -> K {
        self.kinds.get(id.get() as usize).copied().unwrap_or(K::UNKNOWN)
    }
}

impl WorldRegistry<'_> {
    /// Registers a host's kinds that are new to this world, and binds them all to their ids.
    ///
    /// # Errors
    /// As [`register_blocks`](Self::register_blocks).
    pub fn bind<K: BlockKind>(&self) -> Result<Binding<K>, Error> {
        let named: Vec<(K, &str)> = K::kinds().into_iter().collect();
        let blocks = named.iter().map(|(kind, name)| {
            let offer = BlockOffer::new(Name::new(name)?);
            Ok(BlockOffer { opaque: kind.is_opaque(), ..offer })
        });
        let blocks = blocks.collect::<Result<Vec<_>, NameError>>()?;
        let catalog = self.register(&Registration { blocks, ..Registration::default() })?;
        let ids: HashMap<K, BlockId> = named
            .into_iter()
            .map(|(kind, name)| (kind, catalog.block_id(name).expect("registered above")))
            .collect();
        let len = ids.values().map(|id| id.get() as usize + 1).max().unwrap_or(0);
        let mut kinds = vec![K::UNKNOWN; len];
        for (kind, id) in &ids {
            kinds[id.get() as usize] = *kind;
        }
        Ok(Binding { ids, kinds })
    }
}
