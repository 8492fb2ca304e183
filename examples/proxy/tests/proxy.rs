//! Tests the example proxy between a client and a backend, with a real server whose policies change.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test fails by panicking"
)]

#[path = "proxy/scene.rs"]
mod scene;

use scene::Scene;

/// An inconsistent profile: while it exists, the state of its kind is UNKNOWN.
const INVALID_PROFILE: &str = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: backendtrafficpolicies.gateway.envoyproxy.io}
spec:
  policy: {group: gateway.envoyproxy.io, kind: BackendTrafficPolicy}
  class: Direct
  strategies: [PatchDefaults, PatchOverrides]
";

/// The manifests of the example. Limits are per year, so that no bucket is refilled during a test.
fn world() -> String {
    let world = include_str!("../world.yaml");
    edited(world, "unit: Minute", "unit: Year")
}

#[track_caller]
fn edited(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} not found");
    text.replace(from, to)
}

/// Sends requests until the bucket is empty, which takes `tokens` requests.
#[track_caller]
fn spend(scene: &Scene, path: &str, tokens: u32) {
    for _ in 0..tokens {
        assert_eq!(scene.get(path).status, 200);
    }
    let response = scene.get(path);
    assert_eq!(response.status, 429);
    let seconds: u64 = response.header("retry-after").parse().unwrap();
    assert!(seconds > 0, "{response:?}");
}

#[test]
fn each_rule_has_its_retries() {
    let scene = Scene::started(&world());
    // The policy of the Gateway: two retries, on two statuses.
    let look = || scene.get("/cart");
    assert_eq!(scene.tries(0, 503, look), (200, 0, 1));
    assert_eq!(scene.tries(2, 503, look), (200, 2, 3));
    assert_eq!(scene.tries(3, 502, look), (502, 2, 3));
    assert_eq!(scene.tries(1, 500, look), (500, 0, 1));
    // It also applies if the backend is unreachable.
    let unreachable = || scene.get("/unreachable");
    assert_eq!(scene.tries(0, 503, unreachable), (502, 2, 0));
    // Merged with the policy of the rule: one retry, with the triggers of the Gateway.
    let pay = || scene.get("/cart/pay");
    assert_eq!(scene.tries(1, 503, pay), (200, 1, 2));
    assert_eq!(scene.tries(2, 503, pay), (503, 1, 2));
    // Replaced by the policy of the route: four retries, on any failure.
    let search = || scene.get("/search?q=1");
    assert_eq!(scene.tries(4, 500, search), (200, 4, 5));
}

#[test]
fn a_timeout_is_retried() {
    let world = edited(&world(), "timeout: 10s", "timeout: 100ms");
    let scene = Scene::started(&edited(&world, "[connect-failure,", "[reset,"));
    scene.backend.fail(u32::MAX, None);
    let response = scene.get("/cart");
    assert_eq!(response.status, 504);
    assert_eq!(response.header("x-retries"), "2");
}

#[test]
fn only_repeatable_requests_are_retried() {
    let scene = Scene::started(&world());
    let post = || scene.send("POST", "/cart", "", b"one loaf");
    assert_eq!(scene.tries(1, 503, post), (503, 0, 1));
    let once = || scene.send("POST", "/cart", "idempotency-key: 7\r\n", b"one loaf");
    assert_eq!(scene.tries(1, 503, once), (200, 1, 2));
    assert_eq!(scene.backend.bodies(), [b"one loaf", b"one loaf"]);

    let small = vec![b'x'; 64 * 1024];
    let put = || scene.send("PUT", "/cart", "", &small);
    assert_eq!(scene.tries(1, 503, put), (200, 1, 2));
    // One byte more than is buffered: it is forwarded completely, without retries.
    let large = vec![b'x'; 64 * 1024 + 1];
    let put = || scene.send("PUT", "/cart", "", &large);
    assert_eq!(scene.tries(1, 503, put), (503, 0, 1));
    assert_eq!(scene.backend.bodies(), [large.as_slice()]);

    // Ambiguous targets are rejected.
    scene.backend.fail(0, None);
    for path in [
        "/search/../cart/pay",
        "/search/%2E%2e/cart/pay",
        "//cart/pay",
    ] {
        assert_eq!(scene.get(path).status, 400, "{path}");
    }
    assert_eq!(scene.get("/carts").status, 404);
    assert!(scene.backend.bodies().is_empty());
}

