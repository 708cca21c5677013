//! The spelling of labels and groups, and the columns that hold them.

pub mod columns;
pub mod csv_table;
pub mod text;
