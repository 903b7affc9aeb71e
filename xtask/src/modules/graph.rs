//! Modules and what they use: listed in layers, searched for cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// For each module those that it uses, each with the places that do.
#[derive(Debug, Default)]
pub struct Graph(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Graph {
    pub fn add_module(&mut self, name: &str) {
        self.0.entry(name.to_owned()).or_default();
    }

    pub fn add(&mut self, from: &str, to: &str, place: String) {
        self.add_module(to);
        let uses = self.0.entry(from.to_owned()).or_default();
        uses.entry(to.to_owned()).or_default().insert(place);
    }

    fn uses(&self, name: &str) -> impl Iterator<Item = &String> {
        self.0.get(name).into_iter().flat_map(BTreeMap::keys)
    }

    /// A line for each module, those that use others before those that are used.
    pub fn listed(&self) -> String {
        let mut text = String::new();
        for group in self.components().iter().rev() {
            for name in group {
                let uses: Vec<&str> = self.uses(name).map(String::as_str).collect();
                let _ = match uses.is_empty() {
                    true => writeln!(text, "  {name}"),
                    false => writeln!(text, "  {name} -> {}", uses.join(" ")),
                };
            }
        }
        text
    }

    /// Groups of modules of which each reaches each other.
    pub fn cycles(&self) -> Vec<Vec<String>> {
        self.components().into_iter().filter(|group| group.len() > 1).collect()
    }

    /// What ties a group together.
    pub fn edges_within<'a>(
        &'a self,
        group: &'a [String],
    ) -> impl Iterator<Item = (&'a str, &'a str, Vec<&'a str>)> {
        let within = |name: &String| group.contains(name);
        self.0.iter().filter(move |(from, _)| within(from)).flat_map(move |(from, uses)| {
            uses.iter().filter(move |(to, _)| within(to)).map(move |(to, places)| {
                (from.as_str(), to.as_str(), places.iter().map(String::as_str).collect())
            })
        })
    }

    /// Strongly connected components, what is used before what uses it (Tarjan).
    fn components(&self) -> Vec<Vec<String>> {
        let mut search = Search::of(self);
        for name in self.0.keys() {
            if !search.numbers.contains_key(name.as_str()) {
                search.visit(name);
            }
        }
        search.found
    }
}

struct Search<'a> {
    graph: &'a Graph,
    numbers: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn of(graph: &'a Graph) -> Search<'a> {
        Search { graph, numbers: BTreeMap::new(), stack: Vec::new(), found: Vec::new() }
    }

    fn visit(&mut self, name: &'a str) -> usize {
        let number = self.numbers.len();
        self.numbers.insert(name, number);
        self.stack.push(name);
        let mut low = number;
        for next in self.graph.uses(name) {
            low = low.min(match self.numbers.get(next.as_str()) {
                None => self.visit(next),
                Some(seen) if self.stack.contains(&next.as_str()) => *seen,
                Some(_) => low,
            });
        }
        if low == number {
            let at = self.stack.iter().position(|on| *on == name).unwrap_or_default();
            let mut group: Vec<String> = self.stack.drain(at..).map(str::to_owned).collect();
            group.sort();
            self.found.push(group);
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        edges.iter().for_each(|(from, to)| graph.add(from, to, "place".to_owned()));
        graph
    }

    #[test]
    fn a_graph_in_layers_has_no_cycle_and_is_listed_from_the_top() {
        let graph = graph(&[("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")]);
        assert_eq!(graph.cycles(), Vec::<Vec<String>>::new());
        let text = graph.listed();
        let at = |line: &str| text.find(line).unwrap();
        assert!(at("  a -> b c\n") < at("  b -> d\n"), "{text}");
        assert!(at("  b -> d\n") < at("  d\n") && at("  c -> d\n") < at("  d\n"), "{text}");
    }

    #[test]
    fn cycles_of_two_and_of_many_are_found_with_their_edges() {
        let graph =
            graph(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "e"), ("e", "c"), ("e", "a")]);
        assert_eq!(graph.cycles(), [vec!["a", "b"], vec!["c", "d", "e"]]);
        let cycle = &graph.cycles()[0];
        let edges: Vec<_> = graph.edges_within(cycle).map(|(from, to, _)| (from, to)).collect();
        assert_eq!(edges, [("a", "b"), ("b", "a")]);
    }
}
