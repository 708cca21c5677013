//! A frozen pretrained backbone: images in, features out.

use calmix_dist::gpu::GpuFlags;
use calmix_recipe::network::weights::longest_backbone;
use calmix_recipe::precision::Precision;
use tch::{Kind, TchError, Tensor};

use crate::device;
use crate::error::EngineError;
use crate::network::pass::BatchNormMode;
use crate::network::{Layout, Network};
use crate::parameters::Flat;
use crate::placed_network::{PlacedNetwork, Placement, PredictPass};
use crate::predictor::PredictorSettings;
use crate::scalar::guarded;
use crate::statistics::RunningStatistics;
use crate::weights::{self, Part};

/// Images of a pass: as many as keep the activations in a processor's cache.
const IMAGES: usize = 16;

/// A backbone with the weights of a file.
#[derive(Debug)]
pub struct FrozenBackbone {
    network: PlacedNetwork,
    width: usize,
    pass: PredictPass,
}

impl FrozenBackbone {
    /// Takes the backbone of a safetensors file; its classifier, if it has one, is not used. The number of classes in the
    /// settings does not matter.
    ///
    /// # Errors
    /// If the file is not of this network, or the device does not exist or has too little memory.
    pub fn new(settings: &PredictorSettings, precision: Precision, file: &[u8]) -> Result<Self, EngineError> {
        let &PredictorSettings { model, device, .. } = settings;
        device::check(device)?;
        let network = Network::of(&model, 1);
        network.check_backbone(file)?;
        device::gpu_flags(device).into_iter().for_each(GpuFlags::set);
        let width = network.layout().feature_width();
        let parameters = Flat::zeros(network.layout(), device::torch(device))?;
        let mut network = PlacedNetwork::new(network, &Placement::from(settings), parameters)?;
        let PlacedNetwork { network: layers, parameters, statistics, .. } = &mut network;
        weights::read(layers.layout(), Part::Backbone, file, parameters, Some(statistics))?;
        fold(layers.layout(), parameters, statistics, model.norm_eps)?;
        let pass = PredictPass { rows: IMAGES, norm: BatchNormMode::Folded, precision };
        Ok(Self { network, width, pass })
    }

    /// Bytes of the longest file that can have this backbone, with room for any classifier.
    pub fn longest_file(settings: &PredictorSettings) -> u64 {
        longest_backbone(Network::of(&settings.model, 1).layout())
    }

    /// The number of features of an image.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The number of features that an image would have.
    pub fn width_of(settings: &PredictorSettings) -> usize {
        Network::of(&settings.model, 1).layout().feature_width()
    }

    /// Bytes of the pixels of a pass. More of them at once take no less time for each.
    pub fn pass_bytes(&self) -> usize {
        self.network.pass_bytes(self.pass)
    }

    /// The features of images, f16, row by row, as bytes. The features of an image do not depend on the other images.
    ///
    /// # Errors
    /// If `pixels` are not whole images of the size, or the device has too little memory.
    pub fn features(&self, pixels: &[u8]) -> Result<Vec<u8>, EngineError> {
        let said = self.network.predict(&self.network.parameters, pixels, self.pass)?;
        Ok(bytes(&Tensor::f_from_slice(&said.features)?.f_to_kind(Kind::Half)?)?)
    }
}

/// Folds each BatchNorm that follows a convolution into it: `w·γ/√(σ² + ε)`, and `β − μ·γ/√(σ² + ε)` to add.
fn fold(
    layout: &Layout,
    parameters: &Flat,
    statistics: &RunningStatistics,
    epsilon: Option<f64>,
) -> Result<(), TchError> {
    let _no_gradient = tch::no_grad_guard();
    let weights = parameters.weights(layout, Kind::Float)?;
    for layer in &layout.folds {
        let (mean, variance) = statistics.at(layer.norm.statistics);
        let epsilon = epsilon.unwrap_or(layer.norm.epsilon);
        let deviation = guarded(|| variance.f_add_scalar(epsilon))?.f_sqrt()?;
        let scale = weights.at(layer.norm.weight).f_div(&deviation)?;
        // They are views of the buffer.
        let _ = weights.at(layer.conv.weight).shallow_clone().f_mul_(&scale.f_view([-1, 1, 1, 1])?)?;
        let _ = weights.at(layer.norm.bias).shallow_clone().f_sub_(&mean.f_mul(&scale)?)?;
    }
    Ok(())
}

/// The numbers of a tensor as bytes.
fn bytes(tensor: &Tensor) -> Result<Vec<u8>, TchError> {
    let tensor = tensor.f_contiguous()?;
    let count = tensor.numel();
    let mut bytes = vec![0; count * tensor.f_kind()?.elt_size_in_bytes()];
    tensor.f_copy_data_u8(&mut bytes, count)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use calmix_core::rng::{Domain, Seed};
    use calmix_recipe::device::Device;
    use calmix_recipe::model_spec::ModelSpec;

    use super::*;
    use crate::network::StatisticsId;
    use crate::predictor::Predictor;

    /// Weights whose statistics are not the initial ones.
    fn file(network: &Network) -> Vec<u8> {
        let parameters = Flat::initial(network.layout(), Seed(3), tch::Device::Cpu).unwrap();
        let statistics = RunningStatistics::initial(network.layout(), tch::Device::Cpu).unwrap();
        let mut stream = Seed(4).stream(Domain::Init, 0, 0);
        for n in 0..network.layout().statistics.len() {
            let (mean, variance) = statistics.at(StatisticsId(n));
            let mut draw = |of: &Tensor, least: f64| {
                let numbers: Vec<f32> = (0..of.numel()).map(|_| (least + stream.uniform()) as f32).collect();
                of.shallow_clone().copy_(&Tensor::from_slice(&numbers));
            };
            draw(mean, -0.5);
            draw(variance, 0.5);
        }
        weights::write(network.layout(), &parameters, Some(&statistics)).unwrap()
    }

    #[test]
    fn folded_features_are_those_of_the_network() {
        for name in ["tf_efficientnet_lite0", "resnet50", "wrn-10-1"] {
            let settings = PredictorSettings {
                model: ModelSpec {
                    mean: [0.5; 3],
                    std: [0.25; 3],
                    ..ModelSpec::new(name.parse().unwrap(), 32)
                },
                classes: 1,
                device: Device::Cpu,
            };
            let file = file(&Network::of(&settings.model, 1));
            let pixels: Vec<u8> = (0..17 * 32 * 32 * 3).map(|n| (n * 7 % 251) as u8).collect();
            let wanted = Predictor::new(&settings, &file).unwrap().predict(&pixels).unwrap().features;
            let backbone = FrozenBackbone::new(&settings, Precision::F32, &file).unwrap();
            let seen = backbone.features(&pixels).unwrap();
            assert_eq!(seen.len(), 17 * backbone.width() * 2, "{name}");
            let seen = Tensor::from_data_size(&seen, &[wanted.len() as i64], Kind::Half).to_kind(Kind::Float);
            let most = wanted.iter().fold(0_f32, |most, x| most.max(x.abs()));
            let wanted = Tensor::from_slice(&wanted);
            let off = (seen - wanted).abs().max().double_value(&[]);
            // Half precision has eleven bits.
            assert!(off < f64::from(most) * 1e-3, "{name}: {off} of {most}");
            let alone = backbone.features(&pixels[16 * 32 * 32 * 3..]).unwrap();
            assert_eq!(alone, backbone.features(&pixels).unwrap()[16 * backbone.width() * 2..], "{name}");
        }
    }
}
