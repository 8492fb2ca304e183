//! Conditions and reducers come from tenants: whatever they write compiles or is refused, and ends.

use std::sync::LazyLock;

use entail_core::expr::Expression;
use serde_json::{Value, json};

static RULES: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "attempts": 3, "enabled": true, "name": "baker", "ratio": 0.5, "none": null,
        "codes": [500, 502, 503], "limits": {"a": {"rate": 10}, "b": {"rate": 20}},
        "big": 9_223_372_036_854_775_807_i64, "deep": {"er": {"still": ["x", {"y": "z"}]}},
    })
});

/// Checks one input.
pub fn check(source: &str) {
    let Ok(expression) = Expression::compile(source) else {
        return;
    };
    assert_eq!(expression.source(), source);
    let rules: &Value = &RULES;
    let once = expression.evaluate(&[
        ("self", rules),
        ("established", rules),
        ("challenger", rules),
    ]);
    let again = expression.evaluate(&[
        ("self", rules),
        ("established", rules),
        ("challenger", rules),
    ]);
    assert_eq!(
        once.ok(),
        again.ok(),
        "the same question has the same answer"
    );
    assert_eq!(
        expression.is_true(&[("self", rules)]),
        expression.is_true(&[("self", rules)])
    );
}
