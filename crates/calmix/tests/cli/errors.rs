//! Errors that name the place and the feature, and their colour.

use super::new_workspace;

/// A system's error names the file or stream.
#[cfg(target_os = "linux")]
#[test]
fn errors_of_the_system_name_the_place() {
    let workspace = new_workspace().with_garments();
    // No user can create a folder there, not even root.
    let output = workspace.run(&["prepare", "garments", "--to", "/sys/nowhere/table"]).with_code(2);
    output.reports(&["error: /sys/nowhere: "]);
    let mut command = workspace.command(&["recipes"]);
    command.stdout(std::fs::File::options().write(true).open("/dev/full").unwrap());
    let output = command.stderr(std::process::Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "error: cannot write to standard output: No space left on device (os error 28)\n");
    assert_eq!(output.status.code(), Some(1));
}

/// What `calmix` writes about a missing folder, without a terminal and on one (by `script`, which every Linux has).
#[cfg(target_os = "linux")]
#[test]
fn colour_follows_the_variables_and_the_terminal() {
    const RED: &str = "\x1b[1;31merror:\x1b[0m ";
    let workspace = new_workspace();
    let variables = ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM", "CI"];
    let piped = |set: &[(&str, &str)]| {
        let mut command = workspace.command(&["inspect", "nowhere"]);
        for name in variables {
            command.env_remove(name);
        }
        command.envs(set.iter().copied());
        workspace.end(command).with_code(2).stderr.starts_with(RED)
    };
    let terminal = |set: &[(&str, &str)]| {
        let mut command = std::process::Command::new("script");
        for name in variables {
            command.env_remove(name);
        }
        command.current_dir(workspace.path("")).stdin(std::process::Stdio::null()).envs(set.iter().copied());
        let program = env!("CARGO_BIN_EXE_calmix");
        command.args(["-qec", &format!("exec '{program}' inspect nowhere"), "/dev/null"]);
        workspace.end(command).with_code(2).stdout.starts_with(RED)
    };
    let xterm = ("TERM", "xterm-256color");
    assert!(!piped(&[xterm]));
    assert!(piped(&[("CLICOLOR_FORCE", "1")]));
    assert!(!piped(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(terminal(&[xterm]));
    assert!(!terminal(&[("TERM", "dumb")]));
    assert!(!terminal(&[xterm, ("NO_COLOR", "1")]));
    assert!(terminal(&[xterm, ("NO_COLOR", "")]));
    assert!(!terminal(&[xterm, ("CLICOLOR", "0")]));
    assert!(terminal(&[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")]));
}

#[cfg(not(feature = "https"))]
#[test]
fn commands_without_their_feature_name_it() {
    let push = ["push", "run", "--mlflow", "http://127.0.0.1:5000"];
    for command in [&push[..], &["weights", "get", "owner/name"]] {
        let refused = new_workspace().run(command).with_code(2);
        refused.reports(&["built without the feature `https`", "try: cargo install", "--features https"]);
    }
}
