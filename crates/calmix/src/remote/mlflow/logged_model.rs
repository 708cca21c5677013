//! A model on an MLflow server: a logged model of a run, which MLflow loads, registers and serves by its id.
//!
//! A tag has the hash of its files. A push that finds a complete model with this tag sends nothing; one that finds an incomplete
//! model, after a kill, sends the files again and completes it.

use anyhow::Result;
use calmix_io::shown::shown;
use serde_json::{Value, json};

use super::server::Request;
use super::{LOGGED_MODELS, TrackedRun, id_of, refusal, send_ok};
use crate::error::CliError;
use crate::export::export_folder::Files;

/// The tag with the hash of the files.
const TAG: &str = "calmix_model";

const READY: &str = "LOGGED_MODEL_READY";

/// The prefix of places that the tracking server itself stores, and its path for them.
const PROXIED: &str = "mlflow-artifacts:/";
const ARTIFACTS: &str = "/api/2.0/mlflow-artifacts/artifacts";

/// A model on the server.
pub(crate) struct LoggedModel {
    pub(crate) id: String,
    /// Whether this push sent it.
    pub(crate) is_new: bool,
}

impl TrackedRun {
    /// Logs a model of this run, unless the server has the same files.
    pub(crate) fn log_model(&self, files: &Files, name: &str) -> Result<LoggedModel> {
        let hash = hash_of(files);
        let found = self.find_model(&hash)?;
        if let Some(model) = &found
            && model["info"]["status"] == READY
        {
            return Ok(LoggedModel { id: model_id(model)?, is_new: false });
        }
        let model = match found {
            Some(model) => model,
            None => self.create_model(&hash, name)?,
        };
        let id = model_id(&model)?;
        let folder = artifact_path(&model)?;
        for (name, content) in files {
            let path: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
            self.upload(&format!("{folder}/{}", path.join("/")), content)?;
        }
        let outputs = json!({ "run_id": self.id, "models": [{ "model_id": id, "step": 0 }] });
        send_ok(&self.server, "runs/outputs", Request::Post(&outputs))?;
        let status = json!({ "model_id": id, "status": READY });
        send_ok(&self.server, &format!("{LOGGED_MODELS}/{id}"), Request::Patch(&status))?;
        Ok(LoggedModel { id, is_new: true })
    }

    /// Finds the model of this run with this hash; a complete one, if there are several.
    fn find_model(&self, hash: &str) -> Result<Option<Value>> {
        let filter = format!("tags.{TAG} = '{hash}'");
        let body = json!({ "experiment_ids": [self.experiment], "filter": filter, "max_results": 50 });
        let found = send_ok(&self.server, &format!("{LOGGED_MODELS}/search"), Request::Post(&body))?;
        let models = found["models"].as_array().cloned().unwrap_or_default();
        let mut of_run: Vec<Value> =
            models.into_iter().filter(|model| model["info"]["source_run_id"] == self.id).collect();
        of_run.sort_by_key(|model| model["info"]["status"] != READY);
        Ok(of_run.into_iter().next())
    }

    fn create_model(&self, hash: &str, name: &str) -> Result<Value> {
        // MLflow refuses other characters.
        let plain =
            |letter: char| if "/:.%\"'".contains(letter) || letter.is_control() { '-' } else { letter };
        let name: String = name.chars().map(plain).collect();
        let body = json!({
            "experiment_id": self.experiment,
            "source_run_id": self.id,
            "name": name,
            "model_type": "classifier",
            "tags": [{ "key": TAG, "value": hash }],
        });
        Ok(send_ok(&self.server, LOGGED_MODELS, Request::Post(&body))?["model"].clone())
    }

    fn upload(&self, path: &str, content: &[u8]) -> Result<(), CliError> {
        let answer = self.server.send(&format!("{ARTIFACTS}/{path}"), Request::Put(content))?;
        if answer.status == 200 { Ok(()) } else { Err(refusal(&self.server, "a file of the model", &answer)) }
    }
}

/// Returns the path of the model's files on the server.
fn artifact_path(model: &Value) -> Result<String, CliError> {
    let place = model["info"]["artifact_uri"].as_str().unwrap_or_default();
    let path = place.strip_prefix(PROXIED).unwrap_or_default();
    let is_plain = |part: &str| {
        !part.is_empty()
            && part != ".."
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if path.split('/').all(is_plain) {
        return Ok(path.to_owned());
    }
    let message = format!("the server stores models at {}, not through itself", shown(place));
    Err(CliError::failed(message).hint(
        "in Python, calmix.mlflow.log_model(FOLDER) uploads there, with a folder of calmix export --mlflow",
    ))
}

fn model_id(model: &Value) -> Result<String> {
    id_of(&model["info"]["model_id"], LOGGED_MODELS)
}

/// Returns the hash of files and their names.
fn hash_of(files: &Files) -> String {
    let mut hasher = blake3::Hasher::new();
    for (name, content) in files {
        hasher.update(name.to_string_lossy().as_bytes());
        hasher.update(blake3::hash(content).as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
