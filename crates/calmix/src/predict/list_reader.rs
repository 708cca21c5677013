//! The list of the images to predict. A separate thread makes it, so that signals are handled while a pipe has no writer or a
//! file server hangs.

use std::fs::File;
use std::io::{self, BufReader, stdin};
use std::iter::Fuse;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use crate::process::input_shard::InputShard;
use crate::process::stop::receive;
use anyhow::{Context, Result};
use calmix_data::image_list::{ImageList, ListedImage};
use calmix_io::shown::shown;

/// The number of images that are listed ahead.
const LOOKAHEAD: usize = 1_024;

/// The sources of the images to predict.
#[derive(Debug, Clone)]
pub(crate) struct ImageInput {
    /// Images, folders and shards; `-` reads lines from standard input.
    pub(crate) paths: Vec<PathBuf>,
    /// A file with more paths.
    pub(crate) list: Option<PathBuf>,
    /// The shard whose files are predicted; `None` for all.
    pub(crate) shard: Option<InputShard>,
}

/// An iterator over the images of an input, which ends early if the command has to stop.
#[derive(Debug)]
pub(crate) struct ListReader<'a> {
    /// Each image, then `None` at the end.
    images: Receiver<Result<Option<ListedImage>>>,
    stop: &'a AtomicBool,
}

impl ImageInput {
    /// Starts to list the images.
    pub(crate) fn read<'a>(&self, stop: &'a AtomicBool) -> io::Result<Fuse<ListReader<'a>>> {
        let input = self.clone();
        let (sender, images) = mpsc::sync_channel(LOOKAHEAD);
        // The thread is never joined, because it may wait for a line forever.
        thread::Builder::new().name("list".to_owned()).spawn(move || input.send_to(&sender))?;
        Ok(ListReader { images, stop }.fuse())
    }

    /// Counts the images; `None` if a pipe names them, which can be read only once, if some are in a tar of a shard or of an
    /// object store, or if the command has to stop.
    pub(crate) fn count(&self, stop: &AtomicBool) -> Result<Option<u64>> {
        let is_pipe = |list: &PathBuf| !list.is_file();
        if self.paths.iter().any(|path| is_stdin(path)) || self.list.as_ref().is_some_and(is_pipe) {
            return Ok(None);
        }
        let mut count = 0;
        for image in self.read(stop)? {
            let image = image?;
            // Counting would read or fetch the headers of all members in every process, only to estimate the remaining time.
            if image.is_remote() || (image.is_in_tar() && self.shard.is_some()) {
                return Ok(None);
            }
            count += 1;
        }
        Ok((!stop.load(Ordering::Relaxed)).then_some(count))
    }

    fn send_to(&self, sender: &SyncSender<Result<Option<ListedImage>>>) {
        let mut images = match self.open() {
            Ok(images) => images,
            Err(error) => return drop(sender.send(Err(error))),
        };
        for image in images.by_ref() {
            // An error means that the receiver is gone and needs nothing more.
            if sender.send(Ok(Some(image))).is_err() {
                return;
            }
        }
        let end = images.take_failure().map_or(Ok(None), |error| Err(error.into()));
        // The receiver may be gone.
        let _ = sender.send(end);
    }

    /// Opens the list; waits until another process opens the other end of a pipe.
    fn open(&self) -> Result<ImageList> {
        let mut all = ImageList::default();
        for path in &self.paths {
            let more = if is_stdin(path) {
                ImageList::of_lines(Box::new(BufReader::new(stdin())))
            } else {
                ImageList::of_paths(vec![path.clone()])
            };
            all = all.then(more);
        }
        if let Some(list) = &self.list {
            let file = File::open(list).with_context(|| shown(list.display()))?;
            all = all.then(ImageList::of_lines(Box::new(BufReader::new(file))));
        }
        Ok(match self.shard {
            Some(shard) => all.only(shard.files()),
            None => all,
        })
    }
}

impl Iterator for ListReader<'_> {
    type Item = Result<ListedImage>;

    fn next(&mut self) -> Option<Result<ListedImage>> {
        let image = receive(&self.images, self.stop, "the list of images");
        image.and_then(|image| image.unwrap_or(Ok(None))).transpose()
    }
}

pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}
