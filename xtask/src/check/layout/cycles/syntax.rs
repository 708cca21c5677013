//! The parser of what a source file imports, defines and names, module by module, without code under `#[cfg(test)]`.

use std::collections::BTreeSet;

use anyhow::Result;

use super::tokens::{Token, tokens};

/// A module in one file.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Modules in their own files.
    pub(super) declared: Vec<String>,
    /// Modules in braces in the same file.
    pub(super) inline: Vec<(String, Body)>,
    pub(super) imports: Vec<Import>,
    pub(super) defined: BTreeSet<String>,
    /// Paths of at least two words outside imports.
    pub(super) paths: Vec<Path>,
    /// Single words outside imports that may be types, functions or macros.
    pub(super) names: Vec<(String, usize)>,
}

/// Words separated by `::`, with their line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) words: Vec<String>,
    pub(super) line: usize,
}

/// A name in a `use`.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Path,
    /// The local name; `None` for `as _` and for `*`.
    pub(super) name: Option<String>,
    pub(super) is_glob: bool,
    /// Whether others may import it from here, as with `pub use` or `pub(crate) use`.
    pub(super) is_reexport: bool,
}

/// Reads the source of one file.
pub(super) fn body(source: &str) -> Result<Body> {
    let mut reader = Reader { tokens: tokens(source)?, at: 0 };
    let mut body = Body::default();
    while !reader.at_end() {
        // A stray closing brace ends the body; the compiler will report it better.
        reader.read(&mut body);
    }
    Ok(body)
}

/// Keywords of items that end with a block or a semicolon.
const BLOCK_ITEMS: &[&str] =
    &["fn", "mod", "struct", "enum", "trait", "impl", "union", "unsafe", "extern", "async", "macro_rules"];
/// Keywords of items and statements that end with a semicolon, whatever blocks they contain.
const LINE_ITEMS: &[&str] = &["use", "const", "static", "type", "let"];

struct Reader {
    tokens: Vec<Token>,
    at: usize,
}

