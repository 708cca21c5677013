//! A run of the engine, recorded for PyTorch to repeat, and the comparison of both results.

use std::path::Path;
use std::{fmt, fs};

use calmix_core::loss::LossKind;
use calmix_core::method::smoothing::Smoothing;
use calmix_core::method::{BaseLoss, Method};
use calmix_core::mixup::{Mix, MixLoss, Row};
use calmix_core::pseudo::{Base, PseudoLabels};
use calmix_engine::engine::{EngineSnapshot, Settings, Weights};
use calmix_engine::learn::StepOutput;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Value, json};

use super::peer::Peer;
use super::tensors::{self, Tensors, distance, furthest, norm};
use crate::run::{Rows, Run, StepRecord};

/// The run to repeat.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) settings: Settings,
    pub(crate) method: Method,
    pub(crate) rows: Rows,
    pub(crate) steps: usize,
    /// How many of them PyTorch takes before it is put back to where the engine is.
    pub(crate) at_a_time: usize,
}

/// How far the engine is from PyTorch, everything relative.
#[derive(Debug, Clone)]
pub(crate) struct Apart {
    /// Losses and the norm of the gradient, of all steps.
    pub(crate) metrics: f64,
    /// Logits of the labelled rows while training, of all steps.
    pub(crate) seen: f64,
    /// Logits by the running statistics, after the last step.
    pub(crate) looked: f64,
    /// Parameters and statistics.
    pub(crate) weights: (f64, String),
    /// The average.
    pub(crate) ema: (f64, String),
    /// The momentum; after a single step without decay it is the gradient.
    pub(crate) momentum: (f64, String),
    /// Inputs and outputs of the engine.
    pub(crate) told: Vec<StepRecord>,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { metrics, seen, looked, weights, ema, momentum, .. } = self;
        write!(f, "losses {metrics:.1e}, logits {seen:.1e} and {looked:.1e}")?;
        [("weights", weights), ("EMA", ema), ("momentum", momentum)]
            .iter()
            .try_for_each(|(what, (apart, tensor))| write!(f, ", {what} {apart:.1e} at {tensor}"))
    }
}

impl Apart {
    fn larger(mut self, other: Self) -> Self {
        let larger = |a: (f64, String), b: (f64, String)| if b.0 > a.0 { b } else { a };
        self.told.extend(other.told);
        Self {
            metrics: self.metrics.max(other.metrics),
            seen: self.seen.max(other.seen),
            looked: self.looked.max(other.looked),
            weights: larger(self.weights, other.weights),
            ema: larger(self.ema, other.ema),
            momentum: larger(self.momentum, other.momentum),
            told: self.told,
        }
    }

    pub(crate) fn largest(&self) -> f64 {
        let all = [self.metrics, self.seen, self.looked, self.weights.0, self.ema.0, self.momentum.0];
        all.into_iter().fold(0.0, f64::max)
    }
}

/// Below which share of the typical size of a number a tensor's difference is measured by that.
const FLOOR: f64 = 0.1;

impl Case {
    /// Runs the case in the engine and in PyTorch; returns the largest differences.
    pub(crate) fn compare(&self, peer: &mut Peer) -> Apart {
        let mut run = Run::new(self.settings, self.method, self.rows);
        let pieces = (0..self.steps / self.at_a_time).map(|_| self.compare_some(&mut run, peer));
        pieces.reduce(Apart::larger).expect("a step")
    }

    /// Runs the case in the engine and writes its start, its batches and plans, and its end into a folder.
    pub(crate) fn record(&self, folder: &Path) -> Vec<StepRecord> {
        let mut run = Run::new(self.settings, self.method, self.rows);
        write_snapshot(&run, folder, "start");
        let told = run.steps(self.steps);
        self.write(folder, &told);
        write_snapshot(&run, folder, "end");
        told
    }

