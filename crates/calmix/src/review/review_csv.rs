//! `review.csv`: the rows of a review, with a column for the answers.

use anyhow::Result;

use super::pool::Pool;
use super::rows::ReviewRow;

/// The columns, in order.
const HEADER: [&str; 7] = ["file", "label", "given", "predicted", "confidence", "why", "drawn"];

/// Formats the rows as CSV.
///
/// # Errors
/// Never in practice: the text is written to memory.
pub(crate) fn to_csv(pool: &Pool, rows: &[ReviewRow]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for row in rows {
        let sample = &pool.samples[row.sample];
        let given = sample.label.map_or("", |label| pool.class(label));
        let predicted = row.predicted.map_or("", |(label, _)| pool.class(label));
        let confidence = row.predicted.map(|(_, confidence)| format!("{confidence:.4}")).unwrap_or_default();
        let label = if row.is_answered { given } else { "" };
        let fields =
            [&sample.name, label, given, predicted, &confidence, row.reason.word(), row.drawn.word()];
        writer.write_record(fields)?;
    }
    Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}
