//! Expressions that are short and take long.

use std::sync::Arc;

use super::{GATEWAY, limit_policy, route, write};
use crate::run::{Attack, Outcome};
use crate::target::Target;

/// The attacks of this family.
pub const ATTACKS: &[Attack] = &[
    ("j-condition-map-of-lists", |target| {
        let condition = "self.limits.l.map(x, self.limits.l).size() > 0";
        Box::pin(condition_of(target, condition.to_owned()))
    }),
    ("j-condition-all", |target| {
        let comparisons: Vec<_> = (2..27).map(|number| format!("x != {number}")).collect();
        let condition = format!("self.limits.l.all(x, {})", comparisons.join(" && "));
        Box::pin(condition_of(target, condition))
    }),
    ("j-reducer", |target| Box::pin(reducer(target))),
];

/// The number of items of a list.
const ITEMS: usize = 100_000;
/// The number of routes, each with a list of its own.
const ROUTES: usize = 8;

/// A list of ones with one other number.
fn list(number: usize) -> String {
    format!("[{number}{}]", ",1".repeat(ITEMS))
}

async fn condition_of(target: Arc<Target>, condition: String) -> Outcome {
    let block =
        format!("overrides: {{strategy: merge, when: '{condition}', limits: {{o: {{value: 1}}}}}}");
    let mut text = format!(
        "{GATEWAY}{}",
        limit_policy("upper", "Gateway", "own", &block)
    );
    for number in 0..ROUTES {
        let name = format!("c{number}");
        text.push_str(&route(&name, "[{}]"));
        let block = format!("limits: {{l: {}}}", list(100 + number));
        text.push_str(&limit_policy(&name, "HTTPRoute", &name, &block));
    }
    write(&target, "conditions.yaml", &text).await
}

/// A profile of the tenant whose reducer copies a list for each item of another one.
async fn reducer(target: Arc<Target>) -> Outcome {
    let mut text = format!(
        "{GATEWAY}---\napiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {{name: reducers}}\nspec:\n  \
         policy: {{group: hostile.example, kind: ReducedPolicy}}\n  targets:\n  - {{group: gateway.networking.k8s.io, \
         kind: Gateway}}\n  - {{group: gateway.networking.k8s.io, kind: HTTPRoute}}\n  effectiveTarget: RouteRule\n  \
         strategies: [CustomDefaults]\n  reducers:\n  - {{path: l, reduce: {{cel: 'established.map(x, challenger)'}}}}\n"
    );
    let policy = |name: &str, kind: &str, of: &str, list: &str| {
        format!(
            "---\napiVersion: hostile.example/v1\nkind: ReducedPolicy\nmetadata: {{name: {name}, namespace: hostile}}\n\
             spec:\n  targetRefs: [{{group: gateway.networking.k8s.io, kind: {kind}, name: {of}}}]\n  defaults: {{l: \
             {list}}}\n"
        )
    };
    text.push_str(&policy("upper", "Gateway", "own", &list(2)));
    for number in 0..ROUTES {
        let name = format!("c{number}");
        text.push_str(&route(&name, "[{}]"));
        text.push_str(&policy(&name, "HTTPRoute", &name, &list(100 + number)));
    }
    write(&target, "reducers.yaml", &text).await
}
