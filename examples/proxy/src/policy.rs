//! Compiles each distinct answer of entail once, so that nothing is parsed on the request path.

use std::time::Duration;

use entail_client::EffectivePolicies;
use serde::Deserialize;

use crate::limit::Limit;
use crate::retry::{Retry, RetrySpec};

/// The policy kind that this proxy applies. Its profile is built into entail.
pub const KIND: &str = "BackendTrafficPolicy.gateway.envoyproxy.io";

/// The effective policy of a rule: the parts of the kind that this proxy applies.
#[derive(Debug, Default)]
pub struct Policy {
    pub retry: Retry,
    pub limit: Option<Limit>,
}

/// A compiled answer.
///
/// Rules with equal answers share one value, and a changed answer is a new value. It therefore
/// contains only settings; counters belong to the rule (`limit::Bucket`).
pub type Compiled = Result<Policy, Unusable>;

/// There is a policy that cannot be applied. Requests must be rejected, not forwarded without it.
#[derive(Debug)]
pub struct Unusable;

/// The fields of the spec that this example applies. A complete proxy would also apply timeouts,
/// circuit breakers and so on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    retry: Option<RetrySpec>,
    rate_limit: Option<RateLimitSpec>,
}

/// An unknown field may make a limit stricter (`global`, `clientSelectors`, `cost`): such a spec is
/// rejected, not applied in part.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RateLimitSpec {
    #[serde(rename = "type")]
    _type: Option<OnlyLocal>,
    local: Option<LocalSpec>,
}

#[derive(Debug, Deserialize)]
enum OnlyLocal {
    Local,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LocalSpec {
    #[serde(default)]
    rules: Vec<LimitRule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitRule {
    limit: LimitSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitSpec {
    requests: u32,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

/// A duration in the format of the Gateway API: `1h30m`, `250ms`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

/// Compiles an answer. The mirror calls it once for each distinct answer, so that an error is logged
/// once.
pub fn compile(answer: &EffectivePolicies) -> Compiled {
    parse(answer).map_err(|error| {
        tracing::error!(etag = answer.etag, "a policy cannot be applied: {error}");
        Unusable
    })
}

fn parse(answer: &EffectivePolicies) -> Result<Policy, String> {
    // The mirror copies one kind, so there is at most one entry. Without an entry there is no
    // policy, provided that the state of the kind is known, which `forward` checks for each request.
    let Some(policy) = answer.policies.first() else {
        return Ok(Policy::default());
    };
    // Not known on these paths, although the state of the kind is.
    if let Some(unknown) = &policy.unknown {
        return Err(format!("{}: {}", unknown.reason, unknown.message));
    }
    // An invalid policy has an unknown intent: fail closed, as Envoy Gateway does. After a conflict
    // the older policy applies.
    let mut rejected = policy.rejected.iter();
    let invalid = rejected.find(|rejected| rejected.reason == "Invalid");
    if let Some(invalid) = invalid {
        let name = invalid.policy.clone().unwrap_or_default();
        let message = &invalid.message;
        return Err(format!("{}/{}: {message}", name.namespace, name.name));
    }
    if !policy.not_computed.is_empty() {
        return Err(policy.not_computed.clone());
    }
    let Some(spec) = &policy.spec_json else {
        return Ok(Policy::default());
    };
    let spec: Spec = serde_json::from_str(spec).map_err(|error| error.to_string())?;
    Ok(Policy {
        retry: spec.retry.map_or_else(Retry::default, RetrySpec::compile),
        limit: spec.rate_limit.map_or(Ok(None), RateLimitSpec::compile)?,
    })
}

impl RateLimitSpec {
    fn compile(self) -> Result<Option<Limit>, String> {
        let rules = self.local.map(|local| local.rules).unwrap_or_default();
        match rules.as_slice() {
            [] => Ok(None),
            [rule] => Ok(Some(Limit {
                requests: rule.limit.requests,
                per: rule.limit.unit.length(),
            })),
            _ => Err("this proxy supports one rate limit per rule".to_owned()),
        }
    }
}

impl Unit {
    fn length(self) -> Duration {
        const HOUR: u64 = 60 * 60;
        Duration::from_secs(match self {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour => HOUR,
            Unit::Day => 24 * HOUR,
            Unit::Month => 30 * 24 * HOUR,
            Unit::Year => 365 * 24 * HOUR,
        })
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let sum = sum_of_parts(&text).filter(|_| !text.is_empty());
        sum.map(Span)
            .ok_or_else(|| format!("`{text}` is not a duration: use `10s`, `250ms` or `1h30m`"))
    }
}

/// Adds up the parts of a duration. GEP-2257 allows at most four parts of at most five digits each,
/// so the sum does not overflow.
fn sum_of_parts(mut rest: &str) -> Option<Duration> {
    // `ms` before `m`, which is its prefix.
    const UNITS: [(&str, u64); 4] = [("ms", 1), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    let mut sum = 0;
    for _ in 0..4 {
        let Some(end) = rest.find(|c: char| !c.is_ascii_digit()) else {
            break;
        };
        let (digits, tail) = rest.split_at_checked(end)?;
        let number: u64 = digits.parse().ok().filter(|_| digits.len() <= 5)?;
        let mut units = UNITS.iter();
        let (length, after) =
            units.find_map(|(name, length)| Some((length, tail.strip_prefix(name)?)))?;
        sum += number * length;
        rest = after;
    }
    rest.is_empty().then(|| Duration::from_millis(sum))
}
