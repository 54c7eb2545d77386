//! The decision of a conflict.

/// Which of two values of a conflict is to stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverlayChoice {
    /// The overlay's. A merge writes it over the base's present value. Of a chunk this is about the cells that both have
    /// changed, and the side data; the other edits of both stay.
    Ours,
    /// The base's. The overlay takes it over. Of a chunk this is about the cells that both have changed, and the side
    /// data; the other edits of both stay.
    Theirs,
    /// Neither yet: the conflict stays and is [listed](crate::OverlayRebased::open).
    Ask,
}
