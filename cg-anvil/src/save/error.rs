//! Why a path is no save.

use std::io;
use std::path::PathBuf;

use super::forms::Form;
use super::server::ServerFolder;

/// Why a path is no save.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// Nothing that a save has.
    #[error(
        "{} is no save: neither a region file (.mca), nor a folder of them, nor a folder with a level.dat of Java Edition, region/, DIM-1/, DIM1/ or dimensions/ in it",
        .0.display()
    )]
    NotASave(PathBuf),
    /// The folder of a server.
    #[error("{0}")]
    Server(ServerFolder),
    /// A schematic.
    #[error(
        "{} is a schematic and no save; it is imported as a schematic",
        .0.display()
    )]
    Schematic(PathBuf),
    /// Chunks in another form, and no region file.
    #[error("{} holds {form}, which are not read; {}", path.display(), form.advice())]
    OtherForm {
        /// Path that was to be imported.
        path: PathBuf,
        /// The form.
        form: Form,
    },
    /// The overworld was asked for.
    #[error("{} holds no overworld that another dimension could be made of", .0.display())]
    NoOverworld(PathBuf),
    /// A name that a save has no folder for.
    #[error(
        "`{0}` is no name of a dimension: namespace:name of a-z 0-9 _ . - and / is wanted, with at most 255 bytes between slashes"
    )]
    DimensionName(String),
    /// A dimension has the name that strays are to have.
    #[error(
        "strays become a dimension `{name}`, and {} is of one of that name already; move that dimension's folder out of the save and import it by itself, or leave the strays out",
        path.display()
    )]
    StrayName {
        /// A file of the dimension.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// A folder or file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path that was read.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}
