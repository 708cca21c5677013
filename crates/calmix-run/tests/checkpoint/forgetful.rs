//! A disk that forgets at a power failure what was not synchronised.
//!
//! Calls change the real folder, where readers find them. Beside it the disk remembers, for every file and every folder,
//! what it may be after a power failure: how it was when it was last synchronised, or how it was after any call since. A
//! file and the folder that names it are remembered apart: a name may be there before its bytes, and the other way round.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use calmix_core::rng::{Domain, Seed};
use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::{Disk, RealDisk};
use calmix_io::error::FileError;
use calmix_io::transient::BackOff;

/// What survives of what was not synchronised.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Survives {
    Nothing,
    Everything,
    /// Names, but not the bytes of files: the empty files of systems that allocate late.
    Names,
    Bytes,
    /// Something else for each file and each folder.
    Drawn(u64),
}

/// The files and folders of a disk, by the number of their inode.
#[derive(Debug, Default)]
struct Remembered {
    /// The first is what is on the disk; those behind it may be.
    files: HashMap<u64, Vec<Vec<u8>>>,
    folders: HashMap<u64, Vec<BTreeMap<PathBuf, u64>>>,
    /// Each once, in the order in which they appeared; kept open, so that no number is used twice.
    held: Vec<(u64, File)>,
    calls: Vec<&'static str>,
}

#[derive(Debug)]
pub(crate) struct ForgetfulDisk {
    root: PathBuf,
    fails_at: usize,
    remembered: Mutex<Remembered>,
}

impl ForgetfulDisk {
    /// A disk on which everything below `root` is synchronised, and whose power fails before call number `fails_at`.
    pub(crate) fn new(root: &Path, fails_at: usize) -> Self {
        let mut remembered = Remembered::default();
        remembered.look(root);
        let Remembered { files, folders, .. } = &mut remembered;
        for versions in files.values_mut() {
            drop(versions.drain(..versions.len() - 1));
        }
        for versions in folders.values_mut() {
            drop(versions.drain(..versions.len() - 1));
        }
        Self { root: root.to_owned(), fails_at, remembered: Mutex::new(remembered) }
    }

    pub(crate) fn calls(&self) -> Vec<&'static str> {
        self.remembered.lock().unwrap().calls.clone()
    }

    /// Makes the folder `to` what the disk is after the power failure.
    pub(crate) fn restart(&self, survives: Survives, to: &Path) {
        let mut remembered = self.remembered.lock().unwrap();
        remembered.look(&self.root);
        let _ = fs::remove_dir_all(to);
        remembered.restore(number(&self.root), survives, to);
    }

    fn call<T>(
        &self,
        name: &'static str,
        real: impl FnOnce(&mut Remembered) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut remembered = self.remembered.lock().unwrap();
        if remembered.calls.len() >= self.fails_at {
            return Err(io::ErrorKind::Other.into());
        }
        remembered.calls.push(name);
        // What the call before this one did, and what was made without the disk.
        remembered.look(&self.root);
        real(&mut remembered)
    }
}

impl Remembered {
    /// Notes what changed below a folder.
    fn look(&mut self, folder: &Path) {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let file = File::open(&path).unwrap();
            let inode = file.metadata().unwrap().ino();
            names.insert(path.file_name().unwrap().into(), inode);
            if path.is_dir() {
                self.look(&path);
            } else {
                self.note_file(&file);
            }
            if !self.held.iter().any(|(held, _)| *held == inode) {
                self.held.push((inode, file));
            }
        }
        let versions = self.folders.entry(number(folder)).or_insert_with(|| vec![BTreeMap::new()]);
        if versions.last() != Some(&names) {
            versions.push(names);
        }
    }

    fn note_file(&mut self, mut file: &File) {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let versions = self.files.entry(file.metadata().unwrap().ino()).or_insert_with(|| vec![Vec::new()]);
        let before = versions.last().unwrap().len();
        if versions.last() == Some(&bytes) {
            return;
        }
        if bytes.len() > before {
            // Half of what was written, and its length without its bytes.
            versions.push(bytes[..usize::midpoint(before, bytes.len())].to_vec());
            let mut hollow = bytes.clone();
            hollow[before..].fill(0);
            versions.push(hollow);
        }
        versions.push(bytes);
    }

    fn restore(&self, folder: u64, survives: Survives, to: &Path) {
        fs::create_dir(to).unwrap();
        let names = match survives {
            Survives::Everything | Survives::Names => self.folders[&folder].last().unwrap(),
            Survives::Nothing | Survives::Bytes => &self.folders[&folder][0],
            Survives::Drawn(seed) => self.drawn(&self.folders[&folder], seed, folder),
        };
        for (name, inode) in names {
            let path = to.join(name);
            if self.folders.contains_key(inode) {
                self.restore(*inode, survives, &path);
                continue;
            }
            let bytes = match survives {
                Survives::Everything | Survives::Bytes => self.files[inode].last().unwrap(),
                Survives::Nothing | Survives::Names => &self.files[inode][0],
                Survives::Drawn(seed) => self.drawn(&self.files[inode], seed, *inode),
            };
            fs::write(path, bytes).unwrap();
        }
    }

    fn drawn<'a, T>(&self, versions: &'a [T], seed: u64, inode: u64) -> &'a T {
        // By its place, since the system chooses other numbers each time.
        let place = self.held.iter().position(|(held, _)| *held == inode);
        let mut stream = Seed(seed).stream(Domain::Fold, 0, place.map_or(u64::MAX, |place| place as u64));
        &versions[stream.index(versions.len())]
    }
}

fn number(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

impl Disk for ForgetfulDisk {
    fn create_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        self.call("create folder", |_| RealDisk.create_folder(path))
    }

    fn create(&self, path: &ConfinedPath) -> io::Result<File> {
        self.call("create", |_| RealDisk.create(path))
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        self.call("write", |_| RealDisk.write(file, bytes))
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.call("truncate", |_| RealDisk.truncate(file, length))
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.call("sync", |remembered| {
            let versions = remembered.files.get_mut(&file.metadata()?.ino()).unwrap();
            drop(versions.drain(..versions.len() - 1));
            Ok(())
        })
    }

    fn sync_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        self.call("sync folder", |remembered| {
            let versions = remembered.folders.get_mut(&number(path)).unwrap();
            drop(versions.drain(..versions.len() - 1));
            Ok(())
        })
    }

    fn rename(&self, from: &ConfinedPath, to: &ConfinedPath) -> io::Result<()> {
        self.call("rename", |_| RealDisk.rename(from, to))
    }

    fn remove_file(&self, path: &ConfinedPath) -> io::Result<()> {
        self.call("remove file", |_| RealDisk.remove_file(path))
    }

    fn remove_folder(&self, path: &ConfinedPath) -> io::Result<()> {
        self.call("remove folder", |_| RealDisk.remove_folder(path))
    }

    fn wait(&self, _: Duration, _: &FileError, _: &BackOff) {}
}
