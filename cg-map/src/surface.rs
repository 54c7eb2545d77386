//! View of a column of blocks from above: its colour through plants, glass and water, and its height.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use cg_format::{
    BlockArea, BlockBox, BlockId, BlockPos, CellOrder, ChunkAt, ChunkBox, ChunkPos, ChunkView, Dimension,
    LocalPos, Tier,
};
use cg_registry::Catalog;
use cg_store::view::Area;
use cg_store::{Error, World};

use crate::colour::{Paint, paint_of};
use crate::extent::Tile;
use crate::map::{Colours, SurfaceBlock, TierColumns};
use crate::sight::{Sight, rgb_of};
use crate::strip::Strip;

const TILE_CHUNKS: i64 = 16;

/// Draws tiles of a world.
pub(super) struct Surface<'w> {
    world: &'w World,
    catalog: &'w Catalog,
    dimension: Dimension,
    area: &'w BlockArea,
    colours: Colours,
    paints: HashMap<BlockId, Paint>,
    /// The blocks of the chunk that is looked through, a column after the other.
    blocks: Box<[BlockId; LocalPos::COUNT]>,
    unreadable: Vec<String>,
}

/// How often each kind of block is the ground, and how often the ground lies in each tier.
#[derive(Debug, Default)]
pub(super) struct Tally {
    blocks: HashMap<BlockId, u64>,
    tiers: [u64; 3],
    /// Columns whose ground may be in a damaged chunk.
    pub(super) unreadable: u64,
}

/// The y of the chunks of a column of chunks, each with whether it is stored; damaged rows may hold the others.
type Heights = BTreeMap<i64, bool>;

impl Tally {
    /// The tiers, the hottest first.
    pub(super) fn by_tier(&self) -> Vec<TierColumns> {
        let tiers = Tier::ALL.into_iter().zip(self.tiers);
        tiers.map(|(tier, columns)| TierColumns { tier, rgb: rgb_of(tier), columns }).collect()
    }

    /// The kinds by name, states of one block together, most frequent first.
    pub(super) fn most_frequent(&self, catalog: &Catalog) -> Vec<SurfaceBlock> {
        let mut by_name: BTreeMap<String, (u64, [u8; 3])> = BTreeMap::new();
        for (block, columns) in &self.blocks {
            let Some(name) = catalog.block_name(*block) else { continue };
            let paint = paint_of(name.as_str());
            // What grows in water is drawn as water, and so it is counted as water.
            let identifier = if paint == Paint::Water { "water" } else { name.identifier() };
            let entry =
                by_name.entry(format!("{}:{identifier}", name.namespace())).or_insert((0, paint.rgb()));
            entry.0 += columns;
        }
        let mut all: Vec<_> =
            by_name.into_iter().map(|(name, (columns, rgb))| SurfaceBlock { name, rgb, columns }).collect();
        all.sort_by(|a, b| b.columns.cmp(&a.columns).then_with(|| a.name.cmp(&b.name)));
        all
    }
}

impl<'w> Surface<'w> {
    pub(super) fn new(
        world: &'w World,
        catalog: &'w Catalog,
        dimension: Dimension,
        area: &'w BlockArea,
        colours: Colours,
    ) -> Self {
        let blocks = vec![BlockId::new(0); LocalPos::COUNT].into_boxed_slice();
        let blocks = blocks.try_into().expect("it has the length of the array");
        let (paints, unreadable) = (HashMap::new(), Vec::new());
        Self { world, catalog, dimension, area, colours, paints, blocks, unreadable }
    }

    pub(super) fn into_unreadable(self) -> Vec<String> {
        self.unreadable
    }

    /// Draws the columns of chunks of a tile, each from its top down.
    pub(super) fn draw_tile(
        &mut self,
        tile: Tile,
        strip: &mut Strip,
        tally: &mut Tally,
    ) -> Result<(), Error> {
        for ((x, z), heights) in self.columns(&tile)? {
            let mut sights = [Sight::NOTHING; 256];
            for (y, is_stored) in heights.into_iter().rev() {
                let is_read = is_stored && {
                    let pos = ChunkPos::new(x, y, z).expect("a stored chunk is in the world");
                    self.look_through(pos, &mut sights)
                };
                if !is_read {
                    for sight in sights.iter_mut().filter(|sight| !sight.is_over()) {
                        *sight = Sight::UNREADABLE;
                    }
                }
                if sights.iter().all(Sight::is_over) {
                    break;
                }
            }
            let origin = ChunkPos::new(x, 0, z).expect("a stored chunk is in the world").min_block();
            let column = BlockBox::new(
                BlockPos::new(origin.x, i64::MIN, origin.z),
                BlockPos::new(origin.x | 15, i64::MAX, origin.z | 15),
            );
            let drawn = self.area.intersection(&column);
            for (index, sight) in (0_i64..).zip(&sights) {
                let (x, z) = (origin.x + index / 16, origin.z + index % 16);
                if !drawn.boxes().iter().any(|area| {
                    (area.min().x..=area.max().x).contains(&x) && (area.min().z..=area.max().z).contains(&z)
                }) {
                    continue;
                }
                tally.unreadable += u64::from(sight.is_unreadable);
                match self.colours {
                    Colours::Blocks => strip.add(x, z, sight),
                    Colours::Tiers => strip.add(x, z, &sight.by_tier()),
                }
                if let Some(ground) = sight.ground {
                    *tally.blocks.entry(ground).or_default() += 1;
                }
                if let Some(tier) = sight.tier {
                    tally.tiers[tier as usize] += 1;
                }
            }
        }
        Ok(())
    }

