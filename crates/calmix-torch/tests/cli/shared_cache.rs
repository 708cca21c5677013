//! A cache of features in a folder that two users share.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use calmix_testkit::tier;
use calmix_testkit::workspace::{CommandOutput, Workspace};

use super::fixture::Fixture;

/// A command as another user, who can read what root can read (libtorch may be in root's home) and write what is the user's.
fn as_user(user: u32, command: &Command) -> Command {
    let user = user.to_string();
    let mut other = Command::new("setpriv");
    other.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    other.args(["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]);
    other.arg(command.get_program()).args(command.get_args()).current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

fn train(workspace: &Workspace, user: u32, run: &str) -> CommandOutput {
    workspace.end(as_user(user, &workspace.head_training(&["--run-dir", run])))
}

/// The pages of features of a user.
fn pages(workspace: &Workspace, user: u32) -> Vec<PathBuf> {
    let folders = fs::read_dir(workspace.path("features")).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let is_page = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("page-");
    files.filter(|path| is_page(path) && fs::metadata(path).unwrap().uid() == user).collect()
}

/// Swaps the bytes of the first and the second half of the vectors, with the right hash.
fn poison(page: &Path) {
    let bytes = fs::read(page).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let (head, data) = bytes.split_at(8 + length);
    let mut header: serde_json::Value = serde_json::from_slice(&head[8..]).unwrap();
    let range = header["vectors"]["data_offsets"].clone();
    let [start, end] = [0, 1].map(|n| range[n].as_u64().unwrap() as usize);
    let mut data = data.to_vec();
    data[start..end].rotate_left((end - start) / 2);
    let hash = calmix_torch::run::model_info::ModelInfo::hash(&data[start..end]);
    header["__metadata__"]["blake3"] = hash.into();
    let header = header.to_string();
    assert!(header.len() <= length, "{header}");
    let header = format!("{header:<length$}");
    fs::write(page, [&bytes[..8], header.as_bytes(), &data].concat()).unwrap();
}

/// One user's poisoned features are nothing that another user trains on; each has a cache that is used again.
#[test]
fn features_of_another_user_are_not_used() {
    let workspace = Fixture::Weights.copy();
    let is_able =
        as_user(1001, &workspace.command(&["--version"])).status().is_ok_and(|status| status.success());
    if !is_able {
        return tier::skipped("not root, or no setpriv");
    }
    // As /tmp is: only the owner of a file can remove it.
    fs::set_permissions(workspace.folder(), fs::Permissions::from_mode(0o1777)).unwrap();
    chown(workspace.path("own"), Some(1001), Some(1001)).unwrap();
    fs::create_dir(workspace.path("features")).unwrap();
    fs::set_permissions(workspace.path("features"), fs::Permissions::from_mode(0o1777)).unwrap();
    let first = train(&workspace, 1001, "alone").with_code(0);
    assert!(!first.stderr.contains("another user"), "{}", first.stderr);
    let honest = fs::read(workspace.path("alone/model.safetensors")).unwrap();
    for page in pages(&workspace, 1001) {
        poison(&page);
    }
    // It does poison: the user who trusts it gets another model.
    train(&workspace, 1001, "poisoned").with_code(0);
    assert!(fs::read(workspace.path("poisoned/model.safetensors")).unwrap() != honest);
    for run in ["second", "third"] {
        let trained = train(&workspace, 1002, run).with_code(0);
        trained.reports(&["features/", "another user"]);
        assert_eq!(trained.stderr.matches("another user").count(), 1, "{}", trained.stderr);
        assert!(fs::read(workspace.path(run).join("model.safetensors")).unwrap() == honest, "{run}");
    }
    assert_eq!(pages(&workspace, 1002).len(), pages(&workspace, 1001).len());
    // Root's are everybody's.
    for page in pages(&workspace, 1002) {
        chown(&page, Some(0), Some(0)).unwrap();
        chown(page.parent().unwrap(), Some(0), Some(0)).unwrap();
    }
    train(&workspace, 1002, "fourth").with_code(0);
    assert_eq!(pages(&workspace, 1002).len(), 0);
}
