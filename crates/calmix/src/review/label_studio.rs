//! The rows of a review as tasks of Label Studio, and the interface in which they are labelled.

use std::fmt::Write as _;

use anyhow::Result;
use calmix_io::shown::shown;
use calmix_report::review_page::ReviewRow;
use serde::Serialize;

use crate::error::CliError;
use crate::labelling::label_studio::CHOICES;

/// The name of the object to label in the interface.
const SAMPLE: &str = "sample";
/// Classes that have a key of their own.
const MAX_KEYS: usize = 9;

/// The rows of a review, and what their tasks need beyond them.
pub(crate) struct LabelStudioTasks<'a> {
    pub(crate) rows: &'a [ReviewRow<'a>],
    /// The name of the folder of images in the folder that Label Studio serves; `None` for vectors.
    pub(crate) folder: Option<&'a str>,
    /// The model that the predictions are from.
    pub(crate) model: &'a str,
}

#[derive(Serialize)]
struct Task<'a> {
    data: TaskData<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    predictions: Vec<Prediction<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation<'a>>,
}

#[derive(Serialize)]
struct TaskData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    file: &'a str,
    why: &'a str,
    drawn: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<&'a str>,
}

#[derive(Serialize)]
struct Prediction<'a> {
    model_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    result: [Choice<'a>; 1],
}

#[derive(Serialize)]
struct Annotation<'a> {
    result: [Choice<'a>; 1],
}

#[derive(Serialize)]
struct Choice<'a> {
    from_name: &'static str,
    to_name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    value: Choices<'a>,
}

#[derive(Serialize)]
struct Choices<'a> {
    choices: [&'a str; 1],
}

impl<'a> LabelStudioTasks<'a> {
    /// Returns the tasks in the order of the rows. A random row has no prediction, and an answered row has its annotation.
    pub(crate) fn json(&self) -> Result<Vec<u8>> {
        let tasks: Vec<Task<'a>> = self.rows.iter().map(|row| self.task(row)).collect();
        let mut text = serde_json::to_vec_pretty(&tasks)?;
        text.push(b'\n');
        Ok(text)
    }

    fn task(&self, row: &ReviewRow<'a>) -> Task<'a> {
        let prediction = |class: &'a str| Prediction {
            model_version: self.model,
            score: row.confidence,
            result: [choice(class)],
        };
        let image = self.folder.map(|folder| {
            let path = if folder.is_empty() { row.file.to_owned() } else { format!("{folder}/{}", row.file) };
            format!("/data/local-files/?d={}", url_quoted(&path))
        });
        let data = TaskData {
            text: image.is_none().then(|| text_of(row)),
            image,
            file: row.file,
            why: row.why,
            drawn: row.drawn,
            given: row.given,
        };
        Task {
            data,
            predictions: row.predicted.map(prediction).into_iter().collect(),
            annotations: row.label.map(|class| Annotation { result: [choice(class)] }).into_iter().collect(),
        }
    }
}

fn choice(class: &str) -> Choice<'_> {
    Choice { from_name: CHOICES, to_name: SAMPLE, kind: "choices", value: Choices { choices: [class] } }
}

/// Returns the id of a vector and its columns, one per line.
fn text_of(row: &ReviewRow<'_>) -> String {
    let mut text = row.file.to_owned();
    for (name, field) in row.fields {
        text.extend(["\n", name, ": ", field]);
    }
    text
}

/// Returns the labelling interface: one choice among the classes.
///
/// # Errors
/// If there are no classes, or one has a character that XML cannot hold.
pub(crate) fn labelling_interface(classes: &[String], has_images: bool) -> Result<String> {
    if classes.is_empty() {
        let message = "there are no classes yet, and Label Studio must know them beforehand";
        return Err(CliError::invalid(message).hint("name them: --classes cat,dog").into());
    }
    let mut text = String::from("<View>\n");
    text += if has_images {
        "  <Image name=\"sample\" value=\"$image\" zoom=\"true\"/>\n"
    } else {
        "  <Text name=\"sample\" value=\"$text\"/>\n"
    };
    writeln!(
        text,
        "  <Choices name=\"{CHOICES}\" toName=\"{SAMPLE}\" choice=\"single\" showInLine=\"true\">"
    )?;
    for (index, class) in classes.iter().enumerate() {
        let Some(name) = xml_escaped(class) else {
            let message = format!("the class {} has a character that Label Studio cannot read", shown(class));
            return Err(CliError::invalid(message).hint("rename the class").into());
        };
        let key = if index < MAX_KEYS { format!(" hotkey=\"{}\"", index + 1) } else { String::new() };
        writeln!(text, "    <Choice value=\"{name}\"{key}/>")?;
    }
    Ok(text + "  </Choices>\n</View>\n")
}

