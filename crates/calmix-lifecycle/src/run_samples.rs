//! The samples of a run: its dataset with its split, and the samples to train and to evaluate on.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::SampleIds;
use calmix_data::manifest::{Encoding, NO_LABEL, SampleRecord};
use calmix_data::split::LabelSplit;
use calmix_formats::error::FormatError;
use calmix_formats::labels::drawn::Drawn;
use calmix_io::safe_open;
use calmix_metrics::fitted_calibrator::FittedOn;
use calmix_metrics::predictions::EvalSet;
use calmix_recipe::{Recipe, Resolved, Selection};
use calmix_run::label_draws::LabelDraws;
use calmix_run::run::{Paths, RunFile};
use calmix_run::summary::RunSummary;

use crate::changes::RunInputs;
use crate::error::LifecycleError;
use crate::prepared_dataset::prepared_folder;
use crate::splits::{draw_split, own_validation, reference_ids, unlabelled};

/// The number of samples up to which every process keeps all classes in memory: 64 MB.
const MAX_CLASSES_IN_MEMORY: u64 = 1 << 24;

/// The samples whose vectors a run needs: those it is trained on and those it is evaluated on.
#[derive(Debug, Clone, Default)]
pub struct NeededSamples {
    /// Samples that are needed in all views.
    pub training: Vec<u64>,
    /// Samples that are needed in the clean view only.
    pub evaluation: Vec<u64>,
    /// The unlabelled training samples that are kept out of the fit of the projection.
    pub reference: Vec<u64>,
    /// The number of labels that are trained on.
    pub labelled: usize,
    /// The number of labels that are held out.
    pub validation: usize,
}

#[derive(Debug)]
pub struct RunSamples {
    pub dataset: Arc<Dataset>,
    pub classes: Vec<String>,
    pub fingerprint: String,
    /// The labels that are trained on, and those that are held out.
    pub split: LabelSplit,
    pub split_hash: String,
    unlabelled: SampleIds,
    /// The class of every sample, to evaluate pseudo-labels: read once, so that a step reads no file. `None` if there are too
    /// many for the memory of every process; classes are then read from the prepared dataset one by one.
    classes_of: Option<Vec<u32>>,
    validation: SampleIds,
    fitted_on: FittedOn,
    test: Option<Range<u64>>,
}

impl RunSamples {
    /// Opens the dataset of a recipe. The split is read from the run's folder, or drawn if there is none yet. A resumed run
    /// passes the `inputs` that it started with.
    pub fn open(recipe: &Recipe, paths: &Paths, inputs: Option<&RunInputs>) -> Result<Self, LifecycleError> {
        let prepared = prepared_folder(recipe, paths);
        if recipe.dataset.prepared.is_empty() {
            // Opening the files follows no links, so they cannot lead outside of the folder.
            safe_open::check_folder(&prepared)?;
        }
        let dataset = Dataset::open(&prepared, Path::new(&recipe.dataset.path))?;
        if let Some(before) =
            inputs.map(|inputs| &inputs.dataset).filter(|&then| then != dataset.fingerprint())
        {
            let path = paths.folder().to_owned();
            let now = dataset.fingerprint().to_owned();
            return Err(LifecycleError::OtherDataset { path, before: before.clone(), now });
        }
        let stored = paths.file(RunFile::Split)?;
        let split = if safe_open::exists(&stored) {
            read_split(&stored, &dataset)?
        } else {
            draw_split(recipe, &dataset)?
        };
        let split_hash = split.hash().map_err(|problem| DataError::new(&stored, problem))?;
        if inputs.is_some_and(|then| then.split != split_hash) {
            return Err(LifecycleError::OtherSplit { path: stored.to_path_buf() });
        }
        Self::new(recipe, dataset, split)
    }

