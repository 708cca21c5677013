//! Rules for combinations of values that are individually valid.

use calmix_core::method::BaseLoss;
use calmix_core::mixup::pair::Space;
use calmix_core::mixup::{PairWeight, PseudoTarget};
use calmix_core::pseudo::{Base, BaseName, SoftMatch, Statistics};
use calmix_core::schedule::{Start, StartRule};
use calmix_data::split::HoldOut;

use crate::device::Device;
use crate::keys::data::Keep;
use crate::network::HeadKind;
use crate::precision::Precision;
use crate::step_kind::StepKind;
use crate::{OrAuto, Preset, Recipe, Selection};

/// The highest learning rate at which a hidden layer on frozen features trained well in our experiments. At 1.0 its accuracy
/// dropped, and at 3.0 all its units died.
const HIDDEN_RATE: f64 = 0.3;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RuleViolation {
    /// The key to change.
    pub(crate) path: &'static str,
    pub(crate) why: String,
    /// Whether the recipe is refused; otherwise this is only a warning.
    pub(crate) is_error: bool,
}

/// Returns every rule that the recipe violates.
pub(crate) fn check_rules(recipe: &Recipe) -> Vec<RuleViolation> {
    let ours = [base, labels, mixup, training, evaluating, head];
    let mut violations: Vec<RuleViolation> =
        ours.into_iter().flat_map(|rules| rules(recipe)).flatten().collect();
    // The rules above name the recipe's own keys, so the check by calmix-data only runs if they all pass.
    if !violations.iter().any(|violation| violation.is_error) {
        violations.extend(augmentation(recipe));
    }
    violations
}

fn error(holds: bool, path: &'static str, why: &str) -> Option<RuleViolation> {
    holds.then(|| RuleViolation { path, why: why.to_owned(), is_error: true })
}

fn warning(holds: bool, path: &'static str, why: &str) -> Option<RuleViolation> {
    holds.then(|| RuleViolation { path, why: why.to_owned(), is_error: false })
}

fn base(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { train, method, preset, .. } = recipe;
    let (base, rows) = (method.base.word(), u64::from(train.batch) * u64::from(train.ratio));
    vec![
        error(
            *preset == Preset::ReleasedCode && base != BaseName::SoftMatch,
            "method.base",
            "preset = \"released-code\" exists only for softmatch; use preset = \"paper\"",
        ),
        error(
            *preset == Preset::Calibrated && !recipe.has_head(),
            "preset",
            "\"calibrated\" was found for heads on frozen features (network.train = \"head\"), and networks that are trained as \
             a whole were not studied; use \"paper\"",
        ),
        error(
            method.mixup.max_labels_per_class > 0 && *preset != Preset::Calibrated && !recipe.has_head(),
            "method.mixup.max_labels_per_class",
            "is only for heads on frozen features (network.train = \"head\"); use 0",
        ),
        error(
            base != BaseName::Supervised && train.ratio == 0,
            "train.ratio",
            &format!(
                "{base} trains on unlabelled images, and a ratio of 0 gives it none; use 1 or more, or method.base = \
                 \"supervised\""
            ),
        ),
        error(
            base == BaseName::SupervisedPseudoMixup && method.mixup().is_none(),
            "method.mixup.pairing",
            "supervised-pseudo-mixup uses unlabelled images only in mixtures, and \"none\" turns these off; use \
             \"calibratemix\", or method.base = \"supervised\"",
        ),
        error(
            base == BaseName::SoftMatch && rows == 1,
            "train.ratio",
            "softmatch computes a variance over the unlabelled images of a batch, which would have only one; use two or more",
        ),
        error(
            matches!(method.base, Base::SoftMatch(SoftMatch { statistics: Statistics::Aligned, .. }))
                && train.groups > 1,
            "train.groups",
            "method.softmatch.statistics = \"aligned\" computes its statistics within one group; use train.groups = 1, or \
             \"raw\" statistics",
        ),
        warning(
            base == BaseName::SoftMatch && train.ratio == 1 && rows > 1,
            "train.ratio",
            "is USB's fallback when nothing is set, and softmatch has diverged with it (USB issue 88); 7 is usual",
        ),
    ]
}

