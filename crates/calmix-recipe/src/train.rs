//! The run itself: the network, the steps, the optimiser.

use calmix_core::schedule::LearningRate;

use crate::OrAuto;
use crate::device::Device;
use crate::field::limit::{KEPT, SOME, above, from};
use crate::field::{choice, section};
use crate::network::{Architecture, BottleneckStride, FirstBlock, HeadKind};
use crate::precision::Precision;
use crate::step_kind::StepKind;

section! {
    /// The network.
    NetworkSection {
        /// Which one.
        fixed name: Architecture = default_network();
        /// Pretrained weights that the run begins from: a name that `calmix weights list` shows, or the path of a
        /// safetensors file under timm's names; empty to begin from random ones. Its classifier is not used. What it or the
        /// `config.json` beside it says of its network and its images (`network.name`, `network.stride`, `augment.size`,
        /// `dataset.mean`, `dataset.std`) is taken where you do not set the key.
        fixed weights: String = String::new();
        /// The blake3 of that file, which is written into the run; another file is refused.
        fixed weights_hash: String = String::new();
        /// What of the network learns.
        fixed train: TrainedPart = TrainedPart::All;
        /// The form of the head.
        #[when(train is TrainedPart::Head)]
        fixed head: HeadKind = HeadKind::Linear;
        /// How many weak views of each image pass the backbone; a step takes one of them.
        #[when(train is TrainedPart::Head)]
        fixed weak_views: u32 = 2, SOME.to(255.0);
        /// How many strong views of each image pass the backbone; a step takes one of them.
        #[when(train is TrainedPart::Head)]
        fixed strong_views: u32 = 2, SOME.to(255.0);
        /// Dimensions that the features are rotated to by a principal component analysis, before the head reads them; 0 for
        /// all of them.
        #[when(train is TrainedPart::Head)]
        fixed dimensions: u32 = 256, from(0.0).to(65_536.0);
        /// How many more heads are trained at the end, each without its share of the labels: what each says of these labels
        /// fits the calibrator, the sets and the level for abstaining. 0 for none. Where the dataset has a validation split
        /// of its own, its labels are asked and no more heads are trained.
        #[when(train is TrainedPart::Head)]
        fixed folds: u32 = 10, from(0.0).to(1_000.0);
        /// Whether a second head, which is trained on the labels alone, is trained and evaluated in the same way, and is the model
        /// where the labels favour it.
        #[when(train is TrainedPart::Head)]
        fixed labels_alone: bool = true;
        /// The folder of the features that runs share; empty for one of the run's own.
        #[when(train is TrainedPart::Head)]
        free cache: String = String::new();
        /// The first block of the later stages of a wide residual network.
        fixed block: FirstBlock = FirstBlock::Google;
        /// Which convolution of a bottleneck of `resnet50` halves the image.
        fixed stride: BottleneckStride = BottleneckStride::Middle;
        /// What the running statistics of batch normalisation take of each batch; 0 for the network's own share, 0.001
        /// for wide residual networks and 0.1 for `resnet50`.
        fixed norm_momentum: f64 = 0.0, from(0.0).to(1.0);
        /// What batch normalisation adds to the variance of a channel; 0 for the network's own number, 0.001 for wide
        /// residual networks (Google's) and 0.00001 for `resnet50`. The blocks of USB's wide residual networks have 0.00001.
        fixed norm_eps: f64 = 0.0, from(0.0).to(1.0);
    }
}

fn default_network() -> Architecture {
    // A test resolves it.
    "wrn-28-2".parse().unwrap_or_else(|_| unreachable!("wrn-28-2 is the name of a network"))
}

choice! {
    /// What of a network learns.
    TrainedPart {
        /// All of it.
        All = "all",
        /// The backbone is frozen: a few views of each image pass it once, and a head is trained on these features. What is
        /// mixed are features (manifold mixup).
        Head = "head",
    }
}

section! {
    /// How long a run trains, on how much at a time, and where.
    Train {
        /// Steps of the run.
        fixed steps: u64 = 1 << 20, SOME;
        /// B: labelled images in a batch.
        fixed batch: u32 = 64, SOME.to(65_536.0);
        /// μ: unlabelled images for each labelled one.
        fixed ratio: u32 = 7, from(0.0).to(1024.0);
        /// Which passes a step makes, and so which rows batch normalisation sees together: this changes results.
        fixed step: StepKind = StepKind::Concat;
        /// The format of numbers; of a frozen backbone, whose head is trained in f32. What `auto` comes to is decided at the first launch and written into the run.
        fixed precision: OrAuto<Precision> = OrAuto::AUTO;
        /// Where the arithmetic happens. What `auto` comes to, the first GPU or else the CPU, is written into the run.
        free device: OrAuto<Device> = OrAuto::AUTO;
        /// Threads of the arithmetic on a CPU; 0 for one per core, counted when the run starts. The last bits of the
        /// results depend on it.
        free threads: u32 = 0, from(0.0).to(4096.0);
        /// What everything random in the run depends on, except which labels are kept.
        fixed seed: u64 = 0;
        /// Batches of a step, each with a plan of its own: more groups are a larger batch.
        fixed groups: u32 = 1, SOME.to(65_536.0);
        /// Shards that a batch is cut into, to be run by one process or by several; it has to divide the labelled and the
        /// unlabelled batch. 0 for as many as it takes for every process of the first launch to have one, which is
        /// written into the run.
        fixed shards: u32 = 0, from(0.0).to(65_536.0);
        /// Over which rows batch normalisation takes its statistics.
        #[when(shards is not 1)]
        fixed batch_norm: BatchNorm = BatchNorm::Shard;
        /// Seconds that processes wait for each other before they give up.
        free timeout: f64 = 600.0, above(0.0).to(1e6);
        /// What happens when a loss or a gradient is not finite.
        free non_finite: NonFinite = NonFinite::Stop;
        /// How many such steps may be skipped before the run stops after all.
        #[when(non_finite is NonFinite::Skip)]
        free non_finite_skips: u32 = 10, SOME;
    }
}

choice! {
    /// What happens when a loss or a gradient is not finite.
    NonFinite {
        /// The run stops at the last good state.
        Stop = "stop",
        /// The step changes nothing and is counted.
        Skip = "skip",
    }
}

choice! {
    /// Over which rows batch normalisation takes its statistics.
    BatchNorm {
        /// Over the rows of a shard.
        Shard = "shard",
        /// Over all rows of a group.
        Sync = "sync",
    }
}

section! {
    /// Stochastic gradient descent.
    Optimiser {
        /// The learning rate of the first step.
        fixed lr: f64 = 0.03, above(0.0);
        /// How much of the last update each step keeps.
        fixed momentum: f64 = 0.9, KEPT;
        /// Whether the momentum is Nesterov's.
        fixed nesterov: bool = true;
        /// How much the weights are drawn to zero; biases and normalisations are not.
        fixed weight_decay: f64 = 5e-4, from(0.0);
        /// How the learning rate falls.
        fixed schedule: LearningRate = LearningRate::Cosine;
        /// The longest gradient; longer ones are shortened to it. 0 for no limit.
        fixed clip: f64 = 0.0, from(0.0);
    }
}

section! {
    /// The averaged copy of the network, which is the one that is evaluated.
    Ema {
        /// How much of the average each step keeps.
        fixed decay: f64 = 0.999, KEPT;
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
