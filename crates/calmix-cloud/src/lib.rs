//! Object storage: whole shards are read through a bounded local cache, and finished files are uploaded.
//!
//! The API is synchronous; the async runtime of the HTTP client is internal to `store`. Without the feature `cloud` there is
//! no client, and every URL is refused with an explanation of how to get it.
//!
//! | question | module |
//! |---|---|
//! | what is a URL, and what is a path? | [`CloudUrl`] |
//! | which shards does a URL name, and where is one on the local disk? | [`RemoteFolder`] |
//! | which shards stay on the local disk? | `shard_cache` |
//! | how are finished files stored? | [`RemoteOutput`] |
#![forbid(unsafe_code)]

mod braces;
mod cloud_url;
mod prefetch;
mod remote_folder;
mod remote_output;
mod shard_cache;
mod store;

pub use cloud_url::{CloudUrl, Scheme};
pub use remote_folder::RemoteFolder;
pub use remote_output::RemoteOutput;
pub use shard_cache::{CACHE_FOLDER, CACHE_LIMIT};
pub use store::RemoteObject;
