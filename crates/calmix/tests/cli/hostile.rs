//! Run folders that came from somebody else. They may make a command fail; they never make it write or read outside
//! the folder, hang, or take memory without limit.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use calmix::run::model_info::ModelInfo;

use crate::workspace::Workspace;

/// No command may take longer on a hostile folder.
pub(crate) const LONGEST: Duration = Duration::from_secs(10);
/// Bytes of memory above what the same command takes on the honest folder.
pub(crate) const MOST: u64 = 100 << 20;

const COMMANDS: [&str; 4] = ["inspect", "evaluate", "resume", "report"];

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

/// What stands there instead.
const KINDS: &[&str] = &["file", "folder", "endless", "pipe", "hard link"];

/// An honest run, a place outside it with a sentinel, and room for hostile copies.
struct Scene {
    workspace: Workspace,
}

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    pub(crate) took: Duration,
    pub(crate) peak: u64,
}

impl Scene {
    fn new() -> Self {
        let workspace = Workspace::new().with_garments();
        workspace.end(workspace.training(8, &["--run-dir", "honest", "--tensorboard"])).with_code(0);
        // As a run that was killed after its first checkpoint, with the model of its end.
        fs::remove_dir_all(workspace.path("honest/checkpoints/step-000000008")).unwrap();
        let outside = workspace.path("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("sentinel"), "precious\n").unwrap();
        // What a run would take for its own and remove.
        for name in ["step-000000004-test-ema.safetensors.tmp-1-0", "recipe.toml.tmp-1-0"] {
            fs::write(outside.join(name), "precious\n").unwrap();
        }
        fs::create_dir(outside.join("step-000000001.tmp-1-0")).unwrap();
        let scene = Self { workspace };
        let old = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000_000));
        for path in [outside.clone(), outside.join("sentinel")] {
            File::open(path).unwrap().set_times(old).unwrap();
        }
        scene
    }

    /// A copy of the honest run, for one command.
    fn copy(&self) -> PathBuf {
        let to = self.workspace.path("hostile");
        let _ = fs::remove_dir_all(&to);
        copy(&self.workspace.path("honest"), &to);
        to
    }

    /// What is outside: every name, every time, every byte.
    fn outside(&self) -> Vec<(PathBuf, SystemTime, Vec<u8>)> {
        let folder = self.workspace.path("outside");
        let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.push(folder);
        paths.sort();
        let seen = |path: PathBuf| {
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            let bytes = fs::read(&path).unwrap_or_default();
            (path, time, bytes)
        };
        paths.into_iter().map(seen).collect()
    }

    fn run(&self, command: &str, folder: &str) -> Ended {
        measured(self.workspace.command(&[command, folder]))
    }

    /// Runs every command on a hostile folder and compares it with the honest one.
    #[track_caller]
    fn endures(&self, honest: &[Ended], what: &str, damage: impl Fn(&Path)) -> Vec<String> {
        let mut said = Vec::new();
        for (command, honest) in COMMANDS.iter().zip(honest) {
            damage(&self.copy());
            let before = self.outside();
            let ended = self.run(command, "hostile");
            assert!(self.outside() == before, "{command}, {what}: touched what is outside\n{}", ended.text);
            assert!(ended.took < LONGEST, "{command}, {what}: took {:?}\n{}", ended.took, ended.text);
            let more = ended.peak.saturating_sub(honest.peak);
            assert!(more < MOST, "{command}, {what}: {} MB more\n{}", more >> 20, ended.text);
            let control = ended.text.chars().find(|&c| c.is_control() && c != '\n');
            assert_eq!(control, None, "{command}, {what}: {:?}", ended.text);
            said.push(ended.text);
        }
        said
    }

    fn honest(&self) -> Vec<Ended> {
        let once = |command: &str| {
            self.copy();
            self.run(command, "hostile")
        };
        // Peaks are sampled, and a short one may be missed.
        let ended = COMMANDS.map(|command| {
            let (first, second) = (once(command), once(command));
            Ended { peak: first.peak.max(second.peak), ..second }
        });
        ended.into()
    }

    /// Puts something hostile where a file or a folder of the run is.
    fn put(&self, run: &Path, place: &str, kind: &str) {
        let path = run.join(place);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            let _ = fs::remove_file(&path);
        }
        let outside = self.workspace.path("outside");
        match kind {
            "file" => symlink(outside.join("sentinel"), path).unwrap(),
            "folder" => symlink(outside, path).unwrap(),
            "endless" => symlink("/dev/zero", path).unwrap(),
            "hard link" => fs::hard_link(outside.join("sentinel"), path).unwrap(),
            _ => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        }
    }
}

