//! Assertions that follow changes, against the same assertions checked from scratch, path by path, and by a judge that
//! knows only the names of paths and what a look-up returns.

use std::sync::Arc;

use entail::api::v1;
use entail::insight::{
    AccessScope, AssertionChecker, Budget, ObjectVisibility, Visibility, broken_by,
    check_assertions, compare, get, list_paths, today,
};
use entail::snapshot::{Snapshot, Version};
use entail_core::model::{GroupKind, ObjectKey, PathName, Root, TrafficPath};
use entail_core::profile::PolicyClass;
use jiff::civil::{Date, date};
use prost::Message;
use serde_json::{Value, json};
use v1::assertion_result::Outcome;

use super::follow::{NextChange, WorldHistory, version};
use super::profiles::GROUP;
use super::rng::Rng;
use super::worlds::World;

/// How many changes follow each other.
const STEPS: usize = 16;
/// The most paths that a result names.
const MOST: i32 = 10;

/// The day of the checks.
const TODAY: Date = date(2026, 6, 1);

/// (p) After every change the checker that follows says what a new one says, and what a walk of all paths says, and as many
/// paths pass and fail as the judge counts. Also returns the number of steps, and of those that were counted anew.
pub fn followed(world: &World) -> (Vec<String>, u64) {
    let mut rng = Rng::new(world.seed ^ 0xA55E);
    let kinds = policy_kinds(world);
    if kinds.is_empty() {
        return (Vec::new(), 0);
    }
    let written: Vec<Value> = (0..6)
        .map(|number| assertion(&mut rng, &kinds, number))
        .collect();
    let (mut way, change_often) = history(&mut rng, world);
    way.follow(&written, &[]);
    let mut checker = AssertionChecker::default();
    let mut wrong = Vec::new();
    let mut failing = 0;
    let mut last: Option<Arc<Snapshot>> = None;
    for step in 0..STEPS {
        let told = match step {
            0 => "the start".to_owned(),
            _ => {
                let (told, upserts, deletes) = match way.rng.below(4) {
                    0 | 1 => change_often(&mut way),
                    2 => way.change(),
                    _ => way.change_routes(),
                };
                way.follow(&upserts, &deletes);
                told
            }
        };
        // A checker may miss a snapshot.
        if step > 0 && rng.percent(10) {
            way.snapshot_builder.snapshot(numbered(step));
            continue;
        }
        let snapshot = Arc::new(way.snapshot_builder.snapshot(numbered(step)));
        let followed = checker.follow(&snapshot, TODAY);
        failing += followed.iter().filter(|result| result.failed > 0).count() as u64;
        if let Some(before) = last.replace(Arc::clone(&snapshot)) {
            let about = format!("seed {}, step {step}, {told}", world.seed);
            wrong.extend(breakage(&before, &snapshot, &written, &about));
        }
        let anew = AssertionChecker::default().follow(&snapshot, TODAY);
        let walked = walked(&snapshot);
        let about = format!("seed {}, step {step}, {told}", world.seed);
        wrong.extend(differences(
            &snapshot,
            &written,
            [&followed, &anew, &walked],
            &about,
        ));
        if step % 5 == 0 {
            wrong.extend(kept(&snapshot, &about));
        }
        if !wrong.is_empty() {
            break;
        }
    }
    (wrong, failing)
}

/// A world on its way, and the changes that it has most often.
fn history(rng: &mut Rng, world: &World) -> (WorldHistory, NextChange) {
    match rng.below(3) {
        0 => (
            WorldHistory::for_namespaces(world),
            WorldHistory::change_namespaces,
        ),
        1 => (
            WorldHistory::for_gateways(world),
            WorldHistory::change_gateways,
        ),
        _ => (WorldHistory::for_routes(world), WorldHistory::change_routes),
    }
}

