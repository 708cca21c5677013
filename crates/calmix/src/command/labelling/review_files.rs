//! The files of `calmix review`, and what it prints about them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_data::dataset::Dataset;
use calmix_formats::labels::columns::LabelColumns;
use calmix_io::shown::shown;
use calmix_io::{atomic_file, safe_open};
use calmix_recipe::{Data, SourceName};
use calmix_report::review_page::{self, Program, ReviewPage, review_page};
use serde_json::{Value, json};

use super::review_vectors::LiveVectors;
use crate::args::labelling::review::{LabellingTool, ReviewArgs};
use crate::output::format::{counted, shell_quoted};
use crate::review::{
    LabelStudioTasks, Pool, ReviewRow, RowCounts, SampleTexts, labelling_interface, thumbnail, to_csv,
};
use crate::terminal::sentence;

pub(super) const CSV: &str = "review.csv";
const PAGE: &str = "review.html";
const TASKS: &str = "label-studio.json";
const INTERFACE: &str = "label-studio.xml";
/// The name of the file that the user exports from Label Studio, in commands.
const EXPORT: &str = "EXPORT.json";

/// What is reviewed, and where the files go.
pub(super) struct ReviewFiles<'a> {
    pub(super) args: &'a ReviewArgs,
    pub(super) dataset: &'a Dataset,
    pub(super) data: &'a Data,
    pub(super) run: Option<&'a Path>,
}

