//! Modules in the tokens of one file: those that it declares, and the paths that it names.
//!
//! Tokens rather than text, so that strings and comments are no code; rather than a syntax tree, so that what stands
//! in the arguments of a macro is. What only tests compile is left out.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The facts that are read from a file.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// The modules that have a file of their own, each after the inline modules around it.
    pub(super) modules: Vec<Vec<String>>,
    /// Every path of an import, and every other path that begins with `crate`, `self` or `super`.
    pub(super) paths: Vec<Path>,
    /// The macros that it defines; those that are exported are named in the crate's root.
    pub(super) macros: Vec<String>,
}

/// A path in the code.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) line: usize,
    /// The inline modules around it.
    pub(super) inside: Vec<String>,
    pub(super) segments: Vec<String>,
    /// The name that an import gives it here. `None` when it is no import.
    pub(super) name: Option<String>,
}

impl Code {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not made of Rust's tokens.
    pub(super) fn read(text: &str) -> Result<Self> {
        let stream: TokenStream = text.parse().map_err(|error| anyhow!("it holds no Rust: {error}"))?;
        let mut code = Self::default();
        code.collect(stream, &mut Vec::new());
        Ok(code)
    }

    fn collect(&mut self, stream: TokenStream, inside: &mut Vec<String>) {
        let tokens = without_tests(stream);
        let mut rest = tokens.as_slice();
        while let Some(first) = rest.first() {
            rest = match word(first).as_str() {
                "mod" => self.module(rest, inside),
                "use" => self.import(rest, inside),
                "macro_rules" => self.macro_rules(rest),
                "crate" | "self" | "super" => self.path(rest, inside),
                _ => &rest[1..],
            };
            if let TokenTree::Group(group) = first {
                self.collect(group.stream(), inside);
            }
        }
    }

    fn module<'a>(&mut self, rest: &'a [TokenTree], inside: &mut Vec<String>) -> &'a [TokenTree] {
        let Some(name) = rest.get(1).map(word) else { return &[] };
        inside.push(name);
        let after = if let Some(TokenTree::Group(body)) = rest.get(2) {
            self.collect(body.stream(), inside);
            &rest[3..]
        } else {
            self.modules.push(inside.clone());
            &rest[2..]
        };
        inside.pop();
        after
    }

    fn import<'a>(&mut self, rest: &'a [TokenTree], inside: &[String]) -> &'a [TokenTree] {
        if rest.get(1).is_some_and(|token| is_punct(token, '<')) {
            return &rest[1..]; // `impl Trait + use<'a>` imports nothing.
        }
        let len = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
        self.leaves(&rest[1..len], &mut Vec::new(), inside);
        &rest[len..]
    }

    /// The single imports of a tree, or of some trees with commas between them.
    fn leaves(&mut self, trees: &[TokenTree], prefix: &mut Vec<String>, inside: &[String]) {
        for tree in trees.split(|token| is_punct(token, ',')) {
            if tree.first().is_some_and(|token| is_punct(token, ':')) {
                continue; // `::name` is another crate.
            }
            let (len, mut line, mut name) = (prefix.len(), 0, None);
            let mut tokens = tree.iter().filter(|token| !is_punct(token, ':'));
            while let Some(token) = tokens.next() {
                line = token.span().start().line;
                match token {
                    TokenTree::Group(group) => {
                        let trees: Vec<_> = group.stream().into_iter().collect();
                        self.leaves(&trees, prefix, inside);
                        line = 0;
                    }
                    TokenTree::Ident(ident) if *ident == "as" => name = tokens.next().map(word),
                    TokenTree::Ident(ident) if *ident == "self" && !prefix.is_empty() => {}
                    _ => prefix.push(word(token)),
                }
            }
            if line > 0 {
                let name = name.or_else(|| prefix.last().cloned());
                self.paths.push(Path { line, inside: inside.to_vec(), segments: prefix.clone(), name });
            }
            prefix.truncate(len);
        }
    }

    fn macro_rules<'a>(&mut self, rest: &'a [TokenTree]) -> &'a [TokenTree] {
        self.macros.extend(rest.get(2).map(word));
        &rest[1..]
    }

    fn path<'a>(&mut self, rest: &'a [TokenTree], inside: &[String]) -> &'a [TokenTree] {
        let mut segments = vec![word(&rest[0])];
        let mut after = &rest[1..];
        while let [colon, second, name @ TokenTree::Ident(_), tail @ ..] = after
            && is_punct(colon, ':')
            && is_punct(second, ':')
        {
            segments.push(word(name));
            after = tail;
        }
        if segments.len() > 1 {
            let line = rest[0].span().start().line;
            self.paths.push(Path { line, inside: inside.to_vec(), segments, name: None });
        }
        after
    }
}

/// The words that begin an item; what else an attribute stands before is a field, a variant, an arm or a statement.
const ITEMS: [&str; 14] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "impl",
    "macro_rules",
    "mod",
    "static",
    "struct",
    "trait",
    "type",
    "unsafe",
    "use",
];

/// The tokens without everything that `#[cfg(test)]` stands before.
fn without_tests(stream: TokenStream) -> Vec<TokenTree> {
    let tokens: Vec<_> = stream.into_iter().collect();
    let mut kept = Vec::with_capacity(tokens.len());
    let mut rest = tokens.as_slice();
    while let Some(first) = rest.first() {
        if is_punct(first, '#') && rest.get(1).is_some_and(is_test_attribute) {
            rest = after_item(&rest[2..]);
        } else {
            kept.push(first.clone());
            rest = &rest[1..];
        }
    }
    kept
}