/// What is wrong with the results that a snapshot keeps: callers who see everything get those of a check, also from a checker
/// that follows, and callers who do not see everything do not get them.
fn kept(snapshot: &Arc<Snapshot>, about: &str) -> Vec<String> {
    let asked = |visibility: &dyn Visibility| {
        let request = v1::CheckAssertionsRequest::default();
        let reply = check_assertions(snapshot, &request, entail::app::change_world, visibility);
        reply.expect("the request is valid").results
    };
    let everything = AccessScope::default();
    let only_assertions = |key: &ObjectKey| GroupKind::assertions().contains(&key.kind);
    let little = ObjectVisibility(only_assertions);
    let before = asked(&little);
    let made = asked(&everything);
    let checked = AssertionChecker::default().follow(snapshot, today());
    let mut pairs = vec![("made", &made, &checked), ("little", &before, &made)];
    let again = [asked(&everything), asked(&little)];
    pairs.push(("known", &again[0], &made));
    pairs.push(("little again", &again[1], &before));
    let mut wrong = Vec::new();
    for (name, left, right) in pairs {
        // Who sees no path is told of none.
        let should_differ = name == "little" && right.iter().any(|result| result.paths > 0);
        if (left == right) == should_differ {
            wrong.push(format!("{about}: {name}: {left:#?}\n{right:#?}"));
        }
    }
    wrong
}

/// What differs between the results of the checker that follows, of a new one, of a walk, and of the judge.
fn differences(
    snapshot: &Snapshot,
    written: &[Value],
    [followed, anew, walked]: [&[v1::AssertionResult]; 3],
    about: &str,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, result) in followed.iter().enumerate() {
        for (name, other) in [("anew", anew.get(at)), ("walked", walked.get(at))] {
            if Some(result) != other {
                wrong.push(format!("{about}: {result:#?}\n{name}: {other:#?}"));
            }
        }
        let of = |document: &&Value| document["metadata"]["name"] == name_of(result);
        let written = written.iter().find(of);
        let is_valid = result.outcome() != Outcome::Invalid && result.message.is_empty();
        let valid = written.filter(|_| is_valid);
        let judged = valid.and_then(|written| judged(snapshot, written));
        if let Some((passed, failed)) = judged
            && (result.paths, result.failed) != (passed + failed, failed)
        {
            let written = written.map(ToString::to_string).unwrap_or_default();
            wrong.push(format!(
                "{about}: {result:#?}\njudge: {passed} passed, {failed} failed: {written}"
            ));
        }
    }
    wrong
}

/// Whether effective policies and the names of paths decide an assertion.
fn reads_policies_alone(written: &Value) -> bool {
    let paths = &written["spec"]["paths"];
    let reads = written["spec"]["expect"]["cel"]
        .as_str()
        .unwrap_or_default();
    let decides = ["hostnames", "namespaces"];
    !reads.contains("||")
        && decides.iter().all(|field| paths.get(field).is_none())
        && paths
            .get("gateways")
            .is_none_or(|gateways| *gateways == json!({}))
}

