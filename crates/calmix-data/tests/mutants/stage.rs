//! A dataset's folder in which one file is a mutant.

use std::fs;
use std::path::{Path, PathBuf};

use calmix_data::dataset::Dataset;
use calmix_data::error::DataError;
use tempfile::TempDir;

use super::kinds::Kind;

pub(crate) struct Stage<'a> {
    kind: &'a Kind,
    folder: TempDir,
}

/// What was prepared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) fingerprint: String,
    pub(crate) samples: u64,
    pub(crate) notes: usize,
}

/// What was said instead.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) sentence: String,
    /// Whether it names a file of the dataset and says something of it.
    pub(crate) is_fair: bool,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(kind: &'a Kind) -> Self {
        // Thousands of datasets are written: into memory, where the system has a folder there.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        let stage = Self { kind, folder: folder.unwrap() };
        for (name, bytes) in &kind.others {
            stage.put(name, bytes);
        }
        stage
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Prepares the dataset with these bytes in the mutant's place.
    pub(crate) fn play(&self, bytes: &[u8]) -> Result<Outcome, Problem> {
        self.put(self.kind.file, bytes);
        let target = self.folder.path().join("prepared");
        let prepared = (self.kind.prepare)(&self.root(), &target);
        let beside = fs::read_dir(self.folder.path()).unwrap().count();
        match prepared {
            Err(error) => {
                let problem = self.problem(&error);
                Err(Problem { is_fair: problem.is_fair && beside == 1, ..problem })
            }
            Ok(prepared) => {
                assert_eq!(beside, 2, "only the prepared dataset stands beside its root");
                if let Some(unfair) = prepared.unreadable.iter().find(|note| !self.problem(note).is_fair) {
                    panic!("an unfair note: {unfair}");
                }
                let dataset = Dataset::open(&target, &self.root()).unwrap();
                dataset.verify().unwrap();
                fs::remove_dir_all(target).unwrap();
                let (header, notes) = (prepared.header, prepared.unreadable.len());
                Ok(Outcome { fingerprint: header.fingerprint, samples: header.samples, notes })
            }
        }
    }

    fn problem(&self, error: &DataError) -> Problem {
        let sentence = error.to_string();
        let path = error.path().unwrap();
        let names = path.starts_with(self.root()) && path.exists();
        let says =
            sentence.strip_prefix(&path.display().to_string()).is_some_and(|rest| rest.len() > ": ".len());
        Problem { is_fair: names && says, sentence }
    }
}
