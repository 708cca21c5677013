//! Opening a run: rank 0 starts or resumes it; then the other ranks open it with the recipe that rank 0 broadcasts.

use std::path::Path;

use calmix_engine::device::LIBTORCH;
use calmix_engine::{device, precision};
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::changes::{RunInputs, check_unchanged};
use calmix_lifecycle::prepared_dataset::prepare_missing;
use calmix_lifecycle::pretrained::BackboneFile;
use calmix_lifecycle::run_files::write_first_files;
use calmix_lifecycle::run_samples::RunSamples;
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use calmix_recipe::{BatchNorm, Layers, Recipe, Resolved, uneven_rows};
use calmix_run::checkpoint::FoundCheckpoint;
use calmix_run::events::Note;
use calmix_run::read::inspect;
use calmix_run::run::{Paths, Run, RunEnvironment, RunFile};

use super::{NewRun, OpenedRun, RankZeroRun, checkpoint_files};
use crate::trainer::data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::sync::RunFingerprint;
use crate::trainer::{Trainer, threads};

impl Trainer<'_> {
    /// Starts a run: creates its folder, opens its dataset, draws its split, and stores its recipe.
    pub(crate) fn open_new(
        &self,
        mut recipe: Resolved,
        from: NewRun<'_>,
        processes: usize,
    ) -> Result<RankZeroRun, TrainError> {
        recipe.ready()?;
        let train = &recipe.recipe.train;
        let device = train.device.or_else(device::fastest);
        let precision = train.precision.or_else(|| precision::best(device));
        let threads = threads(train.threads, self.local.processes);
        let micro_batches = match train.micro_batches {
            0 => u32::try_from(processes).unwrap_or(u32::MAX).div_ceil(train.groups),
            micro_batches => micro_batches,
        };
        let is_automatic = train.micro_batches == 0;
        recipe.decide(device, precision, threads, micro_batches)?;
        supported(&recipe, processes)?;
        BackboneFile::read(&recipe.recipe.network)?;
        let (run, table) = match from {
            NewRun::Folder(folder) => (self.request.claim(folder)?, None),
            NewRun::Prepared { run, table } => (run, Some(table)),
        };
        let mut notes = prepare_missing(&recipe.recipe, run.paths())?;
        notes.extend(is_automatic.then(|| micro_batch_note(&recipe.recipe)).flatten());
        let data = match table {
            Some(table) => {
                let (dataset, split) = *table;
                TrainData::new(&recipe.recipe, RunSamples::new(&recipe.recipe, dataset, split)?, processes)
            }
            None => self.open_data(|| TrainData::open(&recipe.recipe, run.paths(), None, processes))?,
        };
        let environment = RunEnvironment::current(
            self.request.build.clone(),
            format!("libtorch {LIBTORCH}"),
            device.to_string(),
            data.samples.fingerprint.clone(),
            data.samples.split_hash.clone(),
        );
        write_first_files(&run, &recipe, &data.samples, &environment)?;
        Ok(RankZeroRun::Run(Box::new(OpenedRun { recipe, data, run: Some(run), found: None, notes })))
    }

    /// Opens a run that has begun, at a checkpoint that all processes can use.
    pub(crate) fn open_again(
        &self,
        run: Run,
        found: Option<FoundCheckpoint>,
        recipe: Option<Resolved>,
    ) -> Result<RankZeroRun, TrainError> {
        let folder = run.paths().folder().to_owned();
        let folder = folder.as_path();
        let path = run.paths().file(RunFile::Recipe)?;
        let before = match &found {
            Some(found) => {
                Layers::new().text(&path, &checkpoint_files::recipe(&found.checkpoint)?).resolve()?
            }
            None => inspect::recipe(folder)?,
        };
        let mut recipe = match recipe {
            Some(recipe) => recipe,
            None => inspect::recipe_layers(folder)?.resolve()?,
        };
        let train = &recipe.recipe.train;
        let was = &before.recipe.train;
        let device = train.device.or_else(|| was.device.or_else(|| Device::Cpu));
        let precision = train.precision.or_else(|| was.precision.or_else(|| Precision::F32));
        let threads = if train.threads == 0 { was.threads } else { train.threads };
        let micro_batches = if train.micro_batches == 0 { was.micro_batches } else { train.micro_batches };
        recipe.decide(device, precision, threads, micro_batches)?;
        check_unchanged(&before, &recipe, folder)?;
        supported(&recipe, self.processes.size())?;
        let finished = match &found {
            Some(found) => checkpoint_files::finished(&found.checkpoint)?,
            None => None,
        };
        if let Some(finished) = finished {
            return Ok(RankZeroRun::Finished(finished));
        }
        let mut notes = prepare_missing(&recipe.recipe, run.paths())?;
        notes.extend(summation_order_note(&before, &recipe));
        let inputs = match &found {
            Some(found) => RunInputs::from(&found.checkpoint.manifest().identity),
            None => RunInputs::of(folder)?,
        };
        let local = self.local.processes;
        let data = self.open_data(|| TrainData::open(&recipe.recipe, run.paths(), Some(&inputs), local))?;
        run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
        Ok(RankZeroRun::Run(Box::new(OpenedRun { recipe, data, run: Some(run), found, notes })))
    }

    /// Opens the run that rank 0 has opened. The path of the dataset and the loader settings may differ between machines.
    pub(crate) fn follow(
        &self,
        text: &str,
        found: Option<FoundCheckpoint>,
        request: Option<&Resolved>,
        folder: &Path,
    ) -> Result<OpenedRun, TrainError> {
        let paths = Paths::new(folder);
        let mut recipe = Layers::new().text(&paths.file(RunFile::Recipe)?, text).resolve()?;
        let mut requested = recipe.clone();
        if let Some(request) = request {
            requested = request.clone();
            let train = &recipe.recipe.train;
            let (device, precision) =
                (train.device.or_else(|| Device::Cpu), train.precision.or_else(|| Precision::F32));
            let micro_batches = if requested.recipe.train.micro_batches == 0 {
                train.micro_batches
            } else {
                requested.recipe.train.micro_batches
            };
            requested.decide(device, precision, train.threads, micro_batches)?;
            let place = &requested.recipe.dataset;
            recipe.recipe.dataset.path.clone_from(&place.path);
            if !place.prepared.is_empty() {
                recipe.recipe.dataset.prepared.clone_from(&place.prepared);
            }
            recipe.recipe.loader = requested.recipe.loader.clone();
        }
        let local = self.local.processes;
        let opened = self.open_data(|| TrainData::open(&recipe.recipe, &paths, None, local));
        let fingerprint = opened.as_ref().map(|data| self.fingerprint(&requested, data));
        let checked = RunFingerprint::check(fingerprint.map_err(TrainError::as_text), &self.processes);
        let data = opened?;
        checked?;
        Ok(OpenedRun { recipe, data, found, run: None, notes: Vec::new() })
    }

    /// Opens the data of a run. Waits if the storage is temporarily unavailable, unless the run has to stop.
    fn open_data(
        &self,
        open: impl Fn() -> Result<TrainData, LifecycleError>,
    ) -> Result<TrainData, TrainError> {
        Ok(self.request.open_when_available(open)?)
    }

    pub(crate) fn fingerprint(&self, recipe: &Resolved, data: &TrainData) -> RunFingerprint {
        RunFingerprint {
            version: format!("{}, libtorch {LIBTORCH}", env!("CARGO_PKG_VERSION")),
            recipe: self.recipe_hash.clone().unwrap_or_else(|| recipe.hash()),
            dataset: data.samples.fingerprint.clone(),
            labels: data.samples.split_hash.clone(),
        }
    }
}

