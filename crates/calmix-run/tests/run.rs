//! The folder of a run: who may have it, what it refuses, and its file of events.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use calmix_io::confined_path::ConfinedPath;
use calmix_io::disk::{Disk, RealDisk};
use calmix_run::error::RunError;
use calmix_run::run::{Build, Mark, Paths, Run, RunEnvironment, RunFile};

/// G4: existing files belong to the user.
#[test]
fn non_empty_folder_is_refused_and_untouched() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("precious");
    fs::create_dir(&folder).unwrap();
    for name in ["thesis.tex", ".hidden", "recipe.toml", "events.jsonl", "checkpoints", "lock", ".a.tmp-1-0"]
    {
        let path = folder.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("chapter"), "words").unwrap();
        let error = Run::create(&folder).unwrap_err();
        assert!(matches!(&error, RunError::NotEmpty { found, .. } if found == name), "{error}");
        assert!(matches!(Run::open(&folder), Err(RunError::NoRun { .. })));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(path.join("chapter")).unwrap(), "words");
        fs::remove_dir_all(path).unwrap();
    }
    let file = temp.path().join("file");
    fs::write(&file, "words").unwrap();
    assert!(matches!(Run::create(&file), Err(RunError::File(_))));
    assert_eq!(fs::read_to_string(&file).unwrap(), "words");
    Run::create(temp.path().join("a new/one with ümlaut")).unwrap();
}

#[test]
fn a_run_has_one_process_at_a_time() {
    let temp = tempfile::tempdir().unwrap();
    let run = Run::create(temp.path()).unwrap();
    let begun = Instant::now();
    let error = Run::open(temp.path()).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(1));
    let RunError::Locked { holder, .. } = &error else { unreachable!("{error}") };
    assert!(holder.starts_with(&format!("process {} on ", std::process::id())), "{holder}");
    if let Ok(host) = fs::read_to_string("/proc/sys/kernel/hostname") {
        assert!(holder.ends_with(&format!(" on {}", host.trim())), "{holder}");
    }
    assert!(error.to_string().contains("calmix.lock"), "{error}");

    // Whatever may write holds the lock.
    let checkpoints = run.checkpoints(2);
    let journal = run.journal(&Mark::start()).unwrap();
    drop(run);
    assert!(Run::open(temp.path()).is_err());
    drop(checkpoints);
    assert!(Run::open(temp.path()).is_err());
    drop(journal);
    Run::open(temp.path()).unwrap();
    assert!(matches!(Run::create(temp.path()), Err(RunError::Exists { .. })));
}

/// The scores of an older model mean something else: they are refused, not misread.
#[test]
fn model_of_an_older_format_is_refused_by_its_number() {
    let temp = tempfile::tempdir().unwrap();
    let model = r#"{"format": 2, "blake3": "", "network": "wrn-10-1", "block": "torch", "classes": ["a", "b"], "size": 8,
        "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5],
        "held_out": {"confidence": [0.9], "right": [true], "lac": [0.0], "aps": [0.0]}}"#;
    fs::write(temp.path().join("model.json"), model).unwrap();
    let error = calmix_run::read::model_info(temp.path()).unwrap_err().to_string();
    assert!(error.contains("format 2, but this version of calmix reads format 5"), "{error}");
}

