//! What a program gives to calls, made of bytes.

use std::ffi::c_char;
use std::ptr::null;

use cherrygrove::*;

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
const HUGE: usize = usize::MAX;

/// A text as the header has it.
pub(super) const fn of(text: &'static str) -> cg_str {
    cg_str { ptr: text.as_ptr().cast::<c_char>(), len: text.len() }
}

/// Looks at each byte.
pub(super) fn read(bytes: &[u8]) {
    std::hint::black_box(bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
}

/// Looks at all that a column lends.
///
/// # Safety
/// It is lent.
pub(super) unsafe fn read_column(column: &cg_column) {
    // SAFETY: it is lent.
    unsafe {
        for section in slice(column.sections, column.section_count) {
            for cells in slice(section.layers, section.layer_count.into()).iter().chain([&section.biomes]) {
                read(slice(cells.words, cells.words_len));
                std::hint::black_box(slice(cells.palette, cells.palette_len as usize).iter().sum::<u32>());
            }
            for light in [section.block_light, section.sky_light] {
                read(slice(light, if light.is_null() { 0 } else { 2048 }));
            }
        }
        let of_entities = slice(column.entities, column.entity_count).iter().map(|entity| entity.nbt);
        let of_blocks =
            slice(column.block_entities, column.block_entity_count).iter().map(|entity| entity.nbt);
        for nbt in of_entities.chain(of_blocks) {
            read(slice(nbt.ptr, nbt.len));
        }
        std::hint::black_box(slice(column.scheduled, column.scheduled_count).iter().map(|one| one.due).max());
    }
}

unsafe fn slice<'l, T>(first: *const T, count: usize) -> &'l [T] {
    // SAFETY: as the caller says.
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(first, count) } }
}

/// A struct with room after it, so that it may say that it is larger.
#[repr(C)]
pub(super) struct Padded<T: Copy> {
    value: T,
    rest: [u64; 640],
}

impl<T: Copy> Padded<T> {
    pub(super) const fn of(value: T) -> Self {
        Self { value, rest: [0; 640] }
    }

    pub(super) const fn pointer(&self) -> *const T {
        (&raw const *self).cast()
    }

    pub(super) const fn pointer_mut(&mut self) -> *mut T {
        (&raw mut *self).cast()
    }

    pub(super) const fn value(&self) -> &T {
        &self.value
    }
}

/// A place for an error, or none.
pub(super) struct ErrorPlace(Option<Box<Padded<cg_error>>>);

impl ErrorPlace {
    pub(super) fn pointer(&mut self) -> *mut cg_error {
        self.0.as_mut().map_or(std::ptr::null_mut(), |error| error.pointer_mut())
    }

    pub(super) fn message(&self) -> String {
        let Some(error) = &self.0 else { return String::new() };
        let shown = error.value().message.iter().take(error.value().message_len as usize);
        String::from_utf8_lossy(&shown.map(|byte| *byte as u8).collect::<Vec<_>>()).into_owned()
    }
}

/// A `cg_error` of full size.
pub(super) fn whole_error() -> cg_error {
    // SAFETY: zeros are an error.
    let mut error: cg_error = unsafe { std::mem::zeroed() };
    error.struct_size = size_of::<cg_error>() as u32;
    error
}