    /// Creates the samples of a dataset with a split.
    ///
    /// # Errors
    /// If the recipe selects by validation labels and there are none, or the dataset lacks a split that the recipe names.
    pub fn new(recipe: &Recipe, mut dataset: Dataset, split: LabelSplit) -> Result<Self, LifecycleError> {
        let split_hash = split.hash().map_err(|problem| DataError::new(dataset.folder(), problem))?;
        let (validation, fitted_on): (SampleIds, _) = match own_validation(recipe, &dataset) {
            Some(own) => (own.into(), FittedOn::ValidationSplit),
            None => (split.validation().into(), FittedOn::HeldOut),
        };
        if recipe.selection == Selection::BestValidation && validation.is_empty() {
            return Err(no_validation(&split));
        }
        let needs = recipe.unlabelled() > 0;
        let unlabelled = if needs { unlabelled(recipe, &split, &dataset)? } else { SampleIds::default() };
        let class = |record: Result<(u64, SampleRecord), DataError>| Ok(record?.1.label);
        let all = if needs || recipe.has_head() { dataset.len() } else { 0 };
        let classes_of = if all <= MAX_CLASSES_IN_MEMORY {
            Some(dataset.records(0..all).map(class).collect::<Result<_, DataError>>()?)
        } else {
            None
        };
        let test = Some(recipe.dataset.test.as_str()).filter(|name| !name.is_empty());
        let test = test.map(|name| dataset.subset(name)).transpose().map_err(|error| {
            let hint = match &error {
                DataError::File(FormatError { hint: Some(hint), .. }) => hint.clone(),
                _ => String::new(),
            };
            error.hint(format!("{hint}; set dataset.test to one of them, or to nothing"))
        })?;
        // A head reads every image only once, for its features.
        if dataset.is_remote() && !recipe.has_head() {
            let evaluated = (0..validation.len()).filter_map(|index| validation.id(index));
            let evaluated = evaluated.chain(test.clone().unwrap_or_default());
            dataset.store_samples_locally(split.labelled().iter().copied().chain(evaluated))?;
        }
        Ok(Self {
            classes: dataset.classes().to_vec(),
            fingerprint: dataset.fingerprint().to_owned(),
            dataset: Arc::new(dataset),
            split,
            split_hash,
            unlabelled,
            classes_of,
            validation,
            fitted_on,
            test,
        })
    }

    /// Summarises a run on these samples, for programs that do not parse recipes.
    pub fn summary(&self, resolved: &Resolved) -> RunSummary {
        let recipe = &resolved.recipe;
        let method = &recipe.method;
        let (base, pairing) = match recipe.has_one_vector() {
            true if recipe.unlabelled() > 0 => ("lr+em".to_owned(), "none".to_owned()),
            true => ("lr".to_owned(), "none".to_owned()),
            false => (method.base.word().to_string(), method.mixup.pairing.word().to_string()),
        };
        let network = match recipe.has_encoder() {
            // The user's vectors may come from any backbone.
            _ if recipe.has_vectors() => "none".to_owned(),
            true => format!("onnx encoder, output {}", recipe.network.output),
            false => recipe.network.name.to_string(),
        };
        RunSummary {
            dataset: recipe.dataset.source.to_string(),
            classes: self.classes.len(),
            labelled: self.split.labelled().len(),
            validation: self.validation() as usize,
            unlabelled: self.unlabelled().len(),
            base,
            pairing,
            network,
            size: if recipe.has_vectors() { 0 } else { recipe.augment.size },
            steps: recipe.steps(),
            seed: recipe.train.seed,
            label_seed: recipe.labels.seed,
            recipe: resolved.hash(),
            based_on: resolved.base().map(str::to_owned),
        }
    }

    pub fn needed(&self) -> NeededSamples {
        let mut training = self.unlabelled_ids();
        let reference = reference_ids(&training, self.labelled());
        training.extend(self.labelled());
        training.sort_unstable();
        training.dedup();
        let mut evaluation = self.needed_to_evaluate().evaluation;
        evaluation.retain(|id| training.binary_search(id).is_err());
        let validation = self.validation() as usize;
        NeededSamples { training, evaluation, reference, labelled: self.labelled().len(), validation }
    }

    /// Returns the samples that an evaluation needs, without those that are only trained on.
    pub fn needed_to_evaluate(&self) -> NeededSamples {
        let mut evaluation = self.ids_of(EvalSet::Validation);
        evaluation.extend(self.test.clone().unwrap_or_default());
        evaluation.sort_unstable();
        evaluation.dedup();
        NeededSamples { evaluation, ..NeededSamples::default() }
    }

    /// Counts how the labels were drawn that are trained on and that the guarantees rest on.
    pub fn label_draws(&self) -> Result<LabelDraws, LifecycleError> {
        let mut draws = LabelDraws::default();
        let mut add = |id: u64, may_give_guarantees: bool| -> Result<(), DataError> {
            let drawn = self.dataset.drawn(id)?;
            if may_give_guarantees || !drawn.may_be_held_out() {
                count_draw(&mut draws, drawn);
            }
            Ok(())
        };
        // Guarantees rest on the validation split of the user, if there is one.
        let has_own_validation = self.fitted_on == FittedOn::ValidationSplit;
        for &id in self.labelled() {
            add(id, !has_own_validation)?;
        }
        for id in self.ids_of(EvalSet::Validation) {
            add(id, true)?;
        }
        if !has_own_validation && !self.dataset.has_drawn() && self.split.leaves_labels_out(&self.dataset)? {
            draws.by_class = std::mem::take(&mut draws.given);
        }
        Ok(draws)
    }

    pub fn labelled(&self) -> &[u64] {
        self.split.labelled()
    }

    /// Returns the samples that are trained on without a label.
    pub fn unlabelled(&self) -> &SampleIds {
        &self.unlabelled
    }

