//! What `calmix weights get` does until it is stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use calmix_io::atomic_file;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_io::shown::shown;
use calmix_lifecycle::pretrained::encoder_file::EncoderFile;
use calmix_onnx::foreign::ForeignModel;
use calmix_run::pretrained::config::{CONFIG, MAX_CONFIG_BYTES};
use calmix_run::pretrained::weights_file::WeightsFile;
use calmix_run::pretrained::weights_folder::{WeightsFolder, check_name};
use serde_json::json;

use crate::args::weights::get::GetArgs;
use crate::error::CliError;
use crate::output::format::bytes;
use crate::remote::hub::{
    ChosenFiles, HubVariables, ModelKind, ORIGIN, Origin, OriginFile, PartFolder, Repository, Snapshot,
    export_hint,
};
use crate::terminal::rate::Rate;
use crate::terminal::{clear_line, print, print_json, warn};

/// Weights that are in the weights folder.
pub(super) struct GotWeights {
    name: String,
    folder: PathBuf,
    origin: Origin,
    /// Whether the same commit was there before.
    was_there: bool,
}

impl GetArgs {
    /// Downloads what the weights folder lacks.
    pub(super) fn fetch(&self, weights: &WeightsFolder, stop: &AtomicBool) -> Result<GotWeights> {
        let repository = Repository::parse(&self.repository)?;
        let name = self.name.as_deref().unwrap_or(&repository.name).to_owned();
        check_name(&name).map_err(|problem| CliError::invalid(problem).hint(OTHER_NAME))?;
        let variables = HubVariables::read()?;
        let snapshot = Snapshot::open(&variables, &repository)?;
        let commit = &snapshot.listing.commit;
        let folder = weights.path().join(&name);
        let requested = self.file.as_deref();
        if let Some(origin) = Origin::of(&folder).filter(|origin| origin.is(&repository, commit, requested)) {
            PartFolder::remove_leftover(weights.path(), &repository);
            return Ok(GotWeights { name, folder, origin, was_there: true });
        }
        if safe_open::exists(&folder) {
            return Err(taken(&name, &folder, &repository).into());
        }
        let parts = PartFolder::open(weights.path(), &repository)?;
        let config = read_config(&snapshot, &parts, stop)?;
        let chosen = ChosenFiles::choose(&repository, &snapshot.listing, config.as_deref(), requested);
        let chosen = match chosen {
            Ok(chosen) => chosen,
            Err(error) => {
                parts.remove_own();
                return Err(error.into());
            }
        };
        let files = fetch_all(&snapshot, &chosen, &parts, stop)?;
        let complete = parts.assemble(&chosen.files)?;
        if let Err(error) = check_model(chosen.kind, &complete, &repository) {
            // What cannot be used is not worth the disk.
            parts.remove();
            return Err(error);
        }
        let origin = Origin {
            endpoint: variables.endpoint.clone(),
            repository: repository.to_string(),
            revision: repository.revision.clone(),
            commit: commit.clone(),
            licence: snapshot.listing.licence.clone(),
            files,
        };
        atomic_file::write(&complete.join(ORIGIN), &serde_json::to_vec_pretty(&origin)?)?;
        weights.place(&complete, &name).map_err(|error| FileError::new(&folder, error))?;
        parts.remove();
        Ok(GotWeights { name, folder, origin, was_there: false })
    }

    /// Prints what is there, and the command that uses it.
    pub(super) fn show(&self, got: &GotWeights) -> Result<()> {
        let GotWeights { name, folder, origin, was_there } = got;
        if self.json {
            return print_json(&json!({
                "name": name,
                "folder": folder.display().to_string(),
                "was_there": was_there,
                "origin": origin,
            }));
        }
        let there = if *was_there { " (was there before, nothing changed)" } else { "" };
        let licence = origin.licence.as_deref().map_or("licence unknown".to_owned(), shown);
        let files = origin.files.iter().map(|file| {
            format!("  {}, {}\n    sha256 {}\n", shown(&file.file), bytes(file.bytes), shown(&file.sha256))
        });
        print(&format!(
            "{name}: {} at commit {}, {licence}{there}\n{}in {}\n\nnext: calmix train --data FOLDER --set network.weights={name}",
            shown(&origin.repository),
            shown(&origin.commit),
            files.collect::<String>(),
            shown(folder.display()),
        ))
    }
}

