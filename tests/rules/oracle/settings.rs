//! The settings of a kind, read from its profile (docs/profiles-reference.md).

use std::collections::BTreeMap;

use serde_json::Value;

use super::delegation::Delegation;
use super::existing::References;
use super::limits::{Limit, limits};
use super::objects::{at, normal};
use super::presets::filled;
use super::refused::Exclusive;

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
    RejectAll,
}

/// How far up the fold goes (specification 6.3).
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    AllLevels,
    /// The levels, if they are listed.
    ClosestParent(Option<Vec<String>>),
}

/// Which references into other namespaces a kind allows (specification 3.1, 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrossNamespace {
    Never,
    ReferenceGrant,
    Any,
    Clients,
}

/// A kind that policies may target.
#[derive(Clone, Debug)]
pub struct Target {
    pub group: String,
    pub kind: String,
    pub sections: bool,
    /// Ports are named by number (specification 3.6).
    pub ports: bool,
    pub fields: Vec<String>,
    pub without: Vec<String>,
    /// Expressions that must be true.
    pub validations: Vec<String>,
    /// All of them are looked at again after a merge (specification 2.13).
    pub merged: bool,
    pub root_only: bool,
}

/// What comes before age (specification 4.5).
#[derive(Clone, Debug)]
pub struct OrderKey {
    pub annotation: Option<String>,
    pub field: Option<String>,
    pub descending: bool,
    pub values: Option<Vec<String>>,
}

/// A section of a resource kind (specification 2.14).
#[derive(Clone, Debug)]
pub struct Section {
    pub name: String,
    pub field: String,
    /// A field, values, and whether it has one of them or none.
    pub condition: Option<(String, Vec<String>, bool)>,
}

/// The settings of a kind.
#[derive(Clone, Debug)]
pub struct Settings {
    pub group: String,
    /// The resource kind.
    pub kind: String,
    pub section: Option<Section>,
    pub cluster: bool,
    pub class: Class,
    pub controllers: Vec<String>,
    pub mesh: bool,
    /// `None`: every level, or no level is named.
    pub effective: Option<String>,
    /// A Direct kind that names no level: the target and its sections (specification 7.2).
    pub by_target: bool,
    pub reaches: Vec<String>,
    /// `None`: the default.
    pub targets: Option<Vec<Target>>,
    /// A derived profile of a cluster-scoped kind: a GatewayClass is a target, too (specification 3.1).
    pub classes_too: bool,
    pub virtual_targets: Vec<(String, String)>,
    pub by_filter: bool,
    pub by_namespace: bool,
    pub root_namespace: Option<String>,
    pub workload_selector: Option<String>,
    pub unnamed_rules: Option<String>,
    pub cross_namespace: CrossNamespace,
    pub max_targets: usize,
    /// A policy on a whole Gateway reaches the listeners of its ListenerSets (specification 7.5).
    pub from_gateway: bool,
    /// A section of a Gateway may be a listener of its ListenerSets (specification 7.5).
    pub gateway_sections: bool,
    /// Policies on listeners of one port conflict (specification 7.6).
    pub by_port: bool,
    /// Where bare rules stand.
    pub path: String,
    pub exclude: Vec<String>,
    pub defaults_names: Vec<String>,
    pub overrides_names: Vec<String>,
    pub both_blocks: bool,
    pub mix_with_bare: bool,
    pub when: Option<String>,
    pub unset: Option<String>,
    pub strategies: Vec<Strategy>,
    /// Names, or paths from the root, of the field that chooses a strategy.
    pub fields: Vec<String>,
    pub annotation: Option<String>,
    pub owner_lower: bool,
    pub values: BTreeMap<String, String>,
    pub default: Option<String>,
    pub rule_maps: Vec<String>,
    pub list_keys: BTreeMap<String, String>,
    /// Merged lists have the order of a strategic merge patch (specification 5.13).
    pub patch_order: bool,
    /// Who precedes where a Route delegates (1.8).
    pub delegation: Option<Delegation>,
    /// The schema of an object of the kind, for Structural.
    pub schema: Option<Value>,
    pub atomic_paths: Vec<String>,
    pub reducers: Vec<PathReducer>,
    /// Fields of which several apply: path, key, and what turns all off (specification 5.11).
    pub instances: Vec<(String, String, Option<String>)>,
    pub top_down: bool,
    pub span: Span,
    pub same_target: SameTarget,
    pub order: Vec<OrderKey>,
    /// An empty policy takes part: Blocking, or ByStrategy (5.6, 5.8).
    pub blocking: bool,
    /// Only with an atomic strategy does an empty policy take the place of what is above it (5.8).
    pub by_strategy: bool,
    pub empty_unless: Vec<String>,
    /// Path in the rules, and what is there if a policy that merges leaves it out (5.10).
    pub field_defaults: Vec<(String, Value)>,
    /// Path in the object, path in the rules.
    pub own_fields: Vec<(String, String)>,
    /// Path in the object, path in the rules: they take the place of what policies have there.
    pub own_replacements: Vec<(String, String)>,
    pub references: Vec<References>,
    pub exclusive: Vec<Exclusive>,
    pub trust_status: bool,
    pub limits: Vec<Limit>,
    /// How Services name their waypoints (2.12), as written; null: the kind has none.
    pub waypoints: Value,
    /// Policies that are being deleted do not count (specification 1.7).
    pub ignores_deleted: bool,
    /// Gateway, Target or None (specification 10).
    pub ancestor: String,
}

