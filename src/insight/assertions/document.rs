//! Assertions as they are written, and compiled for a world.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{LazyLock, Mutex, PoisonError};

use hashbrown::HashMap;
use jiff::civil::Date;
use serde::Deserialize;
use serde_json::Value;

use super::expectation::{Expectation, ObjectVariable, Pattern};
use super::filter::{PathFilter, RootFilter};
use crate::insight::failure::shortened;
use crate::insight::kind_names::{kinds_named, nearest_kind};
use crate::insight::{QuerySubject, Visibility};
use entail_core::effective::{PolicyKind, World};
use entail_core::expr::Expression;
use entail_core::model::{GroupKind, LabelSelector, Level, Object, ObjectKey, Str, groups};
use entail_core::profile::{EffectiveTarget, Profile};
use entail_core::store::ROUTE_KINDS;

/// The levels of the paths that assertions can be about.
const LEVELS: [Level; 6] = [
    Level::Gateway,
    Level::Listener,
    Level::Route,
    Level::RouteRule,
    Level::Backend,
    Level::BackendPort,
];

/// Maximum number of entries of each list of an assertion.
const MAX_ENTRIES: usize = 256;
/// Maximum length of a text, in bytes.
const MAX_TEXT: usize = 1_024;
/// Maximum size of the patterns of an assertion, in bytes of JSON.
const MAX_PATTERNS: usize = 16 * 1_024;
/// Maximum number of expressions that are kept compiled.
const MAX_COMPILED: usize = 1_000;
/// Maximum number of policy kinds that an assertion reads.
const MAX_POLICIES: usize = 16;

/// The policy kinds that an assertion reads, each with the name of its variable.
type Variables = Vec<(String, GroupKind)>;

/// An assertion, compiled for a world.
#[derive(Clone, Debug)]
pub struct Assertion {
    /// What the assertion is for; empty if that is not written.
    pub description: String,
    /// Whether changes that break it are to be denied.
    pub enforce: bool,
    /// The paths that it is about.
    pub(super) filter: PathFilter,
    /// The policy kinds whose effective policies the expectation reads, each with the name of its variable.
    pub(super) policies: Variables,
    pub(super) expectation: Expectation,
    pub(super) exceptions: Vec<Exception>,
    /// Why the assertion cannot be decided: the kind of a variable has no profile.
    pub(super) unknown: Option<String>,
}

/// An object whose paths need not be as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The object as it is written.
    pub name: String,
    pub(super) object: ObjectKey,
    pub(super) section: Option<String>,
    /// Why the object is excepted.
    pub reason: String,
    /// The last day on which the exception counts; `None` if it does not end.
    pub expires: Option<Date>,
}

