//! HTTP and HTTPS for `calmix push` and `calmix weights get`: addresses, proxies, authorities and redirects.
//!
//! Each of the two has a server, credentials and variables of its own. What they share is here: the variables that curl and
//! Python's requests read too, and what a redirect may do.

mod address;
mod proxy;
mod redirect;
mod tls;
mod variable;

use std::time::Duration;

use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;

pub(crate) use address::{is_same_server, read_address, warn_if_unencrypted};
pub(crate) use proxy::proxy_for;
pub(crate) use redirect::{location, redirected};
pub(crate) use tls::tls_failure;
pub(crate) use variable::{seconds, variable};

use crate::error::CliError;

/// Redirects that are followed for one request.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// Begins the settings of all requests. `certificates` is the variable that names a PEM file of authorities.
pub(crate) fn agent_config(certificates: &str) -> Result<ConfigBuilder<AgentScope>, CliError> {
    Ok(Agent::config_builder()
        .tls_config(tls::tls_config(certificates)?)
        .user_agent(concat!("calmix/", env!("CARGO_PKG_VERSION")))
        .http_status_as_error(false)
        // Followed here, because only a part of them may be, and credentials must not go along with all of them.
        .max_redirects(0)
        // Servers close idle connections after seconds, some after two; a request must not meet that.
        .max_idle_age(Duration::from_secs(1)))
}
