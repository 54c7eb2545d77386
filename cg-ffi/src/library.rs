//! What the library is: its version, its results, and the end of handles.

use std::ffi::c_int;

use cg_store::ErrorKind;

use crate::call::{call, quiet, unreported};
use crate::error::{CG_OK, Fault, code_of};
use crate::handle;
use crate::text::lend_text;
use crate::types::{CG_ABI_VERSION, cg_error, cg_handle, cg_str};

const BUILD: &str = concat!(
    "cherrygrove ",
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("CG_PROFILE"),
    ", ",
    env!("CG_TARGET"),
    ")"
);

/// The version of the header. See there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_abi_version() -> u32 {
    CG_ABI_VERSION
}

/// Compares versions of the header. See there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_abi_check(built_for: u32, error: *mut cg_error) -> c_int {
    // SAFETY: the caller keeps the header's rules of memory.
    unsafe {
        call("cg_abi_check", error, || {
            let [major, minor] = [built_for >> 16, built_for & 0xffff];
            let [ours_major, ours_minor] = [CG_ABI_VERSION >> 16, CG_ABI_VERSION & 0xffff];
            // Before version 1 each minor number is a version of its own.
            if major == ours_major && (major > 0 || minor == ours_minor) {
                return Ok(CG_OK);
            }
            let message = format!(
                "the program was compiled for version {major}.{minor} of cherrygrove.h, and this library ({BUILD}) has \
                 version {ours_major}.{ours_minor}; use the library of that version, or compile the program again"
            );
            Err(Fault::of(ErrorKind::Unsupported, message))
        })
    }
}

/// The release. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_build_info() -> cg_str {
    lend_text(BUILD)
}

/// The code of a result. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_kind_code(kind: c_int) -> cg_str {
    quiet("cg_kind_code", lend_text(""), || lend_text(code_of(kind)))
}

/// Ends a handle. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_release(handle: cg_handle) -> c_int {
    unreported("cg_release", || {
        handle::release(handle)?;
        Ok(CG_OK)
    })
}
