//! Headers of CUDA and NCCL, which `ProcessGroupNCCL.hpp` includes.

use std::path::{Path, PathBuf};

/// The folders of headers beside the Python package `torch`, and of those that `cargo xtask setup` adds.
///
/// The packages that PyTorch brings lack the headers of `nvidia-cuda-crt` and `nvidia-cuda-cccl`. Setup installs the two
/// into `cuda-headers` at the root of the Python environment; `pip install` into the environment itself does as well.
pub(crate) fn headers(torch: &Path) -> Result<Vec<PathBuf>, String> {
    let packages = torch.parent().unwrap_or(torch);
    let added = torch.ancestors().map(|folder| folder.join("cuda-headers")).find(|folder| folder.is_dir());
    let mut folders = Vec::new();
    for root in [Some(packages.to_owned()), added].into_iter().flatten() {
        let Ok(entries) = std::fs::read_dir(root.join("nvidia")) else { continue };
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path().join("include")).collect();
        found.sort();
        for include in found.into_iter().filter(|include| include.is_dir()) {
            folders.push(include.join("cccl"));
            folders.push(include);
        }
    }
    for needed in ["cuda_runtime.h", "nccl.h", "crt/host_defines.h", "nv/target"] {
        if !folders.iter().any(|folder| folder.join(needed).is_file()) {
            return Err(format!(
                "the feature nccl needs the header {needed}, which is not beside {}: run `cargo xtask setup`, or \
                 `pip install nvidia-cuda-crt==13.0.* nvidia-cuda-cccl==13.0.*` in the environment of this libtorch",
                torch.display()
            ));
        }
    }
    Ok(folders)
}
