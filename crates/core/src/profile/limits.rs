//! Limits: the paths on which only some fields of a policy are rules, or on which a kind does not act
//! (specification 2.10).

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::document::{LimitDoc, ReplacedByDoc};
use super::forbidden::is_set_in;
use super::ignored::{Ignored, ignored};
use super::policy::{Block, Policy};
use super::settings::dotted_list;
use super::{EffectiveTarget, EmptyBehavior, PolicyClass, Profile, TargetKinds, matches_pattern};
use crate::model::{
    Encoded, FieldStep, Granularity, GroupKind, Level, Rules, Str, Strategy, Unit, groups,
};

/// The number of limits that a profile can have.
const MAX_LIMITS: usize = 16;
/// The number of stages at which a path can meet conditions.
const STAGES: usize = 5;

/// The limits of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits(Vec<Limit>);

/// On the paths that meet all conditions, only some fields of a policy are rules.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Kinds of routes on the path; empty means any path.
    routes: Vec<Str>,
    /// The listener of the path; `None` means any path.
    listener: Option<ListenerCondition>,
    /// Whether the path goes through a ListenerSet.
    listener_sets: bool,
    /// What the path begins with; `None` means any path.
    root: Option<RootCondition>,
    /// Policies of another kind below the Gateway that take the place of others; `None` means any path.
    replaced_by: Option<ReplacedBy>,
    /// The kinds of objects whose attachments are limited; empty means all. Namespace also means the root
    /// namespace.
    targets: Vec<GroupKind>,
    /// The fields that are rules, as paths; empty means none.
    fields: Vec<Vec<String>>,
    /// The values among these fields that are no rules.
    ignored: Vec<Ignored>,
    /// Whether atomic blocks are merged field by field over all levels.
    fieldwise: bool,
}

/// A condition on a listener. Each part must be met.
#[derive(Clone, Debug, PartialEq)]
struct ListenerCondition {
    /// Protocols; empty means any.
    protocols: Vec<Str>,
    /// TLS modes; empty means any.
    tls_modes: Vec<TlsMode>,
    /// Fields of which at least one is not set; empty means no condition.
    without: Vec<ListenerField>,
}

/// A condition on the root of a path. Each part must be met.
#[derive(Clone, Debug, Default, PartialEq)]
struct RootCondition {
    /// The GatewayClass.
    class: Option<ClassCondition>,
    /// What the `controllerName` of the GatewayClass matches; empty means any path.
    controllers: Vec<Str>,
    /// Whether the path is a mesh path; `None` means any path.
    mesh: Option<bool>,
    /// Where the waypoint of a mesh path is.
    waypoint: Option<WaypointNamespace>,
}

/// Policies of another kind that take the place of less specific ones of that kind.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplacedBy {
    /// The other kind.
    pub kind: GroupKind,
    /// Fields below `spec` with which a policy that is merged takes the place of others all the same.
    fields: Vec<Vec<FieldStep>>,
}

/// Where the waypoint of a mesh path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum WaypointNamespace {
    /// In the namespace of the Service.
    Same,
    /// In another namespace.
    Other,
}

/// What limits look at in the root of a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct RootTraits<'r> {
    /// The name of the GatewayClass, whether it exists or not. That of a mesh path is the class of its waypoint.
    pub class: Option<&'r str>,
    /// What the controller of the class is.
    pub controllers: &'r [Str],
    /// Whether the path is a mesh path.
    pub mesh: bool,
    /// Where the waypoint is, if there is one.
    pub waypoint: Option<WaypointNamespace>,
}

/// A condition on the name of the GatewayClass.
#[derive(Clone, Debug, PartialEq)]
enum ClassCondition {
    /// The name is in the list.
    Among(Vec<Str>),
    /// The name is not in the list.
    OtherThan(Vec<Str>),
}

/// A field of listeners that a limit can require to be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub enum ListenerField {
    /// `hostname`.
    #[serde(rename = "hostname")]
    Hostname,
    /// `tls`.
    #[serde(rename = "tls")]
    Tls,
    /// `tls.certificateRefs`.
    #[serde(rename = "tls.certificateRefs")]
    CertificateRefs,
}

