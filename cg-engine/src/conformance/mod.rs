//! Tests of what every engine promises, which run over any engine.
//!
//! An engine's own tests call [`run_all`] with a function that creates the engine. Each test gets a fresh engine. It
//! panics with what it found if the engine breaks a promise of the [trait](Engine).
//!
//! ```
//! use cg_engine::{MemEngine, conformance};
//! conformance::run_all(|| MemEngine::new().with_max_batch_bytes(1 << 20));
//! ```
//!
//! An engine whose rows other processes may have open passes the tests of [`shared`] too.
//!
//! [`Counting`] counts the calls that a user makes to an engine. [`remote`] is an engine over rows that others may have
//! open too.

mod commits;
mod counting;
mod life;
mod load;
mod reads;
pub mod remote;
mod rows;
pub mod shared;
mod threads;

use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::Family;

pub use counting::{Call, Calls, Counter, Counting};

use super::{Batch, CommitSeq, Engine, KeyRange, Level, Readable, ReadableExt as _, Stamp};

const SPACE: Space = Space::Object;

/// Runs every test over engines that `make` creates. Each must be empty and separate from the others.
///
/// # Panics
/// If the engine breaks a promise.
pub fn run_all<E: Engine>(make: impl Fn() -> E) {
    rows::an_empty_engine_has_no_rows(&make());
    rows::a_row_of_any_family_is_noticed(&make());
    rows::keys_sort_as_unsigned_bytes(&make());
    rows::families_are_apart(&make());
    rows::operations_apply_in_order(&make());
    rows::a_range_is_deleted_up_to_its_end(&make());
    commits::frames_get_their_version(&make());
    commits::sequences_rise_by_one_and_are_stored(&make());
    commits::a_rearrangement_takes_no_sequence(&make());
    commits::a_run_takes_the_numbers_that_it_was_given(&make());
    commits::a_run_with_a_wrong_number_writes_nothing(&make());
    commits::a_conflict_writes_nothing(&make());
    commits::guards_see_versions_and_absence(&make());
    commits::a_batch_over_the_limit_writes_nothing(&make());
    reads::many_keys_are_answered_in_their_order(&make());
    reads::keys_that_differ_in_their_last_byte_are_told_apart(&make());
    reads::parts_of_rows_are_cut_out(&make());
    reads::scans_keep_to_their_bounds(&make());
    reads::a_scan_ends_at_its_limit(&make());
    reads::a_scan_resumes_behind_a_key(&make());
    reads::a_scan_stops_and_may_commit(&make());
    reads::a_scan_of_few_large_rows_is_of_one_state(&make());
    reads::a_snapshot_does_not_move(&make());
    threads::readers_see_whole_batches(&make());
    threads::committers_do_not_lose_each_other(&make());
    threads::guarded_increments_add_up(&make());
    life::a_sync_covers_what_was_committed(&make());
    life::a_commit_is_durable_at_once_where_levels_are_one(&make());
    life::flushing_and_compacting_change_no_row(&make());
    life::usage_lists_every_family(&make());
    life::a_closed_engine_refuses(&make());
    load::loaded_rows_are_the_same(&make(), &make());
    load::rows_that_cannot_be_loaded_are_refused(&make());
}

fn row(payload: &[u8]) -> Draft {
    Draft::plain(Codec::None, 0, |out| out.extend_from_slice(payload))
}

fn put(batch: &mut Batch, key: &[u8], payload: &[u8]) {
    batch.put(SPACE, key, row(payload), Stamp::Commit);
}

#[track_caller]
fn commit(engine: &dyn Engine, batch: Batch) -> CommitSeq {
    engine.commit(batch, &[], Level::Process).expect("commits")
}

#[track_caller]
fn put_all(engine: &dyn Engine, keys: &[&[u8]]) {
    let mut batch = Batch::new();
    for key in keys {
        put(&mut batch, key, b"");
    }
    commit(engine, batch);
}

#[track_caller]
fn keys(view: &dyn Readable, family: Family, range: KeyRange<'_>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let visit = |key: &[u8], _: &[u8]| {
        keys.push(key.to_vec());
        ControlFlow::<()>::Continue(())
    };
    assert_eq!(view.scan(family, range, visit).expect("scans"), None);
    keys
}

#[track_caller]
fn payload(view: &dyn Readable, key: &[u8]) -> Option<Vec<u8>> {
    let stored = view.get(SPACE, key).expect("reads")?;
    Some(FrameView::open(SPACE, key, &stored).expect("is sealed").payload().to_vec())
}

#[track_caller]
fn payloads(view: &dyn Readable, keys: &[(Space, &[u8])]) -> Vec<Option<Vec<u8>>> {
    let found = view.get_many(keys).into_iter().zip(keys);
    let one = |stored: &[u8], (space, key): &(Space, &[u8])| {
        FrameView::open(*space, key, stored).expect("is sealed").payload().to_vec()
    };
    found.map(|(stored, key)| stored.expect("reads").map(|stored| one(&stored, key))).collect()
}

#[track_caller]
fn versions(view: &dyn Readable, keys: &[(Space, &[u8])]) -> Vec<Option<u64>> {
    let found = view.get_many(keys).into_iter();
    found.map(|stored| cg_format::frame::version_of(&stored.expect("reads")?)).collect()
}

#[track_caller]
fn version(view: &dyn Readable, key: &[u8]) -> Option<u64> {
    versions(view, &[(SPACE, key)]).remove(0)
}
