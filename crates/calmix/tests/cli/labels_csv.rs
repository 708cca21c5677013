//! Lists of labels with the column names and file names that users have.

use std::fs;

use calmix_testkit::workspace::Workspace;

use super::new_workspace;

/// Four images and a list of their labels.
fn listed(name: &str, list: &str) -> Workspace {
    let workspace = new_workspace();
    workspace.images("photos", 0, 4);
    fs::write(workspace.path("photos").join(name), list).unwrap();
    workspace
}

#[test]
fn columns_by_their_usual_names() {
    for list in [
        "File,Label\n0.png,cat\n1.png,cat\n2.png,dog\n3.png,dog\n",
        "filename,class\n0.png,cat\n1.png,cat\n2.png,dog\n3.png,dog\n",
        "iso,Image Path,Category,note\n100,0.png,cat,\"on a\nsofa\"\n100,1.png,cat,\n200,2.png,dog,x\n1,3.png,dog,\n",
    ] {
        for name in ["labels.csv", "metadata.csv", "Metadata.CSV"] {
            let workspace = listed(name, list);
            workspace
                .run(&["prepare", "photos"])
                .with_code(0)
                .prints(&["2 classes, labelled images per class: train 2\n"]);
        }
    }
}

#[test]
fn columns_by_option() {
    let list =
        "id,where,species,class\n7,0.png,newt,wet\n8,1.png,newt,wet\n9,2.png,frog,dry\n3,3.png,frog,dry\n";
    let workspace = listed("labels.csv", list);
    workspace.run(&["prepare", "photos"]).with_code(2).reports(&[
        "photos/labels.csv, line 1: no column names the image; the columns are: id, where, species, class",
        "--path-column NAME",
    ]);
    let columns = ["--path-column", "where", "--label-column", "species"];
    let prepared = workspace.run(&[&["prepare", "photos", "--json"], &columns[..]].concat()).with_code(0);
    prepared.prints(&["\"name\": \"frog\"", "\"name\": \"newt\""]);
    let wrong = workspace.run(&["prepare", "photos", "--to", "p", "--path-column", "there"]).with_code(2);
    wrong.reports(&["line 1: there is no column `there`; the columns are: id, where, species, class"]);

    let two = listed("labels.csv", "file,path,label\n0.png,0.png,cat\n");
    two.run(&["prepare", "photos"]).with_code(2).reports(&[
        "labels.csv, line 1: file, path could each name the image\n",
        "--path-column file\n",
        "--path-column path\n",
    ]);
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    for (list, line) in [
        ("file,label\r\n0.png,cat\r\n9.png,dog\r\n", 3),
        ("file,label\n\n0.png,cat\n\n9.png,dog\n", 5),
        ("file,label,note\n0.png,cat,\"a\nb\r\nc\"\n9.png,dog,\n", 5),
        ("\u{feff}file,label\r0.png,cat\r9.png,dog\r", 3),
    ] {
        let workspace = listed("labels.csv", list);
        let output = workspace.run(&["prepare", "photos"]).with_code(2);
        output.reports(&[&format!("labels.csv, line {line}: there is no file 9.png")]);
    }
}

#[test]
fn a_list_without_labels_leaves_folders_as_classes() {
    let workspace = new_workspace().with_photos();
    fs::write(workspace.path("photos/metadata.csv"), "file,iso,date\ncat/0.png,100,2021\n").unwrap();
    workspace.run(&["prepare", "photos"]).with_code(0).prints(&[
        "2 classes, ",
        "photos/metadata.csv: this list of labels was not read, because the folders are the classes",
    ]);
}
