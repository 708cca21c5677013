//! Names and order of a foreign graph: each value is computed once, before it is read.

use std::collections::BTreeSet;

use super::ForeignModel;
use super::problem::ForeignProblem;

impl ForeignModel<'_> {
    /// Takes initialisers out of the inputs, and checks that names are unique and that each node stands after those it reads.
    pub(super) fn check_order(&mut self) -> Result<(), ForeignProblem> {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for tensor in &self.initialisers {
            add(&mut known, tensor.name)?;
        }
        // Before IR version 4, each initialiser was an input too; later it is the default of an optional one.
        self.inputs.retain(|input| !known.contains(input.name.as_str()));
        for input in &self.inputs {
            add(&mut known, &input.name)?;
        }
        for (number, node) in self.nodes.iter().enumerate() {
            let missing = node.inputs.iter().find(|input| !input.is_empty() && !known.contains(*input));
            if let Some(input) = missing {
                let node = node.described(number);
                return Err(ForeignProblem::Unordered { node, input: (*input).to_owned() });
            }
            for output in node.outputs.iter().filter(|output| !output.is_empty()) {
                add(&mut known, output)?;
            }
        }
        let missing = self.outputs.iter().find(|output| !known.contains(output.name.as_str()));
        match missing {
            Some(output) => Err(ForeignProblem::Output {
                output: output.to_string(),
                problem: "is computed by no node. Export the model again".to_owned(),
            }),
            None => Ok(()),
        }
    }
}

fn add<'n>(known: &mut BTreeSet<&'n str>, name: &'n str) -> Result<(), ForeignProblem> {
    if known.insert(name) {
        return Ok(());
    }
    Err(ForeignProblem::DuplicateName { name: name.to_owned() })
}
