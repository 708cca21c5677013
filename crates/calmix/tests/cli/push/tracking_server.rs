//! A tracking server in the process of the test: as much of MLflow's interface as a push uses, and whatever answers a test
//! wants in its place.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use calmix_testkit::workspace::mlflow::Metrics;
use serde_json::{Value, json};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Received {
    /// Such as `GET /api/2.0/mlflow/runs/get?run_id=1 HTTP/1.1`.
    pub(super) line: String,
    /// One a line, with small letters in their names.
    pub(super) headers: String,
    pub(super) body: Value,
    /// The content of a file.
    content: Vec<u8>,
}

/// Answers a request in its own way, or returns false to leave it to the server.
type Handler = dyn Fn(&Received, &mut dyn Write) -> bool + Send + Sync;

/// A server; clones are the same one.
#[derive(Clone)]
pub(super) struct TrackingServer {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
    handler: Arc<Handler>,
}

#[derive(Default)]
struct State {
    received: Vec<Received>,
    has_experiment: bool,
    has_run: bool,
    status: String,
    points: Metrics,
    params: Vec<Value>,
    /// A logged model as the server describes it.
    model: Option<Value>,
    /// The files of the model, by their paths below its folder.
    files: BTreeMap<String, Vec<u8>>,
}

impl TrackingServer {
    /// Starts on a free port; `handler` answers first.
    pub(super) fn start(handler: impl Fn(&Received, &mut dyn Write) -> bool + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = Self::without_listener(url, handler);
        let accepting = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                let server = accepting.clone();
                thread::spawn(move || server.serve(BufReader::new(&stream), &stream));
            }
        });
        server
    }

    pub(super) fn without_listener(
        url: String,
        handler: impl Fn(&Received, &mut dyn Write) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { url, state: Arc::default(), handler: Arc::new(handler) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.state().received.clone()
    }

    /// Every point that arrived, in order, also one that arrived twice.
    pub(super) fn points(&self) -> Metrics {
        self.state().points.clone()
    }

    /// The logged model; null without one.
    pub(super) fn model(&self) -> Value {
        self.state().model.clone().unwrap_or_default()
    }

    pub(super) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.state().files.clone()
    }

    pub(super) fn status(&self) -> String {
        self.state().status.clone()
    }

    /// Answers the requests of a connection until it is closed.
    pub(super) fn serve(&self, mut reader: impl BufRead, mut writer: impl Write) {
        while let Some(received) = read_request(&mut reader) {
            self.state().received.push(received.clone());
            if !(self.handler)(&received, &mut writer) {
                let (status, body) = self.state().answer(&received);
                respond(&mut writer, status, "", &body.to_string());
            }
            if received.headers.contains("connection: close") {
                return;
            }
        }
    }
}

/// Writes an answer; `headers` end with a new line each. A client that is gone is none of our business.
pub(super) fn respond(writer: &mut dyn Write, status: u16, headers: &str, body: &str) {
    let text = format!("HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
    let _ = writer.write_all(text.as_bytes()).and_then(|()| writer.flush());
}

fn read_request(reader: &mut impl BufRead) -> Option<Received> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim_end().is_empty() {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let line = lines.remove(0);
    let field = |line: &String| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        format!("{}:{value}", name.to_ascii_lowercase())
    };
    let headers: Vec<String> = lines.iter().map(field).collect();
    let length = headers.iter().find_map(|header| header.strip_prefix("content-length:"));
    let mut body = vec![0; length.map_or(0, |length| length.trim().parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let content = body;
    let body = serde_json::from_slice(&content).unwrap_or(Value::Null);
    Some(Received { line, headers: headers.join("\n"), body, content })
}

impl State {
    fn answer(&mut self, received: &Received) -> (u16, Value) {
        let path = received.line.split(' ').nth(1).unwrap();
        let call = path.strip_prefix("/api/2.0/mlflow/").unwrap_or("").split('?').next().unwrap();
        if let Some(name) = path.strip_prefix("/api/2.0/mlflow-artifacts/artifacts/1/models/m-1/artifacts/") {
            self.files.insert(name.to_owned(), received.content.clone());
            return (200, json!({}));
        }
        let list = |name: &str| received.body[name].as_array().cloned().unwrap_or_default();
        match call {
            "experiments/get-by-name" if !self.has_experiment => {
                return (404, json!({ "error_code": "RESOURCE_DOES_NOT_EXIST" }));
            }
            "experiments/get-by-name" => return (200, json!({ "experiment": { "experiment_id": "1" } })),
            "experiments/create" => {
                self.has_experiment = true;
                return (200, json!({ "experiment_id": "1" }));
            }
            "runs/search" if !self.has_run => {}
            "runs/search" => return (200, json!({ "runs": [{ "info": { "run_id": "5eed" } }] })),
            "runs/create" => {
                self.has_run = true;
                return (200, json!({ "run": { "info": { "run_id": "5eed" } } }));
            }
            "runs/get" => {
                let last = |(key, points): (&String, &Vec<(u64, Option<f32>)>)| json!({ "key": key, "step": points.last().unwrap().0 });
                let metrics: Vec<Value> = self.points.iter().map(last).collect();
                let info = json!({ "start_time": 1, "status": self.status });
                let data = json!({ "metrics": metrics, "params": self.params });
                return (200, json!({ "run": { "info": info, "data": data } }));
            }
            "runs/log-batch" => {
                self.params.extend(list("params"));
                for point in list("metrics") {
                    let value = point["value"].as_f64().map(|value| value as f32);
                    let points = self.points.entry(point["key"].as_str().unwrap().to_owned()).or_default();
                    points.push((point["step"].as_u64().unwrap(), value));
                }
            }
            "logged-models/search" => {
                return (200, json!({ "models": self.model.iter().collect::<Vec<_>>() }));
            }
            "logged-models" => {
                let info = json!({
                    "model_id": "m-1",
                    "name": received.body["name"],
                    "source_run_id": received.body["source_run_id"],
                    "status": "LOGGED_MODEL_PENDING",
                    "artifact_uri": "mlflow-artifacts:/1/models/m-1/artifacts",
                });
                let model = json!({ "info": info, "data": {} });
                self.model = Some(model.clone());
                return (200, json!({ "model": model }));
            }
            "logged-models/m-1" => {
                self.model.as_mut().unwrap()["info"]["status"] = received.body["status"].clone();
            }
            "runs/outputs" => {}
            "runs/update" => received.body["status"].as_str().unwrap().clone_into(&mut self.status),
            _ => return (404, json!({ "message": format!("no {path}") })),
        }
        (200, json!({}))
    }
}
