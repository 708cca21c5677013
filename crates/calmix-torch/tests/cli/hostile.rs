//! Run folders from an untrusted source. They may make a command fail; they never make it write or read outside
//! the folder, hang, or take memory without limit.

use std::fs::{self, File};
use std::path::Path;

use calmix_testkit::tier;

use super::fixture::change_checkpoint;
use super::hostile_scene::{KINDS, Reader, Scene};
use super::library::Library;
use super::measured::{MAX_EXTRA_BYTES, measured};

/// Every name in a run's folder that a command opens, reads, writes or lists.
const PLACES: &[&str] = &[
    "run.json",
    "recipe.toml",
    "environment.json",
    "summary.json",
    "split.json",
    "events.jsonl",
    "timing.jsonl",
    "result.json",
    "model.safetensors",
    "model.json",
    "margins.json",
    "thumbnails.safetensors",
    "calmix.lock",
    "predictions",
    "checkpoints",
    "tensorboard",
    "prepared",
    "prepared/manifest.json",
    "prepared/samples.bin",
    "checkpoints/step-000000004",
    "checkpoints/step-000000004/MANIFEST",
    "checkpoints/step-000000004/ema.safetensors",
    "checkpoints/step-000000004/state.json",
];

/// The library is called on every place with every kind. A process is started for each kind, in another place each time, and
/// with `CALMIX_EXHAUSTIVE=1` for every place with every kind, which takes minutes.
#[test]
fn links_pipes_and_devices_lead_nowhere() {
    let scene = Scene::of_network();
    let mut processes = Reader::new(&scene, None);
    let mut library = Reader::new(&scene, Some(Library::start()));
    for (n, place) in PLACES.iter().enumerate() {
        for (k, kind) in KINDS.iter().enumerate() {
            let what = format!("{place}: {kind}");
            let damage = |run: &Path| scene.put(run, place, kind);
            let _ = library.endures(&what, damage);
            // Five places apart: three files, a folder and a file of a checkpoint.
            if tier::is_exhaustive() || n == 5 * k {
                let _ = processes.endures(&what, damage);
            }
        }
    }
}

/// What is done to a run.
type Damage<'a> = Box<dyn Fn(&Path) + 'a>;

/// Contents that a process reads too, one of each kind; with `CALMIX_EXHAUSTIVE=1` it reads all.
const SHOWN: [&str; 5] = [
    "a line without end",
    "classes of a result",
    "an enormous network",
    "a table of holes",
    "long weights in a checkpoint",
];