/// The mode in which a listener treats TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[allow(missing_docs, reason = "the values of `tls.mode`")]
pub enum TlsMode {
    Terminate,
    Passthrough,
}

/// What limits look at in a listener.
#[derive(Clone, Copy, Debug)]
pub struct ListenerTraits<'l> {
    /// `protocol`.
    pub protocol: &'l str,
    /// Whether `hostname` is set.
    pub hostname: bool,
    /// The TLS mode, if `tls` is set.
    pub tls_mode: Option<TlsMode>,
    /// Whether `tls.certificateRefs` has entries.
    pub certificates: bool,
}

/// A step of a path that can meet conditions.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Root,
    ListenerSet,
    Listener,
    Route,
    Replaced,
}

/// The conditions of limits that a path has met so far: a set of limits for each step that can meet some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MetConditions([LimitSet; STAGES]);

/// A set of the limits of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LimitSet(u16);

/// A policy as far as its fields are rules on a path.
#[derive(Clone, Debug)]
pub struct LimitedBlocks<'p> {
    /// The blocks with these fields.
    pub blocks: Cow<'p, [Block]>,
    /// Whether a block takes part or unsets something.
    pub takes_part: bool,
    /// Whether atomic blocks are merged field by field over all levels.
    pub fieldwise: bool,
}

impl MetConditions {
    /// Adds conditions.
    pub fn add(&mut self, more: Self) {
        for (mine, more) in self.0.iter_mut().zip(more.0) {
            mine.0 |= more.0;
        }
    }

    /// Whether the condition of a limit is met at a stage.
    fn has(self, stage: Stage, limit: usize) -> bool {
        let at = self.0.get(stage as usize);
        at.is_some_and(|met| met.has(limit))
    }
}

impl LimitSet {
    /// The limits in both sets.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    fn has(self, limit: usize) -> bool {
        self.0 & (1 << limit) != 0
    }
}

impl Stage {
    const ALL: [Self; STAGES] = [
        Self::Root,
        Self::ListenerSet,
        Self::Listener,
        Self::Route,
        Self::Replaced,
    ];
}

impl Limits {
    /// Whether the kind has no limits.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields that limits allow.
    pub fn fields(&self) -> impl Iterator<Item = &[String]> {
        self.0
            .iter()
            .flat_map(|limit| &limit.fields)
            .map(Vec::as_slice)
    }

    /// The conditions that the root of a path meets; `may_act` says whether another kind acts there, or may.
    pub fn met_by_root(
        &self,
        root: RootTraits<'_>,
        may_act: impl Fn(&GroupKind) -> bool,
    ) -> MetConditions {
        self.met(Stage::Root, |limit| {
            let other = limit.replaced_by.as_ref();
            limit
                .root
                .as_ref()
                .is_none_or(|root_is| root_is.is_met(root))
                && other.is_none_or(|other| may_act(&other.kind))
        })
    }

    /// The conditions that a ListenerSet meets.
    pub fn met_by_listener_set(&self) -> MetConditions {
        self.met(Stage::ListenerSet, |limit| limit.listener_sets)
    }

    /// The conditions that a listener meets.
    pub fn met_by_listener(&self, listener: ListenerTraits<'_>) -> MetConditions {
        self.met(Stage::Listener, |limit| {
            let condition = limit.listener.as_ref();
            condition.is_some_and(|condition| condition.is_met(listener))
        })
    }

    /// The conditions that a route of a kind meets.
    pub fn met_by_route(&self, kind: &str) -> MetConditions {
        self.met(Stage::Route, |limit| has(&limit.routes, kind))
    }

    /// The conditions that a node below the Gateway meets; `replaces` says whether there are such policies on it.
    pub fn met_by_policies(&self, replaces: impl Fn(&ReplacedBy) -> bool) -> MetConditions {
        self.met(Stage::Replaced, |limit| {
            limit.replaced_by.as_ref().is_some_and(&replaces)
        })
    }

