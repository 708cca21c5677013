//! The pixels that a model of images reads, made by the decoder and the resizing of its training.

use std::path::{Path, PathBuf};

use calmix::data::augment::{Augment, EvalView, Filter, Scratch};
use calmix::data::shrink::{decode_shrunk, shrunk};
use calmix::formats::decode::DecodeLimits;
use calmix::formats::image::Image;
use calmix::io::safe_open;
use numpy::{IntoPyArray, PyArray4, PyArrayMethods, PyReadonlyArray3, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::interop::{internal, invalid};

/// How images become the pixels that a model reads.
#[pyclass(frozen)]
pub(crate) struct ImageView {
    transform: Augment,
    shrink: u32,
}

#[pymethods]
impl ImageView {
    #[new]
    fn new(size: u32, resize: u32, filter: &str, shrink: u32) -> PyResult<Self> {
        let mut transform = Augment::usb(size);
        transform.evaluation = EvalView { resize };
        transform.filter = filter.parse::<Filter>().map_err(invalid)?;
        transform.check().map_err(invalid)?;
        Ok(Self { transform, shrink })
    }

    /// The pixels of image files, (files, size, size, 3).
    fn of_files<'py>(&self, py: Python<'py>, paths: Vec<PathBuf>) -> PyResult<Bound<'py, PyArray4<u8>>> {
        let mut views = vec![0; paths.len() * self.transform.bytes()];
        py.detach(|| {
            let mut scratch = Scratch::default();
            for (path, view) in paths.iter().zip(views.chunks_exact_mut(self.transform.bytes())) {
                self.view_file(path, &mut scratch, view)?;
            }
            PyResult::Ok(())
        })?;
        self.shaped(py, views)
    }

    /// The pixels of encoded images, (images, size, size, 3). `first` is the number of the first one in messages.
    fn of_bytes<'py>(
        &self,
        py: Python<'py>,
        images: Vec<PyBackedBytes>,
        first: usize,
    ) -> PyResult<Bound<'py, PyArray4<u8>>> {
        let mut views = vec![0; images.len() * self.transform.bytes()];
        py.detach(|| {
            let mut scratch = Scratch::default();
            let rows = images.iter().zip(views.chunks_exact_mut(self.transform.bytes()));
            for (number, (image, view)) in (first..).zip(rows) {
                self.view_bytes(image, &format!("image {number}"), &mut scratch, view)?;
            }
            PyResult::Ok(())
        })?;
        self.shaped(py, views)
    }

    /// The pixels of one image, (height, width, 3), as (1, size, size, 3).
    fn of_pixels<'py>(
        &self,
        py: Python<'py>,
        pixels: PyReadonlyArray3<'_, u8>,
    ) -> PyResult<Bound<'py, PyArray4<u8>>> {
        let &[height, width, _] = pixels.shape() else {
            return Err(invalid("an image has three dimensions"));
        };
        let [width, height] = [width, height].map(|side| u32::try_from(side).unwrap_or(u32::MAX));
        let image = Image::new(width, height, pixels.as_slice()?.to_vec());
        let image = image.ok_or_else(|| invalid("an image has three channels, red, green and blue"))?;
        let mut view = vec![0; self.transform.bytes()];
        let image = shrunk(image, self.shrink);
        self.transform.evaluation(&image, &mut Scratch::default(), &mut view).map_err(invalid)?;
        self.shaped(py, view)
    }
}

impl ImageView {
    fn view_file(&self, path: &Path, scratch: &mut Scratch, view: &mut [u8]) -> PyResult<()> {
        let bytes = safe_open::read(path, DecodeLimits::default().bytes).map_err(invalid)?;
        self.view_bytes(&bytes, &path.display().to_string(), scratch, view)
    }

    /// Decodes an image, which messages call `name`.
    fn view_bytes(&self, bytes: &[u8], name: &str, scratch: &mut Scratch, view: &mut [u8]) -> PyResult<()> {
        let limits = DecodeLimits::default();
        let in_image = |problem: &dyn std::fmt::Display| invalid(format!("{name}: {problem}"));
        if bytes.len() as u64 > limits.bytes {
            return Err(in_image(&format!("{} bytes, but {} are the most", bytes.len(), limits.bytes)));
        }
        let image = decode_shrunk(bytes, &limits, self.shrink).map_err(|problem| in_image(&problem))?;
        self.transform.evaluation(&image, scratch, view).map_err(|problem| in_image(&problem))
    }

    fn shaped<'py>(&self, py: Python<'py>, views: Vec<u8>) -> PyResult<Bound<'py, PyArray4<u8>>> {
        let side = self.transform.size as usize;
        let rows = views.len() / self.transform.bytes().max(1);
        views.into_pyarray(py).reshape([rows, side, side, 3]).map_err(internal)
    }
}
