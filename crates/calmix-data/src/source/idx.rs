//! IDX files of unsigned bytes, such as MNIST and Fashion-MNIST.
//!
//! Plain files stay in place; gzip files are unpacked.

use std::io::Write;
use std::path::Path;

use calmix_formats::idx::Idx;
use calmix_formats::source_dir::SourceDir;
use serde::{Deserialize, Serialize};

use super::names::{self, DIGITS, FASHION};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, PixelLayout, Prepared};

/// The dataset, because the files do not contain class names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Classes {
    /// MNIST: classes `0` to `9`.
    Digits,
    /// Fashion-MNIST: its ten garments.
    Fashion,
}

impl Classes {
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Digits => &DIGITS,
            Self::Fashion => &FASHION,
        }
    }

    fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Digits => &["MNIST/raw"],
            Self::Fashion => &["FashionMNIST/raw"],
        }
    }
}

/// Prepares the four files in `root`, plain or gzipped, as subsets `train` and `test`.
///
/// # Errors
/// If a file is missing, contradicts its header or expands beyond reason, a label is not a class, or `target`
/// cannot be written.
pub fn prepare(root: &Path, target: &Path, classes: Classes) -> Result<Prepared, DataError> {
    let subsets = [("train", "train"), ("test", "t10k")];
    let plain: Vec<String> = subsets.iter().flat_map(|(_, stem)| [images(stem), labels(stem)]).collect();
    let packed: Vec<String> = plain.iter().map(|name| format!("{name}.gz")).collect();
    let all: Vec<&str> = plain.iter().chain(&packed).map(String::as_str).collect();
    let dir = SourceDir::find(root, classes.folders(), &all)?;
    let open = |plain: &str| {
        let packed = format!("{plain}.gz");
        let name = if dir.has(plain) || !dir.has(&packed) { plain } else { &packed };
        dir.require(&[name]).map_err(|error| error.hint(format!("put {plain} or {plain}.gz here")))?;
        Idx::open(&dir, name)
    };
    let mut files = Vec::new();
    for (subset, stem) in subsets {
        files.push((subset, open(&images(stem))?, open(&labels(stem))?));
    }

    let mut size = None;
    for (_, images, labels) in &files {
        size = Some(images.check_against(labels, size)?);
    }
    let (width, height) = size.unwrap_or_default();
    let encoding = Encoding::Raw { width, height, layout: PixelLayout::Grey };
    let mut builder = ManifestBuilder::new(target, names::owned(classes.names()), encoding)?;
    for (subset, images, labels) in files {
        builder.subset(subset);
        add(&mut builder, images, labels, classes.names().len())?;
    }
    builder.finish()
}

fn images(stem: &str) -> String {
    format!("{stem}-images-idx3-ubyte")
}

fn labels(stem: &str) -> String {
    format!("{stem}-labels-idx1-ubyte")
}

fn add(
    builder: &mut ManifestBuilder,
    mut images: Idx,
    mut labels: Idx,
    classes: usize,
) -> Result<(), DataError> {
    let mut unpacked = None;
    let part = if images.packed {
        let name = images.relative.rsplit('/').next().unwrap_or_default().trim_end_matches(".gz").to_owned();
        unpacked.insert(builder.unpack(&name)?).part
    } else {
        builder.part(&images.relative, images.position + images.values)?
    };
    let mut offset = if images.packed { 0 } else { images.position };
    let [samples, height, width] = *images.dims.as_slice() else {
        return Err(images.refused("expected three dimensions").into());
    };
    let mut pixels = vec![0; height as usize * width as usize];
    for _ in 0..samples {
        let mut label = [0];
        labels.read(&mut label)?;
        let [label] = label;
        if usize::from(label) >= classes {
            let problem = format!("label {label}, expected 0 to {}", classes - 1);
            let location = labels.location(labels.position - 1);
            return Err(DataError::content(&labels.path, problem)
                .at(location)
                .hint("download the file again"));
        }
        images.read(&mut pixels)?;
        if let Some(unpacked) = &mut unpacked {
            unpacked.write_all(&pixels).map_err(|error| DataError::new(&images.path, error))?;
        }
        builder.sample(part, offset, &pixels, Some(u32::from(label)))?;
        offset += pixels.len() as u64;
    }
    images.finish()?;
    labels.finish()?;
    unpacked.map_or(Ok(()), |unpacked| builder.finish_part(unpacked))
}
