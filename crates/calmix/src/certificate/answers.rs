//! The answers of auditors: a log that only grows, so that a changed answer stays visible.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use calmix_io::shown::shown;
use serde::{Deserialize, Serialize};

use crate::error::CliError;
use crate::labelling::review_row::ReviewFile;

/// An answer to a row of the order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoggedAnswer {
    /// The place of the row in the order of the draw, from zero.
    pub(crate) place: u64,
    pub(crate) id: String,
    /// The name of the review that it is from.
    pub(crate) review: String,
    /// The label; `None` if the auditor skipped the row.
    pub(crate) label: Option<String>,
    /// When `calmix certify` read the answer, in UTC.
    pub(crate) time: String,
}

/// The last answer of each review, by the place of the row in the order of the draw.
pub(super) type EffectiveAnswers<'a> = BTreeMap<u64, BTreeMap<&'a str, Option<&'a str>>>;

/// Returns the last answer of each review to each row, and how many earlier ones it replaced.
pub(super) fn effective(log: &[LoggedAnswer]) -> (EffectiveAnswers<'_>, u64) {
    let mut places = EffectiveAnswers::new();
    let mut corrections = 0;
    for answer in log {
        let of_place = places.entry(answer.place).or_default();
        let before = of_place.insert(&answer.review, answer.label.as_deref());
        corrections += u64::from(before.is_some());
    }
    (places, corrections)
}

/// Returns the answers of reviews that the log does not have yet, in the order of the draw. `place_of` finds the place of an id.
///
/// # Errors
/// If a review answers a row that the audit does not have, or has none of its rows.
pub(crate) fn new_answers(
    log: &[LoggedAnswer],
    reviews: &[ReviewFile],
    place_of: &HashMap<&str, u64>,
    time: &str,
) -> Result<Vec<LoggedAnswer>> {
    let (known, _) = effective(log);
    let mut found = Vec::new();
    for review in reviews {
        let name = review_name(review);
        for row in review.rows.iter().filter(|row| row.is_reviewed()) {
            let Some(&place) = place_of.get(row.file.as_str()) else {
                let message = format!(
                    "{}: {}: {} is not a row of this audit",
                    shown(review.name()),
                    row.place,
                    shown(&row.file)
                );
                let hint = "answer the review.csv that `calmix certify` wrote beside the certificate";
                return Err(CliError::invalid(message).hint(hint).into());
            };
            let before = known.get(&place).and_then(|answers| answers.get(name.as_str()));
            if before == Some(&row.label.as_deref()) {
                continue;
            }
            found.push(LoggedAnswer {
                place,
                id: row.file.clone(),
                review: name.clone(),
                label: row.label.clone(),
                time: time.to_owned(),
            });
        }
    }
    found.sort_by(|a, b| a.place.cmp(&b.place).then_with(|| a.review.cmp(&b.review)));
    Ok(found)
}

/// Returns the name of the file of a review, without its folder: a path could show more than the auditor wants.
fn review_name(review: &ReviewFile) -> String {
    let name = review.path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{name}{}", review.part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labelling::review_row::{ReviewRow, RowPlace};

    fn review(name: &str, answers: &[(&str, Option<&str>)]) -> ReviewFile {
        let row = |&(file, label): &(&str, Option<&str>)| ReviewRow {
            place: RowPlace::Line(2),
            file: file.to_owned(),
            label: label.map(str::to_owned),
            drawn: label.is_none().then_some(calmix_formats::labels::drawn::Drawn::Skipped),
        };
        ReviewFile {
            path: format!("somewhere/{name}.csv").into(),
            part: String::new(),
            rows: answers.iter().map(row).collect(),
        }
    }

    #[test]
    fn log_grows_and_keeps_changed_answers() {
        let places = HashMap::from([("a", 4), ("b", 2)]);
        let first = review("anna", &[("a", Some("cat")), ("b", None)]);
        let mut log = new_answers(&[], &[first], &places, "t1").unwrap();
        assert_eq!((log[0].place, log[0].id.as_str(), log[0].label.as_deref()), (2, "b", None));
        // The same review with one more row, and a changed one.
        let second = review("anna", &[("a", Some("dog")), ("b", None)]);
        let other = review("ben", &[("a", Some("cat"))]);
        log.extend(new_answers(&log, &[second, other], &places, "t2").unwrap());
        assert_eq!(log.len(), 4);
        let (effective, corrections) = effective(&log);
        assert_eq!(corrections, 1);
        assert_eq!(effective[&4], BTreeMap::from([("anna", Some("dog")), ("ben", Some("cat"))]));
        let foreign = review("anna", &[("z", Some("cat"))]);
        let error = new_answers(&log, &[foreign], &places, "t").unwrap_err().to_string();
        assert!(error.contains("line 2: z is not a row of this audit"), "{error}");
    }
}
