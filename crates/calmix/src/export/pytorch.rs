//! Files for PyTorch users beside an exported graph: `config.json` for timm, or `model.py`, plain torch. Both compute the
//! logits before calibration.

use std::path::PathBuf;

use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::layout::Layout;
use calmix_recipe::network::wide_resnet::EPSILON;
use calmix_recipe::network::{Architecture, BottleneckStride, FirstBlock};
use calmix_run::model_info::ModelInfo;
use calmix_run::pretrained::config::CONFIG;
use serde_json::json;

use super::model_parts::ModelParts;

const WIDE_RESNET: &str = include_str!("pytorch/wide_resnet.py");
const HEAD: &str = include_str!("pytorch/head.py");
/// The name of the Python module.
pub(crate) const MODULE: &str = "model.py";

/// The files for PyTorch, or the reason why there are none.
pub(crate) type PytorchFiles = Result<Vec<(PathBuf, Vec<u8>)>, String>;

/// Creates the files of a model. `weights` are the files of the run that the module reads, by name.
pub(crate) fn files(info: &ModelInfo, parts: &ModelParts, weights: Vec<(PathBuf, Vec<u8>)>) -> PytorchFiles {
    let classes = info.classes.len();
    let mut files = weights;
    let (name, text) = match parts {
        ModelParts::Network(spec, _) => match spec.network {
            Architecture::WideResNet(_) => (MODULE, wide_resnet(spec, classes)),
            Architecture::ResNet50 | Architecture::EfficientNetLite(_) => {
                computes_as_timm(spec)?;
                (CONFIG, timm_config(info, spec))
            }
        },
        ModelParts::HeadOnBackbone(spec, ..) => {
            if let Architecture::WideResNet(_) = spec.network {
                return Err("a head on a Wide ResNet has no module".to_owned());
            }
            computes_as_timm(spec)?;
            (MODULE, head_on_timm(spec))
        }
        ModelParts::HeadOnEncoder(..) => {
            return Err("the backbone is an ONNX encoder, which PyTorch does not load".to_owned());
        }
        ModelParts::HeadOnVectors(head) => (MODULE, head_on_vectors(head.projection().width())),
    };
    files.push((PathBuf::from(name), text.into_bytes()));
    Ok(files)
}

/// Refuses a network that timm would load but compute differently.
fn computes_as_timm(spec: &ModelSpec) -> Result<(), String> {
    if spec.network.has_bottlenecks() && spec.stride != BottleneckStride::Middle {
        return Err("timm has the stride of ResNet-50 in another convolution".to_owned());
    }
    let default_epsilon =
        Layout::of_network(spec.network, spec.block, 1).folds.first().map(|layer| layer.norm.epsilon);
    match spec.norm_eps {
        Some(epsilon) if Some(epsilon) != default_epsilon => {
            Err(format!("timm has another epsilon of batch normalisation than {epsilon}"))
        }
        _ => Ok(()),
    }
}

/// Creates `config.json` for `timm.create_model("local-dir:FOLDER", pretrained=True)`.
fn timm_config(info: &ModelInfo, spec: &ModelSpec) -> String {
    let classes = info.classes.len();
    let layout = Layout::of_network(spec.network, spec.block, classes);
    let first = layout.parameters.first().map(|parameter| parameter.name.trim_end_matches(".weight"));
    let config = json!({
        "architecture": spec.network,
        "num_classes": classes,
        "num_features": layout.feature_width(),
        "label_names": info.classes,
        "pretrained_cfg": {
            "input_size": [3, spec.size, spec.size],
            "crop_pct": f64::from(spec.size) / f64::from(info.resize.max(1)),
            "interpolation": info.filter,
            "mean": spec.mean,
            "std": spec.std,
            "num_classes": classes,
            "first_conv": first,
            "classifier": layout.classifier,
        },
    });
    format!("{config:#}\n")
}

/// Returns the beginning of a module.
fn beginning(input: &str, constants: &str, imports: &str) -> String {
    format!(
        "\"\"\"The model of this folder in PyTorch: `Model(folder)(x)` gives its logits before calibration.\n\n\
         `x` is {input}, as for model.onnx.\n\"\"\"\n\n\
         from pathlib import Path\n\n{imports}import torch\nfrom safetensors.torch import load_file\nfrom torch import nn\n\
         from torch.nn import functional as F\n\n{constants}"
    )
}

fn of_images(spec: &ModelSpec) -> (String, String) {
    let [mean, std] = [spec.mean, spec.std].map(|numbers| format!("{numbers:?}"));
    (format!("uint8, N × {0} × {0} × 3", spec.size), format!("MEAN, STD = {mean}, {std}\n"))
}

/// Returns the module that normalises images and applies `body` to them.
fn model_of_images(fields: &str, body: &str) -> String {
    format!(
        "\n\nclass Model(nn.Module):\n    def __init__(self, folder=\".\"):\n        super().__init__()\n        folder = Path(folder)\n\
         {fields}        self.register_buffer(\"mean\", torch.tensor(MEAN))\n        self.register_buffer(\"std\", torch.tensor(STD))\n        \
         self.eval()\n\n    def forward(self, x):\n        x = ((x / 255 - self.mean) / self.std).permute(0, 3, 1, 2)\n        return {body}\n"
    )
}

fn wide_resnet(spec: &ModelSpec, classes: usize) -> String {
    let Architecture::WideResNet(shape) = spec.network else { return String::new() };
    let first = match spec.block {
        FirstBlock::Google => "main",
        FirstBlock::Torch => "raw",
    };
    let epsilon = spec.norm_eps.unwrap_or(EPSILON);
    let (input, normalisation) = of_images(spec);
    let constants = format!(
        "{normalisation}STAGES, BLOCKS, WIDTH, CLASSES, EPSILON = {}, {}, {}, {classes}, {epsilon:?}\n\
         FIRST_BLOCK = \"{first}\"  # what the first block of the later stages reads\n\n\n",
        shape.stages(),
        shape.blocks_per_stage(),
        shape.width()
    );
    let fields = "        self.network = WideResNet()\n        \
                  self.network.load_state_dict(load_file(folder / \"model.safetensors\"))\n";
    beginning(&input, &constants, "") + WIDE_RESNET + &model_of_images(fields, "self.network(x)")
}

fn head_on_timm(spec: &ModelSpec) -> String {
    let (input, normalisation) = of_images(spec);
    let classifier = Layout::of_network(spec.network, spec.block, 1).classifier;
    let fields = format!(
        "        self.backbone = timm.create_model(\"{}\", num_classes=0)\n        \
         weights = load_file(folder / \"backbone.safetensors\")\n        \
         weights = {{name: weights[name] for name in weights if not name.startswith(\"{classifier}.\")}}\n        \
         self.backbone.load_state_dict(weights)\n        self.head = Head(folder)\n",
        spec.network
    );
    // Round the features to half precision before the head reads them, as in its training.
    let body = "self.head(self.backbone(x).half().float())";
    let constants = format!("{normalisation}\n\n");
    beginning(&input, &constants, "import timm\n") + HEAD + &model_of_images(&fields, body)
}

fn head_on_vectors(width: usize) -> String {
    let model = "\n\nclass Model(nn.Module):\n    def __init__(self, folder=\".\"):\n        super().__init__()\n        \
                 self.head = Head(Path(folder))\n        self.eval()\n\n    def forward(self, x):\n        return self.head(x)\n";
    beginning(&format!("float32, N × {width}"), "\n", "") + HEAD + model
}
