//! The store of a URL: a client, or a stub in a build without the feature `cloud`.

#[cfg(feature = "cloud")]
mod client;
#[cfg(not(feature = "cloud"))]
mod disabled;
#[cfg(feature = "cloud")]
mod problem;

#[cfg(feature = "cloud")]
pub(crate) use client::Store;
#[cfg(not(feature = "cloud"))]
pub(crate) use disabled::Store;

/// An object of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteObject {
    /// Its path relative to the folder.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its version: the ETag, or else the modification time. Empty if the server reports neither.
    pub version: String,
    /// The ETag, for conditional requests.
    pub(crate) e_tag: Option<String>,
}