/// Every place with every kind takes minutes, so each place gets one kind here, and all of them with
/// `CALMIX_HOSTILE=all`. `calmix-run` tests every kind where it opens a file.
#[test]
fn links_pipes_and_devices_lead_nowhere() {
    let scene = Scene::new();
    let honest = scene.honest();
    let all = std::env::var_os("CALMIX_HOSTILE").is_some();
    for (n, place) in PLACES.iter().enumerate() {
        for (k, kind) in KINDS.iter().enumerate() {
            if all || k == n % KINDS.len() {
                let _ =
                    scene.endures(&honest, &format!("{place}: {kind}"), |run| scene.put(run, place, kind));
            }
        }
    }
}

/// What is done to a run.
type Damage<'a> = Box<dyn Fn(&Path) + 'a>;

/// Files that are what they should be, except for what they say.
#[test]
fn enormous_and_damaged_contents_are_refused() {
    let scene = Scene::new();
    let honest = scene.honest();
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
        let _ = scene.endures(&honest, what, damage);
    }
}

/// The name of a file, a class or a key may hold the commands of a terminal. `endures` looks for them.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let scene = Scene::new();
    let honest = scene.honest();
    let escape = "\u{1b}]0;owned\u{7}\u{9b}31m\nerror: all is lost";
    let said = scene.endures(&honest, "texts", |run| {
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
    let said = scene.endures(&honest, "a file name", |run| {
        fs::write(run.join("checkpoints/step-000000004").join(escape), "").unwrap();
    });
    // A report reads neither checkpoints nor the keys of a recipe.
    assert!(said[..3].iter().all(|said| said.contains(r"\u{1b}]0;owned")), "{said:?}");
    let said = scene.endures(&honest, "a key", |run| {
        fs::write(run.join("recipe.toml"), format!("{} = 1\n", toml_string(escape))).unwrap();
    });
    assert!(said[..3].iter().all(|said| said.contains("there is no key")), "{said:?}");

    // And of a dataset.
    let class = scene.workspace.path("photos").join(escape);
    fs::create_dir_all(&class).unwrap();
    fs::write(class.join(format!("{escape}.png")), "no picture").unwrap();
    for command in [&["inspect", "photos"][..], &["prepare", "photos"], &["inspect", "photos", "--json"]] {
        let text = measured(scene.workspace.command(command)).text;
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("error: all is lost")), "{text}");
    }
}

/// Predictions of so many samples that take up a few bytes on the disk, and events that claim them.
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
    let path = checkpoint.join(name);
    let mut bytes = fs::read(&path).unwrap();
    let before = (bytes.len(), ModelInfo::hash(&bytes));
    bytes.resize(300 << 20, 0);
    let after = (bytes.len(), ModelInfo::hash(&bytes));
    File::options().write(true).open(path).unwrap().set_len(300 << 20).unwrap();
    let manifest = fs::read_to_string(checkpoint.join("MANIFEST")).unwrap();
    let entry = |(length, hash): &(usize, String)| format!("\"length\":{length},\"blake3\":\"{hash}\"");
    let json = manifest.lines().next().unwrap();
    assert!(json.contains(&entry(&before)), "{json}");
    let json = json.replace(&entry(&before), &entry(&after));
    let hash = ModelInfo::hash(json.as_bytes());
    fs::write(checkpoint.join("MANIFEST"), format!("{json}\n{hash}\n")).unwrap();
}

/// Runs a command with its peak of memory, and ends it where it hangs. The pages of libraries do not count: how many of
/// them are in memory is the system's choice.
pub(crate) fn measured(mut command: Command) -> Ended {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0) << 10);
        if begun.elapsed() > LONGEST {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = begun.elapsed();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    Ended { code: output.status.code(), text, took, peak }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
