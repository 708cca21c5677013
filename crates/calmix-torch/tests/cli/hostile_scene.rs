//! What the tests of hostile folders share: an honest run, a place outside it with a sentinel, and who reads a copy of it.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use calmix_testkit::workspace::Workspace;

use super::fixture::{Fixture, copy_folder};
use super::library::Library;
use super::measured::{Ended, Worst, measured};

/// The command that goes on with a run.
const RESUME: &str = "resume";
/// What stands in a place instead of the file or folder that belongs there.
pub(crate) const KINDS: &[&str] = &["file", "folder", "endless", "pipe", "hard link"];

/// An honest run, a place outside it with a sentinel, and room for hostile copies.
pub(crate) struct Scene {
    pub(crate) workspace: Workspace,
    /// The last one goes on with the run; the others leave it as it is.
    commands: &'static [&'static str],
}

impl Scene {
    /// A run of a whole network.
    pub(crate) fn of_network() -> Self {
        let scene = Self::new(Fixture::Garments.copy(), "first", &["inspect", "evaluate", "report", RESUME]);
        // As a run that was killed after its first checkpoint, with the model of its end.
        fs::remove_dir_all(scene.workspace.path("honest/checkpoints/step-000000008")).unwrap();
        scene
    }

    /// A run of a head on frozen features, which has them in its folder.
    pub(crate) fn of_head() -> Self {
        Self::new(Fixture::Head.copy(), "run", &["inspect", "evaluate", "report", "predict", RESUME])
    }

    fn new(workspace: Workspace, run: &str, commands: &'static [&'static str]) -> Self {
        fs::rename(workspace.path(run), workspace.path("honest")).unwrap();
        make_outside(&workspace);
        Self { workspace, commands }
    }

    /// Takes the result of a run away, as if it had been killed before, unless something else is in its place: a head goes on.
    pub(crate) fn unfinish(run: &Path) {
        let result = run.join("result.json");
        if result.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
            fs::remove_file(result).unwrap();
        }
    }

    /// A copy of the honest run.
    pub(crate) fn copy(&self) -> PathBuf {
        let to = self.workspace.path("hostile");
        let _ = fs::remove_dir_all(&to);
        copy_folder(&self.workspace.path("honest"), &to);
        to
    }

    /// Puts something hostile where a file or a folder of the run is.
    pub(crate) fn put(&self, run: &Path, place: &str, kind: &str) {
        put(&self.workspace, &run.join(place), kind);
    }
}

/// Makes the folder `outside`, with what nothing may touch.
pub(crate) fn make_outside(workspace: &Workspace) {
    let outside = workspace.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("sentinel"), "precious\n").unwrap();
    // What a run would take for its own and remove.
    for name in [".step-000000004-test-ema.safetensors.tmp-1-0", ".recipe.toml.tmp-1-0"] {
        fs::write(outside.join(name), "precious\n").unwrap();
    }
    fs::create_dir(outside.join(".step-000000001.tmp-1-0")).unwrap();
    let old = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    for path in [outside.clone(), outside.join("sentinel")] {
        File::open(path).unwrap().set_times(old).unwrap();
    }
}

/// What is outside: every name, every time, every byte.
pub(crate) fn outside_of(workspace: &Workspace) -> Vec<(PathBuf, SystemTime, Vec<u8>)> {
    let folder = workspace.path("outside");
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.push(folder);
    paths.sort();
    let seen = |path: PathBuf| {
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        let bytes = fs::read(&path).unwrap_or_default();
        (path, time, bytes)
    };
    paths.into_iter().map(seen).collect()
}

/// Puts something hostile where a file or a folder is.
pub(crate) fn put(workspace: &Workspace, path: &Path, kind: &str) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        let _ = fs::remove_file(path);
    }
    let outside = workspace.path("outside");
    match kind {
        "file" => symlink(outside.join("sentinel"), path).unwrap(),
        "folder" => symlink(outside, path).unwrap(),
        "endless" => symlink("/dev/zero", path).unwrap(),
        "hard link" => fs::hard_link(outside.join("sentinel"), path).unwrap(),
        _ => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
    }
}

/// Runs the commands on the copy of the run: each in a process of its own, or all in one that calls the library.
pub(crate) struct Reader<'a> {
    scene: &'a Scene,
    library: Option<Library>,
    /// How the commands end on the honest run.
    honest: Vec<Ended>,
    /// The longest time and the most memory of a command on a hostile folder, and how many there were.
    worst: Worst,
}

/// Prints what it took, for who runs a test with `--no-capture`.
impl Drop for Reader<'_> {
    #[allow(clippy::print_stderr)]
    fn drop(&mut self) {
        let by = if self.library.is_some() { "the library" } else { "a process" };
        eprintln!("by {by}: {}", self.worst);
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(scene: &'a Scene, library: Option<Library>) -> Self {
        let mut reader = Self { scene, library, honest: Vec::new(), worst: Worst::default() };
        for command in scene.commands {
            // Peaks are sampled, and a short one may be missed.
            let [first, second] = [0, 1].map(|_| {
                let run = scene.copy();
                if *command == RESUME {
                    Scene::unfinish(&run);
                }
                reader.run(command)
            });
            reader.honest.push(Ended { peak: first.peak.max(second.peak), ..second });
        }
        reader
    }

    fn run(&mut self, command: &str) -> Ended {
        match &mut self.library {
            None => {
                let images: &[&str] =
                    if command == "predict" { &["own/test", "--threads", "1"] } else { &[] };
                measured(self.scene.workspace.command(&[&[command, "hostile"], images].concat()))
            }
            Some(library) => library.call(command, &self.scene.workspace.path("hostile")),
        }
    }

    /// Runs every command on a hostile folder and compares it with the honest one.
    #[track_caller]
    pub(crate) fn endures(&mut self, what: &str, damage: impl Fn(&Path)) -> Vec<String> {
        let mut said = Vec::new();
        let run = self.scene.copy();
        damage(&run);
        for (n, command) in self.scene.commands.iter().enumerate() {
            if *command == RESUME {
                Scene::unfinish(&run);
            }
            let before = outside_of(&self.scene.workspace);
            let ended = self.run(command);
            let what = format!("{command}, {what}");
            assert!(
                outside_of(&self.scene.workspace) == before,
                "{what}: touched what is outside\n{}",
                ended.text
            );
            ended.is_modest(&self.honest[n], &what);
            self.worst.count(&ended);
            said.push(ended.text);
        }
        said
    }
}
