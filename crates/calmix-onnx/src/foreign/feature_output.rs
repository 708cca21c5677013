//! The output of a foreign model that gives the features.

use calmix_recipe::network::Pooling;

use super::ForeignModel;
use super::number_type::NumberType;
use super::port::{ForeignPort, listed};
use super::problem::ForeignProblem;

/// The names of outputs with features, the best first, as transformers, optimum and timm give them.
const USUAL: [&str; 7] = [
    "image_embeds",
    "pooler_output",
    "pooled_output",
    "image_features",
    "embedding",
    "embeddings",
    "last_hidden_state",
];

/// The output that gives the features, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeatureOutput {
    /// Its name.
    pub name: String,
    /// The type of its numbers, a float.
    pub element: NumberType,
    /// How it becomes one vector per image.
    pub pooling: Pooling,
    /// The length of that vector; `None` if the model does not declare it.
    pub width: Option<usize>,
}

/// The number of dimensions that a pooling reads.
fn rank(pooling: Pooling) -> usize {
    match pooling {
        Pooling::Vector => 2,
        Pooling::ClassToken | Pooling::MeanOfTokens => 3,
        Pooling::MeanOfMap => 4,
    }
}

/// The dimension that it keeps, beside the rows.
fn kept(pooling: Pooling) -> usize {
    match pooling {
        Pooling::Vector | Pooling::MeanOfMap => 1,
        Pooling::ClassToken | Pooling::MeanOfTokens => 2,
    }
}

/// How tokens are pooled if the user does not say. A square number of tokens are the patches of an image alone; otherwise a class
/// token stands before them.
fn pooling_of_tokens(tokens: Option<u64>) -> Pooling {
    match tokens {
        Some(tokens) if tokens.isqrt().pow(2) == tokens => Pooling::MeanOfTokens,
        _ => Pooling::ClassToken,
    }
}

impl ForeignModel<'_> {
    /// Chooses the output that gives the features: `requested`, or the only one, or the first of the usual names. If `pooling` is
    /// not given, it follows from the shape.
    ///
    /// An output of logits is chosen only if it is the only one or requested; the caller sees its name and width.
    ///
    /// # Errors
    /// If there is no such output, or it does not hold features of this form.
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
        if let Some(rank) = rank.filter(|&rank| rank != self::rank(pooling)) {
            let wanted = self::rank(pooling);
            let problem = format!(
                "has {rank} dimensions, but its pooling reads {wanted}. Set network.pooling to another one"
            );
            return Err(refused(problem));
        }
        let size = port.dimensions.as_ref().and_then(|dimensions| *dimensions.get(kept(pooling))?);
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
        let usual = USUAL.into_iter().find_map(named);
        usual.ok_or_else(|| ForeignProblem::AmbiguousOutput { outputs: outputs() })
    }
}
