//! Compiles and evaluates arbitrary expressions: tenants write conditions and reducers, so these must
//! compile or be rejected, and evaluation must terminate with a deterministic result.

#![no_main]

use std::sync::LazyLock;

use entail_core::expr::Expression;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

static RULES: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "attempts": 3, "enabled": true, "name": "baker", "ratio": 0.5, "none": null,
        "codes": [500, 502, 503], "limits": {"a": {"rate": 10}, "b": {"rate": 20}},
        "big": 9_223_372_036_854_775_807_i64, "deep": {"er": {"still": ["x", {"y": "z"}]}},
    })
});

fuzz_target!(|source: &str| {
    let Ok(expression) = Expression::compile(source) else {
        return;
    };
    assert_eq!(expression.source(), source);
    let rules: &Value = &RULES;
    let first = expression.evaluate(&[
        ("self", rules),
        ("established", rules),
        ("challenger", rules),
    ]);
    let second = expression.evaluate(&[
        ("self", rules),
        ("established", rules),
        ("challenger", rules),
    ]);
    assert_eq!(first.ok(), second.ok(), "evaluation is not deterministic");
    assert_eq!(
        expression.is_true(&[("self", rules)]),
        expression.is_true(&[("self", rules)])
    );
});