/// Files that are what they should be, except for what they say.
#[test]
fn enormous_and_damaged_contents_are_refused() {
    let scene = Scene::of_network();
    let mut processes = Reader::new(&scene, None);
    let mut library = Reader::new(&scene, Some(Library::start()));
    let checkpoint = "checkpoints/step-000000004";
    let replaced = |name: &'static str, from: &'static str, to: &'static str| {
        move |run: &Path| {
            let text = fs::read_to_string(run.join(name)).unwrap();
            assert!(text.contains(from), "{from} in {text}");
            fs::write(run.join(name), text.replace(from, to)).unwrap();
        }
    };
    let long = |name: &'static str| {
        move |run: &Path| File::create(run.join(name)).unwrap().set_len(900 << 20).unwrap()
    };
    let list = |item: &'static str, bytes: usize| {
        let list = vec![item; bytes / (item.len() + 1)].join(",");
        format!("[{list}]")
    };
    let classes = list("\"\"", 15 << 20);
    let ids = list("1", 7 << 20);
    let with = |name: &'static str, path: &'static [&'static str], json: String| {
        move |run: &Path| {
            let text = fs::read_to_string(run.join(name)).unwrap();
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let mut at = &mut value;
            for key in path {
                at = &mut at[key];
            }
            *at = "HERE".into();
            fs::write(run.join(name), value.to_string().replace("\"HERE\"", &json)).unwrap();
        }
    };
    let cases: Vec<(&str, Damage<'_>)> = vec![
        ("a line without end", Box::new(long("events.jsonl"))),
        ("a long environment", Box::new(long("environment.json"))),
        ("a long recipe", Box::new(long("recipe.toml"))),
        ("a long split", Box::new(long("split.json"))),
        ("a long result", Box::new(long("result.json"))),
        ("long weights", Box::new(long("model.safetensors"))),
        ("a long lock", Box::new(long("calmix.lock"))),
        ("a long table", Box::new(long("prepared/manifest.json"))),
        ("a manifest of zeros", Box::new(long("checkpoints/step-000000004/MANIFEST"))),
        ("classes of a result", Box::new(with("result.json", &["classes"], classes.clone()))),
        ("classes of a model", Box::new(with("model.json", &["classes"], classes.clone()))),
        ("classes of a table", Box::new(with("prepared/manifest.json", &["classes"], classes.clone()))),
        ("samples of a table", Box::new(with("prepared/manifest.json", &["samples"], u64::MAX.to_string()))),
        ("parts of a table", Box::new(with("prepared/manifest.json", &["parts"], u32::MAX.to_string()))),
        ("ids of a split", Box::new(with("split.json", &["labelled"], ids.clone()))),
        ("nesting", Box::new(|run| fs::write(run.join("result.json"), "[".repeat(1 << 20)).unwrap())),
        ("an enormous network", Box::new(replaced("recipe.toml", "wrn-10-1", "wrn-994-100"))),
        ("enormous images", Box::new(replaced("recipe.toml", "size = 8", "size = 4096"))),
        (
            "many unknown keys",
            Box::new(|run| {
                let keys: Vec<_> = (0..8_000).map(|n| format!("unknown{n} = 1\n")).collect();
                fs::write(run.join("recipe.toml"), keys.concat()).unwrap();
            }),
        ),
        (
            "a table of holes",
            Box::new(|run| {
                let path = run.join("prepared/manifest.json");
                let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                let more = 40_000_000_u64;
                json["samples"] = (json["samples"].as_u64().unwrap() + more).into();
                let last = json["subsets"].as_array().unwrap().len() - 1;
                json["subsets"][last]["count"] =
                    (json["subsets"][last]["count"].as_u64().unwrap() + more).into();
                fs::write(path, json.to_string()).unwrap();
                let samples = File::options().write(true).open(run.join("prepared/samples.bin")).unwrap();
                samples.set_len(samples.metadata().unwrap().len() + 24 * more).unwrap();
            }),
        ),
        ("predictions of holes", Box::new(|run| hollow_predictions(run, 40_000_000))),
        // With the right hashes, so that only its length speaks against it.
        (
            "long weights in a checkpoint",
            Box::new(|run| lengthened(&run.join(checkpoint), "ema.safetensors")),
        ),
        ("a long state in a checkpoint", Box::new(|run| lengthened(&run.join(checkpoint), "state.json"))),
        (
            "many margins in a checkpoint",
            Box::new(|run| lengthened(&run.join(checkpoint), "samples-0.safetensors")),
        ),
    ];
    for (what, damage) in &cases {
        let _ = library.endures(what, damage);
        if tier::is_exhaustive() || SHOWN.contains(what) {
            let _ = processes.endures(what, damage);
        }
    }
    assert!(SHOWN.iter().all(|shown| cases.iter().any(|(what, _)| what == shown)));
}

/// Predictions of more samples than the dataset has: as holes, and as a file too short to be looked at for holes.
#[test]
fn predictions_of_too_many_samples_are_not_inspected() {
    let scene = Scene::of_network();
    let file = "hostile/predictions/step-000000008-test-ema.safetensors";
    let inspect = || measured(scene.workspace.command(&["inspect", file]));
    scene.copy();
    let honest = inspect();
    assert_eq!(honest.code, Some(0), "{}", honest.text);
    for (samples, why) in [(40_000_000, "holes"), (100_000, "bytes, more than")] {
        hollow_predictions(&scene.copy(), samples);
        let ended = inspect();
        assert_eq!(ended.code, Some(1), "{}", ended.text);
        assert!(
            ended.text.contains("step-000000008-test-ema.safetensors: ") && ended.text.contains(why),
            "{}",
            ended.text
        );
        ended.is_modest(&honest, why);
    }
}

