//! Rules over several keys: values that are valid by themselves and not together.

use calmix_core::method::BaseLoss;
use calmix_core::mixup::{PairWeight, PseudoTarget};
use calmix_core::pseudo::{Base, BaseName, SoftMatch, Statistics};
use calmix_core::schedule::{Start, StartRule};
use calmix_data::split::HoldOut;
use calmix_io::counted::counted;

use crate::data::Keep;
use crate::device::Device;
use crate::network::HeadKind;
use crate::precision::Precision;
use crate::step_kind::StepKind;
use crate::{OrAuto, Preset, Recipe, Selection};

/// The highest learning rate at which a hidden layer on frozen features was seen to learn well. At 1.0 it lost, at 3.0 all
/// of its units died.
const HIDDEN_RATE: f64 = 0.3;

/// A rule that the values of a recipe break, at the key that is best changed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RuleViolation {
    /// The recipe is refused.
    Error(&'static str, String),
    /// The recipe is probably not what the user means.
    Warning(&'static str, String),
}

/// Every rule that the recipe breaks.
pub(super) fn check_rules(recipe: &Recipe) -> Vec<RuleViolation> {
    let ours = [base, labels, mixup, training, evaluating, head];
    let mut violations: Vec<RuleViolation> =
        ours.into_iter().flat_map(|rules| rules(recipe)).flatten().collect();
    // The message of calmix-data counts only where no rule here refuses the recipe.
    if !violations.iter().any(|violation| matches!(violation, RuleViolation::Error(..))) {
        violations.extend(augmentation(recipe));
    }
    violations
}

fn error(holds: bool, path: &'static str, why: &str) -> Option<RuleViolation> {
    holds.then(|| RuleViolation::Error(path, why.to_owned()))
}

fn warning(holds: bool, path: &'static str, why: &str) -> Option<RuleViolation> {
    holds.then(|| RuleViolation::Warning(path, why.to_owned()))
}

fn base(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { train, method, preset, .. } = recipe;
    let (base, rows) = (method.base.word(), u64::from(train.batch) * u64::from(train.ratio));
    vec![
        error(
            *preset == Preset::ReleasedCode && base != BaseName::SoftMatch,
            "method.base",
            "preset = \"released-code\" exists for softmatch alone; take preset = \"paper\"",
        ),
        error(
            base != BaseName::Supervised && train.ratio == 0,
            "train.ratio",
            &format!(
                "{base} is trained on unlabelled images and would get none; give it 1 or more, or take method.base = \"supervised\""
            ),
        ),
        error(
            base == BaseName::SupervisedPseudoMixup && method.mixup().is_none(),
            "method.mixup.pairing",
            "supervised-pseudo-mixup uses unlabelled images in mixtures alone, and there are none; take \"calibratemix\", or method.base = \"supervised\"",
        ),
        error(
            base == BaseName::SoftMatch && rows == 1,
            "train.ratio",
            "softmatch takes a variance over the unlabelled images of a batch and would get one; give it two or more",
        ),
        error(
            matches!(method.base, Base::SoftMatch(SoftMatch { statistics: Statistics::Aligned, .. }))
                && train.groups > 1,
            "train.groups",
            "method.softmatch.statistics = \"aligned\" takes its statistics from the aligned rows of one group; take train.groups = 1, or \"raw\"",
        ),
        warning(
            base == BaseName::SoftMatch && train.ratio == 1 && rows > 1,
            "train.ratio",
            "is what USB falls back to when nothing is set, and softmatch has been seen to diverge with it (USB issue 88); 7 is usual",
        ),
    ]
}

fn head(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { train, network, optimiser, selection, .. } = recipe;
    if !recipe.has_head() {
        return Vec::new();
    }
    vec![
        error(
            train.groups > 1 || train.shards > 1,
            if train.groups > 1 { "train.groups" } else { "train.shards" },
            "a head is trained in one process, as one group of one shard",
        ),
        error(
            *selection != Selection::Last,
            "selection",
            "a head is chosen by out-of-fold labels at the end of its run; take \"last\"",
        ),
        warning(
            network.head == HeadKind::Hidden && optimiser.lr > HIDDEN_RATE,
            "optimiser.lr",
            "is too high for a hidden layer, whose units die at such rates (network.head = \"hidden\"); 0.1 is usual",
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
            "labels.keep is given, but no file says which labels",
        ),
        error(labels.from.is_empty(), "labels.from", "labels have to come from somewhere; name a subset"),
        error(
            needs && labels.unlabelled_from.is_empty(),
            "labels.unlabelled_from",
            "unlabelled images have to come from somewhere; name a subset",
        ),
        error(
            needs && labels.keep == Keep::All && inside && !labels.include_labelled,
            "labels.include_labelled",
            "every label is kept, so no unlabelled image would be left; set it to true",
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
                "the mixup term would begin at step {begin}, but train.steps is {}; begin earlier, for example with method.mixup.start.rule = \"share\" and method.mixup.start.share = 0.1",
                train.steps
            ),
        ),
        error(
            !method.base.weighs_unlabelled() && matches!(mixup.start.rule, StartRule::Utilisation { .. }),
            "method.mixup.start.rule",
            &format!(
                "{} gives no unlabelled image per weight, so the mixup term would never begin; take \"share\"",
                method.base.word()
            ),
        ),
        error(
            !method.base.weighs_unlabelled() && mixup.pair_weight == PairWeight::Base,
            "method.mixup.pair_weight",
            &format!(
                "{} gives no unlabelled image per weight, so their mixtures would count for nothing; take \"one\"",
                method.base.word()
            ),
        ),
        error(
            !method.base.weighs_unlabelled() && mixup.pseudo_target == PseudoTarget::Blended,
            "method.mixup.pseudo_target",
            &format!(
                "{} gives no unlabelled image per weight to blend by, so this would be \"soft\"; take \"soft\" or \"hard\"",
                method.base.word()
            ),
        ),
        error(
            backwards.is_some(),
            "method.mixup.start.full",
            &format!("the ramp would end before it begins at {}", backwards.unwrap_or_default()),
        ),
        error(
            method.guidance().is_some() && train.batch < 2,
            "train.batch",
            "one labelled image has no easy and no hard half; give it two or more",
        ),
        error(
            method.base_loss == BaseLoss::Twice && train.step != StepKind::Joint,
            "train.step",
            "method.base_loss = \"twice\" needs both passes; take train.step = \"joint\"",
        ),
        error(
            method.base_loss == BaseLoss::Twice && train.groups > 1,
            "train.groups",
            "method.base_loss = \"twice\" labels each batch twice, which only one group can do; take train.groups = 1",
        ),
    ]
}

