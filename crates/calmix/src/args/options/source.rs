//! How images and labelled samples are read: options of `train` and `prepare` for a dataset, and of `--on`.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_recipe::{Data, Layers, LayoutName, SourceName, detect_source};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::args::options::data::{absolute, existing_dataset, existing_features};
use crate::error::CliError;
use crate::output::format::shell_quoted;
use crate::output::warnings::warn_about_recipe;

/// Options for reading a folder of images.
#[derive(Debug, Args)]
pub struct SourceArgs {
    /// Format of the dataset [default: that of the recipe's dataset, or detected from file names]
    #[arg(long, value_name = "SOURCE", value_parser = sources())]
    pub source: Option<SourceName>,
    /// Which folders are classes: classes (all), splits (those in train, val, test), nested (those one level further down)
    /// [default: by their names]
    #[arg(long, value_name = "LAYOUT", value_parser = layouts(), hide_possible_values = true)]
    pub layout: Option<LayoutName>,
    /// Level of folders that names the patient, video or site of an image: 2 for CLASS/GROUP/image.jpg, 1 for
    /// GROUP/CLASS/image.jpg with --layout nested [default: none; labels.csv and Parquet files may have a column `group`]
    #[arg(long, value_name = "LEVEL")]
    pub groups: Option<u32>,
    /// Shrink images whose shorter side has more than PIXELS to that size, once; `off` keeps their size
    /// [default: 512]
    #[arg(long, value_name = "PIXELS", value_parser = side)]
    pub shrink: Option<u32>,
    /// Column of labels.csv that names the image [default: file, path, image, …], or of Parquet files that holds it
    /// [default: image, img]
    #[arg(long, value_name = "NAME")]
    pub path_column: Option<String>,
    /// Column of labels.csv, or of Parquet files, that holds the class [default: label, class, category, …]
    #[arg(long, value_name = "NAME")]
    pub label_column: Option<String>,
}

pub(super) fn sources() -> impl TypedValueParser<Value = SourceName> {
    let words = SourceName::ALL.iter().map(|source| source.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<SourceName>())
}

pub(in crate::args) fn layouts() -> impl TypedValueParser<Value = LayoutName> {
    let words = LayoutName::ALL.iter().map(|layout| layout.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<LayoutName>())
}

/// Parses the side in pixels, or `off`, which is 0.
fn side(text: &str) -> Result<u32, String> {
    let side =
        if text == "off" { Some(0) } else { text.parse().ok().filter(|side| (16..=16_384).contains(side)) };
    side.ok_or_else(|| "neither `off` nor a number from 16 to 16384".to_owned())
}

impl SourceArgs {
    /// Returns the options as settings of a recipe.
    pub fn settings(&self) -> Vec<String> {
        let keys = ["source", "layout", "groups", "shrink", "path_column", "label_column"];
        let given = keys.into_iter().zip(self.values());
        given.filter_map(|(key, value)| Some(format!("dataset.{key}={}", value?))).collect()
    }

    /// Returns the options as on a command line, each after a space; `--source` only if it is needed.
    pub fn options(&self, needs_source: bool) -> String {
        let names = ["--source", "--layout", "--groups", "--shrink", "--path-column", "--label-column"];
        let given =
            names.into_iter().zip(self.values()).filter(|(name, _)| needs_source || *name != "--source");
        let word = |name: &str, value: &str| match (name, value) {
            ("--shrink", "0") => "off".to_owned(),
            _ => shell_quoted(Path::new(value)),
        };
        given.filter_map(|(name, value)| Some(format!(" {name} {}", word(name, &value?)))).collect()
    }

    fn values(&self) -> [Option<String>; 6] {
        [
            self.source.map(|source| source.to_string()),
            self.layout.map(|layout| layout.to_string()),
            self.groups.map(|level| level.to_string()),
            self.shrink.map(|side| side.to_string()),
            self.path_column.clone(),
            self.label_column.clone(),
        ]
    }

    /// Returns whether an option for lists of labels is given.
    pub fn names_columns(&self) -> bool {
        self.path_column.is_some() || self.label_column.is_some()
    }
}

