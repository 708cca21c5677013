//! The folder of pretrained weights, with a subfolder for each name that recipes can use, laid out as on a hub. Weights in
//! the Python package `calmix-weights` are found as well as those of the user.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use calmix_io::error::{FileError, FileProblem};
use calmix_io::process::python_environment;
use calmix_io::safe_open;
use calmix_io::text::counted;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::{Architecture, FirstBlock};

use crate::pretrained::config::CONFIG;
use crate::pretrained::weights_file::{WeightsFile, is_path, read_beside};

/// The weight file in the folder of its name.
const WEIGHTS: &str = "model.safetensors";

/// The locations of an ONNX encoder in folders of the Hub.
const ENCODERS: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// The Python package of weights, laid out like the user's folder.
const PACKAGE: &str = "calmix_weights";

/// The licence beside the weights, if any.
const LICENCE: &str = "LICENSE";
const MAX_LICENCE_BYTES: u64 = 1 << 20;

/// The environment variable for another folder.
const VARIABLE: &str = "CALMIX_WEIGHTS";

/// The folder of pretrained weights.
#[derive(Debug, Clone)]
pub struct WeightsFolder {
    folder: PathBuf,
    /// Folders of installed packages, which are searched for weights but never written.
    packages: Vec<PathBuf>,
}

/// Weights in the folder.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWeights {
    /// The name that recipes use.
    pub name: String,
    /// The path of the file.
    pub path: PathBuf,
    /// The network.
    pub network: Architecture,
    /// The number of parameters of its backbone, without a classifier.
    pub parameters: usize,
    /// The side of its images, in pixels; `None` if its configuration does not say.
    pub size: Option<u32>,
    /// The licence; `None` if its configuration does not name one.
    pub licence: Option<String>,
    /// The BLAKE3 of the file, in hexadecimal.
    pub blake3: String,
}

