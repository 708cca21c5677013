//! Images in Parquet files, as Hugging Face's `datasets` writes them and the Hub stores them.
//!
//! One column holds the encoded images, as `struct<bytes: binary, path: string>` or plain binary; another holds their labels
//! as integers, where null and -1 mean unlabelled. A column `group` of text or integers names the group of an image. Hugging
//! Face's metadata, if any, name the classes.
//!
//! Rows are read one at a time, so memory holds one page per column.

mod found_classes;
mod image_columns;
mod image_rows;

pub use found_classes::FoundClasses;
pub use image_columns::{ImageColumns, has_image_column};
pub use image_rows::{ImageRow, ImageRows};
