//! The sample names that a path of a list may mean.

use std::path::Path;

use calmix_cloud::{CloudUrl, RemoteFolder};
use calmix_io::shown::escaped_path;

use crate::error::DataError;

/// The prefixes of valid paths. All texts are escaped, like those of a list.
#[derive(Debug)]
pub(super) struct PathCandidates {
    /// The dataset's folder as the user named it and with links resolved, or its URL; without a trailing slash.
    roots: Vec<String>,
    /// The current folder; `None` for a dataset at a URL.
    current_folder: Option<String>,
}

impl PathCandidates {
    /// Finds the prefixes for a dataset below `root`.
    pub(super) fn of(root: &Path) -> Result<Self, DataError> {
        if let Some(url) = CloudUrl::parse(root) {
            let folder = RemoteFolder::open(&url)?.path("");
            let folder = folder.to_string_lossy().trim_end_matches('/').to_owned();
            return Ok(Self { roots: vec![folder], current_folder: None });
        }
        let failed = |error| DataError::new(root, error);
        let named = std::path::absolute(root).map_err(failed)?;
        let real = root.canonicalize().map_err(failed)?;
        let current_folder = std::env::current_dir().map_err(failed)?;
        // Windows begins them with a drive or a share, to which a slash is added here and in `names`.
        let text = |path: &Path| format!("/{}", plain(&escaped_path(path)).unwrap_or_default());
        let mut roots = vec![text(&named), text(&real)];
        roots.dedup();
        Ok(Self { roots, current_folder: Some(text(&current_folder)) })
    }

    /// Returns the dataset's folder, to which sample names are relative.
    pub(super) fn root(&self) -> &str {
        self.roots.first().map_or("", String::as_str)
    }

    /// Lists the sample names that `path` may mean; empty for a path outside the dataset.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        let mut names = Vec::new();
        if let Some(current_folder) = &self.current_folder {
            let is_absolute = path.starts_with('/') || Path::new(path).is_absolute();
            let full = if is_absolute { plain(path) } else { plain(&format!("{current_folder}/{path}")) };
            let full = full.map(|full| format!("/{full}"));
            names.extend(full.and_then(|full| self.below(&full)));
            if is_absolute {
                return names;
            }
        } else if path.contains("://") {
            names.extend(self.below(path).and_then(|name| plain(&name)));
            return names;
        }
        names.extend(plain(path).filter(|name| !name.is_empty()));
        names.dedup();
        names
    }

    /// Returns the path relative to the dataset's folder; `None` if it does not start with that folder.
    fn below(&self, full: &str) -> Option<String> {
        let rest = self.roots.iter().find_map(|root| full.strip_prefix(root.as_str())?.strip_prefix('/'));
        rest.filter(|rest| !rest.is_empty()).map(str::to_owned)
    }
}

/// Removes `.`, `..`, empty components and a leading slash from a path; `None` if it leads above its start. Links are not
/// resolved, because `calmix predict` writes paths as given.
pub(super) fn plain(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(root: &str, current_folder: Option<&str>) -> PathCandidates {
        PathCandidates { roots: vec![root.to_owned()], current_folder: current_folder.map(str::to_owned) }
    }

    #[test]
    fn paths_begin_in_the_dataset_here_or_at_the_root() {
        let local = readings("/data/photos", Some("/data"));
        assert_eq!(local.names("/data/photos/cat/1.png"), ["cat/1.png"]);
        assert_eq!(local.names("/data/./photos//x/../cat/1.png"), ["cat/1.png"]);
        assert_eq!(local.names("cat/1.png"), ["cat/1.png"]);
        assert_eq!(local.names("photos/cat/1.png"), ["cat/1.png", "photos/cat/1.png"]);
        for outside in ["/data/photos2/cat/1.png", "/data/photos", "../../x", "/"] {
            assert!(local.names(outside).is_empty(), "{outside}");
        }
        let inside = readings("/data/photos", Some("/data/photos/cat"));
        assert_eq!(inside.names("1.png"), ["cat/1.png", "1.png"]);
        assert_eq!(inside.names("../dog/1.png"), ["dog/1.png"]);
    }

    /// The folders have forms that differ between systems: a drive, backslashes, and a prefix for long paths.
    #[test]
    fn absolute_path_names_a_sample_on_every_system() {
        let folder = tempfile::tempdir().unwrap();
        let candidates = PathCandidates::of(folder.path()).unwrap();
        for root in [folder.path().to_owned(), folder.path().canonicalize().unwrap()] {
            let path = escaped_path(root.join("cat").join("1.png"));
            assert_eq!(candidates.names(&path), ["cat/1.png"], "{path}");
        }
    }

    #[test]
    fn urls_begin_with_the_url_of_the_dataset() {
        let remote = readings("s3://bucket/shards", None);
        assert_eq!(remote.names("s3://bucket/shards/a.tar/./1.jpg"), ["a.tar/1.jpg"]);
        assert_eq!(remote.names("a.tar/1.jpg"), ["a.tar/1.jpg"]);
        assert!(remote.names("s3://bucket/shards2/a.tar/1.jpg").is_empty());
        assert!(remote.names("s3://other/shards/a.tar/1.jpg").is_empty());
    }
}
