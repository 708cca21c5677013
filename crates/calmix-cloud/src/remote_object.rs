//! An object of a store, as a listing or a request describes it.

/// An object of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteObject {
    /// Its path below the folder.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its version: the ETag, or else the time of its last change. Empty if the server states neither.
    pub version: String,
    /// The ETag, which a request can demand.
    pub(crate) e_tag: Option<String>,
}