fn head(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { train, network, method, optimiser, selection, .. } = recipe;
    let has_vectors = recipe.has_vectors();
    if !recipe.has_head() {
        return Vec::new();
    }
    vec![
        error(
            has_vectors && matches!(train.device, OrAuto::Is(Device::Cuda(_) | Device::Mps)),
            "train.device",
            "dataset.source is \"vectors\", and their heads are trained on the CPU; use \"cpu\"",
        ),
        error(
            !has_vectors && (network.weak_views == 0) != (network.strong_views == 0),
            if network.weak_views == 0 { "network.weak_views" } else { "network.strong_views" },
            "a head on images is trained on at least one weak and one strong view of each, or on the clean one alone; use 1 or \
             more, or set both network.weak_views and network.strong_views to 0",
        ),
        error(
            train.groups > 1 || train.micro_batches > 1,
            if train.groups > 1 { "train.groups" } else { "train.micro_batches" },
            "a head is trained in one process, with one group and one micro-batch; set it to 1",
        ),
        error(
            method.base_loss == BaseLoss::Twice,
            "method.base_loss",
            "the two passes of \"twice\" differ by batch normalisation, which a head does not have; use \"once\"",
        ),
        error(
            method.similarity_space() == Some(Space::Pixel),
            "method.mixup.guidance.space",
            "a head reads vectors, not pixels; use \"feature\" or \"logit\"",
        ),
        error(
            *selection != Selection::Last,
            "selection",
            "a head is selected on out-of-fold labels at the end of the run; use \"last\"",
        ),
        warning(
            network.head == HeadKind::Hidden && optimiser.lr > HIDDEN_RATE,
            "optimiser.lr",
            "is too high for a hidden layer (network.head = \"hidden\"): its units die at such rates; 0.1 is usual",
        ),
    ]
}

fn labels(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let labels = &recipe.labels;
    let needs = recipe.unlabelled() > 0;
    let inside = labels.unlabelled_from.iter().all(|subset| labels.from.contains(subset));
    vec![
        error(
            labels.keep == Keep::Given && labels.file.is_empty(),
            "labels.file",
            "labels.keep is \"given\", but no file lists the labels to keep; set it to the path of a split.json",
        ),
        error(
            labels.from.is_empty(),
            "labels.from",
            "there is no subset to take labels from; name one, such as \"train\"",
        ),
        error(
            needs && labels.unlabelled_from.is_empty(),
            "labels.unlabelled_from",
            "there is no subset to take unlabelled images from; name one, such as \"train\"",
        ),
        error(
            needs && labels.keep == Keep::All && inside && !labels.include_labelled,
            "labels.include_labelled",
            "every label is kept, so no images would be left for the unlabelled batches; set it to true",
        ),
    ]
}

fn mixup(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { train, method, .. } = recipe;
    let Some(mixup) = method.mixup() else { return Vec::new() };
    let begin = mixup.start.first_step(train.steps).unwrap_or(0);
    let key = match mixup.start.rule {
        StartRule::Step { .. } => "method.mixup.start.step",
        _ => "method.mixup.start.share",
    };
    let backwards = match mixup.start {
        Start { rule: StartRule::Ramp { share, full } } if full < share => Some(share),
        _ => None,
    };
    vec![
        error(
            begin >= train.steps,
            key,
            &format!(
                "the mixup term would start at step {begin}, but train.steps is {}; start it earlier, for example with \
                 method.mixup.start.rule = \"share\" and method.mixup.start.share = 0.1",
                train.steps
            ),
        ),
        error(
            !method.base.has_unlabelled_loss() && matches!(mixup.start.rule, StartRule::Utilisation { .. }),
            "method.mixup.start.rule",
            &format!(
                "{} does not weight unlabelled images, so the mixup term would never start; use \"share\"",
                method.base.word()
            ),
        ),
        error(
            !method.base.has_unlabelled_loss() && mixup.pair_weight == PairWeight::Base,
            "method.mixup.pair_weight",
            &format!(
                "{} does not weight unlabelled images, so their mixtures would have weight 0; use \"one\"",
                method.base.word()
            ),
        ),
        error(
            !method.base.has_unlabelled_loss() && mixup.pseudo_target == PseudoTarget::Blended,
            "method.mixup.pseudo_target",
            &format!(
                "{} does not weight unlabelled images, so there is no weight to blend with; use \"soft\" or \"hard\"",
                method.base.word()
            ),
        ),
        error(
            backwards.is_some(),
            "method.mixup.start.full",
            &format!(
                "the ramp starts at {} and cannot end before that; use a larger value",
                backwards.unwrap_or_default()
            ),
        ),
        error(
            method.guidance().is_some() && train.batch < 2,
            "train.batch",
            "a batch of one labelled image cannot be split into an easy and a hard half; use two or more",
        ),
        error(
            method.base_loss == BaseLoss::Twice && train.step != StepKind::Joint,
            "train.step",
            "method.base_loss = \"twice\" needs both passes; use train.step = \"joint\"",
        ),
        error(
            method.base_loss == BaseLoss::Twice && train.groups > 1,
            "train.groups",
            "method.base_loss = \"twice\" labels each batch twice, which works only with one group; use train.groups = 1",
        ),
    ]
}

