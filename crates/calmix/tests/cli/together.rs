//! Processes with one output, started together: one of them is refused or both results are whole, never a mixture.

use std::fs;
use std::thread;

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

/// Reviews of one row each.
const REVIEWS: u32 = 40;

#[test]
fn reviews_that_are_merged_together_lose_no_label() {
    let workspace = new_workspace();
    workspace.images("photos", 0, REVIEWS);
    for image in 0..REVIEWS {
        let review = format!("file,label,drawn\n{image}.png,cat,random\n");
        fs::write(workspace.path(&format!("{image}.csv")), review).unwrap();
    }
    let label = |image: u32| {
        let review = format!("{image}.csv");
        loop {
            let ended = workspace.run(&["label", "photos", &review]);
            if ended.code == 0 {
                return;
            }
            assert!(ended.stderr.contains("run the same command again"), "{}", ended.stderr);
        }
    };
    // The first ones also create the list together.
    thread::scope(|scope| {
        for first in 0..8 {
            scope.spawn(move || (first..REVIEWS).step_by(8).for_each(label));
        }
    });
    let list = fs::read_to_string(workspace.path("photos/labels.csv")).unwrap();
    assert_eq!(list.matches(",cat,random,").count(), REVIEWS as usize, "{list}");
    assert!(workspace.names("photos").iter().all(|name| !name.starts_with('.')), "locks are removed");
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
