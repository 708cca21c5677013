//! Running every command and every code block of the documentation as it is written, each scene in its own folder.
//! `$CALMIX_SNIPPETS` selects documents by a part of their path.

mod block;
mod environment;
mod inline;
mod plan;
mod scenes;
mod summary;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

use super::tier::Tier;
use crate::human_time::human_time;
use crate::workspace;
use block::Block;
use environment::Environment;
use plan::Plan;
use scenes::{SCENES, Scene};
use summary::Summary;

/// Documents that do not stand directly in `docs`.
const DOCUMENTS: &[&str] = &["README.md", "CONTRIBUTING.md", "bindings/python/README.md"];

/// The folder of the modules whose docstrings have examples; pytest runs those without `+SKIP`.
const MODULES: &str = "bindings/python/python/calmix";

/// Runs the snippets that take minutes at most.
pub(crate) fn check() -> Result<()> {
    run(Tier::Usual)
}

/// Also runs the snippets that are marked `nightly`.
pub(crate) fn check_nightly() -> Result<()> {
    run(Tier::Nightly)
}

/// A scene with its blocks.
struct Job {
    scene: &'static Scene,
    blocks: Vec<Value>,
}

fn run(tier: Tier) -> Result<()> {
    let start = Instant::now();
    let wanted = std::env::var("CALMIX_SNIPPETS").unwrap_or_default();
    let documents: Vec<String> = documents()?.into_iter().filter(|path| path.contains(&wanted)).collect();
    let doctests = doctests()?;
    let mut summary = Summary::default();
    let mut jobs = Vec::new();
    let mut refused = Vec::new();
    for document in &documents {
        let is_doctest = doctests.iter().any(|included| included == document);
        let planned = plan(document, tier, is_doctest, &mut summary)?;
        refused.extend(planned.refused);
        jobs.extend(planned.jobs);
    }
    ensure!(refused.is_empty(), "these blocks are neither run nor marked:\n  {}", refused.join("\n  "));
    let environment = Environment::new(tier)?;
    environment.check_failures()?;
    let inline = environment.check_inline(&documents)?;
    environment.run_all(&jobs)?;
    println!("{}", summary.by_document());
    println!("   {inline} commands in running text have options that exist");
    println!("{} in {}", summary.line(tier), human_time(start.elapsed()));
    Ok(())
}

/// The plan of a document.
#[derive(Default)]
struct Planned {
    jobs: Vec<Job>,
    refused: Vec<String>,
}

/// Divides the blocks of a document among its scenes.
fn plan(document: &str, tier: Tier, is_doctest: bool, summary: &mut Summary) -> Result<Planned> {
    let mut planned = Planned::default();
    let mut current = SCENES.iter().find(|scene| scene.document == document && scene.heading.is_empty());
    let mut has_output = false;
    for block in blocks(document)? {
        let place = format!("{document}:{}", block.line);
        let begins = |scene: &&Scene| scene.document == document && scene.heading == block.heading;
        current = SCENES.iter().find(begins).or(current);
        let plan = match Plan::new(&block, tier, is_doctest) {
            Ok(plan) => plan,
            Err(reason) => {
                planned.refused.push(format!("{place}: {reason}"));
                continue;
            }
        };
        summary.add(document, &plan);
        let is_output = plan.work.as_ref().is_some_and(|work| work["kind"] == "output");
        let before = std::mem::replace(&mut has_output, plan.work.is_some());
        // Also skip the output of a block that was left out.
        let Some(work) = plan.work.filter(|_| before || !is_output) else { continue };
        let Some(scene) = current else {
            planned.refused.push(format!("{place}: add the document to xtask/src/check/snippets/scenes.rs"));
            continue;
        };
        match planned.jobs.last_mut().filter(|it| std::ptr::eq(it.scene, scene)) {
            Some(job) => job.blocks.push(work),
            None => planned.jobs.push(Job { scene, blocks: vec![work] }),
        }
    }
    Ok(planned)
}

/// Returns the documents to read, as paths below the root.
fn documents() -> Result<Vec<String>> {
    let root = workspace::root();
    let mut found: Vec<String> = DOCUMENTS.iter().map(|path| (*path).to_owned()).collect();
    let mut folders = vec![("docs".to_owned(), "md"), (MODULES.to_owned(), "py")];
    while let Some((folder, extension)) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).with_context(|| format!("cannot read {folder}"))?;
        for entry in entries {
            let entry = entry?;
            let name = PathBuf::from(entry.file_name());
            let path = format!("{folder}/{}", name.display());
            if entry.file_type()?.is_dir() {
                folders.push((path, extension));
            } else if name.extension().is_some_and(|it| it == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn read(document: &str) -> Result<String> {
    fs::read_to_string(workspace::root().join(document)).with_context(|| format!("cannot read {document}"))
}

/// Returns whether a document is a Python module, of which only docstrings are read.
fn is_module(document: &str) -> bool {
    document.starts_with(MODULES)
}

fn blocks(document: &str) -> Result<Vec<Block>> {
    let text = read(document)?;
    if is_module(document) {
        return Ok(block::skipped_examples(&text));
    }
    block::blocks(&text).map_err(|problem| anyhow!("{document}: {problem}"))
}

/// Returns the documents that a crate includes in its documentation, so that the step `doctests` runs their Rust.
fn doctests() -> Result<Vec<String>> {
    let crates = workspace::root().join("crates");
    let mut found = Vec::new();
    for entry in fs::read_dir(&crates).context("cannot read crates")? {
        let library = fs::read_to_string(entry?.path().join("src/lib.rs")).unwrap_or_default();
        let included = library.split("include_str!(\"../../../").skip(1);
        found.extend(included.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_begin_at_headings_of_their_documents() {
        let documents = documents().expect("a tree");
        for scene in SCENES {
            assert!(documents.iter().any(|path| path == scene.document), "{}", scene.document);
            let blocks = blocks(scene.document).expect("whole blocks");
            let is_there =
                scene.heading.is_empty() || blocks.iter().any(|block| block.heading == scene.heading);
            assert!(is_there, "{}: no block below `{}`", scene.document, scene.heading);
        }
    }

    #[test]
    fn every_block_is_run_or_marked() {
        let mut summary = Summary::default();
        let doctests = doctests().expect("a tree");
        for document in documents().expect("a tree") {
            let is_doctest = doctests.contains(&document);
            let planned = plan(&document, Tier::Nightly, is_doctest, &mut summary).expect("whole blocks");
            assert!(planned.refused.is_empty(), "{:?}", planned.refused);
        }
    }
}
