//! The planner of CalibrateMix and its base algorithms: outputs of a network in, the plan of a training step out. It wraps
//! `calmix_core::planner::Planner`, which also trains the heads of calmix.

use calmix_core::loss::LossKind;
use calmix_core::method::MethodState;
use calmix_core::mixup::Row;
use calmix_core::observation::{Observation, Rows};
use calmix_core::planner::{Planned, Planner as CorePlanner};
use calmix_core::rng::Seed;
use calmix_core::schedule::RunStep;
use calmix_recipe::Layers;
use calmix_run::tensor_files::sample_files::{
    read_labelled, read_unlabelled, write_labelled, write_unlabelled,
};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::interop::{classes_of, internal, invalid, matrix};

/// A method with its state.
#[pyclass(module = "calmix._calmix")]
pub(crate) struct Planner {
    core: CorePlanner,
    /// The ids of the unlabelled samples, ascending; their places are their slots.
    unlabelled: Vec<u64>,
    classes: usize,
    steps: u64,
    planned: Option<Planned>,
}

#[pymethods]
impl Planner {
    #[new]
    fn new(
        classes: usize,
        labelled: Vec<u64>,
        mut unlabelled: Vec<u64>,
        steps: u64,
        seed: u64,
        settings: Vec<(String, String)>,
    ) -> PyResult<Self> {
        let mut layers = Layers::new();
        for (key, value) in settings {
            layers = layers.set(&format!("{key}={value}"));
        }
        let method = layers.resolve().map_err(invalid)?.recipe.method;
        unlabelled.sort_unstable();
        unlabelled.dedup();
        let core = CorePlanner::new(method, classes, &labelled, unlabelled.len(), Seed(seed));
        Ok(Self { core, unlabelled, classes, steps, planned: None })
    }

    /// The weight of each term of the loss, by name.
    #[getter]
    fn loss_weights<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let weights = PyDict::new(py);
        for term in self.core.method.loss_terms() {
            let name = match term.kind {
                LossKind::Labelled => "labelled",
                LossKind::Unlabelled => "unlabelled",
                LossKind::Mixup(_) => "mixup",
                LossKind::Fairness => "fairness",
                LossKind::LogitDistance { .. } => "logit_distance",
            };
            weights.set_item(name, term.weight)?;
        }
        Ok(weights)
    }

    /// Plans a step. Rows of a mixture count the labelled rows first, then the unlabelled ones.
    #[expect(
        clippy::too_many_arguments,
        reason = "a batch has that many arrays, and Python passes them by name"
    )]
    fn plan<'py>(
        &mut self,
        py: Python<'py>,
        step: u64,
        labelled_ids: PyReadonlyArray1<'py, u64>,
        labels: PyReadonlyArray1<'py, i64>,
        labelled_logits: PyReadonlyArray2<'py, f32>,
        labelled_features: PyReadonlyArray2<'py, f32>,
        unlabelled_ids: PyReadonlyArray1<'py, u64>,
        unlabelled_logits: PyReadonlyArray2<'py, f32>,
        unlabelled_features: PyReadonlyArray2<'py, f32>,
    ) -> PyResult<Bound<'py, PyDict>> {
        if self.planned.is_some() {
            let message =
                "the plan before was neither committed nor undone: call commit() after the step, or undo()";
            return Err(PyRuntimeError::new_err(message));
        }
        let labels = classes_of(&labels)?;
        let ids = unlabelled_ids.as_slice()?;
        let slots: Vec<u64> = ids.iter().map(|id| self.slot(*id)).collect::<PyResult<_>>()?;
        let observation = Observation {
            labelled: Rows {
                ids: labelled_ids.as_slice()?,
                logits: matrix(&labelled_logits)?,
                features: matrix(&labelled_features)?,
            },
            labels: &labels,
            unlabelled: Rows {
                ids,
                logits: matrix(&unlabelled_logits)?,
                features: matrix(&unlabelled_features)?,
            },
        };
        let step = RunStep { step, steps: self.steps };
        let core = &mut self.core;
        let planned = py.detach(|| core.plan(&observation, &slots, step)).map_err(invalid)?;
        let plan = as_dict(py, &planned, labels.len(), self.classes)?;
        self.planned = Some(planned);
        Ok(plan)
    }

    /// Ends the step, and updates the state.
    fn commit(&mut self) -> PyResult<()> {
        let planned =
            self.planned.take().ok_or_else(|| PyRuntimeError::new_err("there is no plan to commit"))?;
        self.core.commit(planned);
        Ok(())
    }

    /// Discards the plan, after a step that was not made.
    fn undo(&mut self) {
        self.planned = None;
        self.core.undo();
    }

    /// The state, as bytes by name.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.planned.is_some() {
            return Err(PyRuntimeError::new_err("commit() or undo() the plan before the state is read"));
        }
        let method = serde_json::to_vec(&self.core.state).map_err(internal)?;
        let labelled = write_labelled(self.core.labelled.margins.as_ref()).map_err(internal)?;
        let micro_batch =
            self.core.samples.micro_batches.first().ok_or_else(|| internal("there is no micro-batch"))?;
        let samples = write_unlabelled(micro_batch).map_err(internal)?;
        let state = PyDict::new(py);
        for (name, bytes) in [("method", method), ("labelled", labelled), ("unlabelled", samples)] {
            state.set_item(name, PyBytes::new(py, &bytes))?;
        }
        Ok(state)
    }

    /// Restores a state of the same method and samples.
    fn load(&mut self, method: &[u8], labelled: &[u8], unlabelled: &[u8]) -> PyResult<()> {
        let state: MethodState = serde_json::from_slice(method).map_err(invalid)?;
        let margins = read_labelled(labelled, self.core.labelled.margins.clone()).map_err(invalid)?;
        let Some(micro_batch) = self.core.samples.micro_batches.first_mut() else {
            return Err(internal("there is no micro-batch"));
        };
        *micro_batch = read_unlabelled(unlabelled, micro_batch.clone()).map_err(invalid)?;
        self.core.labelled.margins = margins;
        self.core.state = state;
        self.planned = None;
        Ok(())
    }
}

