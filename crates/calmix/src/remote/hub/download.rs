//! The download of one file, from the cache or from the Hub, resumed where an earlier attempt ended.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result};
use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::FileError;
use calmix_io::safe_open;
use calmix_io::shown::shown;
use ureq::Body;
use ureq::http::header::CONTENT_RANGE;
use ureq::http::{Response, StatusCode};

use super::client::HubClient;
use super::content_hash::{ContentHasher, ContentHashes};
use super::failure::{Failure, Retries};
use super::listing::HubFile;
use super::repository::{Repository, encoded_path};
use crate::error::CliError;
use crate::output::format::bytes;

/// The size of a chunk in memory, in bytes.
const CHUNK: usize = 256 << 10;

/// The number of new bytes with which an attempt that breaks counts as progress, not as a failure.
const MIN_PROGRESS: u64 = 1 << 20;

/// A file that is being downloaded.
pub(super) struct Download<'a> {
    pub(super) repository: &'a Repository,
    pub(super) commit: &'a str,
    pub(super) file: &'a HubFile,
    pub(super) part: &'a ConfinedPath,
    /// Stops the download at the next chunk.
    pub(super) stop: &'a AtomicBool,
}

impl Download<'_> {
    /// Copies the file from the cache; returns its hashes, or `None` if it is not the file that the Hub lists.
    pub(super) fn copy(&self, cached: &Path, progress: &mut dyn FnMut(u64)) -> Result<Option<ContentHashes>> {
        let mut from = safe_open::open(cached)?.0;
        let mut arriving = Arriving::begin(self)?;
        arriving.restart()?;
        arriving
            .take(&mut from, |error| Failure::from(FileError::new(cached, error)), progress)
            .map_err(|failure| failure.error)?;
        match arriving.finish() {
            Ok(hashes) => Ok(Some(hashes)),
            Err(WrongContent { .. }) => Ok(None),
        }
    }

    /// Downloads the file, or the rest of it, and returns its hashes.
    pub(super) fn request(
        &self,
        client: &HubClient<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ContentHashes> {
        let mut retries = Retries::default();
        let mut has_restarted = false;
        loop {
            let mut arriving = Arriving::begin(self)?;
            let before = arriving.length;
            progress(before);
            let arrived = if before < self.file.bytes {
                self.request_rest(client, &mut arriving, progress)
            } else {
                Ok(())
            };
            if let Err(failure) = arrived {
                if arriving.length >= before + MIN_PROGRESS {
                    retries.reset();
                }
                drop(arriving);
                retries.wait_after(failure)?;
                continue;
            }
            let was_resumed = before > 0 && !arriving.is_restarted;
            match arriving.finish() {
                Ok(hashes) => return Ok(hashes),
                // A power failure may have damaged the part from an earlier call, so download the file again from its start.
                Err(WrongContent { .. }) if was_resumed && !has_restarted => has_restarted = true,
                Err(WrongContent { found, listed }) => return Err(self.wrong_content(&found, &listed)),
            }
        }
    }

    fn request_rest(
        &self,
        client: &HubClient<'_>,
        arriving: &mut Arriving<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let Self { repository, commit, file, .. } = self;
        let path = format!("/{repository}/resolve/{commit}/{}", encoded_path(&file.path));
        let mut response = client.get(repository, &path, arriving.length, None)?;
        let left = match response.status() {
            StatusCode::OK => file.bytes,
            StatusCode::PARTIAL_CONTENT if continues_at(&response, arriving.length, file.bytes) => {
                file.bytes - arriving.length
            }
            // The server does not send the rest: the next attempt requests the whole file.
            status => {
                arriving.restart()?;
                let what = format!("{}: the server answered with status {status}", shown(&file.path));
                return Err(Failure::passing(CliError::failed(what)));
            }
        };
        // Check the length before discarding anything: a captive portal's login page also has status 200.
        if response.body().content_length().is_some_and(|length| length != left) {
            return Err(self.wrong_length().into());
        }
        if response.status() == StatusCode::OK {
            arriving.restart()?;
        }
        let mut body = response.body_mut().as_reader();
        arriving.take(&mut body, |error| client.failure(&ureq::Error::from(error)), progress)
    }

    fn wrong_length(&self) -> CliError {
        let Self { repository, file, .. } = self;
        CliError::failed(format!(
            "{repository}: {} has not the {} bytes that the Hub lists",
            shown(&file.path),
            file.bytes
        ))
        .hint("nothing was added; try again later, and if it happens again, do not trust the source")
    }

    fn wrong_content(&self, found: &str, listed: &str) -> Error {
        let Self { repository, commit, file, .. } = self;
        CliError::failed(format!(
            "{repository}: {} has the wrong content: its hash is {found}, and the Hub lists {listed} at commit {commit}",
            shown(&file.path)
        ))
        .hint("nothing was added; try again later, and if it happens again, do not trust the source")
        .into()
    }
}

