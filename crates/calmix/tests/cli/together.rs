//! Two processes with one output, started together: one of them is refused or both results are whole, never a mixture.

use std::fs;

use calmix_testkit::workspace::folders::{contents, is_same};
use calmix_testkit::workspace::race::one_wins;

use super::{new_workspace, with_run};

#[test]
fn two_preparations_write_one_table() {
    let workspace = new_workspace().with_photos();
    workspace.run(&["prepare", "photos", "--to", "whole"]).with_code(0);
    let whole = contents(&workspace.path("whole"));
    one_wins(
        &workspace,
        || workspace.command(&["prepare", "photos", "--to", "table"]),
        &["table"],
        || drop(fs::remove_dir_all(workspace.path("table"))),
        |case| is_same(&workspace.path("table"), &whole, case),
    );
}

#[test]
fn two_reports_on_one_page_are_whole() {
    let workspace = with_run();
    let made = || {
        let page = fs::read(workspace.path("page.html")).unwrap();
        let data = fs::read(workspace.path("page.json")).unwrap();
        (page, data, contents(&workspace.path("page")))
    };
    let report = || workspace.command(&["report", "run", "--output", "page.html"]);
    workspace.end(report()).with_code(0);
    let whole = made();
    let reset = || {
        fs::remove_file(workspace.path("page.html")).unwrap();
        fs::remove_file(workspace.path("page.json")).unwrap();
        fs::remove_dir_all(workspace.path("page")).unwrap();
    };
    one_wins(&workspace, report, &["page"], reset, |case| assert!(made() == whole, "{case}"));
}