/// The `spec` of an assertion.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    #[serde(default)]
    description: String,
    #[serde(default)]
    paths: Paths,
    policies: BTreeMap<String, String>,
    expect: Expect,
    #[serde(default)]
    except: Vec<Except>,
    #[serde(default)]
    enforce: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Paths {
    level: Option<String>,
    gateways: Option<Roots>,
    services: Option<Roots>,
    #[serde(default)]
    hostnames: Vec<String>,
    namespaces: Option<Selector>,
    #[serde(default)]
    kinds: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Roots {
    #[serde(default)]
    names: Vec<String>,
    match_labels: Option<Value>,
    match_expressions: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    match_labels: Option<Value>,
    match_expressions: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expect {
    cel: Option<String>,
    r#match: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Except {
    object: String,
    reason: String,
    expires: Option<String>,
}

impl Assertion {
    /// Whether the result depends on Namespaces, besides which there are.
    pub(super) fn reads_namespaces(&self) -> bool {
        self.expectation.reads(ObjectVariable::Namespace) || self.filter.namespaces.is_some()
    }

    /// Whether the result depends on what Gateways say, besides which there are and what is attached to them.
    pub(super) fn reads_gateways(&self) -> bool {
        let roots = [&self.filter.gateways, &self.filter.services];
        let mut roots = roots.into_iter().flatten();
        self.expectation.reads(ObjectVariable::Gateway) || roots.any(RootFilter::has_labels)
    }

    /// Whether the result depends on what listeners say.
    pub(super) fn reads_listeners(&self) -> bool {
        self.expectation.reads(ObjectVariable::Listener) || !self.filter.hostnames.is_empty()
    }

    /// Compiles an assertion. One that is in a namespace is about the paths of this namespace.
    ///
    /// # Errors
    /// The object cannot be read, or a field is malformed or unknown. The message names it.
    pub fn read(
        object: &Object,
        world: &World,
        visibility: &dyn Visibility,
    ) -> Result<Self, String> {
        if let Some(why) = &object.unreadable {
            return Err(why.to_string());
        }
        let spec = object.body.get("spec").unwrap_or_default();
        let spec: Spec = serde_json::from_value(spec).map_err(|error| format!("spec: {error}"))?;
        spec.check_sizes()?;
        let (policies, unknown) = variables(spec.policies, world, visibility)?;
        let expectation = expectation(spec.expect, &policies)?;
        let [_, namespaced] = GroupKind::assertions();
        let key = &object.key;
        let own_namespace = (key.kind == namespaced).then(|| key.namespace.clone());
        let level = level(world, &spec.paths, &policies)?;
        let filter = filter(spec.paths, level, own_namespace, world)?;
        if filter.own_namespace.is_some() {
            check_own(&filter, &expectation)?;
        }
        if let Some(variable) = expectation.variable_below(filter.level) {
            return Err(format!(
                "expect.cel: paths of the level `{}` have no `{variable}`",
                filter.level
            ));
        }
        let exceptions = spec.except.into_iter();
        let exceptions = exceptions.map(|except| except.read(world, visibility));
        Ok(Self {
            description: spec.description,
            enforce: spec.enforce,
            filter,
            policies,
            expectation,
            exceptions: exceptions.collect::<Result<_, _>>()?,
            unknown,
        })
    }

    /// The exceptions that count on a day, with their indexes.
    pub(super) fn current_exceptions(
        &self,
        today: Date,
    ) -> impl Iterator<Item = (usize, &Exception)> {
        let exceptions = self.exceptions.iter().enumerate();
        exceptions.filter(move |(_, exception)| !exception.has_expired(today))
    }
}

impl Exception {
    /// Whether the exception does not count any more on a day.
    pub fn has_expired(&self, today: Date) -> bool {
        self.expires.is_some_and(|last| last < today)
    }
}

impl Spec {
    /// Checks the sizes of all parts: they decide what a check costs.
    fn check_sizes(&self) -> Result<(), String> {
        let roots = |roots: &Option<Roots>| roots.as_ref().map_or(0, |roots| roots.names.len());
        let counts = [
            ("policies", self.policies.len(), MAX_POLICIES),
            ("paths.hostnames", self.paths.hostnames.len(), MAX_ENTRIES),
            ("paths.kinds", self.paths.kinds.len(), MAX_ENTRIES),
            ("except", self.except.len(), MAX_ENTRIES),
            (
                "paths.gateways.names",
                roots(&self.paths.gateways),
                MAX_ENTRIES,
            ),
            (
                "paths.services.names",
                roots(&self.paths.services),
                MAX_ENTRIES,
            ),
        ];
        for (field, count, most) in counts {
            if count > most {
                return Err(format!("{field}: {count} entries; the maximum is {most}"));
            }
        }
        let texts = self
            .except
            .iter()
            .flat_map(|except| [&except.object, &except.reason]);
        if let Some(long) = texts
            .chain([&self.description])
            .find(|text| text.len() > MAX_TEXT)
        {
            let long = shortened(long);
            return Err(format!("`{long}` is longer than {MAX_TEXT} bytes"));
        }
        match self.policies.is_empty() {
            true => Err("policies: name at least one policy kind that `expect` reads".to_owned()),
            false => Ok(()),
        }
    }
}

impl Except {
    fn read(self, world: &World, visibility: &dyn Visibility) -> Result<Exception, String> {
        let of = |error: &str| format!("except: `{}`: {error}", self.object);
        if self.reason.trim().is_empty() {
            return Err(of("the reason is empty: say why the object is excepted"));
        }
        let subject = QuerySubject::read(&self.object, world, visibility);
        let Ok(QuerySubject::Object(object, section)) = subject else {
            return Err(of(
                "not an object: use `kind/namespace/name`, or `kind/namespace/name#section`",
            ));
        };
        let expires = self.expires.as_deref().map(|text| {
            let date = text.parse::<Date>();
            date.map_err(|_| of(&format!("`{text}` is not a date: use `YYYY-MM-DD`")))
        });
        let expires = expires.transpose()?;
        Ok(Exception {
            name: self.object,
            object,
            section,
            reason: self.reason,
            expires,
        })
    }
}

/// Finds the policy kinds of variables. Returns them with the reason why one cannot be decided, if there is one.
fn variables(
    policies: BTreeMap<String, String>,
    world: &World,
    visibility: &dyn Visibility,
) -> Result<(Variables, Option<String>), String> {
    let mut found = Vec::with_capacity(policies.len());
    let mut unknown = None;
    for (variable, kind) in policies {
        check_name(&variable)?;
        let kind = policy_kind(&kind, world, visibility)
            .map_err(|error| format!("policies.{variable}: {error}"))?;
        let profiled = world.profiled_kinds();
        let mut profiled = profiled.map(|kind| &kind.profile().policy);
        if !visibility.includes_kind(&kind) || !profiled.any(|profiled| *profiled == kind) {
            unknown.get_or_insert_with(|| format!("no profile describes the kind `{kind}`"));
        }
        found.push((variable, kind));
    }
    Ok((found, unknown))
}

/// Checks that an assertion in a namespace reads no objects of others: whoever may write it may see its results.
fn check_own(filter: &PathFilter, expectation: &Expectation) -> Result<(), String> {
    let reads = |variable| expectation.reads(variable);
    let field = if !filter.hostnames.is_empty() {
        Some("paths.hostnames")
    } else if [&filter.gateways, &filter.services]
        .into_iter()
        .flatten()
        .any(RootFilter::has_labels)
    {
        Some("labels of paths.gateways and paths.services")
    } else if reads(ObjectVariable::Gateway) || reads(ObjectVariable::Listener) {
        Some("`gateway` and `listener` in expect.cel")
    } else {
        None
    };
    match field {
        None => Ok(()),
        Some(field) => Err(format!(
            "{field}: an assertion in a namespace does not read Gateways: use a ClusterEffectivePolicyAssertion"
        )),
    }
}

/// Compiles an expression, or returns it as it was compiled before: that takes a thread.
fn compiled(source: String) -> Result<Expression, String> {
    static COMPILED: LazyLock<Mutex<HashMap<String, Expression>>> = LazyLock::new(Mutex::default);
    let known = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(expression) = known().get(&source) {
        return Ok(expression.clone());
    }
    let expression = Expression::compile(&source)?;
    let mut known = known();
    if known.len() >= MAX_COMPILED {
        known.clear();
    }
    known.insert(source, expression.clone());
    Ok(expression)
}

/// The level of the paths: the one that is written, or the one at which the effective policies of all kinds are complete,
/// Rules at least.
fn level(world: &World, paths: &Paths, policies: &[(String, GroupKind)]) -> Result<Level, String> {
    let needed: Vec<(&str, Level)> = policies
        .iter()
        .flat_map(|(variable, kind)| {
            let profiled = world.profiled_kinds().map(PolicyKind::profile);
            let own = profiled.filter(move |profile| profile.policy == *kind);
            own.map(move |profile| (&**variable, complete_level(profile)))
        })
        .collect();
    let Some(name) = &paths.level else {
        let (above, below): (Vec<_>, Vec<_>) = needed
            .iter()
            .partition(|(_, level)| *level < Level::Backend);
        if let ([(rule, _), ..], [(backend, level), ..]) = (above.as_slice(), below.as_slice()) {
            return Err(format!(
                "paths.level: `{rule}` takes effect on rules and `{backend}` on backends, which some rules lack: \
                 write an assertion for each, or `level: {level}` for rules with backends alone"
            ));
        }
        let levels = needed.iter().map(|(_, level)| *level);
        return Ok(levels.fold(Level::RouteRule, Level::max));
    };
    let level = match name.as_str() {
        // The name of the level that people use.
        "Rule" => Some(Level::RouteRule),
        name => Level::parse(name).filter(|level| LEVELS.contains(level)),
    };
    let level = level.ok_or_else(|| {
        let names: Vec<&str> = LEVELS.iter().map(|level| level.as_str()).collect();
        format!(
            "paths.level: `{}` is not one of {}",
            shortened(name),
            names.join(", ")
        )
    })?;
    // A mesh root counts as a listener, too.
    let is_mesh = paths.services.is_some() && paths.gateways.is_none();
    let reached = if is_mesh {
        level.max(Level::Listener)
    } else {
        level
    };
    match needed.iter().find(|(_, needed)| reached < *needed) {
        None => Ok(level),
        Some((variable, needed)) => Err(format!(
            "paths.level: `{variable}` takes effect at `{needed}`: policies below `{level}` would not count"
        )),
    }
}

/// The level at which effective policies are complete.
fn complete_level(profile: &Profile) -> Level {
    let is_of_backends = || {
        let kinds = ROUTE_KINDS.iter().map(|row| row.kind);
        let mut above = kinds.chain(["Gateway", "ListenerSet", "GatewayClass"]);
        !above.any(|kind| profile.targets_object(&GroupKind::new(groups::GATEWAY, kind)))
    };
    match profile.effective {
        EffectiveTarget::Level(level) => level,
        EffectiveTarget::Target if is_of_backends() => Level::Backend,
        EffectiveTarget::Target | EffectiveTarget::Every => Level::Gateway,
    }
}

/// Checks the name of a variable.
fn check_name(variable: &str) -> Result<(), String> {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_name = variable.starts_with(is_start)
        && variable.chars().all(|c| is_start(c) || c.is_ascii_digit());
    if !is_name {
        return Err(format!(
            "policies: `{variable}` is not the name of a variable: use letters, digits and `_`"
        ));
    }
    if ObjectVariable::parse(variable).is_some() {
        return Err(format!(
            "policies: `{variable}` is the name of an object of the path: use another one"
        ));
    }
    Ok(())
}

/// The policy kind that a name means: a kind, its plural, or `Kind.group`.
fn policy_kind(
    name: &str,
    world: &World,
    visibility: &dyn Visibility,
) -> Result<GroupKind, String> {
    let exact = GroupKind::parse(name);
    let mut named = kinds_named(name, world, visibility);
    let policies: BTreeSet<&GroupKind> = world
        .profiled_kinds()
        .map(|kind| &kind.profile().policy)
        .filter(|kind| visibility.includes_kind(kind))
        .collect();
    if policies.contains(&exact) {
        return Ok(exact);
    }
    let meant: Vec<&GroupKind> = policies
        .iter()
        .copied()
        .filter(|policy| named.iter().any(|kind| kind.names(policy)))
        .collect();
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] if !named.is_empty() => Ok(named.swap_remove(0)),
        [] if name.contains('.') => Ok(exact),
        [] => {
            let near = nearest_kind(name, world, visibility);
            let near = near.map(|near| format!(": did you mean `{near}`?"));
            Err(format!(
                "no policy kind `{name}`{}",
                near.unwrap_or_else(|| ": use `Kind.group`".to_owned())
            ))
        }
        several => {
            let names: Vec<String> = several.iter().map(|kind| format!("`{kind}`")).collect();
            Err(format!(
                "`{name}` means several kinds: use one of {}",
                names.join(", ")
            ))
        }
    }
}

