//! Whether a copy has the content of its world.

use cg_store::World;
use cg_store::engine::{CommitSeq, Engine as _};
use cg_store::verify::ContentHash;
use cg_store::view::Area;

use super::Args;
use crate::args::options;
use crate::output::{Failure, Output};
use crate::place::Place;

/// Result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// The content is equal.
    Equal(ContentHash),
    /// The world was written meanwhile, up to this commit.
    WentOn(CommitSeq),
}

impl Check {
    /// Compares the content of a copy of a commit with that of the world.
    pub(super) fn of(args: &Args, world: &World, commit: CommitSeq, out: &Output) -> Result<Self, Failure> {
        let Args { from, to, .. } = args;
        let options = options();
        let open = || to.open_read_only(World::builder().options(&options));
        let hash = |place: &Place, world: &World| {
            let hash = out.watch_chunks("chunks hashed", world, || world.content_hash(Area::World))?;
            hash.map_err(|error| {
                let failure = Failure::from(error);
                let message = format!(
                    "{to} holds the world as of commit {commit}, but {place} cannot be compared: {failure}; `cg verify` names all damage"
                );
                Failure::Known(failure.code(), message)
            })
        };
        let copy = hash(to, &args.wait.when_free(out, open)?)?;
        let original = hash(from, world)?;
        if original == copy {
            return Ok(Self::Equal(copy));
        }
        if let Place::Address(address) = from {
            let now = address.reader()?.last_commit();
            if now != commit {
                return Ok(Self::WentOn(now));
            }
        }
        Err(Failure::damaged(format!(
            "{to} is no copy of {from}: the content hash of commit {commit} is {original}, and that of the copy {copy}; delete the copy"
        )))
    }

    /// The hash of both. Warns if there is none.
    pub(super) fn hash(self, out: &Output) -> Option<String> {
        match self {
            Self::Equal(hash) => Some(hash.to_string()),
            Self::WentOn(commit) => {
                out.warn(&format!(
                    "the world was written while it was copied, it is at commit {commit}, so its content was not compared: run `cg verify` on the copy"
                ));
                None
            }
        }
    }
}
