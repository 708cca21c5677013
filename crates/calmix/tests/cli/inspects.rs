//! `inspect` of everything that there is, and `doctor`.

use std::fs;

use crate::desk::Desk;

#[test]
fn every_kind_is_told_from_the_others() {
    let desk = Desk::new().with_garments().with_photos();
    desk.end(desk.training(8, &["--into", "first"])).with_code(0);
    let show = |what: &str| desk.run(&["inspect", what]).with_code(0);

    show("first").says(&["run first: finished after 8 steps\n", "next: calmix evaluate first\n"]);
    let checkpoint = show("first/checkpoints/step-000000004");
    checkpoint.says(&[
        "checkpoint after 4 steps, every byte as it was written\n",
        "  live.safetensors ",
        "  state.json ",
    ]);
    show("first/recipe.toml").says(&["[train]\nsteps = 8  # first/recipe.toml, line "]);
    show("desk-cifar10")
        .says(&["steps = 2500  # recipe desk-cifar10, line ", "# next: calmix train desk-cifar10 "]);
    show("first/prepared").says(&["prepared dataset\n", "140 samples: train 100, test 40\n"]);
    show("garments").says(&[
        "dataset, mnist\n",
        "140 samples: train 100, test 40\n",
        "next: calmix prepare garments\n",
    ]);
    show("photos").says(&[
        "dataset, folder\n",
        "32 samples: train 20, unlabelled 12\n",
        "  cat  10\n",
        "broken.png",
    ]);

    // What is shown as a recipe is one.
    fs::write(desk.path("copy.toml"), show("desk-cifar10").stdout).unwrap();
    show("copy.toml").says(&["steps = 2500  # copy.toml, line "]);
}

#[test]
fn damage_is_found_and_named() {
    let desk = Desk::new().with_garments();
    desk.end(desk.training(8, &["--into", "first"])).with_code(0);
    let part = desk.path("first/checkpoints/step-000000008/live.safetensors");
    let mut bytes = fs::read(&part).unwrap();
    bytes[1000] ^= 1;
    fs::write(&part, bytes).unwrap();
    let damaged = desk.run(&["inspect", "first/checkpoints/step-000000008"]).with_code(1);
    damaged.tells(&["step-000000008: damaged: ", "live.safetensors"]);
    desk.run(&["inspect", "first"])
        .with_code(0)
        .says(&["warning: the checkpoint of step 8 cannot be used: "]);

    // One that has lost its name is not taken for another.
    fs::rename(desk.path("first/checkpoints/step-000000004"), desk.path("four")).unwrap();
    desk.run(&["inspect", "four"])
        .with_code(2)
        .tells(&["four: not called like a checkpoint, which is step-"]);
    fs::rename(desk.path("four"), desk.path("first/checkpoints/step-000000004")).unwrap();

    // With none left nothing is begun anew, and nothing is written.
    for step in ["step-000000004", "step-000000008"] {
        fs::write(desk.path("first/checkpoints").join(step).join("state.json"), "{}").unwrap();
    }
    let lost = desk.run(&["resume", "first"]).with_code(1);
    lost.tells(&["none of its 2 checkpoints can be used", "try: calmix inspect first\n"]);
}

#[test]
fn the_doctor_trains_twice_to_the_same_bytes() {
    let said = Desk::new().run(&["doctor", "--threads", "1", "--seconds", "1"]).with_code(0);
    said.says(&[
        "libtorch   2.",
        "devices    ",
        "threads    1 of ",
        ", twice the same bytes\n",
        "next: calmix recipes",
    ]);
}
