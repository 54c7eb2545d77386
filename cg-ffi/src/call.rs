//! The frame of every function: no panic leaves it, and an error fills the caller's `cg_error`.

use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Fault;
use crate::types::cg_error;

/// Runs a function, and writes its error to the caller's struct.
///
/// # Safety
/// `error` is null or points to as many writable bytes as its first four say.
pub(crate) unsafe fn call(
    name: &str,
    error: *mut cg_error,
    run: impl FnOnce() -> Result<c_int, Fault>,
) -> c_int {
    match guard(name, run) {
        Ok(result) => result,
        Err(fault) => {
            // SAFETY: as the caller says.
            unsafe { fault.write(error) };
            fault.result
        }
    }
}

/// Runs a function that has no `cg_error`.
pub(crate) fn unreported(name: &str, run: impl FnOnce() -> Result<c_int, Fault>) -> c_int {
    guard(name, run).unwrap_or_else(|fault| fault.result)
}

/// Runs something that gives no result.
pub(crate) fn quiet<T>(name: &str, otherwise: T, run: impl FnOnce() -> T) -> T {
    guard(name, || Ok(run())).unwrap_or(otherwise)
}

fn guard<T>(name: &str, run: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    let run = || {
        panic_if_asked(name);
        run()
    };
    // What a panic leaves half done is not used again: locks are released, and a commit is whole or was not made.
    let fault = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(fault)) => fault,
        Err(panic) => {
            let why = message_of(&*panic).to_owned();
            tracing::error!("{name}: the library panicked: {why}");
            // A value that panics when it is dropped ends here too.
            let _dropped = catch_unwind(AssertUnwindSafe(|| drop(panic)));
            Fault::internal(format!("{name}: an error of the library: {why}; please report it"))
        }
    };
    if fault.is_cut() {
        tracing::warn!("{name}: {}", fault.message);
    }
    Err(fault)
}

fn message_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it says not why")
}

/// Panics in the function that the environment variable names, so that programs can test what they do then.
fn panic_if_asked(name: &str) {
    if cfg!(debug_assertions) {
        let is_asked = std::env::var("CG_TEST_PANIC").is_ok_and(|asked| asked == name);
        assert!(!is_asked, "CG_TEST_PANIC asks for it");
    }
}
