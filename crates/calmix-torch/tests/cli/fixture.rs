//! Workspaces with a trained run in them, trained once and copied for each test.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use calmix_testkit::workspace::Workspace;
use calmix_testkit::workspace::folders::files;
use calmix_torch::run::model_info::ModelInfo;

use crate::program::{calmix, new_workspace};

/// What a test finds in its workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fixture {
    /// Garments, and the finished run `first` of eight steps on them, with a checkpoint after four and events for
    /// TensorBoard.
    Garments,
    /// Photos, and the finished run `run` of four steps with held-out labels.
    Photos,
    /// Photos, the folder `own` with splits of them, and the weights `tiny`, to train a head on.
    Weights,
    /// The same, and the finished run `run` of a head of eight steps, with a checkpoint after four and its features in its
    /// folder.
    Head,
}

impl Fixture {
    /// Copies the fixture into a workspace. The first process that needs it creates it.
    pub(crate) fn copy(self) -> Workspace {
        // Tables name the folder of their dataset without links.
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap();
        let lock = File::create(target.join("fixtures.lock")).unwrap();
        lock.lock().unwrap();
        let all = current(&target);
        let kept = all.join(format!("{self:?}"));
        let complete = all.join(format!("{self:?}.complete"));
        if !complete.exists() {
            // What a test left that was killed while it made one.
            let _ = fs::remove_dir_all(&kept);
            fs::create_dir_all(&kept).unwrap();
            self.fill(Workspace::at(kept.clone(), calmix()));
            File::create(complete).unwrap();
        }
        let workspace = new_workspace();
        copy_folder(&kept, workspace.folder());
        move_runs(workspace.folder(), &kept, &workspace.folder().canonicalize().unwrap());
        workspace
    }

    fn fill(self, workspace: Workspace) {
        match self {
            Self::Garments => {
                let workspace = workspace.with_garments();
                workspace.end(workspace.training(8, &["--run-dir", "first", "--tensorboard"])).with_code(0);
            }
            Self::Photos => {
                let workspace = workspace.with_photos();
                let more = ["--run-dir", "run", "--set", "train.steps=4", "--set", "labels.validation=0.5"];
                workspace.end(workspace.folder_training("photos", &more)).with_code(0);
            }
            Self::Weights => {
                let workspace = workspace.with_photos().with_validation_folder();
                workspace.end(workspace.folder_training("photos", &["--run-dir", "first"])).with_code(0);
                let add = ["weights", "add", "first/model.safetensors", "--name", "tiny"];
                workspace.run(&add).with_code(0);
            }
            Self::Head => {
                let place = workspace.folder().to_owned();
                Self::Weights.fill(workspace);
                let workspace = Workspace::at(place, calmix());
                let more = ["--run-dir", "run", "--set", "train.steps=8", "--set", "network.cache="];
                workspace.end(workspace.head_training(&more)).with_code(0);
            }
        }
    }
}

/// The folder of the fixtures that these programs made. Those of other builds are removed: the target folder outlives them.
fn current(target: &Path) -> PathBuf {
    let programs =
        [calmix(), PathBuf::from(env!("CARGO_BIN_EXE_calmix-torch")), std::env::current_exe().unwrap()];
    // Reading the programs takes longer than copying a fixture, so their hash is remembered with their lengths and times.
    let metadata = programs.each_ref().map(|program| fs::metadata(program).unwrap());
    let stamp = metadata.map(|it| format!("{} {:?}", it.len(), it.modified().unwrap())).join(", ");
    let known = target.join("fixtures.key");
    let text = fs::read_to_string(&known).unwrap_or_default();
    if let Some((_, name)) = text.split_once('\n').filter(|(of, _)| *of == stamp) {
        return target.join(name);
    }
    let hashes = programs.map(|program| ModelInfo::hash(&fs::read(program).unwrap()));
    let name = format!("fixtures-{}", ModelInfo::hash(hashes.concat().as_bytes()));
    for entry in fs::read_dir(target).unwrap() {
        let entry = entry.unwrap();
        let found = entry.file_name().to_string_lossy().into_owned();
        if found.starts_with("fixtures-") && found != name {
            fs::remove_dir_all(entry.path()).unwrap();
        }
    }
    fs::write(known, format!("{stamp}\n{name}")).unwrap();
    target.join(name)
}

