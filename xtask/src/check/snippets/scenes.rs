//! The documents whose blocks run, and the fixtures of each. To add a document, add an entry; `fixtures.py` has a function for
//! each fixture.

/// Blocks that run one after the other in one folder: those of a document from a heading to that of the next scene.
pub(super) struct Scene {
    pub(super) document: &'static str,
    /// The heading at its start; empty for the start of the document.
    pub(super) heading: &'static str,
    /// The files, variables and names that the text refers to, created in this order.
    pub(super) fixtures: &'static [&'static str],
}

const fn scene(document: &'static str, heading: &'static str, fixtures: &'static [&'static str]) -> Scene {
    Scene { document, heading, fixtures }
}

pub(super) static SCENES: &[Scene] = &[
    scene("README.md", "", &["short", "small_images", "fish", "backbone", "added_backbone", "arrays"]),
    scene("bindings/python/README.md", "", &["arrays"]),
    scene(
        "bindings/python/python/calmix/model.py",
        "",
        &["short", "photos", "exported", "photo_files", "names_of_model"],
    ),
    scene("docs/get-started/install.md", "", &[]),
    scene(
        "docs/get-started/photos.md",
        "",
        &["short", "small_images", "photos", "backbone", "added_backbone"],
    ),
    scene("docs/get-started/photos.md", "A published dataset", &["short", "fashion_mnist"]),
    scene("docs/get-started/python.md", "", &[]),
    scene("docs/get-started/vectors.md", "", &["vectors"]),
    scene("docs/guides/embeddings.md", "", &["vectors"]),
    scene("docs/guides/embeddings.md", "Making vectors", &["photos", "texts", "stand_ins", "clip_folder"]),
    scene("docs/guides/embeddings.md", "The model in ten lines of NumPy", &["vectors", "vector_run"]),
    scene("docs/guides/engines.md", "", &["short", "photos", "run_a", "predicted_shards"]),
    scene("docs/guides/experiments.md", "", &["short", "fashion_mnist"]),
    scene("docs/guides/experiments.md", "Many runs from one file", &["short", "fashion_mnist"]),
    scene("docs/guides/experiments.md", "MLflow", &["short", "fashion_mnist"]),
    scene(
        "docs/guides/export.md",
        "",
        &[
            "short",
            "small_images",
            "fish",
            "backbone",
            "added_backbone",
            "head_run",
            "photo_files",
            "resize_names",
        ],
    ),
    scene("docs/guides/folders.md", "", &["nested_photos"]),
    scene("docs/guides/folders.md", "A list of labels", &["listed_photos"]),
    scene("docs/guides/folders.md", "Parquet files of the Hub", &["short", "mnist_of_hub"]),
    scene("docs/guides/frozen-features.md", "", &["short", "small_images", "photos", "cifar10", "backbone"]),
    scene("docs/guides/guard.md", "", &["probabilities"]),
    scene("docs/guides/labelling.md", "", &["backbone", "added_backbone"]),
    scene("docs/guides/launching.md", "", &["short", "tiny_network", "cifar100"]),
    scene("docs/guides/monitor.md", "", &["predicted_days"]),
    scene("docs/guides/object-storage.md", "", &["short", "object_store"]),
    scene("docs/guides/object-storage.md", "Training by block", &["classified_files"]),
    scene("docs/guides/pretrained.md", "", &["short", "photos", "backbone", "resnet50_pickle"]),
    scene("docs/guides/python.md", "", &["arrays"]),
    scene("docs/reference/report.md", "", &["short", "photos", "run_a", "run_b", "sweep_table_1"]),
    scene("docs/guides/rounds.md", "", &["short", "more_steps", "shards", "duckdb_program"]),
    scene(
        "docs/guides/serving.md",
        "",
        &["short", "small_images", "photos", "backbone", "added_backbone", "head_run", "photo_files"],
    ),
    scene(
        "docs/guides/use-the-model.md",
        "",
        &["short", "photos", "more_photos", "run_a", "paths", "vectors", "vector_run", "more_vectors"],
    ),
    scene("docs/guides/use-the-model.md", "Vectors", &["vectors", "vector_run_v"]),
    scene(
        "docs/guides/use-the-model.md",
        "Query a Parquet folder",
        &["short", "photos", "run_a", "predicted"],
    ),
    scene("docs/guides/use-the-model.md", "Compare with annotators' votes", &["short", "cifar_votes"]),
    scene(
        "docs/guides/use-the-model.md",
        "In PyTorch, without calmix",
        &["short", "photos", "run_a", "photo_files"],
    ),
];
