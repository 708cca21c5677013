//! The rule that the files of a crate do not import each other in cycles.
//!
//! Files in a cycle can only be read, tested and moved together. A re-export is not a use: an import through it needs the file
//! that defines the name, so a folder's file may re-export what its children define.

mod graph;
mod modules;
mod syntax;
mod tokens;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use graph::Graph;

/// The import graph of one crate.
pub(super) struct CrateGraph {
    /// The name of the crate's folder.
    name: String,
    graph: Graph,
}

/// Reads the import graphs of all crates below `root`, in order of their names.
///
/// A crate with a library and a program counts twice: the program sees the library only from outside.
pub(super) fn read(root: &Path) -> Result<Vec<CrateGraph>> {
    let crates = root.join("crates");
    let context = || format!("cannot list {}", crates.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&crates).with_context(context)? {
        names.push(entry.with_context(context)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut graphs = Vec::new();
    for name in names {
        let sources = crates.join(&name).join("src");
        for file in ["lib.rs", "main.rs"] {
            if sources.join(file).exists() {
                graphs.push(CrateGraph { name: name.clone(), graph: modules::graph(&sources, file)? });
            }
        }
    }
    Ok(graphs)
}

/// Returns one sentence for each crate whose files import each other in a cycle, about the shortest cycle.
pub(super) fn cycles(crates: &[CrateGraph]) -> Vec<String> {
    let sentence = |CrateGraph { name, graph }: &CrateGraph| {
        let cycle = graph.shortest_cycle()?;
        let first = &graph.files[cycle.first()?.0];
        let steps: Vec<String> =
            cycle.iter().map(|(file, line)| format!("{}:{line}", graph.files[*file])).collect();
        Some(format!(
            "crates/{name}/src: {} → {first} import each other; move what they share to a file below them",
            steps.join(" → ")
        ))
    };
    crates.iter().filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate named `a` in a new folder, from its files and their texts.
    fn crate_of(files: &[(&str, &str)]) -> Vec<CrateGraph> {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("xtask-cycles-{}-{number}", std::process::id()));
        let sources = root.join("crates/a/src");
        for (path, text) in files {
            let file = sources.join(path);
            fs::create_dir_all(file.parent().expect("a folder")).expect("the folder is new");
            fs::write(file, text).expect("the file is new");
        }
        let crates = read(&root);
        fs::remove_dir_all(&root).expect("the folder is there");
        crates.expect("the crate is complete")
    }

    #[test]
    fn cycle_of_siblings_is_named_with_its_lines() {
        let crates = crate_of(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;"),
            ("a.rs", "\nuse crate::{\n    b::B,\n};\npub struct A(B);"),
            ("b.rs", "pub struct B;\nfn f() { super::c::c() }"),
            ("c.rs", "use crate::A;\npub fn c() {}"),
        ]);
        let [cycle] = &cycles(&crates)[..] else { panic!("there is one cycle") };
        assert!(
            cycle.starts_with("crates/a/src: a.rs:3 → b.rs:2 → c.rs:1 → a.rs import each other;"),
            "{cycle}"
        );
    }

    #[test]
    fn reexport_is_not_a_use_but_its_name_in_code_is() {
        let child = ("a/b.rs", "use super::A;\npub struct B(A);\npub enum C {}");
        let parent = "mod b;\npub use b::{B, C};\npub struct A;\n";
        let lib = ("lib.rs", "mod a;\npub use a::*;");
        assert_eq!(cycles(&crate_of(&[lib, ("a.rs", parent), child])), Vec::<String>::new());
        for used in ["fn f(b: B) {}", "fn f() -> C { C::D }", "fn f() { b::g() }", "use b::C as E;"] {
            let found = cycles(&crate_of(&[lib, ("a.rs", &format!("{parent}{used}")), child]));
            assert_eq!(found.len(), 1, "{used}: {found:?}");
        }
    }

    #[test]
    fn import_counts_for_the_file_that_defines_the_name() {
        let crates = crate_of(&[
            ("lib.rs", "mod a;\nmod d;"),
            ("a.rs", "mod b;\nmod c;\npub(crate) use b::*;\nuse c::C;\npub struct A(C);"),
            ("a/b.rs", "pub struct B;"),
            ("a/c.rs", "use crate::d;\npub struct C(d::D);"),
            ("d.rs", "use crate::a::B;\npub struct D(B);"),
        ]);
        assert_eq!(cycles(&crates), Vec::<String>::new());
    }

    #[test]
    fn tests_may_use_everything() {
        let crates = crate_of(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "use super::b::B;\npub struct A(B);"),
            ("b.rs", "pub struct B;\n#[cfg(test)]\nmod tests;"),
            ("b/tests.rs", "use crate::a::A;"),
        ]);
        assert_eq!(cycles(&crates), Vec::<String>::new());
    }
}
