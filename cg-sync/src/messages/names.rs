//! The names that a reply carries: those of the server's ids that the client does not have.

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_format::{BlockId, ComponentId, ComponentShape, SideKind};
use cg_registry::portable::{NamedBlock, NamedComponent, Names, Used};
use cg_registry::schema::Field;
use cg_registry::{Catalog, ComponentSpec, ListKind, Name, NameError};
use serde::{Deserialize, Serialize};

use super::{KnownServer, ROW, check_head, decode_fields, encode_fields, parts};
use crate::error::MessageError;

/// As [`ROW`], of a page of names with aliases. Earlier drafts wrote pages without.
const NAMES_ROW: [u8; 2] = [2, 0];

/// The names that the client does not have. All names, if the schema generation differs or entries were renamed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct NewNames {
    pub(crate) generation: u32,
    pub(crate) first_block: u64,
    pub(crate) first_side: u64,
    /// The components of the blocks below.
    #[serde(deserialize_with = "parts::list")]
    components: Vec<WireComponent>,
    #[serde(deserialize_with = "parts::list")]
    blocks: Vec<WireBlock>,
    #[serde(deserialize_with = "parts::list")]
    sides: Vec<Vec<u8>>,
    /// The number of the server's renames.
    pub(crate) renames: u64,
    /// The other names of the ids above, the newest first.
    #[serde(deserialize_with = "parts::list")]
    aliases: Vec<WireAliases>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WireAliases {
    pub(super) list: ListKind,
    pub(super) id: u64,
    #[serde(deserialize_with = "parts::list")]
    pub(super) names: Vec<Vec<u8>>,
}

/// A name counts as one more for this many bytes of it and of what it stands for, so that a limit of names is one of memory.
const BYTES_OF_A_NAME: usize = 256;
/// The number of characters of a wrong name that an error shows.
const SHOWN_CHARS: usize = 64;

