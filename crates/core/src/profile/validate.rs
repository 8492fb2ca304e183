//! Validation: the contradictions for which a profile is refused (docs/profiles-reference.md).

use super::{
    ConflictScope, EffectiveTarget, EmptyBehavior, FoldOrder, FoldSpan, ListOrder, OwnFieldMode,
    PolicyClass, Profile, SameTarget, StrategyValue, TargetKinds,
};
use crate::model::{Direction, Granularity, GroupKind, Level, Strategy, groups};

/// Validates a resolved profile.
///
/// # Errors
/// The first contradiction.
pub(super) fn validate(profile: &Profile) -> Result<(), String> {
    let rules: [fn(&Profile) -> Option<&'static str>; 27] = [
        none_beside_others,
        strategy_choices,
        class_and_strategies,
        top_down,
        owner_lower,
        rule_without_maps,
        custom_with_oldest_wins,
        reducer_strategies,
        empty_by_strategy,
        field_defaults,
        own_fields,
        filter_with_namespace,
        root_without_namespace,
        root_target_without_namespace,
        no_form,
        block_names,
        max_targets,
        listener_sets,
        conflicts_by_port,
        instances,
        list_order,
        targets_below,
        super::limits::contradiction,
        super::waypoints::contradiction,
        super::forbidden::contradiction,
        super::section::contradiction,
        super::delegation::contradiction,
    ];
    match rules.iter().find_map(|rule| rule(profile)) {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(()),
    }
}

fn offers(profile: &Profile, granularity: Granularity) -> bool {
    profile
        .strategies
        .iter()
        .any(|s| s.granularity() == Some(granularity))
}

fn has_blocks(profile: &Profile) -> bool {
    !profile.rules.defaults.is_empty() || !profile.rules.overrides.is_empty()
}

fn none_beside_others(profile: &Profile) -> Option<&'static str> {
    let beside = profile.strategies.contains(&Strategy::None) && profile.strategies.len() > 1;
    beside.then_some("strategies: None excludes all other strategies")
}

/// What a policy can choose, and what counts where it chooses nothing, is offered.
fn strategy_choices(profile: &Profile) -> Option<&'static str> {
    let is_offered = |choice: &StrategyValue| match choice {
        StrategyValue::Granularity(granularity) => offers(profile, *granularity),
        StrategyValue::Strategy(strategy) => profile.strategies.contains(strategy),
    };
    let choice = &profile.strategy_choice;
    if !choice.values.iter().all(|(_, meaning)| is_offered(meaning)) {
        return Some(
            "strategy.values: one of the values means a strategy that is not one of `strategies`",
        );
    }
    let default = choice.default.as_ref();
    default
        .is_some_and(|default| !is_offered(default))
        .then_some("strategy.default: it is not one of `strategies`")
}

fn class_and_strategies(profile: &Profile) -> Option<&'static str> {
    let none = profile.strategies == [Strategy::None];
    match profile.class {
        PolicyClass::Direct if !none => Some("class Direct requires the single strategy None"),
        PolicyClass::Inherited if none => Some("strategy None requires class Direct"),
        PolicyClass::Inherited if profile.strategies.is_empty() => {
            Some("strategies: at least one is required")
        }
        PolicyClass::Listed if !profile.strategies.is_empty() => {
            Some("class Listed does not merge: it cannot have strategies")
        }
        _ => None,
    }
}

fn top_down(profile: &Profile) -> Option<&'static str> {
    if profile.fold != FoldOrder::TopDown {
        return None;
    }
    // TopDown needs one strategy per policy. If one block has no names, a policy cannot have both.
    let both = profile.rules.both_blocks
        && !profile.rules.defaults.is_empty()
        && !profile.rules.overrides.is_empty();
    if both {
        Some("fold: TopDown requires one strategy per policy: set rules.bothBlocks to false")
    } else if profile.rules.when.is_some() || profile.rules.unset.is_some() {
        Some("fold: TopDown cannot be combined with rules.when or rules.unset")
    } else if profile.same_target == SameTarget::OldestWins {
        Some("fold: TopDown cannot be combined with sameTarget: OldestWins")
    } else {
        None
    }
}