/// A reducer at a path, and the strategies under which it applies (5.9).
#[derive(Clone, Debug)]
pub struct PathReducer {
    pub path: String,
    pub how: Reducer,
    pub strategies: Vec<Strategy>,
}

/// A reducer: its name, or its expression in CEL.
#[derive(Clone, Debug, PartialEq)]
pub enum Reducer {
    Named(String),
    Cel(String),
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

/// The own fields that replace values, or the others.
fn entries(value: &Value, replace: bool) -> Value {
    let items = value.as_array().into_iter().flatten();
    let chosen = items.filter(|item| (item["mode"] == "Replace") == replace);
    chosen.cloned().collect()
}

fn references(value: &Value) -> References {
    References {
        path: text(&value["path"]).unwrap(),
        group: text(&value["group"]).unwrap_or_default(),
        kind: text(&value["kind"]).unwrap_or("Service".to_owned()),
        one_is_enough: value["oneIsEnough"] == true,
        fail_open: text(&value["failOpen"]),
        reason: text(&value["reason"]).unwrap_or("Invalid".to_owned()),
    }
}

/// Without `strategies` a reducer applies under Custom.
fn reducers(value: &Value) -> Vec<PathReducer> {
    let items = value.as_array().into_iter().flatten();
    let how = |reduce: &Value| match text(reduce) {
        Some(name) => Some(Reducer::Named(name)),
        None => text(&reduce["cel"]).map(Reducer::Cel),
    };
    let under = |item: &Value| match item["strategies"].is_array() {
        true => texts(&item["strategies"]),
        false => ["CustomDefaults", "CustomOverrides"]
            .map(str::to_owned)
            .into(),
    };
    let reducer = |item: &Value| {
        Some(PathReducer {
            path: text(&item["path"])?,
            how: how(&item["reduce"])?,
            strategies: under(item)
                .iter()
                .map(|name| strategy(name).unwrap())
                .collect(),
        })
    };
    items.filter_map(reducer).collect()
}

fn section(value: &Value) -> Option<Section> {
    let name = text(&value["name"])?;
    let condition = &value["where"];
    let among = condition["values"].is_array();
    let values = texts(&condition[if among { "values" } else { "not" }]);
    Some(Section {
        field: text(&value["field"]).unwrap_or_else(|| format!("spec.{name}")),
        condition: text(&condition["field"]).map(|field| (field, values, among)),
        name,
    })
}

/// Path, key (empty: the policy), and the field that turns all off.
fn instances(value: &Value) -> Vec<(String, String, Option<String>)> {
    let items = value.as_array().into_iter().flatten();
    items
        .filter_map(|item| {
            Some((
                text(&item["path"])?,
                text(&item["key"]).unwrap_or_default(),
                text(&item["disable"]),
            ))
        })
        .collect()
}

fn order(value: &Value) -> Vec<OrderKey> {
    let items = value.as_array().into_iter().flatten();
    let key = |item: &Value| OrderKey {
        annotation: text(&item["annotation"]),
        field: text(&item["field"]),
        descending: item["descending"] == true,
        values: item["values"].as_array().map(|_| texts(&item["values"])),
    };
    items.map(key).collect()
}

impl Settings {
    /// Reads a profile document; `definition` is the CRD of its kind.
    #[allow(
        clippy::too_many_lines,
        reason = "one step after another, each of a few lines"
    )]
    pub fn read(document: &Value, definition: Option<&Value>) -> Self {
        let spec = filled(document, definition);
        let (rules, choice) = (&spec["rules"], &spec["strategy"]);
        let strategies = strategies(&spec["strategies"]);
        let structural = strategies
            .iter()
            .any(|s| s.granularity == Granularity::Structural);
        let attach = texts(&spec["attach"]);
        let mut fields = texts(&choice["field"]);
        fields.extend(text(&choice["field"]));
        // With one fixed strategy there is no field unless the profile names one (11.6).
        if choice["usual"] == true && strategies.len() == 1 {
            fields.clear();
        }
        let scope = definition.map_or(&spec["scope"], |crd| &crd["spec"]["scope"]);
        let (group, kind) = (&spec["policy"]["group"], &spec["policy"]["kind"]);
        let mut targets: Option<Vec<Target>> = spec["targets"]
            .as_array()
            .map(|all| all.iter().map(target).collect());
        // Virtual targets are targets (3.2).
        for (group, kind) in kinds(&spec["virtualTargets"]) {
            let listed = targets.iter_mut();
            for all in listed.filter(|all| !all.iter().any(|t| t.group == group && t.kind == kind))
            {
                all.push(target(
                    &serde_json::json!({"group": group, "kind": kind, "sections": false}),
                ));
            }
        }
        let mut named = targets.iter().flatten();
        let sets = targets.is_none() || named.any(|target| target.kind == "ListenerSet");
        let apart = class(&spec["class"]) == Class::Direct && sets;
        Self {
            group: text(group).unwrap_or_default(),
            kind: text(kind).unwrap(),
            section: section(&spec["policy"]["section"]),
            cluster: scope == "Cluster",
            class: class(&spec["class"]),
            controllers: texts(&spec["controllers"]),
            mesh: spec["mesh"].as_bool().unwrap(),
            effective: text(&spec["effectiveTarget"]).filter(|level| level != "Every"),
            by_target: spec["class"] == "Direct" && spec["effectiveTarget"].is_null(),
            reaches: texts(&spec["namespaceReaches"]),
            targets,
            classes_too: spec["derivedForClusterScope"] == true,
            virtual_targets: kinds(&spec["virtualTargets"]),
            by_filter: attach.iter().any(|form| form == "filter"),
            by_namespace: attach.iter().any(|form| form == "namespace"),
            root_namespace: text(&spec["rootNamespace"]),
            workload_selector: text(&spec["workloadSelector"]),
            unnamed_rules: text(&spec["unnamedRules"]),
            cross_namespace: cross_namespace(&spec["crossNamespace"]),
            max_targets: spec["maxTargets"].as_u64().unwrap() as usize,
            from_gateway: spec["listenerSets"]["fromGateway"]
                .as_bool()
                .unwrap_or(!apart),
            gateway_sections: spec["listenerSets"]["gatewaySections"] == true,
            by_port: spec["conflicts"] == "Port",
            path: text(&rules["path"]).unwrap(),
            exclude: texts(&rules["exclude"]),
            defaults_names: texts(&rules["defaults"]),
            overrides_names: texts(&rules["overrides"]),
            both_blocks: rules["bothBlocks"] == true,
            mix_with_bare: rules["mixWithBare"] == true,
            when: text(&rules["when"]),
            unset: text(&rules["unset"]),
            fields,
            annotation: text(&choice["annotation"]),
            owner_lower: choice["owner"] == "Lower",
            values: text_map(&choice["values"]),
            default: text(&choice["default"]),
            rule_maps: texts(&spec["ruleMaps"])
                .into_iter()
                .chain(instances(&spec["instances"]).into_iter().map(|i| i.0))
                .collect(),
            patch_order: spec["listOrder"] == "StrategicMergePatch",
            delegation: Delegation::read(&spec["delegation"]),
            list_keys: if structural {
                text_map(&spec["listKeys"])
            } else {
                BTreeMap::new()
            },
            schema: definition.filter(|_| structural).and_then(stored_schema),
            strategies,
            atomic_paths: texts(&spec["atomicPaths"]),
            reducers: reducers(&spec["reducers"]),
            instances: instances(&spec["instances"]),
            top_down: spec["fold"] == "TopDown",
            span: span(&spec["span"]),
            same_target: same_target(&spec["sameTarget"]),
            order: order(&spec["order"]),
            blocking: spec["empty"] == "Blocking" || spec["empty"] == "ByStrategy",
            by_strategy: spec["empty"] == "ByStrategy",
            empty_unless: texts(&spec["emptyUnless"]),
            field_defaults: spec["fieldDefaults"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| (text(&item["path"]).unwrap(), item["value"].clone()))
                .collect(),
            own_fields: pairs(&entries(&spec["ownFields"], false), "object", "policy"),
            own_replacements: pairs(&entries(&spec["ownFields"], true), "object", "policy"),
            references: spec["references"]
                .as_array()
                .into_iter()
                .flatten()
                .map(references)
                .collect(),
            exclusive: spec["exclusive"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|item| Exclusive {
                    fields: texts(&item["fields"]),
                    fail_open: text(&item["failOpen"]),
                })
                .collect(),
            trust_status: spec["trustStatus"] == true,
            limits: limits(&spec["limits"]),
            waypoints: spec["waypoints"].clone(),
            ignores_deleted: spec["whileDeleting"] == "Ignored",
            ancestor: text(&spec["status"]["ancestor"]).unwrap(),
        }
    }

    /// `Kind.group`.
    pub fn long(&self) -> String {
        if self.group.is_empty() {
            return self.name();
        }
        format!("{}.{}", self.name(), self.group)
    }

    /// The kind with its section (specification 2.14).
    pub fn name(&self) -> String {
        match &self.section {
            Some(section) => format!("{}:{}", self.kind, section.name),
            None => self.kind.clone(),
        }
    }

    /// Whether an object of the resource kind is a policy (specification 2.14).
    pub fn reads(&self, body: &Value) -> bool {
        let Some(section) = &self.section else {
            return true;
        };
        let is_there = at(body, &section.field).is_some_and(|value| !value.is_null());
        let fits = section.condition.iter().all(|(field, values, among)| {
            let value = at(body, field).and_then(Value::as_str);
            value.is_some_and(|value| values.iter().any(|v| v == value)) == *among
        });
        is_there && fits
    }

    /// Whether the kind offers a granularity.
    pub fn offers(&self, granularity: Granularity) -> bool {
        self.strategies.iter().any(|s| s.granularity == granularity)
    }

    /// The finest granularity that the kind offers (9.2, 11.13); `None`: leaves.
    pub fn finest(&self) -> Option<Granularity> {
        if self.class != Class::Inherited {
            return None;
        }
        [
            Granularity::Patch,
            Granularity::Custom,
            Granularity::Structural,
            Granularity::Rule,
            Granularity::Field,
        ]
        .into_iter()
        .find(|granularity| self.offers(*granularity))
    }
}

