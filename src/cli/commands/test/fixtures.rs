//! Fixtures: objects that test cases of a folder share (`docs/testing.md`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::cli::{CliError, connect};

/// The file name of the fixtures of a folder.
pub(super) const FIXTURE_FILE: &str = "fixtures.yaml";
/// The prefix of the name of a fixture in a case. Names without it are built-in profiles.
const PREFIX: &str = "fixture:";

/// The fixtures of a file.
#[derive(Debug)]
pub(super) struct Fixtures {
    path: PathBuf,
    by_name: BTreeMap<String, Fixture>,
}

#[derive(Debug)]
struct Fixture {
    line: u32,
    objects: Vec<Value>,
    is_used: bool,
}

/// A document of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixtureDocument {
    fixture: String,
    object: Option<Value>,
    objects: Option<Vec<Value>>,
}

impl Fixtures {
    /// Reads the fixtures of a file.
    ///
    /// # Errors
    /// The file cannot be read, a document is not a fixture, two fixtures have one name, or a
    /// fixture names another.
    pub(super) fn read(path: &Path) -> Result<Self, CliError> {
        let mut fixtures = Self {
            path: path.to_owned(),
            by_name: BTreeMap::new(),
        };
        for (line, value) in connect::read_values(path)? {
            let invalid = |message: String| {
                CliError::Unreadable(format!("{}:{line}: {message}", path.display()))
            };
            let document: FixtureDocument = serde_json::from_value(value)
                .map_err(|e| invalid(format!("invalid fixture: {e}")))?;
            let name = document.fixture.clone();
            let objects = document
                .into_objects()
                .map_err(|e| invalid(format!("invalid fixture `{name}`: {e}")))?;
            let fixture = Fixture {
                line,
                objects,
                is_used: false,
            };
            if let Some(other) = fixtures.by_name.insert(name.clone(), fixture) {
                return Err(invalid(format!(
                    "duplicate fixture `{name}`, also at line {}: rename one",
                    other.line
                )));
            }
        }
        Ok(fixtures)
    }

    /// Replaces the names of fixtures in `objects` and `profiles` of a case by their objects.
    ///
    /// # Errors
    /// There is no fixture with a name.
    pub(super) fn expand(&mut self, case: &mut Value) -> Result<(), String> {
        for field in ["profiles", "objects"] {
            let Some(items) = case.get_mut(field).and_then(Value::as_array_mut) else {
                continue;
            };
            let mut expanded = Vec::with_capacity(items.len());
            for item in items.drain(..) {
                match fixture_name(&item) {
                    Some(name) => expanded.extend(self.use_fixture(name)?.iter().cloned()),
                    None => expanded.push(item),
                }
            }
            *items = expanded;
        }
        Ok(())
    }

    /// Returns the objects of a fixture, and marks it as used.
    fn use_fixture(&mut self, name: &str) -> Result<&[Value], String> {
        match self.by_name.get_mut(name) {
            Some(fixture) => {
                fixture.is_used = true;
                Ok(&fixture.objects)
            }
            None => Err(format!(
                "unknown fixture `{name}`: {} does not define it",
                self.path.display()
            )),
        }
    }

    /// Checks that some case uses each fixture.
    ///
    /// # Errors
    /// The fixtures that no case uses, each with its line.
    pub(super) fn check_use(&self) -> Result<(), CliError> {
        let unused: Vec<String> = self
            .by_name
            .iter()
            .filter(|(_, fixture)| !fixture.is_used)
            .map(|(name, fixture)| {
                format!(
                    "{}:{}: unused fixture `{name}`: remove it",
                    self.path.display(),
                    fixture.line
                )
            })
            .collect();
        if unused.is_empty() {
            Ok(())
        } else {
            Err(CliError::Unreadable(unused.join("\n")))
        }
    }
}

impl FixtureDocument {
    /// The objects of the fixture.
    fn into_objects(self) -> Result<Vec<Value>, String> {
        let objects = match (self.object, self.objects) {
            (Some(object), None) => vec![object],
            (None, Some(objects)) if !objects.is_empty() => objects,
            _ => return Err("set either `object` or `objects`".to_owned()),
        };
        for object in &objects {
            if let Some(name) = fixture_name(object) {
                return Err(format!(
                    "it names the fixture `{name}`: a fixture contains only objects"
                ));
            }
            if !object.is_object() {
                return Err(format!("`{object}` is not an object"));
            }
        }
        Ok(objects)
    }
}

/// Whether a case names any fixture.
pub(super) fn names_fixtures(case: &Value) -> bool {
    let fields = ["profiles", "objects"];
    let lists = fields
        .iter()
        .filter_map(|field| case.get(*field)?.as_array());
    lists.flatten().any(|item| fixture_name(item).is_some())
}

/// The name of the fixture for which an item of a list stands.
fn fixture_name(item: &Value) -> Option<&str> {
    item.as_str()?.strip_prefix(PREFIX)
}
