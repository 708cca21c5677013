//! `--layout`, `--shrink`, `--path-column` and `--label-column`: how a folder of images is read.

use calmix::recipe::LayoutName;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

/// How a folder of images is read.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// Which folders are classes: classes (all), splits (those in train, val, test), nested (those one level further down)
    /// [default: by their names]
    #[arg(long, value_name = "LAYOUT", value_parser = layouts(), hide_possible_values = true)]
    pub(crate) layout: Option<LayoutName>,
    /// Shrink pictures whose shorter side is above so many pixels to that side, once; `off` keeps their size
    /// [default: 512]
    #[arg(long, value_name = "PIXELS", value_parser = side)]
    pub(crate) shrink: Option<u32>,
    /// Column of labels.csv that names the image [default: file, path, image, …]
    #[arg(long, value_name = "NAME")]
    pub(crate) path_column: Option<String>,
    /// Column of labels.csv that holds the class [default: label, class, category, …]
    #[arg(long, value_name = "NAME")]
    pub(crate) label_column: Option<String>,
}

fn layouts() -> impl TypedValueParser<Value = LayoutName> {
    let words = LayoutName::ALL.iter().map(|layout| layout.word());
    PossibleValuesParser::new(words).try_map(|word| word.parse::<LayoutName>())
}

/// Pixels of a side, or `off`, which is 0.
fn side(text: &str) -> Result<u32, String> {
    let side =
        if text == "off" { Some(0) } else { text.parse().ok().filter(|side| (16..=16_384).contains(side)) };
    side.ok_or_else(|| "neither `off` nor a number from 16 to 16384".to_owned())
}

impl SourceArgs {
    /// As settings of a recipe.
    pub(crate) fn settings(&self) -> Vec<String> {
        let layout = self.layout.map(|layout| format!("dataset.layout={layout}"));
        let columns = [("path_column", &self.path_column), ("label_column", &self.label_column)];
        let columns = columns
            .into_iter()
            .filter_map(|(key, column)| column.as_ref().map(|column| format!("dataset.{key}={column}")));
        let shrink = self.shrink.map(|side| format!("dataset.shrink={side}"));
        layout.into_iter().chain(shrink).chain(columns).collect()
    }

    /// Whether the options are only for lists of labels.
    pub(crate) fn names_columns(&self) -> bool {
        self.path_column.is_some() || self.label_column.is_some()
    }
}
