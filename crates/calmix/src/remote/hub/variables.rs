//! The Hub's environment variables, which are those of `huggingface_hub`: a shell that is set up for the Python client is set up
//! for calmix.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use calmix_io::safe_open;
use calmix_io::shown::shown;
use ureq::http::{HeaderValue, Uri};

use crate::error::CliError;
use crate::remote::https::{read_address, seconds, variable, warn_if_unencrypted};
use crate::terminal::warn;

const ENDPOINT: &str = "HF_ENDPOINT";
const HOME: &str = "HF_HOME";
const CACHE: &str = "HF_HUB_CACHE";
pub(super) const OFFLINE: &str = "HF_HUB_OFFLINE";
pub(super) const TIMEOUT: &str = "HF_HUB_DOWNLOAD_TIMEOUT";

/// The Hub's address, unless `HF_ENDPOINT` sets another.
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// The default of `HF_HUB_DOWNLOAD_TIMEOUT`: how long a server may be silent.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The settings of the Hub and its cache from the environment.
pub(crate) struct HubVariables {
    /// The address, without a trailing slash, a user or a password.
    pub(crate) endpoint: String,
    pub(super) uri: Uri,
    /// The cache folder of the Hub's Python client.
    pub(crate) cache: PathBuf,
    pub(super) token: Option<Token>,
    pub(crate) is_offline: bool,
    pub(super) timeout: Duration,
}

impl HubVariables {
    pub(crate) fn read() -> Result<Self, CliError> {
        let address = variable(ENDPOINT).unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
        let example = format!("{ENDPOINT}={DEFAULT_ENDPOINT}, or without it");
        let uri = read_address(&address, ENDPOINT, &example, "set HF_TOKEN instead")?;
        let home = home();
        let is_offline = variable(OFFLINE).is_some_and(|value| is_true(&value));
        let token = if is_offline { None } else { Token::read(&home, variable)? };
        if token.is_some() {
            warn_if_unencrypted(&uri);
        }
        Ok(Self {
            endpoint: uri.to_string().trim_end_matches('/').to_owned(),
            uri,
            cache: variable(CACHE).map_or_else(|| home.join("hub"), PathBuf::from),
            token,
            is_offline,
            timeout: seconds(TIMEOUT, DEFAULT_TIMEOUT)?,
        })
    }
}

/// Returns the home folder of the Hub's Python client.
fn home() -> PathBuf {
    if let Some(home) = variable(HOME) {
        return home.into();
    }
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache")));
    cache.unwrap_or_default().join("huggingface")
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.to_ascii_lowercase().as_str())
}

const TOKEN_VARIABLE: &str = "HF_TOKEN";

/// The file in that folder that `hf auth login` writes.
const TOKEN_FILE: &str = "token";

/// The maximum size of the file in bytes.
const MAX_TOKEN_BYTES: u64 = 64 << 10;

/// A token. Not `Debug`, so that it is not printed by accident.
pub(crate) struct Token {
    /// The value of `Authorization`.
    pub(super) header: HeaderValue,
    /// The source of the token: a variable or a file.
    pub(super) source: String,
}

impl Token {
    /// Reads the token from the environment, or else from the file in `home`; `None` if there is none.
    pub(super) fn read(
        home: &Path,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CliError> {
        if let Some(token) = variable(TOKEN_VARIABLE) {
            return Self::new(&token, TOKEN_VARIABLE.to_owned());
        }
        let file = home.join(TOKEN_FILE);
        if !safe_open::exists(&file) {
            return Ok(None);
        }
        // Public models need no token, so a token that cannot be read does not stop the command.
        match file.canonicalize().map_err(|error| error.to_string()).and_then(|file| {
            safe_open::read_text(&file, MAX_TOKEN_BYTES).map_err(|error| error.problem.to_string())
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
        fs::write(home.path().join(TOKEN_FILE), "hf_file\n").unwrap();
        let (header, source) = read(None).unwrap().unwrap();
        assert_eq!(header, "Bearer hf_file");
        assert!(source.ends_with("/token"), "{source}");
        assert_eq!(read(Some(" hf_set ")).unwrap().unwrap(), ("Bearer hf_set".into(), TOKEN_VARIABLE.into()));
        let error = read(Some("hf_a\r\nX: y")).unwrap_err().to_string();
        assert!(error.contains(TOKEN_VARIABLE) && !error.contains("hf_a"), "{error}");
    }
}
