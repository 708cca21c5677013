//! The first steps of new users: arguments in the wrong order.

use std::fs;

use super::new_workspace;

#[test]
fn dataset_in_the_place_of_the_recipe() {
    let workspace = new_workspace().with_photos().with_garments();
    workspace
        .run(&["train", "photos"])
        .with_code(2)
        .reports(&["error: photos is a folder, not a recipe; did you mean `calmix train --data photos`?\n"]);
    workspace
        .run(&["train", "./garments"])
        .with_code(2)
        .reports(&["did you mean `calmix train cpu-fashion-mnist --data ./garments`?\n"]);
    fs::write(workspace.path("mine.toml"), "extends = \"cpu-folder\"\n").unwrap();
    let file = workspace.run(&["train", "mine.toml", "--data", "photos"]).with_code(2);
    file.reports(&["mine.toml is a file, not a recipe; did you mean `calmix train --file mine.toml`?\n"]);
}
