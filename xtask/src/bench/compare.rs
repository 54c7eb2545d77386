//! `cargo xtask bench compare`: builds and starts the program that measures the store beside others.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::{Options, conditions, with_worlds};
use crate::context::Context;
use crate::{metadata, setup};

/// The feature that compiles all others to compare with.
const RIVALS: [&str; 2] = ["--features", "rivals"];
/// Names a checkout of BlazeDB.
const BLAZEDB: &str = "CG_BLAZEDB";

/// Runs it; it prints its own table and writes its report.
pub(super) fn run(context: &Context, options: &Options) -> Result<()> {
    let environment = setup::prepare(context)?;
    let tool = context.cargo().args(["run", "--release", "--package", "cg-bench", "--bin", "cg-compare"]);
    let tool = with_worlds(context, tool.args(RIVALS))?.args(["--", "run"]);
    let metadata = metadata::stated(context)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    let told = conditions(context, "at the beginning");
    let tool = tool.args(arguments(options)?).args([
        "--out",
        &format!("{target}/bench"),
        "--condition",
        told.trim(),
    ]);
    let tool = match checkout(env::var_os(BLAZEDB))? {
        Some(dir) => tool.env(BLAZEDB, dir),
        None => tool,
    };
    environment.apply(tool).run()
}

/// The folder of the checkout for a program that runs elsewhere.
fn checkout(named: Option<OsString>) -> Result<Option<PathBuf>> {
    let named = named.filter(|dir| !dir.is_empty());
    named
        .map(|dir| std::path::absolute(&dir).with_context(|| format!("{BLAZEDB}: {}", dir.display())))
        .transpose()
}

/// The program's arguments for the options.
fn arguments(options: &Options) -> Result<Vec<String>> {
    let mut arguments: Vec<String> = options.of.clone();
    if options.quick {
        arguments.push("--quick".to_owned());
    }
    for subject in &options.subject {
        arguments.extend(["--subject".to_owned(), subject.clone()]);
    }
    if let Some(old) = &options.compare {
        // The program runs elsewhere.
        let old = std::path::absolute(old).with_context(|| format!("no path: {}", old.display()))?;
        arguments.extend(["--compare".to_owned(), old.display().to_string()]);
    }
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::path::Path;

    use super::{Options, arguments, checkout};

    #[test]
    fn a_checkout_is_named_from_where_the_command_runs() {
        let here = env::current_dir().expect("a folder");
        assert_eq!(checkout(Some("a/b".into())).expect("a path"), Some(here.join("a/b")));
        assert_eq!(checkout(Some("/a".into())).expect("a path").as_deref(), Some(Path::new("/a")));
        assert_eq!([checkout(None), checkout(Some("".into()))].map(|dir| dir.expect("none")), [None, None]);
    }

    #[test]
    fn every_option_is_passed_on() {
        let options = Options {
            name: Some("compare".to_owned()),
            of: vec!["column".to_owned()],
            subject: vec!["ours".to_owned(), "LMDB".to_owned()],
            compare: Some("/tmp/old.json".into()),
            quick: true,
            no_run: false,
            record: false,
        };
        let told =
            ["column", "--quick", "--subject", "ours", "--subject", "LMDB", "--compare", "/tmp/old.json"];
        assert_eq!(arguments(&options).expect("a path"), told);
    }
}
