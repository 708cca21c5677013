//! The data of a run: the dataset, its split, and the batches for training and evaluation.

use std::fs;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use calmix_core::rng::Seed;
use calmix_data::augment::Augment;
use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use calmix_data::loader::{
    EvalLoader, ImageSource, InMemory, Loader, OnCorrupt, SampleIds, SampleStream, Training, Workers,
};
use calmix_data::order::Membership;
use calmix_data::prepare::{Report, prepare};
use calmix_data::split::LabelSplit;
use calmix_dist::ProcessGroup;

use super::error::TrainError;
use super::layout::ParallelLayout;
use crate::recipe::{Keep, Recipe};
use calmix_run::events;
use calmix_run::run::{Paths, RunFile};

/// What a dataset that is being prepared is called, as `calmix_data` has it.
const PREPARING: &str = ".preparing-";

/// A dataset that is open and split.
pub(super) struct TrainData {
    pub(super) pictures: Arc<dyn ImageSource>,
    pub(super) classes: Vec<String>,
    pub(super) fingerprint: String,
    pub(super) split: LabelSplit,
    unlabelled: SampleIds,
    test: Option<Range<u64>>,
    views: Arc<Augment>,
    workers: Workers,
}

impl TrainData {
    /// Opens the dataset of a recipe. The split is the one in the run's folder; before that is written, it is drawn.
    /// A run that goes on says which `fingerprint` the dataset had. The `processes` of this machine share its loader
    /// threads and its memory.
    pub(super) fn open(
        recipe: &Recipe,
        paths: &Paths,
        fingerprint: Option<&str>,
        processes: usize,
    ) -> Result<Self, TrainError> {
        let dataset = Dataset::open(&prepared(recipe, paths), Path::new(&recipe.dataset.path))?;
        if let Some(before) = fingerprint.filter(|&before| before != dataset.fingerprint()) {
            let (path, now) = (paths.folder().to_owned(), dataset.fingerprint().to_owned());
            return Err(TrainError::OtherDataset { path, before: before.to_owned(), now });
        }
        let stored = paths.file(RunFile::Split)?;
        let split =
            if stored.exists() { LabelSplit::read(&stored, &dataset)? } else { draw(recipe, &dataset)? };
        let needs = recipe.unlabelled() > 0;
        let unlabelled = if needs { split.unlabelled(&dataset)?.into() } else { SampleIds::default() };
        let test = Some(recipe.dataset.test.as_str()).filter(|name| !name.is_empty());
        let test = test.map(|name| dataset.subset(name)).transpose().map_err(|error| {
            let hint = error.hint.clone().unwrap_or_default();
            error.hint(format!("{hint}; name one of them as dataset.test, or nothing"))
        })?;
        let classes = dataset.classes().to_vec();
        let fingerprint = dataset.fingerprint().to_owned();
        let limit = recipe.loader.memory.saturating_mul(1 << 20) / processes.max(1) as u64;
        let pictures: Arc<dyn ImageSource> =
            if limit == 0 { Arc::new(dataset) } else { Arc::new(InMemory::new(dataset, limit)) };
        let views = Arc::new(recipe.augment.resolve());
        let workers = recipe.loader.workers(processes);
        Ok(Self { pictures, classes, fingerprint, split, unlabelled, test, views, workers })
    }

    /// Prepares the dataset of a recipe in the run's own folder, unless it is prepared already; returns what was
    /// found.
    pub(super) fn prepare(recipe: &Recipe, paths: &Paths) -> Result<Option<Report>, TrainError> {
        let target = prepared(recipe, paths);
        if !recipe.dataset.prepared.is_empty() || target.exists() {
            return Ok(None);
        }
        sweep(paths.folder())?;
        Ok(Some(prepare(&recipe.dataset.source_spec(), Path::new(&recipe.dataset.path), &target)?))
    }

    /// How many samples are learnt from without a label.
    pub(super) fn unlabelled(&self) -> u64 {
        self.unlabelled.len()
    }

    /// How many unlabelled samples belong to each shard of this process; none where none are drawn.
    pub(super) fn shard_lengths(&self, recipe: &Recipe, layout: &ParallelLayout) -> Vec<usize> {
        let samples = NonZeroU64::new(self.unlabelled.len());
        let shards = layout.sharding().count();
        let membership = samples.and_then(|n| Membership::new(Seed(recipe.train.seed), n, shards));
        let length = |shard: usize| membership.as_ref().map_or(0, |all| all.len(shard as u64) as usize);
        layout.local().map(length).collect()
    }

    /// The batches of these steps: the rows of them that are this process's.
    pub(super) fn batches(
        &self,
        recipe: &Recipe,
        layout: &ParallelLayout,
        steps: Range<u64>,
    ) -> Result<Loader<Augment>, TrainError> {
        let train = &recipe.train;
        // How many may be corrupt is counted over all processes.
        let corrupt = match recipe.loader.corrupt() {
            OnCorrupt::Skip { .. } => OnCorrupt::Skip { share: 1.0 },
            OnCorrupt::Stop => OnCorrupt::Stop,
        };
        let training = Training {
            sharding: layout.sharding(),
            shards: layout.shards(),
            labelled: SampleStream { ids: self.split.labelled().into(), batch: train.batch },
            unlabelled: SampleStream { ids: self.unlabelled.clone(), batch: recipe.unlabelled() },
            corrupt,
            ..Training::new(Seed(train.seed), steps)
        };
        let (pictures, views) = (Arc::clone(&self.pictures), Arc::clone(&self.views));
        Ok(Loader::new(pictures, views, training, self.workers)?)
    }

    /// The samples of a split as they are, batch by batch; none where the split has none. Of several processes each
    /// gets as many batches as any other, one process after the other.
    pub(super) fn samples_of(
        &self,
        recipe: &Recipe,
        split: events::EvalSet,
        processes: &ProcessGroup,
    ) -> Result<Option<EvalLoader<Augment>>, TrainError> {
        let samples = match split {
            events::EvalSet::Validation => self.split.validation().into(),
            events::EvalSet::Labelled => self.split.labelled().into(),
            events::EvalSet::Test => self.test.clone().unwrap_or_default().into(),
        };
        if SampleIds::is_empty(&samples) {
            return Ok(None);
        }
        let batch = u64::from(recipe.evaluate.batch.max(1));
        let (size, rank) = (processes.size() as u64, processes.rank() as u64);
        let cut = |n: u64| (samples.len().div_ceil(batch) * n / size * batch).min(samples.len());
        let ids: Vec<u64> = (cut(rank)..cut(rank + 1)).filter_map(|index| samples.id(index)).collect();
        let stream = SampleStream { ids: ids.as_slice().into(), batch: recipe.evaluate.batch };
        let (pictures, views) = (Arc::clone(&self.pictures), Arc::clone(&self.views));
        let (corrupt, workers) = (recipe.loader.corrupt(), self.workers);
        Ok(Some(EvalLoader::new(pictures, views, stream, corrupt, workers)?))
    }
}

/// Where the prepared dataset is, or will be.
fn prepared(recipe: &Recipe, paths: &Paths) -> PathBuf {
    match recipe.dataset.prepared.as_str() {
        "" => paths.prepared(),
        folder => PathBuf::from(folder),
    }
}

fn draw(recipe: &Recipe, dataset: &Dataset) -> Result<LabelSplit, DataError> {
    let labels = &recipe.labels;
    if labels.keep == Keep::Given {
        let given = LabelSplit::read(Path::new(&labels.file), dataset)?;
        return LabelSplit::given(dataset, labels.plan(), given.labelled().to_vec());
    }
    LabelSplit::draw(dataset, labels.plan())
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
