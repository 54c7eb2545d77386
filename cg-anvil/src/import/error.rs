//! Why an import ended early.

use super::choices::Choices;
use crate::save::SaveError;

/// Why an import ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Path that is no save.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The world refused something.
    #[error(transparent)]
    Store(cg_store::Error),
    /// The world has chunks, entities or objects of a save that this import did not bring.
    #[error("the world is not empty; choose the merge mode `replace` or `keep`, or import into a new world")]
    NotEmpty,
    /// The world is of another game, whose blocks have other names.
    #[error("the world is of the game `{game}` and not of Java Edition; import into a new world")]
    OtherGame {
        /// The game.
        game: String,
    },
    /// The world holds half of an import of a save elsewhere. One that was moved is known if nothing else of it changed.
    #[error("the world holds an unfinished import of another save; import that again, or abandon it")]
    OtherImport,
    /// An import is continued in another way than it was begun.
    #[error("the unfinished import was begun {begun}; continue it so, or abandon it")]
    OtherChoices {
        /// How it was begun.
        begun: Box<Choices>,
    },
    /// Strays are to be dimensions of their own, and all but the overworld is to be left out.
    #[error(
        "strays as dimensions and the overworld as another dimension exclude each other: the second leaves out all but the overworld, and with it the strays; leave out one of them"
    )]
    StraysAsDimension,
    /// An import that another release began.
    #[error(
        "the unfinished import was begun by another release of cg, which imports saves in another way; finish it with that release, or abandon it"
    )]
    OtherRules,
    /// There is no import to abandon.
    #[error("no import into the world is unfinished")]
    Finished,
    /// Files are to be deleted, and nothing else replaced.
    #[error(
        "the merge mode `replace` of files deletes files of the world's save and goes only with the merge mode `replace`"
    )]
    DeletesOnly,
    /// The stored progress is damaged or of a newer release.
    #[error(
        "the progress of the unfinished import, property `{property}`, cannot be read: {why}; abandon the import"
    )]
    Progress {
        /// The property.
        property: String,
        /// Fault of the progress, in words.
        why: String,
    },
    /// The system gave no threads.
    #[error("cannot start threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// As asked for.
    #[error("stopped after {0} transactions; run it again to continue")]
    Stopped(u64),
}

impl From<cg_store::Error> for ImportError {
    fn from(error: cg_store::Error) -> Self {
        Self::Store(error)
    }
}
