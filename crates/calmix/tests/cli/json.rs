//! `--json`: one document on standard output, whose fields keep their names.

use calmix_testkit::golden::golden;

use super::new_workspace;

#[test]
fn documents_that_are_the_same_everywhere() {
    let workspace = new_workspace().with_garments();
    for (name, line) in [
        ("json-recipes.txt", "recipes --json"),
        ("json-recipe.txt", "inspect cpu-fashion-mnist --json"),
        ("json-dataset.txt", "inspect garments --json"),
    ] {
        let output = workspace.run(&line.split(' ').collect::<Vec<_>>()).with_code(0);
        output.json();
        golden(name, &output.stdout);
    }
}
