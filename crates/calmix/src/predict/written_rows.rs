//! The rows that an interrupted output already has.

use crate::error::CliError;
use crate::output::format::grouped;

use super::row::RowFormat;

/// The rows that an interrupted output already has.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct WrittenRows {
    /// The number of complete rows.
    pub rows: u64,
    /// The beginning of the last row, which names its input.
    pub last: String,
}

impl WrittenRows {
    /// Checks that the last of the rows is about this input.
    ///
    /// # Errors
    /// If the inputs have changed since the rows were written.
    pub fn check_last(&self, format: &RowFormat<'_>, name: Option<&str>) -> Result<(), CliError> {
        if name.is_some_and(|name| self.last.starts_with(&format.beginning(name))) {
            return Ok(());
        }
        let input = format.input.word();
        let message = format!("{input} {} is not the one that was predicted before", grouped(self.rows));
        let hint = format!("the list of {input}s has changed: predict it into another file");
        Err(CliError::invalid(message).hint(hint))
    }
}
