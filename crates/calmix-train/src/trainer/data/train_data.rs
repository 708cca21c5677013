//! The data of a run: the dataset, its split, and the batches for training and evaluation.

use std::fs;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_core::order::Membership;
use calmix_core::rng::Seed;
use calmix_data::augment::Augment;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::{
    EvalLoader, ImageSource, ImageViews, InMemory, Loader, OnCorrupt, SampleIds, SampleStream, Training,
    Views, Workers,
};
use calmix_data::manifest::{NO_LABEL, SampleRecord};
use calmix_data::prepare::{PREPARING, Report, prepare};
use calmix_data::split::LabelSplit;
use calmix_dist::ProcessGroup;
use calmix_io::safe_open;
use calmix_metrics::fitted_calibrator::FittedOn;
use calmix_recipe::Recipe;
use calmix_recipe::Selection;
use calmix_run::checkpoint::Identity;

use calmix_metrics::predictions::EvalSet;
use calmix_run::run::{Paths, RunFile};

use super::splits::{draw_split, own_validation, unlabelled};
use crate::trainer::error::TrainError;
use crate::trainer::ranks::layout::ParallelLayout;

/// The dataset and the split with which a run started.
#[derive(Debug, Clone)]
pub(crate) struct BeganWith {
    /// The fingerprint of the dataset.
    pub(crate) dataset: String,
    /// The hash of the split.
    pub(crate) split: String,
}

impl From<&Identity> for BeganWith {
    fn from(identity: &Identity) -> Self {
        Self { dataset: identity.dataset.clone(), split: identity.split.clone() }
    }
}

/// The samples whose features a run needs: those it is trained on and those it is evaluated on.
#[derive(Debug, Clone, Default)]
pub(crate) struct NeededSamples {
    /// Samples that are needed in all views.
    pub(crate) training: Vec<u64>,
    /// Samples that are needed in the clean view only.
    pub(crate) evaluation: Vec<u64>,
}

/// Loads the images of an evaluation.
pub(crate) type EvalBatches = EvalLoader<ImageViews<Augment>>;

/// A dataset that is open and split.
pub(crate) struct TrainData {
    pub(crate) images: Arc<dyn ImageSource>,
    pub(crate) classes: Vec<String>,
    pub(crate) fingerprint: String,
    /// The shorter side to which large images were shrunk, if any were.
    pub(crate) shrunk: Option<u32>,
    pub(crate) split: LabelSplit,
    pub(crate) split_hash: String,
    unlabelled: SampleIds,
    /// The class of every sample, to evaluate pseudo-labels: read once, so that a step reads no file.
    classes_of: Vec<u32>,
    validation: SampleIds,
    fitted_on: FittedOn,
    test: Option<Range<u64>>,
    pub(crate) augment: Arc<Augment>,
    views: Arc<ImageViews<Augment>>,
    pub(crate) workers: Workers,
}

impl TrainData {
    /// Opens the dataset of a recipe. The split is the one in the run's folder; before that is written, it is drawn.
    /// A resumed run passes what it `began_with`. The `processes` of this machine share its loader
    /// threads and its memory.
    pub(crate) fn open(
        recipe: &Recipe,
        paths: &Paths,
        began_with: Option<&BeganWith>,
        processes: usize,
    ) -> Result<Self, TrainError> {
        let table = prepared(recipe, paths);
        if recipe.dataset.prepared.is_empty() {
            // Its files cannot lead outside of the folder: opening them follows no links.
            safe_open::check_folder(&table)?;
        }
        let dataset = Dataset::open(&table, Path::new(&recipe.dataset.path))?;
        if let Some(before) =
            began_with.map(|then| &then.dataset).filter(|&then| then != dataset.fingerprint())
        {
            let (path, now) = (paths.folder().to_owned(), dataset.fingerprint().to_owned());
            return Err(TrainError::OtherDataset { path, before: before.clone(), now });
        }
        let stored = paths.file(RunFile::Split)?;
        let split = if safe_open::exists(&stored) {
            read_split(&stored, &dataset)?
        } else {
            draw_split(recipe, &dataset)?
        };
        let split_hash = split.hash().map_err(|problem| DataError::new(&stored, problem))?;
        if began_with.is_some_and(|then| then.split != split_hash) {
            return Err(TrainError::OtherSplit { path: stored.to_path_buf() });
        }
        Self::new(recipe, dataset, split, processes)
    }

