//! The store behind a URL: a client, or in a build without the feature `cloud` what stands in for it.

#[cfg(feature = "cloud")]
mod client;
#[cfg(not(feature = "cloud"))]
mod missing;
#[cfg(feature = "cloud")]
mod problem;

#[cfg(feature = "cloud")]
pub(crate) use client::Store;
#[cfg(not(feature = "cloud"))]
pub(crate) use missing::Store;
