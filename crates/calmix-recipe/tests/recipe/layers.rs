//! The precedence of layers, and the origin of values.

use std::ffi::OsString;
use std::path::Path;

use calmix_core::mixup::pair::Dissimilar;
use calmix_core::mixup::{Pairing, PseudoTarget};
use calmix_recipe::sweep::Sweep;
use calmix_recipe::{BatchNorm, Layers, RecipeError, Resolved, differences};

use super::{file, set};

fn environment(variables: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    variables.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// Each of the five layers also sets everything that the layers above it set.
#[test]
fn each_layer_lies_over_the_one_before() {
    let text = "[network]\nname = \"wrn-16-2\"\n[train]\nbatch = 3\nratio = 3\n[evaluate]\nevery = 3\n";
    let layers = Layers::new()
        // The order in which they are added does not count.
        .set("train.batch=5")
        .environment(environment(&[("CALMIX_TRAIN__BATCH", "4"), ("CALMIX_TRAIN__RATIO", "4")]))
        .text(Path::new("mine.toml"), text)
        .recipe("cifar100");
    let resolved = layers.resolve().unwrap();
    let seen = |path: &str| (resolved.value(path).unwrap().to_string(), resolved.origin(path).to_string());
    for (path, value, origin) in [
        ("train.threads", "0", "default"),
        ("optimiser.weight_decay", "0.001", "recipe cifar100, line 42"),
        ("network.name", "\"wrn-16-2\"", "mine.toml, line 2"),
        ("evaluate.every", "3", "mine.toml, line 7"),
        ("train.ratio", "4", "CALMIX_TRAIN__RATIO"),
        ("train.batch", "5", "--set 1"),
    ] {
        assert_eq!(seen(path), (value.to_owned(), origin.to_owned()), "{path}");
    }
    assert_eq!(resolved.recipe.train.batch, 5);
}

#[test]
fn a_later_setting_or_file_wins() {
    let resolved = set(&["train.batch=5", "train.batch=6"]).unwrap();
    assert_eq!(
        (resolved.recipe.train.batch, resolved.origin("train.batch").to_string()),
        (6, "--set 2".into())
    );
    let layers =
        Layers::new().text(Path::new("a"), "train.batch = 7").text(Path::new("b"), "train.batch = 8");
    assert_eq!(layers.resolve().unwrap().recipe.train.batch, 8);
}

#[test]
fn a_preset_lies_between_recipe_and_file() {
    let text = "extends = \"cifar10\"\npreset = \"released-code\"\noptimiser.lr = 0.5\n";
    let resolved = file(text).unwrap();
    assert_eq!(resolved.origin("method.base").to_string(), "preset released-code, line 10");
    assert_eq!(resolved.recipe.optimiser.lr, 0.5);
    assert_eq!(resolved.origin("optimiser.weight_decay").to_string(), "recipe cifar10, line 42");
    let by_argument = set(&["preset=released-code"]).unwrap();
    assert_eq!(by_argument.recipe.method, calmix_core::preset::released_code());
}

#[test]
fn preset_calibrated_is_what_the_study_found_for_heads() {
    let text = "extends = \"head-cifar10\"\npreset = \"calibrated\"\n";
    let mixup = file(text).unwrap().recipe.method.mixup;
    assert_eq!(mixup.pairing, Pairing::Random);
    assert_eq!(mixup.pseudo_target, PseudoTarget::Soft);
    assert!(mixup.applies_to(50, 10) && !mixup.applies_to(51, 10));
    let own = file(&format!("{text}method.mixup.pairing = \"crossed\"\n")).unwrap().recipe.method.mixup;
    assert_eq!(own.pairing, Pairing::Crossed);
}

#[test]
fn a_family_of_augmentations_lies_under_everything() {
    let text = "[augment]\nfamily = \"google\"\nrand_augment.operations = 5\n";
    let recipe = file(text).unwrap().recipe;
    assert_eq!((recipe.augment.rand_augment.operations, recipe.augment.cutout.side), (5, 16));
}

#[test]
fn the_environment_is_read_by_name() {
    let read = |variables: &[(&str, &str)]| Layers::new().environment(environment(variables)).resolve();
    let resolved = read(&[
        ("CALMIX_METHOD__MIXUP__GUIDANCE__FRACTION", "0.1"),
        ("CALMIX__SELECTION", "median"),
        ("CALMIX_LABELS__FROM", "train,extra"),
        // Not keys of a recipe, and not refused.
        ("CALMIX_DATASETS", "/data"),
        ("CALMIX", "x"),
        ("PATH", "/bin"),
    ])
    .unwrap();
    assert_eq!(resolved.recipe.method.guidance().unwrap().dissimilar, Dissimilar::Fraction(0.1));
    assert_eq!(resolved.recipe.selection.word(), "median");
    assert_eq!(resolved.recipe.labels.from, ["train", "extra"]);
    let error = read(&[("CALMIX_TRAIN__STPES", "1")]).unwrap_err().to_string();
    assert_eq!(error, "CALMIX_TRAIN__STPES: there is no key `train.stpes`; did you mean `train.steps`?");
}

#[test]
fn the_environment_may_hold_anything() {
    use std::os::unix::ffi::OsStringExt;
    let broken = OsString::from_vec(vec![0xff]);
    let other = vec![("HOME".into(), broken.clone()), (broken.clone(), "1".into())];
    assert!(Layers::new().environment(other).resolve().is_ok());
    let ours = vec![("CALMIX_DATASET__PATH".into(), broken)];
    let error = Layers::new().environment(ours).resolve().unwrap_err().to_string();
    assert_eq!(error, "CALMIX_DATASET__PATH: the value is not UTF-8");
}

#[test]
fn settings_are_read_by_the_kind_of_their_key() {
    let value = |setting: &str| {
        let resolved = set(&[setting]).unwrap();
        resolved.value(setting.split('=').next().unwrap().trim()).unwrap().to_string()
    };
    for (setting, expected) in [
        ("train.steps=2_000", "2000"),
        ("train.steps = 0x10", "16"),
        ("optimiser.lr=1", "1.0"),
        ("optimiser.lr=3e-2", "0.03"),
        ("optimiser.nesterov=false", "false"),
        ("network.name=resnet50", "\"resnet50\""),
        ("network.name=\"resnet50\"", "\"resnet50\""),
        ("train.device=cuda:1", "\"cuda:1\""),
        ("dataset.path=/data/my photos", "\"/data/my photos\""),
        ("dataset.path=2024", "\"2024\""),
        ("dataset.path=true", "\"true\""),
        ("dataset.path=a=b", "\"a=b\""),
        ("dataset.path=", "\"\""),
        ("dataset.path='x'", "\"x\""),
        ("labels.from=train, extra", "[\"train\", \"extra\"]"),
        ("labels.from=[\"train\"]", "[\"train\"]"),
        ("augment.cutout.fill=[1, 2, 3]", "[1, 2, 3]"),
        ("dataset.std=[1, 0.5, 1e-3]", "[1.0, 0.5, 0.001]"),
        ("dataset.std=1,1,1", "[1.0, 1.0, 1.0]"),
    ] {
        assert_eq!(value(setting), expected, "{setting}");
    }
    // A line break does not smuggle in another key.
    assert!(set(&["train.steps=5\nbatch = 1"]).is_err());
}

fn again(resolved: &Resolved) -> Resolved {
    Layers::new().text(Path::new("recipe.toml"), &resolved.to_toml()).resolve().unwrap()
}

#[test]
fn the_stored_recipe_is_the_same_recipe() {
    let names = calmix_recipe::builtin().iter().map(|recipe| Layers::new().recipe(recipe.name));
    let odd = Layers::new()
        .set("optimiser.lr=0.1234567890123456789")
        .set("dataset.path=a \"b\"\\c 'd'\u{1}ä\nline")
        .set("train.seed=9223372036854775807")
        .set("method.mixup.lambda=fixed")
        .set("augment.family=google");
    for layers in names.chain([odd]) {
        let resolved = layers.resolve().unwrap();
        let repeated = again(&resolved);
        assert_eq!(repeated.recipe, resolved.recipe);
        assert_eq!(repeated.to_toml(), resolved.to_toml());
        assert_eq!(repeated.hash(), resolved.hash());
    }
}

#[test]
fn origins_are_shown_on_request() {
    let shown = Layers::new().recipe("svhn").set("train.steps=10").resolve().unwrap().to_toml_with_origins();
    for line in [
        "steps = 10  # --set 1",
        "source = \"svhn\"  # recipe svhn, line 4: with its extra images, as in FixMatch (Google), USB and TorchSSL",
        "threads = 0  # default",
        "[method.mixup.guidance]",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    // The comments are comments.
    assert!(file(&shown).is_ok());
}

#[test]
fn a_run_needs_a_dataset() {
    let resolved = Layers::new().recipe("cifar10").resolve().unwrap();
    assert_eq!(
        resolved.ready().unwrap_err().to_string(),
        "dataset.path is not set; set it to the folder of the dataset, for example with `--set dataset.path=FOLDER`"
    );
    assert!(set(&["dataset.path=/data"]).unwrap().ready().is_ok());
}

#[test]
fn renamed_keys_are_read_in_every_layer() {
    let old_file = "[train]\nshards = 2\nbatch_norm = \"shard\" # old\n";
    let all = [
        set(&["train.shards=2", "train.batch_norm=shard"]).unwrap(),
        file(old_file).unwrap(),
        Layers::new().environment(environment(&[("CALMIX_TRAIN__SHARDS", "2")])).resolve().unwrap(),
        Sweep::read(Path::new("s.toml"), "[[grid]]\nrecipe = \"cifar10\"\ntrain.shards = [2]\n")
            .unwrap()
            .cells[0]
            .layers()
            .resolve()
            .unwrap(),
    ];
    for resolved in &all {
        assert_eq!(resolved.recipe.train.micro_batches, 2);
        assert_eq!(resolved.recipe.train.batch_norm, BatchNorm::MicroBatch);
    }
    assert_eq!(all[1].origin("train.micro_batches").to_string(), "mine.toml, line 2");
    assert_eq!(all[1].comments()["train.batch_norm"], "old");
    // A higher layer may have the other name.
    let layers = Layers::new().text(Path::new("mine.toml"), old_file).set("train.micro_batches=4");
    assert_eq!(layers.resolve().unwrap().recipe.train.micro_batches, 4);
}

/// A run that was begun before a key was renamed resumes: its stored recipe is read, and has the hash that it had.
#[test]
fn stored_recipe_with_renamed_keys_is_the_same() {
    let now = set(&["train.micro_batches=2", "train.batch_norm=sync"]).unwrap();
    let stored = now.to_toml();
    let old = stored.replace("micro_batches = 2\n", "shards = 2\n");
    assert_ne!(old, stored);
    let old = file(&old).unwrap();
    assert_eq!(differences(&old, &now), []);
    assert_eq!((old.to_toml(), old.hash()), (stored, now.hash()));
}

#[test]
fn renamed_key_under_both_names_is_refused() {
    let refused =
        "`train.micro_batches` was called `train.shards`, and both are set; keep only `train.micro_batches`";
    let message = |resolved: Result<Resolved, RecipeError>| resolved.unwrap_err().to_string();
    assert_eq!(message(set(&["train.micro_batches=2", "train.shards=2"])), format!("--set 2: {refused}"));
    assert_eq!(
        message(file("[train]\nmicro_batches = 2\nshards = 3\n")),
        format!("mine.toml, line 3: {refused}")
    );
    let both = environment(&[("CALMIX_TRAIN__SHARDS", "2"), ("CALMIX_TRAIN__MICRO_BATCHES", "2")]);
    assert_eq!(
        message(Layers::new().environment(both).resolve()),
        format!("CALMIX_TRAIN__SHARDS: {refused}")
    );
}