    fn compare_some(&self, run: &mut Run, peer: &mut Peer) -> Apart {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let folder = folder.path();
        write_snapshot(run, folder, "start");
        let told = run.steps(self.at_a_time);
        self.write(folder, &told);
        peer.replay(folder);

        let read = |name: &str| fs::read(folder.join(name)).expect("what replay.py wrote");
        let ours = run.engine.snapshot().expect("a snapshot");
        let theirs = EngineSnapshot {
            weights: read("live.safetensors"),
            ema: read("ema.safetensors"),
            momentum: read("momentum.safetensors"),
            loss_scale: ours.loss_scale,
        };
        let apart =
            |ours: &[u8], theirs: &[u8]| furthest(&tensors::read(ours), &tensors::read(theirs), FLOOR);
        let logits = tensors::read(&read("logits.safetensors"));
        let seen: Vec<f32> = told.iter().flat_map(|told| told.logits.iter().copied()).collect();
        let first = told.first().expect("a step").views.x.clone();
        let looked = run.engine.predict(&first, Weights::Trained).expect("logits").logits;
        // PyTorch counts passes, the engine steps.
        if self.method.base_loss == BaseLoss::Once {
            assert_eq!(tensors::counts(&ours.weights), tensors::counts(&theirs.weights), "{}", self.name);
        }
        let apart = Apart {
            metrics: metrics_apart(&self.method, &told, &read("metrics.json")),
            seen: logits_apart(&seen, &logits, "seen"),
            looked: logits_apart(&looked, &logits, "looked"),
            weights: apart(&ours.weights, &theirs.weights),
            ema: apart(&ours.ema, &theirs.ema),
            momentum: apart(&ours.momentum, &theirs.momentum),
            told,
        };

        // The other way round: what PyTorch wrote is a snapshot, bit for bit.
        run.engine.restore(&theirs).expect("files of PyTorch");
        let back = run.engine.snapshot().expect("a snapshot");
        assert_eq!(tensors::read(&back.weights), tensors::read(&theirs.weights), "{}", self.name);
        assert_eq!(tensors::read(&back.ema), tensors::read(&theirs.ema), "{}", self.name);
        assert_eq!(tensors::read(&back.momentum), tensors::read(&theirs.momentum), "{}", self.name);
        let looked = run.engine.predict(&first, Weights::Trained).expect("logits").logits;
        // The same weights, so nothing but the rounding of one pass.
        let apart_with_theirs = logits_apart(&looked, &logits, "looked");
        assert!(apart_with_theirs < 1e-5, "{}: {apart_with_theirs:.1e} with the same weights", self.name);
        run.engine.restore(&ours).expect("its own");
        apart
    }

    fn write(&self, folder: &Path, told: &[StepRecord]) {
        let Self { settings, method, .. } = self;
        let smoothing = match method.smoothing {
            Smoothing::None => 0.0,
            Smoothing::Uniform(epsilon) => epsilon,
            Smoothing::OtherClasses(_) => panic!("PyTorch has no such smoothing"),
        };
        let binary = method.mixup().is_some_and(|mixup| mixup.loss == MixLoss::BinaryCrossEntropy);
        let case = json!({
            "architecture": settings.model.network,
            "first_block": settings.model.block,
            "stride": settings.model.stride,
            "classes": settings.classes,
            "mean": settings.model.mean,
            "deviation": settings.model.std,
            "optimiser": settings.optimiser,
            "ema_decay": settings.ema_decay,
            "norm_momentum": settings.norm_momentum,
            "norm_eps": settings.model.norm_eps,
            "clip": settings.clip,
            "step": settings.step,
            "undecided": method.base == Base::Supervised && method.mixup().is_none(),
            "twice": method.base_loss == BaseLoss::Twice,
            "mix_loss": if binary { "binary-cross-entropy" } else { "cross-entropy" },
            "smoothing": smoothing,
            "unlabelled_weight": method.unlabelled_weight,
            "fairness_weight": if let Base::FreeMatch(rule) = method.base { rule.fairness } else { 0.0 },
            "logit_weight": method.logit_penalty.weight,
            "logit_margin": Some(method.logit_penalty).filter(|rule| rule.weight > 0.0).map(|rule| rule.margin),
            "mix_weight": method.mixup.weight,
            "steps": told.iter().map(planned).collect::<Vec<_>>(),
        });
        fs::write(folder.join("case.json"), case.to_string()).expect("written");
        let side = settings.model.size as usize;
        let views = told.iter().enumerate().flat_map(|(n, StepRecord { views, .. })| {
            let views = [("x", &views.x), ("weak", &views.weak), ("strong", &views.strong)];
            views.map(|(view, pixels)| {
                let shape = vec![pixels.len() / settings.model.image_bytes(), side, side, 3];
                (format!("{view}.{n}"), TensorView::new(Dtype::U8, shape, pixels).expect("whole images"))
            })
        });
        let images = safetensors::serialize(views, None).expect("images");
        fs::write(folder.join("images.safetensors"), images).expect("written");
    }
}

