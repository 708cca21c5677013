//! The keys of the network, the training loop, the optimiser and the EMA.

use calmix_core::schedule::LearningRate;

use crate::OrAuto;
use crate::device::Device;
use crate::field::limit::{AT_LEAST_ONE, UNIT_INTERVAL, above, from};
use crate::field::{choice, section};
use crate::network::{Architecture, BottleneckStride, FirstBlock, HeadKind, Pooling};
use crate::precision::Precision;
use crate::step_kind::{StepKind, SumKind};

section! {
    /// The network.
    NetworkSection {
        /// The architecture.
        fixed name: Architecture = default_network();
        /// Pretrained weights to start from: a name that `calmix weights list` shows, or the path of a safetensors file with
        /// timm's parameter names; empty to start from random weights. The classifier in the file is not used. Settings
        /// stored in the file or in the `config.json` beside it (`network.name`, `network.stride`, `augment.size`,
        /// `dataset.mean`, `dataset.std`) apply unless you set the key. The frozen backbone of a head can also be any image
        /// encoder: the path of an ONNX file, or of a folder that has one (`model.onnx` or `onnx/model.onnx`).
        fixed weights: String = String::new();
        /// The BLAKE3 hash of the weights file, which is stored with the run; a file with another hash is refused.
        fixed weights_hash: String = String::new();
        /// Which part of the network is trained.
        fixed train: TrainedPart = TrainedPart::All;
        /// The output of an ONNX encoder that has the features; found in its file unless you set the key. Empty for a network
        /// that calmix builds itself.
        #[when(train is TrainedPart::Head)]
        fixed output: String = String::new();
        /// How that output becomes one vector per image; follows from its shape unless you set the key.
        #[when(train is TrainedPart::Head)]
        fixed pooling: Pooling = Pooling::Vector;
        /// The layers of the head.
        #[when(train is TrainedPart::Head)]
        fixed head: HeadKind = HeadKind::Linear;
        /// The number of weak views of each image that pass through the backbone; each step uses one of them. With
        /// `dataset.source = "vectors"`, how many of the vectors after a sample's first are weak views. If this and
        /// `strong_views` are 0, the heads for one vector per sample are trained, on the clean view.
        #[when(train is TrainedPart::Head)]
        fixed weak_views: u32 = 2, from(0.0).to(255.0);
        /// The number of strong views of each image that pass through the backbone; each step uses one of them. With
        /// `dataset.source = "vectors"`, how many of the vectors after the weak views are strong views.
        #[when(train is TrainedPart::Head)]
        fixed strong_views: u32 = 2, from(0.0).to(255.0);
        /// The number of principal components (PCA) of the features that the head is trained on; 0 for all of them.
        #[when(train is TrainedPart::Head)]
        fixed dimensions: u32 = 256, from(0.0).to(65_536.0);
        /// The number of cross-validation folds: one more head per fold is trained at the end, without the fold's labels, and
        /// its predictions on them fit the calibrator, the prediction sets and the threshold for abstaining. 0 for none;
        /// at least 10,000 labels are divided into at most 5. If the dataset has its own validation split, its labels are used
        /// instead and no more heads are trained.
        #[when(train is TrainedPart::Head)]
        fixed folds: u32 = 10, from(0.0).to(1_000.0);
        /// Whether to train and evaluate a second head in the same way on the labels alone; it becomes the model if it does
        /// better on the held-out labels.
        #[when(train is TrainedPart::Head)]
        fixed labels_alone: bool = true;
        /// Whether heads on nearest neighbours are among the candidates for one vector per sample. They are left out with more than
        /// 20,000 samples, and without unlabelled ones.
        #[when(train is TrainedPart::Head)]
        fixed neighbours: bool = false;
        /// The folder of a feature cache that runs share; if empty, the run keeps its own.
        #[when(train is TrainedPart::Head)]
        free cache: String = String::new();
        /// The input of the first block of the later stages of a wide residual network.
        fixed block: FirstBlock = FirstBlock::Google;
        /// Which convolution of a bottleneck of `resnet50` halves the image.
        fixed stride: BottleneckStride = BottleneckStride::Middle;
        /// The momentum of batch normalisation: the share of each batch in the running statistics. 0 for the network's own
        /// value: 0.001 for wide residual networks, 0.1 for `resnet50`.
        fixed norm_momentum: f64 = 0.0, from(0.0).to(1.0);
        /// The epsilon of batch normalisation, added to the variance of a channel. 0 for the network's own value: 0.001 for
        /// wide residual networks (Google's), 0.00001 for `resnet50`. The blocks of USB's wide residual networks use 0.00001.
        fixed norm_eps: f64 = 0.0, from(0.0).to(1.0);
    }
}