/// Warns if the number of micro-batches follows from the number of processes: the result then differs from that of one process.
fn micro_batch_note(recipe: &Recipe) -> Option<Note> {
    let (micro_batches, train) = (recipe.train.micro_batches, &recipe.train);
    let rows = train.batch + 2 * recipe.unlabelled();
    (micro_batches > 1).then(|| Note {
        step: 0,
        text: format!(
            "{micro_batches} processes split each batch into {micro_batches} micro-batches: batch normalisation sees {} of {rows} rows at a time, \
             so the result differs from that of one process",
            rows / micro_batches
        ),
        hint: format!("to compare runs on different numbers of processes, start all of them with train.micro_batches={micro_batches}"),
    })
}

/// Warns if a changed setting is allowed to change but affects the order of summation, and so the last bits.
fn summation_order_note(before: &Resolved, now: &Resolved) -> Option<Note> {
    let (was, is) = (&before.recipe.train, &now.recipe.train);
    let changed = (was.device, was.threads) != (is.device, is.threads);
    changed.then(|| Note {
        step: 0,
        text: "the device or the number of threads has changed".to_owned(),
        hint: "the result may differ in its last bits from that of an uninterrupted run".to_owned(),
    })
}

/// Refuses settings that are valid but that this version cannot run.
fn supported(recipe: &Resolved, processes: usize) -> Result<(), TrainError> {
    let train = &recipe.recipe.train;
    let (groups, micro_batches) = (train.groups, train.micro_batches);
    if recipe.recipe.has_vectors() {
        let sentence = "dataset.source = \"vectors\" is trained by `calmix train --features VECTORS`";
        return Err(TrainError::unsupported(sentence));
    }
    if recipe.recipe.has_head() {
        let sentence = "network.train = \"head\" is trained by `calmix`, in one process and without libtorch: `calmix train` \
                        or `calmix resume`, without --processes and without a launcher; several processes can only compute \
                        its features: calmix train --features-only";
        return Err(TrainError::unsupported(sentence));
    }
    if u64::from(groups) * u64::from(micro_batches) < processes as u64 {
        return Err(TrainError::TooManyProcesses { processes, groups, micro_batches });
    }
    if let Some(sentence) = uneven_rows(&recipe.recipe, micro_batches) {
        return Err(TrainError::unsupported(format!("train.micro_batches = {micro_batches}: {sentence}")));
    }
    if micro_batches > 1 && train.batch_norm == BatchNorm::Sync {
        let sentence = "train.batch_norm = \"sync\" is not supported with several micro-batches per group: use \"micro-batch\", or \
                        one micro-batch per group (train.micro_batches = 1, with train.groups for a larger batch)";
        return Err(TrainError::unsupported(sentence));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_micro_batches_are_reported() {
        let mut recipe = Recipe::default();
        recipe.train.micro_batches = 1;
        assert!(micro_batch_note(&recipe).is_none());
        recipe.train.micro_batches = 8;
        let note = micro_batch_note(&recipe).unwrap();
        assert!(note.text.contains("batch normalisation sees 120 of 960 rows at a time"), "{}", note.text);
        assert!(note.hint.ends_with("train.micro_batches=8"), "{}", note.hint);
    }
}