/// Returns whether a response with status 206 is the rest from `offset` on of a file of this size.
fn continues_at(response: &Response<Body>, offset: u64, bytes: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
    range.is_some_and(|range| range == format!("bytes {offset}-{}/{bytes}", bytes - 1))
}

/// A growing file, with the hashes of its content so far.
struct Arriving<'a> {
    download: &'a Download<'a>,
    to: File,
    length: u64,
    hasher: ContentHasher,
    is_restarted: bool,
}

/// A complete file whose hash is not the one that the Hub lists.
struct WrongContent {
    found: String,
    listed: String,
}

impl<'a> Arriving<'a> {
    /// Opens the part that an earlier attempt left, and hashes it.
    fn begin(download: &'a Download<'a>) -> Result<Self, Error> {
        let Download { file, part, .. } = download;
        let to = safe_open::open_to_write(*part)?;
        let hasher = ContentHasher::new(file.bytes, file.hash.as_ref());
        let mut arriving = Self { download, to, length: 0, hasher, is_restarted: false };
        let cannot = |error| FileError::new(part, error);
        if arriving.to.metadata().map_err(cannot)?.len() > file.bytes {
            arriving.to.set_len(0).map_err(cannot)?;
        }
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = arriving.to.read(&mut chunk).map_err(cannot)?;
            if read == 0 {
                return Ok(arriving);
            }
            arriving.hasher.update(&chunk[..read]);
            arriving.length += read as u64;
        }
    }

    /// Starts again from the first byte.
    fn restart(&mut self) -> Result<(), FileError> {
        let Download { file, part, .. } = self.download;
        let emptied = self.to.set_len(0).and_then(|()| self.to.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| FileError::new(part, error))?;
        self.hasher = ContentHasher::new(file.bytes, file.hash.as_ref());
        self.length = 0;
        self.is_restarted = true;
        Ok(())
    }

    /// Appends everything in `from`. A source that ends early or late is a failure.
    fn take(
        &mut self,
        from: &mut dyn Read,
        failed: impl Fn(std::io::Error) -> Failure,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Failure> {
        let Download { file, part, stop, .. } = self.download;
        let mut chunk = vec![0; CHUNK];
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(CliError::failed("interrupted").into());
            }
            let read = from.read(&mut chunk).map_err(&failed)?;
            if read == 0 {
                break;
            }
            // Without this limit, a hostile response without a length could fill the disk.
            if self.length + read as u64 > file.bytes {
                self.restart()?;
                return Err(self.download.wrong_length().into());
            }
            self.to.write_all(&chunk[..read]).map_err(|error| {
                let needs = bytes(file.bytes);
                FileError::new(part, error)
                    .hint(format!("the file has {needs}; set CALMIX_WEIGHTS to use another folder"))
            })?;
            self.hasher.update(&chunk[..read]);
            self.length += read as u64;
            progress(self.length);
        }
        if self.length < file.bytes {
            let what = format!("{}: the connection ended early", shown(&file.path));
            return Err(Failure::passing(CliError::failed(what).hint("the same command continues")));
        }
        Ok(())
    }

    /// Compares a complete file with its hash. If it differs, the file is emptied, so that no later attempt continues it.
    fn finish(mut self) -> Result<ContentHashes, WrongContent> {
        let empty = ContentHasher::new(0, None);
        let hashes = std::mem::replace(&mut self.hasher, empty).finish();
        let Some(listed) = &self.download.file.hash else { return Ok(hashes) };
        let found = hashes.comparable(listed);
        if found == listed.digits() {
            return Ok(hashes);
        }
        // If it fails, the next attempt finds the same wrong hash.
        let _ = self.to.set_len(0);
        Err(WrongContent { found: found.to_owned(), listed: listed.digits().to_owned() })
    }
}
