//! `WatchEffectivePolicies`, and the mirror of the client.

use std::time::Duration;

use entail::api::v1;
use entail_client::{LookupError, Mirror, MirrorSettings};
use tonic::{Code, Streaming};

use super::follow::{marker, put};
use super::server::{PATH, Running, policies, start, start_at};

pub type Messages = Streaming<v1::WatchEffectivePoliciesResponse>;
pub type Update = Vec<v1::WatchEffectivePoliciesResponse>;

const PATIENCE: Duration = Duration::from_secs(10);

/// A request for the paths below a prefix.
fn watch_request(prefix: &str) -> v1::WatchEffectivePoliciesRequest {
    v1::WatchEffectivePoliciesRequest {
        prefixes: vec![prefix.to_owned()],
        ..Default::default()
    }
}

async fn begin(running: &Running, request: v1::WatchEffectivePoliciesRequest) -> Messages {
    let mut client = running.policies();
    client
        .watch_effective_policies(request)
        .await
        .unwrap()
        .into_inner()
}

/// The error of a request that the server rejects.
async fn watch_error(
    running: &Running,
    request: v1::WatchEffectivePoliciesRequest,
) -> tonic::Status {
    let mut client = running.policies();
    client.watch_effective_policies(request).await.unwrap_err()
}

/// Receives the messages of one update.
pub async fn update(messages: &mut Messages) -> Update {
    let mut update = Vec::new();
    loop {
        let next = tokio::time::timeout(PATIENCE, messages.message()).await;
        let message = next
            .expect("the server sends no message")
            .unwrap()
            .expect("the stream ended");
        let is_complete = message.complete;
        update.push(message);
        if is_complete {
            return update;
        }
    }
}

pub fn names(update: &Update) -> Vec<&str> {
    let paths = update.iter().flat_map(|message| &message.paths);
    paths.map(|path| &*path.path).collect()
}

pub fn bodies(update: &Update) -> Vec<&v1::NumberedBody> {
    update.iter().flat_map(|message| &message.bodies).collect()
}

