//! A picture as a new file.

use std::io::{self, BufWriter, IntoInnerError, Write as _};
use std::path::Path;

use cg_anvil::new_file::NewFile;
use cg_map::Image;

use crate::output::Failure;

/// Refuses the name of a file that is there, before the work that makes the picture.
pub(crate) fn refuse_existing(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let name = path.display();
    Err(Failure::refused(format!("{name} is there already; delete it or choose another name")))
}

/// Writes the bytes of a picture into a new file.
///
/// # Errors
/// As [`save_png`].
pub(crate) fn save_bytes(bytes: &[u8], path: &Path) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes)?;
    file.finish()
}

/// Writes a picture as a PNG into a new file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the file is there, and what the disk says. Nothing is left then.
pub(crate) fn save_png(image: &Image, path: &Path) -> io::Result<()> {
    let mut file = BufWriter::new(NewFile::create(path)?);
    image.write_png(&mut file)?;
    file.into_inner().map_err(IntoInnerError::into_error)?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_left_alone() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("map.png");
        std::fs::write(&path, "mine").expect("it is writable");
        let error = save_png(&Image::filled(1, 1, [0; 3]), &path).expect_err("the file exists");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).expect("it is there"), b"mine");
    }
}
