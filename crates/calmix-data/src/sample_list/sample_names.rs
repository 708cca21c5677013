//! The names of a dataset's samples: files, or tars with members.

use std::collections::BTreeMap;
use std::path::Path;

use calmix_formats::error::FormatProblem;
use calmix_formats::tar::TarMembers;
use calmix_io::shown::escaped;

use super::path_candidates::plain;
use crate::dataset::Dataset;
use crate::error::DataError;

/// The names of all samples, which are read on demand.
#[derive(Debug)]
pub(super) struct SampleNames<'a> {
    dataset: &'a Dataset,
    /// The number of each part that is a tar, by name; empty for a dataset of single files.
    tars: BTreeMap<String, u32>,
    /// Whether the list names a member of each part.
    is_wanted: Vec<bool>,
}

/// The name of a part's only sample, or the offsets of a tar's members.
enum PartNames {
    File(String),
    Tar(Vec<(u64, String)>),
    Unwanted,
}

impl<'a> SampleNames<'a> {
    pub(super) fn new(dataset: &'a Dataset) -> Self {
        Self { dataset, tars: BTreeMap::new(), is_wanted: Vec::new() }
    }

    /// Determines which parts are tars: either all or none.
    pub(super) fn find_tars(&mut self) -> Result<(), DataError> {
        let parts = self.dataset.header().parts;
        if parts == 0 || !is_tar(&self.dataset.part(0)?.path) {
            return Ok(());
        }
        for index in 0..parts {
            self.tars.insert(name_of(&self.dataset.part(index)?.path), index);
        }
        self.is_wanted = vec![false; parts as usize];
        Ok(())
    }

    /// Returns whether every sample has its own name: packed samples do not.
    pub(super) fn are_unique(&self) -> bool {
        !self.tars.is_empty() || self.dataset.len() <= u64::from(self.dataset.header().parts)
    }

    /// Marks the tar that contains the sample with this name, so that its headers are read.
    pub(super) fn mark_wanted(&mut self, name: &str) {
        if self.tars.is_empty() {
            return;
        }
        for (slash, _) in name.match_indices('/') {
            let tar = name.get(..slash).and_then(|tar| self.tars.get(tar));
            if let Some(is_wanted) = tar.and_then(|&tar| self.is_wanted.get_mut(tar as usize)) {
                *is_wanted = true;
            }
        }
    }

    /// Calls `visit` with the id and name of every sample, except those in unmarked tars.
    pub(super) fn visit(&self, mut visit: impl FnMut(u64, &str)) -> Result<(), DataError> {
        let mut open = None;
        for sample in self.dataset.records(0..self.dataset.len()) {
            let (id, record) = sample?;
            let names = match open.take().filter(|(part, _)| *part == record.part) {
                Some((_, names)) => names,
                None => self.names_of(record.part)?,
            };
            match &names {
                PartNames::Unwanted => {}
                PartNames::File(name) => visit(id, name),
                PartNames::Tar(members) => {
                    let member = members.binary_search_by_key(&record.offset, |(offset, _)| *offset);
                    let name = member.ok().and_then(|member| members.get(member));
                    let (_, name) = name.ok_or_else(|| self.changed(record.part, record.offset))?;
                    visit(id, name);
                }
            }
            open = Some((record.part, names));
        }
        Ok(())
    }

    /// Returns the name of the first sample, as an example.
    pub(super) fn example(&self) -> Option<String> {
        let record = self.dataset.record(0).ok()?;
        let part = self.dataset.part(record.part).ok()?;
        if self.tars.is_empty() {
            return Some(name_of(&part.path));
        }
        let members = self.members(record.part, &part.path).ok()?;
        members.into_iter().find(|(offset, _)| *offset == record.offset).map(|(_, name)| name)
    }

    fn names_of(&self, index: u32) -> Result<PartNames, DataError> {
        if self.is_wanted.get(index as usize) == Some(&false) {
            return Ok(PartNames::Unwanted);
        }
        let part = self.dataset.part(index)?;
        if self.tars.is_empty() {
            return Ok(PartNames::File(name_of(&part.path)));
        }
        self.members(index, &part.path).map(PartNames::Tar)
    }

    /// Reads the offset and name of each member of a tar from the headers.
    fn members(&self, index: u32, path: &str) -> Result<Vec<(u64, String)>, DataError> {
        let tar = name_of(path);
        let failed = |problem: FormatProblem| DataError::new(path, problem).hint("prepare the dataset again");
        let members =
            TarMembers::new(self.dataset.part_reader(index)?).map_err(|error| failed(error.into()))?;
        let mut names = Vec::new();
        for member in members {
            let member = member.map_err(|error| failed(FormatProblem::Format(error.to_string())))?;
            let name = plain(&escaped(member.name.as_bytes())).unwrap_or_default();
            names.push((member.offset, format!("{tar}/{name}")));
        }
        Ok(names)
    }

    fn changed(&self, part: u32, offset: u64) -> DataError {
        let path = self.dataset.part(part).map_or_else(|_| String::new(), |part| part.path);
        let problem = "no member begins at this byte any more";
        DataError::changed(path, problem).at(format!("byte {offset}")).hint("prepare the dataset again")
    }
}

/// Returns the name of a part as a list writes it.
fn name_of(path: &str) -> String {
    plain(&escaped(path.as_bytes())).unwrap_or_default()
}

fn is_tar(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tar"))
}
