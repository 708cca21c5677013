//! The passes of ResNet-50.

use calmix_recipe::network::resnet::{Bottleneck, ResNet50};
use tch::{TchError, Tensor};

use super::layer::{Forward, Pass, pool, relu};
use super::{ForwardNetwork, Output};

impl ForwardNetwork for ResNet50 {
    fn forward(&self, images: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let x = relu(self.stem.forward(images, pass)?, pass)?;
        let mut x = x.f_max_pool2d([3, 3], [2, 2], [1, 1], [1, 1], false)?;
        for block in &self.blocks {
            x = block.forward(&x, pass)?;
        }
        let features = pool(&x)?;
        let logits = self.classifier.forward(&features, pass)?;
        Ok(Output { logits, features })
    }
}

impl Forward for Bottleneck {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        let [first, second, third] = &self.layers;
        let inner = relu(first.forward(x, pass)?, pass)?;
        let inner = relu(second.forward(&inner, pass)?, pass)?;
        let mut out = third.forward(&inner, pass)?;
        let shortcut = self.shortcut.as_ref().map(|shortcut| shortcut.forward(x, pass)).transpose()?;
        relu(out.f_add_(shortcut.as_ref().unwrap_or(x))?, pass)
    }
}
