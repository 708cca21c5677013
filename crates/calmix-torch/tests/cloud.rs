//! Datasets in object storage and on web servers, from outside: whole commands against real servers, through all kinds of
//! faults.
#![cfg(feature = "cloud")]

mod moto;
mod moto_server;
mod scale;
mod shards;
mod tls;
mod web;
