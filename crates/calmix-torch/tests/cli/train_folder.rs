//! The library trains what the command trains.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use calmix_torch::train::trainer::Outcome;

use super::fixture::Fixture;

/// Files that name a time, a process or what the program was built from.
const OF_THE_MOMENT: [&str; 3] = ["timing.jsonl", "calmix.lock", "environment.json"];

fn files(folder: &Path, prefix: &str, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().display());
        if path.is_dir() {
            files(&path, &format!("{name}/"), into);
        } else if !OF_THE_MOMENT.contains(&name.as_str()) {
            into.insert(name, fs::read(path).unwrap());
        }
    }
}

#[test]
fn library_trains_what_the_command_trains() {
    let workspace = Fixture::Weights.copy();
    workspace.run(&["train", "--data", "own", "--quiet"]).with_code(0);
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "cli::train_folder::program", "--ignored", "--nocapture"]);
    program.current_dir(workspace.folder()).env("CALMIX_WEIGHTS", workspace.path("weights"));
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut of_command = BTreeMap::new();
    files(&workspace.path("runs/head-folder-1"), "", &mut of_command);
    let mut of_library = BTreeMap::new();
    files(&workspace.path("runs/head-folder-2"), "", &mut of_library);
    let names: BTreeSet<&String> = of_command.keys().chain(of_library.keys()).collect();
    assert!(names.iter().any(|name| *name == "model.safetensors"), "{names:?}");
    let differing: Vec<_> =
        names.into_iter().filter(|name| of_command.get(*name) != of_library.get(*name)).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
#[ignore = "the test above starts it in its folder"]
fn program() {
    let trained = calmix_torch::train::train_folder("own").unwrap();
    assert!(matches!(trained.outcome, Outcome::Finished(_)), "{:?}", trained.outcome);
    assert!(trained.folder.ends_with("runs/head-folder-2"), "{}", trained.folder.display());
}
