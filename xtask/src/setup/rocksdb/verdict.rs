//! The verdict on the end of a compiler: only the compiler's own complaint about the source is a reason to compile
//! otherwise.

use crate::setup::remedy::is_disk_full;

/// How one run of the compiler ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The object is there.
    Compiled,
    /// The source is refused, at a place that the compiler names.
    Rejected,
    /// It was killed, or got no memory. Says nothing about the source.
    Killed,
    /// It could not write.
    DiskFull,
    /// Anything else: no compiler, wrong flags.
    Broken,
}

/// Messages of g++ and clang in the language `C`, and of the assembler and the linker with them.
const KILLED: [&str; 9] = [
    "signal terminated program",
    "internal compiler error: Killed",
    "unable to execute command: Killed",
    "out of memory",
    "Cannot allocate memory",
    "virtual memory exhausted",
    "memory exhausted",
    "std::bad_alloc",
    "Resource temporarily unavailable",
];

/// Decides; `code` is `None` for a process that a signal ended.
pub(super) fn judge(code: Option<i32>, errors: &str) -> Verdict {
    match code {
        Some(0) => Verdict::Compiled,
        _ if is_disk_full(errors) => Verdict::DiskFull,
        // A shell or a wrapper ends with 128 and more when a signal ended what it ran.
        None | Some(128..) => Verdict::Killed,
        Some(_) if KILLED.iter().any(|text| errors.contains(text)) => Verdict::Killed,
        Some(_) if complaint(errors).is_some() => Verdict::Rejected,
        Some(_) => Verdict::Broken,
    }
}

/// The first line in which the compiler or the assembler refuses the source.
pub(super) fn complaint(errors: &str) -> Option<&str> {
    errors.lines().find(|line| {
        let mut marks = [": error: ", ": fatal error: ", ": Error: ", ": internal compiler error: "].iter();
        marks.any(|mark| line.split_once(mark).is_some_and(|(place, _)| is_place(place)))
    })
}

/// Whether the text ends as `file:12` or `file:12:3` does; a message of the driver begins with a program's name.
fn is_place(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::{Verdict, complaint, judge};

    #[track_caller]
    fn check(code: Option<i32>, errors: &str, expected: Verdict) {
        assert_eq!(judge(code, errors), expected, "{code:?} {errors}");
    }

    #[test]
    fn a_complaint_about_the_source_is_a_rejection() {
        for errors in [
            "In file included from <stdin>:2:\nrocksdb/b.cc:1:12: error: redefinition of 'int x'\n",
            "<stdin>:1:10: fatal error: rocksdb/a.cc: No such file or directory\n",
            "{standard input}:9: Error: symbol `again' is already defined\n",
            "rocksdb/b.cc:7:1: internal compiler error: Segmentation fault\n",
        ] {
            check(Some(1), errors, Verdict::Rejected);
            check(Some(0), errors, Verdict::Compiled);
        }
        let warned = "a.cc:1:2: warning: unused\nb.cc:3: error: no\nc.cc:4: error: no\n";
        assert_eq!(complaint(warned), Some("b.cc:3: error: no"));
    }

    #[test]
    fn a_compiler_that_was_killed_rejects_nothing() {
        check(None, "", Verdict::Killed);
        check(None, "a.cc:1:2: error: half a message\n", Verdict::Killed);
        check(Some(137), "", Verdict::Killed);
        for errors in [
            "c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n",
            "c++: internal compiler error: Killed (program cc1plus)\n",
            "cc1plus: out of memory allocating 65536 bytes after a total of 1000 bytes\n",
            "virtual memory exhausted: Cannot allocate memory\n",
            "a.cc:1:1: fatal error: out of memory\n",
            "c++: fatal error: cannot execute 'cc1plus': vfork: Resource temporarily unavailable\n",
            "clang: error: unable to execute command: Killed\n",
        ] {
            check(Some(1), errors, Verdict::Killed);
        }
    }

    #[test]
    fn a_full_disk_rejects_nothing() {
        for errors in [
            "cc1plus: fatal error: error writing to /tmp/ccX.s: No space left on device\n",
            "a.cc:1:1: fatal error: cannot write: Disk quota exceeded\n",
        ] {
            check(Some(1), errors, Verdict::DiskFull);
            check(None, errors, Verdict::DiskFull);
        }
    }

    #[test]
    fn what_is_not_understood_rejects_nothing() {
        for errors in [
            "",
            "c++: error: unrecognized command-line option '-std=c++99'\n",
            "c++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory\n",
            "sh: 1: c++: not found\n",
        ] {
            check(Some(1), errors, Verdict::Broken);
        }
    }
}
