//! A disk that fails at a chosen call.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use calmix_io::confined_path::ConfinedPath;
use calmix_io::error::FileError;
use calmix_io::transient::BackOff;

use calmix_io::disk::{Disk, RealDisk};

/// How it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// That one call fails; if it writes, after half of it.
    Once(io::ErrorKind),
    /// Nothing happens from that call on, as if the process had been killed there.
    Killed,
    /// As before, but if the call writes, half of it still happens.
    KilledWithin,
}

#[derive(Debug)]
pub struct FaultyDisk {
    fault: Fault,
    at: usize,
    until: usize,
    calls: Mutex<Vec<&'static str>>,
}

impl FaultyDisk {
    /// Fails at the call number `at`, from zero.
    pub fn new(fault: Fault, at: usize) -> Self {
        Self { fault, at, until: at.saturating_add(1), calls: Mutex::new(Vec::new()) }
    }

    /// What happens once happens at every call before this one.
    #[must_use]
    pub fn until(self, until: usize) -> Self {
        Self { until, ..self }
    }

    /// One that never fails.
    pub fn sound() -> Arc<Self> {
        Arc::new(Self::new(Fault::Killed, usize::MAX))
    }

    /// What was called.
    pub fn calls(&self) -> Vec<&'static str> {
        self.calls.lock().unwrap().clone()
    }

    /// The call at which it failed.
    pub fn struck(&self) -> &'static str {
        self.calls()[self.at]
    }

    fn call<T>(
        &self,
        name: &'static str,
        real: impl FnOnce() -> io::Result<T>,
        half: impl FnOnce(),
    ) -> io::Result<T> {
        let mut calls = self.calls.lock().unwrap();
        let number = calls.len();
        calls.push(name);
        match self.fault {
            Fault::Once(kind) if (self.at..self.until).contains(&number) => {
                half();
                Err(kind.into())
            }
            Fault::KilledWithin if number == self.at => {
                half();
                Err(io::ErrorKind::Other.into())
            }
            Fault::Killed | Fault::KilledWithin if number >= self.at => Err(io::ErrorKind::Other.into()),
            _ => real(),
        }
    }
}

impl Disk for FaultyDisk {
    fn create_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        self.call("create folder", || RealDisk.create_folder(path), || {})
    }

    fn create(&self, path: &ConfinedPath) -> io::Result<File> {
        self.call("create", || RealDisk.create(path), || {})
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        let mut again = file.try_clone()?;
        let half = || RealDisk.write(&mut again, &bytes[..bytes.len() / 2]).unwrap();
        self.call("write", || RealDisk.write(file, bytes), half)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.call("truncate", || RealDisk.truncate(file, length), || {})
    }

    /// Counted and made to fail, but not done: what it does shows after a power failure only, and it takes long.
    fn sync(&self, _: &File) -> io::Result<()> {
        self.call("sync", || Ok(()), || {})
    }

    fn sync_folder(&self, _: &ConfinedPath) -> io::Result<()> {
        self.call("sync folder", || Ok(()), || {})
    }

    fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> io::Result<()> {
        self.call("rename", || RealDisk.rename(from, to), || {})
    }

    fn remove_file(&self, path: &ConfinedPath) -> io::Result<()> {
        self.call("remove file", || RealDisk.remove_file(path), || {})
    }

    /// Does not wait, since these tests are not about time.
    fn wait(&self, _: Duration, _: &FileError, _: &BackOff) {}

    fn remove_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        // Half of it: a file is gone, the others are there.
        let half = || {
            let first = std::fs::read_dir(path).unwrap().next().unwrap().unwrap();
            std::fs::remove_file(first.path()).unwrap();
        };
        self.call("remove folder", || RealDisk.remove_folder(path), half)
    }
}
