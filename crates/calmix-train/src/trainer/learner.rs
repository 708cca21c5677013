//! One step: the engine learns from a batch what the method plans.

use calmix_core::method::{Method, MethodState};
use calmix_core::observation::ObservationError;
use calmix_core::plan::{PlanError, StepPlan, plan_step};
use calmix_core::pseudo::PseudoLabels;
use calmix_core::rng::Seed;
use calmix_core::samples::LocalState;
use calmix_data::loader as data;
use calmix_engine::batch::{Batch, Labelled, Unlabelled};
use calmix_engine::engine::{Engine, Settings};
use calmix_engine::error::EngineError;
use calmix_engine::images::{Normalisation, Size};
use calmix_engine::optimiser::Sgd;
use calmix_engine::step::Asked;

use super::error::TrainError;
use super::material::Material;
use super::samples::Before;
use crate::events::{Loss, Margins, Note, Step, impurity, utilisation};
use crate::recipe::{NonFinite, Recipe};

/// A network and a method in training.
pub(super) struct Learner {
    pub(super) engine: Engine,
    pub(super) state: MethodState,
    pub(super) samples: LocalState,
    /// Steps that were not finite and did not count.
    pub(super) skips: u32,
    method: Method,
    seed: Seed,
}

/// What became of a batch.
pub(super) enum Learnt {
    /// It was learnt from.
    Step(Box<Step>),
    /// It was not, and why.
    Skipped(Note),
}

/// What is told of a plan.
#[derive(Default)]
struct Planned {
    pseudo: PseudoLabels,
    mixes: u64,
    margin: Option<Margins>,
}

impl Learner {
    /// Before the first step.
    pub(super) fn new(recipe: &Recipe, material: &Material, settings: Settings) -> Result<Self, TrainError> {
        let method = recipe.method();
        let (seed, classes) = (Seed(recipe.train.seed), material.classes.len());
        let samples = usize::try_from(material.samples)
            .map_err(|_| TrainError::Unsupported("more samples than this machine can address".to_owned()))?;
        Ok(Self {
            engine: Engine::new(settings, seed)?,
            state: method.initial_state(classes, material.unlabelled()),
            samples: method.local_state(classes, material.split.labelled(), samples),
            skips: 0,
            method,
            // Groups draw on their own; this is the first one.
            seed: seed.child(0),
        })
    }

    /// Learns from a batch. `truth` tells the class of an unlabelled sample where it is known and asked for.
    pub(super) fn learn(
        &mut self,
        recipe: &Recipe,
        batch: &data::Batch,
        truth: Option<&dyn Fn(u64) -> Option<u32>>,
    ) -> Result<Learnt, TrainError> {
        let (step, optimiser) = (batch.step, &recipe.optimiser);
        let rate = optimiser.schedule.at(step, recipe.train.steps, optimiser.lr);
        let may_skip = recipe.train.non_finite == NonFinite::Skip;
        let before = may_skip.then(|| {
            (self.state.clone(), Before::of(&self.samples, &batch.labelled.ids, &batch.unlabelled.ids))
        });
        let mut planned = Planned::default();
        let Self { engine, state, samples, method, seed, .. } = self;
        let learnt = engine.step(method, &lent(batch), rate, |asked, seen| match asked {
            Asked::Plan => {
                let plan = plan_step(method, seen, state, samples, *seed, step)?;
                planned = Planned::of(&plan);
                Ok(plan)
            }
            Asked::PseudoLabelsAgain => {
                let (x, u) = (&seen.labelled, &seen.unlabelled);
                let pseudo = method.base.pseudo_label(x.logits, u.ids, u.logits, &mut state.base, samples)?;
                Ok(StepPlan { pseudo, ..StepPlan::default() })
            }
        });
        let learnt = match (learnt, before) {
            (Ok(learnt), _) => learnt,
            (Err(error), Some((state, samples))) if is_not_finite(&error) => {
                self.state = state;
                samples.restore(&mut self.samples).map_err(PlanError::from).map_err(EngineError::from)?;
                return self.skip(recipe, step, &error);
            }
            (Err(error), _) => return Err(error.into()),
        };
        let unlabelled = (!batch.unlabelled.ids.is_empty())
            .then_some((self.method.unlabelled_weight * learnt.unlabelled) as f32);
        let loss = Loss {
            total: learnt.total as f32,
            labelled: learnt.labelled as f32,
            unlabelled,
            mix: (planned.mixes > 0).then_some(learnt.mix as f32),
        };
        let PseudoLabels { labels, weights } = &planned.pseudo;
        let truth = truth.map(|truth| batch.unlabelled.ids.iter().map(|&id| truth(id)).collect::<Vec<_>>());
        Ok(Learnt::Step(Box::new(Step {
            learning_rate: rate,
            gradient_norm: Some(learnt.gradient_norm as f32),
            utilisation: utilisation(weights),
            impurity: truth.and_then(|truth| impurity(labels, weights, &truth)),
            margin: planned.margin,
            mixes: (planned.mixes > 0).then_some(planned.mixes),
            skipped: Some(batch.skipped.len() as u64).filter(|&count| count > 0),
            ..Step::new(step + 1, loss)
        })))
    }

