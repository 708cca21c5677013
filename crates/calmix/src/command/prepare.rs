//! `calmix prepare`: scans a dataset and writes its table.

use std::path::Path;

use anyhow::{Error, Result};
use calmix_data::dataset::Dataset;
use calmix_data::default_place::default_table;
use calmix_data::error::DataError;
use calmix_data::prepare::{Findings, Report};
use calmix_data::split::{LabelSplit, SplitPlan};
use calmix_io::shown::shown;
use calmix_recipe::{Data, Layers, SourceName, detect_source, is_own_format, recipe_for};

use super::inspect::dataset_json;
use crate::args::options::data::{absolute, existing_dataset, on_file_system};
use crate::args::prepare::PrepareArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::{shell_quoted, written_to};
use crate::output::recipe_warnings::{short_labels, warn_about_recipe};
use crate::output::replaced_table::{ReplacedTable, is_table};
use crate::preparation::prepare_or_stop;
use crate::process::stop::Stop;
use crate::terminal::{print, print_json, status, warn};

impl PrepareArgs {
    pub fn run(self) -> Result<Exit> {
        on_file_system(self.to.as_deref(), "the table of a dataset")?;
        let folder = existing_dataset(&self.folder)?;
        let source =
            self.reading.source.unwrap_or_else(|| detect_source(folder, self.reading.names_columns()));
        let target = self.to.clone().unwrap_or_else(|| default_table(folder));
        let old = if target.exists() { Some(self.replaceable(&target)?) } else { None };
        let data = self.data(source)?;
        let stop = Stop::listen()?;
        let parent = target.parent().filter(|parent| !parent.exists());
        if let Some(parent) = parent {
            std::fs::create_dir_all(parent).map_err(|error| cannot_write(parent, &error.into()))?;
        }
        status(&format!("reading {} as {source} …", shown(folder.display())));
        let made = old.as_ref().map_or_else(|| target.clone(), ReplacedTable::new_table);
        let report = prepare_or_stop(&data.source_spec(), folder, &made, &stop).map_err(|error| {
            // Fails, as it should, unless the folder is empty.
            let _ = parent.map(std::fs::remove_dir);
            let place = parent.or(target.parent()).filter(|place| !place.as_os_str().is_empty());
            match error.downcast::<DataError>() {
                Ok(failed) => match place {
                    Some(place) if failed.path() == Some(place) => cannot_write(place, &failed.into()),
                    _ => failed.into(),
                },
                Err(error) => error,
            }
        })?;
        if let Some(old) = old {
            old.replace().map_err(|error| cannot_write(&target, &error))?;
        }
        self.show(folder, source, &target, &report)?;
        Ok(Exit::Done)
    }

    /// Returns the existing table if it may be replaced; refuses anything that is not a table.
    fn replaceable(&self, target: &Path) -> Result<ReplacedTable> {
        let place = shown(target.display());
        if !is_table(target) {
            let message = format!("{place}: already exists and is not a table of `calmix prepare`");
            return Err(CliError::invalid(message).hint("name another folder with `--to`").into());
        }
        if !self.force {
            let message = format!("{place}: this table already exists");
            let hint = "`--force` replaces it; `--to NEW_FOLDER` keeps it for runs that were started with `--prepared`";
            return Err(CliError::invalid(message).hint(hint).into());
        }
        ReplacedTable::new(target).map_err(|error| cannot_write(target, &error))
    }

    /// The dataset section of a recipe that reads the folder as the options say.
    fn data(&self, source: SourceName) -> Result<Data> {
        let layers = Layers::new().set(&format!("dataset.source={source}"));
        let mut settings = self.reading.settings();
        if let Some(labels) = &self.labels {
            settings.push(format!("dataset.labels={}", absolute(labels)?));
        }
        if let Some(column) = &self.vector_column {
            settings.push(format!("dataset.vector_column={column}"));
        }
        let layers = settings.iter().fold(layers, |layers, setting| layers.set(setting));
        let resolved = layers.resolve()?;
        // Warns, for example, about an option that has no effect on this format.
        warn_about_recipe(&resolved);
        Ok(resolved.recipe.dataset)
    }

    /// The options for vectors as a command line, each after a space.
    fn vector_options(&self) -> String {
        let labels = self.labels.as_ref().map(|labels| format!(" --labels {}", shell_quoted(labels)));
        let column = self.vector_column.as_ref().map(Path::new);
        let column = column.map(|column| format!(" --vector-column {}", shell_quoted(column)));
        [labels, column].into_iter().flatten().collect()
    }

    fn show(&self, folder: &Path, source: SourceName, target: &Path, report: &Report) -> Result<()> {
        let recipe = recipe_for(source);
        let labels = Layers::new().recipe(recipe).resolve()?.recipe.labels;
        // A dataset without labels can be prepared, too.
        let dataset = Dataset::open(target, folder)?;
        // Which samples are trained on without a label does not matter here.
        let plan = SplitPlan { unlabelled: Vec::new(), ..labels.plan() };
        let split = LabelSplit::draw(&dataset, plan).ok();
        let short = split.and_then(|split| short_labels(&labels, &split, &dataset));
        if self.json {
            let mut json = dataset_json(folder, report)?;
            json["source"] = source.word().into();
            json["prepared"] = target.display().to_string().into();
            if let Some(short) = short {
                warn(&format!("recipe {recipe}: {short}"));
            }
            return print_json(&json);
        }
        let short = short.map(|short| format!("\nwarning: recipe {recipe}: {short}")).unwrap_or_default();
        let data = shell_quoted(folder);
        let table = shell_quoted(target);
        let file = Findings::FILE;
        // For images of one's own, calmix chooses the recipe.
        let named = if is_own_format(source) { String::new() } else { format!("{recipe} ") };
        let by_itself = if is_own_format(source) {
            detect_source(folder, self.reading.names_columns())
        } else {
            Layers::new().recipe(recipe).resolve()?.recipe.dataset.source
        };
        // Without them `train` would read the folder in another way and refuse the table.
        let mut options = self.reading.options(by_itself != source);
        options += &self.vector_options();
        let from = if source == SourceName::Vectors { "--features" } else { "--data" };
        let written = written_to(&table, &format!(", with this summary in {file}"));
        print(&format!(
            "{report}{short}\n\n{written}\n\
             next: calmix train {named}{from} {data}{options} --prepared {table}"
        ))
    }
}

fn cannot_write(folder: &Path, error: &Error) -> Error {
    let why = error.root_cause();
    let message = format!("{}: cannot write here: {why}", shown(folder.display()));
    CliError::invalid(message).hint("name a folder that you can write to with `--to`").into()
}
