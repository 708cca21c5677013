//! The exact messages for the most likely mistakes.

use std::path::Path;

use calmix_recipe::Layers;

use super::{file, set};

fn refused(text: &str) -> String {
    file(text).unwrap_err().to_string()
}

/// Texts of a file, each with what is said of it.
#[test]
fn mistakes_in_a_file() {
    let american = concat!("optimi", "zer");
    for (text, expected) in [
        // The nearest key is suggested, also for the American spelling and for the name in USB.
        (
            "[train]\nstpes = 2000\n",
            "line 2: there is no key `train.stpes`; did you mean `train.steps`?".to_owned(),
        ),
        (
            &*format!("\n[{american}]\nlr = 0.1\n"),
            format!("line 2: there is no key `{american}`; did you mean `optimiser`?"),
        ),
        ("uratio = 7", "line 1: there is no key `uratio`; did you mean `train.ratio`?".to_owned()),
        (
            "train.steps = \"2000\"",
            "line 1: train.steps = \"2000\": expected a whole number of at least 1".to_owned(),
        ),
        (
            "train.steps = 1e6",
            "line 1: train.steps = 1000000.0: expected a whole number of at least 1; did you mean 1000000?"
                .to_owned(),
        ),
        (
            "[labels]\nkeep = \"share\"\nshare = 10\n",
            "line 3: labels.share = 10: expected a number above 0 and up to 1".to_owned(),
        ),
        ("train = 5", "line 1: `train` is a section; set one of its keys instead".to_owned()),
        (
            "[train.steps]\nlong = 1",
            "line 1: train.steps = { long = 1 }: expected a whole number of at least 1".to_owned(),
        ),
    ] {
        assert_eq!(refused(text), format!("mine.toml, {expected}"));
    }
}

/// Settings, each with what is said of it.
#[test]
fn mistakes_in_a_setting() {
    for (setting, expected) in [
        ("train.lr=0.1", "there is no key `train.lr`; did you mean `optimiser.lr`?"),
        (
            "method.base=FixMatch",
            "method.base = \"FixMatch\": expected one of \"supervised\", \"supervised-pseudo-mixup\", \"fixmatch\", \
             \"flexmatch\", \"softmatch\", \"freematch\"; did you mean \"fixmatch\"?",
        ),
        ("method=softmatch", "`method` is a section; set one of its keys instead"),
        ("train.steps", "`train.steps` has no value; write `train.steps=VALUE`"),
        ("dataset.mean=0.5,0.5", "dataset.mean = [0.5, 0.5]: expected a list of 3 numbers from 0 to 1"),
        (
            "augment.cutout.fill=0,0,256",
            "augment.cutout.fill = [0, 0, 256]: expected a list of 3 whole numbers from 0 to 255",
        ),
    ] {
        assert_eq!(set(&[setting]).unwrap_err().to_string(), format!("--set 1: {expected}"));
    }
}

#[test]
fn no_such_recipe() {
    let error = |name: &str| Layers::new().recipe(name).resolve().unwrap_err().to_string();
    assert_eq!(error("cifar-10"), "there is no recipe `cifar-10`; did you mean `cifar10`?");
    for name in ["fashion-mnist", "cifar10", "folder"] {
        let expected = format!("there is no recipe `desk-{name}`; did you mean `cpu-{name}`?");
        assert_eq!(error(&format!("desk-{name}")), expected);
    }
    assert_eq!(
        refused("extends = \"mnist-fashion\""),
        "mine.toml, line 1: there is no recipe `mnist-fashion`; the built-in recipes are cifar10, \
         cifar10-released-code, cifar100, svhn, stl10, imagenet, webvision, fashion-mnist, folder, \
         cpu-fashion-mnist, cpu-cifar10, \
         cpu-folder, head-cifar10, head-folder, vectors"
    );
}

#[test]
fn not_toml() {
    let error = refused("[train]\nsteps = \n");
    assert!(error.starts_with("mine.toml, line 2: invalid TOML: "), "{error}");
    assert_eq!(refused("extends = 5"), "mine.toml, line 1: extends = 5: expected the name of a recipe");
    let missing = Layers::new().file(Path::new("no/such/file.toml")).resolve().unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file.toml: cannot be read: "), "{missing}");
}

#[test]
fn all_problems_are_listed_at_once() {
    let error = Layers::new()
        .text(Path::new("mine.toml"), "[train]\nbatch = 0\nsteps = -1\n[ema]\ndecay = 1.0\n")
        .set("train.devise=cpu")
        .resolve()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "mine.toml, line 5: ema.decay = 1.0: expected a number of at least 0 and below 1\n\
         mine.toml, line 2: train.batch = 0: expected a whole number from 1 to 65536\n\
         mine.toml, line 3: train.steps = -1: expected a whole number of at least 1\n\
         --set 1: there is no key `train.devise`; did you mean `train.device`?"
    );
}

