//! `inspect` of every kind of thing, and `doctor`.

use std::fs;

use crate::workspace::Workspace;

#[test]
fn every_kind_is_recognised() {
    let workspace = Workspace::new().with_garments().with_photos();
    workspace.end(workspace.training(8, &["--run-dir", "first"])).with_code(0);
    let show = |what: &str| workspace.run(&["inspect", what]).with_code(0);

    show("first").prints(&["run first: finished after 8 steps\n", "next: calmix evaluate first\n"]);
    let checkpoint = show("first/checkpoints/step-000000004");
    checkpoint.prints(&[
        "checkpoint after 4 steps; checksums match\n",
        "  live.safetensors ",
        "  state.json ",
    ]);
    show("first/recipe.toml").prints(&["[train]\nsteps = 8  # first/recipe.toml, line "]);
    show("cpu-cifar10")
        .prints(&["steps = 2500  # recipe cpu-cifar10, line ", "# next: calmix train cpu-cifar10 "]);
    show("first/prepared").prints(&["prepared dataset\n", "140 samples: train 100, test 40\n"]);
    show("garments").prints(&[
        "dataset, mnist\n",
        "140 samples: train 100, test 40\n",
        "next: calmix prepare garments\n",
    ]);
    show("photos").prints(&[
        "dataset, folder\n",
        "32 samples: train 20, unlabelled 12\n",
        "  cat  10\n",
        "broken.png",
    ]);

    // The output of `inspect RECIPE` is a recipe file.
    fs::write(workspace.path("copy.toml"), show("cpu-cifar10").stdout).unwrap();
    show("copy.toml").prints(&["steps = 2500  # copy.toml, line "]);
}

#[test]
fn damage_is_reported() {
    let workspace = Workspace::new().with_garments();
    workspace.end(workspace.training(8, &["--run-dir", "first"])).with_code(0);
    let part = workspace.path("first/checkpoints/step-000000008/live.safetensors");
    let mut bytes = fs::read(&part).unwrap();
    bytes[1000] ^= 1;
    fs::write(&part, bytes).unwrap();
    let damaged = workspace.run(&["inspect", "first/checkpoints/step-000000008"]).with_code(1);
    damaged.reports(&["step-000000008: damaged: ", "live.safetensors"]);
    workspace
        .run(&["inspect", "first"])
        .with_code(0)
        .prints(&["warning: the checkpoint of step 8 cannot be used: "]);

    // A renamed checkpoint is refused.
    fs::rename(workspace.path("first/checkpoints/step-000000004"), workspace.path("four")).unwrap();
    workspace
        .run(&["inspect", "four"])
        .with_code(2)
        .reports(&["four: not called like a checkpoint, which is step-"]);
    fs::rename(workspace.path("four"), workspace.path("first/checkpoints/step-000000004")).unwrap();

    // With no usable checkpoint left, the run does not start over.
    for step in ["step-000000004", "step-000000008"] {
        fs::write(workspace.path("first/checkpoints").join(step).join("state.json"), "{}").unwrap();
    }
    let lost = workspace.run(&["resume", "first"]).with_code(1);
    lost.reports(&["none of its 2 checkpoints can be used", "try: calmix inspect first\n"]);
}

#[test]
fn the_doctor_trains_twice_to_the_same_bytes() {
    let output = Workspace::new().run(&["doctor", "--threads", "1", "--seconds", "1"]).with_code(0);
    output.prints(&[
        "libtorch   2.",
        "devices    ",
        "threads    1 of ",
        ", bit-identical when repeated\n",
        "next: calmix recipes",
    ]);
}
