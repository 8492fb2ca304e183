//! Presets: named sets of defaults. Fields that a profile sets itself take precedence
//! (docs/profiles-reference.md).

use super::document::{OneOrMany, RulesDoc, Spec, StatusDoc, StrategyDoc};
use super::{EmptyBehavior, PolicyClass, SameTarget, Vocabulary};

/// Fills the fields that the preset of a profile sets and the profile itself does not.
///
/// # Errors
/// The preset does not exist, or the class contradicts it.
pub(super) fn expand(mut spec: Spec) -> Result<Spec, String> {
    let Some(name) = spec.preset.clone() else {
        return Ok(spec);
    };
    let class = match name.as_str() {
        "direct" => PolicyClass::Direct,
        "listed" => PolicyClass::Listed,
        _ => PolicyClass::Inherited,
    };
    match name.as_str() {
        "direct" => {
            strategies(&mut spec, &["None"]);
            same_target(&mut spec, SameTarget::RejectNewer);
            no_blocks(&mut spec);
        }
        "listed" => no_blocks(&mut spec),
        "gep713" => gep713(&mut spec),
        "gep713-2023" => gep713_2023(&mut spec),
        "kuadrant" => kuadrant(&mut spec, false),
        "kuadrant-rfc0009" => kuadrant(&mut spec, true),
        "most-specific-field" => {
            strategies(&mut spec, &["FieldDefaults"]);
            no_blocks(&mut spec);
        }
        "most-specific-whole" => {
            strategies(&mut spec, &["AtomicDefaults"]);
            no_blocks(&mut spec);
            spec.empty.get_or_insert(EmptyBehavior::Blocking);
        }
        other => {
            return Err(format!(
                "unknown preset `{other}`: the presets are direct, gep713, gep713-2023, kuadrant, \
                 kuadrant-rfc0009, most-specific-field, most-specific-whole and listed"
            ));
        }
    }
    if spec.class.is_some_and(|given| given != class) {
        return Err(format!(
            "class contradicts preset `{name}`, which fixes it to {}",
            class.name()
        ));
    }
    spec.class = Some(class);
    Ok(spec)
}

/// The current version of GEP-713.
fn gep713(spec: &mut Spec) {
    strategies(
        spec,
        &[
            "AtomicDefaults",
            "PatchDefaults",
            "AtomicOverrides",
            "PatchOverrides",
        ],
    );
    let strategy_choice = spec.strategy.get_or_insert_default();
    strategy_choice.field.get_or_insert(OneOrMany::Many(vec![
        "strategy".to_owned(),
        "mergeType".to_owned(),
    ]));
    rules(spec).both_blocks.get_or_insert(false);
    same_target(spec, SameTarget::Established);
}

/// The experimental version of GEP-713 of 2023.
fn gep713_2023(spec: &mut Spec) {
    strategies(spec, &["StructuralDefaults", "StructuralOverrides"]);
    rules(spec).both_blocks.get_or_insert(true);
    same_target(spec, SameTarget::OldestWins);
    let status = spec.status.get_or_insert(StatusDoc {
        vocabulary: None,
        ancestor: None,
    });
    status.vocabulary.get_or_insert(Vocabulary::Enforced);
}

/// The released Kuadrant kinds, or those of Kuadrant RFC 0009.
fn kuadrant(spec: &mut Spec, rfc0009: bool) {
    strategies(
        spec,
        &[
            "AtomicDefaults",
            "AtomicOverrides",
            "RuleDefaults",
            "RuleOverrides",
        ],
    );
    let offered = spec.strategies.clone().unwrap_or_default();
    let offers = |granularity: &str| offered.iter().any(|name| name.starts_with(granularity));
    let strategy_choice: &mut StrategyDoc = spec.strategy.get_or_insert_default();
    strategy_choice
        .field
        .get_or_insert(OneOrMany::One("strategy".to_owned()));
    strategy_choice.values.get_or_insert_with(|| {
        let values = [("atomic", "Atomic"), ("merge", "Rule")].into_iter();
        let values = values.filter(|(_, granularity)| offers(granularity));
        values
            .map(|(raw, granularity)| (raw.to_owned(), granularity.to_owned()))
            .collect()
    });
    let rules = rules(spec);
    rules.both_blocks.get_or_insert(rfc0009);
    if rfc0009 {
        rules.when.get_or_insert("when".to_owned());
        rules.unset.get_or_insert("unset".to_owned());
    }
    same_target(spec, SameTarget::Established);
}

fn strategies(spec: &mut Spec, names: &[&str]) {
    spec.strategies
        .get_or_insert_with(|| names.iter().map(|&n| n.to_owned()).collect());
}

fn same_target(spec: &mut Spec, value: SameTarget) {
    spec.same_target.get_or_insert(value);
}

fn rules(spec: &mut Spec) -> &mut RulesDoc {
    spec.rules.get_or_insert_default()
}

fn no_blocks(spec: &mut Spec) {
    let rules = rules(spec);
    rules.defaults.get_or_insert_default();
    rules.overrides.get_or_insert_default();
}