/// Bytes that become arguments. At their end all are zeros.
pub(super) struct Given<'b> {
    bytes: &'b [u8],
    at: usize,
    /// What arrays of the last calls point to.
    cells: Vec<Box<[cg_cells]>>,
    sections: Vec<Box<[cg_section]>>,
    palettes: Vec<Box<[u32]>>,
    block_entities: Vec<Box<[cg_block_entity]>>,
    entities: Vec<Box<[cg_entity]>>,
    scheduled: Vec<Box<[cg_scheduled]>>,
    blocks: Vec<Box<[cg_block]>>,
    /// What words and light point to.
    room: Box<[u8; 1 << 15]>,
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
    fn pos_in(&mut self, x: i64, chunk_y: i32, z: i64) -> cg_pos {
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

    fn heights(&mut self) -> (i32, i32) {
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

    fn cells(&mut self) -> cg_cells {
        let (bits, word_bits) = match self.byte() {
            255 => (self.byte(), self.byte()),
            byte => (byte & 3, [16, 32, 64, 8][usize::from(byte >> 6)]),
        };
        let entries = if self.byte() == 255 { self.byte() } else { 1 << bits.min(3) };
        let palette: Box<[u32]> = (0..entries).map(|_| self.small() & 3).collect();
        let expected = match (bits, word_bits) {
            (0, _) => 0,
            (bits, word_bits) => {
                4096_usize.div_ceil(usize::from(word_bits / bits).max(1)) * usize::from(word_bits / 8)
            }
        };
        let words_len = match self.byte() {
            0 => usize::from(self.byte()),
            1 => HUGE,
            _ => expected,
        };
        let is_huge = words_len == HUGE;
        let cells = cg_cells {
            words: if self.byte() == 0 { null() } else { self.room[1..].as_ptr() },
            words_len: if is_huge { HUGE } else { words_len.min(self.room.len() - 1) },
            palette: if self.byte() == 0 { null() } else { palette.as_ptr() },
            palette_len: palette.len() as u32,
            bits,
            word_bits,
            order: self.below(3),
            side_log2: if self.byte() == 0 { 2 } else { 4 },
        };
        self.palettes.push(palette);
        cells
    }

    fn section(&mut self, y: i32) -> cg_section {
        let count = self.below(3).min(9);
        let layers: Box<[cg_cells]> = (0..count).map(|_| self.cells()).collect();
        let (first, len) = self.array(&layers);
        self.cells.push(layers);
        let biomes = match self.byte() {
            0..=15 => cg_cells { side_log2: 2, ..self.cells() },
            _ => cg_cells::NONE,
        };
        let light = if self.byte() == 1 { self.room.as_ptr() } else { null() };
        let y = if self.byte() == 255 { self.number() as i32 } else { y };
        // A count of 16 bits is believed, so only a null pointer can have one that lies.
        let layer_count = if len == HUGE { u16::from(count) } else { len as u16 };
        cg_section { y, layer_count, flags: 0, layers: first, biomes, block_light: light, sky_light: null() }
    }

    pub(super) fn column(&mut self) -> Box<Padded<cg_column>> {
        let (min_y, max_y) = self.heights();
        let (x, z) = (self.position(), self.position());
        let heights = max_y.wrapping_sub(min_y).wrapping_add(1).clamp(1, 4) as u8;
        let count = i32::from(self.below(heights + 1).min(9));
        let sections: Box<[cg_section]> = (0..count).map(|at| self.section(min_y.wrapping_add(at))).collect();
        let count = if sections.is_empty() { 0 } else { self.byte() & 1 };
        let block_entities: Box<[cg_block_entity]> =
            (0..count).map(|_| cg_block_entity { at: self.pos_in(x, min_y, z), nbt: self.bytes() }).collect();
        let count = if sections.is_empty() { 0 } else { self.byte() & 1 };
        let entities: Box<[cg_entity]> = (0..count).map(|_| self.entity()).collect();
        let count = if sections.is_empty() { 0 } else { self.byte() & 1 };
        let scheduled: Box<[cg_scheduled]> = (0..count)
            .map(|_| cg_scheduled {
                at: self.pos_in(x, min_y, z),
                due: self.position(),
                block: self.small() & 3,
                priority: 0,
            })
            .collect();
        let (of_sections, section_count) = self.array(&sections);
        let (of_block_entities, block_entity_count) = self.array(&block_entities);
        let (of_entities, entity_count) = self.array(&entities);
        let (of_scheduled, scheduled_count) = self.array(&scheduled);
        let column = cg_column {
            struct_size: 0,
            dimension: u32::from(self.byte() == 255),
            x,
            z,
            min_y,
            max_y,
            tick: self.position(),
            sections: of_sections,
            block_entities: of_block_entities,
            entities: of_entities,
            scheduled: of_scheduled,
            section_count,
            block_entity_count,
            entity_count,
            scheduled_count,
            kept: 0,
            damaged_sections: 0,
        };
        self.sections.push(sections);
        self.block_entities.push(block_entities);
        self.entities.push(entities);
        self.scheduled.push(scheduled);
        self.sized(column)
    }
}
