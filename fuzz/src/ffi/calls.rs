//! Each function of the header, as a program calls it.

use std::ffi::c_int;
use std::ptr::null;

use cherrygrove::*;

use super::{Program, WORLDS, given, shown};

impl Program<'_> {
    #[expect(clippy::too_many_lines, reason = "a line for each function of the header")]
    pub(super) fn run(
        &mut self,
        e: *mut cg_error,
        out: &mut cg_handle,
        number: &mut u64,
        count: &mut usize,
        lent: &mut cg_bytes,
    ) -> c_int {
        let (dimension, small) = (self.given.small(), self.given.small());
        // SAFETY: what `given` makes is valid for the call, and so are the places for answers.
        unsafe {
            match self.given.byte() % 64 {
                0 => cg_release(self.handle()),
                1 => cg_bytes_of(self.of_kind(9), lent, e),
                2 => {
                    let mut buffer = [0_u8; 64];
                    cg_log_next(buffer.as_mut_ptr().cast(), self.given.byte().min(64).into(), count, &mut 0)
                }
                3 if self.worlds < WORLDS => {
                    let options =
                        cg_options { mode: small, durability: dimension, group_ms: 1, ..cg_options::DEFAULT };
                    let result =
                        cg_world_open(self.given.path(), self.given.sized(options).pointer(), out, e);
                    self.worlds += usize::from(result == CG_OK);
                    result
                }
                4 => cg_world_plan(self.given.path(), null(), out, e),
                5 if self.given.byte() < 16 => cg_world_close(self.world(), e),
                6 => cg_world_flush(self.world(), e),
                7 => cg_world_resume(self.world(), e),
                8 => {
                    let mut info = self.given.place::<cg_world_info>();
                    cg_world_info_of(self.world(), info.pointer_mut(), e)
                }
                9 => cg_world_checkpoint(self.world(), given::of("/dev/null/world"), 0, e),
                10 => cg_world_verify(self.world(), small as c_int, out, e),
                11 => {
                    let mut usage = self.given.place::<cg_usage>();
                    cg_world_usage(self.world(), usage.pointer_mut(), e)
                }
                12 => {
                    let players = self.given.players();
                    let (first, len) = self.given.array(&players);
                    let mut report = self.given.place::<cg_tick_report>();
                    cg_tick(self.world(), self.given.position(), first, len, 50, report.pointer_mut(), e)
                }
                13 => cg_keep_loaded(self.world(), dimension, self.given.area().pointer(), out, e),
                14 => {
                    let mut values = [0; 64];
                    cg_metrics(self.world(), values.as_mut_ptr(), self.given.byte().min(64).into(), e)
                }
                15 => {
                    let names = self.given.names();
                    let mut ids = [0; 4];
                    cg_names_register(
                        self.world(),
                        self.given.below(5).into(),
                        names.as_ptr(),
                        names.len(),
                        ids.as_mut_ptr(),
                        e,
                    )
                }
                16 => {
                    let names = [self.given.text(), self.given.text()];
                    let mut ids = [0; 2];
                    cg_names_find(
                        self.world(),
                        self.given.below(5).into(),
                        names.as_ptr(),
                        2,
                        ids.as_mut_ptr(),
                        e,
                    )
                }
                17 => cg_name_of(self.world(), self.given.below(5).into(), self.given.id(), out, e),
                18 => cg_names_count(self.world(), self.given.below(5).into(), number, e),
                19 => {
                    let desc = self.given.desc();
                    cg_binding_new(self.world(), desc.pointer(), out, e)
                }
                20 => {
                    let mut ids = [0; 8];
                    cg_binding_ids(self.binding(), ids.as_mut_ptr(), self.given.below(9).min(8).into(), e)
                }
                21 => cg_binding_unknown(self.binding(), out, e),
                22 | 23 => {
                    let (at, mut view) = (self.given.column_at(), null());
                    let result = if small & 1 == 0 {
                        cg_column_load(self.world(), self.binding(), at.pointer(), out, &raw mut view, e)
                    } else {
                        cg_column_peek(self.world(), self.binding(), at.pointer(), out, &raw mut view, e)
                    };
                    seen(view);
                    result
                }
                24..=31 => {
                    let column = self.given.column();
                    let (world, binding, tx) = (self.world(), self.binding(), self.tx());
                    match small % 3 {
                        0 => cg_column_save(world, binding, column.pointer(), dimension & 1, number, e),
                        1 => cg_column_submit(world, binding, column.pointer(), dimension & 1, e),
                        _ => cg_tx_column(tx, binding, column.pointer(), dimension & 1, e),
                    }
                }
                32 => cg_columns_walk(self.world(), dimension, out, e),
                33 => {
                    let mut places = [std::mem::zeroed::<cg_column_place>(); 4];
                    cg_columns_next(
                        self.of_kind(13),
                        places.as_mut_ptr(),
                        self.given.byte().min(4).into(),
                        count,
                        e,
                    )
                }
                34 => {
                    let mut view = null();
                    cg_settings_load(self.world(), out, &raw mut view, e)
                }
                35 => cg_tx_new(self.world(), out, e),
                36..=38 => cg_tx_commit(self.tx(), self.given.below(6).into(), number, e),
                39 => cg_tx_submit(self.tx(), e),
                40 => cg_tx_expect_chunk(self.tx(), dimension, self.given.pos(), u64::from(small), e),
                41 => cg_tx_expect_entity(self.tx(), self.given.key().as_ptr(), u64::from(small), e),
                42 => cg_tx_chunk(self.tx(), dimension, self.given.pos(), self.of_kind(4), e),
                43 => cg_tx_delete_chunk(self.tx(), dimension, self.given.pos(), e),
                44 => cg_tx_set_block(self.tx(), dimension, self.given.pos(), self.given.id(), e),
                45 => {
                    let (pos, id, bytes) = (self.given.pos(), self.given.id(), self.given.bytes());
                    cg_tx_set_component(self.tx(), dimension, pos, small as u8, id, bytes, e)
                }
                46 => cg_tx_set_side(
                    self.tx(),
                    dimension,
                    self.given.pos(),
                    self.given.id(),
                    self.given.bytes(),
                    e,
                ),
                47 => {
                    let (binding, entity) = (self.binding(), self.given.entity());
                    let binding = if small & 1 == 0 { binding } else { 0 };
                    cg_tx_entity_put(self.tx(), binding, &raw const entity, self.given.below(2).into(), e)
                }
                48 => cg_tx_entity_delete(self.tx(), self.given.key().as_ptr(), e),
                49 => {
                    let (key, id, bytes) = (self.given.key(), self.given.id(), self.given.bytes());
                    cg_tx_entity_component(self.tx(), key.as_ptr(), id, bytes, e)
                }
                50 => cg_tx_property(self.tx(), self.given.text(), self.given.bytes(), e),
                51 => {
                    let settings = self.given.settings();
                    cg_tx_settings(self.tx(), settings.pointer(), e)
                }
                52 if small & 1 == 0 => {
                    cg_tx_object_put(self.tx(), self.given.bytes(), self.given.bytes(), e)
                }
                52 => cg_tx_object_delete(self.tx(), self.given.bytes(), e),
                53 if small & 1 == 0 => {
                    let record = self.given.record();
                    cg_tx_record_put(self.tx(), &raw const record, e)
                }
                53 => cg_tx_record_delete(self.tx(), self.given.key().as_ptr(), e),
                54 => {
                    let (mut view, binding, key) = (null(), self.binding(), self.given.key());
                    let binding = if small & 1 == 0 { binding } else { 0 };
                    cg_entity_get(self.world(), binding, key.as_ptr(), out, &raw mut view, number, e)
                }
                55 => cg_entity_component(self.of_kind(11), self.given.id(), lent, e),
                56 if small & 1 == 0 => cg_property_get(self.world(), self.given.text(), out, e),
                56 => cg_object_get(self.world(), self.given.bytes(), out, &mut 0, e),
                57 => {
                    let (world, binding) = (self.world(), self.binding());
                    match small % 4 {
                        0 => cg_object_list(world, self.given.bytes(), out, e),
                        1 => cg_records_in(world, dimension, self.given.area().pointer(), out, e),
                        2 => cg_property_list(world, self.given.text(), out, e),
                        _ => cg_entities_detached(world, binding, out, e),
                    }
                }
                58 => {
                    let mut rows = [std::mem::zeroed::<cg_row>(); 3];
                    let cap = self.given.byte().min(3);
                    cg_cursor_next(self.of_kind(6), rows.as_mut_ptr(), cap.into(), count, e)
                }
                59 => {
                    let mut view = null();
                    cg_record_get(self.world(), self.given.key().as_ptr(), out, &raw mut view, e)
                }
                60 if small & 1 == 0 => {
                    cg_chunk_load(self.world(), dimension, self.given.pos(), out, number, e)
                }
                60 => cg_chunk_new(self.world(), self.given.id(), out, e),
                61 => self.chunk(small, e, number, count, lent),
                62 => cg_queue_new(self.world(), small, out, e),
                63 => self.queue(small, e, count),
                _ => cg_abi_check(self.given.number() as u32, e),
            }
        }
    }

    /// # Safety
    /// `e` is valid.
    unsafe fn chunk(
        &mut self,
        small: u32,
        e: *mut cg_error,
        number: &mut u64,
        count: &mut usize,
        lent: &mut cg_bytes,
    ) -> c_int {
        let (chunk, cell, id) = (self.of_kind(4), self.given.cell(), self.given.id());
        // SAFETY: as above.
        unsafe {
            match small % 9 {
                0 => cg_chunk_cells(chunk, small / 9, vec![0; 4096].as_mut_ptr(), 4096, e),
                1 => cg_chunk_set_cells(chunk, small / 9, vec![id; 4096].as_ptr(), 4096, e),
                2 => cg_chunk_block(chunk, cell, number, e),
                3 => cg_chunk_set_block(chunk, cell, id, e),
                4 => cg_chunk_component(chunk, cell, id, lent, e),
                5 => cg_chunk_set_component(chunk, cell, id, self.given.bytes(), e),
                6 => {
                    let mut all = null();
                    let result = cg_chunk_components(chunk, &raw mut all, count, e);
                    if result == CG_OK && *count > 0 {
                        let all = std::slice::from_raw_parts(all, *count);
                        for one in all {
                            shown::bytes(std::slice::from_raw_parts(one.bytes.ptr, one.bytes.len));
                        }
                    }
                    result
                }
                7 => cg_chunk_side(chunk, id, lent, e),
                _ => cg_chunk_set_side(chunk, id, self.given.bytes(), e),
            }
        }
    }

    /// # Safety
    /// `e` is valid.
    unsafe fn queue(&mut self, small: u32, e: *mut cg_error, count: &mut usize) -> c_int {
        let (queue, tag) = (self.of_kind(7), u64::from(small));
        // SAFETY: as above.
        unsafe {
            match small % 4 {
                0 => {
                    let at = self.given.column_at();
                    cg_queue_load(queue, self.binding(), at.pointer(), tag, e)
                }
                1 => cg_queue_commit(queue, self.tx(), self.given.below(6).into(), tag, e),
                2 => cg_queue_cancel(queue, tag),
                _ => {
                    let mut done = [std::mem::zeroed::<cg_done>(); 4];
                    let cap = self.given.byte().min(4);
                    let result = cg_queue_wait(queue, done.as_mut_ptr(), cap.into(), count, 2, e);
                    for done in &done[..*count] {
                        seen(done.view);
                        self.handles
                            .extend([done.column, done.message].into_iter().filter(|handle| *handle != 0));
                    }
                    result
                }
            }
        }
    }
}

/// Reads all that a view lends.
fn seen(view: *const cg_column) {
    if view.is_null() {
        return;
    }
    // SAFETY: the library lends it, and its handle was not released.
    unsafe { shown::column(&*view) };
}
