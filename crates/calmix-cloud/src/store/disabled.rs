//! The stub for a build without the feature `cloud`: every URL is refused.

use std::fs::File;
use std::path::Path;

use calmix_io::error::FileError;

use super::RemoteObject;
use crate::cloud_url::CloudUrl;

/// A store that cannot be opened.
#[derive(Debug)]
pub(crate) enum Store {}

impl Store {
    pub(crate) fn open(url: &CloudUrl) -> Result<Self, FileError> {
        let problem = "this calmix was built without object storage";
        let hint = "build it with it (`cargo install --locked --path crates/calmix-torch --features cloud`, the same for \
                    crates/calmix), or copy the files to a local folder first";
        Err(FileError::mistake(url.to_path(), problem).hint(hint))
    }

    pub(crate) fn list(&self, _: &str) -> Result<Vec<RemoteObject>, FileError> {
        match *self {}
    }

    pub(crate) fn describe(&self, _: &str, _: &[String]) -> Result<Vec<RemoteObject>, FileError> {
        match *self {}
    }

    pub(crate) fn fetch(&self, _: &str, _: &RemoteObject, _: &mut File, _: &Path) -> Result<(), FileError> {
        match *self {}
    }

    pub(crate) fn put(&self, _: &str, _: Vec<u8>, _: bool) -> Result<bool, FileError> {
        match *self {}
    }

    pub(crate) fn read(&self, _: &str, _: u64) -> Result<Option<Vec<u8>>, FileError> {
        match *self {}
    }

    pub(crate) fn names(&self, _: &str) -> Result<Vec<String>, FileError> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{CloudUrl, RemoteFolder, RemoteOutput};
    use calmix_io::error::ErrorKind;

    #[test]
    fn url_is_refused_with_the_way_to_get_it() {
        for url in
            ["s3://bucket/data", "gs://bucket", "az://container/a", "https://host/a.tar", "http://host/a.tar"]
        {
            let url = CloudUrl::parse(Path::new(url)).unwrap();
            let errors = [RemoteFolder::open(&url).unwrap_err(), RemoteOutput::open(&url).unwrap_err()];
            for error in errors {
                assert_eq!(error.kind(), ErrorKind::Mistake);
                let text = error.to_string();
                assert!(text.starts_with(url.as_str()) && text.contains("--features cloud"), "{text}");
            }
        }
    }
}
