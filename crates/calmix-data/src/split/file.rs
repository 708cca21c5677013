//! `split.json`: written in one step, read with suspicion.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use super::{LabelSplit, VERSION, check_ids, ranges};
use crate::dataset::Dataset;
use crate::error::{DataError, DataProblem};

/// Bytes of the longest `split.json`: the ids of more than ten million labelled samples.
const MAX_BYTES: u64 = 256 << 20;

impl LabelSplit {
    /// Writes the split atomically: a concurrent reader of `path` sees the old file or the new one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), DataError> {
        let cannot = |error| DataError::new(path, error);
        let mut bytes = serde_json::to_vec(self).map_err(|error| cannot(error.into()))?;
        bytes.push(b'\n');
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new();
        // As any other file that is meant to be shared: the umask decides who may read it.
        #[cfg(unix)]
        file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = file.prefix(".split-").tempfile_in(folder).map_err(cannot)?;
        file.write_all(&bytes).and_then(|()| file.as_file().sync_all()).map_err(cannot)?;
        file.persist(path).map_err(|error| cannot(error.error))?;
        Ok(())
    }

    /// Reads a split of `dataset`.
    ///
    /// # Errors
    /// If it is not a split, belongs to another dataset, or names samples that do not exist, have no label,
    /// come twice or do not ascend.
    pub fn read(path: &Path, dataset: &Dataset) -> Result<Self, DataError> {
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|error| DataError::new(path, error))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(DataError::new(path, DataProblem::Limit(format!("more than {MAX_BYTES} bytes"))));
        }
        let split: Self = serde_json::from_slice(&bytes).map_err(|error| {
            DataError::new(path, DataProblem::Format(error.to_string())).hint("draw the split again")
        })?;
        split.check(dataset).map_err(|problem| DataError::new(path, problem).hint("draw the split again"))?;
        Ok(split)
    }

    fn check(&self, dataset: &Dataset) -> Result<(), DataProblem> {
        if self.version != VERSION {
            let problem = format!("format {}, but this program reads format {VERSION}", self.version);
            return Err(DataProblem::Format(problem));
        }
        if self.dataset != dataset.fingerprint() {
            let short = |fingerprint: &str| fingerprint.chars().take(12).collect::<String>();
            let (theirs, ours) = (short(&self.dataset), short(dataset.fingerprint()));
            return Err(DataProblem::Changed(format!("a split of the data {theirs}, but this is {ours}")));
        }
        self.plan.check()?;
        ranges(dataset, &self.plan.unlabelled).map_err(|error| error.problem)?;
        check_ids(dataset, &self.plan, &self.labelled)?;
        check_ids(dataset, &self.plan, &self.validation)?;
        let both = self.validation.iter().find(|id| self.labelled.binary_search(id).is_ok());
        match both {
            Some(id) => Err(DataProblem::Content(format!("sample {id} is both labelled and held out"))),
            None => Ok(()),
        }
    }
}
