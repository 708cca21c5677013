//! The places where ONNX Runtime is searched for. The working folder and the search path of the system are not among them.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use calmix_io::process::python_environment;

use super::problem::{LibraryProblem, VARIABLE};

/// Finds the first library in these places, if any.
pub(super) fn find() -> Result<Option<PathBuf>, LibraryProblem> {
    if let Some(named) = env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        // Do not look further: the user named this one.
        return if named.is_absolute() { Ok(Some(named)) } else { Err(LibraryProblem::NotAbsolute(named)) };
    }
    let in_environment = in_packages(&python_environment::site_packages());
    let cached = || in_cache(&cache(|name| env::var_os(name), env::home_dir())?);
    Ok(in_environment.or_else(cached))
}

/// Returns the newest library of the package `onnxruntime` in these package folders.
fn in_packages(folders: &[PathBuf]) -> Option<PathBuf> {
    let capi = folders.iter().map(|packages| packages.join("onnxruntime").join("capi"));
    newest(capi.flat_map(|folder| libraries_in(&folder)).collect())
}

fn in_cache(cache: &Path) -> Option<PathBuf> {
    let versions = entries(&cache.join("onnxruntime"));
    newest(versions.iter().flat_map(|folder| libraries_in(folder)).collect())
}

/// Returns the folder that `cargo xtask setup` fills, by the same rule; relative paths are ignored.
fn cache(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(named) = variable("CALMIX_CACHE").filter(|named| !named.is_empty()) {
        return Some(PathBuf::from(named)).filter(|folder| folder.is_absolute());
    }
    let xdg = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let caches = xdg.or_else(|| Some(home.filter(|home| home.is_absolute())?.join(".cache")));
    Some(caches?.join("calmix"))
}

fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    entries(folder).into_iter().filter(|file| is_library(file)).collect()
}

/// Returns whether a file is the library by its name, which has no version on Windows.
fn is_library(file: &Path) -> bool {
    version_in_name(file).is_some() || name_of(file) == "onnxruntime.dll"
}

/// Returns the library with the highest version; ties are broken by path, whatever the order of the file system.
fn newest(libraries: Vec<PathBuf>) -> Option<PathBuf> {
    libraries.into_iter().max_by_key(|path| {
        let version = version_in_name(path).unwrap_or_default();
        let numbers: Vec<u64> = version.split('.').map(|part| part.parse().unwrap_or(0)).collect();
        (numbers, Reverse(path.clone()))
    })
}

/// Returns the version in a library's name: `libonnxruntime.so.1.31.1`, on macOS `libonnxruntime.1.31.1.dylib`.
pub(super) fn version_in_name(library: &Path) -> Option<String> {
    let name = name_of(library);
    let linux = name.strip_prefix("libonnxruntime.so.");
    let macos = || name.strip_prefix("libonnxruntime.")?.strip_suffix(".dylib");
    let version = linux.or_else(macos)?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    (version.contains('.') && version.split('.').all(is_number)).then(|| version.to_owned())
}

/// Returns the entries of a folder; none if it cannot be read, since it then has no library for this user.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_names() {
        let version = |name: &str| version_in_name(Path::new(name));
        assert_eq!(version("/a/libonnxruntime.so.1.31.1").as_deref(), Some("1.31.1"));
        assert_eq!(version("/a/libonnxruntime.1.23.2.dylib").as_deref(), Some("1.23.2"));
        for name in
            ["libonnxruntime.so", "libonnxruntime.so.1", "libonnxruntime.so.1.x", "libonnxruntime.dylib"]
        {
            assert_eq!(version(name), None, "{name}");
        }
        assert_eq!(version("libonnxruntime_providers_shared.so.1.2"), None);
        let libraries = ["onnxruntime.dll", "onnxruntime_providers_shared.dll"];
        assert_eq!(libraries.map(|name| is_library(Path::new(name))), [true, false]);
    }

    #[test]
    fn newest_library_of_an_environment_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let packages = |python: &str| folder.path().join("lib").join(python).join("site-packages");
        let place = |python: &str, version: &str| {
            let capi = packages(python).join("onnxruntime/capi");
            fs::create_dir_all(&capi).unwrap();
            let file = capi.join(format!("libonnxruntime.so.{version}"));
            fs::write(&file, "").unwrap();
            file
        };
        let folders = ["python3.9", "python3.11", "python3.13"].map(packages);
        assert_eq!(in_packages(&folders), None);
        place("python3.9", "1.9.12");
        let newest = place("python3.13", "1.31.1");
        place("python3.11", "1.4.99");
        assert_eq!(in_packages(&folders), Some(newest));
    }

    #[test]
    fn cache_follows_calmix_then_xdg_then_home_and_is_absolute() {
        let found = |set: &[(&str, &str)], home: Option<&str>| {
            let value = |name: &str| set.iter().find(|(set, _)| *set == name).map(|(_, value)| value.into());
            cache(value, home.map(PathBuf::from)).map(|folder| folder.display().to_string())
        };
        let both = [("CALMIX_CACHE", "/own"), ("XDG_CACHE_HOME", "/xdg")];
        assert_eq!(found(&both, Some("/home/a")).as_deref(), Some("/own"));
        assert_eq!(found(&both[1..], Some("/home/a")).as_deref(), Some("/xdg/calmix"));
        let relative = [("XDG_CACHE_HOME", "relative")];
        assert_eq!(found(&relative, Some("/home/a")).as_deref(), Some("/home/a/.cache/calmix"));
        assert_eq!(found(&[("CALMIX_CACHE", "relative")], Some("/home/a")), None);
        assert_eq!(found(&[], Some("relative")), None);
    }
}
