//! The default output folders, which are never inside the dataset.

use std::env;
use std::path::{Path, PathBuf};

use calmix_cloud::CloudUrl;

/// Returns the folder in which `runs/`, `prepared/`, `features/` and `sweeps/` are created: the working folder (an empty
/// path), or the parent of the dataset if the working folder is inside the dataset.
pub fn folder_for_output(dataset: &Path) -> PathBuf {
    levels_to_leave(dataset).map(|levels| (0..levels).map(|_| "..").collect()).unwrap_or_default()
}

/// Returns the number of levels from the working folder up to the parent of the dataset; `None` if the working folder is not
/// inside the dataset.
fn levels_to_leave(dataset: &Path) -> Option<usize> {
    let current = env::current_dir().ok()?.canonicalize().ok()?;
    let dataset = dataset.canonicalize().ok()?;
    let depth = current.strip_prefix(&dataset).ok()?.components().count();
    // A dataset that is a whole file system has no parent folder.
    dataset.parent()?;
    Some(depth + 1)
}

/// Returns the default folder of a dataset's prepared table.
pub fn default_prepared_folder(dataset: &Path) -> PathBuf {
    if let Some(url) = CloudUrl::parse(dataset) {
        return Path::new("prepared").join(name_of(&url));
    }
    let name = |path: PathBuf| path.file_name().map(PathBuf::from);
    let named = std::path::absolute(dataset).ok().and_then(name);
    // `..` has no name of its own.
    let name = named.or_else(|| dataset.canonicalize().ok().and_then(name)).unwrap_or_default();
    folder_for_output(dataset).join("prepared").join(name)
}

/// Returns a name for a dataset at a URL: its last folder, or else its bucket or host.
fn name_of(url: &CloudUrl) -> String {
    let folder = url.key().split('{').next().unwrap_or_default();
    let is_shard =
        |part: &str| Path::new(part).extension().is_some_and(|end| end.eq_ignore_ascii_case("tar"));
    let parts = folder.split('/').filter(|part| !part.is_empty() && !is_shard(part));
    // The text before a brace is the start of a file name.
    let is_cut = folder.len() < url.key().len() && !folder.ends_with('/');
    let mut parts: Vec<&str> = parts.collect();
    if is_cut {
        parts.pop();
    }
    parts.last().map_or_else(|| url.authority().replace(':', "-"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_of_a_url_has_the_name_of_its_folder() {
        for (url, name) in [
            ("s3://bucket/data/flowers", "flowers"),
            ("s3://bucket", "bucket"),
            ("https://host/data/train-{000..099}.tar", "data"),
            ("http://127.0.0.1:80/{a,b}.tar", "127.0.0.1-80"),
            ("gs://bucket/a/one.tar", "a"),
        ] {
            assert_eq!(default_prepared_folder(Path::new(url)), Path::new("prepared").join(name), "{url}");
        }
    }
}