    /// The conditions that depend on the policies of other kinds.
    pub fn replaced_by(&self) -> impl Iterator<Item = &ReplacedBy> {
        self.0.iter().filter_map(|limit| limit.replaced_by.as_ref())
    }

    fn met(&self, stage: Stage, is_met: impl Fn(&Limit) -> bool) -> MetConditions {
        let found = self.all(|_, limit| limit.needs(stage) && is_met(limit));
        let mut met = MetConditions::default();
        if let Some(at) = met.0.get_mut(stage as usize) {
            *at = found;
        }
        met
    }

    /// The limits that hold on a path with these conditions.
    pub fn holding(&self, met: MetConditions) -> LimitSet {
        self.all(|number, limit| {
            let mut stages = Stage::ALL.into_iter();
            stages.all(|stage| !limit.needs(stage) || met.has(stage, number))
        })
    }

    /// The limits that concern attachments to objects of a kind. `None` stands for the root namespace.
    pub fn concerning(&self, kind: Option<&GroupKind>) -> LimitSet {
        self.all(|_, limit| {
            let is = |target: &GroupKind| match kind {
                Some(kind) => kind == target,
                None => target.is_namespace(),
            };
            limit.targets.is_empty() || limit.targets.iter().any(is)
        })
    }

    fn all(&self, is_in: impl Fn(usize, &Limit) -> bool) -> LimitSet {
        let limits = self.0.iter().enumerate();
        let found = limits.filter(|(number, limit)| is_in(*number, limit));
        LimitSet(found.fold(0, |bits, (number, _)| bits | 1 << number))
    }

    fn of(&self, set: LimitSet) -> impl Iterator<Item = &Limit> {
        let limits = self.0.iter().enumerate();
        let within = limits.filter(move |(number, _)| set.has(*number));
        within.map(|(_, limit)| limit)
    }

    /// Whether a kind does not act where these limits hold: one of them allows no field.
    pub fn allow_nothing(&self, set: LimitSet) -> bool {
        self.of(set).any(|limit| limit.fields.is_empty())
    }
}

impl Profile {
    /// The blocks of a policy with the fields that are rules where some limits hold. Without limits, the
    /// blocks are not copied.
    pub fn limited<'p>(&self, blocks: &'p [Block], set: LimitSet) -> LimitedBlocks<'p> {
        if set.is_empty() {
            return LimitedBlocks {
                blocks: Cow::Borrowed(blocks),
                takes_part: true,
                fieldwise: false,
            };
        }
        let mut blocks = blocks.to_vec();
        for limit in self.limits.of(set) {
            for block in &mut blocks {
                limit.apply(self, block);
            }
        }
        LimitedBlocks {
            takes_part: blocks.iter().any(Block::has_effect),
            blocks: Cow::Owned(blocks),
            fieldwise: self.limits.of(set).any(|limit| limit.fieldwise),
        }
    }
}

impl Limit {
    /// Whether the limit has a condition on a step.
    fn needs(&self, stage: Stage) -> bool {
        match stage {
            Stage::Root => self.root.is_some() || self.replaced_by.is_some(),
            Stage::ListenerSet => self.listener_sets,
            Stage::Listener => self.listener.is_some(),
            Stage::Route => !self.routes.is_empty(),
            Stage::Replaced => self.replaced_by.is_some(),
        }
    }

    /// Removes everything from a block that is no rule.
    fn apply(&self, profile: &Profile, block: &mut Block) {
        let mut rules = keep(block.rules.encoded(), &self.fields);
        for ignored in &self.ignored {
            ignored.cut_out(&mut rules);
        }
        block.rules = Rules::new(&rules);
        let fields: Vec<Unit> = self
            .fields
            .iter()
            .map(|field| Unit::of_fields(field))
            .collect();
        let names = block.unset.iter().flat_map(|name| within(name, &fields));
        block.unset = names.collect();
        block.missing.retain(|missing| missing.is_in(&block.rules));
        block.unchecked.retain(|found| found.is_in(&block.rules));
        let transparent =
            profile.class != PolicyClass::Direct && profile.empty == EmptyBehavior::Transparent;
        let empty = match transparent {
            true => super::read::is_empty(profile, &block.rules),
            false => rules.is_empty(),
        };
        block.participates &= !empty;
    }
}

