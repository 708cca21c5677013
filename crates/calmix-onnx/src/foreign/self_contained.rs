//! A foreign model with all its weights in one file.

use std::borrow::Cow;

use calmix_io::protobuf::Message;

use super::ForeignModel;
use super::port::ForeignPort;

impl<'a> ForeignModel<'a> {
    /// The model with the data of the files beside it. `bytes` are those that it was read from, and stay as they are if it needs
    /// no other file.
    pub fn self_contained(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.files.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut model = Message::default();
        model.integer(1, self.ir_version);
        model.nested(7, |graph| self.write_graph(graph));
        model.nested(8, |operators| {
            operators.text(1, "");
            operators.integer(2, self.opset);
        });
        Cow::Owned(model.into_bytes())
    }

    fn write_graph(&self, graph: &mut Message) {
        for node in &self.nodes {
            graph.nested(1, |message| node.write(message, &str::to_owned, &self.files));
        }
        graph.text(2, "model");
        for tensor in &self.initialisers {
            graph.nested(5, |message| tensor.write(message, tensor.name(), &self.files));
        }
        for (field, ports) in [(11, &self.inputs), (12, &self.outputs)] {
            for port in ports {
                graph.nested(field, |message| write_port(message, port));
            }
        }
    }
}

/// Writes a `ValueInfoProto`.
fn write_port(message: &mut Message, port: &ForeignPort) {
    message.text(1, &port.name);
    message.nested(2, |kind| {
        kind.nested(1, |tensor| {
            if let Some(element) = port.element {
                tensor.integer(1, element as i64);
            }
            if let Some(dimensions) = &port.dimensions {
                tensor.nested(2, |shape| {
                    for size in dimensions {
                        shape.nested(1, |dimension| {
                            if let Some(size) = size {
                                dimension.integer(1, size.cast_signed());
                            }
                        });
                    }
                });
            }
        });
    });
}
