//! Safeguards for installing over a network: enough disk space, one process at a time, and retries.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::cache;

/// The pauses before retries: a busy registry recovers within seconds.
const PAUSES: [Duration; 2] = [Duration::from_secs(3), Duration::from_secs(15)];

/// Locks the cache, so that other setups wait: two processes that install into one folder would each remove the other's files.
pub(crate) fn lock() -> Result<File> {
    lock_in(&cache::folder()?)
}

fn lock_in(folder: &Path) -> Result<File> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let path = folder.join("setup.lock");
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => println!("setup: waiting for another setup ({})", path.display()),
        Err(TryLockError::Error(error)) => {
            println!(
                "setup: {} cannot be locked ({error}); do not run two setups at the same time",
                path.display()
            );
            return Ok(file);
        }
    }
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}

/// Fails before any download if there is too little disk space.
pub(crate) fn require_space(bytes: u64, what: &str) -> Result<()> {
    let folder = cache::folder()?;
    match free(&folder) {
        Some(free) if free < bytes => bail!(
            "{what} needs {} MB, but {} has only {} MB left; free some space, or set CALMIX_CACHE to a folder on another disk",
            bytes >> 20,
            folder.display(),
            free >> 20
        ),
        _ => Ok(()),
    }
}

fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Runs `act`, and retries after pauses, with a message.
pub(crate) fn attempt<T>(what: &str, act: impl FnMut() -> Result<T>) -> Result<T> {
    attempt_after(&PAUSES, what, act)
}

fn attempt_after<T>(pauses: &[Duration], what: &str, mut act: impl FnMut() -> Result<T>) -> Result<T> {
    for pause in pauses {
        match act() {
            Ok(done) => return Ok(done),
            Err(error) => eprintln!("setup: {what} failed, trying again in {pause:?}: {error:#}"),
        }
        thread::sleep(*pause);
    }
    act()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_failure_is_retried() {
        let pauses = [Duration::ZERO; 2];
        let mut left = 2;
        let passing = attempt_after(&pauses, "a fetch", || {
            left -= 1;
            anyhow::ensure!(left < 0, "busy");
            Ok("there")
        });
        assert_eq!(passing.expect("the third attempt"), "there");
        let mut calls = 0;
        let lasting = attempt_after(&pauses, "a fetch", || {
            calls += 1;
            Err::<(), _>(anyhow::anyhow!("attempt {calls}"))
        });
        assert_eq!((lasting.err().map(|error| error.to_string()), calls), (Some("attempt 3".into()), 3));
    }

    #[test]
    fn one_setup_at_a_time() {
        let folder = std::env::temp_dir().join(format!("calmix-xtask-lock-{}", std::process::id()));
        let held = lock_in(&folder).expect("the first has it");
        let second = File::options().write(true).open(folder.join("setup.lock")).expect("the file");
        assert!(matches!(second.try_lock(), Err(TryLockError::WouldBlock)));
        drop(held);
        assert!(second.try_lock().is_ok());
        fs::remove_dir_all(folder).expect("cleans up");
    }

    #[test]
    fn too_little_disk_space_is_refused() {
        let error = require_space(u64::MAX, "everything").err().map(|error| error.to_string());
        // If the cache does not exist yet, its free space is unknown.
        assert!(error.is_none_or(|error| error.contains("free some space, or set CALMIX_CACHE")));
    }
}