impl ReplacedBy {
    /// Whether a policy of the other kind takes the place of less specific ones: it is not merged with them, or it has a
    /// value at one of the fields.
    pub fn is_replacing(&self, policy: &Policy) -> bool {
        let is_merged = |block: &Block| {
            let granularity = block.strategy.strategy().granularity();
            granularity.is_some_and(|granularity| granularity != Granularity::Atomic)
        };
        let body = &policy.object.body;
        let has = |field: &Vec<FieldStep>| {
            let value = body.at_path(field, None);
            value.is_some_and(|value| is_set_in(&value, &[]))
        };
        !policy.blocks.iter().any(is_merged) || self.fields.iter().any(has)
    }
}

impl RootCondition {
    fn is_met(&self, root: RootTraits<'_>) -> bool {
        let class = match (&self.class, root.class) {
            (None, _) => true,
            (Some(ClassCondition::Among(names)), Some(class)) => has(names, class),
            (Some(ClassCondition::OtherThan(names)), Some(class)) => !has(names, class),
            (Some(_), None) => false,
        };
        let matches = |name: &Str| {
            let mut patterns = self.controllers.iter();
            patterns.any(|pattern| matches_pattern(pattern, name))
        };
        class
            && (self.controllers.is_empty() || root.controllers.iter().any(matches))
            && self.mesh.is_none_or(|mesh| mesh == root.mesh)
            && (self.waypoint.is_none() || self.waypoint == root.waypoint)
    }
}

impl ListenerCondition {
    fn is_met(&self, listener: ListenerTraits<'_>) -> bool {
        let lacks = |field: &ListenerField| match field {
            ListenerField::Hostname => !listener.hostname,
            ListenerField::Tls => listener.tls_mode.is_none(),
            ListenerField::CertificateRefs => !listener.certificates,
        };
        let mode = |mode: &TlsMode| listener.tls_mode == Some(*mode);
        (self.protocols.is_empty() || has(&self.protocols, listener.protocol))
            && (self.tls_modes.is_empty() || self.tls_modes.iter().any(mode))
            && (self.without.is_empty() || self.without.iter().any(lacks))
    }
}

/// The strategy of a block where atomic blocks are merged field by field.
pub fn fieldwise(strategy: Strategy) -> Strategy {
    match strategy {
        Strategy::Merge(Granularity::Atomic, direction) => {
            Strategy::Merge(Granularity::Field, direction)
        }
        other => other,
    }
}

fn has(names: &[Str], name: &str) -> bool {
    names.iter().any(|other| **other == *name)
}

/// The parts of a name of `unset` that are among `fields`.
fn within(name: &Unit, fields: &[Unit]) -> Vec<Unit> {
    if fields.iter().any(|field| field.covers(name)) {
        return vec![name.clone()];
    }
    let below = fields.iter().filter(|field| name.covers(field));
    below.cloned().collect()
}

/// The first field of rules that is not among `fields`, if these are limited.
pub(super) fn other_field<'r>(
    rules: &'r Map<String, Value>,
    fields: &[Vec<String>],
) -> Option<&'r str> {
    if fields.is_empty() {
        return None;
    }
    let kept = keep(Rules::new(rules).encoded(), fields);
    let other = rules
        .iter()
        .find(|(name, value)| kept.get(*name) != Some(value));
    other.map(|(name, _)| name.as_str())
}

/// The rules at `fields`. An object above a field is opened; a null above it deletes the field, too.
fn keep(rules: Encoded<'_>, fields: &[Vec<String>]) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in rules.fields() {
        let mut below = Vec::new();
        let mut whole = false;
        for field in fields {
            match field.split_first() {
                Some((first, rest)) if first == name => match rest {
                    [] => whole = true,
                    rest => below.push(rest.to_vec()),
                },
                _ => {}
            }
        }
        if whole || (value.is_null() && !below.is_empty()) {
            kept.insert(name.to_owned(), value.value());
        } else {
            let inner = keep(value, &below);
            if !inner.is_empty() {
                kept.insert(name.to_owned(), Value::Object(inner));
            }
        }
    }
    kept
}

