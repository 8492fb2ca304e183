//! Prefixes of path names.

use super::{PathName, PathSyntaxError};

/// The name of a path that stands for the path itself and all paths below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathPrefix(String);

impl PathPrefix {
    /// Parses the name of a path.
    ///
    /// # Errors
    /// Returns the first syntax error of the name.
    pub fn parse(text: &str) -> Result<Self, PathSyntaxError> {
        PathName::parse(text).map(|path| Self(path.to_string()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether a path is this path or below it.
    pub fn covers(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&*self.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_whole_steps() {
        let prefix = PathPrefix::parse("gateways/a/gw").unwrap();
        assert!(prefix.covers("gateways/a/gw"));
        assert!(prefix.covers("gateways/a/gw/listeners/x"));
        assert!(!prefix.covers("gateways/a/gw2"));
        assert!(!prefix.covers("gateways/a"));
        assert!(PathPrefix::parse("gateways/a").is_err());
    }
}
