//! Finds the libtorch that torch-sys will link, and its version.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version that `tch` is made for; also in `xtask/src/setup/venv.rs`.
pub(crate) const NEEDED: &str = "2.13.0";

/// A libtorch, and the variable or path by which it was found.
pub(crate) struct Libtorch {
    /// The Python package `torch`, an unpacked distribution, or `/usr`.
    pub(crate) folder: PathBuf,
    /// Its shared libraries.
    pub(crate) libraries: PathBuf,
    /// The folder of the folder `include`.
    pub(crate) headers: PathBuf,
    pub(crate) named_by: String,
}

/// Looks where torch-sys looks, in the same order.
pub(crate) fn find() -> Result<Libtorch, String> {
    if variable("LIBTORCH_USE_PYTORCH").is_some() {
        // torch-sys starts these by the same names.
        variable("PATH");
        let python = match variable("VIRTUAL_ENV") {
            Some(_) => "python",
            None => "python3",
        };
        let folder = python_package(python).ok_or_else(|| {
            refusal(&format!("LIBTORCH_USE_PYTORCH is set, but `{python}` on the PATH has no package torch"))
        })?;
        let named_by = format!("LIBTORCH_USE_PYTORCH and `{python}`");
        return Ok(Libtorch { libraries: folder.join("lib"), headers: folder.clone(), folder, named_by });
    }
    let system = Path::new("/usr/lib/libtorch.so").exists();
    let (folder, named_by) = match variable("LIBTORCH") {
        Some(folder) => (PathBuf::from(folder), "LIBTORCH"),
        None if cfg!(target_os = "linux") && system => (PathBuf::from("/usr"), "/usr/lib/libtorch.so"),
        None => {
            let what = "no libtorch was found: neither LIBTORCH nor LIBTORCH_USE_PYTORCH is set";
            return Err(refusal(what));
        }
    };
    let libraries = variable("LIBTORCH_LIB").map_or_else(|| folder.clone(), PathBuf::from).join("lib");
    let headers = variable("LIBTORCH_INCLUDE").map_or_else(|| folder.clone(), PathBuf::from);
    Ok(Libtorch { folder, libraries, headers, named_by: named_by.to_owned() })
}

/// Reads a variable and has cargo look again when it changes.
fn variable(name: &str) -> Option<OsString> {
    println!("cargo::rerun-if-env-changed={name}");
    env::var_os(name)
}

/// The folder of the package torch, without the seconds that importing it takes.
fn python_package(python: &str) -> Option<PathBuf> {
    let ask =
        "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s and s.origin else '')";
    let output = Command::new(python).args(["-c", ask]).output().ok()?;
    let origin = String::from_utf8(output.stdout).ok()?;
    Some(Path::new(origin.trim()).parent()?.to_owned()).filter(|_| output.status.success())
}

impl Libtorch {
    /// Refuses every version but one; returns the file that states it.
    pub(crate) fn check_version(&self) -> Result<PathBuf, String> {
        let (folder, named_by) = (self.folder.display(), &self.named_by);
        match version(&self.folder) {
            Some((file, version)) if version == NEEDED => Ok(file),
            Some((_, version)) => {
                Err(refusal(&format!("libtorch {version} was found in {folder} (from {named_by})")))
            }
            None => Err(refusal(&format!("there is no libtorch in {folder} (from {named_by})"))),
        }
    }
}

/// What was found, and what to do about it.
fn refusal(found: &str) -> String {
    format!(
        "{found}; calmix needs libtorch {NEEDED}: run `cargo xtask setup` with neither variable set, or \
         `pip install torch=={NEEDED}` in your own Python environment and build with LIBTORCH_USE_PYTORCH=1"
    )
}

/// Extracts the version from the text of a file.
type Reader = fn(&str) -> Option<String>;

/// The version of the libtorch in a folder without its build (`+cpu`, `+cu130`), and the file that states it.
pub(crate) fn version(folder: &Path) -> Option<(PathBuf, String)> {
    let ways: [(&str, Reader); 4] = [
        // The Python package, an unpacked distribution, and what both and a system's package have.
        ("version.py", in_python),
        ("build-version", |text| Some(text.trim().to_owned())),
        ("include/torch/headeronly/version.h", in_header),
        ("include/torch/csrc/api/include/torch/version.h", in_header),
    ];
    ways.into_iter().find_map(|(name, read)| {
        let file = folder.join(name);
        let said = read(&std::fs::read_to_string(&file).ok()?)?;
        let release = said.split('+').next().unwrap_or(&said);
        Some((file, release.to_owned()))
    })
}

fn in_python(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("__version__"))?;
    line.split(['\'', '"']).nth(1).map(str::to_owned)
}

fn in_header(text: &str) -> Option<String> {
    let part = |name: &str| {
        let mut words = text.lines().map(str::split_whitespace);
        words.find_map(|mut line| (line.next()? == "#define" && line.next()? == name).then(|| line.next())?)
    };
    let (major, minor) = (part("TORCH_VERSION_MAJOR")?, part("TORCH_VERSION_MINOR")?);
    Some(format!("{major}.{minor}.{}", part("TORCH_VERSION_PATCH")?))
}
