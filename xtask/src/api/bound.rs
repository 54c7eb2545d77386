//! How many public items `cg-store` may have. The numbers may only go down; the aim of each is 40.

use anyhow::{Result, ensure};

use super::listing;

/// Methods of `World`: one more than the aim, because a host calls `World::refresh` in a loop (decision 95).
const WORLD_METHODS: usize = 41;

/// Names at the root of the crate, the prelude among them.
const ROOT_NAMES: usize = 41;

/// Compares a listing of `cg-store` with the numbers.
///
/// # Errors
/// There are more, or fewer: then the number is to be lowered.
pub(super) fn check(listing: &str) -> Result<()> {
    let counted = [
        ("methods of World", listing::methods(listing, "cg_store::World"), WORLD_METHODS),
        ("names at the root of cg-store", listing::names(listing, "cg_store"), ROOT_NAMES),
    ];
    let wrong = counted.iter().filter_map(|(what, count, allowed)| verdict(what, *count, *allowed));
    let wrong: Vec<_> = wrong.collect();
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn verdict(what: &str, count: usize, allowed: usize) -> Option<String> {
    match count {
        _ if count > allowed => Some(format!("{count} {what}, at most {allowed} are allowed")),
        _ if count < allowed => {
            Some(format!("{count} {what} instead of the {allowed} in xtask/src/api/bound.rs; lower it"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn a_bound_holds_for_its_exact_number() {
        assert_eq!(verdict("names", 7, 7), None);
        assert_eq!(verdict("names", 8, 7).as_deref(), Some("8 names, at most 7 are allowed"));
        let lower = "6 names instead of the 7 in xtask/src/api/bound.rs; lower it";
        assert_eq!(verdict("names", 6, 7).as_deref(), Some(lower));
    }
}
