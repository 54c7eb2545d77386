//! What a program gives to calls, made of bytes.

use std::ffi::c_char;
use std::ptr::null;

use cherrygrove::*;

use super::padded::{ErrorPlace, Padded, whole_error};

/// The blocks that the first binding has.
pub(super) const BLOCKS: [&str; 4] = ["game:air", "game:stone", "game:unknown", "game:lamp[a=1]"];

/// Texts that are names, or nearly.
const TEXTS: [&str; 10] = [
    "",
    "game:stone",
    "game:a",
    "game:a[x=1,b=2]",
    "no",
    "cg:time",
    "minecraft:block_entity",
    "ä:",
    "game:b",
    "game:c",
];

/// A length that no memory has.
pub(super) const HUGE: usize = usize::MAX;

/// A text as the header has it.
pub(super) const fn of(text: &'static str) -> cg_str {
    cg_str { ptr: text.as_ptr().cast::<c_char>(), len: text.len() }
}

/// Bytes that become arguments. At their end all are zeros.
pub(super) struct Given<'b> {
    bytes: &'b [u8],
    at: usize,
    /// What arrays of the last calls point to.
    pub(super) cells: Vec<Box<[cg_cells]>>,
    pub(super) sections: Vec<Box<[cg_section]>>,
    pub(super) palettes: Vec<Box<[u32]>>,
    pub(super) block_entities: Vec<Box<[cg_block_entity]>>,
    pub(super) entities: Vec<Box<[cg_entity]>>,
    pub(super) scheduled: Vec<Box<[cg_scheduled]>>,
    blocks: Vec<Box<[cg_block]>>,
    /// What words and light point to.
    pub(super) room: Box<[u8; 1 << 15]>,
}