/// What differs between the assertions that a change breaks, as found from the changed paths, and those that fail on more
/// paths after it, of assertions that effective policies and the names of paths decide.
fn breakage(before: &Snapshot, after: &Snapshot, written: &[Value], about: &str) -> Vec<String> {
    let all = AccessScope::default();
    let changes = compare(before.engine(), after.engine(), &all);
    let changed = changes.changes.iter().flat_map(|change| &change.paths);
    let changed: Vec<&String> = changed.chain(&changes.paths_added).collect();
    let mut wrong = Vec::new();
    for (paths, snapshot) in [
        (&changes.paths_added, after),
        (&changes.paths_removed, before),
    ] {
        wrong.extend(unnamed(snapshot, paths, &changes.kinds, about));
    }
    let names = changed.iter().map(|name| name.as_str());
    let (world, within) = (
        (after.engine(), [].as_slice()),
        (TODAY, Budget::unlimited()),
    );
    let found = broken_by(before, world, names, within).unwrap();
    let (old, new) = (walked(before), walked(after));
    for result in &new {
        let of = |other: &&v1::AssertionResult| other.object == result.object;
        let written = written
            .iter()
            .find(|written| written["metadata"]["name"] == name_of(result));
        let is_judged = written.is_some_and(reads_policies_alone);
        let Some(old) = old.iter().find(of).filter(|_| is_judged) else {
            continue;
        };
        // What is not known as a whole has no names of paths.
        let is_whole = |result: &v1::AssertionResult| {
            let failing = result.failed + result.unknown;
            result.failures.len() as u64 == failing && result.message.is_empty()
        };
        if !is_whole(old) || !is_whole(result) {
            continue;
        }
        let failed = |failure: &v1::AssertionPath| {
            old.failures.iter().any(|other| other.path == failure.path)
        };
        let expected = result
            .failures
            .iter()
            .filter(|failure| !failed(failure))
            .count() as u64;
        let broken = found
            .iter()
            .find(|broken| broken.object.to_string() == result.object);
        let count = broken.map_or(0, |broken| broken.paths);
        if count != expected {
            wrong.push(format!(
                "{about}: {broken:#?}\nexpected {expected}: {result:#?}\n{old:#?}"
            ));
        }
    }
    wrong
}

/// The kinds that are unknown on some paths and not among those of a comparison.
fn unnamed(
    snapshot: &Snapshot,
    paths: &[String],
    named: &[v1::KindState],
    about: &str,
) -> Vec<String> {
    let mut wrong = Vec::new();
    for path in paths {
        let request = v1::GetEffectivePoliciesRequest {
            target: Some(v1::get_effective_policies_request::Target::Path(
                path.clone(),
            )),
            ..Default::default()
        };
        let reply = get(snapshot, &request, &AccessScope::default()).expect("the path exists");
        let reply = v1::GetEffectivePoliciesResponse::decode(reply.encode_to_vec().as_slice());
        let answer = reply.expect("a reply").result.unwrap_or_default();
        let unknown = answer
            .policies
            .iter()
            .filter(|policy| policy.unknown.is_some());
        for policy in unknown {
            let kind = GroupKind::new(&*policy.group, &*policy.kind).to_string();
            if named.iter().all(|state| state.kind != kind) {
                wrong.push(format!("{about}: {kind} is unknown on {path}: {named:?}"));
            }
        }
    }
    wrong
}

fn numbered(step: usize) -> Version {
    Version {
        generation: step as u64 + 1,
        ..version()
    }
}

/// The results for a caller who sees everything and is checked at each path.
fn walked(snapshot: &Snapshot) -> Vec<v1::AssertionResult> {
    let request = v1::CheckAssertionsRequest {
        date: TODAY.to_string(),
        max_paths: MOST,
        ..v1::CheckAssertionsRequest::default()
    };
    let all = ObjectVisibility(|_: &entail_core::model::ObjectKey| true);
    let change = entail::app::change_world;
    let reply = check_assertions(snapshot, &request, change, &all);
    reply.expect("the request is valid").results
}

fn name_of(result: &v1::AssertionResult) -> &str {
    result.object.rsplit('/').next().unwrap_or_default()
}

/// The policy kinds of a world that have a name of their own.
fn policy_kinds(world: &World) -> Vec<String> {
    let documents = world.documents();
    let profiles = documents
        .iter()
        .filter(|document| document["kind"] == "PolicyProfile");
    let kinds = profiles.filter_map(|profile| profile["spec"]["policy"]["kind"].as_str());
    kinds.map(|kind| format!("{kind}.{GROUP}")).collect()
}

