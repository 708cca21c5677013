//! Files that need each other: circles among them, and how many floors they stand on.

use std::collections::{BTreeMap, VecDeque};

/// Which file needs which other, by the first line that says so.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) files: Vec<String>,
    edges: Vec<BTreeMap<usize, usize>>,
}

/// Files of which each needs the next, and the last the first, with the line of each need.
pub(super) type Circle = Vec<(usize, usize)>;

impl Graph {
    pub(super) fn new(files: Vec<String>) -> Self {
        let edges = vec![BTreeMap::new(); files.len()];
        Self { files, edges }
    }

    /// Notes that a file needs another; the first line of several is kept.
    pub(super) fn add(&mut self, from: usize, to: usize, line: usize) {
        if from != to {
            let first = self.edges[from].entry(to).or_insert(line);
            *first = line.min(*first);
        }
    }

    /// The sets of files that need each other, each with more than one file.
    pub(super) fn knots(&self) -> Vec<Vec<usize>> {
        self.components().into_iter().filter(|component| component.len() > 1).collect()
    }

    /// The shortest circle within a knot.
    pub(super) fn shortest_circle(&self, knot: &[usize]) -> Circle {
        let circles = knot.iter().filter_map(|start| self.circle_from(*start, knot));
        circles.min_by_key(Vec::len).unwrap_or_default()
    }

    /// The length of the longest path; the files of a knot stand on one floor.
    pub(super) fn floors(&self) -> usize {
        let components = self.components();
        let mut component_of = vec![0; self.files.len()];
        for (index, component) in components.iter().enumerate() {
            for file in component {
                component_of[*file] = index;
            }
        }
        // Components come in the order of their needs: what a component needs comes before it.
        let mut floors: Vec<usize> = Vec::with_capacity(components.len());
        for (index, component) in components.iter().enumerate() {
            let below = component.iter().flat_map(|file| self.edges[*file].keys());
            let below = below.map(|needed| component_of[*needed]).filter(|other| *other != index);
            floors.push(1 + below.map(|other| floors[other]).max().unwrap_or(0));
        }
        floors.into_iter().max().unwrap_or(0)
    }

    /// Strongly connected components, those that others need first.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut search = Search::new(self);
        for file in 0..self.files.len() {
            if search.order[file].is_none() {
                search.visit(file);
            }
        }
        search.components
    }

    /// The shortest circle through `start` that stays within the knot.
    fn circle_from(&self, start: usize, knot: &[usize]) -> Option<Circle> {
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(file) = open.pop_front() {
            for needed in self.edges[file].keys().filter(|needed| knot.contains(needed)) {
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

    fn steps_to(&self, last: usize, start: usize, came_from: &BTreeMap<usize, usize>) -> Circle {
        let mut circle = vec![(last, self.edges[last][&start])];
        let mut file = last;
        while file != start {
            let before = came_from[&file];
            circle.push((before, self.edges[before][&file]));
            file = before;
        }
        circle.reverse();
        circle
    }
}

/// Tarjan's search for strongly connected components.
struct Search<'a> {
    graph: &'a Graph,
    order: Vec<Option<usize>>,
    lowest: Vec<usize>,
    stack: Vec<usize>,
    next: usize,
    components: Vec<Vec<usize>>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Self {
        let count = graph.files.len();
        let (order, lowest) = (vec![None; count], vec![0; count]);
        Self { graph, order, lowest, stack: Vec::new(), next: 0, components: Vec::new() }
    }

    fn visit(&mut self, file: usize) {
        let own = self.next;
        self.next += 1;
        self.order[file] = Some(own);
        self.lowest[file] = own;
        self.stack.push(file);
        let graph = self.graph;
        for needed in graph.edges[file].keys().copied() {
            match self.order[needed] {
                None => {
                    self.visit(needed);
                    self.lowest[file] = self.lowest[file].min(self.lowest[needed]);
                }
                Some(order) if self.stack.contains(&needed) => {
                    self.lowest[file] = self.lowest[file].min(order);
                }
                Some(_) => {}
            }
        }
        if self.lowest[file] == own
            && let Some(start) = self.stack.iter().position(|open| *open == file)
        {
            let mut component = self.stack.split_off(start);
            component.sort_unstable();
            self.components.push(component);
        }
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
    fn the_shortest_circle_of_a_knot_is_found() {
        let graph = graph(6, &[(0, 1), (1, 2), (2, 3), (3, 1), (3, 2), (4, 0), (4, 5)]);
        let knots = graph.knots();
        assert_eq!(knots, [[1, 2, 3]]);
        assert_eq!(graph.shortest_circle(&knots[0]), [(2, 3), (3, 5)]);
    }

    #[test]
    fn floors_are_the_longest_path() {
        assert_eq!(graph(4, &[(0, 1), (1, 2), (0, 2), (3, 2)]).floors(), 3);
        assert_eq!(graph(4, &[(0, 1), (1, 0), (1, 2), (2, 3)]).floors(), 3);
        assert_eq!(graph(2, &[]).floors(), 1);
    }
}
