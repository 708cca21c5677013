//! A temporary folder with datasets, in which tests run commands of `calmix`.

pub mod folders;
pub mod mlflow;
pub mod race;
pub mod running;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::png_file::{Pixels, png};

/// A temporary folder in which tests run commands.
pub struct Workspace {
    program: PathBuf,
    has_libtorch: bool,
    folder: PathBuf,
    /// Removes the folder in the end; `None` if the folder stays.
    _temporary: Option<TempDir>,
}

/// What a command printed, and its exit code.
pub struct CommandOutput {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

/// The most lines that a finished run prints.
pub const LAST_SCREEN: usize = 15;

/// A training of a second: eight steps of four labelled and four unlabelled images of 8×8.
pub const TINY: &[&str] = &[
    "train.batch=4",
    "train.ratio=1",
    "labels.count=2",
    "augment.size=8",
    "evaluate.bootstrap=20",
    "evaluate.every=4",
    "checkpoint.every=4",
    "log.every=1",
    "ema.decay=0.1",
];

impl Workspace {
    /// A workspace in a new folder. Its commands start `program`, a `calmix`.
    pub fn new(program: PathBuf) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().to_owned();
        Self { program, has_libtorch: true, folder, _temporary: Some(temporary) }
    }

    /// A workspace in a folder that stays.
    pub fn at(folder: PathBuf, program: PathBuf) -> Self {
        Self { program, has_libtorch: true, folder, _temporary: None }
    }

    /// Hides `calmix-torch`, which a build may have put beside the program: a command that needs it fails.
    #[must_use]
    pub fn without_libtorch(self) -> Self {
        Self { has_libtorch: false, ..self }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Images of 8×8 in the format of Fashion-MNIST: 100 for training, 40 for testing.
    #[must_use]
    pub fn with_garments(self) -> Self {
        let folder = self.path("garments");
        fs::create_dir(&folder).unwrap();
        for (name, count) in [("train", 100_u32), ("t10k", 40)] {
            let idx = |kind: u8, sides: &[u32], bytes: Vec<u8>| {
                let sides = sides.iter().flat_map(|side| side.to_be_bytes());
                [0, 0, 8, kind].into_iter().chain(sides).chain(bytes).collect::<Vec<u8>>()
            };
            let pixel = |i: u32| (i / 64 % 10 * 25 + i * 7 % 13) as u8;
            let pixels = (0..count * 64).map(pixel).collect();
            let labels = (0..count).map(|i| (i % 10) as u8).collect();
            fs::write(folder.join(format!("{name}-images-idx3-ubyte")), idx(3, &[count, 8, 8], pixels))
                .unwrap();
            fs::write(folder.join(format!("{name}-labels-idx1-ubyte")), idx(1, &[count], labels)).unwrap();
        }
        self
    }

    /// Photos in folders: two classes, some without a label, one file that is not an image.
    #[must_use]
    pub fn with_photos(self) -> Self {
        for (class, shade, count) in [("cat", 40, 10), ("dog", 200, 10), ("unlabelled", 120, 12)] {
            self.images(&format!("photos/{class}"), shade, count);
        }
        fs::write(self.path("photos/cat/broken.png"), "not an image").unwrap();
        self
    }

    /// Writes `count` images of 8×8 pixels into a folder; images of another shade are different images.
    pub fn images(&self, folder: &str, shade: u8, count: u32) {
        self.images_of(folder, shade, count, [8, 8]);
    }

    /// The same, of another width and height.
    pub fn images_of(&self, folder: &str, shade: u8, count: u32, [width, height]: [u32; 2]) {
        let folder = self.path(folder);
        fs::create_dir_all(&folder).unwrap();
        for number in 0..count {
            let pixel = |place: usize| shade ^ (place * number as usize % 31) as u8;
            let image = png(Pixels::Rgb, [width, height], pixel);
            fs::write(folder.join(format!("{number}.png")), image).unwrap();
        }
    }

    /// Lists what a folder holds, by name.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Photos of two classes with splits of their own: 10 for training, 12 for validation, 8 for testing.
    #[must_use]
    pub fn with_validation_folder(self) -> Self {
        for (subset, count) in [("train", 5), ("val", 6), ("test", 4)] {
            for class in ["cat", "dog"] {
                let folder = self.path("own").join(subset).join(class);
                fs::create_dir_all(&folder).unwrap();
                for n in 0..count {
                    let image = self.path(&format!("photos/{class}/{n}.png"));
                    fs::copy(image, folder.join(format!("{n}.png"))).unwrap();
                }
            }
        }
        self
    }

    /// A command, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder).stdin(Stdio::null());
        for variable in ["NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "CALMIX__SELECTION"] {
            command.env_remove(variable);
        }
        command.env("CALMIX_WEIGHTS", self.path("weights"));
        if !self.has_libtorch {
            command.env("CALMIX_TORCH", "/nowhere/calmix-torch");
        }
        command
    }