/// Escapes the value of an attribute; `None` if it has a character that XML 1.0 does not allow.
fn xml_escaped(text: &str) -> Option<String> {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            // A parser would replace them by spaces.
            '\t' | '\n' | '\r' => write!(escaped, "&#{};", u32::from(character)).ok()?,
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => return None,
            _ => escaped.push(character),
        }
    }
    Some(escaped)
}

/// Percent-encodes a path for the query of a URL.
fn url_quoted(path: &str) -> String {
    let mut quoted = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            quoted.push(char::from(byte));
        } else {
            let _ = write!(quoted, "%{byte:02X}");
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ROW: ReviewRow<'static> = ReviewRow {
        file: "cat/a b+ü&#?.png",
        label: None,
        given: Some("cat"),
        predicted: Some("dog"),
        confidence: Some(0.75),
        why: "check",
        drawn: "given",
        vector: None,
        image: None,
        fields: &[],
    };

    fn tasks(rows: &[ReviewRow<'_>], folder: Option<&str>) -> Value {
        let tasks = LabelStudioTasks { rows, folder, model: "calmix run" };
        serde_json::from_slice(&tasks.json().unwrap()).unwrap()
    }

    #[test]
    fn task_has_its_image_and_prediction() {
        let dog = json!({
            "from_name": "label", "to_name": "sample", "type": "choices", "value": { "choices": ["dog"] },
        });
        assert_eq!(
            tasks(&[ROW], Some("my photos")),
            json!([{
                "data": {
                    "image": "/data/local-files/?d=my%20photos/cat/a%20b%2B%C3%BC%26%23%3F.png",
                    "file": "cat/a b+ü&#?.png", "why": "check", "drawn": "given", "given": "cat",
                },
                "predictions": [{ "model_version": "calmix run", "score": 0.75, "result": [dog] }],
            }])
        );
    }

    #[test]
    fn random_task_has_no_prediction_and_answered_one_its_annotation() {
        let fields = [("subject".to_owned(), "Complaint".to_owned()), ("text".to_owned(), "a\nb".to_owned())];
        let random = ReviewRow {
            file: "x1",
            given: None,
            predicted: None,
            confidence: None,
            why: "random",
            drawn: "random",
            fields: &fields,
            ..ROW
        };
        let answered = ReviewRow { label: Some("cat"), ..random };
        let tasks = tasks(&[random, answered], None);
        let data = json!({
            "text": "x1\nsubject: Complaint\ntext: a\nb", "file": "x1", "why": "random", "drawn": "random",
        });
        assert_eq!(tasks[0], json!({ "data": data }));
        assert_eq!(tasks[1]["annotations"][0]["result"][0]["value"]["choices"], json!(["cat"]));
    }

    #[test]
    fn names_of_classes_are_escaped() {
        let classes: Vec<String> = ["\"a\" & <b>", "two\nlines"]
            .into_iter()
            .map(str::to_owned)
            .chain((2..12).map(|n| n.to_string()))
            .collect();
        let text = labelling_interface(&classes, true).unwrap();
        assert!(text.contains("<Image name=\"sample\" value=\"$image\""), "{text}");
        assert!(text.contains("<Choice value=\"&quot;a&quot; &amp; &lt;b&gt;\" hotkey=\"1\"/>"), "{text}");
        assert!(text.contains("<Choice value=\"two&#10;lines\" hotkey=\"2\"/>"), "{text}");
        assert!(text.contains("<Choice value=\"9\"/>"), "{text}");
        let refused = labelling_interface(&["a\u{1}".to_owned()], false).unwrap_err();
        assert!(refused.to_string().contains("has a character that Label Studio cannot read"), "{refused}");
        assert!(labelling_interface(&[], false).unwrap_err().to_string().contains("there are no classes"));
    }
}
