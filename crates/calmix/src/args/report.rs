//! The arguments of `calmix report`.

use std::path::PathBuf;

use clap::Args;

/// Write an HTML report of runs, with its plots and numbers
///
/// The page works offline and without scripts: an assessment in words, reliability diagrams before and after calibration,
/// risk and coverage, training curves, pseudo-labels, margins, the confusion matrix, every class, and confident mistakes.
/// Several runs are drawn into the same plots. Next to FILE (report.html) calmix writes all numbers as report.json, and
/// every plot as SVG and CSV into the folder report; also as PNG if calmix was built with the feature `raster`. Changes no
/// files of the runs.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
#[allow(clippy::struct_excessive_bools)] // one for each option
pub struct ReportArgs {
    /// Runs, or folders of runs, such as the folder of a sweep
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Where to write the page
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,
    /// Write a page without images, safe to share
    #[arg(long)]
    pub(crate) no_images: bool,
    /// Require the plots as PNG, too; fails if this calmix was built without the feature `raster`
    #[arg(long)]
    pub(crate) png: bool,
    /// Update the page until all runs have ended; a browser that shows it reloads it
    #[arg(long)]
    pub(crate) watch: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const FIELDS: &str = "\
Examples:
  calmix report runs/cpu-folder-1
  calmix report runs/a runs/b --output compared.html
  calmix report runs/cpu-folder-1 --watch

Fields of --json:
  page       the HTML file
  data       the JSON file with all numbers
  plots      the folder of plots
  runs       name, finished, step, assessment (headline, trust, level, notes) of each run";