fn owner_lower(profile: &Profile) -> Option<&'static str> {
    (profile.strategy_choice.lower && has_blocks(profile)).then_some(
        "strategy.owner: Lower requires bare rules: set rules.defaults and rules.overrides to []",
    )
}

fn rule_without_maps(profile: &Profile) -> Option<&'static str> {
    (offers(profile, Granularity::Rule) && profile.rule_maps.is_empty())
        .then_some("strategies: Rule needs ruleMaps")
}

fn custom_with_oldest_wins(profile: &Profile) -> Option<&'static str> {
    if profile.same_target != SameTarget::OldestWins {
        None
    } else if offers(profile, Granularity::Custom) {
        Some("strategies: Custom cannot be combined with sameTarget: OldestWins")
    } else {
        let mut strategies = profile.reducers.iter().flat_map(|r| &r.strategies);
        strategies
            .any(|strategy| profile.strategies.contains(strategy))
            .then_some("reducers cannot be combined with sameTarget: OldestWins")
    }
}

/// A reducer joins two values, so its strategy must join the object that holds them (specification 5.9).
fn reducer_strategies(profile: &Profile) -> Option<&'static str> {
    let mut strategies = profile.reducers.iter().flat_map(|r| &r.strategies);
    let opens = |strategy: &Strategy| {
        matches!(
            strategy.granularity(),
            Some(Granularity::Patch | Granularity::Structural | Granularity::Custom)
        )
    };
    strategies.any(|strategy| !opens(strategy)).then_some(
        "reducers.strategies: only Patch, Structural and Custom join values inside objects",
    )
}

fn field_defaults(profile: &Profile) -> Option<&'static str> {
    let inherited = profile.class == PolicyClass::Inherited;
    if profile.field_defaults.is_empty() {
        None
    } else if !inherited || profile.strategy_choice.annotation.is_some() {
        Some("fieldDefaults requires class Inherited and a strategy that no annotation chooses")
    } else {
        None
    }
}

/// The way in which an empty policy counts must depend on its strategy for each path (specification 5.8).
fn empty_by_strategy(profile: &Profile) -> Option<&'static str> {
    (profile.empty == EmptyBehavior::ByStrategy && profile.class != PolicyClass::Inherited)
        .then_some("empty: ByStrategy requires class Inherited")
}

fn own_fields(profile: &Profile) -> Option<&'static str> {
    let wrong = [Granularity::Atomic, Granularity::Rule, Granularity::Custom]
        .into_iter()
        .any(|g| offers(profile, g));
    let mut modes = profile.own_fields.iter().map(|field| field.mode);
    if profile.own_fields.is_empty() {
        None
    } else if profile.class != PolicyClass::Inherited {
        Some("ownFields requires class Inherited")
    } else if wrong && modes.any(|mode| mode == OwnFieldMode::Merge) {
        Some(
            "ownFields requires a kind that offers only Field, Patch or Structural, or `mode: Replace`",
        )
    } else {
        None
    }
}

fn filter_with_namespace(profile: &Profile) -> Option<&'static str> {
    (profile.attach.filter && profile.attach.namespace)
        .then_some("attach: filter and namespace cannot be combined")
}

fn root_without_namespace(profile: &Profile) -> Option<&'static str> {
    (profile.root_namespace.is_some() && !profile.attach.namespace)
        .then_some("rootNamespace requires namespace in attach")
}

fn root_target_without_namespace(profile: &Profile) -> Option<&'static str> {
    let TargetKinds::Listed(targets) = &profile.targets else {
        return None;
    };
    let root_only = targets.iter().any(|target| target.root_only);
    (root_only && profile.root_namespace.is_none())
        .then_some("targets.namespaces: Root requires rootNamespace")
}