#[test]
fn a_run_of_another_format_is_refused_by_its_number() {
    let temp = tempfile::tempdir().unwrap();
    drop(Run::create(temp.path()).unwrap());
    fs::write(temp.path().join("run.json"), r#"{"format":2,"more":true}"#).unwrap();
    let error = Run::open(temp.path()).unwrap_err().to_string();
    assert!(
        error.contains(
            "another version of calmix wrote this run, in format 2, but this version reads format 3; use the version of \
             calmix that wrote it, or start a new run in another folder"
        ),
        "{error}"
    );
    fs::write(temp.path().join("run.json"), "{").unwrap();
    assert!(matches!(Run::open(temp.path()), Err(RunError::File(_))));
}

#[test]
fn files_are_written_and_written_over_as_a_whole() {
    let temp = tempfile::tempdir().unwrap();
    let run = Run::create(temp.path()).unwrap();
    let build = Build { commit: "90ab-dirty".to_owned(), features: vec!["raster".to_owned()] };
    let environment = RunEnvironment::current(build, "libtorch 2.9", "cpu", "90ab", "77f0");
    run.write(RunFile::Environment, &serde_json::to_vec(&environment).unwrap()).unwrap();
    for text in ["a long one", "short"] {
        for file in [RunFile::Recipe, RunFile::Split, RunFile::Predictions("test.bin")] {
            run.write(file, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(run.paths().file(file).unwrap()).unwrap(), text);
        }
    }
    assert!(run.write(RunFile::Predictions("../recipe.toml"), b"").is_err());
    let read = fs::read(Paths::new(temp.path()).file(RunFile::Environment).unwrap()).unwrap();
    assert_eq!(serde_json::from_slice::<RunEnvironment>(&read).unwrap(), environment);
    // A run of a version that recorded neither.
    let old =
        r#"{"calmix":"0.1.0","engine":"libtorch 2.9","device":"cpu","system":"linux","dataset":"90ab"}"#;
    let old: RunEnvironment = serde_json::from_str(old).unwrap();
    assert_eq!(old.commit, "unknown");
    assert!(old.features.is_empty());
}

/// What a process that was killed while it wrote a file left is removed, and nothing else.
#[test]
fn half_written_files_are_removed_on_opening() {
    let temp = tempfile::tempdir().unwrap();
    let run = Run::create(temp.path()).unwrap();
    let predictions = RunFile::Predictions("step-000000010-test-ema.safetensors");
    let scratch = RunFile::ALL.into_iter().chain([predictions]).map(|file| {
        let path = run.paths().file(file).unwrap();
        let name = format!(".{}.tmp-1-0", path.file_name().unwrap().display());
        path.with_file_name(name).to_path_buf()
    });
    let scratch: Vec<PathBuf> = scratch.collect();
    let foreign = [temp.path().join(".notes.toml.tmp-1-0"), temp.path().join(".recipe.toml.tmp-mine")];
    drop(run);
    for path in scratch.iter().chain(&foreign) {
        fs::write(path, "half").unwrap();
    }
    drop(Run::open(temp.path()).unwrap());
    for path in &scratch {
        assert!(!path.exists(), "{}", path.display());
    }
    for path in &foreign {
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn shared_file_is_linked_or_else_written() {
    let temp = tempfile::tempdir().unwrap();
    let run = Run::create(temp.path().join("run")).unwrap();
    let path = run.paths().file(RunFile::Backbone).unwrap();
    let missing = temp.path().join("missing");
    run.share(RunFile::Backbone, &missing, b"written").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "written");
    fs::remove_file(&path).unwrap();

    let weights = temp.path().join("weights");
    fs::write(&weights, "shared").unwrap();
    run.share(RunFile::Backbone, &weights, b"shared").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), fs::metadata(&weights).unwrap().ino());
    // A file that is there already is replaced, not written through the link.
    run.share(RunFile::Backbone, &missing, b"other").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    assert_eq!(fs::read_to_string(&weights).unwrap(), "shared");
}

#[test]
fn old_predictions_are_removed_up_to_a_step() {
    let temp = tempfile::tempdir().unwrap();
    let run = Run::create(temp.path()).unwrap();
    let folder = run.paths().predictions().to_path_buf();
    let others = ["notes", "step-5", "step-x-test.bin"];
    for name in others {
        fs::write(folder.join(name), "").unwrap();
    }
    let steps = || -> Vec<String> {
        let names =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut steps: Vec<_> = names.filter(|name| !others.contains(&&**name)).collect();
        steps.sort();
        steps
    };
    for step in [5, 10, 15, 20] {
        for split in ["test", "validation"] {
            run.write(RunFile::Predictions(&format!("step-{step:02}-{split}.bin")), b"").unwrap();
        }
    }
    // A run that was resumed at step 15 keeps what it is going to write again.
    run.remove_old_predictions(15, 2).unwrap();
    let left =
        [10, 15, 20].map(|step| [format!("step-{step}-test.bin"), format!("step-{step}-validation.bin")]);
    assert_eq!(steps(), left.concat());
    run.remove_old_predictions(20, 3).unwrap();
    assert_eq!(steps(), left.concat());
    run.remove_old_predictions(20, 1).unwrap();
    assert_eq!(steps(), left[2]);
    run.remove_old_predictions(20, 0).unwrap();
    assert_eq!(steps(), left[2], "the newest stay");
    assert!(others.iter().all(|name| folder.join(name).exists()));
}