    /// The data of a dataset that is open and split.
    pub(crate) fn new(
        recipe: &Recipe,
        dataset: Dataset,
        split: LabelSplit,
        processes: usize,
    ) -> Result<Self, TrainError> {
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
        let classes_of = dataset.records(0..all).map(class).collect::<Result<_, DataError>>()?;
        let test = Some(recipe.dataset.test.as_str()).filter(|name| !name.is_empty());
        let test = test.map(|name| dataset.subset(name)).transpose().map_err(|error| {
            let hint = match &error {
                DataError::File { hint: Some(hint), .. } => hint.clone(),
                _ => String::new(),
            };
            error.hint(format!("{hint}; set dataset.test to one of them, or to nothing"))
        })?;
        let classes = dataset.classes().to_vec();
        let fingerprint = dataset.fingerprint().to_owned();
        let shrunk = dataset.header().shrunk.map(|shrunk| shrunk.side);
        let limit = recipe.loader.memory.saturating_mul(1 << 20) / processes.max(1) as u64;
        let images: Arc<dyn ImageSource> =
            if limit == 0 { Arc::new(dataset) } else { Arc::new(InMemory::new(dataset, limit)) };
        let augment = Arc::new(recipe.augment.resolve());
        let views = ImageViews::new(Arc::clone(&images), Arc::clone(&augment));
        let workers = recipe.loader.workers(processes);
        Ok(Self {
            images,
            classes,
            fingerprint,
            shrunk,
            split,
            split_hash,
            unlabelled,
            classes_of,
            validation,
            fitted_on,
            test,
            augment,
            views,
            workers,
        })
    }

    /// The samples that a run on frozen features needs.
    pub(crate) fn needed(&self) -> NeededSamples {
        let mut training = self.unlabelled_ids();
        training.extend(self.labelled());
        training.sort_unstable();
        training.dedup();
        let mut evaluation = self.ids_of(EvalSet::Validation);
        evaluation.extend(self.test.clone().unwrap_or_default());
        evaluation.retain(|id| training.binary_search(id).is_err());
        evaluation.sort_unstable();
        evaluation.dedup();
        NeededSamples { training, evaluation }
    }

    /// The samples that an evaluation needs, without training.
    pub(crate) fn needed_to_evaluate(&self) -> NeededSamples {
        let mut evaluation = self.ids_of(EvalSet::Validation);
        evaluation.extend(self.test.clone().unwrap_or_default());
        evaluation.sort_unstable();
        evaluation.dedup();
        NeededSamples { training: Vec::new(), evaluation }
    }

    /// The labels that are trained on.
    pub(crate) fn labelled(&self) -> &[u64] {
        self.split.labelled()
    }

    /// The class of a sample, if known.
    pub(crate) fn class_of(&self, id: u64) -> Option<u32> {
        let class = usize::try_from(id).ok().and_then(|id| self.classes_of.get(id));
        class.copied().filter(|&class| class != NO_LABEL)
    }

    /// The samples of a split, in order.
    pub(crate) fn ids_of(&self, split: EvalSet) -> Vec<u64> {
        let samples = self.samples(split);
        (0..samples.len()).filter_map(|index| samples.id(index)).collect()
    }

    /// The samples that are trained on without a label, in order.
    pub(crate) fn unlabelled_ids(&self) -> Vec<u64> {
        (0..self.unlabelled.len()).filter_map(|index| self.unlabelled.id(index)).collect()
    }

    fn samples(&self, split: EvalSet) -> SampleIds {
        match split {
            // Heads of folds predict these.
            EvalSet::OutOfFold => SampleIds::default(),
            EvalSet::Validation => self.validation.clone(),
            EvalSet::Labelled => self.labelled().into(),
            EvalSet::Test => self.test.clone().unwrap_or_default().into(),
        }
    }

    /// The number of validation samples: held out, or of the dataset's own split.
    pub(crate) fn validation(&self) -> u64 {
        self.validation.len()
    }

    /// The name of a sample: its file, or its number in its subset.
    pub(crate) fn sample_name(&self, id: u64) -> Result<String, TrainError> {
        Ok(self.images.name(id)?)
    }

    /// The kind of labels of a calibrator that is fitted on the validation samples.
    pub(crate) fn fitted_on(&self) -> FittedOn {
        self.fitted_on
    }

    /// Bytes of a view.
    pub(crate) fn image_bytes(&self) -> usize {
        self.views.bytes()
    }

    /// Prepares the dataset of a recipe in the run's own folder, unless it is prepared already; returns what was
    /// found.
    pub(crate) fn prepare(recipe: &Recipe, paths: &Paths) -> Result<Option<Report>, TrainError> {
        sweep(paths.folder())?;
        let target = prepared(recipe, paths);
        if !recipe.dataset.prepared.is_empty() || safe_open::exists(&target) {
            return Ok(None);
        }
        Ok(Some(prepare(&recipe.dataset.source_spec(), Path::new(&recipe.dataset.path), &target)?))
    }

    /// The number of samples that are trained on without a label.
    pub(crate) fn unlabelled(&self) -> u64 {
        self.unlabelled.len()
    }

    /// The class of an unlabelled sample whose pseudo-label can be evaluated: one that the dataset knows, of a sample that is
    /// not also trained on with its label. Other implementations count those too, although the network has memorised them.
    pub(crate) fn evaluated_class(&self, id: u64) -> Option<u32> {
        let labelled = self.labelled().binary_search(&id).is_ok();
        if labelled { None } else { self.class_of(id) }
    }