/// A random assertion.
fn assertion(rng: &mut Rng, kinds: &[String], number: usize) -> Value {
    let is_own = rng.percent(30);
    let mut metadata = json!({"name": format!("a{number}")});
    if is_own {
        metadata["namespace"] = json!(rng.pick(&["a-b", "a", "shop"]));
    }
    let level = rng.pick(&[
        "Gateway",
        "Listener",
        "Route",
        "RouteRule",
        "RouteRule",
        "Backend",
    ]);
    let mut paths = json!({"level": level});
    let is_below = |other: &str| is_below(level, other);
    if !is_own && rng.percent(30) {
        paths["gateways"] = rng.choose(&[
            json!({}),
            json!({"matchLabels": {"color": "red"}}),
            json!({"matchExpressions": [{"key": "color", "operator": "NotIn", "values": ["red"]}]}),
        ]);
    }
    if !is_own && rng.percent(25) {
        paths["hostnames"] = rng.choose(&[json!(["a.com"]), json!(["*.com", "x.org"])]);
    }
    if rng.percent(20) {
        paths["namespaces"] = json!({"matchLabels": {"color": rng.pick(&["red", "blue"])}});
    }
    if is_below("Route") && rng.percent(25) {
        paths["kinds"] = json!(["HTTPRoute"]);
    }
    let conditions = conditions(level, is_own);
    let expect = match rng.percent(20) {
        true => json!({"match": {"p": {"a": null}}}),
        false => json!({"cel": rng.pick(&conditions)}),
    };
    let mut spec = json!({
        "paths": paths,
        "policies": {"p": rng.choose(kinds)},
        "expect": expect,
    });
    if rng.percent(50) {
        spec["except"] = json!([
            {"object": "httproute/a/r0", "reason": "r"},
            {"object": "gateway/shop/g1", "reason": "r", "expires": rng.pick(&["2026-05-31", "2026-06-01"])},
            {"object": "namespace/a", "reason": "r"},
        ]);
    }
    json!({
        "apiVersion": "entail.dev/v1alpha1",
        "kind": if is_own { "EffectivePolicyAssertion" } else { "ClusterEffectivePolicyAssertion" },
        "metadata": metadata,
        "spec": spec,
    })
}

/// Whether a level is at or below another.
fn is_below(level: &str, other: &str) -> bool {
    let levels = ["Gateway", "Listener", "Route", "RouteRule", "Backend"];
    let at = |name: &str| levels.iter().position(|level| *level == name);
    at(level) >= at(other)
}

/// The conditions that an assertion about a level can have.
fn conditions(level: &str, is_own: bool) -> Vec<&'static str> {
    let is_below = |other: &str| is_below(level, other);
    let mut conditions = vec!["size(p) > 0", "size(p) == 0", "!has(p.a)", "p == {}"];
    if is_below("Route") {
        conditions.extend([
            "size(p) > 0 || 'color' in route.labels && route.labels.color == 'red'",
            "size(p) > 0 || namespace.name != 'shop' || !has(namespace.labels.color)",
        ]);
    }
    if is_below("RouteRule") {
        conditions.push("size(p) > 0 || rule == null || has(rule.backendRefs)");
    }
    if is_below("Backend") {
        conditions.push("size(p) > 0 || backend.kind == 'Service' && !has(backend.labels.color)");
    }
    if !is_own {
        conditions.push("size(p) > 0 || gateway == null || !has(gateway.labels.color)");
    }
    conditions
}

