//! Credentials for a server, from MLflow's environment variables, so that no command line contains a secret.

use base64::prelude::{BASE64_STANDARD, Engine};
use ureq::http::HeaderValue;

use crate::error::CliError;

const TOKEN: &str = "MLFLOW_TRACKING_TOKEN";
const USERNAME: &str = "MLFLOW_TRACKING_USERNAME";
const PASSWORD: &str = "MLFLOW_TRACKING_PASSWORD";

/// The hint for a server that refuses access.
pub(super) const HINT: &str =
    "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN";

/// A password or a token, if any. Not `Debug`, so that it is not printed by accident.
pub(crate) struct Credentials {
    /// The value of `Authorization`.
    pub(super) header: Option<HeaderValue>,
    secrets: Vec<String>,
}

impl Credentials {
    /// Reads a user name with a password, or else a token: MLflow's own order.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, CliError> {
        let user = variable(USERNAME).zip(variable(PASSWORD));
        let (value, secrets, name) = if let Some((name, password)) = user {
            let encoded = BASE64_STANDARD.encode(format!("{name}:{password}"));
            (format!("Basic {encoded}"), vec![encoded, password], PASSWORD)
        } else if let Some(token) = variable(TOKEN) {
            (format!("Bearer {token}"), vec![token], TOKEN)
        } else {
            return Ok(Self { header: None, secrets: Vec::new() });
        };
        let mut header = HeaderValue::from_str(&value)
            .map_err(|_| CliError::invalid(format!("{name} contains a character that HTTP cannot send")))?;
        header.set_sensitive(true);
        Ok(Self { header: Some(header), secrets })
    }

    /// Blanks the secrets in a text: some servers quote the request in their refusal.
    pub(super) fn blanked(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_before_token_and_neither_is_shown() {
        let read = |set: &[(&str, &str)]| {
            let value =
                |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
            Credentials::read(value)
        };
        let header =
            |credentials: &Credentials| credentials.header.clone().map(|v| v.to_str().unwrap().to_owned());
        let token = read(&[(TOKEN, "abc"), (USERNAME, "eve")]).unwrap();
        assert_eq!(header(&token).as_deref(), Some("Bearer abc"));
        // The example of RFC 7617.
        let basic = read(&[(TOKEN, "abc"), (USERNAME, "Aladdin"), (PASSWORD, "open sesame")]).unwrap();
        assert_eq!(header(&basic).as_deref(), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        assert_eq!(
            basic.blanked("no 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==', open sesame"),
            "no 'Basic ***', ***"
        );
        assert_eq!(header(&read(&[]).unwrap()), None);
        let error = read(&[(TOKEN, "abc\r\nX: y")]).err().unwrap().to_string();
        assert!(error.starts_with(TOKEN) && !error.contains("abc"), "{error}");
    }
}
