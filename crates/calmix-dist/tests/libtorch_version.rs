//! The build script reads the version of every kind of libtorch.

#[path = "../build/libtorch.rs"]
#[allow(dead_code, clippy::print_stdout)]
mod libtorch;

use std::fs;
use std::path::Path;

use libtorch::{Libtorch, NEEDED, version};

/// A folder with one file, and what the build script makes of it.
fn assessment(name: &str, text: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join(name);
    fs::create_dir_all(file.parent().expect("below the folder")).expect("folders");
    fs::write(&file, text).expect("written");
    let at = folder.path().to_owned();
    let found =
        Libtorch { libraries: at.join("lib"), headers: at.clone(), folder: at, named_by: "LIBTORCH".into() };
    found.check_version().map(|said_by| said_by.strip_prefix(&folder).expect("below").display().to_string())
}

#[test]
fn libtorch_version_is_read_from_every_kind() {
    let header = "#pragma once\n/// Major\n#define TORCH_VERSION_MAJOR 2\n\n#define TORCH_VERSION_MINOR 13\n\
                  #define TORCH_VERSION_PATCH 0\n#define TORCH_VERSION \\\n  \"x\"\n";
    let kinds = [
        ("version.py", "__all__ = ['__version__']\n__version__ = '2.13.0+cu130'\ndebug = False\n"),
        ("build-version", "2.13.0+cpu\n"),
        ("include/torch/headeronly/version.h", header),
        ("include/torch/csrc/api/include/torch/version.h", header),
    ];
    for (name, text) in kinds {
        assert_eq!(assessment(name, text).as_deref(), Ok(name));
        for other in
            [text.replace("13", "12"), text.replace("2.13.0", "2.13.0a0").replace("PATCH 0", "PATCH 1")]
        {
            let said = assessment(name, &other).expect_err("another version");
            assert!(
                said.starts_with("libtorch 2.1") && said.contains("(from LIBTORCH); calmix needs"),
                "{said}"
            );
        }
    }
}

#[test]
fn libtorch_without_version_is_refused() {
    for (name, text) in
        [("version.py", "version = 1"), ("version.h", "2.13.0"), ("include/torch/version.h", "")]
    {
        let said = assessment(name, text).expect_err("no version");
        assert!(
            said.starts_with("there is no libtorch in /") && said.contains("cargo xtask setup"),
            "{said}"
        );
    }
}

#[test]
fn linked_libtorch_is_the_checked_one() {
    let linked = Path::new(env!("CALMIX_LIBTORCH"));
    assert_eq!(version(linked).expect("a version").1, NEEDED);
}
