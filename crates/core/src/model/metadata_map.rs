//! Labels and annotations.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use thin_vec::ThinVec;

use super::{Str, shared_name};

/// The labels or annotations of an object, by name. An empty one is one pointer, the others a list with two more for each
/// entry: objects that are read on one thread share most of their names and values, as far as these are not long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataMap(ThinVec<(Str, Str)>);

impl MetadataMap {
    /// The value with a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        let place = self.place(name).ok()?;
        self.0.get(place).map(|(_, value)| &**value)
    }

    /// Sets a value.
    pub fn insert(&mut self, name: &str, value: &str) {
        let value = shared_name(value);
        match self.place(name) {
            Ok(place) => {
                if let Some(entry) = self.0.get_mut(place) {
                    entry.1 = value;
                }
            }
            Err(place) => self.0.insert(place, (shared_name(name), value)),
        }
    }

    /// The names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The place of a name, or where it would be.
    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| (**other).cmp(name))
    }
}

impl From<BTreeMap<String, String>> for MetadataMap {
    fn from(map: BTreeMap<String, String>) -> Self {
        let shared = map
            .iter()
            .map(|(name, value)| (shared_name(name), shared_name(value)));
        Self(shared.collect())
    }
}

impl Serialize for MetadataMap {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_in_order_and_found_by_name() {
        let mut map = MetadataMap::default();
        assert_eq!((map.get("a"), map.is_empty()), (None, true));
        map.insert("b", "1");
        map.insert("a", "2");
        map.insert("b", "3");
        assert_eq!((map.get("a"), map.get("b")), (Some("2"), Some("3")));
        assert_eq!(map.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "3")]);
        assert_eq!(serde_json::to_string(&map).unwrap(), r#"{"a":"2","b":"3"}"#);
        let entries = [("b", "3"), ("a", "2")];
        let entries = entries.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(MetadataMap::from(BTreeMap::from(entries)), map);
        assert_eq!(MetadataMap::from(BTreeMap::new()), MetadataMap::default());
    }
}
