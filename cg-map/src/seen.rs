//! Which pixels of a picture show something.

/// The pixels of a picture that show something: the least and the greatest x and y.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) min: [u32; 2],
    pub(super) max: [u32; 2],
}

impl Seen {
    /// The same with one more pixel.
    pub(super) fn widened(seen: Option<Self>, [x, y]: [u32; 2]) -> Self {
        let Self { min, max } = seen.unwrap_or(Self { min: [x, y], max: [x, y] });
        Self { min: [min[0].min(x), min[1].min(y)], max: [max[0].max(x), max[1].max(y)] }
    }
}