#[test]
fn each_rule_has_its_own_limit() {
    // With the policy on the whole route, both rules have the same answer.
    let scene = Scene::started(&edited(&world(), ", sectionName: pay", ""));
    // A request with retries takes one token.
    scene.backend.fail(1, Some(503));
    spend(&scene, "/cart/pay", 5);
    assert_eq!(scene.backend.bodies().len(), 6);
    assert_eq!(scene.get("/till").status, 429, "the same rule");
    spend(&scene, "/cart", 5);
    assert_eq!(scene.get("/search").status, 200);
}

#[test]
fn an_edit_changes_limits_and_retries() {
    let scene = Scene::started(&world());
    spend(&scene, "/cart/pay", 5);
    // A changed limit starts with a full bucket.
    let world = edited(&world(), "requests: 5,", "requests: 3,");
    let world = edited(&world, "numRetries: 1}", "numRetries: 3}");
    scene.put("world.yaml", &world);
    scene.until("the new limit", || scene.get("/cart/pay").status == 200);
    let pay = || scene.get("/cart/pay");
    assert_eq!(scene.tries(3, 503, pay), (200, 3, 4));
    spend(&scene, "/cart/pay", 1);

    // Changed retries do not refill the bucket. A rule with tokens shows that they are applied.
    scene.put("world.yaml", &edited(&world, "[502, 503]", "[418]"));
    let look = || scene.get("/cart");
    scene.until("the new retries", || {
        scene.tries(1, 418, look) == (200, 1, 2)
    });
    assert_eq!(scene.get("/cart/pay").status, 429);
}

#[test]
fn the_proxy_continues_without_the_server() {
    let mut scene = Scene::new(&world());
    // Before the first update no request passes.
    let response = scene.get("/cart");
    assert_eq!(response.status, 503);
    assert_eq!(response.header("retry-after"), "1");
    assert!(scene.backend.bodies().is_empty());
    scene.start();
    spend(&scene, "/cart/pay", 5);

    scene.entail = None;
    scene.until("it is stale", || {
        scene.get("/search").header("x-policies") == "stale"
    });
    let look = || scene.get("/cart");
    assert_eq!(scene.tries(2, 503, look), (200, 2, 3));
    assert_eq!(scene.get("/cart/pay").status, 429);

    // An update with the same answers does not refill the buckets.
    scene.start();
    assert_eq!(scene.get("/cart/pay").status, 429);
    assert!(scene.proxy.terminate());
}

#[test]
fn requests_without_a_known_policy_are_rejected() {
    let scene = Scene::started(&world());
    let answers = |path: &str, status: u16, expected: &str| {
        scene.until(expected, || {
            let response = scene.get(path);
            let body = String::from_utf8(response.body).unwrap();
            response.status == status && body.contains(expected)
        });
    };
    // The kind becomes UNKNOWN.
    scene.put("profile.yaml", INVALID_PROFILE);
    let unknown = "the policies of BackendTrafficPolicy.gateway.envoyproxy.io are not known";
    answers("/cart", 503, unknown);
    std::fs::remove_file(scene.manifest("profile.yaml")).unwrap();
    answers("/cart", 200, "ok");

    // A limit that this proxy does not support affects only its rule.
    let costly = "      - cost: {}\n        limit: {requests: 5,";
    let costly = edited(&world(), "      - limit: {requests: 5,", costly);
    scene.put("world.yaml", &costly);
    answers("/cart/pay", 503, "cannot be applied");
    assert_eq!(scene.get("/cart").status, 200);

    // It is not known which controller evaluates the policies, so there may be others.
    let controller = "controllerName: gateway.envoyproxy.io/gatewayclass-controller";
    let other = edited(&world(), controller, "controllerName: example.com/unknown");
    scene.put("world.yaml", &other);
    answers("/cart", 503, "cannot be applied");

    // A deleted rule.
    let gone = edited(&world(), "name: pay\n", "name: order\n");
    scene.put("world.yaml", &gone);
    answers("/cart/pay", 503, "path not found");
    assert_eq!(scene.get("/cart").status, 200);
}