    /// Counts a step that taught nothing, up to the number that the recipe allows.
    fn skip(&mut self, recipe: &Recipe, step: u64, error: &EngineError) -> Result<Learnt, TrainError> {
        self.skips += 1;
        let (skips, most) = (self.skips, recipe.train.non_finite_skips);
        if skips > most {
            return Err(TrainError::TooManySkips { step, problem: error.to_string(), skips });
        }
        Ok(Learnt::Skipped(Note {
            step: step + 1,
            text: format!("{error}; skipped, {skips} of {most} that may be"),
            hint: "if it happens again, lower the learning rate, clip the gradient or take f32".to_owned(),
        }))
    }
}

impl Planned {
    fn of(plan: &StepPlan) -> Self {
        Self {
            pseudo: plan.pseudo.clone(),
            mixes: plan.mixes.len() as u64,
            margin: plan.difficulty.as_ref().map(Margins::of),
        }
    }
}

/// The engine's settings for a recipe whose device and precision were decided.
pub(super) fn settings(recipe: &Recipe, classes: usize) -> Result<Settings, TrainError> {
    use crate::recipe::engine::OrAuto::Is;
    let (Is(device), Is(precision)) = (recipe.train.device, recipe.train.precision) else {
        return Err(TrainError::Unsupported("device and precision have not been chosen".to_owned()));
    };
    let size = recipe.augment.size as usize;
    let optimiser = &recipe.optimiser;
    Ok(Settings {
        architecture: recipe.network.name,
        first_block: recipe.network.block,
        classes,
        size: Size { height: size, width: size },
        normalisation: Normalisation { mean: recipe.dataset.mean, deviation: recipe.dataset.std },
        device,
        precision,
        optimiser: Sgd {
            momentum: optimiser.momentum,
            nesterov: optimiser.nesterov,
            weight_decay: optimiser.weight_decay,
        },
        ema_decay: recipe.ema.decay,
        norm_momentum: Some(recipe.network.norm_momentum).filter(|&share| share > 0.0),
        clip: Some(optimiser.clip).filter(|&clip| clip > 0.0),
        passes: recipe.train.step,
    })
}

fn lent(batch: &data::Batch) -> Batch<'_> {
    Batch {
        step: batch.step,
        labelled: Labelled {
            ids: &batch.labelled.ids,
            labels: &batch.labelled.labels,
            pixels: &batch.labelled.pixels,
        },
        unlabelled: Unlabelled {
            ids: &batch.unlabelled.ids,
            weak: &batch.unlabelled.weak,
            strong: &batch.unlabelled.strong,
        },
    }
}

fn is_not_finite(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::NotFinite { .. }
            | EngineError::Plan(PlanError::Observation(ObservationError::NotFinite { .. }))
    )
}