impl Reader {
    fn at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| &token.text)
    }

    fn before(&self, behind: usize) -> &str {
        self.at.checked_sub(behind).map_or("", |at| &self.tokens[at].text)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    /// Reads a module up to its closing brace.
    fn read(&mut self, body: &mut Body) {
        let mut depth = 0_usize;
        let mut is_public = false;
        while !self.at_end() {
            let was_public = std::mem::take(&mut is_public);
            match self.text(0) {
                "{" => depth += 1,
                "}" if depth == 0 => {
                    self.at += 1;
                    return;
                }
                "}" => depth -= 1,
                "#" if self.is_test_attribute() => {
                    self.skip_item();
                    continue;
                }
                "pub" => {
                    self.at += 1;
                    if self.text(0) == "(" {
                        self.skip_group();
                    }
                    is_public = true;
                    continue;
                }
                // `use<…>` in a type lists captured lifetimes.
                "use" if self.text(1) != "<" => {
                    self.at += 1;
                    self.read_imports(&[], was_public, body);
                    continue;
                }
                "mod" if self.text(2) == ";" => body.declared.push(self.text(1).to_owned()),
                "mod" if self.text(2) == "{" => {
                    let name = self.text(1).to_owned();
                    let mut inner = Body::default();
                    self.at += 3;
                    self.read(&mut inner);
                    body.inline.push((name, inner));
                    continue;
                }
                _ if self.tokens[self.at].is_word() => {
                    if depth == 0 {
                        self.read_definition(body);
                    }
                    self.read_path(body);
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    fn read_definition(&self, body: &mut Body) {
        let name = match self.text(0) {
            "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" => self.text(1),
            "macro_rules" => self.text(2),
            _ => return,
        };
        body.defined.insert(name.to_owned());
    }

    fn read_path(&mut self, body: &mut Body) {
        let line = self.line();
        let before = self.before(1).to_owned();
        let mut words = vec![self.text(0).to_owned()];
        self.at += 1;
        while self.text(0) == "::" && self.tokens.get(self.at + 1).is_some_and(Token::is_word) {
            words.push(self.text(1).to_owned());
            self.at += 2;
        }
        if before == "." || before == "::" {
            return;
        }
        if words.len() > 1 {
            body.paths.push(Path { words, line });
            return;
        }
        let is_called = matches!(self.text(0), "(" | "!" | "::") && before != "fn";
        let is_type = words[0].starts_with(char::is_uppercase);
        if is_called || is_type {
            body.names.push((words.remove(0), line));
        }
    }

    /// Reads one tree of a `use` after `prefix`, including the following comma or semicolon.
    fn read_imports(&mut self, prefix: &[String], is_reexport: bool, body: &mut Body) {
        let line = self.line();
        let mut words = prefix.to_vec();
        let mut is_glob = false;
        loop {
            match self.text(0) {
                "::" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !self.at_end() && self.text(0) != "}" {
                        self.read_imports(&words, is_reexport, body);
                    }
                    self.at += 1;
                    self.skip_separator();
                    return;
                }
                "*" => {
                    is_glob = true;
                    self.at += 1;
                }
                word if !matches!(word, "," | ";" | "}" | "as" | "") => {
                    words.push(word.to_owned());
                    self.at += 1;
                }
                _ => break,
            }
        }
        if words.last().is_some_and(|last| last == "self") && words.len() > 1 {
            words.pop();
        }
        let mut name = words.last().filter(|_| !is_glob).cloned();
        if self.text(0) == "as" {
            name = Some(self.text(1).to_owned()).filter(|alias| alias != "_");
            self.at += 2;
        }
        self.skip_separator();
        body.imports.push(Import { path: Path { words, line }, name, is_glob, is_reexport });
    }

    fn skip_separator(&mut self) {
        if matches!(self.text(0), "," | ";") {
            self.at += 1;
        }
    }

    /// Returns whether an attribute begins here that restricts its item to test builds.
    fn is_test_attribute(&self) -> bool {
        let words: Vec<&str> = (1..6).map(|ahead| self.text(ahead)).collect();
        matches!(words[..], ["[", "cfg", "(", "test", ")"] | ["[", "cfg", "(", "all", "("])
            && (words[3] == "test" || self.text(6) == "test")
    }

    /// Skips attributes and the item, field, variant or statement after them.
    fn skip_item(&mut self) {
        while self.text(0) == "#" {
            self.at += 1;
            self.skip_group();
        }
        if self.text(0) == "pub" {
            self.at += 1;
            if self.text(0) == "(" {
                self.skip_group();
            }
        }
        let first = self.text(0).to_owned();
        let is_block_item =
            BLOCK_ITEMS.contains(&first.as_str()) || (first == "const" && self.text(1) == "fn");
        let is_line_item = LINE_ITEMS.contains(&first.as_str()) && !is_block_item;
        while !self.at_end() {
            match self.text(0) {
                ";" => {
                    self.at += 1;
                    return;
                }
                "," if !is_block_item && !is_line_item => {
                    self.at += 1;
                    return;
                }
                "}" => return,
                "{" if is_block_item => return self.skip_group(),
                "{" | "(" | "[" => self.skip_group(),
                _ => self.at += 1,
            }
        }
    }

    /// Skips from an opening bracket to after the matching closing one.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while !self.at_end() {
            match self.text(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imported(source: &str) -> Vec<String> {
        body(source).expect("it is Rust").imports.iter().map(|import| import.path.words.join("::")).collect()
    }

    #[test]
    fn grouped_imports_are_read_over_lines() {
        let source = "use crate::{\n  a::{self, B as C},\n  d::*,\n};\nuse e as _;";
        let found = body(source).expect("it is Rust");
        let names: Vec<Option<&str>> = found.imports.iter().map(|import| import.name.as_deref()).collect();
        assert_eq!(imported(source), ["crate::a", "crate::a::B", "crate::d", "e"]);
        assert_eq!(names, [Some("a"), Some("C"), None, None]);
        assert_eq!(found.imports[2].path.line, 3);
    }

    #[test]
    fn test_code_is_left_out() {
        let source = "#[cfg(test)]\nmod tests { use super::a; }\n#[cfg(all(test, x))]\nuse b::{c};\n\
                      struct S {\n#[cfg(test)]\nf: d::E,\ng: h::I }\n#[cfg(test)]\n#[x]\npub(crate) fn j() { k::l() }\n\
                      use m;";
        assert_eq!(imported(source), ["m"]);
        let paths: Vec<String> =
            body(source).expect("it is Rust").paths.iter().map(|path| path.words.join("::")).collect();
        assert_eq!(paths, ["h::I"]);
    }

    #[test]
    fn paths_names_and_definitions_are_told_apart() {
        let source = "pub(in crate::a) fn b() { c::d(e(), f.g(), H, self::i) }\nmod j { fn k() {} }\nmod l;";
        let found = body(source).expect("it is Rust");
        let paths: Vec<String> = found.paths.iter().map(|path| path.words.join("::")).collect();
        let names: Vec<&str> = found.names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(paths, ["c::d", "self::i"]);
        assert_eq!(names, ["e", "H"]);
        assert_eq!(found.defined.iter().collect::<Vec<_>>(), ["b"]);
        assert_eq!((found.inline[0].0.as_str(), found.declared[0].as_str()), ("j", "l"));
    }
}
