//! Remedies for a set-up that failed for a reason outside the sources.

use std::path::Path;

use anyhow::Error;

/// Whether a message is about a full disk.
pub(super) fn is_disk_full(message: &str) -> bool {
    ["No space left on device", "Disk quota exceeded"].iter().any(|text| message.contains(text))
}

/// The end of a log, as long as a screen.
pub(super) fn tail(log: &str) -> String {
    let tail: Vec<_> = log.lines().rev().take(40).collect();
    tail.into_iter().rev().collect::<Vec<_>>().join("\n")
}

/// Puts a sentence that says what to do before an error whose cause is known.
pub(super) fn explain(error: Error, cache: &Path) -> Error {
    match remedy(&format!("{error:#}"), cache) {
        Some(remedy) => error.context(remedy),
        None => error,
    }
}

/// The texts are those of cargo, the compilers and the standard library.
fn remedy(message: &str, cache: &Path) -> Option<String> {
    const NO_NETWORK: [&str; 3] = ["failed to download", "Could not resolve host", "failed to get `"];
    if is_disk_full(message) {
        let cache = cache.display();
        return Some(format!(
            "the disk of {cache} is full: free 1 GB there, or set CG_CACHE_DIR to a folder on another disk"
        ));
    }
    NO_NETWORK.iter().any(|text| message.contains(text)).then(|| {
        "cargo could not download a crate: connect to the network, or run `cargo fetch` first where there is one"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{remedy, tail};

    #[test]
    fn a_full_disk_and_a_missing_network_have_a_remedy() {
        let of = |message| remedy(message, Path::new("/c")).unwrap_or_default();
        assert!(
            of("cannot copy a: No space left on device (os error 28)").contains("the disk of /c is full")
        );
        assert!(of("error: failed to download from `https://x`").contains("cargo fetch"));
        assert!(of("[6] Could not resolve host: index.crates.io").contains("cargo fetch"));
        assert_eq!(of("a.cc:1:2: error: no"), "");
    }

    #[test]
    fn a_tail_is_the_last_lines_in_order() {
        let log: String = (0..100).map(|line| format!("{line}\n")).collect();
        let tail = tail(&log);
        assert!(tail.starts_with("60\n61\n") && tail.ends_with("\n99"), "{tail}");
    }
}
