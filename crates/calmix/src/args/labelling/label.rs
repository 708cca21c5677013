//! The arguments of `calmix label`.

use std::path::PathBuf;

use calmix_recipe::LayoutName;
use clap::Args;

use crate::args::options::source::layouts;

/// Add the answers of reviews to the labels of a dataset
///
/// A review is a CSV with the columns `file`, `label` (empty without an answer) and `drawn` (random, by-class, chosen, given,
/// skipped, audit or certified), as `calmix review` writes it, or the JSON export of Label Studio from tasks of `calmix review --to label-studio`. The
/// labels of images are in DATA/labels.csv or DATA/metadata.csv, or in one list per split; if the folders are the classes, calmix
/// writes a new labels.csv that lists all images of the folders, because a list takes precedence over them. Labels of vectors are in the CSV of --labels. All other columns, rows and their order
/// stay. The columns `drawn` and `date` (or `label_date`, if the list has another column `date`) say how each label was
/// drawn, and when it was given (UTC). A label is replaced by another one only with --replace.
///
/// If several reviews answer the same samples, their agreement is printed (Cohen's kappa), and samples with different answers
/// are not added. Only random and given labels say how good a model is on new samples: see `drawn` in docs/guides/folders.md.
/// A list hides the levels of folders that name groups, so name the level with --groups when calmix writes a new list of
/// images (the column `group`), or add the column yourself.
#[derive(Debug, Args)]
#[command(after_long_help = FIELDS)]
pub struct LabelArgs {
    /// Folder of images, or file or folder of vectors
    #[arg(value_name = "DATA")]
    pub(crate) data: PathBuf,
    /// Reviews with answers, one per person, or exports of Label Studio, which end in .json
    #[arg(value_name = "REVIEW", required = true)]
    pub(crate) reviews: Vec<PathBuf>,
    /// List of labels of vectors, a CSV; created if it does not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// Replace labels by other ones of the reviews
    #[arg(long)]
    pub(crate) replace: bool,
    /// Which folders are classes: classes (all), splits (those in train, val, test), nested (those one level further down)
    /// [default: by their names]
    #[arg(long, value_name = "LAYOUT", value_parser = layouts(), hide_possible_values = true)]
    pub(crate) layout: Option<LayoutName>,
    /// Level of folders that names the patient, video or site of an image, for the column `group` of a new list: 2 for
    /// CLASS/GROUP/image.jpg
    #[arg(long, value_name = "LEVEL", default_value_t = 0, hide_default_value = true)]
    pub(crate) groups: u32,
    /// Column of the list that names the image or vector [default: file, path, image, id, …]
    #[arg(long, value_name = "NAME")]
    pub(crate) path_column: Option<String>,
    /// Column of the list that holds the label [default: label, class, category, …]
    #[arg(long, value_name = "NAME")]
    pub(crate) label_column: Option<String>,
    /// Column, array or tensor that holds the vectors [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME")]
    pub(crate) vector_column: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const FIELDS: &str = "\
Examples:
  calmix label photos review.csv
  calmix label photos anna.csv ben.csv
  calmix label photos export.json
  calmix label vectors.npy review.csv --labels labels.csv

Fields of --json:
  lists            path and is_new of each list that was written; empty if nothing changed
  added            rows with their first label
  confirmed        rows whose label a review repeats
  corrected        rows with another label than before (--replace)
  skipped          rows that stay without a label because the reviewer skipped them
  unanswered       rows of the reviews without an answer
  unmarked         added labels without a word in `drawn`, which count as chosen
  conflicts        rows with another label, not replaced: file, old, new
  disagreements    rows with different answers, not added: file, labels (review, label)
  agreement        for every two reviews of the same samples: reviews, samples, same, kappa and
                   interval (low, high; 95%), which are null if they are not defined
  new_classes      classes that no list had
  similar_classes  new classes that may be misspelt: new, other, difference
  labels           all labels now: all, given, random, by_class, chosen, audit, certified; skipped
                   (without a label)
  next             the command that trains on them";
