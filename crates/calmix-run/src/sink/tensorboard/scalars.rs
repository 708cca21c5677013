//! The numbers of an event, with their names.

use serde::Serialize;
use serde_json::Value;

use crate::events::{Event, Pace};

/// Every number of an event but its step, which all of them share.
pub(super) fn of_event(event: &Event) -> Result<Vec<(String, f32)>, serde_json::Error> {
    let prefix = match event {
        Event::Step(_) => "train".to_owned(),
        Event::Evaluation(on) => format!("{}/{}", on.split.name(), on.model.name()),
        Event::Note(_) | Event::Finished(_) => String::new(),
    };
    numbers(prefix, event)
}

/// Every number of a pace but its step.
pub(super) fn of_pace(pace: &Pace) -> Result<Vec<(String, f32)>, serde_json::Error> {
    numbers("pace".to_owned(), pace)
}

fn numbers(prefix: String, what: &impl Serialize) -> Result<Vec<(String, f32)>, serde_json::Error> {
    let mut value = serde_json::to_value(what)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("step");
    }
    let mut found = Vec::new();
    collect(prefix, &value, &mut found);
    Ok(found)
}

fn collect(name: String, value: &Value, into: &mut Vec<(String, f32)>) {
    let below = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}/{part}") };
    match value {
        // TensorBoard's scalars have single precision.
        Value::Number(number) => into.extend(number.as_f64().map(|number| (name, number as f32))),
        Value::Object(fields) => fields.iter().for_each(|(part, value)| collect(below(part), value, into)),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
