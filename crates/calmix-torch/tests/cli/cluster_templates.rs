//! The templates in `docs` for clusters: they are well-formed, and calmix accepts their arguments.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::workspace::Workspace;

fn template(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn program(folder: &Path, name: &str, script: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn slurm_job_starts_calmix_and_requeues() {
    let workspace = Workspace::new();
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
    let output = Workspace::new().run(arguments);
    assert_eq!(output.code, 2, "{}", output.stderr);
    // Nothing but the dataset is missing.
    assert!(output.stderr.contains("/shared/imagenet"), "{}", output.stderr);
}
