//! The modules of a crate, and which of its files need which others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path as FilePath;

use anyhow::{Context, Result};

use super::graph::Graph;
use super::syntax::{self, Body, Path};

/// The maximum length of a chain of re-exports; a longer one must be a cycle.
const MAX_REEXPORTS: usize = 16;

struct Module {
    parent: Option<usize>,
    /// The index in [`Modules::files`].
    file: usize,
    children: BTreeMap<String, usize>,
    body: Body,
}

/// The target of a path.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item that the module defines.
    ItemOf(usize),
    External,
}

#[derive(Default)]
struct Modules {
    modules: Vec<Module>,
    /// The files, relative to the folder of the crate's sources.
    files: Vec<String>,
}

/// Reads the graph of the files in `sources`, starting from the crate's root file.
pub(super) fn graph(sources: &FilePath, root: &str) -> Result<Graph> {
    let mut modules = Modules::default();
    modules.add_file(sources, FilePath::new(root), FilePath::new(""), None)?;
    let mut graph = Graph::new(modules.files.clone());
    for index in 0..modules.modules.len() {
        modules.add_edges(index, &mut graph);
    }
    Ok(graph)
}

impl Modules {
    /// Reads a file, whose child modules are in `folder`.
    fn add_file(
        &mut self,
        sources: &FilePath,
        file: &FilePath,
        folder: &FilePath,
        parent: Option<usize>,
    ) -> Result<usize> {
        let path = sources.join(file);
        let context = || format!("cannot read {}", path.display());
        let body = syntax::body(&fs::read_to_string(&path).with_context(context)?).with_context(context)?;
        self.files.push(file.to_string_lossy().into_owned());
        self.add(sources, folder, body, self.files.len() - 1, parent)
    }

    fn add(
        &mut self,
        sources: &FilePath,
        folder: &FilePath,
        mut body: Body,
        file: usize,
        parent: Option<usize>,
    ) -> Result<usize> {
        let declared = std::mem::take(&mut body.declared);
        let inline = std::mem::take(&mut body.inline);
        let index = self.modules.len();
        self.modules.push(Module { parent, file, children: BTreeMap::new(), body });
        for name in declared {
            let inner = folder.join(&name);
            let flat = inner.with_extension("rs");
            let child_file = if sources.join(&flat).exists() { flat } else { inner.join("mod.rs") };
            let child = self.add_file(sources, &child_file, &inner, Some(index))?;
            self.modules[index].children.insert(name, child);
        }
        for (name, inner) in inline {
            let child = self.add(sources, &folder.join(&name), inner, file, Some(index))?;
            self.modules[index].children.insert(name, child);
        }
        Ok(index)
    }

    fn add_edges(&self, index: usize, graph: &mut Graph) {
        let module = &self.modules[index];
        for import in module.body.imports.iter().filter(|import| !import.is_reexport) {
            // An imported module is used by the paths that begin with it, which may lead to its children.
            match self.target(index, &import.path.words, 0) {
                Some(Target::ItemOf(used)) => self.add_edge(module, used, import.path.line, graph),
                Some(Target::Module(used)) if import.is_glob => {
                    self.add_edge(module, used, import.path.line, graph);
                }
                _ => {}
            }
        }
        for Path { words, line } in &module.body.paths {
            if let Some(Target::ItemOf(used)) = self.target(index, words, 0) {
                self.add_edge(module, used, *line, graph);
            }
        }
        // A file that re-exports a name and also uses it in its own code needs it.
        for (name, line) in &module.body.names {
            let is_reexported =
                |import: &&syntax::Import| import.is_reexport && import.name.as_ref() == Some(name);
            if let Some(import) = module.body.imports.iter().find(is_reexported)
                && let Some(Target::ItemOf(used)) = self.target(index, &import.path.words, 0)
            {
                self.add_edge(module, used, *line, graph);
            }
        }
    }

    fn add_edge(&self, from: &Module, used: usize, line: usize, graph: &mut Graph) {
        graph.add(from.file, self.modules[used].file, line);
    }

    /// Returns the target of `words` from a module; `None` if they begin with an unknown name.
    fn target(&self, from: usize, words: &[String], reexports: usize) -> Option<Target> {
        if reexports > MAX_REEXPORTS {
            return None;
        }
        let (first, mut rest) = words.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(0),
            "self" => Target::Module(from),
            "super" => Target::Module(self.modules[from].parent?),
            name => self.lookup(from, name, rest.is_empty(), reexports)?,
        };
        while let Target::Module(module) = target
            && let Some((word, after)) = rest.split_first()
        {
            target = match word.as_str() {
                "super" => Target::Module(self.modules[module].parent?),
                // Names that a macro defines cannot be found.
                name => {
                    self.lookup(module, name, after.is_empty(), reexports).unwrap_or(Target::ItemOf(module))
                }
            };
            rest = after;
        }
        Some(target)
    }

    /// Looks up a name in a module. At the end of a path, an item takes precedence over the module of the same name.
    fn lookup(&self, module: usize, name: &str, is_last: bool, reexports: usize) -> Option<Target> {
        let found = &self.modules[module];
        let child = found.children.get(name).map(|child| Target::Module(*child));
        if !is_last && child.is_some() {
            return child;
        }
        if found.body.defined.contains(name) {
            return Some(Target::ItemOf(module));
        }
        let is_named = |import: &&syntax::Import| import.name.as_deref() == Some(name);
        if let Some(import) = found.body.imports.iter().find(is_named) {
            // `pub(crate) use name;` after a macro of that name refers to itself.
            let is_itself = import.path.words == [name];
            let target =
                if is_itself { None } else { self.target(module, &import.path.words, reexports + 1) };
            return target.or(child).or(Some(Target::External));
        }
        child.or_else(|| self.lookup_globs(module, name, is_last, reexports))
    }

    fn lookup_globs(&self, module: usize, name: &str, is_last: bool, reexports: usize) -> Option<Target> {
        let globs = self.modules[module].body.imports.iter().filter(|import| import.is_glob);
        globs.filter_map(|glob| self.target(module, &glob.path.words, reexports + 1)).find_map(|target| {
            let Target::Module(source) = target else { return None };
            let is_other = source != module && reexports < MAX_REEXPORTS;
            is_other.then(|| self.lookup(source, name, is_last, reexports + 1)).flatten()
        })
    }
}