impl ReviewFiles<'_> {
    /// Writes the files; `live` has the vectors of a page that learns.
    pub(super) fn write(&self, pool: &Pool, rows: &[ReviewRow], live: Option<&LiveVectors>) -> Result<()> {
        let csv = to_csv(pool, rows)?;
        let mut classes = pool.classes.clone();
        classes.extend(self.args.classes.iter().filter(|name| !pool.classes.contains(name)).cloned());
        let columns = LabelColumns {
            path: Some(self.data.path_column.clone()).filter(|name| !name.is_empty()),
            label: Some(self.data.label_column.clone()).filter(|name| !name.is_empty()),
        };
        let texts = match self.data.labels.as_str() {
            "" => SampleTexts::default(),
            list => SampleTexts::read(Path::new(list), &columns),
        };
        let is_page = self.args.to.is_none();
        let mut shown_rows = Vec::with_capacity(rows.len());
        let mut images = Vec::with_capacity(rows.len());
        let mut fields = Vec::with_capacity(rows.len());
        for row in rows {
            let sample = &pool.samples[row.sample];
            let has_thumbnail = is_page && self.has_images();
            images.push(if has_thumbnail { thumbnail(self.dataset, sample.id, rows.len())? } else { None });
            fields.push(texts.of(&sample.name));
        }
        for ((row, image), fields) in rows.iter().zip(&images).zip(&fields) {
            let sample = &pool.samples[row.sample];
            let given = sample.label.map(|label| pool.class(label));
            shown_rows.push(review_page::ReviewRow {
                file: &sample.name,
                label: given.filter(|_| row.is_answered),
                given,
                predicted: row.predicted.map(|(label, _)| pool.class(label)),
                confidence: row.predicted.map(|(_, confidence)| confidence),
                why: row.reason.word(),
                drawn: row.drawn.word(),
                vector: live.and_then(|live| live.row_of(sample.id)),
                image: image.as_deref(),
                fields,
            });
        }
        match self.args.to {
            None => self.write_page(&csv, &classes, &shown_rows, live)?,
            Some(LabellingTool::LabelStudio) => self.write_tasks(&classes, &shown_rows)?,
        }
        atomic_file::write(&self.args.out.join(CSV), &csv)?;
        Ok(())
    }

    fn write_page(
        &self,
        csv: &[u8],
        classes: &[String],
        rows: &[review_page::ReviewRow<'_>],
        live: Option<&LiveVectors>,
    ) -> Result<()> {
        // The answers that a browser keeps belong to exactly these rows.
        let storage_key = format!("calmix-review-{}", blake3::hash(csv).to_hex());
        let title = as_typed(&self.data.path);
        let page = ReviewPage {
            title: &title.to_string_lossy(),
            storage_key: &storage_key,
            classes,
            rows,
            csv_name: CSV,
            command: &self.next_command(CSV),
            program: live.map(|live| Program::Live(live.pool())),
        };
        safe_open::create_folders(&self.args.out)?;
        atomic_file::write(&self.args.out.join(PAGE), review_page(&page).as_bytes())?;
        Ok(())
    }

    fn write_tasks(&self, classes: &[String], rows: &[review_page::ReviewRow<'_>]) -> Result<()> {
        let (_, folder) = self.served_folder();
        let run = self.run.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let tasks = LabelStudioTasks {
            rows,
            folder: self.has_images().then_some(folder.as_str()),
            model: &format!("calmix {run}"),
        };
        let interface = labelling_interface(classes, self.has_images())?;
        safe_open::create_folders(&self.args.out)?;
        atomic_file::write(&self.args.out.join(TASKS), &tasks.json()?)?;
        atomic_file::write(&self.args.out.join(INTERFACE), interface.as_bytes())?;
        Ok(())
    }

    fn has_images(&self) -> bool {
        self.data.source != SourceName::Vectors
    }

    /// Returns the folder that Label Studio serves files from, and the name of the dataset in it. Label Studio refuses a storage that
    /// is this folder itself, so it is the one above the dataset.
    fn served_folder(&self) -> (PathBuf, String) {
        let data = Path::new(&self.data.path);
        match (data.parent(), data.file_name()) {
            (Some(parent), Some(name)) => (parent.to_owned(), name.to_string_lossy().into_owned()),
            _ => (data.to_owned(), String::new()),
        }
    }

    /// Returns the fields that name the files in the JSON document of the command.
    pub(super) fn json(&self) -> Value {
        let path =
            |name: &str, is_written: bool| is_written.then(|| self.args.out.join(name).display().to_string());
        let is_page = self.args.to.is_none();
        json!({
            "csv": path(CSV, true),
            "page": path(PAGE, is_page),
            "tasks": path(TASKS, !is_page),
            "interface": path(INTERFACE, !is_page),
        })
    }

    /// Returns the command that puts the answers into the list of labels.
    fn next_command(&self, answers: &str) -> String {
        let labels = match self.data.labels.as_str() {
            _ if self.has_images() => String::new(),
            "" => " --labels labels.csv".to_owned(),
            labels => format!(" --labels {}", shell_quoted(&as_typed(labels))),
        };
        format!(
            "calmix label {} {}{labels}",
            shell_quoted(&as_typed(&self.data.path)),
            shell_quoted(Path::new(answers))
        )
    }

    pub(super) fn summary(&self, counts: RowCounts) -> String {
        let least_certain = if self.args.live {
            "samples among which the page puts first what its model is least sure of"
        } else {
            "samples that the model is least sure of"
        };
        let kinds = [
            (counts.copies, "identical samples with different labels"),
            (counts.check, "labels that may be wrong"),
            (counts.first, "typical samples without a label"),
            (counts.margin, least_certain),
            (counts.random, "samples drawn at random, shown without a prediction"),
        ];
        let total: usize = kinds.iter().map(|(count, _)| count).sum();
        let line = |(count, what): (usize, &str)| format!("  {count:>5}  {what}\n");
        let lines: String = kinds.into_iter().filter(|(count, _)| *count > 0).map(line).collect();
        let mut text = format!("{} to look at\n{lines}", counted(total as u64, "sample"));
        if counts.now_random > 0 {
            let labels = counted(counts.now_random as u64, "chosen label");
            text += &sentence(&format!(
                "{labels} will count as random: the random order of the samples has reached them."
            ));
            text += "\n";
        }
        if counts.skipped > 0 {
            let samples = counted(counts.skipped as u64, "random sample");
            text += &sentence(&format!(
                "{samples} had no answer in earlier reviews. Guarantees hold for samples that can be labelled."
            ));
            text += "\n";
        }
        text + &match self.args.to {
            None => self.page_text(),
            Some(LabellingTool::LabelStudio) => self.label_studio_text(),
        }
    }

    fn page_text(&self) -> String {
        let page = self.out_path(PAGE);
        let csv = self.out_path(CSV);
        format!(
            "written to {} and {}\nnext: open {} in a browser and save your answers, or fill in the column `label` of {}\nthen: {}\n",
            shown(page.display()),
            shown(csv.display()),
            shell_quoted(&page),
            shell_quoted(&csv),
            self.next_command(&csv.to_string_lossy()),
        )
    }

    fn label_studio_text(&self) -> String {
        let tasks = shell_quoted(&self.out_path(TASKS));
        let interface = shell_quoted(&self.out_path(INTERFACE));
        let csv = shown(self.out_path(CSV).display());
        let begin = if self.has_images() {
            let (folder, _) = self.served_folder();
            format!(
                "next: start Label Studio with these variables, so that it can show the images\n\
                 \x20 export LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true\n\
                 \x20 export LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT={}\n\
                 in a project, add the source storage Local Files with this path; do not sync it\n\
                 \x20 {}\n",
                shell_quoted(&folder),
                shown(&self.data.path),
            )
        } else {
            "next: create a project in Label Studio\n".to_owned()
        };
        format!(
            "written to {tasks}, {interface} and {csv}\n{begin}\
             paste {interface} as the code of its labelling interface, import {tasks}, and export the answers as JSON\n\
             then: {}\n",
            self.next_command(EXPORT),
        )
    }

    /// Returns the path of a file as the user types it.
    fn out_path(&self, name: &str) -> PathBuf {
        let path = self.args.out.join(name);
        path.strip_prefix(".").map(Path::to_owned).unwrap_or(path)
    }
}

/// Returns a path as the user most likely typed it: recipes have absolute ones.
fn as_typed(path: &str) -> PathBuf {
    let path = PathBuf::from(path);
    let current = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(current).map(Path::to_owned).unwrap_or(path)
}
