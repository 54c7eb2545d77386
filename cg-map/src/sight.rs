//! What is seen of one column of blocks, from the top down.

use cg_format::{BlockId, Tier};

use crate::colour::Paint;

/// Light that still comes through below which a column counts as drawn.
const DARK: f32 = 0.02;
/// How much light something keeps that counts as ground.
const NEARLY_SOLID: f32 = 0.8;
/// Blocks of water below which the ground is out of sight.
const DEEP_BLOCKS: u16 = 24;
/// How much of the light the top of the water keeps, and each block of it below.
const WATER_TOP: f32 = 0.55;
const WATER_BELOW: f32 = 0.13;
const SHALLOW_WATER: [f32; 3] = [70.0, 130.0, 208.0];
const DEEP_WATER: [f32; 3] = [28.0, 58.0, 130.0];

/// Sight of one column of blocks so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    rgb: [f32; 3],
    /// The share of light that comes through what was seen: 1 at the start, 0 at the ground.
    pub(super) through: f32,
    water_blocks: u16,
    /// The y of the ground, or of the water's surface.
    height: Option<i64>,
    pub(super) ground: Option<BlockId>,
    /// Where the chunk lies that was seen first.
    pub(super) tier: Option<Tier>,
    /// Whether the ground may be in a damaged chunk.
    pub(super) is_unreadable: bool,
}

impl Sight {
    pub(super) const NOTHING: Self = Self {
        rgb: [0.0; 3],
        through: 1.0,
        water_blocks: 0,
        height: None,
        ground: None,
        tier: None,
        is_unreadable: false,
    };

    /// What may be in a damaged chunk.
    pub(super) const UNREADABLE: Self = Self { is_unreadable: true, ..Self::NOTHING };

    pub(super) const fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// The colour, or `None` if nothing was seen; and the height.
    pub(super) fn seen(&self) -> Option<([f32; 3], f32)> {
        let opacity = 1.0 - self.through;
        (opacity > 0.0).then(|| (self.rgb.map(|c| c / opacity), self.height.unwrap_or(0) as f32))
    }

    /// The same in the colour of its tier.
    pub(super) fn by_tier(self) -> Self {
        match self.tier {
            Some(tier) if !self.is_unreadable => {
                Self { rgb: rgb_of(tier).map(f32::from), through: 0.0, ..self }
            }
            _ => self,
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        self.is_unreadable || self.through < DARK || self.water_blocks >= DEEP_BLOCKS
    }

    fn cover(&mut self, rgb: [f32; 3], opacity: f32) {
        for (sum, c) in self.rgb.iter_mut().zip(rgb) {
            *sum += c * opacity * self.through;
        }
        self.through *= 1.0 - opacity;
    }

    pub(super) fn see(&mut self, y: i64, block: BlockId, paint: Paint, is_wet: bool) {
        if (is_wet || matches!(paint, Paint::Water)) && self.water_blocks < DEEP_BLOCKS {
            self.height.get_or_insert(y);
            self.ground.get_or_insert(block);
            let deep = f32::from(self.water_blocks) / f32::from(DEEP_BLOCKS);
            let rgb =
                [0, 1, 2].map(|c: usize| SHALLOW_WATER[c] + (DEEP_WATER[c] - SHALLOW_WATER[c]) * deep.sqrt());
            self.cover(rgb, if self.water_blocks == 0 { WATER_TOP } else { WATER_BELOW });
            self.water_blocks += 1;
        }
        match paint {
            Paint::Air | Paint::Water => {}
            Paint::Sheer { rgb, opacity } => {
                // Snow and ice are the ground that people name, though something shines through.
                if opacity >= NEARLY_SOLID {
                    self.height.get_or_insert(y);
                    self.ground.get_or_insert(block);
                }
                self.cover(rgb.map(f32::from), opacity);
            }
            Paint::Solid { rgb } => {
                self.height.get_or_insert(y);
                self.ground.get_or_insert(block);
                self.cover(rgb.map(f32::from), 1.0);
            }
        }
    }
}

/// The colour of a tier: red is hot, amber is warm, blue is cold.
pub(super) const fn rgb_of(tier: Tier) -> [u8; 3] {
    match tier {
        Tier::L0 => [206, 74, 58],
        Tier::L1 => [226, 176, 84],
        Tier::L2 => [84, 136, 196],
    }
}
