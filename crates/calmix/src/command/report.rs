//! `calmix report`: writes the HTML report of one or more runs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use calmix_io::confined_path::ConfinedPath;
use calmix_io::shown::shown;
use calmix_io::{atomic_file, safe_open};
use calmix_report::page;
use calmix_report::report::RunsReport;
use serde_json::json;

use crate::args::report::ReportArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::model::folder::runs_of;
use crate::output::format::{shell_quoted, written_to};
use crate::process::stop::{POLL_INTERVAL, Stop};
use crate::terminal::{print, print_json, status_in_place};

/// The time between two reads of a watched run, and between two reloads of the page in a browser.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// A text near the start of every page of calmix, by which it is recognised.
const PAGE_MARK: &str = "<meta name=\"generator\" content=\"calmix report\">";

/// Texts near the start of a report's JSON file.
const DATA_MARK: [&str; 2] = ["\"format\": ", "\"calmix\": \""];

/// The files of a report.
struct ReportPaths {
    page: PathBuf,
    data: PathBuf,
    plots: PathBuf,
}

impl ReportArgs {
    pub fn run(self) -> Result<Exit> {
        if self.png && !page::DRAWS_PNG {
            let message = "this calmix was built without the feature `raster`, which draws plots as PNG";
            let hint = "cargo install --locked --path crates/calmix --features raster";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let runs = runs_of(&self.runs)?;
        let paths = ReportPaths::of(&self.output)?;
        let stop = if self.watch { Some(Stop::listen()?) } else { None };
        let mut report = RunsReport::read(&runs, !self.no_images)?;
        paths.write(&report, self.watch && !report.is_final())?;
        while let Some(stop) = stop.as_ref().filter(|_| !report.is_final()) {
            status_in_place(&format!(
                "{} is up to date; watching the runs (Ctrl-C ends)",
                shown(paths.page.display())
            ));
            if !wait_for_refresh(stop) {
                // The last page must not reload itself.
                paths.write(&report, false)?;
                break;
            }
            let now = RunsReport::read(&runs, !self.no_images)?;
            if now != report {
                report = now;
                paths.write(&report, !report.is_final())?;
            }
        }
        if self.json {
            print_json(&paths.json(&report))?;
        } else {
            print(&paths.summary(&report))?;
        }
        Ok(Exit::Done)
    }
}

/// Waits until the runs should be read again; returns false if the user stops the command.
fn wait_for_refresh(stop: &Stop) -> bool {
    let polls = REFRESH_INTERVAL.as_millis() / POLL_INTERVAL.as_millis();
    for _ in 0..polls {
        if stop.flag().load(Ordering::Relaxed) {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}

impl ReportPaths {
    /// Returns the paths of a report's files; refuses to overwrite files that are not a report.
    fn of(page: &Path) -> Result<Self> {
        let is_page = page.extension().is_some_and(|extension| extension == "html" || extension == "htm");
        if !is_page {
            let message = format!("{}: the name of the page must end in .html", shown(page.display()));
            return Err(CliError::invalid(message).hint("--output report.html").into());
        }
        let data = page.with_extension("json");
        let plots = page.with_extension("");
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        if exists(page) && !begins_with(page, &[PAGE_MARK]) {
            let message = format!("{} exists and is not a calmix report", shown(page.display()));
            return Err(CliError::invalid(message).hint("--output FILE names another file").into());
        }
        if exists(&plots) {
            safe_open::check_folder(&plots).map_err(|error| CliError::invalid(error.to_string()))?;
        }
        if exists(page) && exists(&data) && !begins_with(&data, &DATA_MARK) {
            let message = format!("{} exists and is not a calmix report", shown(data.display()));
            return Err(CliError::invalid(message).hint("--output FILE names other files").into());
        }
        // Without a page, files with these names are not from calmix.
        if let Some(path) = [&data, &plots].into_iter().find(|path| exists(path) && !exists(page)) {
            let message = format!("{} exists, and a report would overwrite it", shown(path.display()));
            return Err(CliError::invalid(message).hint("--output FILE names other files").into());
        }
        Ok(Self { page: page.to_owned(), data, plots })
    }

    /// Writes every file atomically; the page first, since a user may be waiting for it.
    fn write(&self, report: &RunsReport, refresh: bool) -> Result<()> {
        let refresh = refresh.then_some(REFRESH_INTERVAL.as_secs() as u32);
        if let Some(folder) = self.page.parent() {
            safe_open::create_folders(folder)
                .with_context(|| format!("cannot create {}", shown(folder.display())))?;
        }
        atomic_file::write(&self.page, page::html(report, refresh).as_bytes())?;
        atomic_file::write(&self.data, &report.to_json()?)?;
        let plots = ConfinedPath::from(&self.plots);
        safe_open::create_folder_if_missing(&plots)?;
        for file in page::files(report)? {
            atomic_file::write(plots.join(&file.name), &file.bytes)?;
        }
        Ok(())
    }

    fn summary(&self, report: &RunsReport) -> String {
        let several = report.runs.len() > 1;
        let assessment = |run: &calmix_report::report::RunReport| {
            let name = if several { format!("{}: ", shown(&run.name)) } else { String::new() };
            format!("{name}{}\n{}\n", run.assessment.headline, run.assessment.trust)
        };
        let assessments: Vec<String> = report.runs.iter().map(assessment).collect();
        let kinds = if page::DRAWS_PNG { "SVG, PNG and CSV" } else { "SVG and CSV" };
        format!(
            "{}\n{}\n  {}: all numbers\n  {}/: plots as {kinds}\nnext: open {} in a browser\n",
            assessments.join("\n"),
            written_to(&shown(self.page.display()), ""),
            shown(self.data.display()),
            shown(self.plots.display()),
            shell_quoted(&self.page),
        )
    }

    fn json(&self, report: &RunsReport) -> serde_json::Value {
        let runs = report.runs.iter().map(|run| {
            json!({ "name": run.name, "finished": run.finished, "step": run.step, "assessment": run.assessment })
        });
        json!({
            "page": self.page.display().to_string(),
            "data": self.data.display().to_string(),
            "plots": self.plots.display().to_string(),
            "runs": runs.collect::<Vec<_>>(),
        })
    }
}

/// Returns whether a plain file starts with bytes that contain these texts.
fn begins_with(path: &Path, texts: &[&str]) -> bool {
    let mut beginning = Vec::new();
    let read =
        safe_open::open(path).is_ok_and(|(file, _)| file.take(2_000).read_to_end(&mut beginning).is_ok());
    let beginning = String::from_utf8_lossy(&beginning);
    read && texts.iter().all(|text| beginning.contains(text))
}
