//! Training on lists of labels with the column names that users have.

use std::fs;

use crate::program::new_workspace;

#[test]
fn training_reads_columns_by_option() {
    let workspace = new_workspace();
    workspace.images("photos", 0, 4);
    let list =
        "id,where,species,class\n7,0.png,newt,wet\n8,1.png,newt,wet\n9,2.png,frog,dry\n3,3.png,frog,dry\n";
    fs::write(workspace.path("photos/labels.csv"), list).unwrap();
    let columns = ["--path-column", "where", "--label-column", "species"];
    workspace.end(workspace.folder_training("photos", &columns)).with_code(0);
}
