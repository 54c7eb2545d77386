//! Rules for the text of a single source file.

/// The one place that knows RocksDB.
const ENGINE: &str = "cg-engine/src/";

/// Where code can be outside what the compiler checks: the engine, and the functions that programs in C call, with what calls
/// them as a program in C does.
const UNCHECKED: [&str; 3] = [ENGINE, "cg-ffi/", "fuzz/src/ffi"];

/// The tests that look at the engine's files from below, and damage them.
const ROCKS_TESTS: [&str; 3] = ["cg-engine/tests/", "cg-store/tests/", "cg-layers/tests/"];

/// The crate that measures us against bare RocksDB, so that its workloads name it.
const BENCH: &str = "cg-bench/";

/// The first line of a crate whose documentation begins with its README.
pub(super) const README: &str = "#![doc = include_str!(\"../README.md\")]\n";

/// The violations in the file at `path` (from the workspace root, with `/`), one line each.
pub(super) fn violations(path: &str, text: &str) -> Vec<String> {
    let mut violations = Vec::new();
    if !text.starts_with("//!") && !text.starts_with(README) {
        violations.push(format!("{path}:1: the first line is not `//!` and what this file is"));
    }
    // xtask has a module of that name and cannot have the crate: the figure of the layers says so.
    let knows_rocks =
        [ENGINE, BENCH, "xtask/"].iter().chain(&ROCKS_TESTS).any(|place| path.starts_with(place));
    for (index, line) in without_comments_and_strings(text).lines().enumerate() {
        let number = index + 1;
        if !knows_rocks && line.contains("rocksdb::") {
            violations.push(format!("{path}:{number}: only {ENGINE} may name rocksdb"));
        }
        let may_be_unchecked = UNCHECKED.iter().any(|place| path.starts_with(place));
        if !may_be_unchecked && (has_word(line, "unsafe") || line.contains("extern \"")) {
            let places = UNCHECKED.join(", ");
            violations
                .push(format!("{path}:{number}: `unsafe` and foreign functions belong in {places} only"));
        }
    }
    violations
}

/// Whether `word` stands in the line as a word of its own (`unsafe_code` holds no `unsafe`).
fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

/// The text with comments removed and strings emptied; lines stay where they are.
fn without_comments_and_strings(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = ' ';
    while let Some(next) = rest.chars().next() {
        let is_name = previous.is_alphanumeric() || previous == '_';
        let hidden = match next {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment_len(rest),
            '"' => string_len(rest),
            '\'' => char_len(rest),
            'r' if !is_name => raw_string_len(rest),
            _ => 0,
        };
        if hidden == 0 {
            kept.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            let (gone, after) = rest.split_at(hidden);
            if next != '/' {
                kept.push_str("\"\"");
            }
            kept.extend(gone.chars().filter(|c| *c == '\n'));
            rest = after;
        }
        previous = next;
    }
    kept
}

fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    let bytes = rest.as_bytes();
    let mut at = 0;
    while let Some(pair) = bytes.get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The length of a character literal, or 0 for a lifetime.
fn char_len(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest.get(3..).and_then(|tail| tail.find('\'')).map_or(0, |at| at + 4),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// The length of `r"…"` or `r#"…"#`, or 0 when this `r` begins something else.
fn raw_string_len(rest: &str) -> usize {
    let tail = &rest[1..];
    let hashes = tail.len() - tail.trim_start_matches('#').len();
    if !tail[hashes..].starts_with('"') {
        return 0;
    }
    let open = 1 + hashes + 1;
    let close = format!("\"{}", "#".repeat(hashes));
    rest[open..].find(&close).map_or(rest.len(), |at| open + at + close.len())
}

#[cfg(test)]
mod tests {
    use super::{violations, without_comments_and_strings};

    const HEAD: &str = "//! A file.\n";

    #[track_caller]
    fn check(path: &str, body: &str, expected: &[&str]) {
        assert_eq!(violations(path, &format!("{HEAD}{body}")), expected);
    }

    #[test]
    fn rocksdb_is_named_in_its_engine_only() {
        let body = "use rocksdb::DB;\n";
        check("cg-engine/src/rocks/mod.rs", body, &[]);
        check("cg-bench/benches/store.rs", body, &[]);
        let wrong = "cg-store/src/world.rs:2: only cg-engine/src/ may name rocksdb";
        check("cg-store/src/world.rs", body, &[wrong]);
    }

    #[test]
    fn foreign_and_unchecked_code_stays_where_it_belongs() {
        let wrong = "cg-format/src/a.rs:2: `unsafe` and foreign functions belong in cg-engine/src/, cg-ffi/, \
                     fuzz/src/ffi only";
        for body in
            ["fn f() { unsafe { g() } }\n", "extern \"C\" { fn g(); }\n", "extern \"system\" fn g() {}\n"]
        {
            check("cg-engine/src/rocks/log.rs", body, &[]);
            check("cg-ffi/tests/it/main.rs", body, &[]);
            check("cg-format/src/a.rs", body, &[wrong]);
        }
    }

    #[test]
    fn comments_strings_and_longer_words_are_no_code() {
        let body = "#![forbid(unsafe_code)]\n// rocksdb::DB, unsafe\nlet s = \"rocksdb::DB\"; let r = r#\"unsafe\"#;\n";
        check("cg-format/src/a.rs", body, &[]);
    }

    #[test]
    fn a_file_begins_with_what_it_is() {
        let wrong = "cg-cli/src/a.rs:1: the first line is not `//!` and what this file is";
        assert_eq!(violations("cg-cli/src/a.rs", "use std::fs;\n"), [wrong]);
        let readme = "#![doc = include_str!(\"../README.md\")]\nuse std::fs;\n";
        assert!(violations("cg-cli/src/a.rs", readme).is_empty());
    }

    #[test]
    fn stripping_keeps_the_lines() {
        let text = "a /* b\n /* c */ */ d // e\n'\"' '\\'' 'x f<'y> \"g\\\"\nh\" i";
        assert_eq!(without_comments_and_strings(text), "a \n d \n\"\" \"\" 'x f<'y> \"\"\n i");
    }
}
