//! The arguments of `calmix review`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::options::source::SourceArgs;

/// Choose samples to label or to check, and write a page for it
///
/// Writes review.csv, a row per sample with a column for its label, and review.html, a page that works offline and saves the same
/// file. `calmix label` puts the answers into the list of labels.
///
/// Of images or vectors it asks for the first labels: the typical sample of each cluster. Of a run it asks for labels that the
/// model, trained without them, contradicts. Three in ten rows are drawn at random from all samples, and shown without a prediction:
/// guarantees rest on these alone.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
#[allow(clippy::struct_excessive_bools)] // one for each option
pub struct ReviewArgs {
    /// A run, a folder of images, or a file or folder of vectors
    #[arg(value_name = "RUN|DATA")]
    pub data: PathBuf,
    /// Rows to ask for [default: 50, or 500 with --live]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub count: Option<u32>,
    /// Share of the rows that are drawn at random
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    pub random: f64,
    /// Also choose unlabelled samples for the model: those that it is least sure of
    #[arg(long, value_enum, value_name = "RULE")]
    pub choose: Option<ChooseRule>,
    /// Let the page learn: every ten answers it fits the head again, and predictions and order follow
    #[arg(long, conflicts_with = "to")]
    pub live: bool,
    /// Write tasks for this tool instead of review.html
    #[arg(long, value_enum, value_name = "TOOL")]
    pub to: Option<LabellingTool>,
    /// Names of classes that have no label yet, for the page
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub classes: Vec<String>,
    /// Labels of the vectors: a CSV with ids
    #[arg(long, value_name = "FILE")]
    pub labels: Option<PathBuf>,
    /// Column, array or tensor that holds the vectors [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME")]
    pub vector_column: Option<String>,
    #[command(flatten)]
    pub reading: SourceArgs,
    /// Seed of the random order; keep it, so that the next review continues the order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Folder for review.csv and review.html
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub out: PathBuf,
    /// Replace a review.csv that may have answers
    #[arg(long)]
    pub force: bool,
    /// Set a recipe key, such as network.weights=NAME; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Show only warnings and the result, no progress
    #[arg(long, short)]
    pub quiet: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// How unlabelled samples are chosen for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChooseRule {
    /// The smallest margins between the two most likely classes
    Margin,
}

/// A tool in which samples are labelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LabellingTool {
    /// label-studio.json, the tasks, and label-studio.xml, the labelling interface
    LabelStudio,
}

const EXAMPLES: &str = "\
Examples:
  calmix review photos                       the first labels
  calmix label photos review.csv             put the answers into photos/labels.csv
  calmix train --data photos
  calmix review runs/head-folder-1           labels that may be wrong, and random samples
  calmix review photos --live                a page that learns while you label
  calmix review photos --to label-studio     tasks for Label Studio, whose JSON export `label` reads

Columns of review.csv:
  file        name of the sample in the list of labels
  label       the answer; empty if there is none
  given       the label that it has
  predicted   what a model trained without it predicts, and its confidence; empty for random rows
  why         first, check, copies (identical samples with different labels), random or margin
  drawn       how the label counts as drawn: random, chosen, or as before

Fields of --json:
  csv         review.csv
  page        review.html, or null
  tasks       label-studio.json, or null
  interface   label-studio.xml, or null
  rows        number of rows by `why`
  now_random  chosen labels that the random order has reached, which count as random from now on
  skipped     random samples that were skipped";
