//! The files of a crate import each other in no circle.
//!
//! Files that need each other can only be read, tested and moved together. A re-export is not a use: what imports a
//! name through it needs the file that defines the name, so a folder's file may show what its children define.

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
    /// The name of its folder.
    name: String,
    graph: Graph,
}

/// The import graphs of all crates below `root`, in order of their names.
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

/// No files of a crate import each other in a circle; one sentence for each set of files that does.
pub(super) fn circles(crates: &[CrateGraph]) -> Vec<String> {
    crates.iter().flat_map(|CrateGraph { name, graph }| {
        graph.knots().into_iter().map(move |knot| {
            let circle = graph.shortest_circle(&knot);
            let step = |(file, line): &(usize, usize)| format!("{}:{line}", graph.files[*file]);
            let steps: Vec<String> = circle.iter().map(step).collect();
            let first = circle.first().map_or("", |(file, _)| &graph.files[*file]);
            let others = match knot.len() - circle.len() {
                0 => String::new(),
                others => format!(" (and {others} more files in circles with them)"),
            };
            format!(
                "crates/{name}/src: {} → {first} import each other{others}; move what they share to a file below them",
                steps.join(" → "),
            )
        })
    })
    .collect()
}

/// A table with a line for each crate: how its files are tangled, and how high they are stacked.
pub(super) fn summary(crates: &[CrateGraph]) -> Vec<String> {
    let header = format!("{:<24} files  circles  in circles  floors", "crate");
    let line = |CrateGraph { name, graph }: &CrateGraph| {
        let knots = graph.knots();
        let tangled: usize = knots.iter().map(Vec::len).sum();
        let root = format!("{name}/src/{}", graph.files[0]);
        format!(
            "{root:<24} {:>5}  {:>7}  {tangled:>10}  {:>6}",
            graph.files.len(),
            knots.len(),
            graph.floors(),
        )
    };
    std::iter::once(header).chain(crates.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A crate named `a` in a new folder, from its files and their texts.
    fn crate_of(files: &[(&str, &str)]) -> Vec<CrateGraph> {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("xtask-circles-{}-{number}", std::process::id()));
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

    /// The lines of the table without their spacing.
    fn counts(crates: &[CrateGraph]) -> Vec<String> {
        let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
        summary(crates)[1..].iter().map(words).collect()
    }

    #[test]
    fn circle_of_siblings_is_named_with_its_lines() {
        let crates = crate_of(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;"),
            ("a.rs", "\nuse crate::{\n    b::B,\n};\npub struct A(B);"),
            ("b.rs", "pub struct B;\nfn f() { super::c::c() }"),
            ("c.rs", "use crate::A;\npub fn c() {}"),
        ]);
        let [circle] = &circles(&crates)[..] else { panic!("there is one circle") };
        assert!(
            circle.starts_with("crates/a/src: a.rs:3 → b.rs:2 → c.rs:1 → a.rs import each other;"),
            "{circle}"
        );
        assert_eq!(counts(&crates), ["a/src/lib.rs 4 1 3 1"]);
    }

    #[test]
    fn reexport_is_not_a_use_but_its_name_in_code_is() {
        let child = ("a/b.rs", "use super::A;\npub struct B(A);\npub enum C {}");
        let parent = "mod b;\npub use b::{B, C};\npub struct A;\n";
        let lib = ("lib.rs", "mod a;\npub use a::*;");
        assert_eq!(circles(&crate_of(&[lib, ("a.rs", parent), child])), Vec::<String>::new());
        for used in ["fn f(b: B) {}", "fn f() -> C { C::D }", "fn f() { b::g() }", "use b::C as E;"] {
            let tangled = circles(&crate_of(&[lib, ("a.rs", &format!("{parent}{used}")), child]));
            assert_eq!(tangled.len(), 1, "{used}: {tangled:?}");
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
        assert_eq!(circles(&crates), Vec::<String>::new());
        assert_eq!(counts(&crates), ["a/src/lib.rs 5 0 0 4"]);
    }

    #[test]
    fn tests_may_use_everything() {
        let crates = crate_of(&[
            ("lib.rs", "mod a;\nmod b;"),
            ("a.rs", "use super::b::B;\npub struct A(B);"),
            ("b.rs", "pub struct B;\n#[cfg(test)]\nmod tests;"),
            ("b/tests.rs", "use crate::a::A;"),
        ]);
        assert_eq!(circles(&crates), Vec::<String>::new());
    }
}
