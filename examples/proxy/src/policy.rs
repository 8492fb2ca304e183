//! What the proxy works with, made once of each distinct answer. On the request path nothing is
//! parsed.

use std::time::Duration;

use entail_client::EffectivePolicies;
use serde::Deserialize;

use crate::limit::Limit;
use crate::retry::{Retry, RetrySpec};

/// The kind of policy that is applied. Its profile is built into entail.
pub const KIND: &str = "BackendTrafficPolicy.gateway.envoyproxy.io";

/// What holds on a rule: the parts of the kind that this proxy knows how to apply.
#[derive(Debug, Default)]
pub struct Policy {
    pub retry: Retry,
    pub limit: Option<Limit>,
}

/// A policy, or that there is one which cannot be applied.
///
/// Several rules with equal answers share one of these, and it is made anew whenever the answer is
/// another. So it holds settings only: what counts requests is kept with the rule (`limit::Bucket`).
pub type Compiled = Result<Policy, Unusable>;

/// Requests must not pass as if there was no policy.
#[derive(Debug)]
pub struct Unusable;

/// The spec, as far as it is applied. Timeouts, circuit breakers and so on are left to proxies that
/// are more than an example.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    retry: Option<RetrySpec>,
    rate_limit: Option<RateLimitSpec>,
}

/// A field that is not known here may be what makes a limit strict (`global`, `clientSelectors`,
/// `cost`): such a spec is refused, not applied in part.
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

/// A duration as the Gateway API writes it: `1h30m`, `250ms`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

/// What the mirror keeps for an answer. It is called once for each distinct one, so this is also
/// the place to say in the log what is wrong with it.
pub fn compile(answer: &EffectivePolicies) -> Compiled {
    read(answer).map_err(|why| {
        tracing::error!(etag = answer.etag, "a policy cannot be applied: {why}");
        Unusable
    })
}

fn read(answer: &EffectivePolicies) -> Result<Policy, String> {
    // One kind is followed, so there is one entry or none, and none means no policy: that the kind
    // is known at all is looked at with each request (`forward`).
    let Some(policy) = answer.policies.first() else {
        return Ok(Policy::default());
    };
    // Its author wanted something and was not understood. Envoy Gateway fails closed there, too. A
    // conflict is another matter: the older policy holds.
    let invalid = policy.rejected.iter().find(|one| one.reason == "Invalid");
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
            _ => Err("this proxy applies one rate limit to a rule, not several".to_owned()),
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
            .ok_or_else(|| format!("`{text}` is no duration: write `10s`, `250ms` or `1h30m`"))
    }
}

/// At most four parts of at most five digits each (GEP-2257): so nothing overflows.
fn sum_of_parts(mut rest: &str) -> Option<Duration> {
    // `ms` before `m`, which begins it.
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
