//! The token of a user of the Hub.

use std::path::Path;

use calmix_io::safe_open;
use calmix_io::shown::shown;
use ureq::http::HeaderValue;

use crate::error::CliError;
use crate::terminal::warn;

const VARIABLE: &str = "HF_TOKEN";

/// The file in the folder of the Hub's Python client, which `hf auth login` writes.
const FILE: &str = "token";

/// Bytes of the longest file that is read.
const MAX_BYTES: u64 = 64 << 10;

/// A token. Not `Debug`, so that it is not printed by accident.
pub(crate) struct Token {
    /// The value of `Authorization`.
    pub(super) header: HeaderValue,
    /// Where it was found: a variable or a file.
    pub(super) source: String,
}

impl Token {
    /// Reads the token of the environment, or else of the file in `home`; `None` if there is none.
    pub(super) fn read(
        home: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CliError> {
        if let Some(token) = variable(VARIABLE) {
            return Self::new(&token, VARIABLE.to_owned());
        }
        let file = home.join(FILE);
        if !safe_open::exists(&file) {
            return Ok(None);
        }
        // Public models need no token, so one that cannot be read does not stop the command.
        match file.canonicalize().map_err(|error| error.to_string()).and_then(|file| {
            safe_open::read_text(&file, MAX_BYTES).map_err(|error| error.problem.to_string())
        }) {
            Ok(token) => Self::new(&token, shown(file.display())),
            Err(error) => {
                warn(&format!("{}: {error}; continuing without a token", file.display()));
                Ok(None)
            }
        }
    }

    fn new(token: &str, source: String) -> Result<Option<Self>, CliError> {
        let token = token.trim();
        if token.is_empty() {
            return Ok(None);
        }
        let header = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut header = header.map_err(|_| {
            CliError::invalid(format!("the token in {source} has a character that HTTP cannot send"))
        })?;
        header.set_sensitive(true);
        Ok(Some(Self { header, source }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn token_of_variable_comes_before_file() {
        let home = tempfile::tempdir().unwrap();
        let read = |set: Option<&str>| {
            let token = Token::read(home.path(), |_| set.map(str::to_owned));
            token.map(|token| token.map(|token| (token.header.to_str().unwrap().to_owned(), token.source)))
        };
        assert_eq!(read(None).unwrap(), None);
        fs::write(home.path().join(FILE), "hf_file\n").unwrap();
        let (header, source) = read(None).unwrap().unwrap();
        assert_eq!(header, "Bearer hf_file");
        assert!(source.ends_with("/token"), "{source}");
        assert_eq!(read(Some(" hf_set ")).unwrap().unwrap(), ("Bearer hf_set".into(), VARIABLE.into()));
        let error = read(Some("hf_a\r\nX: y")).unwrap_err().to_string();
        assert!(error.contains(VARIABLE) && !error.contains("hf_a"), "{error}");
    }
}
