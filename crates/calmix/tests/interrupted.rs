//! A command that a test interrupts, and the vectors that keep it busy.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use calmix_testkit::npy_file;

/// The most that a test waits for the event before the signal.
const PATIENCE: Duration = Duration::from_mins(2);
/// The most from the signal to the end. On an idle machine it is less than 2 s; other tests may run beside this one.
const LIMIT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A command in a folder; dropped, it is killed.
pub(crate) struct Running<'a> {
    child: Child,
    folder: &'a Path,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl<'a> Running<'a> {
    /// Starts `calmix` without libtorch. Its standard error goes to a file, its temporary files below the folder.
    pub(crate) fn new(folder: &'a Path, arguments: &[&str]) -> Self {
        let scratch = folder.join("scratch");
        fs::create_dir_all(&scratch).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_calmix"));
        command.args(arguments).current_dir(folder);
        command.env("CALMIX_TORCH", "/nowhere/calmix-torch").env("TMPDIR", scratch);
        let stderr = File::create(folder.join("stderr")).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
        Self { child: command.spawn().unwrap(), folder }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.folder.join("stderr")).unwrap()
    }

    /// Waits for an event.
    pub(crate) fn until(&mut self, has_happened: impl Fn() -> bool) {
        let begun = Instant::now();
        while !has_happened() {
            assert!(self.child.try_wait().unwrap().is_none(), "it ended by itself: {}", self.stderr());
            assert!(begun.elapsed() < PATIENCE, "{}", self.stderr());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until its standard error has this.
    pub(crate) fn until_printed(&mut self, part: &str) {
        let stderr = self.folder.join("stderr");
        self.until(|| fs::read_to_string(&stderr).is_ok_and(|text| text.contains(part)));
    }

    /// Sends a signal, and waits for the end. `phase` is what it was doing.
    pub(crate) fn signalled(mut self, name: &str, phase: &str) -> Ended {
        let sent = Instant::now();
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success());
        while self.child.try_wait().unwrap().is_none() {
            assert!(sent.elapsed() < LIMIT, "{phase} goes on after {:?}: {}", sent.elapsed(), self.stderr());
            thread::sleep(POLL_INTERVAL);
        }
        eprintln!("{phase}: {:.2} s after SIG{name}", sent.elapsed().as_secs_f64());
        self.ended()
    }

    /// Waits for its end without a signal.
    pub(crate) fn ended(mut self) -> Ended {
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        let code = self.child.wait().unwrap().code();
        Ended { code, stdout, stderr: self.stderr() }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a file of this name is anywhere below a folder.
pub(crate) fn found_below(folder: &Path, name: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name() == name || found_below(&entry.path(), name))
}

/// Writes noise as an `.npy` of f32.
pub(crate) fn write_vectors(path: &Path, rows: usize, width: usize) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&npy_file::header("<f4", &[rows, width])).unwrap();
    let mut state = 1_u32;
    for _ in 0..rows * width {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        file.write_all(&((state >> 8) as f32 / (1 << 24) as f32).to_le_bytes()).unwrap();
    }
    file.flush().unwrap();
}

/// Writes many vectors within a moment: the same thousand again and again.
pub(crate) fn write_many(path: &Path, thousands: usize, width: usize) {
    let mut file = File::create(path).unwrap();
    file.write_all(&npy_file::header("<f4", &[1_000 * thousands, width])).unwrap();
    let numbers: Vec<u8> = (0..1_000 * width).flat_map(|n| ((n % 251) as f32).to_le_bytes()).collect();
    for _ in 0..thousands {
        file.write_all(&numbers).unwrap();
    }
}

/// Writes a label for each row; the classes take turns.
pub(crate) fn write_labels(path: &Path, rows: usize, classes: usize) {
    let mut text = "id,label\n".to_owned();
    for row in 0..rows {
        text.extend([row.to_string().as_str(), ",c", (row % classes).to_string().as_str(), "\n"]);
    }
    fs::write(path, text).unwrap();
}
