//! The table of samples, read in order.

use std::ops::Range;

use super::Dataset;
use crate::error::DataError;
use crate::manifest::SampleRecord;

const AT_ONCE: u64 = 1024;

/// Ids of a range with their records, read many at a time. Ends with the first error.
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
        let count = AT_ONCE.min(self.ids.end - first);
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
