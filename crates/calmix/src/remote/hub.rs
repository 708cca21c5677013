//! Models of the Hugging Face Hub, by its HTTP interface and by the variables and the cache of `huggingface_hub`.
//!
//! The Hub lists the files of a repository at a revision, with the commit, sizes and hashes. Files are then requested by
//! commit, so that all of them belong together; large ones are redirected to a storage on another host, which gets no token.
//! Every byte is compared with the hash that the Hub listed. What the Hub answers is hostile until checked: names, sizes and
//! contents alike.
//!
//! | question | module |
//! |---|---|
//! | which repository, at which revision? | [`repository`] |
//! | what does the environment say? | [`variables`] |
//! | which files does it have? | [`listing`], [`cache`] |
//! | which of them are a model for calmix? | [`chosen_files`] |
//! | how does a file arrive? | [`client`], [`download`], [`part_folder`], [`content_hash`] |
//! | what does a failure mean, and is another attempt worth it? | [`failure`] |
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
