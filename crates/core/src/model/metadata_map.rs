//! Labels and annotations.

use std::collections::BTreeMap;
use std::ops::Deref;

/// The labels or annotations of an object, by name. Most objects have none, and an empty map is one pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "a map is three pointers, also without entries"
)]
pub struct MetadataMap(Option<Box<BTreeMap<String, String>>>);

impl MetadataMap {
    /// Sets a value.
    pub fn insert(&mut self, name: String, value: String) {
        self.0.get_or_insert_default().insert(name, value);
    }
}

impl Deref for MetadataMap {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        static EMPTY: BTreeMap<String, String> = BTreeMap::new();
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl From<BTreeMap<String, String>> for MetadataMap {
    fn from(map: BTreeMap<String, String>) -> Self {
        Self((!map.is_empty()).then(|| Box::new(map)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_map_equals_none() {
        assert_eq!(MetadataMap::from(BTreeMap::new()), MetadataMap::default());
        let mut map = MetadataMap::default();
        assert_eq!(map.get("a"), None);
        map.insert("a".to_owned(), "b".to_owned());
        assert_eq!(map.get("a").map(String::as_str), Some("b"));
        let same = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        assert_eq!(map, MetadataMap::from(same));
    }
}
