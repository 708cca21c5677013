//! `--source`, `--layout`, `--groups`, `--shrink`, `--path-column` and `--label-column`: how a folder of images is read.

use std::path::Path;

use calmix_recipe::LayoutName;
use calmix_recipe::SourceName;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::output::format::shell_quoted;

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

pub(super) fn layouts() -> impl TypedValueParser<Value = LayoutName> {
    let words = LayoutName::ALL.iter().map(|layout| layout.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<LayoutName>())
}

/// Parses the pixels of a side, or `off`, which is 0.
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

    /// Returns the options as a command line, each after a space; `--source` only if it is needed.
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

    /// Whether an option for lists of labels is given.
    pub fn names_columns(&self) -> bool {
        self.path_column.is_some() || self.label_column.is_some()
    }
}
