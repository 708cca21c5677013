//! What the environment says of the Hub: the variables of `huggingface_hub`, so that a shell that is set up for the Hub's Python
//! client is set up for calmix.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use ureq::http::Uri;

use super::token::Token;
use crate::error::CliError;
use crate::remote::https::{read_address, seconds, variable, warn_if_unencrypted};

const ENDPOINT: &str = "HF_ENDPOINT";
const HOME: &str = "HF_HOME";
const CACHE: &str = "HF_HUB_CACHE";
pub(super) const OFFLINE: &str = "HF_HUB_OFFLINE";
pub(super) const TIMEOUT: &str = "HF_HUB_DOWNLOAD_TIMEOUT";

/// The Hub, unless `HF_ENDPOINT` names another.
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// The default of `HF_HUB_DOWNLOAD_TIMEOUT`: how long a server may send nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// The Hub and its cache, as the environment names them.
pub(crate) struct HubVariables {
    /// Without a slash at its end, a user or a password.
    pub(crate) endpoint: String,
    pub(super) uri: Uri,
    /// The folder in which the Hub's Python client keeps what it has downloaded.
    pub(crate) cache: PathBuf,
    pub(super) token: Option<Token>,
    pub(crate) is_offline: bool,
    pub(super) patience: Duration,
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
            patience: seconds(TIMEOUT, PATIENCE)?,
        })
    }
}

/// The folder of the Hub's Python client.
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