fn default_network() -> Architecture {
    // The test below parses it, so the panic cannot happen.
    "wrn-28-2".parse().unwrap_or_else(|_| unreachable!("wrn-28-2 is the name of a network"))
}

choice! {
    /// Which part of a network is trained.
    TrainedPart {
        /// The whole network.
        All = "all",
        /// A head on a frozen backbone: a few views of each image pass through the backbone once, and the head is trained on
        /// their features. Mixup mixes features (manifold mixup).
        Head = "head",
    }
}

section! {
    /// The length of the run, its batches, and the device.
    Train {
        /// The number of training steps.
        fixed steps: u64 = 1 << 20, AT_LEAST_ONE;
        /// B: labelled images in a batch.
        fixed batch: u32 = 64, AT_LEAST_ONE.to(65_536.0);
        /// μ: unlabelled images in a batch for each labelled one.
        fixed ratio: u32 = 7, from(0.0).to(1024.0);
        /// The forward passes of a step. They decide which images share batch statistics, so this changes results.
        fixed step: StepKind = StepKind::Concat;
        /// The number format of a network; a head and its frozen backbone are always in f32. `auto` is resolved at the first
        /// launch and stored with the run.
        fixed precision: OrAuto<Precision> = OrAuto::AUTO;
        /// The device to train on. `auto` is the first GPU, otherwise the CPU; for a head it is the CPU. The choice is stored with
        /// the run.
        free device: OrAuto<Device> = OrAuto::AUTO;
        /// CPU threads for computation; 0 for one per core, counted when the run starts. The last bits of the results
        /// depend on it.
        free threads: u32 = 0, from(0.0).to(4096.0);
        /// The seed of everything random in the run, except the choice of labels (`labels.seed`).
        fixed seed: u64 = 0;
        /// Batches per step, each with its own plan of mixtures: more groups make a larger batch.
        fixed groups: u32 = 1, AT_LEAST_ONE.to(65_536.0);
        /// The number of micro-batches that a batch is cut into, for one process or several; it must divide the labelled and the
        /// unlabelled batch. 0 for as few as give every process of the first launch a micro-batch; the number is stored with the
        /// run.
        fixed micro_batches: u32 = 0, from(0.0).to(65_536.0);
        /// How the gradients of several processes are added up. It changes the last bits of the results.
        fixed sum: SumKind = SumKind::Tree;
        /// The rows over which batch normalisation computes its statistics.
        #[when(micro_batches is not 1)]
        fixed batch_norm: BatchNorm = BatchNorm::MicroBatch;
        /// Seconds that processes wait for each other before the run stops with an error.
        free timeout: f64 = 600.0, above(0.0).to(1e6);
        /// What happens if a loss or a gradient is not finite.
        free non_finite: NonFinite = NonFinite::Stop;
        /// The number of non-finite steps that may be skipped before the run stops.
        #[when(non_finite is NonFinite::Skip)]
        free non_finite_skips: u32 = 10, AT_LEAST_ONE;
    }
}

choice! {
    /// What happens if a loss or a gradient is not finite.
    NonFinite {
        /// The run stops at the last good state.
        Stop = "stop",
        /// The step is skipped and counted.
        Skip = "skip",
    }
}

choice! {
    /// The rows over which batch normalisation computes its statistics.
    BatchNorm {
        /// The rows of a micro-batch.
        MicroBatch = "micro-batch",
        /// All rows of a group, across micro-batches.
        Sync = "sync",
    }
}

section! {
    /// Stochastic gradient descent.
    Optimiser {
        /// The initial learning rate.
        fixed lr: f64 = 0.03, above(0.0);
        /// The momentum: the share of the last update that each step keeps.
        fixed momentum: f64 = 0.9, UNIT_INTERVAL;
        /// Whether to use Nesterov momentum.
        fixed nesterov: bool = true;
        /// The weight decay; biases and normalisation parameters are excluded.
        fixed weight_decay: f64 = 5e-4, from(0.0);
        /// The learning rate schedule.
        fixed schedule: LearningRate = LearningRate::Cosine;
        /// The gradient norm above which gradients are clipped; 0 for no clipping.
        fixed clip: f64 = 0.0, from(0.0);
    }
}

section! {
    /// The exponential moving average (EMA) of the network's weights, which is the model that is evaluated.
    Ema {
        /// The share of the average that each step keeps.
        fixed decay: f64 = 0.999, UNIT_INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_network_exists() {
        assert_eq!(default_network().to_string(), "wrn-28-2");
    }
}
