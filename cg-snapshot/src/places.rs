//! Which kept section stands at which place of a snapshot: two bytes for each place while few sections differ, else four.

use std::sync::Arc;

/// The place of a section that was not readable.
pub(crate) const LOST: u32 = u32::MAX;

/// By section, in the order of [`Region::sections`](crate::Region::sections): 0 absent, [`LOST`], else one more than the
/// number of a kept section. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Places {
    /// [`LOST`] is `u16::MAX`.
    Narrow(Arc<[u16]>),
    Wide(Arc<[u32]>),
}

impl Places {
    pub(crate) fn new(places: &[u32]) -> Self {
        let narrow = |place: &u32| match *place {
            LOST => Some(u16::MAX),
            place => u16::try_from(place).ok().filter(|place| *place < u16::MAX),
        };
        let narrow: Option<Vec<u16>> = places.iter().map(narrow).collect();
        narrow.map_or_else(|| Self::Wide(places.into()), |places| Self::Narrow(places.into()))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(places) => places.len(),
            Self::Wide(places) => places.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<u32> {
        match self {
            Self::Narrow(places) => places.get(index).map(|place| match *place {
                u16::MAX => LOST,
                place => place.into(),
            }),
            Self::Wide(places) => places.get(index).copied(),
        }
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = u32> + Clone {
        (0..self.len()).map(|index| self.get(index).unwrap_or(LOST))
    }

    /// The memory that it takes beside this value.
    pub(crate) fn memory_bytes(&self) -> usize {
        2 * size_of::<usize>()
            + match self {
                Self::Narrow(places) => size_of_val(&**places),
                Self::Wide(places) => size_of_val(&**places),
            }
    }
}

impl PartialEq for Places {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_out_as_they_went_in_and_take_two_bytes_while_they_fit() {
        let narrow = [0, 1, 2, LOST, 65_534];
        for (places, width) in [(narrow, 2), ([0, 1, 2, LOST, 65_535], 4), ([0, 1, 2, LOST - 1, 7], 4)] {
            let kept = Places::new(&places);
            assert_eq!(kept.iter().collect::<Vec<_>>(), places);
            assert_eq!((kept.len(), kept.get(5)), (5, None));
            assert_eq!(kept.memory_bytes(), 16 + 5 * width);
            assert!(kept == Places::Wide(places.as_slice().into()), "however wide");
        }
    }
}