impl Planner {
    /// Returns the slot of an unlabelled sample.
    fn slot(&self, id: u64) -> PyResult<u64> {
        match self.unlabelled.binary_search(&id) {
            Ok(slot) => Ok(slot as u64),
            Err(_) => Err(invalid(format!("sample {id} is not one of the unlabelled samples"))),
        }
    }
}

/// Converts a plan to arrays by name.
fn as_dict<'py>(
    py: Python<'py>,
    planned: &Planned,
    labelled: usize,
    classes: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let plan = &planned.plan;
    let place = |row: Row| match row {
        Row::Labelled(row) => row as u64,
        Row::Unlabelled(row) => (labelled + row) as u64,
    };
    let pseudo = &plan.pseudo;
    let labels = pseudo.labels.iter().map(|&label| i64::from(label)).collect();
    let mixes = &plan.mixes;
    let targets = PyArray1::from_slice(py, &plan.targets).reshape([mixes.len(), classes])?;
    let dict = PyDict::new(py);
    dict.set_item("pseudo_labels", PyArray1::<i64>::from_vec(py, labels))?;
    dict.set_item("pseudo_weights", PyArray1::from_slice(py, &pseudo.weights))?;
    dict.set_item("fairness_target", PyArray1::from_slice(py, &pseudo.fairness_target))?;
    dict.set_item("first", PyArray1::<u64>::from_vec(py, mixes.iter().map(|mix| place(mix.a)).collect()))?;
    dict.set_item("second", PyArray1::<u64>::from_vec(py, mixes.iter().map(|mix| place(mix.b)).collect()))?;
    dict.set_item("mix_lambda", PyArray1::from_vec(py, mixes.iter().map(|mix| mix.lambda).collect()))?;
    dict.set_item("mix_weights", PyArray1::from_vec(py, mixes.iter().map(|mix| mix.weight).collect()))?;
    dict.set_item("targets", targets)?;
    Ok(dict)
}
