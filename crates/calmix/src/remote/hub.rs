//! Models of the Hugging Face Hub: its HTTP interface, and the variables and the cache of `huggingface_hub`.
//!
//! The Hub lists the files of a repository at a revision, with the commit, sizes and hashes. Files are then requested by commit,
//! so that all of them belong together; large ones are redirected to storage on another host, which gets no token. The hash of
//! every file is compared with the one that the Hub listed. All names, sizes and contents from the Hub are untrusted until they
//! are checked.
//!
//! | question | module |
//! |---|---|
//! | which repository, at which revision? | [`repository`] |
//! | which variables configure it? | [`variables`] |
//! | which files does it have? | [`listing`], [`cache`] |
//! | which of them are a model for calmix? | [`chosen_files`] |
//! | how does a file arrive? | [`client`], [`download`], [`part_folder`], [`content_hash`] |
//! | what does a failure mean, and may another attempt succeed? | [`failure`] |
//! | where did weights come from? | [`origin`] |

mod cache;
mod chosen_files;
mod client;
mod content_hash;
mod download;
mod failure;
mod listing;
mod origin;
mod part_folder;
mod repository;
mod snapshot;
mod variables;

pub(crate) use chosen_files::{ChosenFiles, ModelKind, export_hint};
pub(crate) use origin::{ORIGIN, Origin, OriginFile};
pub(crate) use part_folder::PartFolder;
pub(crate) use repository::Repository;
pub(crate) use snapshot::Snapshot;
pub(crate) use variables::HubVariables;