const OTHER_NAME: &str = "choose another name with --name";

/// The refusal of a name that other weights have.
fn taken(name: &str, folder: &Path, repository: &Repository) -> CliError {
    let what = match Origin::of(folder) {
        Some(origin) if origin.repository == repository.to_string() => {
            let model = origin.files.first().map(|file| file.path.as_str()).unwrap_or_default();
            format!("{} of commit {} of {repository}", shown(model), shown(origin.commit))
        }
        Some(origin) => shown(origin.repository),
        None => "other weights".to_owned(),
    };
    CliError::invalid(format!("{name} is taken: {} has {what}", shown(folder.display())))
        .hint(format!("{OTHER_NAME}, or delete that folder"))
}

/// Reads the configuration of the repository, which names its network.
fn read_config(snapshot: &Snapshot<'_>, parts: &PartFolder, stop: &AtomicBool) -> Result<Option<Vec<u8>>> {
    let config = snapshot.listing.file(CONFIG).filter(|file| file.bytes <= MAX_CONFIG_BYTES);
    let Some(config) = config else { return Ok(None) };
    snapshot.fetch(config, parts, stop, &mut |_| {})?;
    Ok(Some(parts.read(config, MAX_CONFIG_BYTES)?))
}

/// Brings all files of a model, and shows the progress.
fn fetch_all(
    snapshot: &Snapshot<'_>,
    chosen: &ChosenFiles,
    parts: &PartFolder,
    stop: &AtomicBool,
) -> Result<Vec<OriginFile>> {
    let before: u64 = chosen.files.iter().map(|file| parts.arrived(&file.file)).sum();
    let mut rate = Rate::of_silent_command("megabyte").after(megabytes(before));
    let total = Some(megabytes(chosen.bytes()));
    let mut fetched = 0;
    let mut files = Vec::new();
    for chosen in &chosen.files {
        let mut progress =
            |arrived: u64| rate.show(megabytes((fetched + arrived).saturating_sub(before)), total);
        let sha256 = snapshot.fetch(&chosen.file, parts, stop, &mut progress)?;
        fetched += chosen.file.bytes;
        files.push(OriginFile {
            path: chosen.file.path.clone(),
            file: chosen.stored.clone(),
            bytes: chosen.file.bytes,
            sha256,
        });
    }
    clear_line();
    Ok(files)
}

fn megabytes(bytes: u64) -> u64 {
    bytes / 1_000_000
}

/// Reads a model as every later command does, and refuses what these would.
fn check_model(kind: ModelKind, complete: &Path, repository: &Repository) -> Result<()> {
    let checked = match kind {
        ModelKind::Safetensors => check_weights(&complete.join("model.safetensors")),
        ModelKind::Onnx => check_encoder(&complete.join("model.onnx")),
    };
    checked.map_err(|mut error| {
        if error.is_transient() {
            return error.into();
        }
        // The folder is about to go: name the file by its place in the repository.
        if let Ok(name) = error.path.strip_prefix(complete) {
            error.path = Path::new(&repository.to_string()).join(name);
        }
        CliError::invalid(error.to_string()).hint(export_hint(repository)).into()
    })
}

fn check_weights(path: &Path) -> Result<(), FileError> {
    WeightsFile::read(path)?.network().map(drop)
}

/// Reads an encoder. If it has several outputs, the user can choose one later; without images, it is of no use.
fn check_encoder(path: &Path) -> Result<(), FileError> {
    let file = EncoderFile::read(path)?;
    let mut none = |_: &str| Err("its weights are in it".to_owned());
    let input = ForeignModel::read(file.bytes(), &mut none).and_then(|model| model.image_input().map(drop));
    input.map_err(|problem| FileError::new(path, FileProblem::Content(problem.to_string())))?;
    if let Err(error) = file.choose(None, None) {
        warn(&format!("the model needs a setting before it can be used: {}", error.problem));
    }
    Ok(())
}
