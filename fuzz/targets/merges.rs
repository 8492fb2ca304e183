//! Merges two blocks that tenants wrote: the bodies of a policy of a Gateway and of a route, separated
//! by a line with `===`. Whatever they hold, the answer is explained as it is served, in each order of
//! arrival.

use std::sync::{Arc, LazyLock};

use entail::source::manifests::read_objects;
use entail_core::effective::World;
use entail_core::engine::PathEngine;
use entail_core::model::Change;
use entail_core::store::{ProfileSources, Store};

static SHIPPED: LazyLock<ProfileSources> = LazyLock::new(ProfileSources::shipped);

/// A path, and a profile for each way to merge.
const WORLD: &str = "
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: any}, spec: {controllerName: a.b/c}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: gw}, spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: gw}], rules: [{}]}}
";

/// The names of the profiles' kinds, and their settings.
const PROFILES: &[(&str, &str)] = &[
    (
        "Patched",
        "preset: gep713, strategy: {values: {atomic: Atomic, merge: Patch}}",
    ),
    ("Ruled", "preset: kuadrant-rfc0009, ruleMaps: [limits, a.b]"),
    ("Fields", "preset: most-specific-field"),
    ("Whole", "preset: most-specific-whole"),
    (
        "Reduced",
        "strategies: [CustomDefaults], reducers: [{path: a, reduce: min}, {path: b, reduce: union}, {path: c, reduce: append}]",
    ),
];

/// The manifests of an input.
fn manifests(upper: &str, lower: &str) -> Vec<String> {
    let mut texts: Vec<String> = WORLD.split("---").map(str::to_owned).collect();
    for (kind, settings) in PROFILES {
        texts.push(format!(
            "{{apiVersion: entail.dev/v1alpha1, kind: PolicyProfile, metadata: {{name: {kind}}}, spec: {{policy: {{group: \
             f.example, kind: {kind}}}, effectiveTarget: RouteRule, {settings}}}}}"
        ));
        for (name, target, of, block) in [
            ("upper", "Gateway", "gw", upper),
            ("lower", "HTTPRoute", "r", lower),
        ] {
            let reference = format!(
                "targetRefs: [{{group: gateway.networking.k8s.io, kind: {target}, name: {of}}}]"
            );
            texts.push(format!(
                "apiVersion: f.example/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n  {reference}\n  {}\n",
                block.trim_end().replace('\n', "\n  ")
            ));
        }
    }
    texts
}

/// Returns the answers of a world, and checks their explanations.
fn answers<'t>(texts: impl Iterator<Item = &'t String>) -> Vec<String> {
    let mut store = Store::default();
    for text in texts {
        let objects = read_objects(text, "fuzz").objects.into_iter();
        store.apply(Change {
            upserts: objects.map(|read| Arc::new(read.object)).collect(),
            ..Change::default()
        });
    }
    let engine = PathEngine::new(World::from_store(store, &SHIPPED));
    let world = engine.world();
    let mut answers = Vec::new();
    world.topology().visit(&mut |_, trail| {
        for kind in world.kinds() {
            if let Some(chain) = world.attachment_chain(kind, trail) {
                let answer = world.answer(kind, &chain);
                assert_eq!(world.explain(kind, &chain).effective, answer);
                answers.push(format!("{answer:?}"));
            }
        }
    });
    answers
}

/// Checks one input.
pub fn check(text: &str) {
    let (upper, lower) = text.split_once("===").unwrap_or((text, ""));
    // Separators would make objects of their own, which `manifests` checks.
    if text.contains("---") {
        return;
    }
    let texts = manifests(upper, lower);
    let mut once = answers(texts.iter());
    let mut again = answers(texts.iter().rev());
    once.sort();
    again.sort();
    assert_eq!(once, again, "the order of arrival has no effect");
}
