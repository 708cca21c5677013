//! `calmix compare` on runs that were trained for it.

use serde_json::Value;

use crate::program::new_workspace;

#[test]
fn runs_are_settings_and_seeds() {
    let workspace = new_workspace().with_garments();
    let runs = [
        ("a-1", "none", "1"),
        ("a-2", "none", "2"),
        ("b-1", "calibratemix", "1"),
        ("b-2", "calibratemix", "2"),
    ];
    for (run, pairing, seed) in runs {
        let (run, pairing) = (format!("runs/{run}"), format!("method.mixup.pairing={pairing}"));
        // Threads and folders are of the machine: the runs are one setting all the same.
        let bootstrap = format!("evaluate.bootstrap={seed}0");
        let more = ["--run-dir", &run, "--seed", seed, "--set", &pairing, "--set", &bootstrap, "--quiet"];
        workspace.end(workspace.training(2, &more)).with_code(0);
    }
    let table = workspace.run(&["compare", "runs"]).with_code(0);
    table.prints(&[
        "| Metric            | Method                  |",
        "  Fashion-MNIST, 2 |",
        "| Error             | FixMatch + CalibrateMix |",
        "| NLL, calibrated   | FixMatch + CalibrateMix |",
        " (2) |",
        "| too few runs |",
        "- an ECE needs 1,000 samples\n",
    ]);
    workspace
        .run(&["compare", "runs", "--format", "latex"])
        .with_code(0)
        .prints(&["\\multirow{2}{*}{Error} & FixMatch &"]);
    workspace
        .run(&["compare", "runs", "--format", "csv"])
        .with_code(0)
        .prints(&["\nFashion-MNIST,2,test,FixMatch,,Error,"]);

    let named = ["compare", "runs/b-1", "runs/a-1", "runs/b-2", "--against", "runs/b-2", "--json"];
    let document: Value = serde_json::from_str(&workspace.run(&named).with_code(0).stdout).unwrap();
    assert_eq!(document["cells"][1]["seeds"], serde_json::json!([[1, 1], [2, 2]]), "{document}");
    let difference = &document["differences"][0];
    assert_eq!((&difference["row"], &difference["against"]), (&0.into(), &1.into()), "{document}");
    let error = |run: &str| {
        let bytes = std::fs::read(workspace.path(&format!("runs/{run}/result.json"))).unwrap();
        let result: Value = serde_json::from_slice(&bytes).unwrap();
        result["finished"]["selected"]["last"]["metrics"]["error"].as_f64().unwrap()
    };
    assert_eq!(difference["mean"].as_f64(), Some(error("a-1") - error("b-1")), "{document}");

    workspace
        .run(&["compare", "garments"])
        .with_code(2)
        .reports(&["garments: neither a run nor a folder of runs"]);
    workspace
        .run(&["compare", "runs/a-1", "--against", "runs/b-1"])
        .with_code(2)
        .reports(&["not one of the runs to compare"]);
    std::fs::remove_file(workspace.path("runs/a-1/result.json")).unwrap();
    workspace.run(&["compare", "runs"]).with_code(0).reports(&["1 run without metrics left out"]);
    workspace.run(&["compare", "runs/a-1"]).with_code(2).reports(&["no finished run to compare"]);
}
