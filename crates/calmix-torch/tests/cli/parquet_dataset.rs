//! A dataset in Parquet files: pyarrow writes the photos of a folder as Hugging Face's datasets would, and a run on them is the
//! run on the folder.

use std::fs;
use std::process::Command;

use super::parquet::python;
use crate::program::new_workspace;

/// Packs a folder with splits, its images in the order in which calmix reads the folder.
const PACK: &str = "
import json, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
source, out = Path(sys.argv[1]), Path(sys.argv[2]) / 'data'
out.mkdir(parents=True)
names = ['cat', 'dog']
features = {'image': {'_type': 'Image'}, 'label': {'names': names, '_type': 'ClassLabel'}}
metadata = {'huggingface': json.dumps({'info': {'features': features}})}
image = pa.struct([('bytes', pa.binary()), ('path', pa.string())])
splits = [('train', 'train', 'snappy'), ('val', 'validation', 'zstd'), ('test', 'test', 'none'), ('unlabelled', 'unsupervised', 'zstd')]
for folder, split, compression in splits:
    files = sorted((source / folder).rglob('*.png'))
    rows = [{'bytes': file.read_bytes(), 'path': file.name} for file in files]
    labels = [names.index(file.parent.name) if file.parent.name in names else -1 for file in files]
    table = pa.table({'image': pa.array(rows, type=image), 'label': pa.array(labels, type=pa.int64())})
    table = table.replace_schema_metadata(metadata)
    pq.write_table(table, out / f'{split}-00000-of-00001.parquet', compression=compression, row_group_size=4)
";

#[test]
fn parquet_trains_to_the_bits_of_its_folder() {
    let workspace = new_workspace().with_photos().with_validation_folder();
    workspace.images("own/unlabelled", 120, 12);
    let mut pack = Command::new(python());
    let output =
        pack.args(["-c", PACK]).arg(workspace.path("own")).arg(workspace.path("hub")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let prepared = workspace.run(&["prepare", "hub"]).with_code(0);
    prepared.reports(&["reading hub as parquet"]);
    prepared.prints(&["next: calmix train --data hub --prepared prepared/hub"]);
    for (data, run) in [("own", "a"), ("hub", "b")] {
        workspace.end(workspace.folder_training(data, &["--run-dir", run])).with_code(0);
    }
    for file in ["model.safetensors", "split.json", "events.jsonl"] {
        let read = |run: &str| fs::read(workspace.path(run).join(file)).unwrap();
        assert!(read("a") == read("b") && read("a").len() > 100, "{file}");
    }
    // Vectors in such files are still vectors, and a column that is not there is explained.
    let refused = workspace.run(&["prepare", "hub", "--label-column", "fine", "--to", "c"]).with_code(2);
    refused.reports(&["train-00000-of-00001.parquet", "there is no column `fine`; the columns are: label"]);
}
