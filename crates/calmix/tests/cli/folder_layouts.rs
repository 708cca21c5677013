//! Which folders are splits and which are classes: by any usual name, and a question where two readings are possible.

use super::new_workspace;

#[test]
fn splits_by_any_usual_name_and_case() {
    for [train, val, test, unlabelled] in [
        ["Train", "Val", "Test", "Unlabelled"],
        ["TRAINING", "VALID", "TESTING", "UNLABELED"],
        ["training", "Validation", "testing", "unlabeled"],
    ] {
        let workspace = new_workspace();
        for (split, shade, count) in [(train, 0, 5), (val, 64, 3), (test, 128, 4)] {
            workspace.images(&format!("photos/{split}/cat"), shade, count);
            workspace.images(&format!("photos/{split}/dog"), shade + 32, count);
        }
        workspace.images(&format!("photos/{unlabelled}"), 200, 6);
        let prepared = workspace.run(&["prepare", "photos"]).with_code(0);
        prepared.prints(&[
            "30 samples: train 10, val 6, test 8, unlabelled 6\n",
            "2 classes, labelled images per class: train 5, val 3, test 4; 6 unlabelled\n",
        ]);
        assert!(!prepared.stdout.contains("warning:"), "{}", prepared.stdout);
    }
}

#[test]
fn groups_of_classes_are_a_question() {
    let workspace = new_workspace();
    for (number, class) in ["animals/cat", "animals/dog", "plants/oak", "plants/elm"].into_iter().enumerate()
    {
        workspace.images(&format!("photos/{class}"), number as u8 * 40, 4);
    }
    workspace.run(&["prepare", "photos"]).with_code(2).reports(&[
        "error: photos: the images of animals, plants are in inner folders: cat, dog, elm, oak\n",
        "if the inner folders are the classes, use --layout nested\n",
        "if animals, plants are the classes, use --layout classes\n",
    ]);
    let nested = ["prepare", "photos", "--layout", "nested", "--to", "nested"];
    workspace.run(&nested).with_code(0).prints(&["4 classes, "]);
    workspace.run(&["prepare", "photos", "--layout", "classes"]).with_code(0).prints(&["2 classes, "]);
}

#[test]
fn classes_that_look_like_splits_are_a_question() {
    let workspace = new_workspace();
    for (number, class) in
        ["train_images/cat", "train_images/dog", "test-set/cat", "test-set/dog"].iter().enumerate()
    {
        workspace.images(&format!("photos/{class}"), number as u8 * 40, 4);
    }
    workspace.run(&["prepare", "photos"]).with_code(2).reports(&[
        "error: photos: the folders look like splits rather than classes: test-set, train_images\n",
        "if they are splits, rename them to train, val, test or unlabelled\n",
        "if they are classes, use --layout classes\n",
    ]);
    workspace.run(&["prepare", "photos", "--layout", "classes"]).with_code(0).prints(&["2 classes, "]);
}

#[test]
fn a_split_beside_classes_is_a_question() {
    let workspace = new_workspace();
    for (number, class) in ["cat", "dog", "Test/cat", "Test/dog"].into_iter().enumerate() {
        workspace.images(&format!("photos/{class}"), number as u8 * 40, 4);
    }
    workspace.run(&["prepare", "photos"]).with_code(2).reports(&[
        "error: photos: `Test` is named like a split and contains folders, but is next to cat, dog\n",
        "if `Test` is a split and the folders next to it are classes, use --layout splits\n",
        "if `Test` is a class like the others, use --layout classes\n",
    ]);
    workspace.run(&["prepare", "photos", "--layout", "splits"]).with_code(0).prints(&[
        "16 samples: train 8, test 8\n",
        "2 classes, labelled images per class: train 4, test 4\n",
    ]);
    // A class may be called `test`: it has images and no folders.
    workspace.images("vehicles/train", 0, 4);
    workspace.images("vehicles/bus", 40, 4);
    workspace.run(&["prepare", "vehicles"]).with_code(0).prints(&[
        "2 classes, ",
        "warning: `train` is named like a split but contains no class folders, so it is read as a class\n",
    ]);
}
