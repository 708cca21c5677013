//! Labels and groups: how they are written, and in which columns.

pub mod columns;
pub mod csv_table;
pub mod text;
