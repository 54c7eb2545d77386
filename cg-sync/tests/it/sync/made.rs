//! Messages made field by field, as a peer would write them that follows no rule.

use cg_sync::SYNC_VERSION;

/// A number as the messages write it.
pub(super) fn number(n: u64) -> Vec<u8> {
    match n {
        0..=250 => vec![n as u8],
        251..=0xffff => [&[251][..], &(n as u16).to_le_bytes()].concat(),
        0x1_0000..=0xffff_ffff => [&[252][..], &(n as u32).to_le_bytes()].concat(),
        _ => [&[253][..], &n.to_le_bytes()].concat(),
    }
}

/// A list: how many there are, then each.
pub(super) fn list(parts: &[Vec<u8>]) -> Vec<u8> {
    [number(parts.len() as u64), parts.concat()].concat()
}

pub(super) fn text(bytes: &[u8]) -> Vec<u8> {
    [number(bytes.len() as u64), bytes.to_vec()].concat()
}

/// The corners of a cube or a box, each below 64 from the middle of the world.
pub(super) fn corner(c: [i8; 3]) -> Vec<u8> {
    c.map(|c| ((c << 1) ^ (c >> 7)) as u8).to_vec()
}

/// The message of a kind that has these fields, whatever they say.
pub(super) fn sealed(kind: u8, fields: &[u8]) -> Vec<u8> {
    let computed = crc32c::crc32c(&[&[SYNC_VERSION, kind], fields].concat());
    [&[SYNC_VERSION, kind][..], &computed.to_le_bytes(), fields].concat()
}

/// The number of a request, as it is written.
pub(super) fn number_in(request: &[u8]) -> &[u8] {
    let len_bytes = match request[6] {
        253 => 9,
        252 => 5,
        251 => 3,
        _ => 1,
    };
    &request[6..6 + len_bytes]
}

/// The fields of a reply after its number. Lists are written whole.
pub(super) struct Reply {
    pub(super) life: u8,
    pub(super) commit: u64,
    pub(super) is_restart: bool,
    pub(super) generation: u64,
    pub(super) first: [u64; 2],
    pub(super) blocks: Vec<Vec<u8>>,
    pub(super) sides: Vec<Vec<u8>>,
    pub(super) aliases: Vec<Vec<u8>>,
    pub(super) cubes: Vec<Vec<u8>>,
    pub(super) areas: Vec<Vec<u8>>,
    pub(super) value_aliases: Vec<Vec<u8>>,
    pub(super) values: Vec<Vec<u8>>,
}

impl Default for Reply {
    fn default() -> Self {
        let no = Vec::new;
        Self {
            life: 2,
            commit: 9,
            is_restart: false,
            generation: 0,
            first: [0; 2],
            blocks: no(),
            sides: no(),
            aliases: no(),
            cubes: no(),
            areas: no(),
            value_aliases: no(),
            values: no(),
        }
    }
}

impl Reply {
    /// The bytes of the reply to a request.
    pub(super) fn to(&self, request: &[u8]) -> Vec<u8> {
        let [first_block, first_side] = self.first.map(number);
        let none = || list(&[]);
        let fields = [
            number_in(request).to_vec(),
            vec![1; 16],
            vec![self.life; 16],
            vec![3; 8],
            number(self.commit),
            vec![u8::from(self.is_restart)],
            // Names: generation, where they begin, components, blocks, sides, renames, other names.
            number(self.generation),
            first_block,
            first_side,
            none(),
            list(&self.blocks),
            list(&self.sides),
            number(0),
            list(&self.aliases),
            list(&self.cubes),
            list(&self.areas),
            // Names of values: components, entities, dimensions, other names.
            [none(), none(), none(), list(&self.value_aliases)].concat(),
            list(&self.values),
        ];
        sealed(2, &fields.concat())
    }
}

/// A block of a reply's names: not opaque, without components.
pub(super) fn block(name: &str) -> Vec<u8> {
    [text(name.as_bytes()), vec![0, 0]].concat()
}

/// Other names of the block with an id.
pub(super) fn aliases(id: u64, names: &[String]) -> Vec<u8> {
    let names: Vec<_> = names.iter().map(|name| text(name.as_bytes())).collect();
    [number(0), number(id), list(&names)].concat()
}
