//! IDX files of unsigned bytes: MNIST, Fashion-MNIST and their relatives.
//!
//! An idx file is two zero bytes, the type (8: unsigned bytes), the number of dimensions, each dimension as a
//! big-endian u32, and the values. Plain files stay in place; those under gzip are unpacked.
//! <http://yann.lecun.com/exdb/mnist/>

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};

use super::names::{self, DIGITS, FASHION};
use super::source_dir::SourceDir;
use crate::error::{DataError, DataProblem};
use crate::expansion;
use crate::manifest::{Encoding, ManifestBuilder, PixelLayout};
use crate::prepare::Prepared;

/// The longest side of an image: one image is held in memory, and the published ones are 28.
const LONGEST_SIDE: u32 = 4_096;

/// Which dataset the files hold: they do not contain class names themselves.
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

/// Prepares the four files in `root`, plain or under gzip, as subsets `train` and `test`.
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
        return Err(images.refused("expected three dimensions"));
    };
    let mut pixels = vec![0; height as usize * width as usize];
    for _ in 0..samples {
        let mut label = [0];
        labels.read(&mut label)?;
        let [label] = label;
        if usize::from(label) >= classes {
            let problem = DataProblem::Content(format!("label {label}, expected 0 to {}", classes - 1));
            let location = labels.location(labels.position - 1);
            return Err(DataError::new(&labels.path, problem).at(location).hint("download the file again"));
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

/// An idx file whose header has been read.
struct Idx {
    path: PathBuf,
    relative: String,
    packed: bool,
    dims: Vec<u32>,
    /// The product of the dimensions.
    values: u64,
    /// How many bytes have been read, after unpacking.
    position: u64,
    stream: IdxStream,
}

enum IdxStream {
    Plain(BufReader<File>),
    Packed(MultiGzDecoder<BufReader<File>>),
}

impl Idx {
    fn open(dir: &SourceDir, name: &str) -> Result<Self, DataError> {
        let opened = dir.open(name)?;
        let packed = Path::new(name).extension().is_some_and(|extension| extension == "gz");
        let stream = if packed {
            IdxStream::Packed(MultiGzDecoder::new(opened.reader))
        } else {
            IdxStream::Plain(opened.reader)
        };
        let (path, relative) = (opened.path, opened.relative);
        let mut idx = Self { path, relative, packed, dims: Vec::new(), values: 0, position: 0, stream };
        let mut magic = [0; 4];
        idx.read(&mut magic)?;
        let dimensions = if name.contains("-idx3-") { 3 } else { 1 };
        if magic != [0, 0, 8, dimensions] {
            return Err(idx.refused(&format!("expected 00 00 08 {dimensions:02x}, found {magic:02x?}")));
        }
        let mut values: Option<u64> = Some(1);
        for _ in 0..dimensions {
            let mut dim = [0; 4];
            idx.read(&mut dim)?;
            let dim = u32::from_be_bytes(dim);
            idx.dims.push(dim);
            values = values.and_then(|values| values.checked_mul(u64::from(dim)));
        }
        let total = values.and_then(|values| values.checked_add(idx.position));
        let Some((values, total)) = values.zip(total) else {
            return Err(idx.refused(&format!("the dimensions {:?} are too large", idx.dims)));
        };
        idx.values = values;
        if !packed && total != opened.length {
            return Err(idx
                .refused(&format!("its header declares {total} bytes, but the file has {}", opened.length)));
        }
        if packed && !expansion::is_plausible(opened.length, total) {
            let problem = format!("{} compressed bytes that claim to unpack to {total} bytes", opened.length);
            let error = DataError::new(&idx.path, DataProblem::Limit(problem));
            return Err(error.hint("if you trust the file, unpack it with gunzip first"));
        }
        Ok(idx)
    }

    /// The width and height of the images, if these labels and the other subset agree with them.
    fn check_against(&self, labels: &Self, size: Option<(u32, u32)>) -> Result<(u32, u32), DataError> {
        let (&[samples, height, width], &[labelled]) = (self.dims.as_slice(), labels.dims.as_slice()) else {
            return Err(self.refused("expected three dimensions for the images and one for the labels"));
        };
        let content = |path: &Path, problem: String| {
            let error = DataError::new(path, DataProblem::Content(problem));
            error.hint("download images and labels again, together")
        };
        if samples == 0 {
            return Err(content(&self.path, "the file has no images".into()));
        }
        if samples != labelled {
            return Err(content(&labels.path, format!("{labelled} labels for {samples} images")));
        }
        if !(1..=LONGEST_SIDE).contains(&width) || !(1..=LONGEST_SIDE).contains(&height) {
            let problem = format!("images of {width}×{height} pixels, expected 1 to {LONGEST_SIDE} per side");
            return Err(DataError::new(&self.path, DataProblem::Limit(problem)));
        }
        match size {
            Some((w, h)) if (w, h) != (width, height) => Err(content(
                &self.path,
                format!("images of {width}×{height} pixels, but the others have {w}×{h}"),
            )),
            _ => Ok((width, height)),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> Result<(), DataError> {
        let read = match &mut self.stream {
            IdxStream::Plain(plain) => plain.read_exact(into),
            IdxStream::Packed(packed) => packed.read_exact(into),
        };
        read.map_err(|error| self.unreadable(error))?;
        self.position += into.len() as u64;
        Ok(())
    }

    /// Refuses bytes after the last value, and checks gzip's own checksum.
    fn finish(mut self) -> Result<(), DataError> {
        let mut byte = [0];
        let rest = match &mut self.stream {
            IdxStream::Plain(plain) => plain.read(&mut byte),
            IdxStream::Packed(packed) => packed.read(&mut byte),
        };
        match rest {
            Ok(0) => Ok(()),
            Ok(_) => {
                Err(self.refused(&format!("more than the {} values that its header declares", self.values)))
            }
            Err(error) => Err(self.unreadable(error)),
        }
    }

    fn location(&self, position: u64) -> String {
        format!("byte {position}{}", if self.packed { " when unpacked" } else { "" })
    }

    fn unreadable(&self, error: io::Error) -> DataError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.refused("the file ends early"),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.packed => {
                self.refused(&format!("not gzip, or damaged ({error})"))
            }
            _ => DataError::new(&self.path, error).at(self.location(self.position)),
        }
    }

    fn refused(&self, problem: &str) -> DataError {
        let error = DataError::new(&self.path, DataProblem::Format(problem.to_owned()));
        error.at(self.location(self.position)).hint("download the file again")
    }
}
