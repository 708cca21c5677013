//! Opens a run: rank 0 starts or resumes it; then the other ranks open it with the recipe that rank 0 broadcasts.

use std::path::Path;

use calmix_engine::device;
use calmix_engine::device::LIBTORCH;
use calmix_engine::precision;
use calmix_lifecycle::LifecycleError;
use calmix_lifecycle::changes::refuse_changes;
use calmix_lifecycle::first_files::write_first_files;
use calmix_lifecycle::pretrained::backbone_file::BackboneFile;
use calmix_lifecycle::run_samples::{BeganWith, RunSamples};
use calmix_lifecycle::storage_wait::open_when_available;
use calmix_lifecycle::table::prepared_table::prepare_missing;
use calmix_recipe::device::Device;
use calmix_recipe::precision::Precision;
use calmix_recipe::{BatchNorm, Layers, Recipe, Resolved, uneven_rows};
use calmix_run::checkpoint::FoundCheckpoint;
use calmix_run::events::Note;
use calmix_run::read::inspect;
use calmix_run::run::{Paths, Run, RunEnvironment, RunFile};

use super::checkpoint_files;
use super::opened_run::{NewRun, OpenedRun, RankZeroRun};
use crate::trainer::Trainer;
use crate::trainer::data::train_data::TrainData;
use crate::trainer::error::TrainError;
use crate::trainer::ranks::sync::RunFingerprint;
use crate::trainer::threads;

impl Trainer<'_> {
    /// Starts a run: its folder, its dataset, its split, its recipe.
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
        let shards = match train.shards {
            0 => u32::try_from(processes).unwrap_or(u32::MAX).div_ceil(train.groups),
            shards => shards,
        };
        let automatic = train.shards == 0;
        recipe.decide(device, precision, threads, shards)?;
        supported(&recipe, processes)?;
        BackboneFile::read(&recipe.recipe.network)?;
        let (run, table) = match from {
            NewRun::Folder(folder) => (self.request.claim(folder)?, None),
            NewRun::Prepared { run, table } => (run, Some(table)),
        };
        let mut notes = prepare_missing(&recipe.recipe, run.paths())?;
        notes.extend(automatic.then(|| shard_note(&recipe.recipe)).flatten());
        let data = match table {
            Some(table) => {
                let (dataset, split) = *table;
                TrainData::new(&recipe.recipe, RunSamples::new(&recipe.recipe, dataset, split)?, processes)
            }
            None => self.open_data(|| TrainData::open(&recipe.recipe, run.paths(), None, processes))?,
        };
        let environment = RunEnvironment::here(
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
        let shards = if train.shards == 0 { was.shards } else { train.shards };
        recipe.decide(device, precision, threads, shards)?;
        refuse_changes(&before, &recipe, folder)?;
        supported(&recipe, self.processes.size())?;
        let finished = match &found {
            Some(found) => checkpoint_files::finished(&found.checkpoint)?,
            None => None,
        };
        if let Some(finished) = finished {
            return Ok(RankZeroRun::Finished(finished));
        }
        let mut notes = prepare_missing(&recipe.recipe, run.paths())?;
        notes.extend(other_bits(&before, &recipe));
        let began_with = match &found {
            Some(found) => BeganWith::from(&found.checkpoint.manifest().identity),
            None => BeganWith::of(folder)?,
        };
        let local = self.local.processes;
        let data =
            self.open_data(|| TrainData::open(&recipe.recipe, run.paths(), Some(&began_with), local))?;
        run.write(RunFile::Recipe, recipe.to_toml().as_bytes())?;
        Ok(RankZeroRun::Run(Box::new(OpenedRun { recipe, data, run: Some(run), found, notes })))
    }

    /// Opens what rank 0 has opened. The place of the dataset and the loader settings may differ from machine to machine.
    pub(crate) fn follow(
        &self,
        text: &str,
        found: Option<FoundCheckpoint>,
        asked: Option<&Resolved>,
        folder: &Path,
    ) -> Result<OpenedRun, TrainError> {
        let paths = Paths::new(folder);
        let mut recipe = Layers::new().text(&paths.file(RunFile::Recipe)?, text).resolve()?;
        let mut own = recipe.clone();
        if let Some(asked) = asked {
            own = asked.clone();
            let train = &recipe.recipe.train;
            let (device, precision) =
                (train.device.or_else(|| Device::Cpu), train.precision.or_else(|| Precision::F32));
            let shards = if own.recipe.train.shards == 0 { train.shards } else { own.recipe.train.shards };
            own.decide(device, precision, train.threads, shards)?;
            let place = &own.recipe.dataset;
            recipe.recipe.dataset.path.clone_from(&place.path);
            if !place.prepared.is_empty() {
                recipe.recipe.dataset.prepared.clone_from(&place.prepared);
            }
            recipe.recipe.loader = own.recipe.loader.clone();
        }
        let local = self.local.processes;
        let opened = self.open_data(|| TrainData::open(&recipe.recipe, &paths, None, local));
        let own = opened.as_ref().map(|data| self.fingerprint(&own, data));
        let own = own.map_err(TrainError::as_text);
        let checked = RunFingerprint::check(own, &self.processes);
        let data = opened?;
        checked?;
        Ok(OpenedRun { recipe, data, found, run: None, notes: Vec::new() })
    }

    /// Opens the data of a run. Waits if the storage is temporarily unavailable, unless the run has to stop.
    fn open_data(
        &self,
        open: impl Fn() -> Result<TrainData, LifecycleError>,
    ) -> Result<TrainData, TrainError> {
        Ok(open_when_available(self.request.stop, &self.request.warn, open)?)
    }

    pub(crate) fn fingerprint(&self, recipe: &Resolved, data: &TrainData) -> RunFingerprint {
        RunFingerprint {
            version: format!("{}, libtorch {LIBTORCH}", env!("CARGO_PKG_VERSION")),
            recipe: self.asked.clone().unwrap_or_else(|| recipe.hash()),
            dataset: data.samples.fingerprint.clone(),
            labels: data.samples.split_hash.clone(),
        }
    }
}

