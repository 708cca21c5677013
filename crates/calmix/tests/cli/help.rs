//! What the binary prints about itself. Its own tests compare every help text, without a process for each.

use calmix_testkit::golden::golden;

use super::new_workspace;

#[test]
fn help_is_printed() {
    let workspace = new_workspace();
    golden("help.txt", &workspace.run(&["--help"]).with_code(0).stdout);
    golden("help-train.txt", &workspace.run(&["train", "--help"]).with_code(0).stdout);
}

#[test]
fn recipes_are_listed() {
    let listed = new_workspace().run(&["recipes"]).with_code(0).stdout;
    assert!(listed.lines().all(|line| line.chars().count() <= 100), "{listed}");
    golden("recipes.txt", &listed);
}

#[test]
fn schema_of_recipes_is_the_file_in_docs() {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/recipe.schema.json");
    let printed = new_workspace().run(&["recipes", "--schema"]).with_code(0).stdout;
    assert!(printed == std::fs::read_to_string(file).unwrap(), "{printed}");
}

#[test]
fn a_shell_understands_the_completions() {
    let workspace = new_workspace();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        workspace.run(&["completions", shell]).with_code(0).prints(&["doctor", "evaluate"]);
    }
    let script = workspace.path("completions");
    std::fs::write(&script, workspace.run(&["completions", "bash"]).stdout).unwrap();
    let output = std::process::Command::new("bash").arg("-n").arg(&script).output().expect("bash");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
