//! The output of a foreign model that has the features.

use calmix_recipe::network::Pooling;

use super::ForeignModel;
use super::port::{ForeignPort, listed};
use super::problem::ForeignProblem;
use crate::tensor::ElementType;

/// The names of feature outputs in transformers, optimum and timm, in order of preference.
const USUAL_OUTPUTS: [&str; 7] = [
    "image_embeds",
    "pooler_output",
    "pooled_output",
    "image_features",
    "embedding",
    "embeddings",
    "last_hidden_state",
];

/// The output with the features, and its pooling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureOutput {
    pub name: String,
    pub element: ElementType,
    pub pooling: Pooling,
    /// The length of the pooled vector; `None` if the model does not declare it.
    pub width: Option<usize>,
}

/// Returns the number of dimensions that a pooling expects, and the one that it keeps beside the rows.
fn dimensions(pooling: Pooling) -> (usize, usize) {
    match pooling {
        Pooling::Vector => (2, 1),
        Pooling::ClassToken | Pooling::MeanOfTokens => (3, 2),
        Pooling::MeanOfMap => (4, 1),
    }
}

/// Chooses the pooling of tokens. A square number of tokens are the patches of an image; otherwise a class token precedes them.
fn pooling_of_tokens(tokens: Option<u64>) -> Pooling {
    match tokens {
        Some(tokens) if tokens.isqrt().pow(2) == tokens => Pooling::MeanOfTokens,
        _ => Pooling::ClassToken,
    }
}

impl ForeignModel<'_> {
    /// Chooses the output with the features: `requested`, the only one, or the first with a usual name. Without `pooling`, it
    /// follows from the shape.
    ///
    /// An output of logits is chosen only if it is the only one or requested; the caller sees its name and width.
    ///
    /// # Errors
    /// If there is no such output, or its shape does not match the pooling.
    pub fn choose_output(
        &self,
        requested: Option<&str>,
        pooling: Option<Pooling>,
    ) -> Result<FeatureOutput, ForeignProblem> {
        let port = self.feature_port(requested)?;
        let refused = |problem: String| ForeignProblem::Output { output: port.to_string(), problem };
        let element = port
            .element
            .filter(|element| element.is_float())
            .ok_or_else(|| refused("does not hold floats. Set network.output to another one".to_owned()))?;
        let rank = port.dimensions.as_ref().map(Vec::len);
        let pooling = match (pooling, rank) {
            (Some(pooling), _) => pooling,
            (None, Some(2)) => Pooling::Vector,
            (None, Some(3)) => {
                pooling_of_tokens(port.dimensions.as_ref().and_then(|dimensions| *dimensions.get(1)?))
            }
            (None, Some(4)) => Pooling::MeanOfMap,
            (None, Some(_)) => {
                let problem = "has neither two, three nor four dimensions. Set network.output to another one";
                return Err(refused(problem.to_owned()));
            }
            (None, None) => {
                let problem = "does not declare its shape. Set network.pooling, or run onnx.shape_inference on the model";
                return Err(refused(problem.to_owned()));
            }
        };
        let (wanted, kept) = dimensions(pooling);
        if let Some(rank) = rank.filter(|&rank| rank != wanted) {
            let problem = format!(
                "has {rank} dimensions, but its pooling reads {wanted}. Set network.pooling to another one"
            );
            return Err(refused(problem));
        }
        let size = port.dimensions.as_ref().and_then(|dimensions| *dimensions.get(kept)?);
        let width = size.map(usize::try_from).transpose();
        let width =
            width.map_err(|_| refused("is too wide. Set network.output to another one".to_owned()))?;
        Ok(FeatureOutput { name: port.name.clone(), element, pooling, width })
    }

    fn feature_port(&self, requested: Option<&str>) -> Result<&ForeignPort, ForeignProblem> {
        let named = |name: &str| self.outputs.iter().find(|output| output.name == name);
        let outputs = || listed(&self.outputs);
        if let Some(requested) = requested {
            let missing = || ForeignProblem::NoOutput { requested: requested.to_owned(), outputs: outputs() };
            return named(requested).ok_or_else(missing);
        }
        if let [only] = self.outputs.as_slice() {
            return Ok(only);
        }
        let usual = USUAL_OUTPUTS.into_iter().find_map(named);
        usual.ok_or_else(|| ForeignProblem::AmbiguousOutput { outputs: outputs() })
    }
}