fn training(recipe: &Recipe) -> Vec<Option<RuleViolation>> {
    let Recipe { train, optimiser, ema, network, .. } = recipe;
    // What the initial weights and statistics still weigh at the end.
    let left = power(ema.decay, train.steps);
    let share = match network.norm_momentum {
        0.0 => network.name.norm_momentum(),
        share => share,
    };
    let left_of_norms = power(1.0 - share, train.steps);
    vec![
        error(
            optimiser.nesterov && optimiser.momentum == 0.0,
            "optimiser.nesterov",
            "without momentum there is nothing for Nesterov to look ahead with; set it to false",
        ),
        error(
            recipe.has_head() && network.folds == 1,
            "network.folds",
            "one fold leaves no label to train on; take at least 2, or 0 for none",
        ),
        uneven_rows(recipe, train.shards).map(|why| RuleViolation::Error("train.shards", why)),
        error(
            train.precision == OrAuto::Is(Precision::F16) && train.device == OrAuto::Is(Device::Cpu),
            "train.precision",
            "f16 is for GPUs; on a CPU take \"bf16\" or \"f32\"",
        ),
        warning(
            left > 0.01,
            "ema.decay",
            &format!(
                "leaves {:.0}% of the initial weights in the averaged model after {}; for so short a run, --set ema.decay={}",
                100.0 * left,
                counted(train.steps, "step"),
                rounded_down(suiting_decay(train.steps)),
            ),
        ),
        warning(
            left_of_norms > 0.01,
            "network.norm_momentum",
            &format!(
                "leaves {:.0}% of the initial statistics in batch normalisation after {}; for so short a run, --set \
                 network.norm_momentum={}",
                100.0 * left_of_norms,
                counted(train.steps, "step"),
                rounded_up(1.0 - suiting_decay(train.steps)),
            ),
        ),
    ]
}

/// The decay that leaves a hundredth of what was there at first.
fn suiting_decay(steps: u64) -> f64 {
    0.01_f64.powf(1.0 / steps.max(1) as f64)
}

/// As people write a decay: two digits that say something, so that 0.98 comes of 0.9886.
fn rounded_down(decay: f64) -> f64 {
    let rest = rounded_up(1.0 - decay);
    // Without the noise of the subtraction.
    (1e9 * (1.0 - rest)).round() / 1e9
}

/// To one digit, upwards: 0.02 of 0.0114.
fn rounded_up(share: f64) -> f64 {
    let unit = 10_f64.powf(share.log10().floor());
    let digits = (share / unit).ceil();
    (1e9 * digits * unit).round() / 1e9
}

/// Why a recipe's batches cannot be cut into so many equal shards; none where they can.
pub fn uneven_rows(recipe: &Recipe, shards: u32) -> Option<String> {
    let (labelled, unlabelled) = (recipe.train.batch, recipe.unlabelled());
    let uneven = |rows: u32| shards > 1 && !rows.is_multiple_of(shards);
    (uneven(labelled) || uneven(unlabelled)).then(|| {
        format!(
            "batches of {labelled} labelled and {unlabelled} unlabelled images cannot be cut into {shards} equal shards; \
             choose train.batch and train.ratio so that train.shards divides both"
        )
    })
}

/// A share below one, multiplied with itself so many times: nothing but products, so the same everywhere.
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
            "no labels are held out to choose by; give labels.validation a share, such as 0.2",
        ),
        error(
            *selection == Selection::BestTest && dataset.test.is_empty(),
            "selection",
            "dataset.test names no subset to choose by",
        ),
        warning(
            *selection == Selection::BestTest,
            "selection",
            "chooses the model by the images it is evaluated with; every table will say so",
        ),
        warning(
            *selection == Selection::Median && evaluations < u64::from(evaluate.window),
            "evaluate.window",
            &format!("is more than the {evaluations} evaluations of the run"),
        ),
    ]
}

/// What calmix-data says about the augmentation that it is given.
fn augmentation(recipe: &Recipe) -> Option<RuleViolation> {
    let error = recipe.augment.resolve().check().err()?;
    Some(RuleViolation::Error("augment.size", error.to_string()))
}
