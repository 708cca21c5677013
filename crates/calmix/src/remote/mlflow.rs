//! A run on an MLflow tracking server, by its REST API.
//!
//! The run is found by a tag, the hash of its recipe and dataset, so pushing it from another folder updates the same run. The
//! server reports the last step of each metric, so calmix stores nothing between pushes: steps increase, and points up to that
//! step are not sent again. The time of a point is the start of the run on the server plus a millisecond per step: a point that
//! two simultaneous pushes send twice gives the same row in the server's table.

mod logged_model;
mod server;

use std::collections::BTreeMap;

use anyhow::Result;
use calmix_io::shown::shown;
use serde_json::{Value, json};

pub(crate) use server::Server;
use server::{Answer, Request, UNAUTHORISED_HINT};

use crate::error::CliError;

/// The tag that identifies a run.
const TAG: &str = "calmix_run";

/// The beginning of the calls about logged models.
const LOGGED_MODELS: &str = "logged-models";

/// MLflow's limits per request.
const MAX_METRICS: usize = 1_000;
const MAX_PARAMS: usize = 100;

/// The maximum length of a server's message that is shown, in characters.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// A run on a server.
pub(crate) struct TrackedRun {
    pub(crate) server: Server,
    /// The id of the run on the server.
    pub(crate) id: String,
    /// The id of its experiment.
    experiment: String,
    start: i64,
    is_finished: bool,
    /// The last step of each metric on the server.
    arrived: BTreeMap<String, i64>,
    params: BTreeMap<String, String>,
}

/// A metric at a step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MetricPoint {
    pub(crate) key: String,
    pub(crate) step: u64,
    /// May be NaN.
    pub(crate) value: f64,
}

impl TrackedRun {
    /// Finds a run by its identity, or creates it.
    pub(crate) fn find_or_create(
        server: Server,
        experiment: &str,
        identity: &str,
        name: &str,
        now: i64,
    ) -> Result<Self> {
        let experiment = experiment_id(&server, experiment)?;
        if let Some(id) = search(&server, &experiment, identity)?.into_iter().next() {
            return Self::open(server, id, experiment);
        }
        let tags = [(TAG, identity), ("mlflow.source.name", "calmix"), ("mlflow.source.type", "LOCAL")];
        let tags: Vec<Value> =
            tags.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
        let body = json!({ "experiment_id": experiment, "run_name": name, "start_time": now, "tags": tags });
        let created = send_ok(&server, "runs/create", Request::Post(&body))?;
        let new_run = id_of(&created["run"]["info"]["run_id"], "runs/create")?;
        // Another push may have created one at the same time: both use the first.
        let first_run =
            search(&server, &experiment, identity)?.into_iter().next().unwrap_or_else(|| new_run.clone());
        if first_run != new_run {
            send_ok(&server, "runs/delete", Request::Post(&json!({ "run_id": new_run })))?;
        }
        Self::open(server, first_run, experiment)
    }

    /// Reads from the server what has arrived.
    fn open(server: Server, id: String, experiment: String) -> Result<Self> {
        let found = send_ok(&server, "runs/get", Request::Get("run_id", &id))?;
        let info = &found["run"]["info"];
        let data = &found["run"]["data"];
        let list = |name: &str| data[name].as_array().cloned().unwrap_or_default();
        let arrived = list("metrics").into_iter().filter_map(|seen| {
            // The JSON omits fields with their default value.
            Some((seen["key"].as_str()?.to_owned(), integer(&seen["step"]).unwrap_or(0)))
        });
        let params = list("params").into_iter().filter_map(|seen| {
            Some((seen["key"].as_str()?.to_owned(), seen["value"].as_str().unwrap_or_default().to_owned()))
        });
        let start = integer(&info["start_time"]).unwrap_or(0);
        let is_finished = info["status"] == "FINISHED";
        let arrived = arrived.collect();
        let params = params.collect();
        Ok(Self { server, id, experiment, start, is_finished, arrived, params })
    }

    /// Sends the recipe's keys that the server does not have. MLflow does not allow changing a key's value.
    pub(crate) fn send_params(&mut self, params: &BTreeMap<String, String>) -> Result<()> {
        let new: Vec<_> = params.iter().filter(|(key, _)| !self.params.contains_key(*key)).collect();
        for part in new.chunks(MAX_PARAMS) {
            // Some stores refuse an empty value.
            let value = |value: &str| if value.is_empty() { "\"\"".to_owned() } else { value.to_owned() };
            let listed: Vec<_> =
                part.iter().map(|(key, of)| json!({ "key": key, "value": value(of) })).collect();
            send_ok(
                &self.server,
                "runs/log-batch",
                Request::Post(&json!({ "run_id": self.id, "params": listed })),
            )?;
            self.params.extend(part.iter().map(|(key, of)| ((*key).clone(), (*of).clone())));
        }
        Ok(())
    }

