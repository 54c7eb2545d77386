//! The segmented world of an archive of one.

use cg_layers::SegmentedWorld;
use cg_store::error::ArchiveError;
use cg_store::{Error, OpenError};

use super::{Args, Input, There};
use crate::args::options;
use crate::output::{Failure, Outcome, Output};
use crate::place::Place;

pub(super) fn run(args: &Args, mut file: Input, out: &Output) -> Result<Outcome, Failure> {
    let Place::Directory(to) = &args.to else {
        return Err(Failure::refused(format!(
            "{} is the archive of a segmented world, which is restored into a directory",
            args.file.display()
        )));
    };
    let is_finished = to.join("root").is_dir();
    if !is_finished && to.join("root.unfinished").is_dir() {
        if !args.resume {
            return Err(Failure::refused(format!(
                "{} holds a part of a segmented world, whose making was cut short; --resume continues a restore",
                to.display()
            )));
        }
    } else if !(is_finished && args.resume) && There::find(&args.to)? != There::Nothing {
        return Err(There::refusal(&args.to).into());
    }
    let restored = file.watched(out, |from, show| SegmentedWorld::restore(from, to, &options(), show));
    match restored {
        Ok(copied) => args.print(copied, out),
        Err(ArchiveError::Store(Error::Open(OpenError::HalfCreated { .. } | OpenError::NotEmpty { .. })))
            if !is_finished =>
        {
            Err(Failure::refused(format!(
                "{} holds a part of another world; delete the directory, and give the archive once more",
                to.display()
            )))
        }
        Err(ArchiveError::Store(Error::Open(OpenError::NotEmpty { .. }))) => {
            Err(There::refusal(&args.to).into())
        }
        Err(error) => Err(args.failure(error)),
    }
}
