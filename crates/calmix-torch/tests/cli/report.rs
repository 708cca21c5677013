//! `report`: the page, the files beside it, and every number of it computed again by others.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use calmix_testkit::python::environment;
use calmix_testkit::tier;

use crate::program::new_workspace;

/// The folder of calmix-report's scripts.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix-report/tests").join(name)
}

/// The Python of the linked libtorch, which has NumPy.
pub(crate) fn python() -> PathBuf {
    let environment = Path::new(env!("CALMIX_LIBTORCH_LIBRARIES")).ancestors().nth(5).unwrap();
    let own = environment.join("bin/python");
    if own.exists() { own } else { "python3".into() }
}

/// Where `cargo xtask setup` unpacked torchmetrics, or `$CALMIX_TORCHMETRICS`.
fn torchmetrics() -> Option<PathBuf> {
    std::env::var_os("CALMIX_TORCHMETRICS").map(PathBuf::from).or_else(|| environment("torchmetrics"))
}

#[test]
fn a_run_becomes_a_page_whose_numbers_are_those_of_others() {
    let workspace = new_workspace().with_garments();
    let more = ["--run-dir", "first", "--set", "labels.count=4", "--set", "labels.validation=0.5"];
    workspace.end(workspace.training(8, &more)).with_code(0);
    let before = workspace.names("first");
    assert!(
        before.contains(&"margins.json".to_owned()) && before.contains(&"thumbnails.safetensors".to_owned())
    );
    let report = workspace.run(&["report", "first"]).with_code(0);
    report.prints(&[
        "Too few labels: it was evaluated on 40 samples of the test split; an assessment needs 50.\n",
        "written to report.html\n  report.json: all numbers\n",
        if cfg!(feature = "raster") {
            "  report/: plots as SVG, PNG and CSV\n"
        } else {
            "  report/: plots as SVG and CSV\n"
        },
        "next: open report.html in a browser\n",
    ]);
    assert_eq!(workspace.names("first"), before, "a reader writes nothing");
    let page = fs::read_to_string(workspace.path("report.html")).unwrap();
    for part in [
        "content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\"",
        "<h2>Is the confidence calibrated?</h2>",
        "src=\"data:image/png;base64,",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["<script", "http://", "https://", "http-equiv=\"refresh\""] {
        assert!(!page.contains(part), "{part}");
    }
    let data: serde_json::Value =
        serde_json::from_slice(&fs::read(workspace.path("report.json")).unwrap()).unwrap();
    assert!(
        data["runs"][0]["evaluated"]["reliability"]["after"].is_object(),
        "20 held-out labels fit a temperature"
    );
    let names = workspace.names("report");
    for name in ["reliability", "coverage", "training", "pseudo-labels", "margins", "confusion", "classes"] {
        for kind in ["csv", "svg"] {
            assert!(names.contains(&format!("{name}.{kind}")), "{name}.{kind} of {names:?}");
        }
        let png = fs::read(workspace.path(&format!("report/{name}.png")));
        assert_eq!(png.is_ok_and(|png| png.starts_with(b"\x89PNG\r\n")), cfg!(feature = "raster"), "{name}");
    }
    let with_png = workspace.run(&["report", "first", "--png", "-o", "png.html"]);
    if cfg!(feature = "raster") {
        with_png.with_code(0);
    } else {
        with_png.with_code(2).reports(&[
            "error: this calmix was built without the feature `raster`, which draws plots as PNG\n",
            "try: cargo install --locked --path crates/calmix --features raster\n",
        ]);
        assert!(!workspace.path("png.html").exists());
    }

    // Again, from another folder, and without images.
    let other =
        workspace.run(&["report", "first", "--no-images", "-o", "plain/page.html", "--json"]).with_code(0);
    let json: serde_json::Value = serde_json::from_str(&other.stdout).unwrap();
    assert_eq!((&json["page"], &json["runs"][0]["finished"]), (&"plain/page.html".into(), &true.into()));
    let plain = fs::read_to_string(workspace.path("plain/page.html")).unwrap();
    assert!(!plain.contains("data:image"));

    let mut command = Command::new(python());
    command
        .arg("-B")
        .arg(script("recompute.py"))
        .current_dir(workspace.path(""))
        .args(["report.json", "first"]);
    if let Some(packages) = torchmetrics() {
        command.env("PYTHONPATH", packages);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let numbers: u32 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(numbers > 400, "{said}");
    assert_eq!(said.contains("by torchmetrics too"), torchmetrics().is_some(), "{said}");

    // The script can tell: one digit of one number is another.
    let text = fs::read_to_string(workspace.path("report.json")).unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
    let aurc = &mut changed["runs"][0]["evaluated"]["coverage"]["before"]["aurc"];
    *aurc = (aurc.as_f64().unwrap() + 1e-8).into();
    fs::write(workspace.path("changed.json"), changed.to_string()).unwrap();
    let mut command = Command::new(python());
    command
        .arg("-B")
        .arg(script("recompute.py"))
        .current_dir(workspace.path(""))
        .args(["changed.json", "first"]);
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("coverage.before.aurc"), "{output:?}");
}

#[test]
fn hostile_names_mean_nothing_to_a_browser() {
    let workspace = new_workspace();
    let (one, two) = ("<script>alert(0)<img src=x onerror=alert(1)>", "\"'>&<svg onload=alert(2)>\u{202e}");
    for (class, shade) in [(one, 40), (two, 200)] {
        workspace.images(&format!("hostile/train/{class}"), shade, 6);
        workspace.images(&format!("hostile/test/{class}"), shade, 3);
    }
    workspace.end(workspace.folder_training("hostile", &["--run-dir", "=<b>run"])).with_code(0);
    workspace.run(&["report", "=<b>run"]).with_code(0);
    let names = workspace.names("report");
    let files = names
        .iter()
        .filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "svg"))
        .map(|name| format!("report/{name}"));
    for file in files.chain(["report.html".to_owned()]) {
        let text = fs::read_to_string(workspace.path(&file)).unwrap();
        for part in ["<script", "<img src=x", "<svg onload", "<b>run", "\u{202e}"] {
            assert!(!text.contains(part), "{part} in {file}");
        }
        let names_classes = ["report.html", "report/classes.svg", "report/confusion.svg"];
        assert!(
            !names_classes.contains(&file.as_str()) || text.contains("&lt;"),
            "{file} does not name a class"
        );
    }
    let csv = fs::read_to_string(workspace.path("report/reliability.csv")).unwrap();
    assert!(csv.contains("\n'=<b>run,"), "{csv}");
}

