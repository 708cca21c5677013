//! Libraries that another user could have planted are not loaded. A planted one writes a file as soon as it is loaded.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use calmix_testkit::tier::skipped;

use super::child::child;

/// Where a planted library leaves its mark, and folders to plant it in.
struct Scene {
    folder: tempfile::TempDir,
    planted: PathBuf,
}

impl Scene {
    /// Compiles a library that leaves a mark; `None` without a C compiler.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("planted.c");
        let planted = folder.path().join("planted.so");
        let mark = folder.path().join("mark");
        let code = format!(
            "#include <stdio.h>\n__attribute__((constructor)) static void loaded(void) {{ FILE *mark = fopen({:?}, \"w\"); \
             if (mark) fclose(mark); }}\n",
            mark.to_str().unwrap()
        );
        fs::write(&source, code).unwrap();
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&planted, &source]).status();
        if !compiled.is_ok_and(|status| status.success()) {
            skipped("there is no C compiler `cc`");
            return None;
        }
        Some(Self { folder, planted })
    }

    /// Plants the library under a name, in a folder of its own with these permissions.
    fn plant(&self, place: &str, mode: u32) -> PathBuf {
        let file = self.folder.path().join(place);
        let folder = file.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        fs::copy(&self.planted, &file).unwrap();
        fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
        file
    }

    fn was_loaded(&self) -> bool {
        self.folder.path().join("mark").exists()
    }

    /// Runs the child in `folder`; returns its error, after which no planted library has left a mark.
    #[track_caller]
    fn refusal(&self, folder: &Path, variables: &[(&str, &Path)]) -> String {
        let answer = child(folder, variables);
        assert!(!self.was_loaded(), "a planted library was loaded: {answer:?}");
        assert!(answer.first_line.starts_with("error: "), "{answer:?}");
        assert!(answer.features.is_empty());
        answer.first_line
    }
}

/// What shows that the marks of the other tests would appear: its own folder is trusted, so it is loaded, and found not to be
/// ONNX Runtime.
#[test]
fn planted_library_leaves_a_mark_when_loaded() {
    let Some(scene) = Scene::new() else { return };
    let own = scene.plant("own/libonnxruntime.so", 0o755);
    let answer = child(scene.folder.path(), &[("ORT_DYLIB_PATH", &own)]);
    assert!(scene.was_loaded(), "{answer:?}");
    assert!(answer.first_line.contains("cannot be loaded as ONNX Runtime"), "{answer:?}");
}

#[test]
fn library_in_the_working_folder_is_not_loaded() {
    let Some(scene) = Scene::new() else { return };
    let mut planted = scene.plant("work/libonnxruntime.so", 0o755);
    for name in
        ["libonnxruntime.so.1.31.1", "libonnxruntime.dylib", "onnxruntime/capi/libonnxruntime.so.1.31.1"]
    {
        planted = scene.plant(&format!("work/{name}"), 0o755);
    }
    assert!(planted.is_file());
    let error = scene.refusal(&scene.folder.path().join("work"), &[]);
    assert!(error.contains("is not installed") && error.contains("pip install onnxruntime"), "{error}");
}

#[test]
fn relative_path_is_not_loaded() {
    let Some(scene) = Scene::new() else { return };
    scene.plant("work/libonnxruntime.so", 0o755);
    let work = scene.folder.path().join("work");
    for relative in ["libonnxruntime.so", "./libonnxruntime.so", "../work/libonnxruntime.so"] {
        let error = scene.refusal(&work, &[("ORT_DYLIB_PATH", Path::new(relative))]);
        assert!(error.contains("is not an absolute path"), "{error}");
    }
}

#[test]
fn library_under_a_name_of_the_system_is_not_loaded() {
    let Some(scene) = Scene::new() else { return };
    let planted = scene.plant("system/libonnxruntime.so", 0o755);
    let system = planted.parent().unwrap();
    let error =
        scene.refusal(scene.folder.path(), &[("LD_LIBRARY_PATH", system), ("DYLD_LIBRARY_PATH", system)]);
    assert!(error.contains("is not installed"), "{error}");
}

#[test]
fn library_that_others_can_write_is_not_loaded() {
    let Some(scene) = Scene::new() else { return };
    for (place, mode) in [("open/libonnxruntime.so", 0o777), ("sticky/libonnxruntime.so", 0o1777)] {
        let planted = scene.plant(place, mode);
        let error = scene.refusal(scene.folder.path(), &[("ORT_DYLIB_PATH", &planted)]);
        assert!(error.contains("can be written by other users"), "{error}");
    }
    let planted = scene.plant("own/libonnxruntime.so", 0o755);
    fs::set_permissions(&planted, Permissions::from_mode(0o666)).unwrap();
    let error = scene.refusal(scene.folder.path(), &[("ORT_DYLIB_PATH", &planted)]);
    assert!(error.contains("can be written by other users"), "{error}");
}

#[test]
fn library_in_an_open_cache_is_not_loaded() {
    let Some(scene) = Scene::new() else { return };
    scene.plant("cache/onnxruntime/1.31.1/libonnxruntime.so.1.31.1", 0o777);
    let error = scene.refusal(scene.folder.path(), &[]);
    assert!(error.contains("can be written by other users"), "{error}");
}

#[test]
fn library_of_another_user_is_not_loaded() {
    let Some(scene) = Scene::new() else { return };
    let planted = scene.plant("own/libonnxruntime.so", 0o755);
    if chown(&planted, Some(12345), None).is_err() {
        return skipped("only root can give a file to another user");
    }
    let error = scene.refusal(scene.folder.path(), &[("ORT_DYLIB_PATH", &planted)]);
    assert!(error.contains("belongs to another user"), "{error}");
}
