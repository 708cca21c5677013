//! `calmix weights get`: downloads a model of the Hugging Face Hub into the weights folder.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::shown::shown;
use calmix_io::{atomic_file, safe_open};
use calmix_lifecycle::pretrained::EncoderFile;
use calmix_onnx::foreign::ForeignModel;
use calmix_run::pretrained::config::{CONFIG, MAX_CONFIG_BYTES};
use calmix_run::pretrained::weights_file::WeightsFile;
use calmix_run::pretrained::weights_folder::{WeightsFolder, check_name};
use serde_json::json;

use crate::args::weights::GetArgs;
use crate::error::CliError;
use crate::error::exit::Exit;
use crate::output::format::bytes;
use crate::process::stop::Stop;
use crate::remote::hub::{
    ChosenFiles, HubVariables, ModelKind, ORIGIN, Origin, OriginFile, PartFolder, Repository, Snapshot,
    export_hint,
};
use crate::terminal::rate::Rate;
use crate::terminal::{clear_line, print, print_json, status, warn};

/// Weights in the weights folder.
struct FetchedWeights {
    name: String,
    folder: PathBuf,
    origin: Origin,
    /// Whether the same commit was already there, so that nothing was downloaded.
    is_unchanged: bool,
}

impl GetArgs {
    pub(super) fn run(self, folder: &WeightsFolder) -> Result<Exit> {
        let stop = Stop::listen()?;
        let stopped = || status("interrupted; the same command continues");
        // A signal may arrive while a server does not respond. Data that has arrived is kept.
        let done = stop.ending_soon(stopped, || self.fetch(folder, stop.flag()));
        match done {
            Err(_) if stop.flag().load(Ordering::Relaxed) => {
                stopped();
                Ok(stop.exit())
            }
            Err(error) => Err(error),
            Ok(fetched) => {
                self.show(&fetched)?;
                Ok(Exit::Done)
            }
        }
    }

    /// Downloads the files that the weights folder lacks.
    fn fetch(&self, weights: &WeightsFolder, stop: &AtomicBool) -> Result<FetchedWeights> {
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
            return Ok(FetchedWeights { name, folder, origin, is_unchanged: true });
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
            // Do not keep files that cannot be used.
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
        weights.install(&complete, &name).map_err(|error| FileError::new(&folder, error))?;
        parts.remove();
        Ok(FetchedWeights { name, folder, origin, is_unchanged: false })
    }

    /// Prints the result, and the command that uses the weights.
    fn show(&self, fetched: &FetchedWeights) -> Result<()> {
        let FetchedWeights { name, folder, origin, is_unchanged } = fetched;
        if self.json {
            return print_json(&json!({
                "name": name,
                "folder": folder.display().to_string(),
                "was_there": is_unchanged,
                "origin": origin,
            }));
        }
        let note = if *is_unchanged { " (was there before, nothing changed)" } else { "" };
        let licence = origin.licence.as_deref().map_or("licence unknown".to_owned(), shown);
        let files = origin.files.iter().map(|file| {
            format!("  {}, {}\n    sha256 {}\n", shown(&file.file), bytes(file.bytes), shown(&file.sha256))
        });
        print(&format!(
            "{name}: {} at commit {}, {licence}{note}\n{}in {}\n\nnext: calmix train --data FOLDER --set network.weights={name}",
            shown(&origin.repository),
            shown(&origin.commit),
            files.collect::<String>(),
            shown(folder.display()),
        ))
    }
}

const OTHER_NAME: &str = "choose another name with --name";

/// Returns the refusal of a name that other weights have.
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

/// Fetches all files of a model, and shows the progress.
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

/// Reads a model as later commands do, so that one that these would refuse is refused here.
fn check_model(kind: ModelKind, complete: &Path, repository: &Repository) -> Result<()> {
    let checked = match kind {
        ModelKind::Safetensors => check_weights(&complete.join("model.safetensors")),
        ModelKind::Onnx => check_encoder(&complete.join("model.onnx")),
    };
    checked.map_err(|mut error| {
        if error.is_transient() {
            return error.into();
        }
        // The folder is about to be removed, so name the file by its path in the repository.
        if let Ok(name) = error.path.strip_prefix(complete) {
            error.path = Path::new(&repository.to_string()).join(name);
        }
        CliError::invalid(error.to_string()).hint(export_hint(repository)).into()
    })
}

fn check_weights(path: &Path) -> Result<(), FileError> {
    WeightsFile::read(path)?.network().map(drop)
}

/// Reads an encoder. One with several outputs is accepted, since the user can choose later; one that takes no images is refused.
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
