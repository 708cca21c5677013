//! One step: the engine learns from a batch what the method plans.

use calmix_core::method::{BaseLoss, Method, MethodState};
use calmix_core::observation::Observation;
use calmix_core::plan::{PlanError, plan_step};
use calmix_core::rng::Seed;
use calmix_core::samples::StateError;
use calmix_data::loader as data;
use calmix_engine::batch::{Batch, Cut, Labelled, Unlabelled};
use calmix_engine::engine::{Engine, Settings};
use calmix_engine::error::EngineError;
use calmix_engine::images::{Normalisation, Size};
use calmix_engine::optimiser::Sgd;
use calmix_engine::step::Asked;
use calmix_engine::task::Tasks;

use super::accord::Census;
use super::error::TrainError;
use super::groups::{Group, Seen, tasks};
use super::material::Material;
use super::moment::{Moment, Watch};
use super::owners::Owners;
use super::shared::plan_all;
use super::team::Team;
use super::told::{Told, Truth};
use crate::events::{Loss, Note, Step};
use crate::recipe::{NonFinite, Recipe};

/// A network and a method in training.
pub(super) struct Learner {
    pub(super) team: Team,
    pub(super) engine: Engine,
    pub(super) state: MethodState,
    pub(super) owners: Owners,
    /// Steps that were not finite and did not count.
    pub(super) skips: u32,
    /// What was found in the last batch, by all processes.
    pub(super) census: Census,
    pub(super) watch: Watch,
    method: Method,
    seed: Seed,
    cut: Cut,
}

/// What became of a batch.
pub(super) enum Learnt {
    /// It was learnt from.
    Step(Box<Step>),
    /// It was not, and why.
    Skipped(Note),
}

impl Learner {
    /// Before the first step.
    pub(super) fn new(
        recipe: &Recipe,
        team: Team,
        material: &Material,
        settings: Settings,
    ) -> Result<Self, TrainError> {
        let method = recipe.method();
        let (seed, classes) = (Seed(recipe.train.seed), material.classes.len());
        let samples = usize::try_from(material.samples)
            .map_err(|_| TrainError::Unsupported("more samples than this machine can address".to_owned()))?;
        Ok(Self {
            engine: Engine::new(settings, seed)?,
            state: method.initial_state(classes, material.unlabelled()),
            owners: Owners::new(&team, &method, classes, material.split.labelled(), samples),
            skips: 0,
            census: Census::default(),
            watch: Watch::default(),
            method,
            seed,
            cut: team.cut(),
            team,
        })
    }

