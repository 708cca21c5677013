//! Which folders are splits and which are classes: by any usual name, and a question where two readings are possible.

use crate::program::new_workspace;

#[test]
fn only_a_test_set_is_a_question() {
    let workspace = new_workspace();
    workspace.images("photos/Test/cat", 0, 4);
    workspace.images("photos/Test/dog", 40, 4);
    let asked = workspace.run(&["prepare", "photos"]).with_code(2);
    asked.reports(&[
        "error: photos: there is `Test`, but no training images\n",
        "to train, put the class folders into photos/train\n",
        "if `Test` is a class, use --layout classes\n",
    ]);
    assert!(!workspace.path("prepared").exists());
    let one = workspace.run(&["prepare", "photos", "--layout", "classes"]).with_code(0);
    one.prints(&["1 class, labelled images: train 8\n", "warning: there is only one class, `Test`: "]);
    workspace.end(workspace.folder_training("photos", &[])).with_code(2).reports(&["no training images"]);
}

#[test]
fn nested_classes_are_a_question() {
    let workspace = new_workspace();
    workspace.images("photos/animals/goldfish/2021", 0, 4);
    workspace.images("photos/animals/goldfish/2022", 20, 4);
    workspace.images("photos/animals/trout", 40, 4);
    let question = [
        "photos: all images are below the single folder `animals`, which contains the folders goldfish, trout\n",
        "if these are the classes, use --layout nested\n",
        "if `animals` is the only class, use --layout classes\n",
    ];
    workspace.run(&["prepare", "photos"]).with_code(2).reports(&question);
    workspace.run(&["inspect", "photos"]).with_code(2).reports(&question);
    workspace.end(workspace.folder_training("photos", &[])).with_code(2).reports(&question);
    let nested = workspace.run(&["prepare", "photos", "--layout", "nested"]).with_code(0);
    nested.prints(&[
        "2 classes, labelled images per class: train 4 to 8\n",
        "next: calmix train --data photos --layout nested --prepared prepared/photos\n",
    ]);
    workspace.end(workspace.folder_training("photos", &["--layout", "nested"])).with_code(0);

    let one = workspace.end(workspace.folder_training("photos", &["--layout", "classes"])).with_code(2);
    one.reports(&[
        "error: [HERE]/photos: there is only one class, `animals`; a classifier needs at least two\n",
    ]);
    assert_eq!(workspace.names("runs"), ["cpu-folder-1"], "a refused run leaves nothing");
}
