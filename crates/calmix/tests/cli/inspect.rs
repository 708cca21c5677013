//! `inspect` of a recipe.

use super::new_workspace;

/// The reasons for the numbers are part of a recipe.
#[test]
fn recipes_are_printed_with_their_comments() {
    let workspace = new_workspace();
    let shown = workspace.run(&["inspect", "cifar10"]).with_code(0);
    shown.prints(&[
        "unlabelled_weight = 1.0  # recipe cifar10, line 22: paper: λ_U = 1\n",
        "mean = [0.4913725490196078, 0.4823529411764706, 0.4466666666666667]  # recipe cifar10, line 6: TorchSSL: ",
    ]);
    let json = workspace.run(&["inspect", "cifar10", "--json"]).with_code(0);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["comments"]["method.unlabelled_weight"], "paper: λ_U = 1");
}
