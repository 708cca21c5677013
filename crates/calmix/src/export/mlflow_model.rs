//! The files that make an exported folder an MLflow model: its flavour, signature, requirements and input example.
//!
//! MLflow loads it by the module `calmix.mlflow` of the Python package, which runs `model.onnx`: nothing is unpickled.

use std::path::PathBuf;

use anyhow::Result;
use base64::prelude::{BASE64_STANDARD, Engine};
use calmix_run::model_info::ModelInfo;
use png::{BitDepth, ColorType, Encoder};
use serde_json::{Value, json};

use super::example::ExampleInput;
use super::export_folder::{Files, MODEL as GRAPH};
use crate::process::version::VERSION;

/// The name of the file that describes the model.
pub(crate) const MODEL: &str = "MLmodel";

/// The version of MLflow that the tests run.
const MLFLOW: &str = "3.17.2";

/// Packages in the versions that the tests run, and in the last ones for Python 3.10.
const PINNED: &[(&str, &str, &str)] =
    &[("numpy", "2.4.6", "2.2.6"), ("onnxruntime", "1.31.1", "1.23.2"), ("pandas", "3.1.1", "2.3.3")];

const REQUIREMENTS: &str = "requirements.txt";
const PYTHON_ENVIRONMENT: &str = "python_env.yaml";
const CONDA_ENVIRONMENT: &str = "conda.yaml";
const EXAMPLE: &str = "input_example.json";
const SERVING_EXAMPLE: &str = "serving_input_example.json";

/// The column of encoded images in the input.
const IMAGE: &str = "image";

/// Returns the files beside the graph of a model. `input` is its example.
pub(crate) fn files(info: &ModelInfo, input: &ExampleInput) -> Result<Files> {
    let requirements = requirements();
    let (kind, example, serving) = example(input)?;
    let file = |name: &str, text: String| (PathBuf::from(name), text.into_bytes());
    Ok(vec![
        file(MODEL, format!("{:#}\n", description(info, input, &kind))),
        file(REQUIREMENTS, requirements.join("\n") + "\n"),
        file(PYTHON_ENVIRONMENT, format!("build_dependencies:\n- pip\ndependencies:\n- -r {REQUIREMENTS}\n")),
        file(CONDA_ENVIRONMENT, format!("{:#}\n", conda_environment(&requirements))),
        file(EXAMPLE, format!("{example}\n")),
        file(SERVING_EXAMPLE, format!("{serving}\n")),
    ])
}

/// Returns `MLmodel`, as JSON, which YAML includes. The server that it is logged to adds its own names and times.
fn description(info: &ModelInfo, input: &ExampleInput, kind: &Value) -> Value {
    let mut example = json!({ "artifact_path": EXAMPLE, "serving_input_path": SERVING_EXAMPLE });
    if let (Some(example), Some(kind)) = (example.as_object_mut(), kind.as_object()) {
        example.extend(kind.clone());
    }
    json!({
        "flavors": {
            "calmix": { "calmix_version": VERSION, "model": GRAPH },
            "python_function": {
                "loader_module": "calmix.mlflow",
                "env": { "conda": CONDA_ENVIRONMENT, "virtualenv": PYTHON_ENVIRONMENT },
            },
        },
        "mlflow_version": MLFLOW,
        "saved_input_example_info": example,
        "signature": {
            "inputs": in_ascii(&input_schema(input)),
            "outputs": in_ascii(&output_schema(&info.classes)),
            "params": null,
        },
    })
}

/// Returns the schema of the input: vectors as a tensor, images as a column of bytes.
fn input_schema(input: &ExampleInput) -> Value {
    match input {
        ExampleInput::Vectors(_, width) => {
            json!([{ "type": "tensor", "tensor-spec": { "dtype": "float32", "shape": [-1, width] } }])
        }
        ExampleInput::Images(..) => json!([{ "type": "binary", "name": IMAGE, "required": true }]),
    }
}

/// Returns the schema of the columns of an answer. `set` and `abstain` are empty without held-out labels.
fn output_schema(classes: &[String]) -> Value {
    let mut columns = vec![
        json!({ "type": "string", "name": "label", "required": true }),
        json!({ "type": "float", "name": "confidence", "required": true }),
        json!({ "type": "array", "items": { "type": "string" }, "name": "set", "required": false }),
        json!({ "type": "boolean", "name": "abstain", "required": false }),
    ];
    columns.extend(
        classes
            .iter()
            .map(|class| json!({ "type": "float", "name": format!("p({class})"), "required": true })),
    );
    Value::Array(columns)
}

/// Formats JSON in ASCII: the parsers of YAML differ in what else a quoted string may have.
fn in_ascii(value: &Value) -> String {
    let mut text = String::new();
    for letter in value.to_string().chars() {
        if letter.is_ascii_graphic() || letter == ' ' {
            text.push(letter);
        } else {
            text.extend(letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

fn requirements() -> Vec<String> {
    let mut lines = vec![format!("calmix=={VERSION}"), format!("mlflow=={MLFLOW}")];
    for (name, newest, older) in PINNED {
        lines.push(format!("{name}=={newest}; python_version >= \"3.11\""));
        lines.push(format!("{name}=={older}; python_version < \"3.11\""));
    }
    lines
}

fn conda_environment(requirements: &[String]) -> Value {
    json!({
        "name": "mlflow-env",
        "channels": ["conda-forge"],
        "dependencies": ["python>=3.11", "pip", { "pip": requirements }],
    })
}

/// Returns the kind of the example in MLflow's words, the example, and the body of a request that sends it to a server.
fn example(input: &ExampleInput) -> Result<(Value, Value, Value)> {
    Ok(match input {
        ExampleInput::Vectors(numbers, width) => {
            let rows: Vec<&[f32]> = numbers.chunks_exact((*width).max(1)).collect();
            (json!({ "type": "ndarray" }), json!(rows), json!({ "inputs": rows }))
        }
        ExampleInput::Images(pixels, side) => {
            let images: Result<Vec<Value>> = pixels
                .chunks_exact(side * side * 3)
                .map(|pixels| Ok(json!([BASE64_STANDARD.encode(png_of(pixels, *side)?)])))
                .collect();
            let table = json!({ "columns": [IMAGE], "data": images? });
            let request = json!({ "dataframe_split": table });
            (json!({ "type": "dataframe", "pandas_orient": "split" }), table, request)
        }
    })
}

/// Encodes a square image.
fn png_of(pixels: &[u8], side: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let side = u32::try_from(side)?;
    let mut encoder = Encoder::new(&mut bytes, side, side);
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_ascii_is_the_same_json() {
        let value = json!({ "é\u{7f}\u{2028}😀\n\\": ["p(\u{feff})", 1.5] });
        let text = in_ascii(&value);
        assert!(text.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
