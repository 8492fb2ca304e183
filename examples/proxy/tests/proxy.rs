//! The example proxy between a client and a backend, beside a real server whose policies change.

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

/// A profile that contradicts itself: nothing is known of its kind while it is there.
const REFUSED: &str = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: backendtrafficpolicies.gateway.envoyproxy.io}
spec:
  policy: {group: gateway.envoyproxy.io, kind: BackendTrafficPolicy}
  class: Direct
  strategies: [PatchDefaults, PatchOverrides]
";

/// The world of the example. Its limits are for a year: nothing is refilled while a test runs.
fn world() -> String {
    let world = include_str!("../world.yaml");
    edited(world, "unit: Minute", "unit: Year")
}

#[track_caller]
fn edited(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not there");
    text.replace(from, to)
}

/// Lets so many requests pass, after which none does.
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
fn retries_are_those_of_the_rule() {
    let scene = Scene::started(&world());
    // The Gateway's policy: two retries, of two statuses.
    let look = || scene.get("/cart");
    assert_eq!(scene.tries(0, 503, look), (200, 0, 1));
    assert_eq!(scene.tries(2, 503, look), (200, 2, 3));
    assert_eq!(scene.tries(3, 502, look), (502, 2, 3));
    assert_eq!(scene.tries(1, 500, look), (500, 0, 1));
    // It is also about backends that are not there.
    let lost = || scene.get("/lost");
    assert_eq!(scene.tries(0, 503, lost), (502, 2, 0));
    // Merged: one retry, for the Gateway's reasons.
    let pay = || scene.get("/cart/pay");
    assert_eq!(scene.tries(1, 503, pay), (200, 1, 2));
    assert_eq!(scene.tries(2, 503, pay), (503, 1, 2));
    // Replaced: four, of any failure.
    let search = || scene.get("/search?q=1");
    assert_eq!(scene.tries(4, 500, search), (200, 4, 5));
}

#[test]
fn who_takes_too_long_is_asked_again() {
    let world = edited(&world(), "timeout: 10s", "timeout: 100ms");
    let scene = Scene::started(&edited(&world, "[connect-failure,", "[reset,"));
    scene.backend.fail(u32::MAX, None);
    let response = scene.get("/cart");
    assert_eq!(response.status, 504);
    assert_eq!(response.header("x-retries"), "2");
}

#[test]
fn only_what_can_be_repeated_is() {
    let scene = Scene::started(&world());
    let post = || scene.send("POST", "/cart", "", b"one loaf");
    assert_eq!(scene.tries(1, 503, post), (503, 0, 1));
    let once = || scene.send("POST", "/cart", "idempotency-key: 7\r\n", b"one loaf");
    assert_eq!(scene.tries(1, 503, once), (200, 1, 2));
    assert_eq!(scene.backend.bodies(), [b"one loaf", b"one loaf"]);

    let small = vec![b'x'; 64 * 1024];
    let put = || scene.send("PUT", "/cart", "", &small);
    assert_eq!(scene.tries(1, 503, put), (200, 1, 2));
    // One byte more than is kept: it passes, once and whole.
    let large = vec![b'x'; 64 * 1024 + 1];
    let put = || scene.send("PUT", "/cart", "", &large);
    assert_eq!(scene.tries(1, 503, put), (503, 0, 1));
    assert_eq!(scene.backend.bodies(), [large.as_slice()]);

    // What table and backend could read differently comes to neither.
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
fn each_rule_has_a_limit_of_its_own() {
    // With the policy on the whole route both of its rules have the same answer.
    let scene = Scene::started(&edited(&world(), ", sectionName: pay", ""));
    // However often an attempt is repeated, it is one request.
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
    // Another limit begins anew, at once.
    let world = edited(&world(), "requests: 5,", "requests: 3,");
    let world = edited(&world, "numRetries: 1}", "numRetries: 3}");
    scene.put("world.yaml", &world);
    scene.until("the new limit", || scene.get("/cart/pay").status == 200);
    let pay = || scene.get("/cart/pay");
    assert_eq!(scene.tries(3, 503, pay), (200, 3, 4));
    spend(&scene, "/cart/pay", 1);

    // Other retries leave the limit alone. Where there is room left it shows that they are there.
    scene.put("world.yaml", &edited(&world, "[502, 503]", "[418]"));
    let look = || scene.get("/cart");
    scene.until("the new retries", || {
        scene.tries(1, 418, look) == (200, 1, 2)
    });
    assert_eq!(scene.get("/cart/pay").status, 429);
}

#[test]
fn it_goes_on_without_the_server() {
    let mut scene = Scene::new(&world());
    // Nothing is known yet, so nothing passes.
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

    // A new copy of the same answers gives nobody new tokens.
    scene.start();
    assert_eq!(scene.get("/cart/pay").status, 429);
    assert!(scene.proxy.terminate());
}

#[test]
fn what_is_not_known_does_not_pass() {
    let scene = Scene::started(&world());
    let answers = |path: &str, status: u16, told: &str| {
        scene.until(told, || {
            let response = scene.get(path);
            let body = String::from_utf8(response.body).unwrap();
            response.status == status && body.contains(told)
        });
    };
    // A kind of which nothing is known, whatever was known before.
    scene.put("profile.yaml", REFUSED);
    let unknown = "entail knows nothing of BackendTrafficPolicy.gateway.envoyproxy.io";
    answers("/cart", 503, unknown);
    std::fs::remove_file(scene.manifest("profile.yaml")).unwrap();
    answers("/cart", 200, "ok");

    // A limit that this proxy cannot apply; other rules go on.
    let costly = "      - cost: {}\n        limit: {requests: 5,";
    let costly = edited(&world(), "      - limit: {requests: 5,", costly);
    scene.put("world.yaml", &costly);
    answers("/cart/pay", 503, "cannot be applied");
    assert_eq!(scene.get("/cart").status, 200);

    // A rule that is gone.
    let gone = edited(&world(), "name: pay\n", "name: order\n");
    scene.put("world.yaml", &gone);
    answers("/cart/pay", 503, "there is no such path");
    assert_eq!(scene.get("/cart").status, 200);
}
