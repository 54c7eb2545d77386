//! Values other than chunks in messages: what is asked about, and what is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::{ComponentId, Dimension, EntityTypeId};
use cg_registry::portable::{Names, Used};
use cg_registry::{Catalog, ListKind, Name, Registration};
use cg_store::layer::values::ValueKind;
use serde::{Deserialize, Serialize};

use super::names::{WireAliases, WireComponent, count_as, name};
use super::parts;
use crate::error::MessageError;

/// A set of values that a client keeps, and how far it knows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedValues {
    /// 1 properties, 2 entities, 3 objects, 4 records.
    pub(crate) kind: u8,
    /// Of keys.
    pub(crate) prefix: Vec<u8>,
    /// The boxes in which the values are; everywhere if there are none. Of entities and records.
    #[serde(deserialize_with = "parts::list")]
    pub(crate) areas: Vec<AskedBox>,
    /// Names of components that are left out of entities.
    #[serde(deserialize_with = "parts::list")]
    pub(crate) without: Vec<Vec<u8>>,
    /// `None` if the client knows nothing.
    pub(crate) known: Option<Position>,
}

/// A box of chunks of a dimension of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedBox {
    pub(crate) dimension: u16,
    pub(crate) min: [i64; 3],
    pub(crate) max: [i64; 3],
}

/// How far a client knows a set of values. The server makes it, and the client returns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Position {
    /// Changes up to this key of this commit; without a key, all of the commit.
    Changes { commit: u64, key: Option<Vec<u8>> },
    /// The values up to this key, as they were at `since` or later. Of those after it, and of what changed up to `known`, the
    /// client knows what an older position told.
    Listing { since: u64, known: Option<u64>, key: Vec<u8> },
}

impl Position {
    /// The newest commit that it names.
    pub(crate) fn newest(&self) -> u64 {
        match self {
            Self::Changes { commit, .. } => *commit,
            Self::Listing { since, known, .. } => known.map_or(*since, |known| known.max(*since)),
        }
    }
}

/// What is told of a set of values.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ValuesReply {
    /// The keys between which everything is told that there is: after the first, up to the second. `None` if changes are
    /// told instead.
    pub(crate) listed: Option<(Vec<u8>, Option<Vec<u8>>)>,
    #[serde(deserialize_with = "parts::list")]
    pub(crate) values: Vec<(Vec<u8>, Told)>,
    /// Where the client is then.
    pub(crate) next: Option<Position>,
    /// Whether there is more, which the client asks for from there.
    pub(crate) has_more: bool,
}

/// What is told of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// It is as the client knows it.
    Same,
    /// Its stored form, in the server's ids.
    Newer(Vec<u8>),
    /// It is not stored.
    Gone,
    /// It is outside the boxes.
    Outside,
    /// The server cannot read it. The client keeps what it has.
    Damaged,
}

/// The names of the ids in the values of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct ValueNames {
    #[serde(deserialize_with = "parts::list")]
    components: Vec<WireComponent>,
    #[serde(deserialize_with = "parts::list")]
    entities: Vec<(u64, Vec<u8>)>,
    #[serde(deserialize_with = "parts::list")]
    dimensions: Vec<(u64, Vec<u8>)>,
    #[serde(deserialize_with = "parts::list")]
    aliases: Vec<WireAliases>,
}

/// The same, decoded.
#[derive(Debug, Default)]
pub(crate) struct NamesOfValues {
    pub(crate) names: Names,
    dimensions: BTreeMap<Dimension, Name>,
}

pub(crate) const fn kind_byte(kind: ValueKind) -> u8 {
    match kind {
        ValueKind::Properties => 1,
        ValueKind::Entities => 2,
        ValueKind::Objects => 3,
        ValueKind::Records => 4,
    }
}

pub(crate) fn kind_of(byte: u8) -> Option<ValueKind> {
    ValueKind::ALL.into_iter().find(|kind| kind_byte(*kind) == byte)
}

impl ValueNames {
    /// The names of ids that a catalog issued; one that it did not is left out.
    pub(crate) fn of(catalog: &Catalog, used: Used) -> Self {
        let has = |list: ListKind, id: u64| catalog.list(list).current_name(id).is_some();
        let used = Used {
            components: used
                .components
                .into_iter()
                .filter(|id| catalog.component_spec(*id).is_some())
                .collect(),
            entities: used.entities.into_iter().filter(|id| has(ListKind::Entities, id.get())).collect(),
            dimensions: used
                .dimensions
                .into_iter()
                .filter(|id| has(ListKind::Dimensions, id.get()))
                .collect(),
            ..Used::default()
        };
        let names = Names::of(catalog, &used).expect("the lists' own ids");
        let dimension = |id: &Dimension| {
            let name = catalog.list(ListKind::Dimensions).current_name(id.get())?;
            Some((id.get(), name.as_str().into()))
        };
        Self {
            components: WireComponent::all_of(&names),
            entities: names.entities.iter().map(|(id, name)| (id.get(), name.as_str().into())).collect(),
            dimensions: used.dimensions.iter().filter_map(dimension).collect(),
            aliases: WireAliases::all_of(&names),
        }
    }

    pub(crate) fn count(&self) -> usize {
        let components: usize = self.components.iter().map(WireComponent::count).sum();
        let named = self.entities.iter().chain(&self.dimensions);
        let named: usize = named.map(|(_, name)| count_as(name.len())).sum();
        components + named + self.aliases.iter().map(WireAliases::count).sum::<usize>()
    }

    /// Decodes them.
    pub(crate) fn decode(&self) -> Result<NamesOfValues, MessageError> {
        let mut decoded = NamesOfValues::default();
        let components = self.components.iter().map(WireComponent::named);
        decoded.names.components = components.collect::<Result<_, _>>()?;
        let entity =
            |(id, text): &(u64, Vec<u8>)| Ok::<_, MessageError>((EntityTypeId::new(*id), name(text)?));
        decoded.names.entities = self.entities.iter().map(entity).collect::<Result<_, _>>()?;
        for (id, text) in &self.dimensions {
            decoded.dimensions.insert(Dimension::new(*id), name(text)?);
        }
        for WireAliases { list, id, names } in &self.aliases {
            let names = names.iter().map(|alias| name(alias)).collect::<Result<Vec<_>, _>>()?;
            decoded.names.aliases.insert((*list, *id), Arc::from(names));
        }
        Ok(decoded)
    }
}

impl NamesOfValues {
    /// The dimension of a catalog that a dimension of the server is.
    pub(crate) fn dimension(&self, catalog: &Catalog, there: Dimension) -> Option<Dimension> {
        let name = self.dimensions.get(&there)?;
        self.names.find(catalog, ListKind::Dimensions, there.get(), name).map(Dimension::new)
    }

    /// What a catalog lacks, and how many names that are.
    pub(crate) fn missing_in(&self, catalog: &Catalog) -> (Registration, usize) {
        let lacks = |(id, _): &(&Dimension, &Name)| self.dimension(catalog, **id).is_none();
        let dimensions: BTreeSet<_> =
            self.dimensions.iter().filter(lacks).map(|(_, name)| name.clone()).collect();
        let count = self.names.missing_in(catalog).len() + dimensions.len();
        let registration = self.names.registration(catalog);
        (Registration { dimensions: dimensions.into_iter().collect(), ..registration }, count)
    }

    pub(crate) fn component(&self, id: ComponentId) -> Option<&Name> {
        self.names.components.get(&id).map(|component| &component.name)
    }
}