impl WeightsFolder {
    /// Uses a folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), packages: Vec::new() }
    }

    /// Uses `$CALMIX_WEIGHTS`, or else `calmix/weights` in `$XDG_DATA_HOME` or `~/.local/share`, followed by the package
    /// `calmix-weights` of the Python environment in which this program is installed.
    pub fn of_user() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = || {
            let data = variable("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
            data.or_else(|| Some(env::home_dir()?.join(".local").join("share")))
        };
        let below = |data: PathBuf| data.join("calmix").join("weights");
        let folder = variable(VARIABLE).or_else(|| data().map(below)).unwrap_or_default();
        let packages = python_environment::site_packages().into_iter().map(|packages| packages.join(PACKAGE));
        Self { folder, packages: packages.filter(|package| package.is_dir()).collect() }
    }

    /// Adds folders to search after this one.
    #[must_use]
    pub fn with_packages(self, packages: Vec<PathBuf>) -> Self {
        Self { packages, ..self }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Finds the safetensors file that a recipe names, by a path or by a name in this folder.
    pub fn find(&self, named: &str) -> Result<PathBuf, FileError> {
        if is_path(named) {
            return Ok(named.into());
        }
        if let Some(file) =
            self.places(named).map(|place| place.join(WEIGHTS)).find(|file| safe_open::exists(file))
        {
            return Ok(file);
        }
        let names = self.names()?;
        let there =
            if names.is_empty() { "is empty".to_owned() } else { format!("has {}", names.join(", ")) };
        let problem = FileProblem::Content(format!("no weights are named {named}: the folder {there}"));
        let hint = "`calmix weights add FILE` adds a file; network.weights can also be the path of a file";
        Err(FileError::new(&self.folder, problem).hint(hint))
    }

    /// Finds the ONNX encoder that a recipe names, if any: by the path of a file, by the path of a folder that contains one,
    /// or by a name in this folder.
    pub fn find_encoder(&self, named: &str) -> Option<PathBuf> {
        let path = Path::new(named);
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx")) {
            return Some(path.to_owned());
        }
        if let Some(file) = encoder_in(path) {
            return Some(file);
        }
        if is_path(named) || check_name(named).is_err() {
            return None;
        }
        // The first folder with weights of this name contains all of their files.
        let place = self.places(named).find(|place| place.is_dir())?;
        if safe_open::exists(&place.join(WEIGHTS)) { None } else { encoder_in(&place) }
    }

    /// Lists the names of its safetensors files, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read; a folder that does not exist is empty.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        self.names_with(|place| place.join(WEIGHTS).is_file())
    }

    /// Lists the names of its ONNX encoders, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read; a folder that does not exist is empty.
    pub fn encoder_names(&self) -> Result<Vec<String>, FileError> {
        self.names_with(|place| !place.join(WEIGHTS).is_file() && encoder_in(place).is_some())
    }

    fn names_with(&self, is_listed: impl Fn(&Path) -> bool) -> Result<Vec<String>, FileError> {
        let mut names = Vec::new();
        for folder in self.folders() {
            let cannot = |error| FileError::new(folder, error);
            let entries = match fs::read_dir(folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(cannot)?,
            };
            for entry in entries {
                let name = entry.map_err(cannot)?.file_name();
                let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
                // A user's name hides the same name in a package.
                let found = self.places(name).find(|place| place.is_dir());
                if found.is_some_and(|place| place.starts_with(folder) && is_listed(&place)) {
                    names.push(name.to_owned());
                }
            }
        }
        names.sort();
        Ok(names)
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.folder).chain(&self.packages).map(PathBuf::as_path)
    }

    /// Iterates over the possible locations of a name, in order of precedence.
    fn places(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        self.folders().map(move |folder| folder.join(name))
    }

    /// Describes the weights with this name.
    pub fn stored(&self, name: &str) -> Result<StoredWeights, FileError> {
        let place = self.places(name).find(|place| place.is_dir()).unwrap_or_else(|| self.folder.join(name));
        let path = place.join(WEIGHTS);
        Self::described(name, path.clone(), &WeightsFile::read(&path)?)
    }

    fn described(name: &str, path: PathBuf, file: &WeightsFile) -> Result<StoredWeights, FileError> {
        let network = file.network()?;
        Ok(StoredWeights {
            name: name.to_owned(),
            path,
            network,
            parameters: Layout::of_network(network, FirstBlock::default(), 0).len(),
            size: file.configured(|config| config.size),
            licence: file.configured(|config| config.licence.clone()),
            blake3: file.blake3(),
        })
    }

    /// Adds a file with the `config.json` and `LICENSE` beside it, under its own or another name. It appears completely or
    /// not at all; adding the same file again changes nothing.
    pub fn add(&self, file: &Path, name: Option<&str>) -> Result<StoredWeights, FileError> {
        let read = WeightsFile::read(file)?;
        let network = read.network()?.to_string();
        let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        // Hubs give this name to every file.
        let default = if matches!(stem, "model" | "pytorch_model") { &network } else { stem };
        let name = name.unwrap_or(default);
        let refused = |problem: String| FileError::new(file, FileProblem::Content(problem));
        check_name(name).map_err(|problem| refused(problem).hint("choose another name with --name"))?;
        let target = self.folder.join(name);
        let added = Self::described(name, target.join(WEIGHTS), &read)?;
        if safe_open::exists(&target) {
            let existing = self.stored(name).ok();
            if existing.is_some_and(|existing| existing.blake3 == added.blake3) {
                return Ok(added);
            }
            let problem = format!("the name {name} is taken by other weights in {}", self.folder.display());
            return Err(refused(problem).hint("choose another name with --name, or delete that folder"));
        }
        let licence = read_beside(file, LICENCE, MAX_LICENCE_BYTES)?;
        let files =
            [(WEIGHTS, Some(&read.bytes)), (CONFIG, read.config.as_ref()), (LICENCE, licence.as_ref())];
        let files = files.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)));
        safe_open::create_folders(&self.folder).map_err(|error| FileError::new(&self.folder, error))?;
        let scratch = self.folder.join(format!(".{name}.tmp-{}", std::process::id()));
        let done = write_all(&scratch, files).and_then(|()| self.install(&scratch, name));
        done.map_err(|error| {
            let _ = fs::remove_dir_all(&scratch);
            let needs = counted(read.bytes.len() as u64 >> 20, "megabyte");
            FileError::new(&target, error)
                .hint(format!("it needs {needs}; set {VARIABLE} to use another folder"))
        })?;
        Ok(added)
    }

    /// Moves a finished scratch folder to its final name. The caller has checked the name and synchronised the files; the
    /// folder appears completely or not at all.
    pub fn install(&self, scratch: &Path, name: &str) -> io::Result<()> {
        File::open(scratch)?.sync_all()?;
        fs::rename(scratch, self.folder.join(name))?;
        File::open(&self.folder)?.sync_all()
    }
}

