//! The disk of the database.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use cg_bench::order::percentile;

use crate::failure::Failure;

/// The median time until 4 kB more of a file are on the disk.
///
/// # Errors
/// The disk.
pub(crate) fn fdatasync(folder: &Path, times: usize) -> Result<Duration, Failure> {
    let file = tempfile::Builder::new().prefix("fdatasync-").tempfile_in(folder)?;
    let mut open = OpenOptions::new().append(true).open(file.path())?;
    let mut all = Vec::new();
    for n in 0..times {
        open.write_all(&[n as u8; 4096])?;
        let begun = Instant::now();
        open.sync_data()?;
        all.push(begun.elapsed());
    }
    Ok(percentile(&mut all, 50.0))
}
