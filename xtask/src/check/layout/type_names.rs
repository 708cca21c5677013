//! One word means one thing: a type name is defined once in all crates.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::File;

/// Names that several crates may define, each with its reason; at most [`EXCEPTION_LIMIT`].
const EXCEPTIONS: &[(&str, &str)] = &[
    ("Augment", SECTION),
    ("Cutout", SECTION),
    ("Frame", SECTION),
    ("Geometry", SECTION),
    ("RandAugment", SECTION),
];

const SECTION: &str = "the recipe's section that resolves to the type of the same name in core or data";

const EXCEPTION_LIMIT: usize = 10;

/// For each type name, the files that define it; a file that defines it twice is there twice.
pub(super) type Definitions = BTreeMap<String, Vec<String>>;

/// The type names that `crates/*/src` defines outside tests.
pub(super) fn definitions(files: &[File]) -> Definitions {
    let mut definitions = Definitions::new();
    for file in files.iter().filter(|file| is_library_source(&file.path)) {
        for name in defined(file.source.as_deref().unwrap_or_default()) {
            definitions.entry(name.to_owned()).or_default().push(file.path.clone());
        }
    }
    definitions
}

fn is_library_source(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "src", ..])
        && Path::new(path).extension().is_some_and(|extension| extension == "rs")
        && !path.ends_with("/tests.rs")
        && !parts.contains(&"tests")
}

/// The names of structs, enums, traits and type aliases, also by core's macros `section!`, `choice!` and `rule!`, without
/// those in `#[cfg(test)]` modules.
///
/// Less than a parser: it relies on rustfmt's indentation.
fn defined(source: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut lines = source.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]"
            && let Some(module) =
                lines.next_if(|line| line.trim_start().starts_with("mod ") && line.ends_with('{'))
        {
            let indent = module.len() - module.trim_start().len();
            lines.by_ref().find(|line| line.trim_end() == format!("{}}}", " ".repeat(indent)));
        } else if matches!(line, "section! {" | "choice! {" | "rule! {") {
            let item = lines.by_ref().find(|line| !line.trim_start().starts_with(['/', '#']));
            names.extend(item.and_then(|item| item.trim().strip_suffix(" {")));
        } else {
            names.extend(definition(line));
        }
    }
    names
}

/// The name that a line defines. An indented `type` is an associated type and defines none.
fn definition(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let item = match item.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => item.strip_prefix("pub ").unwrap_or(item),
    };
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let (keyword, rest) = item.split_once(' ')?;
    let is_definition = match keyword {
        "struct" | "enum" | "trait" => true,
        "type" => !line.starts_with(' '),
        _ => false,
    };
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = rest.get(..end)?;
    (is_definition && name.starts_with(char::is_uppercase)).then_some(name)
}

/// Names that are defined more than once.
fn duplicates(definitions: &Definitions) -> impl Iterator<Item = (&str, &[String])> {
    let several = definitions.iter().filter(|(_, files)| files.len() > 1);
    several.map(|(name, files)| (name.as_str(), files.as_slice()))
}

/// A type name is defined once, or is an exception.
pub(super) fn unique(definitions: &Definitions) -> Vec<String> {
    breaches(definitions, EXCEPTIONS)
}

fn breaches(definitions: &Definitions, exceptions: &[(&str, &str)]) -> Vec<String> {
    let is_exception = |name: &str| exceptions.iter().any(|(exception, _)| *exception == name);
    let mut breaches: Vec<String> = duplicates(definitions)
        .filter(|(name, _)| !is_exception(name))
        .map(|(name, files)| {
            format!("the type name `{name}` is defined {} times: {}", files.len(), files.join(", "))
        })
        .collect();
    let is_unneeded = |name: &str| definitions.get(name).is_none_or(|files| files.len() < 2);
    for (name, _) in exceptions.iter().filter(|(name, _)| is_unneeded(name)) {
        breaches
            .push(format!("the type name `{name}` needs no exception any more; remove it from EXCEPTIONS"));
    }
    if exceptions.len() > EXCEPTION_LIMIT {
        breaches
            .push(format!("{} exceptions for type names; {EXCEPTION_LIMIT} are allowed", exceptions.len()));
    }
    breaches
}

/// How many names are defined more than once.
pub(super) fn summary(definitions: &Definitions) -> String {
    let (names, several) = (definitions.len(), duplicates(definitions).count());
    format!("{names} type names, {several} of them defined more than once ({} exceptions)", EXCEPTIONS.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), bytes: text.len() as u64, source: Some(text.to_owned()) }
    }

    #[test]
    fn definitions_are_found_outside_tests_only() {
        let source = "\
pub struct Plain;
pub(crate) enum Choice<T> {}
pub(in crate::a) trait Shape: Copy {
    type Output;
}
type Alias = u8;
pub unsafe trait Marker {}
impl Iterator for Plain {
    type Item = u8;
}
// struct Comment;
let structure = struct_of(x);
section! {
    /// A section.
    Section {
    }
}
macro_rules! m { () => {
    struct $name;
    struct Inner;
}}
#[cfg(test)]
mod tests {
    struct Hidden;
    fn f() {
    }
}
#[cfg(test)]
struct Shown(u8);
";
        assert_eq!(
            defined(source),
            ["Plain", "Choice", "Shape", "Alias", "Marker", "Section", "Inner", "Shown"]
        );
    }

    #[test]
    fn only_library_sources_count() {
        let files = [
            file("crates/a/src/lib.rs", "struct Split;\n"),
            file("crates/a/src/split.rs", "struct Split;\n"),
            file("crates/a/src/split/tests.rs", "struct Split;\n"),
            file("crates/a/tests/split.rs", "struct Split;\n"),
            file("crates/a/build.rs", "struct Split;\n"),
            file("xtask/src/main.rs", "struct Split;\n"),
        ];
        let expected = vec!["crates/a/src/lib.rs".to_owned(), "crates/a/src/split.rs".to_owned()];
        assert_eq!(definitions(&files), Definitions::from([("Split".to_owned(), expected)]));
    }

    #[test]
    fn a_second_definition_needs_an_exception() {
        let text = "struct Split;\nstruct Step;\nstruct Once;\n";
        let found = definitions(&[file("crates/a/src/a.rs", text), file("crates/b/src/b.rs", &text[..27])]);
        let sentence =
            |name| format!("the type name `{name}` is defined 2 times: crates/a/src/a.rs, crates/b/src/b.rs");
        assert_eq!(breaches(&found, &[]), [sentence("Split"), sentence("Step")]);
        assert_eq!(breaches(&found, &[("Step", "a reason")]), [sentence("Split")]);
        let both = [("Split", "a reason"), ("Step", "a reason")];
        assert_eq!(breaches(&found, &both), [""; 0]);
        let unneeded = breaches(&found, &[both[0], both[1], ("Once", "a reason")]);
        assert_eq!(unneeded, ["the type name `Once` needs no exception any more; remove it from EXCEPTIONS"]);
    }

    #[test]
    fn the_list_is_sorted_and_short() {
        assert!(EXCEPTIONS.is_sorted());
        assert!(EXCEPTIONS.len() <= EXCEPTION_LIMIT);
        assert!(EXCEPTIONS.iter().all(|(_, reason)| !reason.is_empty()));
    }
}
