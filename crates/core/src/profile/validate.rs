//! Contradictions for which a profile is refused (docs/profiles-reference.md).

use super::settings::target_level;
use super::{EffectiveTarget, FoldOrder, PolicyClass, Profile, SameTarget, TargetKinds};
use crate::model::{Granularity, Level, Strategy, groups};

/// Checks a resolved profile for contradictions.
///
/// # Errors
/// The first one that is found.
pub(super) fn validate(profile: &Profile) -> Result<(), String> {
    let rules: [fn(&Profile) -> Option<&'static str>; 13] = [
        none_beside_others,
        class_and_strategies,
        top_down,
        owner_lower,
        rule_without_maps,
        custom_with_oldest_wins,
        own_fields,
        filter_with_namespace,
        root_without_namespace,
        no_form,
        block_names,
        max_targets,
        targets_below,
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
    beside.then_some("strategies: None may not stand beside another strategy")
}

fn class_and_strategies(profile: &Profile) -> Option<&'static str> {
    let none = profile.strategies == [Strategy::None];
    match profile.class {
        PolicyClass::Direct if !none => Some("class Direct has the one strategy None"),
        PolicyClass::Inherited if none => Some("strategy None is for class Direct"),
        PolicyClass::Inherited if profile.strategies.is_empty() => {
            Some("strategies: at least one is needed")
        }
        PolicyClass::Listed if !profile.strategies.is_empty() => {
            Some("class Listed does not merge: it has no strategies")
        }
        _ => None,
    }
}

fn top_down(profile: &Profile) -> Option<&'static str> {
    if profile.fold != FoldOrder::TopDown {
        return None;
    }
    // One strategy per policy: with one block name missing, both cannot stand in one policy.
    let both = profile.rules.both_blocks
        && !profile.rules.defaults.is_empty()
        && !profile.rules.overrides.is_empty();
    if both {
        Some("fold: TopDown needs one strategy per policy: set rules.bothBlocks to false")
    } else if profile.rules.when.is_some() || profile.rules.unset.is_some() {
        Some("fold: TopDown does not go with rules.when or rules.unset")
    } else if profile.same_target == SameTarget::OldestWins {
        Some("fold: TopDown does not go with sameTarget: OldestWins")
    } else {
        None
    }
}

fn owner_lower(profile: &Profile) -> Option<&'static str> {
    (profile.strategy_choice.lower && has_blocks(profile)).then_some(
        "strategy.owner: Lower is for bare rules: set rules.defaults and rules.overrides to []",
    )
}

fn rule_without_maps(profile: &Profile) -> Option<&'static str> {
    (offers(profile, Granularity::Rule) && profile.rule_maps.is_empty())
        .then_some("strategies: Rule needs ruleMaps")
}

fn custom_with_oldest_wins(profile: &Profile) -> Option<&'static str> {
    let both =
        offers(profile, Granularity::Custom) && profile.same_target == SameTarget::OldestWins;
    both.then_some("strategies: Custom does not go with sameTarget: OldestWins")
}

fn own_fields(profile: &Profile) -> Option<&'static str> {
    let wrong = [Granularity::Atomic, Granularity::Rule, Granularity::Custom]
        .into_iter()
        .any(|g| offers(profile, g));
    (!profile.own_fields.is_empty() && (wrong || profile.class != PolicyClass::Inherited))
        .then_some("ownFields needs a kind that offers Field, Patch or Structural alone")
}

fn filter_with_namespace(profile: &Profile) -> Option<&'static str> {
    (profile.attach.filter && profile.attach.namespace)
        .then_some("attach: filter and namespace do not go together")
}

fn root_without_namespace(profile: &Profile) -> Option<&'static str> {
    (profile.root_namespace.is_some() && !profile.attach.namespace)
        .then_some("rootNamespace needs namespace in attach")
}

fn no_form(profile: &Profile) -> Option<&'static str> {
    let forms = profile.attach;
    (!forms.refs && !forms.filter && !forms.namespace)
        .then_some("attach: at least one form is needed")
}

fn block_names(profile: &Profile) -> Option<&'static str> {
    let shared = profile
        .rules
        .defaults
        .iter()
        .any(|name| profile.rules.overrides.contains(name));
    shared.then_some("rules: one name cannot be a defaults and an overrides block")
}

fn max_targets(profile: &Profile) -> Option<&'static str> {
    (profile.max_targets == 0).then_some("maxTargets: at least 1 is needed")
}

/// Policies below the effective level never act (specification 2.3).
fn targets_below(profile: &Profile) -> Option<&'static str> {
    let (TargetKinds::Listed(targets), EffectiveTarget::Level(level)) =
        (&profile.targets, profile.effective)
    else {
        return None;
    };
    // A Service may be a mesh root, on the level of a Gateway; a Namespace stands above any level.
    let acts = profile.attach.namespace
        || targets.iter().any(|target| {
            let own = match target_level(&target.kind) {
                Level::Namespace => Level::GatewayClass,
                Level::Backend if profile.mesh && target.kind.is(groups::CORE, "Service") => {
                    Level::Gateway
                }
                other => other,
            };
            own <= level
        });
    (!acts).then_some("targets: all lie below the effectiveTarget, where policies never act")
}

#[cfg(test)]
mod tests {
    use crate::profile::{Profile, ProfileOrigin, parse_documents};

    /// Parses and resolves a spec; the error's text if it is refused.
    fn refused(spec: &str) -> String {
        let text = format!(
            "apiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {{name: x}}\nspec:\n  policy: {{group: g, kind: K}}\n{spec}"
        );
        let mut found = parse_documents(&text, "f.yaml");
        assert_eq!(found.len(), 1);
        let resolved = found.remove(0).and_then(|(place, document)| {
            Profile::resolve(&document, ProfileOrigin::Configured, None, &place)
        });
        resolved.map_or_else(|e| e.to_string(), |_| String::new())
    }

    #[test]
    fn contradictions_are_refused_with_place_and_reason() {
        for (spec, words) in [
            ("  strategies: [None, PatchDefaults]", "None may not stand"),
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
            ("  strategies: [PatchSomething]", "unknown strategy"),
            ("  order: [{descending: true}]", "either"),
            ("  rules: {path: 'a..b'}", "no field path"),
        ] {
            let error = refused(spec);
            assert!(error.contains(words), "{spec}: {error}");
            assert!(error.starts_with("f.yaml:1: "), "{error}");
        }
    }

    #[test]
    fn unknown_fields_and_levels_name_their_line() {
        let unknown = refused("  targest: []");
        assert!(
            unknown.starts_with("f.yaml:6: ") && unknown.contains("targest"),
            "{unknown}"
        );
        let level = refused("  effectiveTarget: Namespace");
        assert!(
            level.starts_with("f.yaml:6: ") && level.contains("Namespace"),
            "{level}"
        );
        let nested = refused("  rules:\n    path: spec\n    wen: x");
        assert!(
            nested.starts_with("f.yaml:8: ") && nested.contains("wen"),
            "{nested}"
        );
    }

    #[test]
    fn a_profile_without_anything_takes_the_defaults() {
        assert_eq!(refused(""), "");
    }
}
