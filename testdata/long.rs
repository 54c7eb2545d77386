//! The sizes of tests that have a long form.

/// The usual size of a test, or the one of its long form where `CG_LONG_TESTS` is set, as by `cargo xtask ci --full`.
pub(crate) fn size<T>(usual: T, long: T) -> T {
    if std::env::var_os("CG_LONG_TESTS").is_some() { long } else { usual }
}
