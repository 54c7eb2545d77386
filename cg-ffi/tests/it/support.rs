//! What the tests share: a world, a binding, columns, and calls that must succeed.

use std::ffi::{c_char, c_int};

use cherrygrove::*;

/// A text as the header has it.
pub(crate) fn text(text: &str) -> cg_str {
    cg_str { ptr: text.as_ptr().cast::<c_char>(), len: text.len() }
}

/// Bytes as the header has them.
pub(crate) fn bytes(bytes: &[u8]) -> cg_bytes {
    cg_bytes { ptr: bytes.as_ptr(), len: bytes.len() }
}

/// What was lent, copied.
pub(crate) fn copied(lent: cg_bytes) -> Vec<u8> {
    assert!(!lent.ptr.is_null());
    // SAFETY: the library lends so many bytes.
    unsafe { std::slice::from_raw_parts(lent.ptr, lent.len) }.to_vec()
}

/// What was lent, copied.
pub(crate) fn copied_text(lent: cg_str) -> String {
    String::from_utf8(copied(cg_bytes { ptr: lent.ptr.cast(), len: lent.len })).expect("UTF-8")
}

/// Values that were lent.
pub(crate) fn lent<'l, T>(first: *const T, count: usize) -> &'l [T] {
    if count == 0 {
        return &[];
    }
    // SAFETY: the library lends so many values, aligned.
    unsafe { std::slice::from_raw_parts(first, count) }
}

/// A `cg_error` of full size.
pub(crate) fn error() -> cg_error {
    cg_error {
        struct_size: size_of::<cg_error>() as u32,
        kind: 77,
        retryable: 77,
        has_place: 77,
        dimension: 77,
        message_full_len: 77,
        chunk: cg_pos { x: 77, y: 77, z: 77 },
        message_len: 0,
        message: [0; 1000],
    }
}

/// The message of an error.
pub(crate) fn message(error: &cg_error) -> String {
    let shown = error.message[..error.message_len as usize].iter().map(|byte| *byte as u8);
    String::from_utf8(shown.collect()).expect("UTF-8")
}

/// The result and the message of a call.
pub(crate) fn failed(call: impl FnOnce(*mut cg_error) -> c_int) -> (c_int, String) {
    let mut error = error();
    let result = call(&raw mut error);
    if result < 0 {
        assert_eq!(error.kind, result, "{}", message(&error));
        return (result, message(&error));
    }
    assert_eq!(error.kind, 77, "an error was filled, and the call gave {result}");
    (result, String::new())
}

/// A call that succeeds.
#[track_caller]
pub(crate) fn ok(call: impl FnOnce(*mut cg_error) -> c_int) {
    assert_eq!(failed(call), (CG_OK, String::new()));
}

/// A call that gives this result, which is no error.
#[track_caller]
pub(crate) fn gives(result: c_int, call: impl FnOnce(*mut cg_error) -> c_int) {
    assert_eq!(failed(call), (result, String::new()));
}

/// A call that fails with this result and a message that contains a text.
#[track_caller]
pub(crate) fn fails(result: c_int, part: &str, call: impl FnOnce(*mut cg_error) -> c_int) {
    let (found, message) = failed(call);
    assert_eq!(found, result, "{message}");
    assert!(message.contains(part), "`{part}` is not in: {message}");
}

/// The results, by their names in the header.
pub(crate) mod result {
    use std::ffi::c_int;

    pub(crate) const CONFLICT: c_int = -2;
    pub(crate) const BUSY: c_int = -3;
    pub(crate) const NOT_FOUND: c_int = -9;
    pub(crate) const TOO_LARGE: c_int = -10;
    pub(crate) const INVALID: c_int = -11;
    pub(crate) const CLOSED: c_int = -12;
    pub(crate) const UNSUPPORTED: c_int = -13;
}

/// A world with a binding.
pub(crate) struct Game {
    pub(crate) world: cg_handle,
    pub(crate) binding: cg_handle,
    pub(crate) dimension: u32,
}

/// Options for a new world, or the one that is there.
pub(crate) fn options() -> cg_options {
    cg_options { mode: 2, durability: 1, ..cg_options::DEFAULT }
}

/// Opens a world.
pub(crate) fn open(path: &str) -> cg_handle {
    let mut world = 0;
    // SAFETY: all memory is of this function.
    ok(|error| unsafe { cg_world_open(text(path), &options(), &raw mut world, error) });
    world
}

/// The names of the blocks: air, stone, chest, unknown.
pub(crate) const BLOCKS: [&str; 4] =
    ["game:air", "game:stone", "game:chest[side=north,wet=true]", "game:unknown"];
/// The names of the kinds of entity.
pub(crate) const ENTITIES: [&str; 2] = ["game:pig", "game:player"];

/// Binds [`BLOCKS`] and [`ENTITIES`].
pub(crate) fn bind(world: cg_handle) -> cg_handle {
    let blocks: Vec<cg_block> = (0..)
        .zip(BLOCKS)
        .map(|(at, name)| cg_block { name: text(name), flags: [0, 1, 2, 1][at], reserved: 0 })
        .collect();
    let biomes = [cg_biome { name: text("game:plains"), number: 5, reserved: 0 }];
    let entities = ENTITIES.map(text);
    let mut binding = 0;
    // SAFETY: all memory is of this function.
    ok(|error| unsafe { cg_binding_new(world, &desc(&blocks, &biomes, &entities), &raw mut binding, error) });
    binding
}