/// Checks a new name for weights.
///
/// # Errors
/// If it is empty, too long, or has a character that a folder or a recipe cannot have.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(is_sound) {
        return Err(format!("{name:?} cannot be the name of weights: use letters, digits, `.`, `_` and `-`"));
    }
    Ok(())
}

/// Finds the encoder in a folder laid out as on the Hub, if any.
fn encoder_in(folder: &Path) -> Option<PathBuf> {
    ENCODERS.iter().map(|place| folder.join(place)).find(|file| folder.is_dir() && safe_open::exists(file))
}

/// Writes files to a new folder, and returns when they are on disk.
fn write_all<'a>(folder: &Path, files: impl Iterator<Item = (&'a str, &'a Vec<u8>)>) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (name, bytes) in files {
        let mut file = File::create_new(folder.join(name))?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a user's folder of weights and one of a package; only the existence of files matters here.
    fn folders() -> (tempfile::TempDir, WeightsFolder) {
        let scene = tempfile::tempdir().unwrap();
        for file in [
            "own/both/model.safetensors",
            "own/both/model.onnx",
            "own/hidden/onnx/model.onnx",
            "own/.both.tmp-1/model.safetensors",
            "package/hidden/model.safetensors",
            "package/lite/model.safetensors",
            "package/__init__.py",
        ] {
            let file = scene.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let folder = WeightsFolder::new(scene.path().join("own"));
        let folder = folder.with_packages(vec![scene.path().join("package")]);
        (scene, folder)
    }

    #[test]
    fn weights_of_packages_follow_those_of_the_user() {
        let (scene, folder) = folders();
        assert_eq!(folder.names().unwrap(), ["both", "lite"], "the user's encoder hides the package's file");
        assert_eq!(folder.find("lite").unwrap(), scene.path().join("package/lite/model.safetensors"));
        assert_eq!(folder.find("both").unwrap(), scene.path().join("own/both/model.safetensors"));
        let missing = folder.find("light").unwrap_err().to_string();
        assert!(missing.contains("no weights are named light: the folder has both, lite"), "{missing}");
    }

    #[test]
    fn encoders_are_found_by_path_and_by_name() {
        let (scene, folder) = folders();
        assert_eq!(folder.encoder_names().unwrap(), ["hidden"]);
        let hidden = scene.path().join("own/hidden");
        assert_eq!(folder.find_encoder("hidden"), Some(hidden.join("onnx/model.onnx")));
        assert_eq!(folder.find_encoder(&hidden.display().to_string()), Some(hidden.join("onnx/model.onnx")));
        assert_eq!(folder.find_encoder("some/where.ONNX"), Some("some/where.ONNX".into()));
        for other in ["both", "lite", "light", "", ".", "..", "some/where", "lite.safetensors"] {
            assert_eq!(folder.find_encoder(other), None, "{other:?}");
        }
    }

    #[test]
    fn placed_folder_has_its_name_or_nothing_changes() {
        let (scene, folder) = folders();
        let scratch = scene.path().join("own/.both.tmp-1");
        assert!(folder.install(&scratch, "both").is_err(), "the name is taken");
        assert!(scratch.is_dir());
        folder.install(&scratch, "new").unwrap();
        assert_eq!(folder.names().unwrap(), ["both", "lite", "new"]);
        assert!(check_name("new-1.0_b").is_ok());
        for name in ["", ".new", "a/b", "a b", "..", &"a".repeat(101)] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
