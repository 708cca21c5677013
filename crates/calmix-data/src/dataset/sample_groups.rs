//! The groups of samples, read from `groups.bin`.

use std::collections::BTreeSet;
use std::ops::Range;

use calmix_formats::read_at::ReadAt;

use super::Dataset;
use super::table_files::AGAIN;
use crate::error::DataError;
use crate::groups::{NO_GROUP, group_numbers};

/// The number of groups to read at once.
const CHUNK_SAMPLES: u64 = 16_384;

impl Dataset {
    /// Returns whether the samples have groups.
    pub fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// Returns the group of a sample; `None` if it forms its own group.
    ///
    /// # Errors
    /// If there is no such sample, or the table cannot be read or contradicts the header.
    pub fn group(&self, id: u64) -> Result<Option<u32>, DataError> {
        let Some(file) = &self.groups else { return Ok(None) };
        let mut bytes = [0; 4];
        let offset = id
            .checked_mul(4)
            .filter(|_| id < self.len())
            .ok_or_else(|| DataError::content(file.path(), format!("there is no sample {id}")))?;
        file.read(&mut bytes, offset)?;
        self.checked_group(file, id, u32::from_le_bytes(bytes))
    }

    /// Numbers the groups of these samples as [`group_numbers`] does; empty if no two samples share a group.
    pub fn group_numbers(&self, ids: &[u64]) -> Result<Vec<u32>, DataError> {
        if !self.has_groups() {
            return Ok(Vec::new());
        }
        let groups = ids.iter().map(|&id| self.group(id)).collect::<Result<Vec<_>, _>>()?;
        Ok(group_numbers(&groups))
    }

    /// Lists the samples of these ranges that belong to one of the groups, in ascending order if the ranges are.
    pub(crate) fn samples_in(
        &self,
        ranges: &[Range<u64>],
        groups: &BTreeSet<u32>,
    ) -> Result<Vec<u64>, DataError> {
        let mut found = Vec::new();
        for range in ranges {
            self.visit_groups(range.clone(), |id, group| {
                if group.is_some_and(|group| groups.contains(&group)) {
                    found.push(id);
                }
            })?;
        }
        Ok(found)
    }

    /// Calls `visit` with every existing sample of a range and its group.
    pub(crate) fn visit_groups(
        &self,
        ids: Range<u64>,
        mut visit: impl FnMut(u64, Option<u32>),
    ) -> Result<(), DataError> {
        let Some(file) = &self.groups else { return Ok(()) };
        let end = ids.end.min(self.len());
        let mut first = ids.start;
        let mut bytes = Vec::new();
        while first < end {
            let count = CHUNK_SAMPLES.min(end - first);
            bytes.resize(4 * count as usize, 0);
            file.read(&mut bytes, 4 * first)?;
            for (id, number) in (first..).zip(bytes.as_chunks().0) {
                visit(id, self.checked_group(file, id, u32::from_le_bytes(*number))?);
            }
            first += count;
        }
        Ok(())
    }

    fn checked_group(&self, file: &ReadAt, id: u64, number: u32) -> Result<Option<u32>, DataError> {
        let groups = self.header.groups.unwrap_or_default();
        match number {
            NO_GROUP => Ok(None),
            number if number < groups => Ok(Some(number)),
            number => {
                let problem = format!("its group is {number}, but there are {groups} groups");
                let error = DataError::format(file.path(), problem);
                Err(error.at(format!("sample {id}")).hint(AGAIN))
            }
        }
    }
}
