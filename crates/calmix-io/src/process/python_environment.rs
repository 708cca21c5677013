//! Finds the packages of the Python environment in which a program is installed, by pip, uv or pipx.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// Returns the package folders of the environment whose `bin`, or `Scripts` on Windows, contains this executable; empty if there
/// is none.
pub fn site_packages() -> Vec<PathBuf> {
    let executable = env::current_exe().and_then(|executable| executable.canonicalize());
    executable.map(|executable| of_executable(&executable)).unwrap_or_default()
}

fn of_executable(executable: &Path) -> Vec<PathBuf> {
    let Some(programs) = executable.parent() else { return Vec::new() };
    let Some(environment) = programs.parent() else { return Vec::new() };
    if programs.ends_with("Scripts") {
        return Some(environment.join("Lib").join("site-packages"))
            .filter(|found| found.is_dir())
            .into_iter()
            .collect();
    }
    if !programs.ends_with("bin") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for library in ["lib", "lib64"] {
        for python in entries(&environment.join(library)) {
            let name = python.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with("python3") {
                continue;
            }
            // Debian's system Python installs into `dist-packages`.
            for packages in ["site-packages", "dist-packages"] {
                found.extend(Some(python.join(packages)).filter(|packages| packages.is_dir()));
            }
        }
    }
    found
}

/// Lists the entries of a folder, sorted; empty if it cannot be read, because this user can then import nothing from it.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_every_python_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let place = |packages: &str| {
            let packages = folder.path().join("lib").join(packages);
            fs::create_dir_all(&packages).unwrap();
            packages
        };
        let executable = folder.path().join("bin/calmix");
        assert!(of_executable(&executable).is_empty());
        place("perl5/site-packages");
        let debian = place("python3/dist-packages");
        let own = place("python3.13/site-packages");
        assert_eq!(of_executable(&executable), [debian, own]);
        let windows = tempfile::tempdir().unwrap();
        let packages = windows.path().join("Lib").join("site-packages");
        let executable = windows.path().join("Scripts").join("calmix.exe");
        assert!(of_executable(&executable).is_empty());
        fs::create_dir_all(&packages).unwrap();
        assert_eq!(of_executable(&executable), [packages]);
        // Not a Python environment: `target/debug/calmix`.
        assert!(of_executable(&folder.path().join("debug/calmix")).is_empty());
    }
}