/// Whether this is the `[cfg(test)]` or `[cfg(all(test, …))]` of an attribute.
fn is_test_attribute(token: &TokenTree) -> bool {
    let Some(cfg) = group(token, Delimiter::Bracket) else { return false };
    let [name, condition] = cfg.as_slice() else { return false };
    word(name) == "cfg"
        && group(condition, Delimiter::Parenthesis).is_some_and(|tokens| asks_for_test(&tokens))
}

fn asks_for_test(condition: &[TokenTree]) -> bool {
    match condition {
        [test] => word(test) == "test",
        [all, list] if word(all) == "all" => group(list, Delimiter::Parenthesis)
            .is_some_and(|tokens| tokens.split(|token| is_punct(token, ',')).any(asks_for_test)),
        _ => false,
    }
}

/// Skips the item, field, variant, arm or statement at the beginning.
fn after_item(mut rest: &[TokenTree]) -> &[TokenTree] {
    while let [hash, attribute, tail @ ..] = rest
        && is_punct(hash, '#')
        && group(attribute, Delimiter::Bracket).is_some()
    {
        rest = tail;
    }
    let public = rest.first().is_some_and(|token| word(token) == "pub");
    let scoped = public && rest.get(1).is_some_and(|token| group(token, Delimiter::Parenthesis).is_some());
    let keyword = rest.get(usize::from(public) + usize::from(scoped)).map(word).unwrap_or_default();
    let (is_item, is_import) = (ITEMS.contains(&keyword.as_str()), keyword == "use");
    let ends = |token: &TokenTree| {
        is_punct(token, ';')
            || (!is_item && is_punct(token, ','))
            || (!is_import && group(token, Delimiter::Brace).is_some())
    };
    let len = rest.iter().position(ends).map_or(rest.len(), |last| last + 1);
    &rest[len..]
}

fn group(token: &TokenTree, delimiter: Delimiter) -> Option<Vec<TokenTree>> {
    let TokenTree::Group(group) = token else { return None };
    (group.delimiter() == delimiter).then(|| group.stream().into_iter().collect())
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// The word that a token is, `*` for that; nothing for others.
fn word(token: &TokenTree) -> String {
    match token {
        TokenTree::Ident(ident) => ident.to_string().trim_start_matches("r#").to_owned(),
        TokenTree::Punct(punct) if punct.as_char() == '*' => "*".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    /// Every path as `inline modules|line:path`, with ` as name` for an import.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let code = Code::read(text).expect("the text is Rust");
        let paths = code.paths.iter().map(|path| {
            let name = path.name.as_ref().map(|name| format!(" as {name}")).unwrap_or_default();
            format!("{}|{}:{}{name}", path.inside.join("::"), path.line, path.segments.join("::"))
        });
        assert_eq!(paths.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_grouped_import_is_many_paths() {
        check(
            "use crate::{a::B, c,\n  d::{self, E as F, *}};\nuse ::g::H;\nuse self::i::J;",
            &[
                "|1:crate::a::B as B",
                "|1:crate::c as c",
                "|2:crate::d as d",
                "|2:crate::d::E as F",
                "|2:crate::d::* as *",
                "|4:self::i::J as J",
            ],
        );
    }

    #[test]
    fn paths_stand_in_signatures_bodies_and_arguments_of_macros() {
        check(
            "fn f(a: &crate::a::A) -> impl G + use<'_> {\n  println!(\"{}\", vec![super::b::c()]);\n}\nself.x; $crate::d!()",
            &["|1:crate::a::A", "|2:super::b::c", "|4:crate::d"],
        );
    }

    #[test]
    fn comments_strings_and_visibilities_name_nothing() {
        check(
            "/// [`a`](crate::a)\n// crate::b\npub(crate) fn f<'a>(c: &'a str) { g(\"crate::c\", r#\"crate::d\"#, '\"') }",
            &[],
        );
    }

    #[test]
    fn what_only_tests_compile_is_left_out() {
        let text = "
            #[cfg(test)] use crate::a;
            #[cfg(test)] #[allow(x)] pub(crate) mod tests { use crate::b; }
            #[cfg(all(test, feature = \"x\"))] fn f() -> crate::c { }
            struct S { #[cfg(test)] d: crate::d::D<1>, e: crate::e::E }
            #[cfg(test)] use crate::f::{G, H};
            #[cfg(any(test, feature = \"x\"))] use crate::g;
            #[cfg(not(test))] use crate::h;";
        check(text, &["|5:crate::e::E", "|7:crate::g as g", "|8:crate::h as h"]);
    }

    #[test]
    fn modules_with_a_file_are_told_from_inline_ones() {
        let text =
            "mod a; pub mod r#b { mod c; use super::D; } #[cfg(test)] mod tests; macro_rules! e { () => {} }";
        check(text, &["b|1:super::D as D"]);
        let code = Code::read(text).expect("the text is Rust");
        assert_eq!(code.modules, [vec!["a"], vec!["b", "c"]]);
        assert_eq!(code.macros, ["e"]);
        assert_eq!(
            Code::read("fn f( {").unwrap_err().to_string(),
            "it holds no Rust: cannot parse string into token stream"
        );
    }
}
