//! Servers that the commands send to and download from.

mod https;
pub(crate) mod hub;
pub(crate) mod mlflow;
