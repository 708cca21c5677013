//! The JSON export of Label Studio, read as one review per annotator.

use std::collections::BTreeMap;
use std::path::Path;

use calmix_formats::error::{FormatError, FormatProblem};
use calmix_formats::labels::csv_table::DRAWN_HINT;
use calmix_formats::labels::drawn::Drawn;
use calmix_formats::labels::text::parse_class;
use calmix_io::shown::shown;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::review_row::{ReviewFile, ReviewRow, RowPlace, check_spaces};

/// The name of the choice among the classes in the labelling interface of `calmix review`.
pub(crate) const CHOICES: &str = "label";
const KIND: &str = "choices";

/// The maximum size of an export, in bytes.
pub(crate) const MAX_EXPORT_BYTES: u64 = 64 << 20;

const EXPORT_HINT: &str = "export the project from Label Studio in the format JSON";
const TASKS_HINT: &str = "import the tasks that `calmix review --to label-studio` writes";

#[derive(Deserialize)]
struct TaskId {
    id: u64,
}

#[derive(Deserialize)]
struct Task {
    id: u64,
    data: Option<TaskData>,
    #[serde(default)]
    annotations: Vec<Annotation>,
}

#[derive(Deserialize)]
struct TaskData {
    file: Option<String>,
    drawn: Option<String>,
}

#[derive(Deserialize)]
struct Annotation {
    id: u64,
    completed_by: Option<Annotator>,
    #[serde(default)]
    result: Vec<Part>,
    #[serde(default)]
    was_cancelled: bool,
    /// An ISO date, which sorts as text.
    updated_at: Option<String>,
}

/// The user who annotated, by number or with all that Label Studio stores.
#[derive(Deserialize)]
#[serde(untagged)]
enum Annotator {
    Id(u64),
    User { id: u64 },
}

/// A part of an annotation. Other parts than choices have other values.
#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: Option<String>,
    from_name: Option<String>,
    value: Option<PartValue>,
}

#[derive(Deserialize)]
struct PartValue {
    #[serde(default)]
    choices: Vec<String>,
}

/// The rows of one annotator.
#[derive(Default)]
struct AnnotatorRows {
    rows: Vec<ReviewRow>,
    /// The task of each file.
    seen: BTreeMap<String, u64>,
}

/// Parses an export. Of several annotations by one user, the last one counts that was not cancelled; a task with cancelled ones only
/// was skipped.
///
/// # Errors
/// If it is not an export of tasks that `calmix review` wrote; the error names the task.
pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Vec<ReviewFile>, FormatError> {
    let not_json = |error: serde_json::Error| FormatError::format(path, error.to_string()).hint(EXPORT_HINT);
    let tasks: Vec<&RawValue> = serde_json::from_slice(text).map_err(not_json)?;
    let mut annotators: BTreeMap<Option<u64>, AnnotatorRows> = BTreeMap::new();
    let mut unanswered = Vec::new();
    for (index, raw) in tasks.iter().enumerate() {
        let id = serde_json::from_str::<TaskId>(raw.get()).map(|task| task.id);
        let place = id.map_or_else(|_| format!("entry {} of the list", index + 1), |id| format!("task {id}"));
        let at = |problem| FormatError::new(path, problem).at(place.as_str());
        let task: Task = serde_json::from_str(raw.get())
            .map_err(|error| at(FormatProblem::Format(reason(&error))).hint(EXPORT_HINT))?;
        let (file, drawn) = sample(&task, &at)?;
        if task.annotations.is_empty() {
            unanswered.push(ReviewRow { place: RowPlace::Task(task.id), file, label: None, drawn });
            continue;
        }
        for (annotator, annotations) in by_annotator(&task) {
            let (label, drawn) = answer(&annotations, drawn, &at)?;
            let rows = annotators.entry(annotator).or_default();
            if let Some(first) = rows.seen.insert(file.clone(), task.id) {
                let problem = format!("{} is already in task {first}", shown(&file));
                return Err(
                    at(FormatProblem::Content(problem)).hint("delete one of the tasks in Label Studio")
                );
            }
            rows.rows.push(ReviewRow { place: RowPlace::Task(task.id), file: file.clone(), label, drawn });
        }
    }
    let is_one = annotators.len() <= 1;
    let review = |(annotator, rows): (Option<u64>, AnnotatorRows)| {
        let name = match annotator {
            _ if is_one => String::new(),
            Some(user) => format!(", annotator {user}"),
            None => ", unknown annotator".to_owned(),
        };
        ReviewFile { path: path.to_owned(), part: name, rows: rows.rows }
    };
    let mut reviews: Vec<ReviewFile> = annotators.into_iter().map(review).collect();
    match reviews.first_mut() {
        Some(first) => first.rows.extend(unanswered),
        None => reviews.push(ReviewFile { path: path.to_owned(), part: String::new(), rows: unanswered }),
    }
    Ok(reviews)
}