fn write_snapshot(run: &Run, folder: &Path, when: &str) {
    let snapshot = run.engine.snapshot().expect("a snapshot");
    for (part, file) in [("live", snapshot.weights), ("ema", snapshot.ema), ("momentum", snapshot.momentum)] {
        fs::write(folder.join(format!("{when}.{part}.safetensors")), file).expect("written");
    }
}

/// A step's plan, for PyTorch: which rows are mixed, but neither targets nor weights, which it computes itself.
fn planned(told: &StepRecord) -> Value {
    let StepRecord { views, rate, plan, again, .. } = told;
    let place = |row: Row| match row {
        Row::Labelled(i) => i,
        Row::Unlabelled(j) => views.ids.len() + j,
    };
    let mix = |mix: &Mix| json!({ "a": place(mix.a), "b": place(mix.b), "lambda": mix.lambda, "class_a": mix.class_a, "class_b": mix.class_b });
    let pseudo = |pseudo: &PseudoLabels| {
        let PseudoLabels { labels, weights, fairness_target } = pseudo;
        json!({ "labels": labels, "weights": weights, "fairness_target": fairness_target })
    };
    // Labelled easy rows open the pairs of the first kind, labelled hard ones those of the second.
    let easy = plan.difficulty.as_ref().map_or(0, |difficulty| {
        let opens = |mix: &&Mix| difficulty.labelled.easy.iter().any(|&i| mix.a == Row::Labelled(i));
        plan.mixes.iter().filter(opens).count()
    });
    json!({
        "rate": rate,
        "ids": views.ids,
        "labels": views.labels,
        "unlabelled_ids": views.unlabelled_ids,
        "first": pseudo(&plan.pseudo),
        "second": again.as_ref().map(pseudo),
        "mixes": plan.mixes.iter().map(mix).collect::<Vec<_>>(),
        "kinds": [easy, plan.mixes.len() - easy],
    })
}

fn metrics_apart(method: &Method, told: &[StepRecord], file: &[u8]) -> f64 {
    let theirs: Vec<[f64; 7]> = serde_json::from_slice(file).expect("metrics");
    let terms = method.loss_terms();
    assert_eq!(theirs.len(), told.len());
    let apart = told.iter().zip(theirs).flat_map(|(told, theirs)| {
        let StepOutput { losses, total, gradient_norm, .. } = &told.output;
        let term = |of: fn(LossKind) -> bool| {
            terms.iter().zip(losses).find(|(term, _)| of(term.kind)).map_or(0.0, |(_, loss)| *loss)
        };
        let fairness = term(|kind| kind == LossKind::Fairness);
        let distance = term(|kind| matches!(kind, LossKind::LogitDistance { .. }));
        let mix = term(|kind| matches!(kind, LossKind::Mixup(_)));
        let ours = [losses[0], losses[1], fairness, distance, mix, *total, *gradient_norm];
        // A term that is nearly nothing is measured by what it adds to the whole.
        ours.into_iter().zip(theirs).map(move |(ours, theirs)| (ours - theirs).abs() / theirs.abs().max(0.01))
    });
    apart.fold(0.0, f64::max)
}

fn logits_apart(ours: &[f32], theirs: &Tensors, name: &str) -> f64 {
    distance(ours, &theirs[name]) / norm(&theirs[name])
}