fn no_form(profile: &Profile) -> Option<&'static str> {
    let forms = profile.attach;
    (!forms.refs && !forms.filter && !forms.namespace)
        .then_some("attach: at least one form is required")
}

fn block_names(profile: &Profile) -> Option<&'static str> {
    let shared = profile
        .rules
        .defaults
        .iter()
        .any(|name| profile.rules.overrides.contains(name));
    shared.then_some("rules: a name cannot be both a defaults and an overrides block")
}

fn max_targets(profile: &Profile) -> Option<&'static str> {
    (profile.max_targets == 0).then_some("maxTargets: at least 1 is required")
}

/// For a Direct kind, a policy on the Namespace of a ListenerSet would stand between the Gateway's policy and
/// the ListenerSet.
fn listener_sets(profile: &Profile) -> Option<&'static str> {
    let is_direct = profile.class == PolicyClass::Direct;
    let target = |group, kind| profile.target(&GroupKind::new(group, kind)).is_some();
    let sets = target(groups::GATEWAY, "ListenerSet");
    let reach = profile.listener_sets;
    let above =
        matches!(profile.effective, EffectiveTarget::Level(level) if level <= Level::Gateway);
    if reach.gateway_sections && !(is_direct && sets) {
        Some(
            "listenerSets: gatewaySections requires class Direct and ListenerSet among the targets",
        )
    } else if is_direct && reach.from_gateway && sets && target(groups::CORE, "Namespace") {
        Some("listenerSets: fromGateway cannot be combined with Namespace among the targets")
    } else if !reach.from_gateway && above && !(is_direct && sets) {
        Some("listenerSets: fromGateway: false requires an effectiveTarget below the Gateway")
    } else {
        None
    }
}

fn conflicts_by_port(profile: &Profile) -> Option<&'static str> {
    (profile.conflicts == ConflictScope::Port && profile.class != PolicyClass::Direct)
        .then_some("conflicts: Port requires class Direct")
}

fn list_order(profile: &Profile) -> Option<&'static str> {
    let merges_lists = offers(profile, Granularity::Structural);
    (profile.list_order != ListOrder::Added && !merges_lists)
        .then_some("listOrder requires a Structural strategy: no other merges the items of lists")
}

fn instances(profile: &Profile) -> Option<&'static str> {
    let rule_defaults = Strategy::Merge(Granularity::Rule, Direction::Defaults);
    let fits = profile.strategies == [rule_defaults]
        && profile.fold == FoldOrder::BottomUp
        && profile.span == FoldSpan::AllLevels
        && !profile.strategy_choice.lower
        && !has_blocks(profile)
        && profile.rules.unset.is_none();
    let has_slash = |name: &String| name.contains('/');
    let mut disables = profile.instances.iter().filter_map(|f| f.disable.as_ref());
    let keyed = profile.instances.iter().any(|field| !field.key.is_empty());
    let by_policy = profile
        .instances
        .iter()
        .filter(|field| field.key.is_empty());
    if by_policy.filter(|field| field.disable.is_some()).count() > 0 {
        return Some("instances: `disable` requires `key`");
    }
    let has_named_rules =
        offers(profile, Granularity::Rule) && !has_blocks(profile) && profile.rules.unset.is_none();
    if !profile.instances.is_empty() && !has_named_rules {
        return Some(
            "instances requires the granularity Rule, and rules without blocks and `unset`",
        );
    }
    if keyed && !fits {
        Some(
            "instances with `key` requires rules without blocks and `unset`, the single strategy RuleDefaults, \
             and all levels in the order BottomUp",
        )
    } else if disables.any(has_slash) {
        Some("instances: `disable` cannot contain `/`, which identities contain")
    } else {
        None
    }
}