fn expectation(expect: Expect, policies: &[(String, GroupKind)]) -> Result<Expectation, String> {
    let is_policy = |name: &str| policies.iter().any(|(variable, _)| variable == name);
    match (expect.cel, expect.r#match) {
        (Some(source), None) => {
            let expression =
                compiled(source).map_err(|error| format!("expect.cel: the expression {error}"))?;
            let mut objects = Vec::new();
            for name in expression.variables() {
                match ObjectVariable::parse(&name) {
                    Some(object) => objects.push(object),
                    None if is_policy(&name) => {}
                    None => {
                        return Err(format!(
                            "expect.cel: `{name}` is neither a variable of `policies` nor an object of the path ({})",
                            ObjectVariable::names()
                        ));
                    }
                }
            }
            Ok(Expectation::Cel {
                expression,
                objects,
            })
        }
        (None, Some(trees)) => {
            if let Some(name) = trees.keys().find(|name| !is_policy(name)) {
                return Err(format!(
                    "expect.match: `{name}` is not a variable of `policies`"
                ));
            }
            let is_empty = |tree: &Value| match tree {
                Value::Object(fields) => fields.is_empty(),
                Value::Array(items) => items.is_empty(),
                _ => false,
            };
            if trees.is_empty() || trees.values().any(is_empty) {
                return Err(
                    "expect.match: an empty pattern is a part of everything: name a field, or use `cel`"
                        .to_owned(),
                );
            }
            let size: usize = trees.values().map(|tree| tree.to_string().len()).sum();
            if size > MAX_PATTERNS {
                return Err(format!(
                    "expect.match: {size} bytes; the maximum is {MAX_PATTERNS}"
                ));
            }
            let patterns = trees.into_iter();
            Ok(Expectation::Match(
                patterns
                    .map(|(variable, tree)| Pattern { variable, tree })
                    .collect(),
            ))
        }
        _ => Err("expect: use either `cel` or `match`".to_owned()),
    }
}

