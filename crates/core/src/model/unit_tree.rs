//! Values at units, found by the place: those above it and those below it, without a look at all others.

use std::collections::BTreeMap;

use super::unit::Segment;

/// Values at units. Finding those at or above a place takes time in proportion to its depth.
#[derive(Debug)]
pub(crate) struct UnitTree<V> {
    values: Vec<V>,
    inside: BTreeMap<Segment, UnitTree<V>>,
}

impl<V> Default for UnitTree<V> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            inside: BTreeMap::new(),
        }
    }
}

impl<V> UnitTree<V> {
    /// Adds a value at a unit.
    pub fn insert(&mut self, unit: &[Segment], value: V) {
        match unit.split_first() {
            None => self.values.push(value),
            Some((first, rest)) => {
                let next = match self.inside.get_mut(first) {
                    Some(next) => next,
                    None => self.inside.entry(first.clone()).or_default(),
                };
                next.insert(rest, value);
            }
        }
    }

    /// The values at a unit.
    pub fn at(&self, unit: &[Segment]) -> &[V] {
        let mut node = self;
        for segment in unit {
            match node.inside.get(segment) {
                Some(next) => node = next,
                None => return &[],
            }
        }
        &node.values
    }

    /// The values at a unit and at those above it, from the top.
    pub fn at_or_above<'t>(&'t self, unit: &'t [Segment]) -> impl Iterator<Item = &'t V> {
        let mut node = Some(self);
        let mut rest = unit.iter();
        std::iter::from_fn(move || {
            let current = node.take()?;
            node = rest.next().and_then(|segment| current.inside.get(segment));
            Some(&current.values)
        })
        .flatten()
    }

    /// The values at a unit and at those below it, in order.
    pub fn at_or_below<'t>(&'t self, unit: &[Segment]) -> impl Iterator<Item = &'t V> {
        let mut node = Some(self);
        for segment in unit {
            node = node.and_then(|node| node.inside.get(segment));
        }
        let mut pending: Vec<&UnitTree<V>> = node.into_iter().collect();
        std::iter::from_fn(move || {
            let node = pending.pop()?;
            pending.extend(node.inside.values().rev());
            Some(&node.values)
        })
        .flatten()
    }

    /// Whether a value is at, above or below a unit.
    pub fn meets(&self, unit: &[Segment]) -> bool {
        self.at_or_above(unit).next().is_some() || self.at_or_below(unit).next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Unit;

    #[test]
    fn values_are_found_from_above_and_from_below() {
        let mut tree = UnitTree::default();
        for (text, value) in [
            ("a.b", 1),
            ("a.b.c", 2),
            ("a.d", 3),
            ("*", 4),
            ("e[k=v].f", 5),
        ] {
            tree.insert(&Unit::parse(text).unwrap().0, value);
        }
        for (text, above, below, meets) in [
            ("a.b", &[4, 1][..], &[1, 2][..], true),
            ("a", &[4], &[1, 2, 3], true),
            ("a.b.c.d", &[4, 1, 2], &[], true),
            ("*", &[4], &[4, 1, 2, 3, 5], true),
            ("e", &[4], &[5], true),
        ] {
            let unit = Unit::parse(text).unwrap();
            let found: Vec<i32> = tree.at_or_above(&unit.0).copied().collect();
            assert_eq!(found, above, "{text}");
            let found: Vec<i32> = tree.at_or_below(&unit.0).copied().collect();
            assert_eq!(found, below, "{text}");
            assert_eq!(tree.meets(&unit.0), meets, "{text}");
        }
        let mut tree = UnitTree::default();
        tree.insert(&Unit::parse("a.b").unwrap().0, 1);
        assert!(!tree.meets(&Unit::parse("a.c").unwrap().0));
    }
}