/// Policies below the effective level never apply (specification 2.3).
fn targets_below(profile: &Profile) -> Option<&'static str> {
    let (TargetKinds::Listed(targets), EffectiveTarget::Level(level)) =
        (&profile.targets, profile.effective)
    else {
        return None;
    };
    // A Service can be a mesh root, on the level of a Gateway. A Namespace is above all other levels.
    let applies = profile.attach.namespace
        || targets.iter().any(|target| {
            let own = match profile.level_of(&target.kind) {
                Level::Namespace => Level::GatewayClass,
                Level::Backend if profile.mesh && target.kind.is(groups::CORE, "Service") => {
                    Level::Gateway
                }
                other => other,
            };
            own <= level
        });
    (!applies).then_some("targets: all are below the effectiveTarget, where policies never apply")
}

#[cfg(test)]
mod tests {
    use crate::profile::{Profile, ProfileOrigin, parse_documents};

    /// Parses and resolves a spec. Returns the error message, or an empty string.
    fn error_of(spec: &str) -> String {
        let text = format!(
            "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {{name: x}}\nspec:\n  policy: {{group: g, kind: K}}\n{spec}"
        );
        let mut documents = parse_documents(&text, "f.yaml");
        assert_eq!(documents.len(), 1);
        let resolved = documents.remove(0).and_then(|(location, document)| {
            Profile::resolve(&document, ProfileOrigin::Configured, None, &location)
        });
        resolved.map_or_else(|e| e.to_string(), |_| String::new())
    }