/// The name of a file, a class or a key may hold the commands of a terminal. `endures` looks for them.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let scene = Scene::of_network();
    let mut processes = Reader::new(&scene, None);
    let escape = "\u{1b}]0;owned\u{7}\u{9b}31m\nerror: all is lost";
    let said = processes.endures("texts", |run| {
        let recipe = fs::read_to_string(run.join("recipe.toml")).unwrap();
        let text = toml_string(escape);
        let described = recipe.lines().map(|line| match line.split_once(" = ") {
            Some(("description", _)) => format!("description = {text}\n"),
            _ => format!("{line}\n"),
        });
        fs::write(run.join("recipe.toml"), described.collect::<String>()).unwrap();
        let path = run.join("environment.json");
        let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        json["system"] = escape.into();
        fs::write(path, json.to_string()).unwrap();
    });
    assert!(said[0].contains(r"\u{1b}]0;owned\u{7}\u{9b}31m\nerror: all is lost"), "{}", said[0]);
    let said = processes.endures("a file name", |run| {
        fs::write(run.join("checkpoints/step-000000004").join(escape), "").unwrap();
    });
    // A report reads neither checkpoints nor the keys of a recipe.
    let others = |said: &[String]| [&said[0], &said[1], &said[3]].map(String::clone);
    assert!(others(&said).iter().all(|said| said.contains(r"\u{1b}]0;owned")), "{said:?}");
    let said = processes.endures("a key", |run| {
        fs::write(run.join("recipe.toml"), format!("{} = 1\n", toml_string(escape))).unwrap();
    });
    assert!(others(&said).iter().all(|said| said.contains("there is no key")), "{said:?}");

    // And of a dataset.
    let class = scene.workspace.path("photos").join(escape);
    fs::create_dir_all(&class).unwrap();
    fs::write(class.join(format!("{escape}.png")), "no image").unwrap();
    for command in [&["inspect", "photos"][..], &["prepare", "photos"], &["inspect", "photos", "--json"]] {
        let text = measured(scene.workspace.command(command)).text;
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: all is lost")), "{text}");
    }
}

/// Sparse predictions of many samples, which take up a few bytes on the disk, and events that claim them.
fn hollow_predictions(run: &Path, samples: u64) {
    let name = "step-000000008-test-ema.safetensors";
    let path = run.join("predictions").join(name);
    let bytes = fs::read(&path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let classes = header["logits"]["shape"][1].as_u64().unwrap();
    let mut end = 0;
    for (tensor, shape, row) in [
        ("ids", vec![samples], 8),
        ("labels", vec![samples], 4),
        ("logits", vec![samples, classes], 4 * classes),
    ] {
        header[tensor]["shape"] = shape.into();
        header[tensor]["data_offsets"] = vec![end, end + row * samples].into();
        end += row * samples;
    }
    let header = header.to_string();
    fs::write(&path, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(8 + header.len() as u64 + end).unwrap();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let claimed = events.replace(
        "\"split\":\"test\",\"model\":\"ema\",\"samples\":40",
        &format!("\"split\":\"test\",\"model\":\"ema\",\"samples\":{samples}"),
    );
    assert_ne!(claimed, events);
    fs::write(run.join("events.jsonl"), claimed).unwrap();
}

fn toml_string(text: &str) -> String {
    let escaped =
        text.chars().map(|c| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() });
    format!("\"{}\"", escaped.collect::<String>())
}

/// Appends zeros to a file of a checkpoint, and has its manifest know of them.
fn lengthened(checkpoint: &Path, name: &str) {
    let mut bytes = fs::read(checkpoint.join(name)).unwrap();
    bytes.resize((MAX_EXTRA_BYTES + (50 << 20)) as usize, 0);
    change_checkpoint(checkpoint, name, &bytes);
}
