//! The binary as a person meets it: whole commands, what they print, what they leave, how they end.
//!
//! Texts are compared with the files in `tests/cli/golden`; `CALMIX_BLESS=1 cargo test -p calmix --test cli` writes
//! them anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "cli/desk.rs"]
mod desk;
#[path = "cli/helps.rs"]
mod helps;
#[path = "cli/inspects.rs"]
mod inspects;
#[path = "cli/json.rs"]
mod json;
#[path = "cli/mistakes.rs"]
mod mistakes;
#[path = "cli/moves.rs"]
mod moves;
#[path = "cli/processes.rs"]
mod processes;
#[path = "cli/signals.rs"]
mod signals;
#[path = "cli/templates.rs"]
mod templates;
#[path = "cli/trains.rs"]
mod trains;
