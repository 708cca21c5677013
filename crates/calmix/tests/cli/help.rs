//! Every help text, word for word.

use crate::workspace::{Workspace, golden};

const COMMANDS: [&str; 15] = [
    "prepare",
    "train",
    "resume",
    "sweep",
    "evaluate",
    "calibrate",
    "predict",
    "inspect",
    "compare",
    "push",
    "report",
    "recipes",
    "weights",
    "doctor",
    "completions",
];

#[test]
fn every_help() {
    let workspace = Workspace::new();
    let help = workspace.run(&["--help"]).with_code(0);
    golden("help.txt", &help.stdout);
    golden("help-short.txt", &workspace.run(&["-h"]).with_code(0).stdout);
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command}");
        golden(&format!("help-{command}.txt"), &workspace.run(&[command, "--help"]).with_code(0).stdout);
    }
}

#[test]
fn recipes_are_listed() {
    golden("recipes.txt", &Workspace::new().run(&["recipes"]).with_code(0).stdout);
}

#[test]
fn schema_of_recipes_is_the_file_in_docs() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipe.schema.json");
    let printed = Workspace::new().run(&["recipes", "--schema"]).with_code(0).stdout;
    assert!(printed == std::fs::read_to_string(file).unwrap(), "{printed}");
}

#[test]
fn a_shell_understands_the_completions() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        workspace.run(&["completions", shell]).with_code(0).prints(&["doctor", "evaluate"]);
    }
    let script = workspace.path("completions");
    std::fs::write(&script, workspace.run(&["completions", "bash"]).stdout).unwrap();
    let output = std::process::Command::new("bash").arg("-n").arg(&script).output().expect("bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
