//! The Python environments that `cargo xtask setup` creates.

use std::path::PathBuf;
use std::{env, fs};

/// The folder of the environment with a package, if it is complete.
pub fn environment(package: &str) -> Option<PathBuf> {
    let cache = env::var_os("CALMIX_CACHE").filter(|name| !name.is_empty()).map(PathBuf::from);
    let xdg = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let cache = cache.or_else(|| Some(xdg?.join("calmix")));
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache").join("calmix")))?;
    let environments = fs::read_dir(cache.join("python")).ok()?.flatten().map(|entry| entry.path());
    environments.into_iter().find(|folder| {
        // All packages with their versions, as `onnxruntime-1.31.1+onnx-1.23.2`.
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let is_package = |part: &str| part.strip_prefix(package).is_some_and(|rest| rest.starts_with('-'));
        name.split('+').any(is_package) && folder.join("complete").is_file()
    })
}

/// The interpreter with a package: the one that the variable names, or that of the environment.
pub fn interpreter(package: &str, variable: &str) -> PathBuf {
    if let Some(named) = env::var_os(variable) {
        return named.into();
    }
    let Some(environment) = environment(package) else {
        panic!(
            "there is no Python environment with {package}; `cargo xtask setup` creates it, or name an interpreter in {variable}"
        )
    };
    environment.join("bin/python")
}
