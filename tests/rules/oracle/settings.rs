//! What a profile says, as far as the oracle knows it (PROFILES.md). The generator writes all of
//! these fields, so that nothing here depends on a preset.

use std::collections::BTreeMap;

use serde_json::Value;

/// Which side of a pair wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Defaults,
    Overrides,
}

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    Atomic,
    Field,
    Rule,
    Patch,
    Structural,
    Custom,
}

/// How policies of a kind meet (specification 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Direct,
    Inherited,
    Listed,
}

/// Direction times granularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub granularity: Granularity,
    pub direction: Direction,
}

/// How policies of one node stand to each other (specification 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SameTarget {
    Established,
    OldestWins,
    RejectNewer,
    UnionOrReject,
}

/// How far up the fold goes (specification 6.3).
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    AllLevels,
    /// The levels, if they are listed.
    ClosestParent(Option<Vec<String>>),
}

/// The settings of a kind.
#[derive(Clone, Debug)]
pub struct Settings {
    pub kind: String,
    pub class: Class,
    pub controllers: Vec<String>,
    pub mesh: bool,
    /// `None`: every level, or no level is named.
    pub effective: Option<String>,
    /// A Direct kind that names no level: the target and its sections (specification 7.2).
    pub by_target: bool,
    pub reaches: Vec<String>,
    /// Kind of a target, and whether its sections may be named; `None`: the default.
    pub targets: Option<Vec<(String, bool)>>,
    pub defaults_names: Vec<String>,
    pub overrides_names: Vec<String>,
    pub when: Option<String>,
    pub unset: Option<String>,
    pub strategies: Vec<Strategy>,
    pub field: Option<String>,
    pub owner_lower: bool,
    pub values: BTreeMap<String, String>,
    pub default: Option<String>,
    pub rule_maps: Vec<String>,
    pub list_keys: BTreeMap<String, String>,
    /// Of the CRD's schema, for Structural: lists that are united, and places that are one unit.
    pub sets: Vec<String>,
    pub closed: Vec<String>,
    pub atomic_paths: Vec<String>,
    pub reducers: Vec<(String, String)>,
    pub top_down: bool,
    pub span: Span,
    pub same_target: SameTarget,
    pub blocking: bool,
    pub empty_unless: Vec<String>,
    /// Path in the object, path in the rules.
    pub own_fields: Vec<(String, String)>,
}

/// The name of a granularity, without case, spaces, `-` and `_` (specification 5.3).
pub fn granularity(name: &str) -> Option<Granularity> {
    Some(match bare(name).as_str() {
        "atomic" => Granularity::Atomic,
        "field" => Granularity::Field,
        "rule" => Granularity::Rule,
        "patch" => Granularity::Patch,
        "structural" => Granularity::Structural,
        "custom" => Granularity::Custom,
        _ => return None,
    })
}

/// The name of a strategy.
pub fn strategy(name: &str) -> Option<Strategy> {
    let name = bare(name);
    let (word, direction) = match name.strip_suffix("defaults") {
        Some(word) => (word, Direction::Defaults),
        None => (name.strip_suffix("overrides")?, Direction::Overrides),
    };
    Some(Strategy {
        granularity: granularity(word)?,
        direction,
    })
}

fn bare(name: &str) -> String {
    name.replace([' ', '-', '_'], "").to_lowercase()
}

