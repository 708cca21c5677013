//! The wheel `calmix-weights`: pretrained weights that `calmix` finds in its Python environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::distribution::{Distribution, FILE};
use crate::setup::venv;
use crate::{weights, workspace};

/// The version of the wheel, which changes with the weights, not with calmix. `bindings/python/pyproject.toml` requires its first
/// number.
pub(super) const VERSION: &str = "1.0.0";

/// The tag of a wheel without compiled code.
pub(super) const TAG: &str = "py3-none-any";

/// The weights in the wheel: the smallest and the best according to the fixed rule that chooses a backbone.
const NAMES: [&str; 2] = ["tf_efficientnet_lite0", "tf_efficientnet_lite2"];

/// The script that removes the classifier, in the folder of this crate.
const SCRIPT: &str = "xtask/src/wheels/without_classifier.py";

/// Packs the wheel into `dist`, with its files collected in a folder of `stage`.
pub(super) fn wheel(stage: &Path, dist: &Path) -> Result<PathBuf> {
    let distribution = Distribution::new(stage, "calmix-weights", VERSION)?;
    let package = distribution.module();
    let root = workspace::root();
    let initial = format!("{package}/__init__.py");
    distribution.copy(&root.join("bindings/weights").join(&initial), &initial, FILE)?;
    let python = venv::python(venv::PYTORCH)?;
    for name in NAMES {
        let file = weights::file(name)?;
        let from = file.parent().context("weights are in a folder")?;
        let to = distribution.path(&format!("{package}/{name}"));
        fs::create_dir_all(&to).with_context(|| format!("cannot create {}", to.display()))?;
        venv::run(Command::new(&python).arg("-B").arg(root.join(SCRIPT)).arg(from).arg(&to))?;
        for licence in
            [format!("{package}/{name}/LICENSE"), distribution.info(&format!("licenses/{name}/LICENSE"))]
        {
            distribution.copy(&from.join("LICENSE"), &licence, FILE)?;
        }
    }
    // Each `LICENSE` is only a notice that refers to this text.
    distribution.copy(&root.join("LICENSE-APACHE"), &distribution.info("licenses/LICENSE-APACHE"), FILE)?;
    super::finished(&distribution, "weights", TAG, dist)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_asks_for_this_version_of_the_weights() {
        let project = workspace::root().join("bindings/python/pyproject.toml");
        let project = fs::read_to_string(project).expect("the project of the library");
        let first: u32 = VERSION.split('.').next().and_then(|first| first.parse().ok()).expect("a version");
        let requirement = format!("\"calmix-weights>={first},<{}\"", first + 1);
        assert!(project.contains(&requirement), "no {requirement} in\n{project}");
    }
}
