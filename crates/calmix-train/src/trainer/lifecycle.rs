//! A run from its beginning to its end: how it is opened, its loop, its checkpoints, its events, and its result.

pub(super) mod begin_run;
pub(super) mod checkpoint_files;
pub(super) mod evaluation;
pub(super) mod finish;
pub(super) mod open_run;
pub(crate) mod opened_run;
pub(super) mod run_log;
pub(super) mod save;
pub(super) mod timer;
pub(super) mod train_loop;
