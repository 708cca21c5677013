//! A sweep: its file, its runs, the worker that trains them, and their results.

mod results;
pub(crate) mod sweep_file;
pub(crate) mod sweep_run;
pub(crate) mod worker;