/// Options for labelled samples that do not belong to the run.
#[derive(Debug, Args)]
pub struct LabelledArgs {
    /// For a run on vectors, the labels of those of --on: a CSV with a column of labels and, unless its lines are in the order
    /// of the vectors, one of ids; or an .npy of whole numbers, -1 for no label [default: those in the file of the vectors]
    #[arg(long, value_name = "FILE", requires = "on")]
    labels: Option<PathBuf>,
    /// For a run on several sets of features, the further ones of --on, in the order of training
    #[arg(long, value_name = "FILE", requires = "on")]
    more_features: Vec<PathBuf>,
    /// For a run on vectors, the column, array or tensor that holds those of --on [default: embedding, vector, features, …]
    #[arg(long, value_name = "NAME", requires = "on")]
    vector_column: Option<String>,
    /// Format of the images of --on [default: detected from file names]
    #[arg(long, value_name = "SOURCE", value_parser = sources(), requires = "on", hide_possible_values = true)]
    source: Option<SourceName>,
    /// Which folders of --on are classes: classes (all), splits (those in train, val, test), nested (those one level further
    /// down) [default: by their names]
    #[arg(long, value_name = "LAYOUT", value_parser = layouts(), requires = "on", hide_possible_values = true)]
    layout: Option<LayoutName>,
    /// Level of folders of --on that names the patient, video or site of an image: 2 for CLASS/GROUP/image.jpg [default: none]
    #[arg(long, value_name = "LEVEL", requires = "on")]
    groups: Option<u32>,
    /// Column of --on that names the image or holds the id of a vector [default: file, path, id, …], or holds the image in
    /// Parquet files [default: image, img]
    #[arg(long, value_name = "NAME", requires = "on")]
    path_column: Option<String>,
    /// Column of --on that holds the class [default: label, class, category, …]
    #[arg(long, value_name = "NAME", requires = "on")]
    label_column: Option<String>,
}

impl LabelledArgs {
    /// Returns the dataset section of a recipe that reads labelled images. Large images are shrunk to `shrink`, as when the model
    /// was trained, so that the same images give the same prepared dataset.
    ///
    /// # Errors
    /// If an option is for vectors, or its value is invalid.
    pub fn images(&self, folder: &Path, shrink: u32) -> Result<Data> {
        let option = match (&self.labels, &self.vector_column, &self.more_features[..]) {
            (Some(_), ..) => Some("--labels"),
            (_, Some(_), _) => Some("--vector-column"),
            (.., [_, ..]) => Some("--more-features"),
            _ => None,
        };
        if let Some(option) = option {
            let message = format!("{option} is for runs on vectors, but this run was trained on images");
            let hint = format!("leave {option} out; labels of images are in their folder");
            return Err(CliError::invalid(message).hint(hint).into());
        }
        let names_columns = self.path_column.is_some() || self.label_column.is_some();
        let source = self.source.unwrap_or_else(|| detect_source(folder, names_columns));
        Ok(Data { shrink, ..self.data(source)? })
    }

    /// Returns the dataset section of a recipe that reads labelled vectors.
    ///
    /// # Errors
    /// If an option is for images, or the labels do not exist.
    pub fn vectors(&self) -> Result<Data> {
        let option = match (self.source, self.layout, self.groups) {
            (Some(source), ..) if source != SourceName::Vectors => Some("--source"),
            (_, Some(_), _) => Some("--layout"),
            (.., Some(_)) => Some("--groups"),
            _ => None,
        };
        if let Some(option) = option {
            let message = format!("{option} is for runs on images, but this run was trained on vectors");
            return Err(CliError::invalid(message).hint(format!("leave {option} out")).into());
        }
        self.data(SourceName::Vectors)
    }

    fn data(&self, source: SourceName) -> Result<Data> {
        let words = [
            Some(format!("source={source}")),
            self.layout.map(|layout| format!("layout={layout}")),
            self.groups.map(|level| format!("groups={level}")),
        ];
        let words = words.into_iter().flatten();
        let layers = words.fold(Layers::new(), |layers, word| layers.set(&format!("dataset.{word}")));
        let labels = self.labels.as_deref().map(|labels| absolute(existing_dataset(labels)?)).transpose()?;
        let texts = [
            ("dataset.labels", labels),
            ("dataset.vector_column", self.vector_column.clone()),
            ("dataset.path_column", self.path_column.clone()),
            ("dataset.label_column", self.label_column.clone()),
        ];
        let given = texts.into_iter().filter_map(|(key, text)| Some((key, text?)));
        let mut layers = given.fold(layers, |layers, (key, text)| layers.set_to(key, text));
        if !self.more_features.is_empty() {
            layers = layers.set_to_list("dataset.more_features", existing_features(&self.more_features)?);
        }
        let resolved = layers.resolve()?;
        // Warn about options that have no effect on this format.
        warn_about_recipe(&resolved);
        Ok(resolved.recipe.dataset)
    }
}