    /// A tiny training on the garments, with `more` arguments.
    pub fn training(&self, steps: u32, more: &[&str]) -> Command {
        let mut command =
            self.command(&["train", "cpu-fashion-mnist", "--data", "garments", "--threads", "1"]);
        for setting in TINY {
            command.args(["--set", setting]);
        }
        command.args(["--set", &format!("train.steps={steps}")]).args(more);
        command
    }

    /// A tiny training of two steps on a folder of images, with `more` arguments.
    pub fn folder_training(&self, data: &str, more: &[&str]) -> Command {
        let mut command = self.command(&["train", "cpu-folder", "--data", data, "--threads", "1"]);
        for setting in TINY.iter().filter(|setting| !setting.starts_with("labels.")) {
            command.args(["--set", setting]);
        }
        command.args(["--set", "train.steps=2", "--set", "network.name=wrn-10-1"]).args(more);
        command
    }

    /// A tiny training of the head of a method on the weights `tiny` and the folder `own`, with `more` arguments.
    pub fn head_training(&self, more: &[&str]) -> Command {
        let mut command = self.command(&["train", "head-folder", "--data", "own", "--threads", "1"]);
        let tiny =
            TINY.iter().filter(|setting| !setting.starts_with("labels.") && !setting.starts_with("network."));
        for setting in tiny.chain(&[
            "train.steps=4",
            "network.dimensions=8",
            "network.weights=tiny",
            "preset=calibrated",
        ]) {
            command.args(["--set", setting]);
        }
        command.args(more);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        self.end(self.command(arguments))
    }

    /// Runs a command to its end.
    pub fn end(&self, mut command: Command) -> CommandOutput {
        let output = command.output().unwrap();
        CommandOutput {
            stdout: self.normal(&output.stdout),
            stderr: self.normal(&output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }

    /// Replaces the path of the workspace by `[HERE]`.
    pub fn normal(&self, bytes: &[u8]) -> String {
        let here = self.folder.canonicalize().unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        text.replace(here.to_str().unwrap(), "[HERE]").replace(self.folder.to_str().unwrap(), "[HERE]")
    }
}

impl CommandOutput {
    /// The document on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}:\n{}", self.stdout))
    }

    /// Fails and shows the output unless the command exited with `code`.
    #[allow(clippy::return_self_not_must_use)] // many tests check the exit code alone
    #[track_caller]
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless standard output contains all of this.
    #[track_caller]
    pub fn prints(&self, parts: &[&str]) {
        for part in parts {
            assert!(
                self.stdout.contains(part),
                "no {part:?} in stdout:\n{}\nstderr:\n{}",
                self.stdout,
                self.stderr
            );
        }
    }

    /// Fails unless standard error contains all of this.
    #[track_caller]
    pub fn reports(&self, parts: &[&str]) {
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in stderr:\n{}", self.stderr);
        }
    }
}
