//! The passes of a head: vectors in, logits out.

use calmix_recipe::network::head::HeadLayers;
use tch::{TchError, Tensor};

use super::layer::{Forward, Pass};
use super::{ForwardNetwork, Output};

impl ForwardNetwork for HeadLayers {
    fn forward(&self, vectors: &Tensor, pass: &Pass<'_>) -> Result<Output, TchError> {
        let features = match &self.hidden {
            Some(hidden) => hidden.forward(vectors, pass)?.f_relu()?,
            None => vectors.shallow_clone(),
        };
        let logits = self.classifier.forward(&features, pass)?;
        Ok(Output { logits, features })
    }
}
