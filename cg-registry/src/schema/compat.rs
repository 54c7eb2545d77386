//! Decides whether a difference is free, requires a conversion, or is refused.

use super::{Conversion, SpecDiff};
use crate::policy::Policy;

/// The decision about an offered component that is already registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing changes.
    Keep,
    /// The same registration with another default or with described fields. Stored bytes stay valid.
    Describe,
    /// A new registration replaces the old one. Stored instances are converted when their chunk is loaded.
    Replace {
        /// The conversion of the bytes.
        by: Conversion,
        /// Whether the new bytes contain every value that was stored before.
        lossless: bool,
    },
    /// The policy does not allow the offer.
    Refuse,
}

/// Decides about a difference. If the host has an upgrade function, that function does every conversion.
pub fn judge(diff: &SpecDiff, policy: &Policy, has_function: bool) -> Verdict {
    match diff {
        SpecDiff::Same => Verdict::Keep,
        SpecDiff::NewInstancesOnly => Verdict::Describe,
        SpecDiff::Layout(_) | SpecDiff::Kind { .. } if has_function => {
            Verdict::Replace { by: Conversion::Function, lossless: false }
        }
        SpecDiff::Layout(layout) => {
            let by = if layout.by_fields { Conversion::Fields } else { Conversion::Prefix };
            let lossless = layout.cut.is_empty();
            if lossless || policy.allow_shrink { Verdict::Replace { by, lossless } } else { Verdict::Refuse }
        }
        SpecDiff::Kind { .. } => Verdict::Refuse,
    }
}
