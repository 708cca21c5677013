//! The arguments of `calmix prepare`.

use std::path::PathBuf;

use clap::Args;

use super::options::source::SourceArgs;

/// The long help. It is not a doc comment, because rustdoc would take the folder trees for Rust code.
const ABOUT: &str = "\
Scan a dataset: count its samples, list its problems, and write a table for training

A dataset of your own is a folder with one subfolder per class and one named `unlabelled`:

    photos/cat/…  photos/dog/…  photos/unlabelled/…

or the same below photos/train and photos/test, or images with a list of labels, labels.csv, or
.parquet files with a column of images, as the Hub of Hugging Face has them (copied into the table).
A column `group` of labels.csv or of .parquet files names the patient, video, site or writer of a
sample, and so does a level of folders (`--groups`): a group is never both trained on and held out.
Vectors that you already have, one per sample, are a file (.npy, .npz, .parquet, .safetensors,
.csv), a folder of .parquet files or one of clip-retrieval.
calmix never moves or changes your files, and writes nothing into their folder unless you name
it with `--to`.";

/// Scan a dataset: count its samples, list its problems, and write a table for training
#[derive(Debug, Args)]
#[command(long_about = ABOUT, after_long_help = FIELDS)]
pub struct PrepareArgs {
    /// Dataset folder, file of vectors, or the URL of shards (s3://, gs://, az://, https://)
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) reading: SourceArgs,
    /// Labels of vectors: a CSV with a column of labels and, unless its lines are in the order of the rows, one of ids; or
    /// an .npy of whole numbers, -1 for no label [default: those in the file of the vectors]
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,
    /// Further sets of features of the same samples, such as those of another network; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) more_features: Vec<PathBuf>,
    /// Column, array or tensor that holds the vectors [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME")]
    pub(crate) vector_column: Option<String>,
    /// Folder to write the prepared dataset to; it must not exist [default: prepared/FOLDER]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) to: Option<PathBuf>,
    /// Replace an existing table of `calmix prepare`; runs that were started with it through `--prepared` need the old one
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const FIELDS: &str = "\
Fields of --json: those of `calmix inspect` of a dataset, and prepared (the folder of the table).";
