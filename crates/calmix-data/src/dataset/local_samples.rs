//! A local copy of the samples of remote shards that are read repeatedly.
//!
//! Labelled samples are spread over all shards and recur every few steps; evaluation samples recur at every evaluation.
//! Without this copy, each of them would fetch its whole shard.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use calmix_cloud::{CACHE_LIMIT, RemoteFolder};
use calmix_formats::read_at::ReadAt;
use calmix_io::error::FileError;

use super::{Dataset, LocalSamples};
use crate::error::DataError;
use crate::manifest::SampleRecord;

impl Dataset {
    /// Returns whether the samples are in object storage or on a web server.
    pub fn is_remote(&self) -> bool {
        self.parts.remote().is_some()
    }

    /// Starts fetching the shards of these samples in the background; does nothing if the samples are local.
    pub fn prefetch(&self, ids: &[u64]) {
        let Some(remote) = self.parts.remote() else { return };
        // A shard that cannot be fetched is reported when it is needed.
        let part = |&id: &u64| self.record(id).and_then(|record| self.part(record.part)).ok();
        remote.prefetch(ids.iter().filter_map(part).map(|part| part.path).collect());
    }

    /// Returns the size of the largest part, in bytes.
    pub fn largest_part(&self) -> Result<u64, DataError> {
        let mut largest = 0;
        for part in 0..self.header.parts {
            largest = largest.max(self.part(part)?.length);
        }
        Ok(largest)
    }

    /// Returns how many bytes the shard cache may hold besides the local copies; `None` if the samples are local.
    pub fn cache_limit(&self) -> Option<u64> {
        let kept = self.kept.as_ref().map_or(0, |kept| kept.file.length());
        self.parts.remote().map(|remote| remote.cache_limit().saturating_sub(kept))
    }

    /// Copies samples into one local file, which serves all later reads of them. Fetches each shard once; does nothing if
    /// the samples are local.
    ///
    /// # Errors
    /// If a shard cannot be fetched, has changed, or the samples do not fit into the cache.
    pub fn store_samples_locally(&mut self, ids: impl IntoIterator<Item = u64>) -> Result<(), DataError> {
        let Some(remote) = self.parts.remote().map(Arc::clone) else { return Ok(()) };
        let ids: Vec<u64> = ids.into_iter().collect::<BTreeSet<u64>>().into_iter().collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut hash = blake3::Hasher::new();
        hash.update(self.fingerprint().as_bytes());
        let mut records = Vec::with_capacity(ids.len());
        let mut starts = Vec::with_capacity(ids.len());
        let mut size = 0;
        for &id in &ids {
            hash.update(&id.to_le_bytes());
            let record = self.record(id)?;
            starts.push(size);
            size += u64::from(record.length);
            records.push((id, record));
        }
        self.check_room(&remote, size)?;
        // The prefix contains letters that no shard name has, so that waiting for this lock cannot deadlock with a shard's
        // lock.
        let name: String = format!("kept-{}", hash.finalize().to_hex()).chars().take(40).collect();
        let file = remote.make(&name, size, |file| self.copy(&records, file))?;
        let file =
            ReadAt::from_cache(remote.path("labelled and evaluated samples"), file, RemoteFolder::mark_used)?;
        self.kept = Some(LocalSamples { ids, starts, file });
        Ok(())
    }

    fn copy(&self, records: &[(u64, SampleRecord)], file: &mut std::fs::File) -> Result<(), FileError> {
        let failed = |error: &dyn std::fmt::Display| {
            FileError::new(Path::new("the cache of shards"), std::io::Error::other(error.to_string()))
        };
        let mut writer = BufWriter::new(file);
        let mut bytes = Vec::new();
        let mut next = 0;
        for (index, &(id, record)) in records.iter().enumerate() {
            if index >= next {
                // The next shard is fetched while this one is read.
                next = index
                    + records[index..].iter().take_while(|(_, other)| other.part == record.part).count();
                let after: Vec<u64> = records.get(next).map(|&(id, _)| id).into_iter().collect();
                self.prefetch(&after);
            }
            self.bytes_of(id, record, &mut bytes).map_err(|error| failed(&error))?;
            writer.write_all(&bytes).map_err(|error| failed(&error))?;
        }
        writer.flush().map_err(|error| failed(&error))
    }

    fn check_room(&self, remote: &RemoteFolder, size: u64) -> Result<(), DataError> {
        let limit = remote.cache_limit();
        // The shard that is being read, and the one that is being fetched.
        let needed = size.saturating_add(self.largest_part()?.saturating_mul(2));
        if needed <= limit {
            return Ok(());
        }
        let problem = format!(
            "the labelled and evaluated samples and two shards have {needed} bytes, but the cache may hold {limit}"
        );
        let error = DataError::limit(remote.url().as_str(), problem);
        Err(error.hint(format!("set {CACHE_LIMIT} to more gigabytes")))
    }
}
