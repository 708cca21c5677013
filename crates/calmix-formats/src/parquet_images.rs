//! Images in Parquet files, as Hugging Face's `datasets` writes them and the Hub stores them.
//!
//! One column holds the encoded images, as `struct<bytes: binary, path: string>` or as plain binary; another one their labels,
//! whole numbers, where a missing one and -1 mean that there is none. A column `group` of text or whole numbers names the
//! group of an image. The metadata of Hugging Face, if any, name the classes.
//!
//! Rows are read one at a time, so memory holds a page of each column.

mod found_classes;
mod image_columns;
mod image_rows;

pub use found_classes::FoundClasses;
pub use image_columns::{ImageColumns, has_image_column};
pub use image_rows::{ImageRow, ImageRows};
