//! The host's functions that fill and convert components.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::{BlockId, ComponentId, ComponentShape};

use crate::schema::ComponentSpec;
use crate::{Catalog, Name};

/// An instance that is converted from one registration of a component to the next.
#[derive(Debug, Clone, Copy)]
pub struct Instance<'a> {
    /// The block that owns it, or `None` outside a chunk.
    pub block: Option<BlockId>,
    /// The schema of the bytes.
    pub from: &'a ComponentSpec,
    /// The schema of the result.
    pub to: &'a ComponentSpec,
    /// The stored bytes.
    pub bytes: &'a [u8],
}

/// An instance of a component that a block gains.
#[derive(Debug, Clone, Copy)]
pub struct Gained<'a> {
    /// The place of the block.
    pub at: CellLayer,
    /// The block.
    pub block: BlockId,
    /// The component.
    pub component: ComponentId,
    /// The chunk before this generation, with all components that it had then.
    pub chunk: &'a Chunk,
}

/// A conversion refused the bytes, or returned a wrong length.
pub(crate) struct Refused;

pub(crate) type Convert = dyn Fn(&Instance<'_>) -> Option<Vec<u8>> + Send + Sync;
pub(crate) type Fill = dyn Fn(&Gained<'_>) -> Option<Vec<u8>> + Send + Sync;

/// Functions of the host, by the name of the component. They must give the same result for the same input. Several
/// threads may call them at once. They call nothing of the world: a caller may be waiting for them.
///
/// ```
/// use cg_registry::{Name, Policy, UpgradeFunctions};
/// let mut functions = UpgradeFunctions::default();
/// // A fixed-size number becomes text.
/// functions.converted(Name::new("shop:price")?, |old| {
///     let number = u32::from_le_bytes(old.bytes.try_into().ok()?);
///     Some(number.to_string().into_bytes())
/// });
/// let policy = Policy { conversions: functions.conversions(), ..Policy::default() };
/// assert!(policy.conversions.contains("shop:price"));
/// # Ok::<_, cg_registry::NameError>(())
/// ```
#[derive(Default)]
pub struct UpgradeFunctions {
    conversions: HashMap<Name, Box<Convert>>,
    fills: HashMap<Name, Box<Fill>>,
}

impl UpgradeFunctions {
    /// Registers a conversion for instances whenever the component's shape or fields change. `None` refuses the chunk.
    ///
    /// For a component of fixed size the result must have exactly the new width.
    pub fn converted(
        &mut self,
        component: Name,
        function: impl Fn(&Instance<'_>) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> &mut Self {
        self.conversions.insert(component, Box::new(function));
        self
    }

    /// Registers a function for instances that stored blocks gain. `None` means the component's default.
    pub fn gained(
        &mut self,
        component: Name,
        function: impl Fn(&Gained<'_>) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> &mut Self {
        self.fills.insert(component, Box::new(function));
        self
    }

    /// The names of the components with a conversion, for [`Policy::conversions`](crate::Policy::conversions).
    pub fn conversions(&self) -> BTreeSet<String> {
        self.conversions.keys().map(ToString::to_string).collect()
    }

    pub(crate) fn conversion(&self, name: &str) -> Option<&Convert> {
        self.conversions.get(name).map(Box::as_ref)
    }

    /// Calls the conversion that is registered under the first of these names. `None` if none is registered;
    /// [`Refused`] if it refuses the bytes or returns a wrong length.
    pub(crate) fn call<S: AsRef<str>>(
        &self,
        names: &[S],
        instance: &Instance<'_>,
    ) -> Option<Result<Vec<u8>, Refused>> {
        let function = names.iter().find_map(|name| self.conversion(name.as_ref()))?;
        let fits = |bytes: &Vec<u8>| match instance.to.shape {
            ComponentShape::Fixed { width_bytes } => bytes.len() == width_bytes as usize,
            ComponentShape::Variable => true,
        };
        Some(function(instance).filter(fits).ok_or(Refused))
    }

    /// The components of a catalog with a function for gained instances.
    pub(crate) fn fills_of(&self, catalog: &Catalog) -> BTreeMap<ComponentId, Name> {
        let found = |name: &Name| Some((catalog.component_id(name.as_str())?, name.clone()));
        self.fills.keys().filter_map(found).collect()
    }

    pub(crate) fn fill(&self, name: &str) -> Option<&Fill> {
        self.fills.get(name).map(Box::as_ref)
    }
}

impl fmt::Debug for UpgradeFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpgradeFunctions")
            .field("conversions", &self.conversions())
            .field("fills", &self.fills.keys().collect::<BTreeSet<_>>())
            .finish()
    }
}