/// While a run goes on, its page loads itself again; no longer once Ctrl-C has ended the command.
#[cfg(target_os = "linux")]
#[test]
fn a_page_is_kept_current() {
    use calmix_testkit::workspace::running::Running;

    let workspace = new_workspace().with_garments();
    let mut running = Running::new(workspace.training(4_000, &["--run-dir", "first"]));
    running.until("step     6/4,000");
    let mut watching = Running::new(workspace.command(&["report", "first", "--watch", "-o", "page.html"]));
    watching.until("page.html is up to date");
    let page = fs::read_to_string(workspace.path("page.html")).unwrap();
    assert!(page.contains("<meta http-equiv=\"refresh\" content=\"10\">") && page.contains("has not ended"));
    watching.signal("INT");
    watching.end();
    let page = fs::read_to_string(workspace.path("page.html")).unwrap();
    assert!(!page.contains("refresh"), "no process updates it any more");
    running.signal("INT");
    running.end();
}

/// In Chromium, wide and narrow, light and dark: where puppeteer-core and axe-core are available.
#[test]
fn a_browser_shows_it_well() {
    if std::env::var_os("CALMIX_BROWSER_MODULES").is_none() {
        return tier::skipped("CALMIX_BROWSER_MODULES names no folder with puppeteer-core and axe-core");
    }
    let workspace = new_workspace().with_garments();
    for run in ["first", "a-run-with-a-name-that-is-longer-than-a-legend-has-room-for"] {
        workspace.end(workspace.training(8, &["--run-dir", run])).with_code(0);
    }
    workspace.run(&["report", "first"]).with_code(0);
    let long = "a-run-with-a-name-that-is-longer-than-a-legend-has-room-for";
    workspace.run(&["report", "first", long, "-o", "both.html"]).with_code(0);
    for page in ["report.html", "both.html"] {
        let output =
            Command::new("node").arg(script("browser.mjs")).arg(workspace.path(page)).output().unwrap();
        assert!(output.status.success(), "{page}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stdout).matches("looked at ").count(), 8);
    }
}