/// The schema of the version that is stored.
fn stored_schema(definition: &Value) -> Option<Value> {
    let versions = definition["spec"]["versions"].as_array()?;
    let stored = versions.iter().find(|version| version["storage"] == true);
    let version = stored.or(versions.first())?;
    Some(version["schema"]["openAPIV3Schema"].clone())
}

fn kinds(value: &Value) -> Vec<(String, String)> {
    let items = value.as_array().into_iter().flatten();
    items
        .filter_map(|item| {
            Some((
                text(&item["group"]).unwrap_or_default(),
                text(&item["kind"])?,
            ))
        })
        .collect()
}

fn cross_namespace(value: &Value) -> CrossNamespace {
    match value.as_str() {
        Some("ReferenceGrant") => CrossNamespace::ReferenceGrant,
        Some("Any") => CrossNamespace::Any,
        Some("Clients") => CrossNamespace::Clients,
        _ => CrossNamespace::Never,
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

fn target(value: &Value) -> Target {
    let group = text(&value["group"]).unwrap_or_default();
    let (group, kind) = normal(&group, &text(&value["kind"]).unwrap());
    Target {
        group,
        kind,
        sections: value["sections"].as_bool().unwrap_or(true),
        ports: value["ports"] == true,
        fields: texts(&value["fields"]),
        without: texts(&value["without"]),
        validations: (value["validations"].as_array().into_iter().flatten())
            .filter_map(|entry| Some(entry["rule"].as_str()?.to_owned()))
            .collect(),
        merged: value["merged"] == true,
        root_only: value["namespaces"] == "Root",
    }
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
        Some("RejectAll") => SameTarget::RejectAll,
        _ => SameTarget::Established,
    }
}
