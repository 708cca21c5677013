//! A dataset that is not where it was when the run began.

use std::fs;

use crate::desk::Desk;

#[test]
fn a_dataset_that_has_moved_is_found_again() {
    let desk = Desk::new().with_garments();
    desk.end(desk.training(8, &["--into", "first"])).with_code(0);
    let before = desk.run(&["evaluate", "first"]).with_code(0);
    fs::rename(desk.path("garments"), desk.path("elsewhere")).unwrap();
    let lost = desk.run(&["evaluate", "first"]).with_code(2);
    lost.tells(&[
        "error: [HERE]/garments: the dataset of this run is not here any more\n",
        "try: calmix evaluate first --data FOLDER, with its new place\n",
    ]);
    let recipe = fs::read(desk.path("first/recipe.toml")).unwrap();
    let found = desk.run(&["evaluate", "first", "--data", "elsewhere"]).with_code(0);
    assert_eq!(found.stdout, before.stdout);
    assert_eq!(fs::read(desk.path("first/recipe.toml")).unwrap(), recipe, "evaluate writes nothing");
    // What is finished can be shown without its data.
    desk.run(&["resume", "first"]).with_code(0).says(&["this run was finished before\n"]);
}

#[test]
fn a_stopped_run_goes_on_from_the_new_place_and_keeps_it() {
    let desk = Desk::new().with_garments();
    desk.end(desk.training(8, &["--into", "whole"])).with_code(0);
    desk.end(desk.training(8, &["--into", "first"])).with_code(0);
    // As a run is that was killed after its first checkpoint.
    fs::remove_dir_all(desk.path("first/checkpoints/step-000000008")).unwrap();
    fs::remove_file(desk.path("first/result.json")).unwrap();
    fs::rename(desk.path("garments"), desk.path("elsewhere")).unwrap();
    desk.run(&["resume", "first"]).with_code(2).tells(&[
        "error: [HERE]/garments: the dataset of this run is not here any more\n",
        "try: calmix resume first --data FOLDER, with its new place\n",
    ]);
    desk.run(&["resume", "first", "--data", "elsewhere"]).with_code(0);
    let result = |run: &str| fs::read(desk.path(run).join("result.json")).unwrap();
    assert!(result("first") == result("whole"));
    desk.run(&["evaluate", "first"]).with_code(0);
}

#[test]
fn another_dataset_is_refused() {
    let desk = Desk::new().with_garments();
    desk.end(desk.training(8, &["--into", "first"])).with_code(0);
    // The same names and lengths, and one pixel of the last test image that is another.
    fs::create_dir(desk.path("others")).unwrap();
    for file in fs::read_dir(desk.path("garments")).unwrap() {
        let file = file.unwrap();
        let mut bytes = fs::read(file.path()).unwrap();
        if file.file_name() == "t10k-images-idx3-ubyte" {
            *bytes.last_mut().unwrap() ^= 1;
        }
        fs::write(desk.path("others").join(file.file_name()), bytes).unwrap();
    }
    let files = desk.run(&["evaluate", "first", "--data", "others"]).with_code(1);
    files.tells(&["others/t10k-images-idx3-ubyte", "sample 139", "when prepared"]);
    // Prepared anew, it is known by its fingerprint before anything is read.
    desk.run(&["prepare", "others", "--source", "fashion-mnist"]).with_code(0);
    for command in ["evaluate", "resume"] {
        if command == "resume" {
            fs::remove_dir_all(desk.path("first/checkpoints/step-000000008")).unwrap();
        }
        let moved = [command, "first", "--data", "others", "--prepared", "prepared/others"];
        desk.run(&moved).with_code(1).tells(&["first: the dataset was ", " when the run began and is "]);
    }
}

#[test]
fn a_table_that_is_gone_is_named() {
    let desk = Desk::new().with_garments();
    desk.run(&["prepare", "garments", "--source", "fashion-mnist"]).with_code(0);
    desk.end(desk.training(8, &["--into", "first", "--prepared", "prepared/garments"])).with_code(0);
    fs::rename(desk.path("prepared"), desk.path("tables")).unwrap();
    desk.run(&["evaluate", "first"]).with_code(2).tells(&[
        "error: [HERE]/prepared/garments: the table of this run is not here any more\n",
        "try: calmix evaluate first --prepared FOLDER, with its new place\n",
    ]);
    desk.run(&["evaluate", "first", "--prepared", "tables/garments"]).with_code(0);
}
