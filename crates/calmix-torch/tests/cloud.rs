//! Datasets in object storage and on web servers, from outside: whole commands against real servers, through all kinds of
//! faults.
#![cfg(feature = "cloud")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(dead_code, reason = "the files that all tests share have more than these need")]

#[path = "cloud/moto.rs"]
mod moto;
#[path = "cloud/moto_server.rs"]
mod moto_server;
#[path = "cli/program.rs"]
mod program;
#[path = "cloud/scale.rs"]
mod scale;
#[path = "cloud/shards.rs"]
mod shards;
#[path = "cloud/tls.rs"]
mod tls;
#[path = "cloud/web.rs"]
mod web;
#[path = "cli/workspace.rs"]
mod workspace;
