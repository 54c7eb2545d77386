//! Numbers from a seed: hashes of places, and smooth noise between them.
//!
//! Only integer arithmetic and the four operations on `f64` are used, so every machine gives the same world.

/// Where a kind of randomness takes its numbers from; two features with different salts are independent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Salt(pub(super) u64);

/// The source of all randomness of a world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise {
    seed: u64,
}

impl Noise {
    pub(super) const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// 64 well mixed bits for a place.
    pub(super) fn hash(self, salt: Salt, [x, y, z]: [i64; 3]) -> u64 {
        // Written out: a quarter of what unoptimised tests take to make a world is this function.
        let all = mix(self.seed.rotate_left(17) ^ salt.0);
        let all = mix(all.rotate_left(17) ^ x.cast_unsigned());
        let all = mix(all.rotate_left(17) ^ y.cast_unsigned());
        mix(all.rotate_left(17) ^ z.cast_unsigned())
    }

    /// A number from 0 up to `below`, which is not reached.
    pub(super) fn pick(self, salt: Salt, at: [i64; 3], below: u64) -> u64 {
        self.hash(salt, at) % below
    }

    /// Whether one of `out_of` places is this one, on average.
    pub(super) fn one_in(self, salt: Salt, at: [i64; 3], out_of: u64) -> bool {
        self.pick(salt, at, out_of) == 0
    }

    /// Smooth noise over the plane, from -1 to 1, with hills about `wave` blocks apart.
    pub(super) fn flat(self, salt: Salt, x: i64, z: i64, wave: i64) -> f64 {
        let (cell_x, in_x) = lattice(x, wave);
        let (cell_z, in_z) = lattice(z, wave);
        let corner = |dx, dz| self.corner(salt, [cell_x + dx, 0, cell_z + dz]);
        let near = blend(corner(0, 0), corner(1, 0), in_x);
        let far = blend(corner(0, 1), corner(1, 1), in_x);
        blend(near, far, in_z)
    }

    /// Smooth noise in space, from -1 to 1, with lumps about `wave` blocks apart.
    pub(super) fn solid(self, salt: Salt, [x, y, z]: [i64; 3], wave: i64) -> f64 {
        let (cell_x, in_x) = lattice(x, wave);
        let (cell_y, in_y) = lattice(y, wave);
        let (cell_z, in_z) = lattice(z, wave);
        let corner = |dx, dy, dz| self.corner(salt, [cell_x + dx, cell_y + dy, cell_z + dz]);
        let edge = |dy, dz| blend(corner(0, dy, dz), corner(1, dy, dz), in_x);
        let side = |dz| blend(edge(0, dz), edge(1, dz), in_y);
        blend(side(0), side(1), in_z)
    }

    fn corner(self, salt: Salt, at: [i64; 3]) -> f64 {
        /// 2^52: the distance from -1 to 1 in steps that an `f64` holds exactly.
        const HALF_STEPS: f64 = 4_503_599_627_370_496.0;
        (self.hash(salt, at) >> 11) as f64 / HALF_STEPS - 1.0
    }
}

/// The finaliser of `SplitMix64`.
const fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The corner of the lattice below a coordinate, and how far beyond it the coordinate lies, eased at both ends.
fn lattice(coordinate: i64, wave: i64) -> (i64, f64) {
    let part = coordinate.rem_euclid(wave) as f64 / wave as f64;
    (coordinate.div_euclid(wave), part * part * (3.0 - 2.0 * part))
}

fn blend(from: f64, to: f64, part: f64) -> f64 {
    from + (to - from) * part
}
