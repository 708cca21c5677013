//! Datasets from the first byte that is prepared to the last id of a split.

mod drawn;
mod groups;
mod hostile;
mod reading;
mod real;
mod report;
mod splits;
mod tiny;
