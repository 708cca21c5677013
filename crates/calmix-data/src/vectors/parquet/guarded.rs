//! Calls of the crate `parquet`, which panics on some damaged files.

use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::errors::{ParquetError, Result};

/// Calls `read` and makes a panic an error. What `read` changed is dropped by the caller: an error ends the reading of a file.
pub(super) fn guarded<T, E: From<ParquetError>>(read: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("the file is damaged".into()).into()))
}