fn mirror(running: &Running, prefixes: &[&str]) -> Mirror<u64> {
    let settings = MirrorSettings {
        server: running.address.clone(),
        prefixes: prefixes.iter().map(|text| (*text).to_owned()).collect(),
        max_backoff: Duration::from_millis(200),
        ..MirrorSettings::default()
    };
    Mirror::compiled(settings, |answer| answer.policies.first().map_or(0, marker)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_sends_all_paths_first_and_then_changes() {
    let running = start(|_| {}).await;
    let mut messages = begin(&running, watch_request(PATH)).await;
    let first = update(&mut messages).await;
    assert!(first[0].reset);
    assert_eq!(names(&first).len(), 3, "the rule, a backend, its port");
    // All paths share one answer.
    assert_eq!(bodies(&first).len(), 1);
    assert_eq!(marker(&bodies(&first)[0].policies[0]), 1);

    put(&running, "policies.yaml", &policies(2));
    let second = update(&mut messages).await;
    let last = second.last().unwrap();
    assert!(!second[0].reset);
    assert_eq!(names(&second).len(), 3);
    assert_eq!(marker(&bodies(&second)[0].policies[0]), 2);
    assert_eq!(last.removed_bodies, [bodies(&first)[0].number]);
    assert_eq!(last.version.as_ref().unwrap().generation, 2);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn added_and_removed_paths_are_sent() {
    let running = start(|_| {}).await;
    let gateway = v1::WatchEffectivePoliciesRequest {
        levels: vec!["RouteRule".to_owned()],
        ..watch_request("gateways/default/gw")
    };
    let mut messages = begin(&running, gateway).await;
    assert_eq!(names(&update(&mut messages).await), [PATH]);
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: new}\nspec: \
                 {parentRefs: [{name: gw}], rules: [{name: pay}]}\n";
    put(&running, "route.yaml", route);
    let added = update(&mut messages).await;
    let pay = "gateways/default/gw/listeners/http/routes/HTTPRoute/default/new/rules/pay";
    assert_eq!(names(&added), [pay]);
    assert_eq!(added[0].paths[0].rule_indexes, [0]);
    assert!(bodies(&added).is_empty(), "the paths share one answer");
    std::fs::remove_file(running.manifests().join("route.yaml")).unwrap();
    let removed = update(&mut messages).await;
    assert_eq!(removed[0].removed_paths, [pay]);
    assert!(names(&removed).is_empty());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_changes_gets_only_heartbeats() {
    let running = start(|settings| settings.limits.watch_heartbeat = Duration::from_secs(2)).await;
    let other = v1::WatchEffectivePoliciesRequest {
        kinds: vec!["APolicy.p.example".to_owned()],
        ..watch_request(PATH)
    };
    let mut messages = begin(&running, other).await;
    let first = update(&mut messages).await;
    assert_eq!(bodies(&first)[0].policies.len(), 1);
    // The other kind changes.
    let (a, b) = (policies(1), policies(7));
    let split = |text: &str| {
        text.find("---\napiVersion: p.example/v1\nkind: BPolicy")
            .unwrap()
    };
    let mixed = format!("{}{}", &a[..split(&a)], &b[split(&b)..]);
    put(&running, "policies.yaml", &mixed);
    let second = update(&mut messages).await;
    assert!(names(&second).is_empty() && bodies(&second).is_empty());
    // The change was published before the heartbeat.
    assert_eq!(second[0].version.as_ref().unwrap().generation, 2);
    assert!(second[0].synced_at.is_some());
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_if_nothing_has_changed() {
    let running = start(|_| {}).await;
    let mut messages = begin(&running, watch_request(PATH)).await;
    let token = update(&mut messages).await.pop().unwrap().resume_token;
    let resumed = |prefix: &str| v1::WatchEffectivePoliciesRequest {
        resume_token: token.clone(),
        ..watch_request(prefix)
    };
    let mut resumed_stream = begin(&running, resumed(PATH)).await;
    let first = update(&mut resumed_stream).await;
    assert!(!first[0].reset && names(&first).is_empty());
    // A token is valid only for the same request.
    let mut other = begin(&running, resumed("gateways/default/gw")).await;
    assert!(update(&mut other).await[0].reset);

    put(&running, "policies.yaml", &policies(2));
    let changed = update(&mut resumed_stream).await;
    assert_eq!((names(&changed).len(), bodies(&changed).len()), (3, 1));
    let mut late = begin(&running, resumed(PATH)).await;
    let late = update(&mut late).await;
    assert!(!late[0].reset, "the earlier content is known");
    assert_eq!((names(&late).len(), bodies(&late).len()), (3, 1));
    running.stop().await;
}

/// The token of a complete update.
fn token(update: &Update) -> String {
    update.last().unwrap().resume_token.clone()
}

/// The first update of a stream that resumes the whole Gateway.
async fn resume(running: &Running, token: &str) -> Update {
    let request = v1::WatchEffectivePoliciesRequest {
        resume_token: token.to_owned(),
        ..watch_request("gateways/default/gw")
    };
    let mut messages = begin(running, request).await;
    update(&mut messages).await
}

fn route(name: &str) -> String {
    format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: {name}}}\nspec: {{parentRefs: \
         [{{name: gw}}], rules: [{{}}]}}\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_by_content_across_generations() {
    let running = start(|_| {}).await;
    let mut follower = begin(&running, watch_request("gateways/default/gw")).await;
    let all = update(&mut follower).await;
    let first = token(&all);
    // A route comes, a policy changes many times, another route comes.
    put(&running, "route.yaml", &route("a"));
    let added = update(&mut follower).await;
    for marker in 2..10 {
        put(&running, "policies.yaml", &policies(marker));
        update(&mut follower).await;
    }
    put(&running, "policies.yaml", &policies(1));
    assert_eq!(token(&update(&mut follower).await), token(&added));
    put(&running, "route.yaml", &route("b"));
    let now = update(&mut follower).await;
    assert!(now.last().unwrap().version.as_ref().unwrap().generation > 10);

    let resumed = resume(&running, &first).await;
    assert!(!resumed[0].reset);
    let is_new = |path: &&str| path.contains("/HTTPRoute/default/b");
    assert_eq!(names(&resumed).len(), names(&added).len());
    assert!(names(&resumed).iter().all(is_new), "{resumed:?}");
    assert!(resumed[0].removed_paths.is_empty());
    let resumed = resume(&running, &token(&added)).await;
    assert_eq!(resumed[0].removed_paths.len(), names(&added).len());
    assert_eq!(token(&resumed), token(&now));
    let resumed = resume(&running, &token(&now)).await;
    assert!(!resumed[0].reset && names(&resumed).is_empty());
    // A content that no stream has had is sent as a whole.
    let (_, tag) = first.rsplit_once(':').unwrap();
    let unknown = format!("{}:{tag}", "0".repeat(32));
    assert!(resume(&running, &unknown).await[0].reset);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_resumes_on_another_server_with_the_same_content() {
    let (one, other) = (start(|_| {}).await, start(|_| {}).await);
    let mut follower = begin(&one, watch_request("gateways/default/gw")).await;
    let first = token(&update(&mut follower).await);
    let resumed = resume(&other, &first).await;
    assert!(!resumed[0].reset && names(&resumed).is_empty());
    assert_eq!(token(&resumed), first);
    // The changes of one server lead to the content of the other, which has a topology of its own.
    for running in [&one, &other] {
        put(running, "policies.yaml", &policies(2));
    }
    let second = token(&update(&mut follower).await);
    put(&one, "route.yaml", &route("a"));
    update(&mut follower).await;
    std::fs::remove_file(one.manifests().join("route.yaml")).unwrap();
    assert_eq!(token(&update(&mut follower).await), second);
    let mut resumed = resume(&other, &second).await;
    while token(&resumed) != second {
        resumed = resume(&other, &second).await;
    }
    assert!(!resumed[0].reset && names(&resumed).is_empty());
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_follow_the_content_of_many_paths() {
    let running = start(|_| {}).await;
    let routes: Vec<String> = (0..400).map(|n| route(&format!("n{n}"))).collect();
    put(&running, "routes.yaml", &routes.join("---\n"));
    let request = watch_request("gateways/default/gw");
    let mut follower = begin(&running, request.clone()).await;
    let mut all = update(&mut follower).await;
    while !names(&all).iter().any(|name| name.contains("/n399/")) {
        all = update(&mut follower).await;
    }
    // A change of some paths, and one of the list of paths: a new stream computes its token from all paths.
    for (file, text) in [
        ("extra.yaml", extra(&["n7", "n300"])),
        ("extra.yaml", extra(&["n7"])),
        ("routes.yaml", routes[..398].join("---\n")),
    ] {
        put(&running, file, &text);
        let changed = update(&mut follower).await;
        assert!(!changed[0].reset && names(&changed).len() < 10);
        let mut fresh = begin(&running, request.clone()).await;
        assert_eq!(token(&changed), token(&update(&mut fresh).await), "{file}");
        let resumed = resume(&running, &token(&all)).await;
        assert!(!resumed[0].reset && names(&resumed).len() < 10);
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_publishes_nothing() {
    let running = start(|_| {}).await;
    let mut follower = begin(&running, watch_request("gateways/default/gw")).await;
    update(&mut follower).await;
    put(&running, "route.yaml", &route("a"));
    update(&mut follower).await;
    for number in 0..5 {
        let status = format!("status: {{parents: [], observed: {number}}}\n");
        put(&running, "route.yaml", &(route("a") + &status));
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    put(&running, "policies.yaml", &policies(2));
    let changed = update(&mut follower).await;
    let version = changed.last().unwrap().version.as_ref().unwrap();
    assert_eq!(version.generation, 3);
    running.stop().await;
}

/// A manifest of another policy, on some routes.
fn extra(routes: &[&str]) -> String {
    let targets = routes
        .iter()
        .map(|name| format!("{{group: gateway.networking.k8s.io, kind: HTTPRoute, name: {name}}}"));
    let targets: Vec<String> = targets.collect();
    format!(
        "apiVersion: p.example/v1\nkind: APolicy\nmetadata: {{name: extra}}\nspec:\n  targetRefs: [{}]\n  defaults: \
         {{extra: true}}\n",
        targets.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_stream_sends_every_answer_that_it_refers_to() {
    let running = start(|_| {}).await;
    put(&running, "extra.yaml", &extra(&["r"]));
    let rules = v1::WatchEffectivePoliciesRequest {
        levels: vec!["RouteRule".to_owned()],
        ..watch_request("gateways/default/gw")
    };
    let mut messages = begin(&running, rules.clone()).await;
    let mut last = update(&mut messages).await;
    while last.last().unwrap().version.as_ref().unwrap().generation < 2 {
        last = update(&mut messages).await;
    }
    let resumed = v1::WatchEffectivePoliciesRequest {
        resume_token: last.pop().unwrap().resume_token,
        ..rules
    };
    let mut messages = begin(&running, resumed).await;
    assert!(!update(&mut messages).await[0].reset);
    let mut sent = Vec::new();
    // A new route has a new answer; then it gets the answer that the first stream sent.
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: new}\nspec: \
                 {parentRefs: [{name: gw}], rules: [{}]}\n";
    for (file, text) in [
        ("route.yaml", route.to_owned()),
        ("extra.yaml", extra(&["r", "new"])),
    ] {
        put(&running, file, &text);
        let update = update(&mut messages).await;
        sent.extend(bodies(&update).iter().map(|body| body.number));
        assert_eq!(names(&update).len(), 1, "{update:?}");
        let number = update[0].paths[0].body;
        assert!(sent.contains(&number), "{number} is not among {sent:?}");
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_and_excess_streams_are_rejected() {
    let running = start(|settings| {
        settings.limits.watch_paths.per_watch = 4;
        settings.limits.watches_per_connection = 2;
    })
    .await;
    let error = watch_error(&running, watch_request("gateways/default/gw/listners/x")).await;
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("byte"), "{}", error.message());
    let level = v1::WatchEffectivePoliciesRequest {
        levels: vec!["Rule".to_owned()],
        ..Default::default()
    };
    let error = watch_error(&running, level).await;
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("RouteRule"), "{}", error.message());
    let error = watch_error(&running, Default::default()).await;
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert!(
        error.message().contains("more than 4 paths"),
        "{}",
        error.message()
    );

    let first = begin(&running, watch_request(PATH)).await;
    let _second = begin(&running, watch_request("gateways/none/none")).await;
    let error = watch_error(&running, watch_request(PATH)).await;
    assert_eq!(error.code(), Code::ResourceExhausted);
    // A stream that ends returns its permits.
    drop(first);
    for attempt in 0.. {
        let mut client = running.policies();
        if client
            .watch_effective_policies(watch_request(PATH))
            .await
            .is_ok()
        {
            break;
        }
        assert!(attempt < 200, "the ended stream still holds its permits");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_read_gets_the_last_state_once() {
    let running = start(|_| {}).await;
    let mut messages = begin(&running, watch_request(PATH)).await;
    update(&mut messages).await;
    for number in 2..12 {
        put(&running, "policies.yaml", &policies(number));
        let mirror = mirror(&running, &[PATH]);
        while mirror.get(PATH).map(|marker| *marker) != Ok(number) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let mut seen = Vec::new();
    while seen.last() != Some(&11) {
        let update = update(&mut messages).await;
        seen.extend(bodies(&update).iter().map(|body| marker(&body.policies[0])));
    }
    assert!(seen.is_sorted(), "{seen:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_ends_its_streams_and_mirrors_reconnect() {
    let running = start(|_| {}).await;
    let mut messages = begin(&running, watch_request(PATH)).await;
    update(&mut messages).await;
    let mirror = mirror(&running, &[PATH]);
    mirror.ready().await;
    assert_eq!(mirror.get(PATH).as_deref(), Ok(&1));
    assert_eq!(
        mirror.get("gateways/default/gw"),
        Err(LookupError::NotSubscribed)
    );
    assert_eq!(
        mirror.get(&format!("{PATH}/backends/Service/default/x")),
        Err(LookupError::NotFound)
    );
    let address = running.address.clone();
    running.stop().await;
    let ended = messages.message().await.unwrap_err();
    assert_eq!(ended.code(), Code::Unavailable);
    let lost = tokio::time::timeout(PATIENCE, mirror.wait_for(|now| !now.connected)).await;
    assert!(lost.unwrap().error.is_some());
    assert_eq!(
        mirror.get(PATH).as_deref(),
        Ok(&1),
        "the mirror keeps its last copy"
    );

    let epoch = mirror.freshness().version.unwrap().epoch;
    let next = start_at(&address).await;
    let is_next = |now: &entail_client::Freshness| {
        now.connected
            && now
                .version
                .as_ref()
                .is_some_and(|version| version.epoch != epoch)
    };
    let found = tokio::time::timeout(PATIENCE, mirror.wait_for(is_next)).await;
    assert!(found.unwrap().error.is_none());
    put(&next, "policies.yaml", &policies(5));
    while mirror.get(PATH).as_deref() != Ok(&5) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    next.stop().await;
}
