//! `report` beside files that are not its own.

use std::fs;

use super::with_run;

#[test]
fn foreign_files_are_not_overwritten() {
    let workspace = with_run().with_garments();
    fs::write(workspace.path("report.html"), "mine").unwrap();
    let refused = workspace.run(&["report", "run"]).with_code(2);
    refused.reports(&["report.html exists and is not a calmix report", "try: --output FILE"]);
    fs::write(workspace.path("data.json"), "mine").unwrap();
    let refused = workspace.run(&["report", "run", "-o", "data.html"]).with_code(2);
    refused.reports(&["data.json exists, and a report would overwrite it"]);
    let refused = workspace.run(&["report", "run", "-o", "run.html"]).with_code(2);
    refused.reports(&["run exists, and a report would overwrite it"]);
    workspace.run(&["report", "run", "-o", "page.txt"]).with_code(2).reports(&["must end in .html"]);
    for name in ["report.html", "data.json"] {
        assert_eq!(fs::read_to_string(workspace.path(name)).unwrap(), "mine");
    }
    // A report replaces a report.
    for _ in 0..2 {
        workspace.run(&["report", "run", "-o", "own.html"]).with_code(0);
    }
    workspace
        .run(&["report", "garments", "-o", "own.html"])
        .with_code(2)
        .reports(&["garments: neither a run nor a folder of runs"]);
    workspace.run(&["report", "nowhere"]).with_code(2);
}