/// Strings of a list.
pub fn texts(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn text_map(value: &Value) -> BTreeMap<String, String> {
    let fields = value.as_object().into_iter().flatten();
    fields
        .filter_map(|(k, v)| Some((k.clone(), text(v)?)))
        .collect()
}

fn pairs(value: &Value, first: &str, second: &str) -> Vec<(String, String)> {
    let items = value.as_array().into_iter().flatten();
    items
        .filter_map(|item| Some((text(&item[first])?, text(&item[second])?)))
        .collect()
}

/// Path and reducer; one in CEL by its expression.
fn reducers(value: &Value) -> Vec<(String, String)> {
    let items = value.as_array().into_iter().flatten();
    let how = |reduce: &Value| text(reduce).or_else(|| text(&reduce["cel"]));
    items
        .filter_map(|item| Some((text(&item["path"])?, how(&item["reduce"])?)))
        .collect()
}

impl Settings {
    /// Takes in what the kind's CRD says of its rules (specification 5.2, structural).
    pub fn with_definition(mut self, objects: &[Value]) -> Self {
        let structural = |s: &Strategy| s.granularity == Granularity::Structural;
        let ours = |o: &&Value| {
            o["kind"] == "CustomResourceDefinition" && o["spec"]["names"]["kind"] == *self.kind
        };
        let found = objects.iter().find(ours);
        let Some(crd) = found.filter(|_| self.strategies.iter().any(structural)) else {
            return self;
        };
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let rules = schema["properties"]["spec"]["properties"].as_object();
        for (name, node) in rules.into_iter().flatten() {
            if node["x-kubernetes-list-type"] == "set" {
                self.sets.push(name.clone());
            } else if let Some(key) = node["x-kubernetes-list-map-keys"][0].as_str() {
                self.list_keys.insert(name.clone(), key.to_owned());
            } else if node["x-kubernetes-map-type"] == "atomic"
                || node["additionalProperties"]["type"] == "integer"
            {
                self.closed.push(name.clone());
            }
        }
        self
    }

    /// Reads a profile document.
    pub fn read(document: &Value) -> Self {
        let spec = &document["spec"];
        let rules = &spec["rules"];
        let choice = &spec["strategy"];
        Self {
            kind: text(&spec["policy"]["kind"]).unwrap(),
            class: class(&spec["class"]),
            controllers: texts(&spec["controllers"]),
            mesh: spec["mesh"].as_bool().unwrap_or(true),
            effective: text(&spec["effectiveTarget"]).filter(|level| level != "Every"),
            by_target: spec["class"] == "Direct" && spec["effectiveTarget"].is_null(),
            reaches: texts(&spec["namespaceReaches"]),
            targets: spec["targets"]
                .as_array()
                .map(|all| all.iter().map(target).collect()),
            defaults_names: texts(&rules["defaults"]),
            overrides_names: texts(&rules["overrides"]),
            when: text(&rules["when"]),
            unset: text(&rules["unset"]),
            strategies: strategies(&spec["strategies"]),
            field: text(&choice["field"]),
            owner_lower: choice["owner"] == "Lower",
            values: text_map(&choice["values"]),
            default: text(&choice["default"]),
            rule_maps: texts(&spec["ruleMaps"]),
            list_keys: text_map(&spec["listKeys"]),
            sets: Vec::new(),
            closed: Vec::new(),
            atomic_paths: texts(&spec["atomicPaths"]),
            reducers: reducers(&spec["reducers"]),
            top_down: spec["fold"] == "TopDown",
            span: span(&spec["span"]),
            same_target: same_target(&spec["sameTarget"]),
            blocking: spec["empty"] == "Blocking",
            empty_unless: texts(&spec["emptyUnless"]),
            own_fields: pairs(&spec["ownFields"], "object", "policy"),
        }
    }
}

fn class(value: &Value) -> Class {
    match value.as_str() {
        Some("Direct") => Class::Direct,
        Some("Listed") => Class::Listed,
        _ => Class::Inherited,
    }
}

/// The strategies; a kind that is not merged has none, and its rules are read whole.
fn strategies(value: &Value) -> Vec<Strategy> {
    let named: Vec<_> = texts(value).iter().filter_map(|s| strategy(s)).collect();
    let whole = Strategy {
        granularity: Granularity::Atomic,
        direction: Direction::Defaults,
    };
    if named.is_empty() { vec![whole] } else { named }
}

fn target(value: &Value) -> (String, bool) {
    (
        text(&value["kind"]).unwrap(),
        value["sections"].as_bool().unwrap_or(true),
    )
}

fn span(value: &Value) -> Span {
    match value {
        Value::Object(_) => Span::ClosestParent(Some(texts(&value["closestParent"]))),
        Value::String(name) if name == "ClosestParent" => Span::ClosestParent(None),
        _ => Span::AllLevels,
    }
}

fn same_target(value: &Value) -> SameTarget {
    match value.as_str() {
        Some("OldestWins") => SameTarget::OldestWins,
        Some("RejectNewer") => SameTarget::RejectNewer,
        Some("UnionOrReject") => SameTarget::UnionOrReject,
        _ => SameTarget::Established,
    }
}
