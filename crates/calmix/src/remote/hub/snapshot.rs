//! A repository at one commit, and its files.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use calmix_io::shown::shown;

use super::cache::HubCache;
use super::client::{HubClient, offline_hint};
use super::content_hash::ContentHashes;
use super::download::Download;
use super::listing::{HubFile, Listing};
use super::part_folder::PartFolder;
use super::repository::Repository;
use super::variables::{HubVariables, OFFLINE};
use crate::error::CliError;

/// A repository at one commit.
pub(crate) struct Snapshot<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) listing: Listing,
    cache: HubCache,
    /// The client; `None` in offline mode.
    client: Option<HubClient<'a>>,
}

impl<'a> Snapshot<'a> {
    /// Gets the list of a repository's files from the Hub, or from its cache in offline mode.
    pub(crate) fn open(variables: &'a HubVariables, repository: &'a Repository) -> Result<Self> {
        let cache = HubCache::new(&variables.cache, repository);
        if variables.is_offline {
            let listing = cache.listing(&repository.revision)?.ok_or_else(|| {
                let folder = shown(cache.folder().display());
                let revision = &repository.revision;
                let message = format!("{OFFLINE} is set, and {folder} has no files of revision {revision}");
                CliError::invalid(message).hint(offline_hint())
            })?;
            return Ok(Self { repository, listing, cache, client: None });
        }
        let client = HubClient::new(variables)?;
        let listing = client.listing(repository)?;
        Ok(Self { repository, listing, cache, client: Some(client) })
    }

    /// Fetches a file into the folder of parts, and returns its SHA-256. `progress` receives the number of bytes so far.
    pub(crate) fn fetch(
        &self,
        file: &HubFile,
        parts: &PartFolder,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<String> {
        let part = parts.part(file);
        let commit = &self.listing.commit;
        let download = Download { repository: self.repository, commit, file, part: &part, stop };
        if (self.client.is_none() || parts.arrived(file) < file.bytes)
            && let Some(cached) = self.cache.file(commit, file)
            && let Some(ContentHashes { sha256, .. }) = download.copy(&cached, progress)?
        {
            return Ok(sha256);
        }
        let Some(client) = &self.client else {
            let folder = shown(self.cache.folder().display());
            let message = format!("{}: its copy in {folder} is damaged", shown(&file.path));
            return Err(CliError::failed(message).hint(offline_hint()).into());
        };
        Ok(download.request(client, progress)?.sha256)
    }
}
