//! The recipe of a run that is about to start, as it becomes known: what the user sets lies over what the folder of the
//! dataset and the weights at hand decide.

use std::path::PathBuf;

use anyhow::Result;
use calmix::data::dataset::Dataset;
use calmix::train::recipe::{Layers, Resolved};
use calmix::train::weights_folder::StoredWeights;

use super::train::TrainArgs;
use crate::backbone::{self, BackboneChoice};
use crate::run_data::{FOLDER_CONTENTS, HEAD_RECIPE, RunData, is_for_folders, label_format};

/// Where settings come from that the weights at hand decide.
const MEASURED_RATE: &str = "rate of the weights at hand";

/// What is known of the recipe, and what is still to be chosen.
pub(super) struct RecipeDraft<'a> {
    args: &'a TrainArgs,
    /// The built-in recipe to start from.
    base: Option<String>,
    /// Lines of a recipe that the folder of the dataset decides.
    folder: String,
    /// Weights to choose from, where calmix chooses.
    at_hand: Vec<StoredWeights>,
    chosen: Option<BackboneChoice>,
}

impl<'a> RecipeDraft<'a> {
    /// What is known before anything of the dataset is read but the names of its files.
    pub(super) fn new(args: &'a TrainArgs, base: Option<String>) -> Result<Self> {
        let data = args.overrides.data_folder()?.filter(|_| is_for_folders(base.as_deref()));
        let folder = data.map(|data| label_format(data, args.reading.names_columns())).unwrap_or_default();
        let names_weights = args.overridden(Layers::new())?.word("network.weights").is_some();
        let chooses = base.as_deref() == Some(HEAD_RECIPE) && !names_weights;
        let at_hand = if chooses { backbone::at_hand() } else { Vec::new() };
        let mut draft = Self { args, base, folder, at_hand, chosen: None };
        let recipe = draft.resolve()?.recipe;
        if recipe.has_head() {
            draft.folder += &backbone::cache_setting(&PathBuf::from(recipe.dataset.path));
        }
        Ok(draft)
    }

    /// The recipe, as far as it is known.
    pub(super) fn resolve(&self) -> Result<Resolved> {
        let layers = self.base.iter().fold(Layers::new(), |layers, name| layers.recipe(name));
        // Below everything that the user sets.
        let layers = layers.decided(FOLDER_CONTENTS, &self.folder);
        let chosen = match (&self.chosen, self.at_hand.first()) {
            (Some(choice), _) => choice.settings(),
            // Whichever: it is chosen when the number of images is known.
            (None, Some(any)) => backbone::weights_setting(&any.name),
            (None, None) => String::new(),
        };
        let layers = layers.decided(MEASURED_RATE, &chosen);
        Ok(backbone::with_weights(self.args.overridden(layers)?)?.resolve()?)
    }

    /// Takes the table of the dataset, where the user does not name one.
    pub(super) fn take_table(&mut self, dataset: &Dataset) {
        self.folder += &backbone::setting("dataset.prepared", &dataset.folder().to_string_lossy());
    }

    /// Takes what the dataset decides: its subsets, and which of the weights at hand suit so many images.
    pub(super) fn take_dataset(&mut self, data: &RunData<'_>, dataset: &Dataset) -> Result<Resolved> {
        if is_for_folders(self.base.as_deref()) {
            let has_head = self.resolve()?.recipe.has_head();
            self.folder += &data.subset_settings(dataset, has_head);
        }
        self.chosen = backbone::choose(&self.at_hand, &self.resolve()?.recipe, dataset)?;
        self.resolve()
    }

    /// The backbone, where calmix has chosen it.
    pub(super) fn chosen(&self) -> Option<&BackboneChoice> {
        self.chosen.as_ref()
    }

    /// The built-in recipe to start from.
    pub(super) fn base(&self) -> Option<&str> {
        self.base.as_deref()
    }
}
