//! Vectors in every format that calmix reads: what other tools wrote, and files that are refused.

mod groups;
mod labels;
mod same;
mod sets;
mod weights;