/// The description of a binding.
pub(crate) fn desc(blocks: &[cg_block], biomes: &[cg_biome], entities: &[cg_str]) -> cg_binding_desc {
    cg_binding_desc {
        struct_size: size_of::<cg_binding_desc>() as u32,
        block_count: blocks.len() as u32,
        blocks: blocks.as_ptr(),
        biomes: biomes.as_ptr(),
        entities: entities.as_ptr(),
        biome_count: biomes.len() as u32,
        entity_count: entities.len() as u32,
        placeholder: 3,
        air: 0,
        biome_placeholder: 5,
        layer_count: 2,
        order: 2,
        word_bits: 64,
        biome_side_log2: 2,
        widths: 0,
        reserved: 0,
    }
}

impl Game {
    /// A game in a new world in memory.
    pub(crate) fn in_memory() -> Self {
        Self::at(":memory:")
    }

    /// A game in a world at a path.
    pub(crate) fn at(path: &str) -> Self {
        let world = open(path);
        let name = cg_name {
            name: text("game:overworld"),
            flags: 0,
            width: 0,
            components: std::ptr::null(),
            component_count: 0,
        };
        let mut id = 0;
        // SAFETY: all memory is of this function.
        ok(|error| unsafe { cg_names_register(world, 3, &raw const name, 1, &raw mut id, error) });
        Self { world, binding: bind(world), dimension: id as u32 }
    }

    /// Ends it.
    pub(crate) fn close(self) {
        // SAFETY: it takes no memory.
        ok(|error| unsafe { cg_world_close(self.world, error) });
        // SAFETY: it takes no memory.
        assert_eq!(unsafe { cg_release(self.binding) }, CG_OK);
    }

    /// The place of a column.
    pub(crate) fn column_at(&self, x: i64, z: i64) -> cg_column_at {
        let struct_size = size_of::<cg_column_at>() as u32;
        cg_column_at { struct_size, dimension: self.dimension, x, z, min_y: -4, max_y: 19 }
    }

    /// A column without content.
    pub(crate) fn column(&self, x: i64, z: i64) -> cg_column {
        cg_column {
            struct_size: size_of::<cg_column>() as u32,
            dimension: self.dimension,
            x,
            z,
            min_y: -4,
            max_y: 19,
            tick: 0,
            sections: std::ptr::null(),
            block_entities: std::ptr::null(),
            entities: std::ptr::null(),
            scheduled: std::ptr::null(),
            section_count: 0,
            block_entity_count: 0,
            entity_count: 0,
            scheduled_count: 0,
            kept: 0,
            damaged_sections: 0,
        }
    }

    /// An entity of the first kind, in chunk (0, 0, 0).
    pub(crate) fn pig(&self, id: [u8; 16]) -> cg_entity {
        cg_entity {
            id,
            kind: 0,
            dimension: self.dimension,
            block: cg_pos::default(),
            fraction: [0.0; 3],
            reserved: 0,
            nbt: cg_bytes::NONE,
        }
    }

    /// Saves a column whose section 0 is of one block.
    pub(crate) fn save(&self, x: i64, z: i64, block: u32) -> c_int {
        let numbers = [block];
        let layer = uniform(&numbers);
        let section = section(&layer);
        let column = cg_column { sections: &raw const section, section_count: 1, ..self.column(x, z) };
        let mut commit = 0;
        // SAFETY: all memory is of this function.
        let (result, message) = failed(|error| unsafe {
            cg_column_save(self.world, self.binding, &raw const column, 0, &raw mut commit, error)
        });
        assert!(result >= 0 && commit > 0, "{message}");
        result
    }

    /// The blocks of the cells of section 0, if the column is stored.
    pub(crate) fn load(&self, x: i64, z: i64) -> Option<Vec<u32>> {
        let (mut handle, mut view) = (9, std::ptr::null());
        let at = self.column_at(x, z);
        // SAFETY: all memory is of this function.
        let (result, message) = failed(|error| unsafe {
            cg_column_load(self.world, self.binding, &raw const at, &raw mut handle, &raw mut view, error)
        });
        if result == CG_ABSENT {
            assert_eq!((handle, view), (0, std::ptr::null()));
            return None;
        }
        assert_eq!(result, CG_OK, "{message}");
        // SAFETY: the view is lent until the handle is released.
        let column = unsafe { *view };
        let section = lent(column.sections, column.section_count)[0];
        let cells = lent(section.layers, 1)[0];
        let palette = lent(cells.palette, cells.palette_len as usize);
        let numbers = if cells.bits == 0 { vec![palette[0]] } else { palette.to_vec() };
        // SAFETY: it takes no memory.
        assert_eq!(unsafe { cg_release(handle) }, CG_OK);
        Some(numbers)
    }
}

/// Cells of one number.
pub(crate) fn uniform(number: &[u32; 1]) -> cg_cells {
    cg_cells { palette: number.as_ptr(), palette_len: 1, side_log2: 4, ..cg_cells::NONE }
}

/// A section of one layer at height 0.
pub(crate) fn section(layer: &cg_cells) -> cg_section {
    cg_section {
        y: 0,
        layer_count: 1,
        flags: 0,
        layers: layer,
        biomes: cg_cells::NONE,
        block_light: std::ptr::null(),
        sky_light: std::ptr::null(),
    }
}

/// A transaction.
pub(crate) fn new_tx(world: cg_handle) -> cg_handle {
    let mut tx = 0;
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_tx_new(world, &raw mut tx, e) });
    tx
}

/// Commits a transaction.
pub(crate) fn commit(tx: cg_handle) {
    // SAFETY: all memory is of this function.
    ok(|e| unsafe { cg_tx_commit(tx, 0, std::ptr::null_mut(), e) });
}