/// Resolves the limits of a document.
///
/// # Errors
/// The first limit that is contradictory.
pub(super) fn resolve(
    given: Option<&[LimitDoc]>,
    targets: &TargetKinds,
    virtual_targets: &[GroupKind],
) -> Result<Limits, String> {
    let given = given.unwrap_or_default();
    if given.len() > MAX_LIMITS {
        return Err(format!("limits: at most {MAX_LIMITS} are allowed"));
    }
    let limits = given.iter().map(|doc| limit(doc, targets, virtual_targets));
    Ok(Limits(limits.collect::<Result<_, _>>()?))
}

fn limit(
    doc: &LimitDoc,
    targets: &TargetKinds,
    virtual_targets: &[GroupKind],
) -> Result<Limit, String> {
    if let Some(kind) = doc.routes.iter().find(|kind| !kind.ends_with("Route")) {
        return Err(format!("limits.routes: `{kind}` is not a kind of routes"));
    }
    let texts = |list: &[String]| -> Vec<Str> { list.iter().map(|t| t.as_str().into()).collect() };
    let class = match (doc.classes.as_slice(), doc.classes_other_than.as_slice()) {
        ([], []) => None,
        (names, []) => Some(ClassCondition::Among(texts(names))),
        ([], names) => Some(ClassCondition::OtherThan(texts(names))),
        _ => return Err("limits: give either `classes` or `classesOtherThan`".to_owned()),
    };
    let root = RootCondition {
        class,
        controllers: texts(&doc.controllers),
        mesh: doc.mesh,
        waypoint: doc.waypoint_namespace,
    };
    let listener = ListenerCondition {
        protocols: texts(&doc.protocols),
        tls_modes: doc.tls_modes.clone(),
        without: doc.listeners_without.clone(),
    };
    let has_listener =
        !(doc.protocols.is_empty() && doc.tls_modes.is_empty() && listener.without.is_empty());
    let kinds = doc.targets.iter().map(|kind| {
        let found = target(kind, targets, virtual_targets);
        found.ok_or_else(|| format!("limits.targets: `{kind}` is not a target of the kind"))
    });
    let ignored = doc.ignored.iter().map(ignored);
    let replaced_by = doc.replaced_by.as_ref().map(replaced_by).transpose()?;
    let limit = Limit {
        routes: texts(&doc.routes),
        listener: has_listener.then_some(listener),
        listener_sets: doc.listener_sets,
        root: (root != RootCondition::default()).then_some(root),
        replaced_by,
        targets: kinds.collect::<Result<_, _>>()?,
        fields: dotted_list(Some(&doc.fields), "limits.fields")?,
        ignored: ignored.collect::<Result<_, _>>()?,
        fieldwise: doc.fieldwise,
    };
    let mut stages = Stage::ALL.into_iter();
    if !stages.any(|stage| limit.needs(stage)) && limit.targets.is_empty() {
        return Err("limits: an entry needs a condition or `targets`".to_owned());
    }
    if !limit.ignored.is_empty() && limit.fields.is_empty() {
        return Err("limits.ignored: needs `fields`".to_owned());
    }
    if limit.fieldwise && limit.fields.is_empty() {
        return Err("limits.fieldwise: needs `fields`".to_owned());
    }
    Ok(limit)
}

fn replaced_by(doc: &ReplacedByDoc) -> Result<ReplacedBy, String> {
    let fields = dotted_list(Some(&doc.fields), "limits.replacedBy.fields")?;
    let in_spec = |field: Vec<String>| {
        let steps = std::iter::once("spec".to_owned()).chain(field);
        steps.map(FieldStep::Field).collect()
    };
    Ok(ReplacedBy {
        kind: GroupKind::new(&doc.group, &doc.kind),
        fields: fields.into_iter().map(in_spec).collect(),
    })
}

