//! The templates in `docs/guides/templates` for clusters: they are well-formed, and calmix accepts their arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use calmix_testkit::workspace::Workspace;

use crate::program::new_workspace;

fn template(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/templates").join(name)
}

fn program(folder: &Path, name: &str, script: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn slurm_job_starts_calmix_and_requeues() {
    let workspace = new_workspace();
    let programs = workspace.path("programs");
    // Without its options, srun is the program that it starts.
    program(&programs, "srun", r#"while [ "${1#--}" != "$1" ]; do shift; done; exec "$@""#);
    program(&programs, "scontrol", r#"echo "$@" > requeued"#);
    let submit = || -> Output {
        let own = crate::program::calmix().parent().unwrap().display().to_string();
        let path = format!("{}:{own}:{}", programs.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("bash");
        command.arg(template("slurm.sbatch")).args(["cpu-fashion-mnist", "nowhere", "run"]);
        command.current_dir(workspace.path("."));
        command.env("PATH", path).env("SLURM_NTASKS", "2").env("SLURM_JOB_ID", "7").output().unwrap()
    };
    let output = submit();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("nowhere"), "{error}");
    assert!(!workspace.path("requeued").exists());

    program(&programs, "calmix", "exit 75");
    assert_eq!(submit().status.code(), Some(75));
    assert_eq!(fs::read_to_string(workspace.path("requeued")).unwrap(), "requeue 7\n");

    // Nothing was saved, and the user wants the job to end.
    fs::remove_file(workspace.path("requeued")).unwrap();
    program(&programs, "calmix", "exit 131");
    assert_eq!(submit().status.code(), Some(131));
    assert!(!workspace.path("requeued").exists());
}

#[test]
fn the_job_for_kubeflow_has_arguments_that_calmix_understands() {
    let text = fs::read_to_string(template("kubeflow-trainjob.yaml")).unwrap();
    let indented = |line: &str| line.len() - line.trim_start().len();
    assert!(text.lines().all(|line| !line.contains('\t') && indented(line) % 2 == 0));
    let arguments: Vec<&str> = text
        .lines()
        .skip_while(|line| line.trim() != "args:")
        .skip(1)
        .take_while(|line| indented(line) == 6)
        .filter_map(|line| line.trim().strip_prefix("- "))
        .collect();
    let Some((&"calmix", arguments)) = arguments.split_first() else { panic!("{arguments:?}") };
    let output = new_workspace().run(arguments);
    assert_eq!(output.code, 2, "{}", output.stderr);
    // Nothing but the dataset is missing.
    assert!(output.stderr.contains("/shared/imagenet"), "{}", output.stderr);
}

/// A workspace with photos and a finished run on them.
fn trained() -> Workspace {
    let workspace = new_workspace().with_photos();
    workspace.end(workspace.folder_training("photos", &["--run-dir", "run", "--quiet"])).with_code(0);
    workspace
}

/// The rows of all outputs whose names begin so, without their headers, sorted.
fn rows(workspace: &Workspace, outputs: &[&str]) -> Vec<String> {
    let text = outputs.iter().map(|name| fs::read_to_string(workspace.path(name)).unwrap());
    let mut rows: Vec<String> =
        text.flat_map(|text| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()).collect();
    rows.sort();
    rows
}

fn path_with(programs: &Path) -> String {
    let own = crate::program::calmix().parent().unwrap().display().to_string();
    format!("{}:{own}:{}", programs.display(), std::env::var("PATH").unwrap())
}

#[test]
fn slurm_array_predicts_every_image_once() {
    let workspace = trained();
    let programs = workspace.path("programs");
    program(&programs, "scontrol", r#"echo "$@" > requeued"#);
    let submit = |task: &str| -> Output {
        let mut command = Command::new("bash");
        command.arg(template("slurm-predict.sbatch")).args(["run", "photos", "out.csv"]);
        command.current_dir(workspace.path(".")).env("PATH", path_with(&programs));
        command.env("SLURM_ARRAY_TASK_ID", task).env("SLURM_ARRAY_TASK_COUNT", "2");
        command.env("SLURM_ARRAY_JOB_ID", "7").env("SLURM_CPUS_PER_TASK", "1").output().unwrap()
    };
    // Each task twice, as after a requeue.
    for task in ["1", "2", "1", "2"] {
        let output = submit(task);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let whole = workspace.run(&["predict", "run", "photos", "--threads", "1"]).with_code(0);
    fs::write(workspace.path("whole.csv"), whole.stdout).unwrap();
    assert_eq!(rows(&workspace, &["out-1-of-2.csv", "out-2-of-2.csv"]), rows(&workspace, &["whole.csv"]));
    assert!(!workspace.path("requeued").exists());
    program(&programs, "calmix", "exit 75");
    assert_eq!(submit("2").status.code(), Some(75));
    assert_eq!(fs::read_to_string(workspace.path("requeued")).unwrap(), "requeue 7_2\n");
    // SIGTERM to the script reaches calmix, and its code comes back.
    program(
        &programs,
        "calmix",
        "trap 'exit 75' TERM; kill -TERM $PPID; for n in $(seq 100); do sleep 0.1; done",
    );
    assert_eq!(submit("1").status.code(), Some(75));
}

#[test]
fn kubernetes_container_predicts_every_image_once() {
    let workspace = trained();
    let text = fs::read_to_string(template("kubernetes-predict.yaml")).unwrap();
    let indented = |line: &str| line.len() - line.trim_start().len();
    assert!(text.lines().all(|line| !line.contains('\t') && indented(line) % 2 == 0));
    let mut lines = text.lines().skip_while(|line| line.trim() != "- >-").skip(1).peekable();
    let depth = indented(lines.peek().unwrap());
    // Folded, as YAML does it.
    let command: Vec<&str> = lines.take_while(|line| indented(line) == depth).map(str::trim).collect();
    let command = command.join(" ");
    for index in ["0", "1", "2", "1"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &command]).current_dir(workspace.path("."));
        shell.env("PATH", path_with(&workspace.path("programs"))).env("JOB_COMPLETION_INDEX", index);
        shell.env("RUN", "run").env("INPUT", "photos").env("OUTPUT", "out.csv");
        let output = shell.env("PODS", "3").env("THREADS", "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let whole = workspace.run(&["predict", "run", "photos", "--threads", "1"]).with_code(0);
    fs::write(workspace.path("whole.csv"), whole.stdout).unwrap();
    let parts = ["out-1-of-3.csv", "out-2-of-3.csv", "out-3-of-3.csv"];
    assert_eq!(rows(&workspace, &parts), rows(&workspace, &["whole.csv"]));
}