    /// Sends the points that the server does not have, in order; returns their number.
    pub(crate) fn send_metrics(&mut self, points: &[MetricPoint]) -> Result<usize> {
        let is_new = |point: &&MetricPoint| {
            let arrived = self.arrived.get(&point.key);
            arrived.is_none_or(|&step| i64::try_from(point.step).is_ok_and(|new| new > step))
        };
        let new: Vec<&MetricPoint> = points.iter().filter(is_new).collect();
        for part in new.chunks(MAX_METRICS) {
            let listed: Vec<Value> = part.iter().map(|point| self.metric(point)).collect();
            send_ok(
                &self.server,
                "runs/log-batch",
                Request::Post(&json!({ "run_id": self.id, "metrics": listed })),
            )?;
            self.arrived.extend(part.iter().map(|point| (point.key.clone(), point.step.cast_signed())));
        }
        Ok(new.len())
    }

    fn metric(&self, point: &MetricPoint) -> Value {
        // MLflow reads the JSON of protocol buffers, in which NaN is a string.
        let value = if point.value.is_finite() { json!(point.value) } else { json!("NaN") };
        let time = self.start.saturating_add_unsigned(point.step);
        json!({ "key": point.key, "value": value, "timestamp": time, "step": point.step })
    }

    /// Marks the run as finished.
    pub(crate) fn finish(&mut self, now: i64) -> Result<()> {
        if !self.is_finished {
            let body = json!({ "run_id": self.id, "status": "FINISHED", "end_time": now });
            send_ok(&self.server, "runs/update", Request::Post(&body))?;
            self.is_finished = true;
        }
        Ok(())
    }
}

/// Returns the id of an experiment, which is created if necessary.
fn experiment_id(server: &Server, name: &str) -> Result<String> {
    let call = "experiments/get-by-name";
    let by_name = Request::Get("experiment_name", name);
    let found = send(server, call, by_name)?;
    if found.status == 200 {
        return id_of(&found.body["experiment"]["experiment_id"], call);
    }
    if found.body["error_code"] != "RESOURCE_DOES_NOT_EXIST" {
        return Err(refusal(server, call, &found).into());
    }
    let created = send(server, "experiments/create", Request::Post(&json!({ "name": name })))?;
    if created.status == 200 {
        return id_of(&created.body["experiment_id"], "experiments/create");
    }
    // Another push may have created it at the same time.
    let found = send_ok(server, call, by_name)?;
    id_of(&found["experiment"]["experiment_id"], call)
}

/// Returns the ids of the runs with an identity, in order.
fn search(server: &Server, experiment: &str, identity: &str) -> Result<Vec<String>> {
    let filter = format!("tags.{TAG} = '{identity}'");
    let body = json!({ "experiment_ids": [experiment], "filter": filter, "max_results": 100 });
    let found = send_ok(server, "runs/search", Request::Post(&body))?;
    let runs = found["runs"].as_array().map_or(&[][..], Vec::as_slice);
    let ids: Result<Vec<String>> =
        runs.iter().map(|run| id_of(&run["info"]["run_id"], "runs/search")).collect();
    let mut ids = ids?;
    ids.sort();
    Ok(ids)
}

fn send(server: &Server, call: &str, request: Request<'_>) -> Result<Answer, CliError> {
    server.send(&format!("/api/2.0/mlflow/{call}"), request)
}

/// Sends a request, and fails unless the response is a success.
fn send_ok(server: &Server, call: &str, request: Request<'_>) -> Result<Value> {
    let answer = send(server, call, request)?;
    if answer.status == 200 { Ok(answer.body) } else { Err(refusal(server, call, &answer).into()) }
}

fn refusal(server: &Server, call: &str, answer: &Answer) -> CliError {
    let message = server.credentials.blanked(answer.body["message"].as_str().unwrap_or("no message"));
    let message: String = message.chars().take(MAX_MESSAGE_CHARS).collect();
    let hint = match answer.status {
        401 | 403 => UNAUTHORISED_HINT,
        _ if call.starts_with(LOGGED_MODELS) => "a model needs a tracking server of MLflow 3",
        _ => "calmix needs a tracking server of MLflow 2 or later",
    };
    CliError::failed(format!("MLflow refused {call} with status {}: {}", answer.status, shown(message)))
        .hint(hint)
}

/// Reads an id. It becomes part of later requests, so characters that ids do not have are refused.
fn id_of(value: &Value, call: &str) -> Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_id = |id: &&str| (1..=256).contains(&id.len()) && id.bytes().all(is_plain);
    let id = value.as_str().filter(is_id);
    let missing = || CliError::failed(format!("MLflow's answer to {call} has no valid id"));
    Ok(id.ok_or_else(missing)?.to_owned())
}

/// Reads an integer; protocol buffers encode 64-bit integers as strings.
fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}
