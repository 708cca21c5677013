//! The session that runs a graph on batches. No other file calls the runtime, so it can be replaced here.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use calmix_recipe::device::Device;
use ort::ep;
use ort::session::builder::SessionBuilder;
use ort::session::{Session, SessionInputValue};
use ort::value::TensorRef;

use crate::error::{OrtError, first_line};
use crate::library::runtime;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunOn {
    /// The number of threads per operation, at least one. It does not change the bits of an output.
    pub threads: usize,
    /// The CPU, or a GPU through CUDA, which compiles but has never been run.
    pub device: Device,
}

#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Images of `side` × `side` × 3 bytes.
    Images {
        /// The pixels, row by row.
        pixels: &'a [u8],
        side: usize,
    },
    /// Vectors of `width` numbers.
    Vectors {
        /// The numbers, row by row.
        numbers: &'a [f32],
        width: usize,
    },
}

/// A graph with one input, ready to run.
#[derive(Debug)]
pub struct OnnxSession {
    // `run` of `ort` needs exclusive access. Concurrent calls would compete for the same threads anyway.
    session: Mutex<Session>,
}

impl OnnxSession {
    /// Builds a session from the bytes of a graph that calmix wrote. The bytes are not needed afterwards.
    ///
    /// # Errors
    /// If ONNX Runtime cannot be loaded, does not run on the device, or refuses the graph.
    pub fn new(model: &[u8], run_on: RunOn) -> Result<Self, OrtError> {
        // Before any other function of `ort`, which would search for a library by itself.
        let runtime = runtime()?;
        let builder = Session::builder(&runtime.environment)?
            .with_intra_threads(run_on.threads.max(1))?
            .with_inter_threads(1)?
            .with_parallel_execution(false)?
            .with_intra_op_spinning(false)?
            .with_inter_op_spinning(false)?
            .with_deterministic_compute(true)?;
        let mut builder = on_device(builder, run_on.device)?;
        let session = builder.commit_from_memory(model)?;
        Ok(Self { session: Mutex::new(session) })
    }

    /// Runs a batch; returns the outputs of the graph by name, row by row.
    pub fn run(&self, input: Input<'_>) -> Result<BTreeMap<String, Vec<f32>>, OrtError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if input.rows()? == 0 {
            let outputs = session.outputs().iter();
            return Ok(outputs.map(|output| (output.name().to_owned(), Vec::new())).collect());
        }
        let outputs = session.run([input.value()?])?;
        let mut numbers = BTreeMap::new();
        for (name, value) in &outputs {
            let (_, values) = value.try_extract_tensor::<f32>()?;
            numbers.insert(name.to_owned(), values.to_vec());
        }
        Ok(numbers)
    }
}

impl<'a> Input<'a> {
    fn rows(self) -> Result<usize, OrtError> {
        let (what, length, row) = match self {
            Self::Images { pixels, side } => {
                ("bytes of pixels", pixels.len(), side.saturating_mul(side).saturating_mul(3))
            }
            Self::Vectors { numbers, width } => ("numbers", numbers.len(), width),
        };
        if row == 0 || !length.is_multiple_of(row) {
            return Err(OrtError::Input { what, length, row });
        }
        Ok(length / row)
    }

    fn value(self) -> Result<SessionInputValue<'a>, OrtError> {
        let rows = self.rows()?;
        Ok(match self {
            Self::Images { pixels, side } => {
                TensorRef::from_array_view(([rows, side, side, 3], pixels))?.into()
            }
            Self::Vectors { numbers, width } => TensorRef::from_array_view(([rows, width], numbers))?.into(),
        })
    }
}

/// Sets the execution provider, so that ONNX Runtime does not choose one.
fn on_device(builder: SessionBuilder, device: Device) -> Result<SessionBuilder, OrtError> {
    let refused = |why: &str| OrtError::Device { device, why: why.to_owned() };
    let provider = match device {
        Device::Cpu => ep::CPU::default().build(),
        Device::Cuda(number) => {
            let number = i32::try_from(number).map_err(|_| refused("there is no GPU of this number"))?;
            // Compute in f32, as on the CPU.
            ep::CUDA::default().with_device_id(number).with_tf32(false).build()
        }
        Device::Mps => return Err(refused("it has no provider for this GPU")),
    };
    // Without `error_on_failure`, a missing GPU would silently fall back to the CPU.
    let builder = builder.with_execution_providers([provider.error_on_failure()]);
    builder.map_err(|error| match device {
        Device::Cpu => error.into(),
        _ => refused(&format!("{} (`pip install onnxruntime-gpu` installs it)", first_line(error.message()))),
    })
}