impl<'b> Given<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        let mut room = vec![0; 1 << 15].into_boxed_slice();
        for (place, byte) in room.iter_mut().zip(bytes.iter().cycle()) {
            *place = *byte;
        }
        Self {
            bytes,
            at: 0,
            cells: Vec::new(),
            sections: Vec::new(),
            palettes: Vec::new(),
            block_entities: Vec::new(),
            entities: Vec::new(),
            scheduled: Vec::new(),
            blocks: Vec::new(),
            room: room.try_into().expect("as long as it was made"),
        }
    }

    pub(super) const fn is_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        byte
    }

    pub(super) fn number(&mut self) -> u64 {
        (0..8).fold(0, |number, _| number << 8 | u64::from(self.byte()))
    }

    /// A number that is nearly always small.
    pub(super) fn small(&mut self) -> u32 {
        match self.byte() {
            255 => self.number() as u32,
            byte => u32::from(byte & 15),
        }
    }

    /// A number below another, and seldom one above.
    pub(super) fn below(&mut self, end: u8) -> u8 {
        let byte = self.byte();
        if byte == 255 { byte } else { byte % end }
    }

    /// An id of the world, or any.
    pub(super) fn id(&mut self) -> u64 {
        match self.byte() {
            255 => self.number(),
            byte => u64::from(byte & 15),
        }
    }

    /// A coordinate, most often near.
    pub(super) fn position(&mut self) -> i64 {
        match self.byte() {
            255 => self.number() as i64,
            254 => i64::MAX >> 4,
            byte => i64::from(byte as i8 >> 3),
        }
    }

    pub(super) fn pos(&mut self) -> cg_pos {
        cg_pos { x: self.position(), y: self.position(), z: self.position() }
    }

    /// A block of a column, and seldom one elsewhere.
    pub(super) fn pos_in(&mut self, x: i64, chunk_y: i32, z: i64) -> cg_pos {
        let at = |chunk: i64, of: u8| chunk.wrapping_mul(16).wrapping_add(of.into());
        let [of_x, of_y, of_z] = [self.below(16), self.below(16), self.below(16)];
        cg_pos { x: at(x, of_x), y: at(chunk_y.into(), of_y), z: at(z, of_z) }
    }

    pub(super) fn cell(&mut self) -> cg_cell {
        cg_cell { x: self.below(16), y: self.below(16), z: self.below(16), layer: self.below(3) }
    }

    /// One of a few ids of 16 bytes.
    pub(super) fn key(&mut self) -> [u8; 16] {
        [self.byte() & 3; 16]
    }

    pub(super) fn error(&mut self) -> ErrorPlace {
        let mut error = whole_error();
        match self.byte() {
            0..=10 => return ErrorPlace(None),
            11..=40 => error.struct_size = u32::from(self.byte()) * 5,
            41..=50 => error.struct_size = 5000,
            _ => {}
        }
        ErrorPlace(Some(Box::new(Padded::of(error))))
    }

    /// A struct that says its own size, or another one.
    pub(super) fn sized<T: Copy>(&mut self, value: T) -> Box<Padded<T>> {
        let mut padded = Box::new(Padded::of(value));
        let size = match self.byte() {
            0 => 0,
            1 => u32::from(self.byte()),
            2 => 4096,
            3 => {
                padded.rest[500] = 1;
                5000
            }
            4 => {
                padded.rest[0] = 1;
                size_of::<T>() as u32 + 8
            }
            5 => u32::MAX,
            _ => size_of::<T>() as u32,
        };
        // SAFETY: each of these structs begins with its size.
        unsafe { padded.pointer_mut().cast::<u32>().write(size) };
        padded
    }

    /// A place for a struct.
    pub(super) fn place<T: Copy>(&mut self) -> Box<Padded<T>> {
        // SAFETY: zeros are a value of these structs.
        let zero = unsafe { std::mem::zeroed() };
        self.sized(zero)
    }

    pub(super) fn text(&mut self) -> cg_str {
        match self.byte() {
            0 => cg_str { ptr: null(), len: 0 },
            1 => cg_str { ptr: null(), len: 3 },
            2 => cg_str { len: HUGE, ..of("a:b") },
            3 => {
                let cg_bytes { ptr, len } = self.bytes();
                cg_str { ptr: ptr.cast(), len }
            }
            at => of(TEXTS[usize::from(at) % TEXTS.len()]),
        }
    }

    /// Nothing on a disk is ever made.
    pub(super) fn path(&mut self) -> cg_str {
        match self.byte() {
            0 => of(""),
            1 => of("/dev/null/world"),
            2 => cg_str { len: HUGE, ..of("a") },
            _ => of(":memory:"),
        }
    }

    /// Some of the bytes that follow.
    pub(super) fn bytes(&mut self) -> cg_bytes {
        match self.byte() {
            0 => cg_bytes { ptr: null(), len: 0 },
            1 => cg_bytes { ptr: null(), len: 7 },
            2 => cg_bytes { ptr: self.bytes.as_ptr(), len: HUGE },
            3 => cg_bytes { ptr: self.room.as_ptr(), len: self.room.len() },
            len => {
                let from = self.at.min(self.bytes.len());
                let len = usize::from(len & 31).min(self.bytes.len() - from);
                cg_bytes { ptr: self.bytes[from..].as_ptr(), len }
            }
        }
    }

    pub(super) fn area(&mut self) -> Padded<cg_box> {
        let min = self.pos();
        let reach = i64::from(self.byte() & 7);
        let max = cg_pos { x: min.x.saturating_add(reach), y: min.y, z: min.z.saturating_add(reach) };
        Padded::of(if self.byte() == 0 { cg_box { min: max, max: min } } else { cg_box { min, max } })
    }

    pub(super) fn players(&mut self) -> Vec<cg_player_at> {
        let count = self.byte() & 3;
        (0..count)
            .map(|at| cg_player_at { id: [at; 16], dimension: self.small(), reserved: 0, block: self.pos() })
            .collect()
    }

    /// A pointer to values and their count, or one of a length that no memory has.
    pub(super) fn array<T>(&mut self, values: &[T]) -> (*const T, usize) {
        match self.byte() {
            0 => (null(), values.len()),
            1 => (values.as_ptr(), HUGE),
            _ => (values.as_ptr(), values.len()),
        }
    }

    pub(super) fn names(&mut self) -> Vec<cg_name> {
        let count = self.byte() & 3;
        let mut name = || cg_name {
            name: self.text(),
            flags: self.small() & 7,
            width: self.small() & 1,
            components: null(),
            component_count: 0,
        };
        (0..count).map(|_| name()).collect()
    }

    pub(super) fn desc(&mut self) -> Box<Padded<cg_binding_desc>> {
        let count = self.byte() & 3;
        let blocks: Box<[cg_block]> = (0..=usize::from(count))
            .map(|at| cg_block {
                name: if self.byte() == 0 { self.text() } else { of(BLOCKS[at]) },
                flags: self.small() & 3,
                reserved: 0,
            })
            .collect();
        let (first, len) = self.array(&blocks);
        let blocks_len = blocks.len() as u32;
        self.blocks.push(blocks);
        let pick = |byte: u8, of: &[u8]| of.get(usize::from(byte)).copied().unwrap_or(of[0]);
        let desc = cg_binding_desc {
            struct_size: 0,
            // A count of 32 bits is believed, so only a null pointer can have one that lies.
            block_count: if len == HUGE { blocks_len } else { len as u32 },
            blocks: first,
            biomes: null(),
            entities: null(),
            biome_count: u32::from(self.byte() == 255),
            entity_count: u32::from(self.byte() == 255),
            placeholder: self.small() & 1,
            air: self.small() & 1,
            biome_placeholder: 0,
            layer_count: pick(self.byte(), &[1, 2, 0, 3]),
            order: pick(self.byte(), &[0, 1, 2, 3]),
            word_bits: pick(self.byte(), &[64, 32, 16, 8]),
            biome_side_log2: pick(self.byte(), &[2, 4, 3]),
            widths: if self.byte() == 1 { self.number() as u32 } else { 0 },
            reserved: 0,
        };
        self.sized(desc)
    }

    pub(super) fn column_at(&mut self) -> Box<Padded<cg_column_at>> {
        let (min_y, max_y) = self.heights();
        let at = cg_column_at {
            struct_size: 0,
            dimension: 0,
            x: self.position(),
            z: self.position(),
            min_y,
            max_y,
        };
        self.sized(at)
    }

    pub(super) fn heights(&mut self) -> (i32, i32) {
        match self.byte() {
            255 => (self.number() as i32, self.number() as i32),
            254 => (i32::MIN, i32::MAX),
            byte => (-i32::from(byte & 3), i32::from(byte >> 2 & 3)),
        }
    }

    pub(super) fn settings(&mut self) -> Box<Padded<cg_settings>> {
        let mut settings = *self.place::<cg_settings>().value();
        settings.present = if self.byte() == 255 { self.number() } else { self.number() & 0x7_ffff };
        (settings.name, settings.engine, settings.thumbnail) = (self.text(), self.text(), self.bytes());
        (settings.spawn_dimension, settings.spawn_block) = (self.text(), self.pos());
        (settings.seed, settings.raining) = (self.position(), self.byte() & 3);
        self.sized(settings)
    }

    pub(super) fn entity(&mut self) -> cg_entity {
        let fraction = match self.byte() {
            0 => f32::NAN,
            1 => 1.0,
            byte => f32::from(byte) / 256.0,
        };
        cg_entity {
            id: self.key(),
            kind: self.small() & 1,
            dimension: u32::from(self.byte() == 255),
            block: self.pos(),
            fraction: [fraction; 3],
            reserved: u32::from(self.byte() == 255),
            nbt: self.bytes(),
        }
    }

    pub(super) fn record(&mut self) -> cg_record {
        let cg_entity { id, dimension, block, fraction, .. } = self.entity();
        cg_record {
            id,
            dimension,
            fraction,
            block,
            timestamp: self.position(),
            kind: self.text(),
            bytes: self.bytes(),
        }
    }
}
