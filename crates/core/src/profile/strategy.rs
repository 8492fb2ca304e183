//! The choice of the strategy of a block (specification 5.3).

use super::{Profile, StrategyField, StrategyValue};
use crate::model::{BlockName, Direction, Encoded, Granularity, Strategy, field_path_text};

/// Returns the strategy that a policy names for a block, or the default.
///
/// # Errors
/// Why the policy is Invalid. A strategy that the kind does not offer is never replaced by the
/// default (specification 3.4).
pub(super) fn strategy(
    profile: &Profile,
    object: Encoded<'_>,
    container: Encoded<'_>,
    block: BlockName,
) -> Result<Strategy, String> {
    match strategy_field(profile, object, container)? {
        None => default_strategy(profile, block),
        Some((field, value)) => {
            let raw = value
                .text()
                .ok_or_else(|| format!("strategy field `{field}` is not a string"))?;
            parse_strategy(profile, raw, block)
        }
    }
}

/// Returns the strategy that a raw value means for a block.
///
/// # Errors
/// The kind does not offer the strategy, or its direction is not that of the block.
pub(super) fn parse_strategy(
    profile: &Profile,
    raw: &str,
    block: BlockName,
) -> Result<Strategy, String> {
    let unknown = || format!("the kind does not offer strategy `{raw}`");
    let choice = if profile.strategy_choice.values.is_empty() {
        Granularity::parse(raw)
            .map(StrategyValue::Granularity)
            .or_else(|| Strategy::parse(raw).map(StrategyValue::Strategy))
    } else {
        let values = &profile.strategy_choice.values;
        values.iter().find(|(name, _)| name == raw).map(|(_, c)| *c)
    };
    let strategy = match choice.ok_or_else(unknown)? {
        StrategyValue::Granularity(granularity) => {
            Strategy::Merge(granularity, direction_of(block))
        }
        StrategyValue::Strategy(strategy) => strategy,
    };
    if block != BlockName::Bare && strategy.direction() != Some(direction_of(block)) {
        return Err(format!(
            "the direction of strategy `{raw}` is not that of the block `{}`",
            block.as_str()
        ));
    }
    if profile.strategies.contains(&strategy) {
        Ok(strategy)
    } else {
        Err(unknown())
    }
}

/// Returns the strategy field of the policy, in the block or at its path.
fn strategy_field<'v>(
    profile: &Profile,
    object: Encoded<'v>,
    container: Encoded<'v>,
) -> Result<Option<(String, Encoded<'v>)>, String> {
    let mut field_value = None;
    for field in &profile.strategy_choice.fields {
        let value = match field {
            StrategyField::Name(name) => container.get(name).map(|v| (name.clone(), v)),
            StrategyField::Path(path) => {
                let value = object.at_path(path, None);
                value.map(|v| (field_path_text(path), v))
            }
        };
        let Some((name, value)) = value.filter(|(_, v)| !v.is_null()) else {
            continue;
        };
        if let Some((other, _)) = field_value {
            return Err(format!(
                "the policy has two strategy fields: `{other}` and `{name}`"
            ));
        }
        field_value = Some((name, value));
    }
    Ok(field_value)
}

/// Returns the strategy for an omitted value.
pub(super) fn default_strategy(profile: &Profile, block: BlockName) -> Result<Strategy, String> {
    let fits = |strategy: &Strategy| {
        block == BlockName::Bare || strategy.direction() == Some(direction_of(block))
    };
    let default = profile.strategy_choice.default.map(|choice| match choice {
        StrategyValue::Granularity(granularity) => {
            Strategy::Merge(granularity, direction_of(block))
        }
        StrategyValue::Strategy(strategy) => strategy,
    });
    let offered = |strategy: &Strategy| profile.strategies.contains(strategy) && fits(strategy);
    if let Some(default) = default.filter(|s| offered(s)) {
        return Ok(default);
    }
    let first = [
        Strategy::Merge(Granularity::Atomic, Direction::Defaults),
        Strategy::Merge(Granularity::Patch, Direction::Defaults),
        Strategy::Merge(Granularity::Atomic, Direction::Overrides),
        Strategy::Merge(Granularity::Patch, Direction::Overrides),
        Strategy::Merge(Granularity::Custom, Direction::Defaults),
        Strategy::Merge(Granularity::Custom, Direction::Overrides),
    ];
    first
        .into_iter()
        .find(|s| offered(s))
        .or_else(|| profile.strategies.iter().copied().find(|s| fits(s)))
        .ok_or_else(|| {
            format!(
                "the kind offers no strategy with the direction of the block `{}`",
                block.as_str()
            )
        })
}

/// Returns the direction of a block. Bare rules are implicit defaults (specification 5.1).
fn direction_of(block: BlockName) -> Direction {
    match block {
        BlockName::Overrides => Direction::Overrides,
        BlockName::Bare | BlockName::Defaults | BlockName::OwnFields => Direction::Defaults,
    }
}
