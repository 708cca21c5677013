//! Networks: images in, logits and pooled features out.
//!
//! A network is a description: its layers, their names, and the order in which they are applied (`forward` of [`NetworkLayers`]).
//! Its weights are stored separately, in one flat buffer, so that the same code runs with the trained weights and with their EMA.

pub(crate) mod parameters;
pub(crate) mod pass;
pub(crate) mod placed_network;
pub(crate) mod statistics;

use calmix_recipe::model_spec::ModelSpec;
use calmix_recipe::network::layers::NetworkLayers;

pub(crate) use calmix_recipe::network::layer::{ParameterId, StatisticsId};
pub(crate) use calmix_recipe::network::layout::Region;
pub use calmix_recipe::network::layout::{Init, Layout, Parameter, StatisticsLayer};
use calmix_recipe::network::operations::NetworkOutput;
use tch::{TchError, Tensor};

use pass::Pass;

/// The outputs of a network for a batch: one row per image, in f32.
pub(crate) type Output = NetworkOutput<Tensor>;

/// The layers of a network.
///
/// ```
/// use calmix_engine::network::Network;
/// use calmix_recipe::model_spec::ModelSpec;
///
/// let network = Network::new(&ModelSpec::new("wrn-28-2".parse()?, 32), 10);
/// assert_eq!(network.layout().len(), 1_467_626);
/// # Ok::<(), calmix_recipe::RecipeError>(())
/// ```
#[derive(Debug)]
pub struct Network {
    layers: NetworkLayers,
    layout: Layout,
    channels_per_pixel: usize,
}

/// The logits and features of images, row by row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outputs {
    /// C numbers per row.
    pub logits: Vec<f32>,
    /// D numbers per row.
    pub features: Vec<f32>,
}

impl Network {
    /// Creates the network of a description for `classes` classes.
    pub fn new(model: &ModelSpec, classes: usize) -> Self {
        let (layers, layout) = NetworkLayers::of(model, classes);
        Self { layers, layout, channels_per_pixel: model.network.channels_per_pixel() }
    }

    /// Returns the size of its widest activations per pixel of an image, to which the memory of a pass is proportional.
    pub(crate) fn channels_per_pixel(&self) -> usize {
        self.channels_per_pixel
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Applies the network to images: (rows, 3, height, width), channels-last, in the precision of the pass.
    pub(crate) fn forward(&self, images: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let mut pass = pass;
        self.layers.forward(images, &mut pass)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(name: &str, classes: usize) -> Layout {
        Network::new(&ModelSpec::new(name.parse().unwrap(), 32), classes).layout
    }

    #[test]
    fn as_many_parameters_as_the_peers_have() {
        assert_eq!(layout("wrn-28-2", 10).len(), 1_467_626);
        assert_eq!(layout("wrn-28-8", 100).len(), 23_401_028);
        assert_eq!(layout("wrn-37-2", 10).len(), 5_929_450);
        // torchvision's count of resnet50.
        assert_eq!(layout("resnet50", 1000).len(), 25_557_032);
        // timm's.
        assert_eq!(layout("tf_efficientnet_lite0", 1000).len(), 4_652_008);
        assert_eq!(layout("tf_efficientnet_lite1", 1000).len(), 5_416_680);
        assert_eq!(layout("tf_efficientnet_lite2", 1000).len(), 6_092_072);
    }

    #[test]
    fn names_of_parameters_are_unique_and_those_of_the_peers() {
        for name in ["wrn-16-2", "wrn-37-2", "resnet50", "tf_efficientnet_lite0"] {
            let layout = layout(name, 10);
            let mut names: Vec<_> = layout.parameters.iter().map(|p| p.name.as_str()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        let wide = layout("wrn-37-2", 10);
        for name in
            ["conv1.bias", "block1.layer.0.convShortcut.weight", "block4.layer.3.bn2.bias", "fc.weight"]
        {
            assert!(wide.parameters.iter().any(|p| p.name == name), "{name}");
        }
        let deep = layout("resnet50", 10);
        for name in ["layer1.0.downsample.0.weight", "layer4.2.bn3.weight", "bn1.weight", "fc.bias"] {
            assert!(deep.parameters.iter().any(|p| p.name == name), "{name}");
        }
    }
}
