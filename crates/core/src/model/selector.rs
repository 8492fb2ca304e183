//! Label selectors of Kubernetes.

use serde_json::Value;

use super::MetadataMap;

/// A label selector. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
}

impl LabelSelector {
    /// Whether the selector depends on no other label than one.
    pub fn reads_only(&self, label: &str) -> bool {
        self.requirements.iter().all(|one| one.key == label)
    }

    /// Reads `matchLabels` and `matchExpressions`; other fields are ignored.
    ///
    /// # Errors
    /// Returns a description of the first malformed field.
    pub fn read(value: &Value) -> Result<Self, String> {
        let mut requirements = Vec::new();
        match value.get("matchLabels") {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                for (key, value) in labels {
                    let value = value.as_str().ok_or_else(|| {
                        format!("matchLabels: the value of `{key}` is not a string")
                    })?;
                    requirements.push(Requirement {
                        key: key.clone(),
                        operator: Operator::In(vec![value.to_owned()]),
                    });
                }
            }
            Some(_) => return Err("matchLabels is not a map".to_owned()),
        }
        match value.get("matchExpressions") {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                for item in items {
                    requirements.push(read_requirement(item)?);
                }
            }
            Some(_) => return Err("matchExpressions is not a list".to_owned()),
        }
        Ok(Self { requirements })
    }

    /// Reports whether labels satisfy every requirement.
    pub fn matches(&self, labels: &MetadataMap) -> bool {
        self.requirements.iter().all(|requirement| {
            let label = labels.get(&requirement.key);
            match &requirement.operator {
                Operator::In(values) => label.is_some_and(|l| values.iter().any(|v| v == l)),
                Operator::NotIn(values) => label.is_none_or(|l| values.iter().all(|v| v != l)),
                Operator::Exists => label.is_some(),
                Operator::DoesNotExist => label.is_none(),
            }
        })
    }
}

fn read_requirement(item: &Value) -> Result<Requirement, String> {
    let key = item
        .get("key")
        .and_then(Value::as_str)
        .ok_or("matchExpressions: an entry has no key")?;
    let values = || -> Result<Vec<String>, String> {
        let list = item.get("values").and_then(Value::as_array);
        let list: Option<Vec<String>> = list.and_then(|items| {
            items
                .iter()
                .map(|v| v.as_str().map(str::to_owned))
                .collect()
        });
        list.filter(|values| !values.is_empty())
            .ok_or_else(|| format!("matchExpressions: `{key}` needs a list of values"))
    };
    let operator = match item.get("operator").and_then(Value::as_str) {
        Some("In") => Operator::In(values()?),
        Some("NotIn") => Operator::NotIn(values()?),
        Some("Exists") => Operator::Exists,
        Some("DoesNotExist") => Operator::DoesNotExist,
        _ => {
            return Err(format!(
                "matchExpressions: operator of `{key}` must be In, NotIn, Exists or DoesNotExist"
            ));
        }
    };
    Ok(Requirement {
        key: key.to_owned(),
        operator,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn selects(selector: Value, labels: &[(&str, &str)]) -> bool {
        let mut map = MetadataMap::default();
        for (name, value) in labels {
            map.insert(name, value);
        }
        LabelSelector::read(&selector).unwrap().matches(&map)
    }

    #[test]
    fn operators_match_labels() {
        let tier = |operator, values| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        assert!(selects(json!({}), &[]));
        assert!(selects(json!({"matchLabels": {"a": "b"}}), &[("a", "b")]));
        assert!(!selects(json!({"matchLabels": {"a": "b"}}), &[("a", "c")]));
        assert!(selects(tier("In", json!(["x", "y"])), &[("tier", "y")]));
        assert!(!selects(tier("NotIn", json!(["x"])), &[("tier", "x")]));
        assert!(selects(tier("NotIn", json!(["x"])), &[]));
        assert!(!selects(tier("Exists", json!(null)), &[]));
        assert!(selects(tier("DoesNotExist", json!(null)), &[]));
    }

    #[test]
    fn malformed_selectors_are_errors() {
        for bad in [
            json!({"matchLabels": []}),
            json!({"matchLabels": {"a": 1}}),
            json!({"matchExpressions": [{"key": "a", "operator": "Like"}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            json!({"matchExpressions": [{"operator": "Exists"}]}),
        ] {
            assert!(LabelSelector::read(&bad).is_err(), "{bad}");
        }
    }
}