/// A page of names as earlier drafts stored it.
#[derive(Deserialize)]
struct NamesWithoutAliases {
    generation: u32,
    first_block: u64,
    first_side: u64,
    components: Vec<WireComponent>,
    blocks: Vec<WireBlock>,
    sides: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WireComponent {
    id: u64,
    name: Vec<u8>,
    width_bytes: Option<u32>,
    default_bytes: Vec<u8>,
    #[serde(deserialize_with = "parts::list")]
    fields: Vec<(Vec<u8>, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WireBlock {
    name: Vec<u8>,
    opaque: bool,
    #[serde(deserialize_with = "parts::list")]
    components: Vec<u64>,
}

impl NewNames {
    /// The names that a client lacks, by how many of each list it has.
    pub(crate) fn behind(catalog: &Catalog, known: Option<&KnownServer>) -> Self {
        let generation = catalog.current_generation();
        let len = |list| catalog.list(list).len() as u64;
        let renames = catalog.renames().len() as u64;
        let known = known.filter(|known| (known.generation, known.renames) == (generation, renames));
        let first_block = known.map_or(0, |known| known.blocks.min(len(ListKind::Blocks)));
        let first_side = known.map_or(0, |known| known.sides.min(len(ListKind::Sides)));
        let used = Used {
            blocks: (first_block..len(ListKind::Blocks)).map(BlockId::new).collect(),
            sides: (first_side..len(ListKind::Sides)).map(|id| SideKind::new(id as u16)).collect(),
            // All of them, once: chunks also hold data of components that no block has any more.
            components: if known.is_none() { all_components(catalog) } else { BTreeSet::new() },
            ..Used::default()
        };
        let names = Names::of(catalog, &used).expect("the lists' own ids");
        let block = |block: &Arc<NamedBlock>| WireBlock {
            name: block.name.as_str().into(),
            opaque: block.opaque,
            components: block.components.iter().map(|id| id.get()).collect(),
        };
        Self {
            generation,
            first_block,
            first_side,
            components: WireComponent::all_of(&names),
            blocks: names.blocks.values().map(block).collect(),
            sides: names.sides.values().map(|name| name.as_str().into()).collect(),
            renames,
            aliases: WireAliases::all_of(&names),
        }
    }

    /// The bytes of a page of names in the cache.
    pub(crate) fn encode_page(&self) -> Vec<u8> {
        [&NAMES_ROW[..], &encode_fields(self)].concat()
    }

    /// The inverse of [`encode_page`](Self::encode_page), also for a page of an earlier draft.
    pub(crate) fn decode_page(bytes: &[u8]) -> Result<Self, MessageError> {
        let (head, fields) = bytes.split_first_chunk().ok_or(MessageError::Ends)?;
        if *head == ROW {
            let NamesWithoutAliases { generation, first_block, first_side, components, blocks, sides } =
                decode_fields(fields)?;
            return Ok(Self {
                generation,
                first_block,
                first_side,
                components,
                blocks,
                sides,
                ..Self::default()
            });
        }
        check_head(*head, NAMES_ROW)?;
        decode_fields(fields)
    }

    /// What the names count as.
    pub(crate) fn count(&self) -> usize {
        let components: usize = self.components.iter().map(WireComponent::count).sum();
        let blocks: usize = self.blocks.iter().map(WireBlock::count).sum();
        let sides: usize = self.sides.iter().map(|side| count_as(side.len())).sum();
        components + blocks + sides + self.aliases.iter().map(WireAliases::count).sum::<usize>()
    }

    /// Adds the names to the known ones, or puts them in the place of these if they are of another generation or follow
    /// renames. Returns whether the page of these names is needed to know all of them.
    pub(crate) fn fold_into(
        &self,
        names: &mut Names,
        (generation, renames): (&mut u32, &mut u64),
    ) -> Result<bool, MessageError> {
        let is_other = (self.generation, self.renames) != (*generation, *renames);
        if is_other && (self.first_block, self.first_side) == (0, 0) {
            *names = Names::default();
            (*generation, *renames) = (self.generation, self.renames);
        } else if is_other {
            return Err(MessageError::NamesMissing);
        }
        let known_before = count(names);
        let (blocks, sides) = (names.blocks.len() as u64, names.sides.len() as u64);
        if self.first_block > blocks || self.first_side > sides {
            return Err(MessageError::NamesMissing);
        }
        let known = names.components.iter().map(|(id, component)| (*id, Arc::clone(component)));
        let known: Vec<_> = known.collect();
        let new = self.components.iter().map(WireComponent::named);
        names.components = known.into_iter().map(Ok).chain(new).collect::<Result<_, _>>()?;
        for (id, block) in (self.first_block..).zip(&self.blocks) {
            let components: Vec<_> = block.components.iter().map(|id| ComponentId::new(*id)).collect();
            let is_sound = components.is_sorted_by(|a, b| a < b)
                && components.iter().all(|id| names.components.contains_key(id));
            if !is_sound {
                return Err(MessageError::Fields {
                    reason: format!("block {id} has components without a name"),
                });
            }
            let (name, opaque) = (name(&block.name)?, block.opaque);
            names.blocks.insert(BlockId::new(id), Arc::new(NamedBlock { name, opaque, components }));
        }
        for (id, side) in (self.first_side..).zip(&self.sides) {
            let id = u16::try_from(id)
                .map_err(|_| MessageError::Fields { reason: format!("{id} is no kind of side data") })?;
            names.sides.insert(SideKind::new(id), name(side)?);
        }
        for WireAliases { list, id, names: all } in &self.aliases {
            let all = all.iter().map(|alias| name(alias)).collect::<Result<Vec<_>, _>>()?;
            names.aliases.insert((*list, *id), Arc::from(all));
        }
        Ok(is_other || count(names) > known_before)
    }
}

/// What names count as, other names included.
pub(crate) fn count(names: &Names) -> usize {
    let block = |block: &Arc<NamedBlock>| count_as(block.name.as_str().len() + bytes_of(&block.components));
    let blocks: usize = names.blocks.values().map(block).sum();
    let component = |component: &Arc<NamedComponent>| {
        count_as(component.name.as_str().len() + bytes_of_spec(&component.spec))
    };
    let components: usize = names.components.values().map(component).sum();
    let sides: usize = names.sides.values().map(|side| count_as(side.as_str().len())).sum();
    let others = names.aliases.values().map(|all| count_others(all.iter().map(|name| name.as_str().len())));
    blocks + components + sides + others.sum::<usize>()
}

/// What the names of a world count as. Costs a look at each.
pub(crate) fn count_in(catalog: &Catalog) -> usize {
    let names = ListKind::ALL.iter().flat_map(|list| catalog.list(*list).names());
    let specs = all_components(catalog).into_iter().filter_map(|id| catalog.component_spec(id));
    let names: usize = names.map(|name| count_as(name.as_str().len())).sum();
    names + specs.map(|spec| bytes_of_spec(spec) / BYTES_OF_A_NAME).sum::<usize>()
}

/// What something of this length counts as.
pub(super) const fn count_as(len_bytes: usize) -> usize {
    1 + len_bytes / BYTES_OF_A_NAME
}

/// An entry without names takes its place too.
fn count_others(len_bytes: impl Iterator<Item = usize>) -> usize {
    len_bytes.map(count_as).sum::<usize>().max(1)
}

const fn bytes_of<T>(list: &[T]) -> usize {
    size_of_val(list)
}

fn bytes_of_spec(spec: &ComponentSpec) -> usize {
    let fields = spec.fields.iter().map(|field| field.name.len() + size_of::<Field>());
    spec.default_bytes.len() + fields.sum::<usize>()
}

fn all_components(catalog: &Catalog) -> BTreeSet<ComponentId> {
    let len = catalog.list(ListKind::Components).len() as u64;
    let of = |index| [ComponentId::fixed(index), ComponentId::variable(index)];
    (0..len).flat_map(of).filter(|id| catalog.component_spec(*id).is_some()).collect()
}

impl WireAliases {
    pub(super) fn count(&self) -> usize {
        count_others(self.names.iter().map(Vec::len))
    }

    /// The other names of all ids.
    pub(super) fn all_of(names: &Names) -> Vec<Self> {
        let aliases = names.aliases.iter().map(|((list, id), all)| Self {
            list: *list,
            id: *id,
            names: all.iter().map(|name| name.as_str().into()).collect(),
        });
        aliases.collect()
    }
}

impl WireBlock {
    fn count(&self) -> usize {
        count_as(self.name.len() + bytes_of(&self.components))
    }
}

impl WireComponent {
    pub(super) fn count(&self) -> usize {
        let fields = self.fields.iter().map(|(name, _)| name.len() + size_of::<Field>());
        count_as(self.name.len() + self.default_bytes.len() + fields.sum::<usize>())
    }

    /// All components of some names.
    pub(super) fn all_of(names: &Names) -> Vec<Self> {
        let component = |(id, component): (&ComponentId, &Arc<NamedComponent>)| {
            let NamedComponent { name, spec } = &**component;
            Self {
                id: id.get(),
                name: name.as_str().into(),
                width_bytes: match spec.shape {
                    ComponentShape::Fixed { width_bytes } => Some(width_bytes),
                    ComponentShape::Variable => None,
                },
                default_bytes: spec.default_bytes.clone(),
                fields: spec
                    .fields
                    .iter()
                    .map(|field| (field.name.clone().into(), field.width_bytes))
                    .collect(),
            }
        };
        names.components.iter().map(component).collect()
    }

    pub(super) fn named(&self) -> Result<(ComponentId, Arc<NamedComponent>), MessageError> {
        let id = ComponentId::new(self.id);
        let unsound =
            || MessageError::Fields { reason: format!("component {:#x} has no such shape", self.id) };
        if id.is_variable() != self.width_bytes.is_none() {
            return Err(unsound());
        }
        let field = |(name, width_bytes): &(Vec<u8>, u32)| {
            Ok::<_, MessageError>(Field { name: text(name)?.to_owned(), width_bytes: *width_bytes })
        };
        let spec = ComponentSpec {
            shape: match self.width_bytes {
                Some(width_bytes) => ComponentShape::Fixed { width_bytes },
                None => ComponentShape::Variable,
            },
            default_bytes: self.default_bytes.clone(),
            fields: self.fields.iter().map(field).collect::<Result<_, _>>()?,
        };
        spec.check().map_err(|_| unsound())?;
        Ok((id, Arc::new(NamedComponent { name: name(&self.name)?, spec })))
    }
}

fn text(bytes: &[u8]) -> Result<&str, MessageError> {
    std::str::from_utf8(bytes).map_err(|_| MessageError::Fields { reason: "a text is no UTF-8".into() })
}

/// Decodes a received name. An error shows its beginning.
pub(crate) fn name(bytes: &[u8]) -> Result<Name, MessageError> {
    let text = text(bytes)?;
    let (len_bytes, limit_bytes) = (text.len(), Name::MAX_LEN_BYTES);
    let checked =
        if len_bytes > limit_bytes { Err(NameError::TooLong { len_bytes }) } else { Name::new(text) };
    checked.map_err(|why| {
        let end = text.char_indices().nth(SHOWN_CHARS).map_or(len_bytes, |(end, _)| end);
        let dots = if end < len_bytes { "..." } else { "" };
        MessageError::Fields { reason: format!("`{}{dots}`: {why}", text[..end].escape_debug()) }
    })
}
