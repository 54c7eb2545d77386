//! Whether a difference is free, needs stored instances rewritten, or is refused.

use super::{Conversion, SpecDiff};
use crate::policy::Policy;

/// What becomes of an offered component that is registered already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do.
    Keep,
    /// The same registration, with another default or with its fields described: stored bytes stay valid.
    Describe,
    /// A new registration replaces the old one; stored instances are converted when their chunk is loaded.
    Replace {
        /// The way from the old bytes to the new ones.
        by: Conversion,
        /// Whether every value stored before can still be read out of the new bytes.
        lossless: bool,
    },
    /// The offer cannot be taken under this policy.
    Refuse,
}

/// Decides about a difference. An upgrade function of the host, where there is one, does every conversion.
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
