//! Inputs and outputs of a graph that is being built.

use calmix_io::protobuf::Message;

use crate::tensor::ElementType;

/// The name of the number of rows, which is any.
const ROWS: &str = "N";

/// An input or an output.
#[derive(Debug, Clone)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) element: ElementType,
    /// The number of rows; `None` for any.
    pub(super) rows: Option<usize>,
    /// The sizes of a row, each `None` if the graph does not say it.
    pub(super) shape: Vec<Option<usize>>,
}

impl Port {
    pub(super) fn to_message(&self) -> Message {
        let mut shape = Message::default();
        shape.message(1, &dimension(self.rows, Some(ROWS)));
        for &size in &self.shape {
            shape.message(1, &dimension(size, None));
        }
        let mut tensor = Message::default();
        tensor.integer(1, self.element as i64);
        tensor.message(2, &shape);
        let mut kind = Message::default();
        kind.message(1, &tensor);
        let mut port = Message::default();
        port.text(1, &self.name);
        port.message(2, &kind);
        port
    }
}

/// A size, or the name of one that is not fixed.
fn dimension(size: Option<usize>, name: Option<&str>) -> Message {
    let mut dimension = Message::default();
    match (size, name) {
        (Some(size), _) => dimension.integer(1, size.cast_signed() as i64),
        (None, Some(name)) => dimension.text(2, name),
        (None, None) => {}
    }
    dimension
}
