//! The independent reader: a script in another language judges what we wrote.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::report::Outcome;
use crate::setup::{Venv, ensure_python};

/// Runs `script` (relative to the workspace root) with `args`, in an environment of exactly the packages that
/// `xtask/requirements.txt` pins. `CG_WORLDS` is set for it, as an absolute path.
///
/// The script's contract: exit 0 when what it read is right, 1 with one line per difference on standard output.
///
/// # Errors
/// The script found a difference. That there is no Python, or that a package cannot be had, is the outcome `Missing`.
pub(crate) fn run<I>(context: &Context, script: &str, args: I) -> Result<Outcome>
where
    I: IntoIterator<Item: AsRef<OsStr>>,
{
    let Some(worlds) = context.worlds()? else {
        return Ok(Outcome::Missing(format!("{script} needs the real worlds, which are not here")));
    };
    let list = context.root.join("xtask/requirements.txt");
    let list = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let venv = ensure_python(context, "which the independent reader needs")
        .and_then(|()| Venv::ensure(context, &list));
    let venv = match venv {
        Ok(venv) => venv,
        Err(error) => return Ok(Outcome::Missing(format!("{script} cannot run: {error:#}"))),
    };
    let script = context.root.join(Path::new(script));
    let tool = venv.python().arg(script).args(args).env("CG_WORLDS", worlds);
    // A script imports others beside it, and the sources stay as they are.
    tool.env("PYTHONDONTWRITEBYTECODE", "1").dir(&context.root).run()?;
    Ok(Outcome::Passed)
}
