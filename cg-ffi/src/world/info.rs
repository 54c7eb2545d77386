//! What a world is, copies of it, and checks.

use std::ffi::c_int;

use cg_store::CheckpointFiles;
use cg_store::verify::{Finding, VerifyDepth};
use serde_json::{Value, json};

use super::options::number_of;
use super::{World, path_of};
use crate::call::call;
use crate::error::CG_OK;
use crate::handle;
use crate::memory::{Out, OutStruct};
use crate::text::Text;
use crate::types::{CG_ABI_VERSION, cg_error, cg_handle, cg_str, cg_usage, cg_world_info};

/// What a world is. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_info_of(
    world: cg_handle,
    out: *mut cg_world_info,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_info_of", error, || {
            let out = OutStruct::new(out, "out")?;
            let world = handle::find::<World>(world)?;
            let host = world.host()?;
            let store = host.world();
            let identity = store.identity();
            out.put(&cg_world_info {
                struct_size: 0,
                read_only: u32::from(world.is_read_only),
                id: identity.uuid.into_bytes(),
                incarnation: identity.incarnation.into_bytes(),
                last_commit: store.last_commit().get(),
                abi_version: CG_ABI_VERSION,
                durability: number_of(world.durability),
            });
            Ok(CG_OK)
        })
    }
}

/// Copies a world. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_checkpoint(
    world: cg_handle,
    directory: cg_str,
    copied: c_int,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_checkpoint", error, || {
            let world = handle::find::<World>(world)?;
            let directory = path_of(directory, "directory")?;
            let files = if copied == 0 { CheckpointFiles::Linked } else { CheckpointFiles::Copied };
            world.committed()?.world().checkpoint(directory, files)?;
            Ok(CG_OK)
        })
    }
}

/// Checks a world. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_verify(
    world: cg_handle,
    deep: c_int,
    json: *mut cg_handle,
    error: *mut cg_error,
) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_verify", error, || {
            let out = Out::new(json, "json")?;
            out.put(0);
            let world = handle::find::<World>(world)?;
            let depth = if deep == 0 { VerifyDepth::Quick } else { VerifyDepth::Full };
            let report = world.committed()?.world().verify(depth, |_| {})?;
            let problems: Vec<Value> = report.findings.iter().map(problem).collect();
            let rows: u64 = report.checked.values().sum();
            let text = json!({ "problems": problems, "rows": rows });
            out.put(handle::give(Text::of(text.to_string()))?);
            Ok(CG_OK)
        })
    }
}

fn problem(finding: &Finding) -> Value {
    let key: String = finding.key.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut problem = json!({ "what": finding.what, "family": finding.family.name(), "key": key });
    if let (Some(lost), Some(fields)) = (&finding.lost, problem.as_object_mut()) {
        let corner = |pos: cg_format::ChunkPos| json!([pos.x(), pos.y(), pos.z()]);
        fields.insert("dimension".into(), json!(lost.dimension.get()));
        fields.insert("min".into(), corner(lost.bounds.min()));
        fields.insert("max".into(), corner(lost.bounds.max()));
    }
    problem
}

/// What a world takes. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_world_usage(world: cg_handle, out: *mut cg_usage, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_world_usage", error, || {
            let out = OutStruct::new(out, "out")?;
            let world = handle::find::<World>(world)?;
            let host = world.host()?;
            let store = host.world();
            let usage = store.usage()?;
            let metrics = store.metrics();
            let files = usage.families.iter().map(|family| family.table_bytes + family.blob_bytes);
            let cache = metrics.cache.evictable_bytes + metrics.cache.pinned_bytes;
            out.put(&cg_usage {
                struct_size: 0,
                reserved: 0,
                bytes_on_disk: files.sum::<u64>() + usage.log_bytes,
                memory_bytes: usage.memory_bytes + cache + metrics.queued_bytes,
                free_bytes: metrics.free_bytes.unwrap_or(0),
            });
            Ok(CG_OK)
        })
    }
}
