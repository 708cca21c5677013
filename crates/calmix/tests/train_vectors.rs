//! `calmix train --features` and `calmix resume` on vectors, as a user runs them: without libtorch.

use crate::planted;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::planted::{calmix, class, text, write_labels, write_npy};

/// Writes 300 vectors, and the labels of the first 60.
fn made(folder: &Path) {
    write_npy(&folder.join("vectors.npy"), 0..300, false);
    write_labels(&folder.join("labels.csv"), 0, 60);
}

#[test]
fn vectors_train_and_resume_without_libtorch() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--threads", "2"];
    let quick = ["--set", "network.folds=4"];
    let output = calmix(temp.path(), &[&train[..], &quick[..]].concat());
    let said = text(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for expected in [
        "recipe    vectors: ",
        "60 labelled, 300 unlabelled, 0 validation, 0 test\n",
        "unlabelled: 240 others and the 60 labelled, without their labels\n",
        "network   a linear head on vectors of 16 numbers",
        "training  at once, without steps; cpu, 2 threads",
        "each label is evaluated by a head trained without it",
        "\nmodel written to runs/vectors-1; `calmix inspect runs/vectors-1` shows more\n",
        "next: calmix report runs/vectors-1",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let screen = String::from_utf8_lossy(&output.stdout);
    assert!(screen.lines().count() <= 15 && screen.contains(" is the model: "), "{screen}");
    let run = temp.path().join("runs/vectors-1");
    for file in ["model.safetensors", "model.json", "projection.safetensors", "result.json", "split.json"] {
        assert!(run.join(file).is_file(), "{file}");
    }
    let info: Value = serde_json::from_slice(&fs::read(run.join("model.json")).unwrap()).unwrap();
    for key in ["network", "block", "stride", "norm_eps", "size", "mean", "std", "resize", "filter"] {
        assert!(info.get(key).is_none(), "a head on vectors has no {key}");
    }
    let environment = fs::read_to_string(run.join("environment.json")).unwrap();
    assert!(environment.contains("\"no libtorch\""), "{environment}");

    let model = fs::read(run.join("model.safetensors")).unwrap();
    fs::remove_file(run.join("result.json")).unwrap();
    let output = calmix(temp.path(), &["resume", "runs/vectors-1"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(model == fs::read(run.join("model.safetensors")).unwrap());
    let again = calmix(temp.path(), &["resume", "runs/vectors-1"]);
    assert!(text(&again).contains("this run is already finished"), "{}", text(&again));
    let inspected = text(&calmix(temp.path(), &["inspect", "runs/vectors-1"]));
    for expected in [
        "network   a head on vectors, without a backbone\n",
        "4 heads, same labels",
        "brackets: 95% confidence intervals",
        "`calmix predict` by default, based on 60 held-out labels:",
    ] {
        assert!(inspected.contains(expected), "{expected}: {inspected}");
    }
    let runs = text(&calmix(temp.path(), &["inspect", "runs"]));
    assert!(runs.contains("lr+em") && !runs.contains("softmatch"), "{runs}");
}

#[test]
fn report_on_vectors_says_nothing_of_images_and_steps() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    let output = calmix(temp.path(), &[&train[..], &["--set", "network.folds=4"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let output = calmix(temp.path(), &["report", "run", "-o", "report/page.html"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let page = fs::read_to_string(temp.path().join("report/page.html")).unwrap();
    // The style of the page has classes that are called so.
    let (_, body) = page.split_once("</style>").unwrap();
    let body = body.to_lowercase();
    for word in ["image", "step", "softmatch"] {
        let found =
            body.match_indices(word).map(|(at, _)| body[..at].chars().rev().take(60).collect::<String>());
        let found: Vec<String> = found.map(|before| before.chars().rev().collect()).collect();
        assert!(found.is_empty(), "{word} after {found:?}");
    }
    assert!(body.contains("evaluated on 60 labels, each predicted by a head trained without it."), "{body}");
    assert!(body.contains("lr+em; metrics of "), "{body}");
    // Nothing is held out: each label is predicted by a head of a fold, which is said, and counted once.
    assert!(body.contains("60 labelled, 60 of these also predicted out of fold, "), "{body}");
    assert!(body.contains(" of 60 labels predicted out of fold are among them"), "{body}");
    assert!(!body.contains("held out") && !body.contains("held-out"), "{body}");
    assert!(body.contains("<code>calmix predict --precision 0.95</code>") && !body.contains('`'), "{body}");
}

#[test]
fn settings_of_steps_are_named_as_unused() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--set", "network.folds=4"];
    let settings =
        ["train.steps=100", "optimiser.lr=0.5", "method.base=fixmatch", "method.fixmatch.threshold=0.9"];
    let more =
        ["train.batch=8", "train.ratio=2", "ema.decay=0.5", "network.labels_alone=false", "log.every=7"];
    let settings: Vec<&str> = settings.into_iter().chain(more).collect();
    let arguments: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let output = calmix(temp.path(), &[&train[..], &arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let why =
        "has no effect: there is one vector per sample, and its heads are trained at once, without steps";
    for key in settings.iter().map(|setting| setting.split_once('=').unwrap().0) {
        let printed = text(&output);
        let warned = printed.lines().any(|line| line.contains(key) && line.contains(why));
        // `fixmatch` is the default, which looks like a value that was not set.
        assert!(warned || key == "method.base", "{key}: {printed}");
    }

    // Labels alone, which has an effect.
    let output = calmix(temp.path(), &[&train[..], &["--set", "method.base=supervised"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        !text(&output).contains("has no effect") && text(&output).contains(" 0 unlabelled"),
        "{}",
        text(&output)
    );
}

#[test]
fn resume_finds_vectors_that_have_moved() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--run-dir", "run"];
    let output = calmix(temp.path(), &[&train[..], &["--set", "network.folds=4"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let model = fs::read(temp.path().join("run/head.safetensors")).unwrap();
    // As a kill leaves it.
    fs::remove_file(temp.path().join("run/result.json")).unwrap();
    fs::create_dir(temp.path().join("moved")).unwrap();
    fs::rename(temp.path().join("vectors.npy"), temp.path().join("moved/renamed.npy")).unwrap();
    fs::remove_file(temp.path().join("labels.csv")).unwrap();
    write_npy(&temp.path().join("other.npy"), 1..301, false);

    let refusals = [
        (&["resume", "run"][..], "the vectors of this run have moved or were deleted"),
        (&["resume", "run"], "calmix resume run --data NEW_PLACE"),
        (&["resume", "run", "--data", "nowhere.npy"], "nowhere.npy: does not exist"),
        (&["resume", "run", "--data", "other.npy"], "other.npy"),
    ];
    for (arguments, expected) in refusals {
        let output = calmix(temp.path(), arguments);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
        assert!(!temp.path().join("run/result.json").exists(), "{arguments:?}");
    }
    let output = calmix(temp.path(), &["resume", "run", "--data", "moved/renamed.npy"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(model == fs::read(temp.path().join("run/head.safetensors")).unwrap());
}

#[test]
fn unusable_arguments_for_vectors_are_refused() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    fs::write(temp.path().join("one.csv"), "id,label\n0,ant\n3,ant\n").unwrap();
    let refusals = [
        (&["train", "vectors"][..], "trains on vectors that you already have"),
        (&["train", "--features", "no.npy"], "no.npy: does not exist"),
        (&["train", "--features", "vector.npy"], "did you mean vectors.npy?"),
        (&["train", "--features", "vectors.npy", "--labels", "label.csv"], "did you mean labels.csv?"),
        (&["train", "--data", "vectors.npy"], "vectors.npy: is a file, and --data takes a folder"),
        (&["train", "--data", "vectors.npy"], "calmix train --features vectors.npy"),
        (&["train", "--features", "vectors.npy", "--data", "."], "cannot be used with"),
        (&["train", "--labels", "labels.csv"], "--features"),
        (&["train", "--features", "vectors.npy", "--labels", "one.csv"], "there is only one class, `ant`"),
        (
            &["train", "--features", "vectors.npy", "--labels", "labels.csv", "--device", "cuda"],
            "trained on the CPU",
        ),
    ];
    for (arguments, expected) in refusals {
        let output = calmix(temp.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(expected), "{arguments:?}: {}", text(&output));
    }
    assert!(!temp.path().join("runs").exists(), "runs that did not start leave nothing");
}

#[test]
fn columns_that_may_hold_labels_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let lines: Vec<String> =
        (0..40).map(|row| format!("{row},{row}.5,1,{}\n", ["a", "b"][row % 2])).collect();
    fs::write(temp.path().join("vectors.csv"), format!("id,x0,x1,section\n{}", lines.concat())).unwrap();
    let output = calmix(temp.path(), &["train", "--features", "vectors.csv"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    for expected in
        ["no vector has a label", "`--label-column NAME` names the column of the labels, one of section"]
    {
        assert!(text(&output).contains(expected), "{}", text(&output));
    }
    let with_column = ["train", "--features", "vectors.csv", "--label-column", "section", "--quiet"];
    let output = calmix(temp.path(), &with_column);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    made(temp.path());
    let output = calmix(temp.path(), &["train", "--features", "vectors.npy"]);
    assert!(text(&output).contains("`--labels FILE` names a CSV or an .npy"), "{}", text(&output));
}

#[test]
fn hint_after_a_stale_table_keeps_the_options() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let output = calmix(temp.path(), &["prepare", "vectors.npy", "--labels", "labels.csv", "--to", "table"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    write_labels(&temp.path().join("labels.csv"), 0, 90);
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--prepared", "table"];
    let output = calmix(temp.path(), &train);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let printed = text(&output).replace('\n', " ");
    assert!(
        printed.contains("/vectors.npy --labels ") && printed.contains("/labels.csv --to NEW_FOLDER"),
        "{printed}"
    );
}

#[cfg(unix)]
#[test]
fn pipe_in_place_of_vectors_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let pipe = temp.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for arguments in [
        &["train", "--features", "pipe", "--labels", "labels.csv"][..],
        &["train", "--features", "vectors.npy", "--labels", "pipe"],
        &["prepare", "pipe"],
    ] {
        let output = calmix(temp.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(
            text(&output).contains("pipe: a pipe, which cannot be read more than once"),
            "{}",
            text(&output)
        );
        assert!(text(&output).contains("write it to a file first"), "{}", text(&output));
    }
}

#[test]
fn limit_on_unlabelled_vectors_is_announced() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let train = ["train", "--features", "vectors.npy", "--labels", "labels.csv", "--set", "network.folds=2"];
    let limited = [&train[..], &["--set", "labels.unlabelled_count=100"]].concat();
    let output = calmix(temp.path(), &limited);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let printed = text(&output);
    for expected in [
        "60 labelled, 100 unlabelled, 0 validation, 0 test\n",
        "unlabelled: 100 of 300 vectors (240 others and the 60 labelled, without their labels); \
         `--set labels.unlabelled_count=0` uses all\n",
    ] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
}

#[test]
fn vectors_that_are_too_long_end_the_run() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let path = temp.path().join("vectors.npy");
    let mut bytes = fs::read(&path).unwrap();
    let row = bytes.len() - 300 * 4 * planted::WIDTH;
    for (number, place) in [f32::MAX, f32::MIN].iter().zip([row, row + 4]) {
        bytes[place..place + 4].copy_from_slice(&number.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    let output = calmix(temp.path(), &["train", "--features", "vectors.npy", "--labels", "labels.csv"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(
        text(&output).contains("vectors.npy, row 0: the length of its vector is 4.8e38"),
        "{}",
        text(&output)
    );
    assert!(!temp.path().join("runs/vectors-1/model.json").exists());
}

/// What trains can also be reported: the limit of names is that of the readers of a run.
#[test]
fn longest_class_names_train_and_report() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    let labels = |length: usize| {
        // Quotes are escaped in the files of a run.
        let rest = "\"\"".repeat(length - 1);
        let line = |row: usize| format!("{row},\"{}{rest}\"\n", ["a", "b", "c"][row % 3]);
        (0..60).map(line).collect::<Vec<_>>().concat()
    };
    let train = ["train", "--features", "vectors.npy", "--labels", "long.csv", "--run-dir", "run"];
    let train = [&train[..], &["--set", "network.folds=2"]].concat();
    fs::write(temp.path().join("long.csv"), format!("id,label\n{}", labels(1025))).unwrap();
    let output = calmix(temp.path(), &train);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("long.csv, line 2: the class name"), "{}", text(&output));
    fs::write(temp.path().join("long.csv"), format!("id,label\n{}", labels(1024))).unwrap();
    for arguments in
        [&train[..], &["report", "run"], &["evaluate", "run"], &["predict", "run", "vectors.npy"]]
    {
        let output = calmix(temp.path(), arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
}

/// Messages end up in logs.
#[test]
fn secrets_of_urls_are_not_printed() {
    let temp = tempfile::tempdir().unwrap();
    for url in [
        "https://me:hunter2@host.invalid/a.tar",
        "https://host.invalid/a.tar?X-Amz-Signature=hunter2",
        "HTTPS://me:hunter2@host.invalid/a.tar?X-Amz-Signature=hunter2",
        "ftp://me:hunter2@host.invalid/a.tar",
    ] {
        for arguments in [
            &["prepare", url][..],
            &["train", "--features", url],
            &["prepare", ".", "--to", url],
            &["inspect", url],
        ] {
            let output = calmix(temp.path(), arguments);
            assert_ne!(output.status.code(), Some(0), "{}", text(&output));
            let printed = text(&output);
            assert!(!printed.contains("hunter2") && !printed.contains("me:"), "{arguments:?}: {printed}");
        }
    }
    assert!(!temp.path().join("prepared").exists());
}

/// The crate `parquet` panics on some damaged files; the user sees one sentence.
#[test]
fn damaged_parquet_is_refused_in_one_sentence() {
    let temp = tempfile::tempdir().unwrap();
    let golden =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix-formats/tests/golden/vectors/zstd.parquet");
    let mut bytes = fs::read(golden).unwrap();
    // The encoding of a page: a dictionary that the column does not have.
    bytes[240] ^= 16;
    fs::write(temp.path().join("vectors.parquet"), bytes).unwrap();
    let output = calmix(temp.path(), &["prepare", "vectors.parquet"]);
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{printed}");
    assert!(printed.contains("the file is damaged") && !printed.contains("panicked"), "{printed}");
}

/// The numbers and labels that `vectors.py` wrote in every format: one run, whatever wrote them.
#[test]
fn every_format_gives_the_same_run() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../calmix-formats/tests/golden/vectors");
    let labels = golden.join("labels.npy");
    let with_labels = ["f2.npy", "f4.npy", "f8.npy"];
    let others = [
        "stored.npz",
        "deflated.npz",
        "f16.safetensors",
        "bf16.safetensors",
        "f32.safetensors",
        "f64.safetensors",
        "snappy.parquet",
        "zstd.parquet",
        "nested.parquet",
        "datasets.parquet",
        "parts",
        "clip",
        "lightly.csv",
    ];
    let temp = tempfile::tempdir().unwrap();
    let mut first: Option<(Vec<u8>, Value)> = None;
    for name in with_labels.into_iter().chain(others) {
        let vectors = golden.join(name);
        let mut train = vec!["train", "--features", vectors.to_str().unwrap(), "--run-dir", name];
        train.extend(["--threads", "1", "--set", "network.folds=2", "--set", "evaluate.bootstrap=0"]);
        if with_labels.contains(&name) {
            train.extend(["--labels", labels.to_str().unwrap()]);
        }
        let output = calmix(temp.path(), &train);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output));
        let run = temp.path().join(name);
        let head = fs::read(run.join("head.safetensors")).unwrap();
        let result: Value = serde_json::from_slice(&fs::read(run.join("result.json")).unwrap()).unwrap();
        match &first {
            None => first = Some((head, result)),
            Some((expected, metrics)) => {
                assert!(head == *expected, "{name}: head.safetensors differs");
                assert_eq!(result, *metrics, "{name}");
            }
        }
    }
}

/// Labels of the first 60 rows, in 20 groups of three rows of three classes, and of every later row the group of one of them.
fn write_groups(path: &Path) {
    let mut text = "id,label,group\n".to_owned();
    for row in 0..300 {
        let label = if row < 60 { class(row) } else { "" };
        text.extend([row.to_string().as_str(), ",", label, ",patient ", &(row % 60 / 3).to_string(), "\n"]);
    }
    fs::write(path, text).unwrap();
}

#[test]
fn group_column_decides_the_folds() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    write_groups(&temp.path().join("groups.csv"));
    let prepared =
        text(&calmix(temp.path(), &["prepare", "vectors.npy", "--labels", "groups.csv", "--to", "table"]));
    assert!(prepared.contains("groups: train 60 labels in 20 groups\n"), "{prepared}");
    let train = |labels: &'static str, run: &'static str| {
        let train = ["train", "--features", "vectors.npy", "--labels", labels, "--run-dir", run];
        let output = calmix(temp.path(), &[&train[..], &["--set", "network.folds=4"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        let info = fs::read(temp.path().join(run).join("model.json")).unwrap();
        (text(&output), serde_json::from_slice::<Value>(&info).unwrap())
    };
    let (printed, info) = train("groups.csv", "grouped");
    assert!(printed.contains("60 labelled in 20 groups, 300 unlabelled"), "{printed}");
    let groups: Vec<u64> =
        info["held_out"]["group"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    let different: std::collections::BTreeSet<u64> = groups.iter().copied().collect();
    assert_eq!((groups.len(), different.len()), (60, 20));
    let (printed, info) = train("labels.csv", "alone");
    assert!(printed.contains("60 labelled, 300 unlabelled"), "{printed}");
    assert!(info["held_out"].get("group").is_none(), "{info}");
}

#[test]
fn missing_group_is_refused_with_its_line() {
    let temp = tempfile::tempdir().unwrap();
    made(temp.path());
    fs::write(temp.path().join("groups.csv"), "id,label,group\n0,ant,a\n1,bee,nan\n").unwrap();
    let output = calmix(temp.path(), &["train", "--features", "vectors.npy", "--labels", "groups.csv"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    let printed = text(&output).replace('\n', " ");
    assert!(printed.contains("groups.csv, line 3: the group is \"nan\""), "{printed}");
}