/// Returns what a parser found wrong, without the column: the text of a task is not a line of the file.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(reason, _)| reason.to_owned())
}

/// Returns the name of the sample of a task, and how it was drawn.
fn sample(
    task: &Task,
    at: &impl Fn(FormatProblem) -> FormatError,
) -> Result<(String, Option<Drawn>), FormatError> {
    let wrong = |problem: &str| at(FormatProblem::Content(problem.to_owned()));
    let Some(data) = &task.data else {
        let problem = "it has no `data`; the format JSON-MIN leaves it out, and skipped tasks too";
        return Err(wrong(problem).hint(EXPORT_HINT));
    };
    let Some(file) = data.file.as_deref().filter(|file| !file.is_empty()) else {
        return Err(wrong("its `data` names no `file`").hint(TASKS_HINT));
    };
    let drawn = match data.drawn.as_deref() {
        None | Some("") => None,
        Some(word) => Some(Drawn::parse(word).map_err(|problem| at(problem).hint(DRAWN_HINT))?),
    };
    Ok((file.strip_prefix("./").unwrap_or(file).to_owned(), drawn))
}

/// Groups the annotations of a task by the user who made them.
fn by_annotator(task: &Task) -> BTreeMap<Option<u64>, Vec<&Annotation>> {
    let mut groups: BTreeMap<Option<u64>, Vec<&Annotation>> = BTreeMap::new();
    for annotation in &task.annotations {
        let user = annotation.completed_by.as_ref().map(|by| match by {
            Annotator::Id(id) | Annotator::User { id } => *id,
        });
        groups.entry(user).or_default().push(annotation);
    }
    groups
}

/// Returns the label that a user gave, and how it then counts as drawn.
fn answer(
    annotations: &[&Annotation],
    drawn: Option<Drawn>,
    at: &impl Fn(FormatProblem) -> FormatError,
) -> Result<(Option<String>, Option<Drawn>), FormatError> {
    let kept = annotations.iter().filter(|annotation| !annotation.was_cancelled);
    let Some(last) = kept.max_by_key(|annotation| (&annotation.updated_at, annotation.id)) else {
        return Ok((None, Some(Drawn::Skipped)));
    };
    let is_choice = |part: &&Part| part.kind.as_deref() == Some(KIND);
    let mut parts: Vec<&Part> = last.result.iter().filter(is_choice).collect();
    if parts.iter().any(|part| part.from_name.as_deref() == Some(CHOICES)) {
        parts.retain(|part| part.from_name.as_deref() == Some(CHOICES));
    }
    let choices = parts.iter().filter_map(|part| part.value.as_ref()).flat_map(|value| &value.choices);
    let choices: Vec<&str> = choices.map(String::as_str).collect();
    let label = match choices.as_slice() {
        // Submitted without a choice.
        [] => return Ok((None, drawn)),
        [label] => *label,
        [..] => {
            let problem = format!("the annotation has {} choices", choices.len());
            let hint =
                format!("keep one; the interface has one <Choices name=\"{CHOICES}\" choice=\"single\">");
            return Err(at(FormatProblem::Content(problem)).hint(hint));
        }
    };
    check_spaces(label, at)?;
    Ok((parse_class(label).map_err(at)?, drawn))
}