/// Copies what is in a folder. Times of files are kept, for a prepared table knows those of its dataset.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).unwrap();
            let modified = entry.metadata().unwrap().modified().unwrap();
            File::options().write(true).open(target).unwrap().set_modified(modified).unwrap();
        }
    }
}

/// Files of a run that name the folder of its dataset.
const NAME_PATHS: [&str; 3] = ["recipe.toml", "source.json", "report.json"];

/// Changes the paths of datasets in runs and their tables, which are absolute.
fn move_runs(folder: &Path, from: &Path, to: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            move_runs(&path, from, to);
        } else if path.file_name().is_some_and(|name| NAME_PATHS.iter().any(|it| name == *it)) {
            let text =
                fs::read_to_string(&path).unwrap().replace(from.to_str().unwrap(), to.to_str().unwrap());
            if folder.join("MANIFEST").exists() {
                change_checkpoint(folder, "recipe.toml", text.as_bytes());
            } else {
                fs::write(&path, text).unwrap();
            }
        }
    }
}

/// Writes a file of a checkpoint, with its length and hash into the manifest.
pub(crate) fn change_checkpoint(checkpoint: &Path, name: &str, bytes: &[u8]) {
    let path = checkpoint.join(name);
    let entry =
        |bytes: &[u8]| format!("\"length\":{},\"blake3\":\"{}\"", bytes.len(), ModelInfo::hash(bytes));
    let before = entry(&fs::read(&path).unwrap());
    fs::write(&path, bytes).unwrap();
    let manifest = fs::read_to_string(checkpoint.join("MANIFEST")).unwrap();
    let json = manifest.lines().next().unwrap();
    assert!(json.contains(&before), "{before} in {json}");
    let json = json.replace(&before, &entry(bytes));
    let hash = ModelInfo::hash(json.as_bytes());
    fs::write(checkpoint.join("MANIFEST"), format!("{json}\n{hash}\n")).unwrap();
}

/// A copy has the bytes of a run that was trained where the copy is, and names no folder of the original.
#[test]
fn fixture_is_the_run_trained_in_place() {
    for fixture in [Fixture::Garments, Fixture::Photos, Fixture::Head] {
        let workspace = fixture.copy();
        let place = workspace.folder().to_owned();
        let origin = env!("CARGO_TARGET_TMPDIR").as_bytes();
        let read = |name: &PathBuf| (name.clone(), fs::read(place.join(name)).unwrap());
        let copied: Vec<_> = files(&place).iter().map(read).collect();
        for (name, bytes) in &copied {
            let names_origin = bytes.windows(origin.len()).any(|window| window == origin);
            assert!(!names_origin, "{fixture:?}: {}", name.display());
        }
        fs::remove_dir_all(&place).unwrap();
        fs::create_dir(&place).unwrap();
        fixture.fill(Workspace::at(place.clone(), calmix()));
        // What depends on the clock: the lock, how long steps took, when files of the dataset were written.
        let is_timed = |name: &Path| {
            let name = name.to_str().unwrap();
            let ends = ["calmix.lock", "timing.jsonl", "prepared/source.json"];
            ends.iter().any(|end| name.ends_with(end)) || name.contains("tensorboard/")
        };
        let trained: Vec<_> = files(&place).iter().map(read).filter(|(name, _)| !is_timed(name)).collect();
        let copied: Vec<_> = copied.into_iter().filter(|(name, _)| !is_timed(name)).collect();
        let names = |all: &[(PathBuf, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&copied), names(&trained), "{fixture:?}");
        for ((name, copied), (_, trained)) in copied.iter().zip(&trained) {
            assert!(copied == trained, "{fixture:?}: {}", name.display());
        }
    }
}
