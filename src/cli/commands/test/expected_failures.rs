//! Lists of cases that may fail: pending ones, and disputed ones.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::cli::{CliError, connect};

/// Cases by name: the list that names them, and why.
#[derive(Debug, Default)]
pub(in crate::cli) struct ExpectedFailures {
    cases: BTreeMap<String, (String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PendingCase {
    name: String,
    needs: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DisputedCase {
    name: String,
    reason: String,
}

impl ExpectedFailures {
    /// Reads a list; `word` is `pending` or `disputed`.
    pub fn read(&mut self, path: &Path, word: &str) -> Result<(), CliError> {
        for (line, value) in connect::read_values(path)? {
            let wrong = |e: serde_json::Error| {
                CliError::Unreadable(format!("{}:{line}: no list of cases: {e}", path.display()))
            };
            let cases: Vec<(String, String)> = if word == "pending" {
                let list: Vec<PendingCase> = serde_json::from_value(value).map_err(wrong)?;
                list.into_iter().map(|c| (c.name, c.needs)).collect()
            } else {
                let list: Vec<DisputedCase> = serde_json::from_value(value).map_err(wrong)?;
                list.into_iter().map(|c| (c.name, c.reason)).collect()
            };
            for (name, why) in cases {
                self.cases.insert(name, (word.to_owned(), why));
            }
        }
        Ok(())
    }

    /// The list that names a case, and why.
    pub fn of(&self, name: &str) -> Option<(&str, &str)> {
        let (list, why) = self.cases.get(name)?;
        Some((list, why))
    }

    /// Names that no case has, with their list.
    pub fn unused<'c>(&self, cases: impl Iterator<Item = &'c str>) -> Vec<(String, String)> {
        let known: Vec<&str> = cases.collect();
        self.cases
            .iter()
            .filter(|(name, _)| !known.contains(&name.as_str()))
            .map(|(name, (list, _))| (list.clone(), name.clone()))
            .collect()
    }
}
