//! Reads the records of all samples in order, and verifies that the samples are unchanged.

use std::ops::Range;

use super::Dataset;
use super::table_files::AGAIN;
use crate::error::DataError;
use crate::manifest::{Encoding, Fingerprint, SampleRecord, vector_content};

const CHUNK_RECORDS: u64 = 1024;

/// An iterator over the ids of a range with their records, read in chunks. Ends with the first error.
#[derive(Debug)]
pub struct Records<'a> {
    dataset: &'a Dataset,
    ids: Range<u64>,
    ready: std::vec::IntoIter<(u64, SampleRecord)>,
}

impl<'a> Records<'a> {
    pub(super) fn new(dataset: &'a Dataset, ids: Range<u64>) -> Self {
        Self { dataset, ids, ready: Vec::new().into_iter() }
    }

    fn refill(&mut self) -> Result<(), DataError> {
        let first = self.ids.start;
        let count = CHUNK_RECORDS.min(self.ids.end - first);
        let mut bytes = vec![0; count as usize * SampleRecord::BYTES];
        self.dataset.read_records(first, &mut bytes)?;
        let (records, _) = bytes.as_chunks();
        let checked = |(id, record): (u64, &[u8; SampleRecord::BYTES])| {
            self.dataset.checked(id, SampleRecord::from_bytes(*record)).map(|record| (id, record))
        };
        self.ready = (first..).zip(records).map(checked).collect::<Result<Vec<_>, _>>()?.into_iter();
        self.ids.start += count;
        Ok(())
    }
}

impl Iterator for Records<'_> {
    type Item = Result<(u64, SampleRecord), DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.len() == 0
            && !self.ids.is_empty()
            && let Err(error) = self.refill()
        {
            self.ids.start = self.ids.end;
            return Some(Err(error));
        }
        self.ready.next().map(Ok)
    }
}

impl Dataset {
    /// Iterates in order over the ids of a range that exist, with their records.
    pub fn records(&self, ids: Range<u64>) -> Records<'_> {
        Records::new(self, ids.start..ids.end.min(self.header.samples))
    }

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
                Encoding::Vectors { element_type, .. } => {
                    numbers.clear();
                    element_type.append(&bytes, &mut numbers);
                    vector_content(&numbers)
                }
                _ => blake3::hash(&bytes),
            };
            fingerprint.sample(&content, record.label);
            let part = self.part(record.part)?;
            if part.shrunk && !self.parts.is_original(&part, &bytes)? {
                let problem = "the file has changed since its image was shrunk";
                return Err(DataError::changed(part.path, problem).hint(AGAIN));
            }
        }
        let now = fingerprint.finish(&self.header);
        if now == self.header.fingerprint {
            return Ok(());
        }
        let problem =
            format!("the fingerprint is {now}, but it was {} when prepared", self.header.fingerprint);
        Err(DataError::changed(self.samples.path(), problem).hint(AGAIN))
    }
}