/// Settings that need an unlabelled loss are refused for a base algorithm without one.
#[test]
fn contradictions_with_supervised_bases() {
    for (settings, expected) in [
        (
            &["method.base=supervised", "method.mixup.start.rule=utilisation"][..],
            "--set 2: method.mixup.start.rule = \"utilisation\": supervised does not weight unlabelled images, so the \
             mixup term would never start; use \"share\"",
        ),
        (
            &["method.base=supervised-pseudo-mixup", "method.mixup.pairing=none"],
            "--set 2: method.mixup.pairing = \"none\": supervised-pseudo-mixup uses unlabelled images only in \
             mixtures, and \"none\" turns these off; use \"calibratemix\", or method.base = \"supervised\"",
        ),
        (
            &["method.base=supervised-pseudo-mixup", "method.mixup.pair_weight=base"],
            "--set 2: method.mixup.pair_weight = \"base\": supervised-pseudo-mixup does not weight unlabelled images, so \
             their mixtures would have weight 0; use \"one\"",
        ),
        (
            &["method.base=supervised", "method.mixup.pseudo_target=blended"],
            "--set 2: method.mixup.pseudo_target = \"blended\": supervised does not weight unlabelled images, so \
             there is no weight to blend with; use \"soft\" or \"hard\"",
        ),
    ] {
        assert_eq!(set(settings).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_number_or_a_word() {
    let error = set(&["labels.validation=fifths"]).unwrap_err().to_string();
    let wanted = "labels.validation = \"fifths\": expected a number of at least 0 and below 1, or \"fifth\"; did you mean \
                  \"fifth\"?";
    assert!(error.contains(wanted), "{error}");
}

/// Values that are valid by themselves but not together.
#[test]
fn contradictions() {
    for (settings, expected) in [
        (
            &["train.ratio=0"][..],
            "--set 1: train.ratio = 0: fixmatch trains on unlabelled images, and a ratio of 0 gives it none; use 1 or \
             more, or method.base = \"supervised\"",
        ),
        (
            &["method.base=softmatch", "train.batch=1", "train.ratio=1", "method.mixup.pairing=none"],
            "--set 3: train.ratio = 1: softmatch computes a variance over the unlabelled images of a batch, which \
             would have only one; use two or more",
        ),
        (
            &["preset=released-code", "method.base=flexmatch"],
            "--set 2: method.base = \"flexmatch\": preset = \"released-code\" exists only for softmatch; use \
             preset = \"paper\"",
        ),
        (
            &["preset=released-code", "method.base=flexmatch", "method.mixup.pairing=none"],
            "--set 2: method.base = \"flexmatch\": preset = \"released-code\" exists only for softmatch; use \
             preset = \"paper\"",
        ),
        (
            &["preset=calibrated"],
            "--set 1: preset = \"calibrated\": \"calibrated\" was found for heads on frozen features (network.train = \
             \"head\"), and networks that are trained as a whole were not studied; use \"paper\"",
        ),
        (
            &["method.mixup.max_labels_per_class=5"],
            "--set 1: method.mixup.max_labels_per_class = 5: is only for heads on frozen features (network.train = \
             \"head\"); use 0",
        ),
        (
            &["preset=released-code", "train.steps=2000"],
            "preset released-code, line 20: method.mixup.start.step = 150001: the mixup term would start at step \
             150001, but train.steps is 2000; start it earlier, for example with method.mixup.start.rule = \"share\" \
             and method.mixup.start.share = 0.1",
        ),
        (
            &["preset=released-code", "train.step=lean"],
            "--set 2: train.step = \"lean\": method.base_loss = \"twice\" needs both passes; use train.step = \
             \"joint\"",
        ),
        (
            &["method.mixup.start.rule=ramp", "method.mixup.start.full=0.05"],
            "--set 2: method.mixup.start.full = 0.05: the ramp starts at 0.09765625 and cannot end before \
             that; use a larger value",
        ),
        (
            &["train.batch=1"],
            "--set 1: train.batch = 1: a batch of one labelled image cannot be split into an easy and a hard half; \
             use two or more",
        ),
        (
            &["labels.keep=given"],
            "labels.file = \"\": labels.keep is \"given\", but no file lists the labels to keep; set it to the path of a \
             split.json",
        ),
        (
            &["labels.keep=all", "labels.include_labelled=false"],
            "--set 2: labels.include_labelled = false: every label is kept, so no images would be left for the \
             unlabelled batches; set it to true",
        ),
        (
            &["labels.from="],
            "--set 1: labels.from = []: there is no subset to take labels from; name one, such as \"train\"",
        ),
        (
            &["labels.unlabelled_from="],
            "--set 1: labels.unlabelled_from = []: there is no subset to take unlabelled images from; name one, such \
             as \"train\"",
        ),
        (
            &["selection=best-validation", "dataset.source=cifar10"],
            "--set 1: selection = \"best-validation\": no labels are held out to select the model on; set \
             labels.validation to a share, such as 0.2",
        ),
        (
            &["selection=best-test", "dataset.test="],
            "--set 1: selection = \"best-test\": dataset.test names no subset to select the model on; name one, \
             or use another selection",
        ),
        (
            &["optimiser.momentum=0"],
            "optimiser.nesterov = true: Nesterov momentum needs optimiser.momentum above 0; set it to false, or raise \
             the momentum",
        ),
        (
            &["train.micro_batches=65"],
            "--set 1: train.micro_batches = 65: batches of 64 labelled and 448 unlabelled images cannot be cut into 65 equal \
             micro-batches; choose train.batch and train.ratio so that train.micro_batches divides both",
        ),
        (
            &["train.micro_batches=3"],
            "--set 1: train.micro_batches = 3: batches of 64 labelled and 448 unlabelled images cannot be cut into 3 equal \
             micro-batches; choose train.batch and train.ratio so that train.micro_batches divides both",
        ),
    ] {
        let error = set(settings).expect_err(&settings.join(" ")).to_string();
        assert_eq!(error, expected, "{settings:?}");
    }
}

/// Values that are valid by themselves but not on this device or with this number of groups.
#[test]
fn contradictions_of_groups_and_devices() {
    for (settings, expected) in [
        (
            &["method.base=softmatch", "method.softmatch.statistics=aligned", "train.groups=2"][..],
            "--set 3: train.groups = 2: method.softmatch.statistics = \"aligned\" computes its statistics within one \
             group; use train.groups = 1, or \"raw\" statistics",
        ),
        (
            &["train.step=joint", "method.base_loss=twice", "train.groups=2"],
            "--set 3: train.groups = 2: method.base_loss = \"twice\" labels each batch twice, which works only with one \
             group; use train.groups = 1",
        ),
        (
            &["train.precision=f16", "train.device=cpu"],
            "--set 1: train.precision = \"f16\": f16 needs a GPU; on a CPU use \"bf16\" or \"f32\"",
        ),
        (
            &["augment.evaluation_resize=16"],
            "augment.size = 32: evaluation.resize is 16; it must be from 32 to 16384",
        ),
    ] {
        let error = set(settings).expect_err(&settings.join(" ")).to_string();
        assert_eq!(error, expected, "{settings:?}");
    }
}

#[test]
fn warnings() {
    for (settings, expected) in [
        (
            &["method.base=softmatch", "train.ratio=1"][..],
            "train.ratio = 1 (--set 2) is USB's fallback when nothing is set, and softmatch has diverged with it (USB issue \
             88); 7 is usual",
        ),
        (
            &["train.steps=2000", "ema.decay=0.99"],
            "train.steps = 2000 (--set 1) is short: the model keeps up to 14% of its initial state; add --set \
             network.norm_momentum=0.003",
        ),
        (
            &["train.steps=40"],
            "train.steps = 40 (--set 1) is short: the model keeps up to 96% of its initial state; add --set ema.decay=0.8 \
             --set network.norm_momentum=0.2",
        ),
        (
            &["method.base=supervised", "method.mixup.pairing=none", "train.ratio=3"],
            "train.ratio = 3 (--set 3) has no effect: method.base is supervised, so there are no \
             unlabelled batches",
        ),
        (
            &["selection=best-test"],
            "selection = \"best-test\" (--set 1) selects the model on the test images that it is evaluated on; every \
             table marks this",
        ),
        (
            &["train.steps=2000", "network.norm_momentum=0.01"],
            "train.steps = 2000 (--set 1) is short: the model keeps up to 14% of its initial state; add --set \
             ema.decay=0.997",
        ),
        (
            &["selection=median", "train.steps=10240"],
            "evaluate.window = 20 (default) is larger than the number of evaluations in the run, 2",
        ),
        (
            &["method.fixmatch.threshold=0.7", "method.base=softmatch"],
            "method.fixmatch.threshold = 0.7 (--set 1) has no effect: method.base is softmatch",
        ),
        (
            &["method.mixup.gamma=0.3"],
            "method.mixup.gamma = 0.3 (--set 1) has no effect: method.mixup.lambda is beta-per-group",
        ),
        (
            &["method.mixup.pairing=none", "method.mixup.guidance.split=median"],
            "method.mixup.guidance.split = \"median\" (--set 2) has no effect: method.mixup.pairing is none",
        ),
    ] {
        let warnings: Vec<_> = set(settings).unwrap().warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings, [expected], "{settings:?}");
    }
    assert!(set(&[]).unwrap().warnings.is_empty());
}
