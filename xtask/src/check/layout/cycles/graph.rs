//! The graph of which file needs which other, and its cycles.

use std::collections::{BTreeMap, VecDeque};

/// A graph of files, with the line of the first use of each edge.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) files: Vec<String>,
    edges: Vec<BTreeMap<usize, usize>>,
}

/// A cycle of files, each of which needs the next, with the lines of these uses.
pub(super) type Cycle = Vec<(usize, usize)>;

impl Graph {
    pub(super) fn new(files: Vec<String>) -> Self {
        let edges = vec![BTreeMap::new(); files.len()];
        Self { files, edges }
    }

    /// Adds an edge from a file to one that it needs; the first line is kept.
    pub(super) fn add(&mut self, from: usize, to: usize, line: usize) {
        if from != to {
            let first = self.edges[from].entry(to).or_insert(line);
            *first = line.min(*first);
        }
    }

    /// Returns the shortest of all cycles; `None` if there are none.
    pub(super) fn shortest_cycle(&self) -> Option<Cycle> {
        (0..self.files.len()).filter_map(|start| self.cycle_from(start)).min_by_key(Vec::len)
    }

    /// Returns the shortest cycle through `start`, by breadth-first search.
    fn cycle_from(&self, start: usize) -> Option<Cycle> {
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(file) = open.pop_front() {
            for needed in self.edges[file].keys() {
                if *needed == start {
                    return Some(self.steps_to(file, start, &came_from));
                }
                if !came_from.contains_key(needed) {
                    came_from.insert(*needed, file);
                    open.push_back(*needed);
                }
            }
        }
        None
    }

    fn steps_to(&self, last: usize, start: usize, came_from: &BTreeMap<usize, usize>) -> Cycle {
        let mut cycle = vec![(last, self.edges[last][&start])];
        let mut file = last;
        while file != start {
            let before = came_from[&file];
            cycle.push((before, self.edges[before][&file]));
            file = before;
        }
        cycle.reverse();
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: usize, edges: &[(usize, usize)]) -> Graph {
        let mut graph = Graph::new((0..files).map(|file| format!("{file}.rs")).collect());
        for (line, (from, to)) in edges.iter().enumerate() {
            graph.add(*from, *to, line + 1);
        }
        graph
    }

    #[test]
    fn shortest_cycle_is_found() {
        let cyclic = graph(6, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 2), (4, 0), (4, 5)]);
        assert_eq!(cyclic.shortest_cycle(), Some(vec![(2, 3), (3, 5)]));
        assert_eq!(graph(4, &[(0, 1), (1, 2), (0, 2), (3, 2)]).shortest_cycle(), None);
    }
}
