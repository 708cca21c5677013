//! Every help, word for word.

use crate::desk::{Desk, golden};

const COMMANDS: [&str; 8] =
    ["prepare", "train", "resume", "evaluate", "inspect", "recipes", "doctor", "completions"];

#[test]
fn every_help() {
    let desk = Desk::new();
    let help = desk.run(&["--help"]).with_code(0);
    golden("help.txt", &help.stdout);
    golden("help-short.txt", &desk.run(&["-h"]).with_code(0).stdout);
    for command in COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{command}");
        golden(&format!("help-{command}.txt"), &desk.run(&[command, "--help"]).with_code(0).stdout);
    }
}

#[test]
fn recipes_are_listed() {
    golden("recipes.txt", &Desk::new().run(&["recipes"]).with_code(0).stdout);
}

#[test]
fn a_shell_understands_the_completions() {
    let desk = Desk::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        desk.run(&["completions", shell]).with_code(0).says(&["doctor", "evaluate"]);
    }
    let script = desk.path("completions");
    std::fs::write(&script, desk.run(&["completions", "bash"]).stdout).unwrap();
    let output = std::process::Command::new("bash").arg("-n").arg(&script).output().expect("bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