fn training(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { train, optimiser, network, .. } = recipe;
    vec![
        error(
            optimiser.nesterov && optimiser.momentum == 0.0,
            "optimiser.nesterov",
            "Nesterov momentum needs optimiser.momentum above 0; set it to false, or raise the momentum",
        ),
        error(
            recipe.has_head() && network.folds == 1,
            "network.folds",
            "a single fold leaves no labels to train on; use at least 2, or 0 for no folds",
        ),
        uneven_rows(recipe, train.micro_batches).and_then(|why| error(true, "train.micro_batches", &why)),
        error(
            train.precision == OrAuto::Is(Precision::F16) && train.device == OrAuto::Is(Device::Cpu),
            "train.precision",
            "f16 needs a GPU; on a CPU use \"bf16\" or \"f32\"",
        ),
        short_run(recipe),
    ]
}

/// Warns once about everything that is too slow for a short run, with suitable settings.
fn short_run(recipe: &Recipe) -> Option<RuleViolation> {
    let Recipe { train, ema, network, .. } = recipe;
    // The weight of the initial parameters, and of the initial batch statistics, after the last step.
    let left = power(ema.decay, train.steps);
    let share = match network.norm_momentum {
        0.0 => network.name.norm_momentum(),
        share => share,
    };
    // A head has no batch normalisation, and its backbone is frozen.
    let left_of_norms = if recipe.has_head() { 0.0 } else { power(1.0 - share, train.steps) };
    let decay = rounded_down(decay_to_one_percent(train.steps));
    let momentum = rounded_up(1.0 - decay_to_one_percent(train.steps));
    let mut settings = Vec::new();
    if left > 0.01 {
        settings.push(format!("--set ema.decay={decay}"));
    }
    if left_of_norms > 0.01 {
        settings.push(format!("--set network.norm_momentum={momentum}"));
    }
    let text = format!(
        "is short: the model keeps up to {:.0}% of its initial state; add {}",
        100.0 * left.max(left_of_norms),
        settings.join(" ")
    );
    warning(!settings.is_empty(), "train.steps", &text)
}

/// Returns the decay that leaves 1% of the initial value after `steps`.
fn decay_to_one_percent(steps: u64) -> f64 {
    0.01_f64.powf(1.0 / steps.max(1) as f64)
}

/// Rounds a decay down so that its distance to 1 has one significant digit: 0.98 for 0.9886.
fn rounded_down(decay: f64) -> f64 {
    let rest = rounded_up(1.0 - decay);
    // Rounding removes floating-point noise, which would show in the message.
    (1e9 * (1.0 - rest)).round() / 1e9
}

/// Rounds up to one significant digit: 0.02 for 0.0114.
fn rounded_up(share: f64) -> f64 {
    let unit = 10_f64.powf(share.log10().floor());
    let digits = (share / unit).ceil();
    (1e9 * digits * unit).round() / 1e9
}

/// Explains why a recipe's batches cannot be divided into `micro_batches` equal micro-batches; `None` if they can.
pub fn uneven_rows(recipe: &Recipe, micro_batches: u32) -> Option<String> {
    let (labelled, unlabelled) = (recipe.train.batch, recipe.unlabelled());
    let uneven = |rows: u32| micro_batches > 1 && !rows.is_multiple_of(micro_batches);
    (uneven(labelled) || uneven(unlabelled)).then(|| {
        format!(
            "batches of {labelled} labelled and {unlabelled} unlabelled images cannot be cut into {micro_batches} equal micro-batches; \
             choose train.batch and train.ratio so that train.micro_batches divides both"
        )
    })
}

/// Raises a share below one to a power, using only multiplication so that the result is the same on every platform.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            product *= base;
        }
        base *= base;
        exponent /= 2;
    }
    product
}

fn evaluating(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { selection, evaluate, labels, dataset, train, .. } = recipe;
    let evaluations = train.steps.div_ceil(evaluate.every);
    vec![
        error(
            *selection == Selection::BestValidation
                && labels.validation == HoldOut::NONE
                && !dataset.source.may_have_validation(),
            "selection",
            "no labels are held out to select the model on; set labels.validation to a share, such as 0.2",
        ),
        error(
            *selection == Selection::BestTest && dataset.test.is_empty(),
            "selection",
            "dataset.test names no subset to select the model on; name one, or use another selection",
        ),
        warning(
            *selection == Selection::BestTest,
            "selection",
            "selects the model on the test images that it is evaluated on; every table marks this",
        ),
        warning(
            *selection == Selection::Median && evaluations < u64::from(evaluate.window),
            "evaluate.window",
            &format!("is larger than the number of evaluations in the run, {evaluations}"),
        ),
    ]
}

/// Checks the augmentation with calmix-data, which knows the constraints between its parts.
fn augmentation(recipe: &Recipe) -> Option<RuleViolation> {
    let problem = recipe.augment.resolve().check().err()?;
    error(true, "augment.size", &problem.to_string())
}
