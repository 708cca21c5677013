//! `calmix` without libtorch: what it costs to start, and how it becomes `calmix-torch`, which is a script here.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest time of `calmix --help`, the median of several; a busy machine takes longer than an idle one.
const MAX_HELP_TIME: Duration = Duration::from_millis(100);
/// The most memory of `calmix --help`, in kB. The HTTP client of object storage, not optimised, is mapped too.
const MAX_MEMORY_KIB: u64 = if cfg!(feature = "cloud") { 65_000 } else { 50_000 };

/// A folder with a copy of `calmix` in it, and no `calmix-torch` beside it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(env!("CARGO_BIN_EXE_calmix"), folder.path().join("calmix")).unwrap();
        Self { folder }
    }

    /// Writes a `calmix-torch` that prints its place, its process and its arguments, then its standard input.
    fn script(&self, folder: &str) -> PathBuf {
        let program = self.folder.path().join(folder).join("calmix-torch");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        let mut file = fs::File::create(&program).unwrap();
        writeln!(file, "#!/bin/sh\necho {folder} $$ \"$@\" $CALMIX_CALLER_COMMIT\ncat\nexit 75").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        program
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.folder.path().join("calmix"));
        command.args(arguments).env("PATH", "/usr/bin:/bin").env_remove("CALMIX_TORCH").stdin(Stdio::null());
        command
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first word that the script printed: where it is.
fn started(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(75), "{}", text(&output.stderr));
    text(&output.stdout).split(' ').next().unwrap().to_owned()
}

#[test]
fn libtorch_gets_the_environment_that_gpus_need() {
    let place = Place::new();
    let program = place.script("other");
    let shown = "#!/bin/sh\necho $CUBLAS_WORKSPACE_CONFIG $TORCH_NCCL_ASYNC_ERROR_HANDLING\n";
    fs::write(&program, shown).unwrap();
    let output = |command: &mut Command| {
        let output = command.env("CALMIX_TORCH", &program).output().unwrap();
        text(&output.stdout)
    };
    let mut command = place.command(&["doctor"]);
    command.env_remove("CUBLAS_WORKSPACE_CONFIG").env_remove("TORCH_NCCL_ASYNC_ERROR_HANDLING");
    assert_eq!(output(&mut command), ":4096:8 0\n");
    // What the user sets is kept.
    assert_eq!(output(command.env("CUBLAS_WORKSPACE_CONFIG", ":16:8")), ":16:8 0\n");
}

#[test]
fn missing_program_is_named_in_a_sentence() {
    let output = Place::new().command(&["doctor"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(
        error.starts_with(
            "error: this command needs calmix-torch, which trains networks and is not installed"
        ),
        "{error}"
    );
    assert!(error.contains("\ntry: in a clone of calmix, `cargo xtask setup && cargo install"), "{error}");
    assert!(error.contains("`pip install --find-links DIST \"calmix[cpu]\"`"), "{error}");
}

#[test]
fn process_and_standard_input_stay_the_same() {
    let place = Place::new();
    place.script(".");
    let mut command = place.command(&["doctor", "--threads", "3"]);
    command.current_dir(&place.folder);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let process = child.id();
    child.stdin.take().unwrap().write_all(b"photo.jpg\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75), "the exit code is that of calmix-torch");
    let printed = text(&output.stdout);
    assert!(printed.starts_with(&format!(". {process} doctor --threads 3 ")), "{printed}");
    assert!(printed.ends_with("\nphoto.jpg\n"), "{printed}");
}

/// With weights, a folder of images is a head's unless `calmix-torch` sees a GPU.
#[test]
fn gpu_of_the_other_program_decides_the_recipe() {
    let place = Place::new();
    let weights = place.folder.path().join("weights");
    for folder in ["weights/tiny", "photos/cat"] {
        fs::create_dir_all(place.folder.path().join(folder)).unwrap();
    }
    fs::write(weights.join("tiny/model.safetensors"), "").unwrap();
    let program = place.script(".");
    for (device, is_there) in [("cpu", false), ("cuda:0", true)] {
        let answers = format!(
            "#!/bin/sh\ncase $1 in doctor) echo '{{\"device\": \"{device}\"}}';; *) echo . \"$@\"; exit 75;; esac\n"
        );
        fs::write(&program, answers).unwrap();
        let mut command = place.command(&["train", "--data", "photos"]);
        let output = command.current_dir(&place.folder).env("CALMIX_WEIGHTS", &weights).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(if is_there { 75 } else { 2 }), "{device}: {error}");
        assert_eq!(error.contains("tiny"), !is_there, "{error}");
    }
}

#[test]
fn variable_wins_over_neighbour_and_neighbour_over_path() {
    let place = Place::new();
    let path = place.script("path");
    let doctor = ["doctor"];
    let mut on_path = place.command(&doctor);
    on_path.env("PATH", format!("{}:/usr/bin:/bin", path.parent().unwrap().display()));
    assert_eq!(started(&on_path.output().unwrap()), "path");
    place.script(".");
    assert_eq!(started(&on_path.output().unwrap()), ".");
    on_path.env("CALMIX_TORCH", place.script("named"));
    assert_eq!(started(&on_path.output().unwrap()), "named");
}

/// An empty entry means the working folder, which may hold anything.
#[test]
fn working_folder_on_path_is_ignored() {
    let place = Place::new();
    let working = place.script("working").parent().unwrap().to_owned();
    for path in ["", ":/usr/bin", "/usr/bin::/bin", ".", "../working:/bin"] {
        let mut command = place.command(&["doctor"]);
        let output = command.current_dir(&working).env("PATH", path).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{path}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains("nor on PATH"), "{path}");
    }
}

#[test]
fn commands_without_tensors_need_no_second_program() {
    let place = Place::new();
    for arguments in
        [&["--help"][..], &["--version"], &["recipes"], &["inspect", "cpu-folder"], &["train", "--help"]]
    {
        let output = place.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    }
    for arguments in
        [&["weights", "list"][..], &["prepare", "nowhere"], &["report", "nowhere"], &["compare", "nowhere"]]
    {
        let output = place.command(arguments).output().unwrap();
        assert!(!text(&output.stderr).contains("calmix-torch"), "{arguments:?}");
    }
}

#[test]
fn help_is_quick_and_small() {
    let program = Path::new(env!("CARGO_BIN_EXE_calmix"));
    let libraries = Command::new("ldd").arg(program).output().unwrap();
    assert!(!text(&libraries.stdout).contains("torch"), "{}", text(&libraries.stdout));
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        assert!(Command::new(program).arg("--help").output().unwrap().status.success());
        times.push(start.elapsed());
    }
    times.sort();
    assert!(times[times.len() / 2] < MAX_HELP_TIME, "{times:?}");
    // The limit on the data and the mappings of a process also limits what of them is in memory.
    let limited = format!("ulimit -v {MAX_MEMORY_KIB}; exec \"$0\" --help");
    let output = Command::new("sh").args(["-c", &limited]).arg(program).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}
