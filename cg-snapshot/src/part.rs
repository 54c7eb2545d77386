//! The part of a snapshot that is in a box of chunks.

use cg_format::ChunkBox;

use crate::kept::KeptWriter;
use crate::places::{LOST, Places};
use crate::region::Region;
use crate::snapshot::{Snapshot, SnapshotInfo};

impl Snapshot {
    /// The part of it that is in a box of chunks, as if no more had been captured: its sections, and the entities that are
    /// there. `None` if they have no block in common.
    ///
    /// Copies the stored sections of the part. Names that only the rest uses stay.
    ///
    /// ```
    /// use cg_format::{BlockBox, BlockId, BlockPos, ChunkBox, ChunkPos};
    /// use cg_registry::{BlockOffer, Catalog, Name, Registration};
    /// use cg_snapshot::memory::Memory;
    /// use cg_snapshot::{CaptureOptions, Region, capture};
    /// let mut catalog = Catalog::new();
    /// catalog.register(&Registration {
    ///     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
    ///     dimensions: vec![Name::new("game:arena")?],
    ///     ..Registration::default()
    /// })?;
    /// let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(40, 15, 15));
    /// let region = Region::new(catalog.dimension("game:arena").expect("is registered"), area);
    /// let mut host = Memory::new(&catalog);
    /// host.fill(region.dimension(), area, BlockId::new(0))?;
    /// let snapshot = capture(&host, &catalog, region, &CaptureOptions::named("arena"))?;
    /// let [second, beside] = [1, 5].map(|x| ChunkPos::new(x, 0, 0).expect("is inside the world"));
    /// let part = snapshot.within(ChunkBox::new(second, second)).expect("is a part");
    /// assert_eq!(part.region().area().min(), BlockPos::new(16, 0, 0));
    /// assert_eq!((part.info().section_count, snapshot.info().section_count), (1, 3));
    /// assert_eq!(snapshot.within(ChunkBox::new(beside, beside)), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn within(&self, area: ChunkBox) -> Option<Self> {
        let whole = self.region();
        let part = whole.area().intersection(&area.blocks())?;
        let (mut kept, mut places) = (KeptWriter::default(), Vec::new());
        // By the number of a section in the whole: its place in the part, or 0.
        let mut place_of = vec![0_u32; self.kept.len()];
        let sections = whole.sections().zip(self.places.iter());
        for (_, place) in sections.filter(|(section, _)| area.contains(section.at.pos)) {
            let index = (place as usize).wrapping_sub(1);
            let place = match (place, place_of.get_mut(index), self.kept.get(index)) {
                (0, ..) => 0,
                (LOST, ..) | (_, None, _) | (.., None) => LOST,
                (_, Some(new), Some(section)) => {
                    if *new == 0 {
                        kept.push(section.bytes(), section.checksum());
                        *new = kept.len() as u32;
                    }
                    *new
                }
            };
            places.push(place);
        }
        let is_inside = |block| part.contains(block);
        let entities = self.entities.iter().filter(|(_, entity)| is_inside(entity.position.block()));
        let entities: Vec<_> = entities.cloned().collect();
        let has = |entity| entities.binary_search_by_key(entity, |(id, _)| *id).is_ok();
        let aside = self.aside.iter().filter(|aside| has(&aside.entity)).cloned().collect();
        let info = SnapshotInfo { region: Region::new(whole.dimension(), part), ..self.info.clone() };
        let (places, names) = (Places::new(&places), self.names.clone());
        Some(Self { aside, ..Self::new(info, names, places, kept.finish(), entities) })
    }
}