    /// Settings that contradict each other, and a part of the error.
    const CONTRADICTIONS: &[(&str, &str)] = &[
        ("  strategies: [None, PatchDefaults]", "None excludes"),
        (
            "  strategies: [PatchDefaults]\n  strategy: {field: s, values: {merge: PatchDefaults, whole: Atomic}}",
            "strategy.values",
        ),
        (
            "  strategies: [PatchDefaults]\n  strategy: {field: s, default: AtomicDefaults}",
            "strategy.default",
        ),
        ("  fold: TopDown", "bothBlocks"),
        (
            "  fold: TopDown\n  rules: {bothBlocks: false, when: when}",
            "rules.when",
        ),
        (
            "  fold: TopDown\n  rules: {bothBlocks: false}\n  sameTarget: OldestWins",
            "OldestWins",
        ),
        ("  strategy: {owner: Lower}", "bare rules"),
        ("  strategies: [RuleDefaults]", "ruleMaps"),
        (
            "  strategies: [CustomDefaults]\n  sameTarget: OldestWins",
            "Custom",
        ),
        ("  ownFields: [{object: spec.a, policy: a}]", "ownFields"),
        ("  attach: [filter, namespace]", "filter and namespace"),
        ("  rootNamespace: x", "rootNamespace"),
        (
            "  effectiveTarget: Gateway\n  targets: [{group: gateway.networking.k8s.io, kind: HTTPRoute}]",
            "below",
        ),
        ("  class: Direct\n  strategies: [PatchDefaults]", "None"),
        ("  preset: direct\n  class: Inherited", "fixes it"),
        ("  preset: nope", "unknown preset"),
        (
            "  preset: direct\n  listenerSets: {fromGateway: true}",
            "Namespace among",
        ),
        ("  listenerSets: {gatewaySections: true}", "class Direct"),
        (
            "  effectiveTarget: Gateway\n  listenerSets: {fromGateway: false}",
            "below the Gateway",
        ),
        ("  conflicts: Port", "class Direct"),
        ("  instances: [{path: auth}]", "the granularity Rule"),
        (
            "  instances: [{path: auth, key: ref}]\n  strategies: [RuleDefaults, RuleOverrides]\n  \
             rules: {defaults: [], overrides: []}",
            "single strategy RuleDefaults",
        ),
        ("  listOrder: StrategicMergePatch", "a Structural strategy"),
        (
            "  effectiveTarget: Route\n  delegation: {}",
            "below RouteRule",
        ),
        (
            "  delegation: {values: {a: Parent}}",
            "require `annotation`",
        ),
        (
            "  preset: direct\n  delegation: {prefer: Parent}",
            "class Inherited",
        ),
        (
            "  routeKinds: [{group: gateway.networking.k8s.io, kind: TCPRoute, like: HTTPRoute}]",
            "custom resource",
        ),
        (
            "  routeKinds: [{group: '', kind: Pod, like: HTTPRoute}]",
            "custom resource",
        ),
        (
            "  routeKinds: [{group: a.io, kind: R, like: Gateway}]",
            "no Route kind",
        ),
        (
            "  routeKinds: [{group: a.io, kind: R, like: HTTPRoute}, {group: a.io, kind: R, like: TCPRoute}]",
            "there twice",
        ),
        ("  strategies: [PatchSomething]", "unknown strategy"),
        ("  order: [{descending: true}]", "either"),
        (
            "  targets: [{kind: Service, namespaces: Root}]",
            "requires rootNamespace",
        ),
        ("  targets: [{kind: Service, fields: [a..b]}]", "empty part"),
        (
            "  targets: [{kind: Service, without: ['a[name=x]']}]",
            "not a path of fields",
        ),
        (
            "  targets: [{kind: Service, fields: [a], merged: true}]",
            "owner: Lower",
        ),
        (
            "  targets: [{kind: Service, merged: true}]\n  rules: {defaults: [], overrides: []}\n  strategy: {owner: Lower}",
            "needs `fields`, `without` or `validations`",
        ),
        ("  exclusive: [{fields: [a]}]", "at least two"),
        ("  exclusive: [{fields: [a, a.b]}]", "above another"),
        (
            "  exclusive: [{fields: [a.b, a.c], failOpen: open}]",
            "above all of the fields",
        ),
        (
            "  exclusive: [{fields: [a.b, a.c], failOpen: b.open}]",
            "above all of the fields",
        ),
        (
            "  preset: direct\n  exclusive: [{fields: [a, b]}]",
            "class Inherited",
        ),
        ("  limits: [{fields: [a]}]", "condition"),
        ("  limits: [{routes: [Gateway]}]", "not a kind of routes"),
        (
            "  limits: [{routes: [TCPRoute], fields: [a..b]}]",
            "empty part",
        ),
        (
            "  limits: [{routes: [TCPRoute], fieldwise: true}]",
            "needs `fields`",
        ),
        (
            "  strategies: [AtomicDefaults]\n  limits: [{routes: [TCPRoute], fields: [a], fieldwise: true}]",
            "another granularity",
        ),
        ("  limits: [{targets: [Nothing]}]", "not a target"),
        (
            "  limits: [{classes: [a], classesOtherThan: [b]}]",
            "either",
        ),
        (
            "  effectiveTarget: Listener\n  limits: [{routes: [TCPRoute]}]",
            "above routes",
        ),
        (
            "  effectiveTarget: Gateway\n  limits: [{protocols: [TCP]}]",
            "listeners",
        ),
        ("  rules: {path: 'a..b'}", "not a field path"),
    ];

    #[test]
    fn contradictions_are_refused_with_location_and_reason() {
        for (spec, expected) in CONTRADICTIONS {
            let error = error_of(spec);
            assert!(error.contains(expected), "{spec}: {error}");
            assert!(error.starts_with("f.yaml:1: "), "{error}");
        }
    }

    #[test]
    fn errors_of_unknown_fields_and_levels_have_their_line() {
        let unknown = error_of("  targest: []");
        assert!(
            unknown.starts_with("f.yaml:6: ") && unknown.contains("targest"),
            "{unknown}"
        );
        let level = error_of("  effectiveTarget: Namespace");
        assert!(
            level.starts_with("f.yaml:6: ") && level.contains("Namespace"),
            "{level}"
        );
        let nested = error_of("  rules:\n    path: spec\n    wen: x");
        assert!(
            nested.starts_with("f.yaml:8: ") && nested.contains("wen"),
            "{nested}"
        );
    }

    #[test]
    fn an_empty_profile_takes_the_defaults() {
        assert_eq!(error_of(""), "");
    }
}