/// Counts the paths that pass and fail, of assertions that only the names of paths and the effective policies decide.
fn judged(snapshot: &Snapshot, assertion: &Value) -> Option<(u64, u64)> {
    let (spec, own) = (
        &assertion["spec"],
        assertion["metadata"]["namespace"].as_str(),
    );
    let paths = &spec["paths"];
    let is_simple = spec.get("except").is_none()
        && ["hostnames", "namespaces"]
            .iter()
            .all(|field| paths.get(field).is_none())
        && paths
            .get("gateways")
            .is_none_or(|gateways| *gateways == json!({}));
    let kind = spec["policies"]["p"].as_str()?;
    let mut kinds = snapshot.world().profiled_kinds();
    let is_listed = kinds.any(|known| {
        let profile = known.profile();
        GroupKind::parse(kind).names(&profile.policy) && profile.class == PolicyClass::Listed
    });
    if !is_simple || is_listed {
        return None;
    }
    let condition = spec["expect"]["cel"].as_str().unwrap_or("!has(p.a)");
    let request = v1::ListPathsRequest {
        levels: vec![paths["level"].as_str()?.to_owned()],
        page_size: 10_000,
        ..v1::ListPathsRequest::default()
    };
    let listed = list_paths(snapshot, &request, &AccessScope::default()).ok()?;
    let delegates = snapshot.engine().trie().has_delegating_rules();
    let (mut passed, mut failed) = (0, 0);
    for name in listed.paths {
        let Ok(PathName::Traffic(path)) = PathName::parse(&name) else {
            continue;
        };
        // A rule that delegates is no end.
        if delegates {
            return None;
        }
        if !is_about(paths, own, &path) {
            continue;
        }
        let policy = policy(snapshot, &name, kind);
        if policy.as_ref().is_some_and(|p| {
            p.unknown.is_some() || !p.listed.is_empty() || !p.not_computed.is_empty()
        }) {
            return None;
        }
        let holds = holds(policy, condition)?;
        match holds {
            true => passed += 1,
            false => failed += 1,
        }
    }
    Some((passed, failed))
}

/// Whether a condition holds for an effective policy; `None` if the judge does not know the condition.
fn holds(policy: Option<v1::EffectivePolicy>, condition: &str) -> Option<bool> {
    let value: Value = policy
        .and_then(|policy| policy.spec_json)
        .map_or_else(|| json!({}), |text| serde_json::from_str(&text).unwrap());
    let is_empty = value.as_object().is_none_or(serde_json::Map::is_empty);
    match condition {
        "size(p) > 0" => Some(!is_empty),
        "size(p) == 0" | "p == {}" => Some(is_empty),
        "!has(p.a)" => Some(value.get("a").is_none()),
        _ => None,
    }
}

/// The effective policy of a kind on a path, as a look-up returns it.
fn policy(snapshot: &Snapshot, path: &str, kind: &str) -> Option<v1::EffectivePolicy> {
    use v1::get_effective_policies_request::Target;
    let request = v1::GetEffectivePoliciesRequest {
        target: Some(Target::Path(path.to_owned())),
        kinds: vec![kind.to_owned()],
        if_none_match: String::new(),
    };
    let reply = get(snapshot, &request, &AccessScope::default()).ok()?;
    let bytes = reply.encode_to_vec();
    let reply = v1::GetEffectivePoliciesResponse::decode(bytes.as_slice()).ok()?;
    reply.result?.policies.into_iter().next()
}

/// Whether an assertion with these `paths`, in a namespace if `own` is set, is about a path of its level.
fn is_about(paths: &Value, own: Option<&str>, path: &TrafficPath<'_>) -> bool {
    let is_gateway = matches!(path.root, Root::Gateway { .. });
    let of_kind =
        paths.get("kinds").is_none() || path.route.is_some_and(|route| route.kind == "HTTPRoute");
    let namespace = match (path.route, path.listener_set, &path.root) {
        (Some(route), ..) => route.namespace,
        (None, Some(set), _) if path.listener.is_some() => set.namespace,
        (.., Root::Gateway { namespace, .. } | Root::Mesh { namespace, .. }) => namespace,
    };
    let is_of_gateway = paths.get("gateways").is_none() || is_gateway;
    // Paths of a mesh root need no Route.
    let level = paths["level"].as_str().unwrap_or_default();
    let has_route = path.route.is_some() || !is_below(level, "Route");
    of_kind && is_of_gateway && own.is_none_or(|own| own == namespace) && has_route
}