/// Warns if the number of processes decides the number of shards: the result then differs from that of one process.
fn shard_note(recipe: &Recipe) -> Option<Note> {
    let (shards, train) = (recipe.train.shards, &recipe.train);
    let rows = train.batch + 2 * recipe.unlabelled();
    (shards > 1).then(|| Note {
        step: 0,
        text: format!(
            "{shards} processes split each batch into {shards} shards: batch normalisation sees {} of {rows} rows at a time, \
             so the result differs from that of one process",
            rows / shards
        ),
        hint: format!("to compare runs on different numbers of processes, start all of them with train.shards={shards}"),
    })
}

/// Warns if a setting changed that may change on resuming but decides the order in which numbers are added up.
fn other_bits(before: &Resolved, now: &Resolved) -> Option<Note> {
    let (was, is) = (&before.recipe.train, &now.recipe.train);
    let changed = (was.device, was.threads) != (is.device, is.threads);
    changed.then(|| Note {
        step: 0,
        text: "the device or the number of threads has changed".to_owned(),
        hint: "the result may differ in its last bits from that of an uninterrupted run".to_owned(),
    })
}

/// Refuses settings that recipes can express but this version cannot run.
fn supported(recipe: &Resolved, processes: usize) -> Result<(), TrainError> {
    let train = &recipe.recipe.train;
    let (groups, shards) = (train.groups, train.shards);
    if recipe.recipe.has_vectors() {
        let sentence = "dataset.source = \"vectors\" is trained by `calmix train --features VECTORS`";
        return Err(TrainError::Unsupported(sentence.to_owned()));
    }
    if recipe.recipe.has_head() {
        let sentence = "network.train = \"head\" is trained by `calmix`, in one process and without libtorch: `calmix train` \
                        or `calmix resume`, without --processes and without a launcher; several processes can only compute \
                        its features: calmix train --features-only";
        return Err(TrainError::Unsupported(sentence.to_owned()));
    }
    if u64::from(groups) * u64::from(shards) < processes as u64 {
        return Err(TrainError::TooManyProcesses { processes, groups, shards });
    }
    if let Some(sentence) = uneven_rows(&recipe.recipe, shards) {
        return Err(TrainError::Unsupported(format!("train.shards = {shards}: {sentence}")));
    }
    if shards > 1 && train.batch_norm == BatchNorm::Sync {
        let sentence = "train.batch_norm = \"sync\" is not supported with several shards per group: use \"shard\", or \
                        one shard per group (train.shards = 1, with train.groups for a larger batch)";
        return Err(TrainError::Unsupported(sentence.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_shards_are_told() {
        let mut recipe = Recipe::default();
        recipe.train.shards = 1;
        assert!(shard_note(&recipe).is_none());
        recipe.train.shards = 8;
        let note = shard_note(&recipe).unwrap();
        assert!(note.text.contains("batch normalisation sees 120 of 960 rows at a time"), "{}", note.text);
        assert!(note.hint.ends_with("train.shards=8"), "{}", note.hint);
    }
}
