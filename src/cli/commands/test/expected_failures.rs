//! Lists of cases that are expected to fail: pending ones and disputed ones.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::cli::{CliError, connect};

/// The expected failures by case name: the list that contains the case, and the reason.
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
    /// Reads a list; `list` is `pending` or `disputed`.
    ///
    /// # Errors
    /// The file cannot be read, or is not such a list.
    pub fn read(&mut self, path: &Path, list: &str) -> Result<(), CliError> {
        for (line, value) in connect::read_values(path)? {
            let invalid = |e: serde_json::Error| {
                CliError::Unreadable(format!(
                    "{}:{line}: invalid list of cases: {e}",
                    path.display()
                ))
            };
            let cases: Vec<(String, String)> = if list == "pending" {
                let entries: Vec<PendingCase> = serde_json::from_value(value).map_err(invalid)?;
                entries.into_iter().map(|c| (c.name, c.needs)).collect()
            } else {
                let entries: Vec<DisputedCase> = serde_json::from_value(value).map_err(invalid)?;
                entries.into_iter().map(|c| (c.name, c.reason)).collect()
            };
            for (name, reason) in cases {
                self.cases.insert(name, (list.to_owned(), reason));
            }
        }
        Ok(())
    }

    /// Returns the list that contains a case, and the reason.
    pub fn of(&self, name: &str) -> Option<(&str, &str)> {
        let (list, reason) = self.cases.get(name)?;
        Some((list, reason))
    }

    /// Returns the listed names that no case has, each with its list.
    pub fn unused<'c>(&self, cases: impl Iterator<Item = &'c str>) -> Vec<(String, String)> {
        let names: Vec<&str> = cases.collect();
        self.cases
            .iter()
            .filter(|(name, _)| !names.contains(&name.as_str()))
            .map(|(name, (list, _))| (list.clone(), name.clone()))
            .collect()
    }
}
