//! Any bytes as a program of calls of the C interface. The fuzz target and a test of the interface both run it.
//!
//! Contents are arbitrary: handles, lengths that no memory has, sizes of structs, bits, orders, null pointers, texts. What a
//! pointer refers to is always there.

mod calls;
mod columns;
mod given;
mod padded;
mod shown;

use std::ptr::{null, null_mut};

use cherrygrove::*;

use given::Given;
use padded::{Padded, whole_error};

/// The most calls of a program.
const CALLS: usize = 64;
/// The most worlds.
const WORLDS: usize = 3;

/// Runs a program, then checks each of its worlds, and releases all handles.
///
/// # Panics
/// If a world does not verify, or a call breaks a rule of results.
pub(crate) fn run(bytes: &[u8]) {
    let mut program = Program { given: Given::new(bytes), handles: Vec::new(), worlds: 0 };
    program.begin();
    for _ in 0..CALLS {
        if program.given.is_end() {
            break;
        }
        program.call();
    }
    program.end();
}

struct Program<'b> {
    given: Given<'b>,
    /// All that were given out, also those that were released since.
    handles: Vec<cg_handle>,
    worlds: usize,
}

impl Program<'_> {
    /// A world with names, a binding, a column and a transaction.
    fn begin(&mut self) {
        let world = self.open(&cg_options { mode: 1, durability: 1, group_ms: 1, ..cg_options::DEFAULT });
        let blocks = given::BLOCKS.map(|name| cg_block { name: given::of(name), flags: 0, reserved: 0 });
        let entity = given::of("game:pig");
        let biome = cg_biome { name: given::of("game:plains"), number: 0, reserved: 0 };
        let desc = cg_binding_desc {
            struct_size: size_of::<cg_binding_desc>() as u32,
            block_count: blocks.len() as u32,
            blocks: blocks.as_ptr(),
            biomes: &raw const biome,
            entities: &raw const entity,
            biome_count: 1,
            entity_count: 1,
            placeholder: 2,
            air: 0,
            biome_placeholder: 0,
            layer_count: 2,
            order: 2,
            word_bits: 64,
            biome_side_log2: 2,
            widths: 0,
            reserved: 0,
        };
        let name = cg_name {
            name: given::of("game:world"),
            flags: 0,
            width: 0,
            components: null(),
            component_count: 0,
        };
        let [mut binding, mut tx, mut chunk, mut queue, mut cursor, mut walk] = [0; 6];
        // SAFETY: all memory is of this function.
        unsafe {
            assert_eq!(cg_names_register(world, 3, &raw const name, 1, &mut 0, null_mut()), CG_OK);
            assert_eq!(cg_binding_new(world, &raw const desc, &raw mut binding, null_mut()), CG_OK);
            assert_eq!(cg_tx_new(world, &raw mut tx, null_mut()), CG_OK);
            assert_eq!(cg_chunk_new(world, 1, &raw mut chunk, null_mut()), CG_OK);
            assert_eq!(cg_queue_new(world, 4, &raw mut queue, null_mut()), CG_OK);
            assert_eq!(cg_object_list(world, cg_bytes::NONE, &raw mut cursor, null_mut()), CG_OK);
            assert_eq!(cg_columns_walk(world, 0, &raw mut walk, null_mut()), CG_OK);
        }
        self.handles.extend([binding, tx, chunk, queue, cursor, walk]);
    }

    fn open(&mut self, options: &cg_options) -> cg_handle {
        let mut world = 0;
        // SAFETY: all memory is of this function.
        let opened = unsafe { cg_world_open(given::of(":memory:"), options, &raw mut world, null_mut()) };
        assert_eq!(opened, CG_OK);
        self.worlds += 1;
        self.handles.push(world);
        world
    }

    /// A handle: most often one that was given out, of any kind.
    fn handle(&mut self) -> cg_handle {
        match self.given.byte() {
            0 => 0,
            1 => self.given.number(),
            at => {
                let known = self.handles[usize::from(at) % self.handles.len()];
                match at {
                    250.. => known.wrapping_add(1),
                    _ => known,
                }
            }
        }
    }

    /// A handle of a kind, if there is one.
    fn of_kind(&mut self, kind: u64) -> cg_handle {
        let at = self.given.byte();
        let of_kind: Vec<cg_handle> =
            self.handles.iter().copied().filter(|handle| handle >> 56 == kind).collect();
        match of_kind.len() {
            0 => self.handle(),
            _ if at > 240 => self.handle(),
            // Most often the newest one.
            count if at > 80 => of_kind[count - 1],
            count => of_kind[usize::from(at) % count],
        }
    }

    fn world(&mut self) -> cg_handle {
        self.of_kind(1)
    }

    fn binding(&mut self) -> cg_handle {
        self.of_kind(2)
    }

    fn tx(&mut self) -> cg_handle {
        self.of_kind(5)
    }

    /// One call.
    fn call(&mut self) {
        let mut error = self.given.error();
        let (mut out, mut number, mut count, mut lent) = (0, 0, 0, cg_bytes::NONE);
        let result = self.run(error.pointer(), &mut out, &mut number, &mut count, &mut lent);
        assert!((-15..=3).contains(&result) && result != CG_INTERNAL, "{result}: {}", error.message());
        if out != 0 {
            assert_eq!(result, CG_OK, "a handle was given with {result}");
            self.handles.push(out);
        }
        if !lent.ptr.is_null() {
            // SAFETY: the library lends this many bytes, and nothing was called since.
            shown::bytes(unsafe { std::slice::from_raw_parts(lent.ptr, lent.len) });
        }
    }

    fn end(mut self) {
        let all = std::mem::take(&mut self.handles);
        for world in all.iter().filter(|handle| *handle >> 56 == 1) {
            let (mut json, mut lent) = (0, cg_bytes::NONE);
            // SAFETY: all memory is of this function.
            unsafe {
                let error = &mut Padded::of(whole_error());
                let verified = cg_world_verify(*world, 1, &raw mut json, error.pointer_mut());
                if verified == CG_OK {
                    assert_eq!(cg_bytes_of(json, &raw mut lent, null_mut()), CG_OK);
                    let found = std::slice::from_raw_parts(lent.ptr, lent.len);
                    assert!(found.starts_with(b"{\"problems\":[],"), "{}", String::from_utf8_lossy(found));
                    assert_eq!(cg_release(json), CG_OK);
                } else {
                    assert_eq!(verified, -12, "{}", error.value().kind);
                }
            }
        }
        for handle in all.into_iter().rev() {
            // SAFETY: it takes no memory.
            let released = unsafe { cg_release(handle) };
            assert!([CG_OK, -12].contains(&released), "{released}");
        }
    }
}