    /// Returns the class of a sample, if known.
    pub fn class_of(&self, id: u64) -> Result<Option<u32>, DataError> {
        let Some(classes) = &self.classes_of else { return self.dataset.label(id) };
        let class = usize::try_from(id).ok().and_then(|id| classes.get(id));
        Ok(class.copied().filter(|&class| class != NO_LABEL))
    }

    /// Returns the class against which the pseudo-label of a sample is evaluated; `None` if it is unknown, or the sample is also
    /// trained on with its label. Other implementations count those too, although the network has memorised them.
    pub fn evaluated_class(&self, id: u64) -> Result<Option<u32>, DataError> {
        let labelled = self.labelled().binary_search(&id).is_ok();
        if labelled { Ok(None) } else { self.class_of(id) }
    }

    /// Returns the ids of the samples of a split, in order.
    pub fn ids_of(&self, split: EvalSet) -> Vec<u64> {
        let samples = self.of_split(split);
        (0..samples.len()).filter_map(|index| samples.id(index)).collect()
    }

    /// Returns the ids of the samples that are trained on without a label, in order.
    pub fn unlabelled_ids(&self) -> Vec<u64> {
        (0..self.unlabelled.len()).filter_map(|index| self.unlabelled.id(index)).collect()
    }

    /// Selects at most `max` of the unlabelled samples, evenly spread over them.
    pub fn some_unlabelled_ids(&self, max: u64) -> Vec<u64> {
        evenly(self.unlabelled.len(), max).filter_map(|index| self.unlabelled.id(index)).collect()
    }

    pub fn of_split(&self, split: EvalSet) -> SampleIds {
        match split {
            // Out-of-fold predictions are made during the fit.
            EvalSet::OutOfFold | EvalSet::Chosen => SampleIds::default(),
            EvalSet::Validation => self.validation.clone(),
            EvalSet::Labelled => self.labelled().into(),
            EvalSet::Test => self.test.clone().unwrap_or_default().into(),
        }
    }

    /// Returns the shorter side to which large images were shrunk, if they were.
    pub fn shrunk(&self) -> Option<u32> {
        self.dataset.header().shrunk.map(|shrunk| shrunk.side)
    }

    /// Returns the number of validation samples, held out or from the dataset's own split.
    pub fn validation(&self) -> u64 {
        self.validation.len()
    }

    /// Returns the kind of labels that a calibrator fitted on the validation samples has.
    pub fn fitted_on(&self) -> FittedOn {
        self.fitted_on
    }
}

impl NeededSamples {
    /// Returns the samples that a projection is fitted to, ascending.
    pub fn fitted(&self) -> Vec<u64> {
        let is_fitted = |id: &u64| self.reference.binary_search(id).is_err();
        self.training.iter().copied().filter(is_fitted).collect()
    }
}

/// Counts a label by how it was drawn.
pub fn count_draw(draws: &mut LabelDraws, drawn: Drawn) {
    match drawn {
        Drawn::Given | Drawn::Skipped => draws.given += 1,
        Drawn::Random => draws.random += 1,
        Drawn::ByClass => draws.by_class += 1,
        Drawn::Chosen => draws.chosen += 1,
        Drawn::Audit => draws.audit += 1,
        Drawn::Certified => draws.certified += 1,
    }
}

/// Selects at most `max` of the numbers below `len`, evenly spread.
fn evenly(len: u64, max: u64) -> impl Iterator<Item = u64> {
    let step = len.div_ceil(max.max(1)).max(1);
    (0..len.div_ceil(step)).map(move |n| n * step)
}

pub fn read_split(path: &Path, dataset: &Dataset) -> Result<LabelSplit, LifecycleError> {
    let bytes = safe_open::read(path, LabelSplit::MAX_STORED_BYTES)?;
    Ok(LabelSplit::from_bytes(&bytes, path, dataset)?)
}

/// Returns the error for a selection rule that needs validation labels if there are none.
fn no_validation(split: &LabelSplit) -> LifecycleError {
    let labels = split.labelled().len();
    LifecycleError::Unsupported(format!(
        "selection = \"best-validation\" needs validation labels: the dataset has no validation split, and none of its \
         {labels} labels is held out; add a folder val, set labels.validation to a share such as 0.2, or choose selection = \
         \"last\""
    ))
}

/// The number of vectors per sample, and their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorShape {
    /// The number of numbers per vector.
    pub width: usize,
    /// The number of vectors per sample: the clean one, then weak and strong views if there are any.
    pub views: usize,
}

impl VectorShape {
    /// Returns the shape of the vectors of a dataset.
    pub fn of(dataset: &Dataset) -> Result<Self, LifecycleError> {
        match dataset.header().encoding {
            Encoding::Vectors { width, views, .. } => {
                Ok(Self { width: width as usize, views: views as usize })
            }
            _ => Err(LifecycleError::Unsupported(
                "the dataset holds images, not vectors; train on it with `calmix train --data FOLDER`"
                    .to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests;