fn filter(
    paths: Paths,
    level: Level,
    own_namespace: Option<Str>,
    world: &World,
) -> Result<PathFilter, String> {
    if level < Level::Route && !paths.kinds.is_empty() {
        return Err("paths.kinds: paths that end above Routes have no kind of Route".to_owned());
    }
    let hostnames = paths.hostnames.iter().map(|name| hostname(name));
    let kinds = paths.kinds.iter().map(|name| read_route_kind(name, world));
    let namespaces = paths.namespaces.map(|selector| {
        let read = labels(selector.match_labels, selector.match_expressions);
        read.map_err(|error| format!("paths.namespaces: {error}"))
    });
    Ok(PathFilter {
        level,
        gateways: roots("gateways", paths.gateways)?,
        services: roots("services", paths.services)?,
        hostnames: hostnames.collect::<Result<_, _>>()?,
        namespaces: namespaces.transpose()?,
        own_namespace,
        kinds: kinds.collect::<Result<_, _>>()?,
    })
}

/// A hostname, or a wildcard for all below one.
fn hostname(name: &str) -> Result<Str, String> {
    let lower = name.to_ascii_lowercase();
    let labels = lower.strip_prefix("*.").unwrap_or(&lower);
    let is_label = |label: &str| {
        let mut characters = label.chars();
        !label.is_empty() && characters.all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    match labels.split('.').all(is_label) {
        true => Ok(lower.into()),
        false => Err(format!(
            "paths.hostnames: `{}` is not a hostname: use `shop.example.com` or `*.example.com`",
            shortened(name)
        )),
    }
}

/// A kind of Route: one of the Gateway API, or `Kind.group` of one that a profile declares.
fn read_route_kind(name: &str, world: &World) -> Result<GroupKind, String> {
    let kinds = [
        GroupKind::new(groups::GATEWAY, name),
        GroupKind::parse(name),
    ];
    let mut kinds = kinds.into_iter();
    let found = kinds.find(|kind| world.store().route_kind(kind).is_some());
    found.ok_or_else(|| {
        let names: Vec<&str> = ROUTE_KINDS.iter().map(|row| row.kind).collect();
        let (name, names) = (shortened(name), names.join(", "));
        format!("paths.kinds: `{name}` is not a kind of Route: {names}, or `Kind.group` of a declared one")
    })
}

fn roots(field: &str, roots: Option<Roots>) -> Result<Option<RootFilter>, String> {
    let Some(roots) = roots else {
        return Ok(None);
    };
    let names = roots.names.iter().map(|name| {
        let parts = name.split_once('/');
        let (namespace, name) = parts
            .ok_or_else(|| format!("paths.{field}.names: `{name}` is not `namespace/name`"))?;
        Ok((Str::from(namespace), Str::from(name)))
    });
    Ok(Some(RootFilter {
        names: names.collect::<Result<_, String>>()?,
        labels: labels(roots.match_labels, roots.match_expressions)
            .map_err(|error| format!("paths.{field}: {error}"))?,
    }))
}

fn labels(
    match_labels: Option<Value>,
    match_expressions: Option<Value>,
) -> Result<LabelSelector, String> {
    let fields = [
        ("matchLabels", match_labels),
        ("matchExpressions", match_expressions),
    ];
    let set = fields.into_iter();
    let set = set.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    LabelSelector::read(&Value::Object(set.collect()))
}
