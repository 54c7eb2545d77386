//! The stored record of a component's type.

use cg_format::ComponentId;
use serde::{Deserialize, Serialize};

use super::Content;

/// A stored record about the type of a component. The last one of a component is the valid one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeRow {
    /// The component's id: of the registration, with the top bit set for variable size.
    pub component: u64,
    /// The type of its instances.
    pub content: Content,
}

impl TypeRow {
    /// The component's id.
    pub const fn id(&self) -> ComponentId {
        ComponentId::new(self.component)
    }
}
