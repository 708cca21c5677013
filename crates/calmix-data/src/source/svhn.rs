//! SVHN, cropped digits: MATLAB files of 73,257, 26,032 and (extra) 531,131 images of 32×32.
//!
//! X is 32×32×3×N, column by column, so an image is 3,072 bytes in a row; y holds N labels, where 10 means the
//! digit 0. <http://ufldl.stanford.edu/housenumbers/>

use std::io::Write;
use std::path::Path;

use calmix_formats::mat::{MatFile, MatType, Variable};
use calmix_formats::source_dir::SourceDir;

use super::names::{self, DIGITS};
use crate::error::DataError;
use crate::manifest::{Encoding, ManifestBuilder, PixelLayout, Prepared};

const PIXELS: usize = 32 * 32 * 3;
const SUBSETS: [(&str, &str); 3] =
    [("train", "train_32x32.mat"), ("test", "test_32x32.mat"), ("extra", "extra_32x32.mat")];

/// Prepares the files in `root`, or in `svhn` inside it, as subsets `train`, `test` and, if `extra` is set, `extra`.
///
/// Compressed images are unpacked into the prepared folder; others stay in place. Images and labels are read side by side,
/// so their order in the file does not matter and neither is held in memory as a whole.
///
/// # Errors
/// If a file is missing or damaged, X and y are not as described above, or `target` cannot be written.
pub fn prepare(root: &Path, target: &Path, extra: bool) -> Result<Prepared, DataError> {
    let all = SUBSETS.map(|(_, file)| file);
    let dir = SourceDir::find(root, &["svhn"], &all)?;
    let subsets = if extra { &SUBSETS[..] } else { &SUBSETS[..2] };
    dir.require(&all[..subsets.len()])?;
    let mut files = Vec::new();
    for &(subset, name) in subsets {
        let opened = dir.open(name)?;
        files.push((subset, name, opened.relative, opened.length, SvhnFile::open(&opened.path)?));
    }
    let encoding = Encoding::Raw { width: 32, height: 32, layout: PixelLayout::PlanesByColumn };
    let mut builder = ManifestBuilder::new(target, names::owned(&DIGITS), encoding)?;
    for (subset, name, relative, length, pair) in files {
        builder.subset(subset);
        if let Some(offset) = pair.images.offset() {
            let part = builder.part(&relative, length)?;
            pair.each(|index, pixels, label| {
                builder.sample(part, offset + index * PIXELS as u64, pixels, Some(label))
            })?;
        } else {
            let mut unpacked = builder.unpack(&name.replace(".mat", ".bin"))?;
            pair.each(|index, pixels, label| {
                unpacked.write_all(pixels).map_err(|error| DataError::new(target, error))?;
                builder.sample(unpacked.part, index * PIXELS as u64, pixels, Some(label))
            })?;
            builder.finish_part(unpacked)?;
        }
    }
    builder.finish()
}

/// Images and labels of one file, each positioned at the first value.
struct SvhnFile {
    images: Variable,
    labels: Variable,
    samples: u64,
}

impl SvhnFile {
    fn open(path: &Path) -> Result<Self, DataError> {
        let file = MatFile::open(path)?;
        let variable = |name: &str| {
            file.variable(name)?.ok_or_else(|| {
                let problem = format!("there is no variable {name:?}; expected X and y");
                DataError::content(path, problem).hint("download format 2 (cropped digits) of SVHN")
            })
        };
        let (images, labels) = (variable("X")?, variable("y")?);
        let refused = |problem: String| {
            Err(DataError::content(path, problem).hint("download format 2 (cropped digits) of SVHN"))
        };
        let samples = match (images.mat_type(), images.dims()) {
            // MATLAB drops a trailing dimension of one.
            (MatType::U8, [32, 32, 3]) => 1,
            (MatType::U8, &[32, 32, 3, samples]) if samples > 0 => samples,
            (mat_type, dims) => {
                return refused(format!("X is {dims:?} of {mat_type:?}, expected [32, 32, 3, N] of U8"));
            }
        };
        match labels.dims() {
            &[n, 1] | &[1, n] if n == samples => Ok(Self { images, labels, samples }),
            dims => refused(format!("y is {dims:?}, expected [{samples}, 1] for {samples} images")),
        }
    }

    /// Calls `act` with the index, the pixels and the class of each sample.
    fn each(
        mut self,
        mut act: impl FnMut(u64, &[u8], u32) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        let mut pixels = [0; PIXELS];
        for index in 0..self.samples {
            let location = self.labels.location();
            let number = self.labels.number()?;
            self.images.bytes(&mut pixels)?;
            let label = digit(number).ok_or_else(|| {
                let problem = format!("label {number}, expected 1 to 10");
                let error = DataError::content(self.labels.path(), problem).at(location);
                error.hint("download the file again")
            })?;
            act(index, &pixels, label)?;
        }
        self.images.finish()?;
        Ok(self.labels.finish()?)
    }
}

/// Returns the digit of a label.
fn digit(label: f64) -> Option<u32> {
    (1_u32..=10).find(|&known| f64::from(known) == label).map(|label| label % 10)
}
