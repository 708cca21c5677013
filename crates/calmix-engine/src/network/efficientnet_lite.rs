//! The passes of EfficientNet-Lite.

use calmix_recipe::network::efficientnet_lite::{EfficientNetLite, InvertedResidual};
use tch::{TchError, Tensor};

use super::layer::{Forward, Pass, pool, relu6};
use super::{ForwardNetwork, Output};

impl ForwardNetwork for EfficientNetLite {
    fn forward(&self, images: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let mut x = relu6(self.stem.forward(images, pass)?, pass)?;
        for block in &self.blocks {
            x = block.forward(&x, pass)?;
        }
        let features = pool(&relu6(self.head.forward(&x, pass)?, pass)?)?;
        let logits = self.classifier.forward(&features, pass)?;
        Ok(Output { logits, features })
    }
}

impl Forward for InvertedResidual {
    fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor, TchError> {
        let wide = match &self.widen {
            Some(widen) => &relu6(widen.forward(x, pass)?, pass)?,
            None => x,
        };
        let inner = relu6(self.depthwise.forward(wide, pass)?, pass)?;
        let mut out = self.narrow.forward(&inner, pass)?;
        if self.adds_input { out.f_add_(x) } else { Ok(out) }
    }
}