/// The kind of objects with a name that policies can be attached to.
fn target(name: &str, targets: &TargetKinds, virtual_targets: &[GroupKind]) -> Option<GroupKind> {
    if name == "Namespace" {
        return Some(GroupKind::new(groups::CORE, name));
    }
    let named = |kind: &&GroupKind| *kind.kind == *name;
    let listed = match targets {
        TargetKinds::Listed(list) => list.iter().map(|t| &t.kind).find(named).cloned(),
        TargetKinds::Any { .. } => match name {
            "Service" => Some(GroupKind::new(groups::CORE, name)),
            _ => {
                let kind = GroupKind::new(groups::GATEWAY, name);
                (super::target_level(&kind) != Level::Backend).then_some(kind)
            }
        },
    };
    listed.or_else(|| virtual_targets.iter().find(named).cloned())
}

/// The reason for which limits contradict the other settings, if there is one.
pub(super) fn contradiction(profile: &Profile) -> Option<&'static str> {
    let limits = &profile.limits.0;
    let above = |level: Level| match profile.effective {
        EffectiveTarget::Level(effective) => effective < level,
        _ => false,
    };
    let mut granularities = profile.strategies.iter().filter_map(|s| s.granularity());
    // Units of provenance are those of the finest granularity that the kind offers.
    let splits = granularities.any(|granularity| granularity != Granularity::Atomic);
    if limits.iter().any(|limit| limit.fieldwise) && !splits {
        return Some(
            "limits.fieldwise requires a kind that offers another granularity than Atomic",
        );
    }
    if limits.iter().any(|limit| !limit.routes.is_empty()) && above(Level::Route) {
        return Some("limits.routes: the effectiveTarget is above routes");
    }
    let has_listener = |limit: &Limit| limit.listener.is_some();
    if limits.iter().any(has_listener) && above(Level::Listener) {
        return Some("limits: conditions on listeners need an effectiveTarget at or below them");
    }
    if limits.iter().any(|limit| limit.listener_sets) && above(Level::ListenerSet) {
        return Some("limits.listenerSets: the effectiveTarget is above ListenerSets");
    }
    let replaced = |limit: &Limit| limit.replaced_by.is_some();
    if limits.iter().any(replaced) && above(Level::RouteRule) {
        return Some("limits.replacedBy: the effectiveTarget is above the rules of routes");
    }
    let mut others = profile.limits.replaced_by();
    if others.any(|other| other.kind == profile.policy) {
        return Some("limits.replacedBy: names the kind of the profile itself");
    }
    let of_waypoint = |limit: &Limit| limit.root.as_ref().is_some_and(|r| r.waypoint.is_some());
    if limits.iter().any(of_waypoint) && profile.waypoints.is_none() {
        return Some("limits.waypointNamespace: the kind has no `waypoints`");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_fields_are_kept() {
        let rules = json!({"a": {"b": 1, "c": 2}, "d": null, "e": [1], "f": {}, "g": {"h": 1}});
        let fields = |list: &[&str]| -> Vec<Vec<String>> {
            let parts = list.iter().map(|text| text.split('.').map(str::to_owned));
            parts.map(Iterator::collect).collect()
        };
        for (list, expected) in [
            (vec!["a"], json!({"a": {"b": 1, "c": 2}})),
            (vec!["a.b", "e"], json!({"a": {"b": 1}, "e": [1]})),
            (vec!["d.x", "e.x", "f.x", "g.x"], json!({"d": null})),
            (
                vec!["f", "a.c", "a"],
                json!({"a": {"b": 1, "c": 2}, "f": {}}),
            ),
        ] {
            let rules = Rules::new(rules.as_object().unwrap());
            let kept = keep(rules.encoded(), &fields(&list));
            assert_eq!(Value::Object(kept), expected, "{list:?}");
        }
    }

    #[test]
    fn unset_names_are_cut_to_the_fields() {
        let parse = |text: &str| Unit::parse(text).unwrap();
        let fields = [parse("a.b"), parse("c")];
        assert_eq!(within(&parse("a"), &fields), [parse("a.b")]);
        assert_eq!(within(&parse("c.d"), &fields), [parse("c.d")]);
        assert!(within(&parse("e"), &fields).is_empty());
    }
}
