//! The folder of pretrained weights: a subfolder for each, laid out as on a hub, by a name that recipes can use.

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use calmix_io::counted::counted;
use calmix_io::error::{FileError, FileProblem};
use calmix_io::safe_open;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::{Architecture, FirstBlock};

use crate::pretrained_config::CONFIG;
use crate::weights_file::{WeightsFile, is_path, read_beside};

/// The file of weights in the folder of its name.
const WEIGHTS: &str = "model.safetensors";

/// The licence beside it, if any.
const LICENCE: &str = "LICENSE";
const LONGEST_LICENCE: u64 = 1 << 20;

/// The environment variable that sets another folder.
const VARIABLE: &str = "CALMIX_WEIGHTS";

/// The folder of pretrained weights.
#[derive(Debug, Clone)]
pub struct WeightsFolder {
    folder: PathBuf,
}

/// Weights in the folder.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredWeights {
    /// The name that recipes use.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// The network.
    pub network: Architecture,
    /// Parameters of its backbone, without a classifier.
    pub parameters: usize,
    /// Pixels of a side of its images; `None` if its configuration does not say.
    pub size: Option<u32>,
    /// The licence; `None` if its configuration does not say.
    pub licence: Option<String>,
    /// The blake3 of the file.
    pub blake3: String,
}

impl WeightsFolder {
    /// A folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// `$CALMIX_WEIGHTS`; without it `calmix/weights` in `$XDG_DATA_HOME`, or in `~/.local/share`.
    pub fn of_user() -> Self {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let data = || {
            let data = variable("XDG_DATA_HOME").filter(|folder| folder.is_absolute());
            data.or_else(|| Some(env::home_dir()?.join(".local").join("share")))
        };
        let below = |data: PathBuf| data.join("calmix").join("weights");
        Self::new(variable(VARIABLE).or_else(|| data().map(below)).unwrap_or_default())
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Finds the file that a recipe names: by a path, or by a name in this folder.
    ///
    /// # Errors
    /// If there are no weights of that name.
    pub fn find(&self, named: &str) -> Result<PathBuf, FileError> {
        if is_path(named) {
            return Ok(named.into());
        }
        let file = self.folder.join(named).join(WEIGHTS);
        if safe_open::exists(&file) {
            return Ok(file);
        }
        let names = self.names()?;
        let there =
            if names.is_empty() { "is empty".to_owned() } else { format!("has {}", names.join(", ")) };
        let problem = FileProblem::Content(format!("no weights are named {named}: the folder {there}"));
        let hint = "`calmix weights add FILE` adds a file; network.weights can also be the path of a file";
        Err(FileError::new(&self.folder, problem).hint(hint))
    }

    /// The names of the weights in it, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read; one that does not exist is empty.
    pub fn names(&self) -> Result<Vec<String>, FileError> {
        let cannot = |error| FileError::new(&self.folder, error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(cannot)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(cannot)?.file_name();
            let weights =
                |name: &&str| !name.starts_with('.') && self.folder.join(name).join(WEIGHTS).is_file();
            names.extend(name.to_str().filter(weights).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }

    /// Describes the weights of a name.
    ///
    /// # Errors
    /// If they cannot be used.
    pub fn stored(&self, name: &str) -> Result<StoredWeights, FileError> {
        let path = self.folder.join(name).join(WEIGHTS);
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

    /// Adds a file with the `config.json` and the `LICENSE` beside it, under its own name or another. It appears as a whole
    /// or not at all. Adding the same file again changes nothing.
    ///
    /// # Errors
    /// If it cannot be used, the name is taken or invalid, or the disk fails.
    pub fn add(&self, file: &Path, name: Option<&str>) -> Result<StoredWeights, FileError> {
        let read = WeightsFile::read(file)?;
        let network = read.network()?.to_string();
        let own = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        // The name that hubs give to every file.
        let own = if matches!(own, "model" | "pytorch_model") { &network } else { own };
        let name = name.unwrap_or(own);
        let refused = |problem: String| FileError::new(file, FileProblem::Content(problem));
        let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(sound) {
            let problem =
                format!("{name:?} cannot be the name of weights: use letters, digits, `.`, `_` and `-`");
            return Err(refused(problem).hint("choose another name with --name"));
        }
        let target = self.folder.join(name);
        let added = Self::described(name, target.join(WEIGHTS), &read)?;
        if safe_open::exists(&target) {
            let there = self.stored(name).ok();
            if there.is_some_and(|there| there.blake3 == added.blake3) {
                return Ok(added);
            }
            let problem = format!("the name {name} is taken by other weights in {}", self.folder.display());
            return Err(refused(problem).hint("choose another name with --name, or delete that folder"));
        }
        let licence = read_beside(file, LICENCE, LONGEST_LICENCE)?;
        let files =
            [(WEIGHTS, Some(&read.bytes)), (CONFIG, read.config.as_ref()), (LICENCE, licence.as_ref())];
        let files = files.into_iter().filter_map(|(name, bytes)| Some((name, bytes?)));
        fs::create_dir_all(&self.folder).map_err(|error| FileError::new(&self.folder, error))?;
        let scratch = self.folder.join(format!(".{name}.tmp-{}", std::process::id()));
        let done = write_all(&scratch, files).and_then(|()| fs::rename(&scratch, &target));
        let done = done.and_then(|()| File::open(&self.folder)?.sync_all());
        done.map_err(|error| {
            let _ = fs::remove_dir_all(&scratch);
            let needs = counted(read.bytes.len() as u64 >> 20, "megabyte");
            FileError::new(&target, error)
                .hint(format!("it needs {needs}; set {VARIABLE} to use another folder"))
        })?;
        Ok(added)
    }
}

/// Writes files into a new folder, and returns when they are on the disk.
fn write_all<'a>(folder: &Path, files: impl Iterator<Item = (&'a str, &'a Vec<u8>)>) -> io::Result<()> {
    fs::create_dir(folder)?;
    for (name, bytes) in files {
        let mut file = File::create_new(folder.join(name))?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    File::open(folder)?.sync_all()
}
