//! How the labelled samples of `--on` are read: the options that `train` and `prepare` have for a dataset.

use std::path::{Path, PathBuf};

use anyhow::Result;
use calmix_recipe::{Data, Layers, LayoutName, SourceName, detect_source};
use clap::Args;

use crate::args::options::data::{absolute, existing_dataset};
use crate::args::options::source::{layouts, sources};
use crate::error::CliError;
use crate::output::recipe_warnings::warn_about_recipe;

/// Options for labelled samples that do not belong to the run.
#[derive(Debug, Args)]
pub struct LabelledArgs {
    /// For a run on vectors, the labels of those of --on: a CSV with a column of labels and, unless its lines are in the order
    /// of the vectors, one of ids; or an .npy of whole numbers, -1 for no label [default: those in the file of the vectors]
    #[arg(long, value_name = "FILE", requires = "on")]
    labels: Option<PathBuf>,
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
    /// The dataset section of a recipe that reads labelled images. Large images are shrunk to `shrink`, as for the training of
    /// the model, so that the same images have the same table.
    ///
    /// # Errors
    /// If an option is for vectors, or has no valid value.
    pub fn images(&self, folder: &Path, shrink: u32) -> Result<Data> {
        let option = match (&self.labels, &self.vector_column) {
            (Some(_), _) => Some("--labels"),
            (_, Some(_)) => Some("--vector-column"),
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

    /// The dataset section of a recipe that reads labelled vectors.
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
        let mut layers = Layers::new().set(&format!("dataset.source={source}"));
        if let Some(layout) = self.layout {
            layers = layers.set(&format!("dataset.layout={layout}"));
        }
        if let Some(level) = self.groups {
            layers = layers.set(&format!("dataset.groups={level}"));
        }
        if let Some(labels) = &self.labels {
            layers = layers.set_to("dataset.labels", absolute(existing_dataset(labels)?)?);
        }
        let columns = [
            ("dataset.vector_column", &self.vector_column),
            ("dataset.path_column", &self.path_column),
            ("dataset.label_column", &self.label_column),
        ];
        for (key, column) in columns {
            if let Some(column) = column {
                layers = layers.set_to(key, column.clone());
            }
        }
        let resolved = layers.resolve()?;
        // Warns about an option that has no effect on this format.
        warn_about_recipe(&resolved);
        Ok(resolved.recipe.dataset)
    }
}