    /// Learns from a batch. `truth` tells the class of an unlabelled sample where it is known and asked for.
    pub(super) fn learn(
        &mut self,
        recipe: &Recipe,
        material: &Material,
        batch: &data::Batch,
        truth: Option<Truth<'_>>,
    ) -> Result<Learnt, TrainError> {
        let (step, optimiser) = (batch.step, &recipe.optimiser);
        let rate = optimiser.schedule.at(step, recipe.train.steps, optimiser.lr);
        let before = (recipe.train.non_finite == NonFinite::Skip).then(|| {
            self.owners.may_take_back();
            self.state.clone()
        });
        let Self { team, engine, state, owners, census, method, seed, cut, watch, .. } = self;
        let mut planning =
            Planning { team, owners, state, method, seed: *seed, material, batch, told: Vec::new() };
        // What is to blame for a plan that was not made, where it is not the plan itself.
        let mut trouble = None;
        watch.tell(Moment::Look, step);
        let batch_and_cut = (&lent(batch), &*cut);
        let learnt = engine.step_in_parts(&team.processes, method, batch_and_cut, rate, |asked, seen| {
            watch.tell(Moment::Plan, step);
            let planned = planning.plan(asked, seen, census, truth).map_err(|error| match error {
                Trouble::Plan(error) => error,
                Trouble::Other(error) => {
                    trouble = Some(error);
                    StateError::Damaged { what: "no plan" }.into()
                }
            });
            watch.tell(Moment::Add, step);
            planned
        });
        let told = planning.told;
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
        let learnt = match (learnt, before) {
            (Ok(learnt), _) => learnt,
            (Err(error @ EngineError::NotFinite { .. }), Some(before)) => {
                self.state = before;
                self.owners.take_back().map_err(PlanError::from).map_err(EngineError::from)?;
                return self.skip(recipe, step, &error);
            }
            (Err(error), _) => return Err(error.into()),
        };
        self.owners.keep();
        let Told { utilisation, impurity, margin, mixes } = Told::of_all(&self.team, &told)?;
        let mixes = Some(mixes).filter(|&mixes| mixes > 0);
        let unlabelled =
            (self.cut.unlabelled > 0).then_some((self.method.unlabelled_weight * learnt.unlabelled) as f32);
        let loss = Loss {
            total: learnt.total as f32,
            labelled: learnt.labelled as f32,
            unlabelled,
            mix: mixes.map(|_| learnt.mix as f32),
        };
        Ok(Learnt::Step(Box::new(Step {
            learning_rate: rate,
            gradient_norm: Some(learnt.gradient_norm as f32),
            utilisation,
            impurity,
            margin,
            mixes,
            skipped: Some(self.census.skipped.len() as u64).filter(|&count| count > 0),
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

/// What a plan is made with.
struct Planning<'a> {
    team: &'a Team,
    owners: &'a mut Owners,
    state: &'a mut MethodState,
    method: &'a Method,
    seed: Seed,
    material: &'a Material,
    batch: &'a data::Batch,
    /// What is told of the groups that this process speaks for.
    told: Vec<Told>,
}

/// Why there is no plan.
enum Trouble {
    Plan(PlanError),
    Other(TrainError),
}

impl<E: Into<PlanError>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Plan(error.into())
    }
}

impl Planning<'_> {
    /// What the parts that are here have to do.
    fn plan(
        &mut self,
        asked: Asked,
        seen: &Observation<'_>,
        census: &mut Census,
        truth: Option<Truth<'_>>,
    ) -> Result<Tasks, Trouble> {
        let (team, method) = (self.team, self.method);
        let checked = seen.check();
        let found = Census::of(self.batch, &checked).exchange(&team.processes).map_err(Trouble::Other)?;
        let problem = found.problem();
        *census = found;
        if let Some(problem) = problem {
            return Err(PlanError::from(problem).into());
        }
        checked.map_err(PlanError::from)?;
        let groups = Group::gather(team, &Seen { observation: seen, batch: self.batch })?;
        let (step, seed, state, circles) = (self.batch.step, self.seed, &*self.state, team.circles());
        let made = plan_all(team, self.owners, &groups, |number, group, samples| {
            let (seen, mut state) = (group.observation()?, state.clone());
            let plan = match asked {
                // Groups draw on their own.
                Asked::Plan => {
                    let seed = seed.child(number as u64);
                    plan_step(method, &seen, &mut state, samples, seed, step)?
                }
                Asked::PseudoLabelsAgain => {
                    let (x, u) = (&seen.labelled, &seen.unlabelled);
                    let pseudo =
                        method.base.pseudo_label(x.logits, u.ids, u.logits, &mut state.base, samples)?;
                    calmix_core::plan::StepPlan { pseudo, ..Default::default() }
                }
            };
            Ok((plan, state))
        })?;
        let (plans, states): (Vec<_>, Vec<_>) = made.into_iter().unzip();
        if states.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(StateError::Damaged { what: "groups of one step remember different things" }.into());
        }
        if let Some(after) = states.into_iter().next() {
            *self.state = after;
        }
        if asked == Asked::Plan {
            let speaks = circles.iter().zip(plans.iter().zip(&groups)).filter(|(circle, _)| {
                // What all know alike needs nobody to speak for it.
                circle.leads() || team.groups() == 1
            });
            self.told = speaks.map(|(_, (plan, group))| Told::of(plan, group, truth)).collect();
        }
        let classes = seen.classes();
        let mut tasks = tasks(team, &groups, &plans, classes, |group, row, pixels| {
            self.material.weak_view(seed, group, row, pixels)
        })
        .map_err(Trouble::Other)?;
        if method.base_loss == BaseLoss::Twice && asked == Asked::Plan {
            // All go through the second pass, or nobody.
            let mixing = team.processes.gather_equal(&[u8::from(tasks.mixing)]);
            tasks.mixing = mixing.map_err(|error| Trouble::Other(error.into()))?.concat().contains(&1);
        }
        Ok(tasks)
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
