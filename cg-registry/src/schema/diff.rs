//! The difference between a stored schema and an offered one.

use cg_format::{ComponentId, ComponentShape};

use super::ComponentSpec;

/// The difference between an offered component and the registered one of the same name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecDiff {
    /// No difference. An offer without fields agrees with any fields.
    Same,
    /// Stored bytes keep their meaning. The default changes, or fields are described for the first time.
    NewInstancesOnly,
    /// Width, order or names of fields differ; both sides have fixed size.
    Layout(LayoutDiff),
    /// One side has fixed size, the other variable size.
    Kind {
        /// The registered shape.
        from: ComponentShape,
        /// The offered shape.
        to: ComponentShape,
    },
}

/// The difference between two layouts of a fixed-size component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutDiff {
    /// The registered width.
    pub from_bytes: u32,
    /// The offered width.
    pub to_bytes: u32,
    /// Whether both sides have named fields, so that values are matched by name.
    pub by_fields: bool,
    /// The parts that stored instances would lose: the names of removed or narrowed fields, or `the last N bytes`.
    pub cut: Vec<String>,
}

/// Compares a registered component with an offered one.
pub fn diff_specs(stored: &ComponentSpec, offered: &ComponentSpec) -> SpecDiff {
    let (from_bytes, to_bytes) = match (stored.shape, offered.shape) {
        (ComponentShape::Variable, ComponentShape::Variable) => (0, 0),
        (ComponentShape::Fixed { width_bytes: from }, ComponentShape::Fixed { width_bytes: to }) => {
            (from, to)
        }
        (from, to) => return SpecDiff::Kind { from, to },
    };
    let by_fields = !stored.fields.is_empty() && !offered.fields.is_empty();
    if from_bytes != to_bytes || (by_fields && stored.fields != offered.fields) {
        let cut = if by_fields {
            cut_fields(stored, offered)
        } else {
            let lost_bytes = from_bytes.saturating_sub(to_bytes);
            (lost_bytes > 0).then(|| format!("the last {lost_bytes} bytes")).into_iter().collect()
        };
        return SpecDiff::Layout(LayoutDiff { from_bytes, to_bytes, by_fields, cut });
    }
    let described = stored.fields.is_empty() && !offered.fields.is_empty();
    if described || stored.default_bytes != offered.default_bytes {
        return SpecDiff::NewInstancesOnly;
    }
    SpecDiff::Same
}

fn cut_fields(stored: &ComponentSpec, offered: &ComponentSpec) -> Vec<String> {
    let kept = |name: &str, width_bytes| {
        offered.fields.iter().any(|field| field.name == name && field.width_bytes >= width_bytes)
    };
    let cut = stored.fields.iter().filter(|field| !kept(&field.name, field.width_bytes));
    cut.map(|field| format!("`{}`", field.name)).collect()
}

/// The difference between an offered block and the registered one of the same name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockDiff {
    /// Components that only the offer has.
    pub gains: Vec<ComponentId>,
    /// Components that only the stored row has.
    pub loses: Vec<ComponentId>,
}

impl BlockDiff {
    /// Whether both have the same components.
    pub const fn is_empty(&self) -> bool {
        self.gains.is_empty() && self.loses.is_empty()
    }
}

/// Compares the components of two rows of one block. Both must be ascending.
pub fn diff_blocks(stored: &[ComponentId], offered: &[ComponentId]) -> BlockDiff {
    let only = |these: &[ComponentId], those: &[ComponentId]| {
        these.iter().copied().filter(|id| those.binary_search(id).is_err()).collect()
    };
    BlockDiff { gains: only(offered, stored), loses: only(stored, offered) }
}
