//! The spelling of labels, groups and draws, and the columns that hold them.

pub mod columns;
pub mod csv_table;
pub mod drawn;
pub mod predicted;
pub mod text;
pub mod weight;