    /// The columns of chunks of a tile.
    fn columns(&self, tile: &Tile) -> Result<BTreeMap<(i64, i64), Heights>, Error> {
        let mut columns: BTreeMap<(i64, i64), Heights> = BTreeMap::new();
        for cube_y in &tile.cubes_down {
            let [min, max] = [0, TILE_CHUNKS - 1].map(|offset| {
                let at = |tile: i64| tile * TILE_CHUNKS + offset;
                ChunkPos::new(at(tile.x), at(*cube_y), at(tile.z))
                    .expect("a cube with a chunk is in the world")
            });
            let drawn = self.area.intersection(&ChunkBox::new(min, max).blocks());
            self.world.read_view(|view| {
                view.for_each_place(Area::Blocks(self.dimension, &drawn), |stored| {
                    // The extent has what is damaged.
                    if let Ok(stored) = stored {
                        let pos = stored.at.pos;
                        columns.entry((pos.x(), pos.z())).or_default().insert(pos.y(), true);
                    }
                    ControlFlow::<()>::Continue(())
                })
            })?;
        }
        for damaged in &tile.damaged {
            let (min, max) = (damaged.min(), damaged.max());
            for (x, z) in (min.x()..=max.x()).flat_map(|x| (min.z()..=max.z()).map(move |z| (x, z))) {
                let heights = columns.entry((x, z)).or_default();
                for y in min.y()..=max.y() {
                    heights.entry(y).or_insert(false);
                }
            }
        }
        Ok(columns)
    }

    /// Looks down through one chunk, and remembers it if it cannot be read. Says whether it could.
    fn look_through(&mut self, pos: ChunkPos, sights: &mut [Sight; 256]) -> bool {
        let (catalog, area) = (self.catalog, self.area.intersection(&ChunkBox::new(pos, pos).blocks()));
        let (paints, blocks) = (&mut self.paints, &mut self.blocks);
        let looked = self.world.tiers().with_stored_bytes(ChunkAt::new(self.dimension, pos), |stored| {
            let Some(schema) = catalog.schema(stored.schema_generation) else {
                return Ok(Some(format!("{}: its schema generation is unknown", stored.at)));
            };
            match ChunkView::new(stored.value, &schema) {
                Ok(chunk) => {
                    look(&chunk, pos, &area, blocks, sights, |block| {
                        *paints.entry(block).or_insert_with(|| paint(catalog, block))
                    });
                    for sight in sights.iter_mut().filter(|sight| sight.through < 1.0) {
                        sight.tier.get_or_insert(stored.tier);
                    }
                }
                Err(error) => return Ok(Some(format!("{}: {error}", stored.at))),
            }
            Ok(None)
        });
        let problem = looked.map_or_else(|error| Some(error.to_string()), Option::flatten);
        let is_read = problem.is_none();
        self.unreadable.extend(problem);
        is_read
    }
}

fn look(
    chunk: &ChunkView<'_>,
    pos: ChunkPos,
    area: &BlockArea,
    blocks: &mut [BlockId; LocalPos::COUNT],
    sights: &mut [Sight; 256],
    mut paint: impl FnMut(BlockId) -> Paint,
) {
    let mut palette = chunk.palette();
    if palette.all(|block| paint(block) == Paint::Air) {
        return;
    }
    chunk.unpack(CellOrder::Xzy, blocks);
    let mut wet = vec![false; LocalPos::COUNT];
    for (at, block) in chunk.upper_layers() {
        if paint(block) == Paint::Water {
            wet[usize::from(CellOrder::Xzy.index(at.cell))] = true;
        }
    }
    let origin = pos.min_block();
    let columns = sights.iter_mut().zip(blocks.chunks_exact(16)).zip(wet.chunks_exact(16));
    for (index, ((sight, column), wet)) in (0_i64..).zip(columns) {
        let (x, z) = (origin.x + index / 16, origin.z + index % 16);
        for (height, (block, is_wet)) in column.iter().zip(wet).enumerate().rev() {
            let y = origin.y + height as i64;
            if sight.is_over() {
                break;
            }
            if area.contains(BlockPos::new(x, y, z)) {
                sight.see(y, *block, paint(*block), *is_wet);
            }
        }
    }
}

/// A block's paint by its name; an id that was never issued is not drawn.
fn paint(catalog: &Catalog, block: BlockId) -> Paint {
    catalog.block_name(block).map_or(Paint::Air, |name| paint_of(name.as_str()))
}