#[test]
fn resumed_journal_is_byte_identical() {
    let temp = tempfile::tempdir().unwrap();
    let run = Run::create(temp.path()).unwrap();
    let path = run.paths().events();
    let mut journal = run.journal(&Mark::start()).unwrap();
    assert_eq!(journal.mark().unwrap(), Mark::start());
    journal.append(r#"{"step":1}"#).unwrap();
    let mark = journal.mark().unwrap();
    assert_eq!(mark.blake3, blake3::hash(b"{\"step\":1}\n").to_hex().as_str());
    journal.append(r#"{"step":2}"#).unwrap();
    assert!(journal.append("{\n}").is_err());
    drop(journal);
    // A kill in the middle of a line.
    fs::write(&path, "{\"step\":1}\n{\"step\":2}\n{\"st").unwrap();
    let mut journal = run.journal(&mark).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"step\":1}\n");
    journal.append(r#"{"step":2}"#).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"step\":1}\n{\"step\":2}\n");
    // Marks go on from what was there.
    assert_eq!(journal.mark().unwrap().blake3, blake3::hash(&fs::read(&path).unwrap()).to_hex().as_str());
}

#[test]
fn changed_journal_is_noticed_and_not_cut() {
    let temp = tempfile::tempdir().unwrap();
    let run = Run::create(temp.path()).unwrap();
    let path = run.paths().events();
    let mut journal = run.journal(&Mark::start()).unwrap();
    journal.append("one").unwrap();
    let mark = journal.mark().unwrap();
    drop(journal);
    for (changed, place) in [
        ("", "byte 0: the file ends here"),
        ("on", "byte 2: the file ends here"),
        ("onE\ntwo", "byte 4: the bytes before"),
    ] {
        fs::write(&path, changed).unwrap();
        let error = run.journal(&mark).unwrap_err().to_string();
        assert!(error.contains("events.jsonl") && error.contains(place), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), changed);
    }
}

/// Puts a link in the place of a folder of the run when a file is about to be made in it, after every check of the folder.
#[derive(Debug)]
struct SwappingDisk {
    folder: PathBuf,
    outside: PathBuf,
}

impl Disk for SwappingDisk {
    fn create(&self, path: &ConfinedPath) -> io::Result<File> {
        if path.starts_with(&self.folder) && !self.folder.is_symlink() {
            fs::rename(&self.folder, self.folder.with_extension("before"))?;
            std::os::unix::fs::symlink(&self.outside, &self.folder)?;
        }
        RealDisk.create(path)
    }
}

#[test]
fn folder_swapped_for_a_link_is_not_written_through() {
    let temp = tempfile::tempdir().unwrap();
    let outside = temp.path().join("outside");
    fs::create_dir(&outside).unwrap();
    for name in ["predictions", "checkpoints"] {
        let folder = temp.path().join(format!("run with {name}"));
        let disk = SwappingDisk { folder: folder.join(name), outside: outside.clone() };
        let run = Run::create_on(&folder, Arc::new(disk)).unwrap();
        run.write(RunFile::Recipe, b"seed = 1\n").unwrap();
        if name == "predictions" {
            run.write(RunFile::Predictions("step-1.safetensors"), b"x").unwrap_err();
        } else {
            run.checkpoints(2).begin(1).unwrap().parts().write("part", b"x").unwrap_err();
        }
        assert!(folder.join(name).is_symlink(), "{name}: nothing was swapped");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{name}");
    }
}
