//! The numbers of an event, with their names.

use serde::Serialize;
use serde_json::Value;

use crate::events::{Event, Pace};

/// Every number of an event except its step, named by its path in the event's JSON. What is
/// not finite is NaN. Lists are left out.
///
/// # Errors
/// If the event cannot be written as JSON, which no field causes.
pub fn numbers(event: &Event) -> Result<Vec<(String, f64)>, serde_json::Error> {
    let prefix = match event {
        Event::Step(_) => "train".to_owned(),
        Event::Evaluation(on) => format!("{}/{}", on.split.name(), on.model.name()),
        Event::Note(_) | Event::Finished(_) => String::new(),
    };
    numbers_of(prefix, event)
}

/// Every number of an event that TensorBoard can show, in its precision.
pub(super) fn of_event(event: &Event) -> Result<Vec<(String, f32)>, serde_json::Error> {
    Ok(finite(numbers(event)?))
}

/// Every number of a pace but its step.
pub(super) fn of_pace(pace: &Pace) -> Result<Vec<(String, f32)>, serde_json::Error> {
    Ok(finite(numbers_of("pace".to_owned(), pace)?))
}

fn finite(numbers: Vec<(String, f64)>) -> Vec<(String, f32)> {
    let finite = numbers.into_iter().filter(|(_, number)| number.is_finite());
    finite.map(|(name, number)| (name, number as f32)).collect()
}

fn numbers_of(prefix: String, what: &impl Serialize) -> Result<Vec<(String, f64)>, serde_json::Error> {
    let mut value = serde_json::to_value(what)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("step");
    }
    let mut found = Vec::new();
    collect(prefix, &value, &mut found);
    Ok(found)
}

fn collect(name: String, value: &Value, into: &mut Vec<(String, f64)>) {
    let below = |part: &str| if name.is_empty() { part.to_owned() } else { format!("{name}/{part}") };
    match value {
        Value::Number(number) => into.extend(number.as_f64().map(|number| (name, number))),
        // What was not measured is absent: this was, and is not finite.
        Value::Null => into.push((name, f64::NAN)),
        Value::Object(fields) => fields.iter().for_each(|(part, value)| collect(below(part), value, into)),
        Value::Array(_) | Value::Bool(_) | Value::String(_) => {}
    }
}
