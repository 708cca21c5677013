//! `calmix push`, and the points that a run must send.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Workspace;

/// Key → step and value; a value that is not finite is none.
pub type Metrics = BTreeMap<String, Vec<(u64, Option<f32>)>>;

/// Every number in the lines of `events.jsonl`, found without any knowledge of the fields.
pub fn in_lines(run: &Path) -> Metrics {
    fn collect(path: &str, value: &Value, step: u64, into: &mut Metrics) {
        if value.is_number() || value.is_null() {
            into.entry(path.to_owned()).or_default().push((step, value.as_f64().map(|number| number as f32)));
        }
        for (part, value) in value.as_object().into_iter().flatten() {
            let below = if path.is_empty() { part.clone() } else { format!("{path}/{part}") };
            collect(&below, value, step, into);
        }
    }
    let mut metrics = Metrics::new();
    for line in fs::read_to_string(run.join("events.jsonl")).unwrap().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let step = line.as_object_mut().unwrap().remove("step").unwrap().as_u64().unwrap();
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let prefix = match text("event").as_str() {
            "step" => "train".to_owned(),
            "evaluation" => format!("{}/{}", text("split"), text("model")),
            "finished" => String::new(),
            _ => continue,
        };
        collect(&prefix, &line, step, &mut metrics);
    }
    metrics
}

/// A push with none of the variables that a user may have set.
pub fn push(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = workspace.command(&["push"]);
    command.args(arguments);
    for name in ["URI", "TOKEN", "USERNAME", "PASSWORD", "SERVER_CERT_PATH"] {
        command.env_remove(format!("MLFLOW_TRACKING_{name}"));
    }
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        command.env_remove(name).env_remove(name.to_uppercase());
    }
    command.env_remove("MLFLOW_HTTP_REQUEST_TIMEOUT");
    command
}
