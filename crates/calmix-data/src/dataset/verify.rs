//! Verifies that a dataset is unchanged since it was prepared.

use calmix_formats::error::FormatProblem;

use super::{AGAIN, Dataset};
use crate::error::DataError;
use crate::manifest::{Encoding, Fingerprint, vector_content};

impl Dataset {
    /// Reads every sample again and compares the fingerprint.
    ///
    /// # Errors
    /// For the first sample that cannot be read or has changed.
    pub fn verify(&self) -> Result<(), DataError> {
        let mut fingerprint = Fingerprint::default();
        let mut bytes = Vec::new();
        let mut numbers = Vec::new();
        for record in self.records(0..self.len()) {
            let (id, record) = record?;
            self.bytes_of(id, record, &mut bytes)?;
            let content = match self.header.encoding {
                Encoding::Vectors { number, .. } => {
                    numbers.clear();
                    number.append(&bytes, &mut numbers);
                    vector_content(&numbers)
                }
                _ => blake3::hash(&bytes),
            };
            fingerprint.sample(&content, record.label);
            let part = self.part(record.part)?;
            if part.shrunk && !self.parts.is_original(&part, &bytes)? {
                let problem =
                    FormatProblem::Changed("the file has changed since its image was shrunk".into());
                return Err(DataError::new(part.path, problem).hint(AGAIN));
            }
        }
        let now = fingerprint.finish(&self.header);
        if now == self.header.fingerprint {
            return Ok(());
        }
        let problem =
            format!("the fingerprint is {now}, but it was {} when prepared", self.header.fingerprint);
        Err(DataError::new(self.samples.path(), FormatProblem::Changed(problem)).hint(AGAIN))
    }
}
