//! Go: the wrapper over the C interface, and the provider for dragonfly.

use anyhow::{Context as _, Result};

use super::library::Library;
use crate::context::Context;
use crate::process::Tool;
use crate::report::Outcome;

/// The oldest version that the module's `go.mod` takes.
const OLDEST: (u32, u32) = (1, 26);

/// How often the tests kill a server by themselves.
const USUAL_KILLS: u32 = 5;

/// Vets and tests.
pub(super) fn test(context: &Context, library: &Library, kills: u32) -> Result<Outcome> {
    if let Some(reason) = missing() {
        return Ok(Outcome::Missing(reason));
    }
    go(context, library)?.args(["vet", "./..."]).run()?;
    // Go remembers results, and does not see that the library is another one.
    go(context, library)?.args(["test", "-count=1", "./..."]).run()?;
    if kills != USUAL_KILLS {
        let tests = go(context, library)?.args(["test", "./dragonfly/killtest", "-timeout", "6h"]);
        tests.args(["-args", "-kills"]).arg(kills.to_string()).run()?;
    }
    Ok(Outcome::Passed)
}

/// Prints what a column costs beside dragonfly's own provider.
pub(super) fn bench(context: &Context, library: &Library) -> Result<Outcome> {
    if let Some(reason) = missing() {
        return Ok(Outcome::Missing(reason));
    }
    let bench = ["test", "./dragonfly", "-run", "^$", "-bench", "."];
    go(context, library)?.args(bench).run()?;
    Ok(Outcome::Passed)
}

fn go(context: &Context, library: &Library) -> Result<Tool> {
    let packages = library.folder.join("pkgconfig");
    let packages = packages.to_str().context("the path of the workspace is no UTF-8")?;
    Ok(Tool::new("go").dir(context.root.join("hosts/go")).env("PKG_CONFIG_PATH", packages))
}

fn missing() -> Option<String> {
    let install = format!("install Go {}.{} or later", OLDEST.0, OLDEST.1);
    if !Tool::new("pkg-config").arg("--version").succeeds() {
        return Some("no pkg-config on the path; install Debian's package pkg-config".into());
    }
    let Ok(version) = Tool::new("go").args(["env", "GOVERSION"]).capture() else {
        return Some(format!("no go on the path; {install}"));
    };
    let found = version.trim();
    (parse(found).is_none_or(|version| version < OLDEST)).then(|| format!("{found} is too old; {install}"))
}

/// The first two numbers of a version such as `go1.26.8`.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("go")?.split('.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?;
    let digits = minor.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(minor.len());
    Some((major, minor.get(..digits)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{OLDEST, parse};

    #[test]
    fn versions_are_compared_by_number() {
        let versions = ["go1.26.8", "go1.26", "go1.27rc1", "go2.0"].map(parse);
        assert_eq!(versions, [Some((1, 26)), Some((1, 26)), Some((1, 27)), Some((2, 0))]);
        assert!(parse("go1.9.2").is_some_and(|version| version < OLDEST));
        assert_eq!(["devel", "go1", "gox.y"].map(parse), [None; 3]);
    }
}