    /// The number of unlabelled samples of each shard of this process; `None` if none are drawn.
    pub(crate) fn shard_lengths(&self, recipe: &Recipe, layout: &ParallelLayout) -> Vec<usize> {
        let samples = NonZeroU64::new(self.unlabelled.len());
        let shards = layout.sharding().count();
        let membership = samples.and_then(|n| Membership::new(Seed(recipe.train.seed), n, shards));
        let length = |shard: usize| membership.as_ref().map_or(0, |all| all.len(shard as u64) as usize);
        layout.local().map(length).collect()
    }

    /// The batches of these steps: the rows of them that are this process's.
    pub(crate) fn batches(
        &self,
        recipe: &Recipe,
        layout: &ParallelLayout,
        steps: Range<u64>,
    ) -> Result<Loader<ImageViews<Augment>>, TrainError> {
        let train = &recipe.train;
        // How many may be corrupt is counted over all processes.
        let corrupt = match recipe.loader.corrupt() {
            OnCorrupt::Skip { .. } => OnCorrupt::Skip { share: 1.0 },
            OnCorrupt::Stop => OnCorrupt::Stop,
        };
        let training = Training {
            sharding: layout.sharding(),
            shards: layout.shards(),
            labelled: SampleStream { ids: self.labelled().into(), batch: train.batch },
            unlabelled: SampleStream { ids: self.unlabelled.clone(), batch: recipe.unlabelled() },
            corrupt,
            ..Training::new(Seed(train.seed), steps)
        };
        Ok(Loader::new(Arc::clone(&self.views), training, self.workers)?)
    }

    /// The samples of a split without augmentation, batch by batch, and the most batches that any process gets; `None` if
    /// the split has no samples. The batches are distributed about evenly over the processes, in contiguous ranges.
    pub(crate) fn samples_of(
        &self,
        recipe: &Recipe,
        split: EvalSet,
        processes: &ProcessGroup,
    ) -> Result<Option<(EvalBatches, u64)>, TrainError> {
        self.in_batches(recipe, &self.samples(split), processes)
    }

    /// The unlabelled samples whose pseudo-label can be evaluated, in the same way.
    pub(crate) fn evaluated_samples(
        &self,
        recipe: &Recipe,
        processes: &ProcessGroup,
    ) -> Result<Option<(EvalBatches, u64)>, TrainError> {
        let mut evaluated = self.unlabelled_ids();
        evaluated.retain(|&id| self.evaluated_class(id).is_some());
        self.in_batches(recipe, &evaluated.as_slice().into(), processes)
    }

    fn in_batches(
        &self,
        recipe: &Recipe,
        samples: &SampleIds,
        processes: &ProcessGroup,
    ) -> Result<Option<(EvalBatches, u64)>, TrainError> {
        if samples.is_empty() {
            return Ok(None);
        }
        let batch = u64::from(recipe.evaluate.batch.max(1));
        let (size, rank) = (processes.size() as u64, processes.rank() as u64);
        let cut = |n: u64| (samples.len().div_ceil(batch) * n / size * batch).min(samples.len());
        let ids = samples.slice(cut(rank)..cut(rank + 1));
        let stream = SampleStream { ids, batch: recipe.evaluate.batch };
        let views = Arc::clone(&self.views);
        let (corrupt, workers) = (recipe.loader.corrupt(), self.workers);
        let rounds = samples.len().div_ceil(batch).div_ceil(size);
        Ok(Some((EvalLoader::new(views, stream, corrupt, workers)?, rounds)))
    }
}

/// Where the prepared dataset is, or will be.
pub(crate) fn prepared(recipe: &Recipe, paths: &Paths) -> PathBuf {
    match recipe.dataset.prepared.as_str() {
        "" => paths.prepared().to_path_buf(),
        folder => PathBuf::from(folder),
    }
}

/// Reads the split in the run's folder.
pub(crate) fn read_split(path: &Path, dataset: &Dataset) -> Result<LabelSplit, TrainError> {
    let bytes = safe_open::read(path, LabelSplit::LONGEST_STORED)?;
    Ok(LabelSplit::from_bytes(&bytes, path, dataset)?)
}

/// The error for a selection rule that needs validation labels where there are none.
fn no_validation(split: &LabelSplit) -> TrainError {
    let labels = split.labelled().len();
    TrainError::Unsupported(format!(
        "selection = \"best-validation\" needs validation labels: the dataset has no validation split, and none of its \
         {labels} labels is held out; add a folder val, set labels.validation to a share such as 0.2, or choose selection = \
         \"last\""
    ))
}

/// Removes what a process that was killed while it prepared left in the run's folder.
fn sweep(folder: &Path) -> Result<(), DataError> {
    let cannot = |error| DataError::new(folder, error);
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        if entry.file_name().to_string_lossy().starts_with(PREPARING) {
            fs::remove_dir_all(entry.path()).map_err(|error| DataError::new(entry.path(), error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
