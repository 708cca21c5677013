//! The passes of Wide ResNets.

use calmix_recipe::network::wide_resnet::{Reads, ResidualBlock, WideResNet};
use tch::{TchError, Tensor};

use super::layer::{Forward, Pass, leaky_relu, pool};
use super::{ForwardNetwork, Output};

impl ForwardNetwork for WideResNet {
    fn forward(&self, images: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let mut x = self.stem.forward(images, pass)?;
        for block in &self.blocks {
            x = block.forward(&x, pass)?;
        }
        let features = pool(&leaky_relu(self.norm.forward(&x, pass)?)?)?;
        let logits = self.classifier.forward(&features, pass)?;
        Ok(Output { logits, features })
    }
}

impl Forward for ResidualBlock {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        let activated = leaky_relu(self.norm1.forward(x, pass)?)?;
        let (main, side) = match self.reads {
            Reads::ActivatedMain => (&activated, x),
            Reads::ActivatedBoth => (&activated, &activated),
            Reads::RawBoth => (x, x),
        };
        let inner = leaky_relu(self.norm2.forward(&self.conv1.forward(main, pass)?, pass)?)?;
        let mut out = self.conv2.forward(&inner, pass)?;
        let shortcut = self.shortcut.as_ref().map(|shortcut| shortcut.forward(side, pass)).transpose()?;
        out.f_add_(shortcut.as_ref().unwrap_or(x))
    }
}
