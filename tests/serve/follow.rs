//! Changes of manifests while the server runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use entail::api::v1;

use super::server::{PATH, Running, batch_of, by_path, policies, start};

/// The field `marker` of a policy.
pub fn marker(policy: &v1::EffectivePolicy) -> u64 {
    let spec: serde_json::Value = serde_json::from_str(policy.spec_json()).unwrap();
    spec["marker"].as_u64().unwrap()
}

/// Replaces a file atomically, as editors and ConfigMap volumes do.
pub fn put(running: &Running, name: &str, text: &str) {
    let temporary = running.manifests().join(".temporary");
    std::fs::write(&temporary, text).unwrap();
    std::fs::rename(temporary, running.manifests().join(name)).unwrap();
}

async fn current(running: &Running) -> u64 {
    let reply = running.get(by_path(PATH)).await.unwrap();
    marker(&reply.result.unwrap().policies[0])
}

/// Waits until policies with the marker are served.
async fn until(running: &Running, marker: u64) {
    let started = Instant::now();
    while current(running).await != marker {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "{marker} is never served"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_changes_the_answer() {
    let running = start(|_| {}).await;
    put(&running, "policies.yaml", &policies(2));
    // tests/e2e/run measures how long this takes.
    until(&running, 2).await;
    let version = running.get(by_path(PATH)).await.unwrap().version.unwrap();
    assert_eq!(version.generation, 2);

    // A change without effect publishes no snapshot.
    put(
        &running,
        "policies.yaml",
        &format!("# another comment\n{}", policies(2)),
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    let version = running.get(by_path(PATH)).await.unwrap().version.unwrap();
    assert_eq!(version.generation, 2);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_new_file_cannot_be_read_all_kinds_are_stale() {
    let running = start(|_| {}).await;
    let kinds = async || running.get(by_path(PATH)).await.unwrap().kinds;
    let until = async |is_done: fn(&[v1::KindState]) -> bool| {
        let started = Instant::now();
        while !is_done(&kinds().await) {
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "{:?}",
                kinds().await
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(kinds().await.is_empty());
    // The policies of the file could be in it, as after it was renamed.
    put(&running, "broken.yaml", "metadata: {name: a, namespace: b");
    until(|kinds| !kinds.is_empty()).await;
    let found = kinds().await;
    assert_eq!(
        (&*found[0].kind, &*found[0].reason, found.len()),
        ("*", "InputUnreadable", 1)
    );
    assert_eq!(found[0].state(), v1::kind_state::State::Stale);
    let mut insight = running.insight();
    let listed = insight
        .list_policies(v1::ListPoliciesRequest::default())
        .await;
    assert_eq!(listed.unwrap().into_inner().kinds, found);
    std::fs::remove_file(running.manifests().join("broken.yaml")).unwrap();
    until(<[_]>::is_empty).await;
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_name_the_file_that_an_object_was_moved_to() {
    let running = start(|_| {}).await;
    let lost = "apiVersion: p.example/v1\nkind: APolicy\nmetadata: {name: lost}\nspec: {targetRefs: [{group: \
                gateway.networking.k8s.io, kind: HTTPRoute, name: nowhere}]}\n";
    put(&running, "before.yaml", lost);
    let is_named = async |file: &str| {
        let mut insight = running.insight();
        let findings = insight
            .list_findings(v1::ListFindingsRequest::default())
            .await;
        format!("{:?}", findings.unwrap().into_inner()).contains(file)
    };
    let started = Instant::now();
    let until = async |file: &str| {
        while !is_named(file).await {
            assert!(started.elapsed() < Duration::from_secs(9), "{file}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    until("before.yaml").await;
    let folder = running.manifests();
    std::fs::rename(folder.join("before.yaml"), folder.join("after.yaml")).unwrap();
    until("after.yaml").await;
    assert!(!is_named("before.yaml").await);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_keeps_the_answer_and_is_reported() {
    let running = start(|_| {}).await;
    let synced_at = async || {
        let reply = running.get(by_path(PATH)).await.unwrap();
        let synced_at = reply.synced_at.unwrap();
        (synced_at.seconds, synced_at.nanos)
    };
    let before = synced_at().await;
    put(&running, "policies.yaml", "{{{ not yaml: [\n\t\"");
    let status = async || {
        let mut insight = running.insight();
        let status = insight
            .get_server_status(v1::GetServerStatusRequest {})
            .await;
        status.unwrap().into_inner()
    };
    let started = Instant::now();
    while status().await.problems.is_empty() {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "the problem is never reported"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let problems = status().await.problems;
    assert!(
        problems[0].location.contains("policies.yaml:"),
        "{problems:?}"
    );
    assert!(problems[0].message.contains("last good"), "{problems:?}");
    assert_eq!(current(&running).await, 1);
    assert_eq!(synced_at().await, before, "the file was not read");
    assert!(running.health(&running.address, "").await);

    put(&running, "policies.yaml", &policies(3));
    until(&running, 3).await;
    assert!(synced_at().await > before);
    assert!(status().await.problems.is_empty());
    std::fs::remove_file(running.manifests().join("policies.yaml")).unwrap();
    let started = Instant::now();
    while !running
        .get(by_path(PATH))
        .await
        .unwrap()
        .result
        .unwrap()
        .policies
        .is_empty()
    {
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "deleted policies are still served"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.stop().await;
}

/// Calls until `done`. Every reply has equal markers, and versions never decrease.
async fn call_until(
    mut client: entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient<
        tonic::transport::Channel,
    >,
    done: Arc<AtomicBool>,
) -> u64 {
    let (mut calls, mut newest) = (0, (0, 0));
    while !done.load(Ordering::Relaxed) {
        let reply = client
            .get_effective_policies(by_path(PATH))
            .await
            .unwrap()
            .into_inner();
        let result = reply.result.unwrap();
        let generation = reply.version.unwrap().generation;
        let markers = [marker(&result.policies[0]), marker(&result.policies[1])];
        assert_eq!(markers[0], markers[1], "a reply mixes two versions");
        assert!(
            newest <= (generation, markers[0]),
            "{newest:?}, then {generation}"
        );
        newest = (generation, markers[0]);

        let request = batch_of([PATH, "gateways/default/gw", PATH]);
        let batch = client
            .batch_get_effective_policies(request)
            .await
            .unwrap()
            .into_inner();
        let all = batch
            .bodies
            .iter()
            .flat_map(|body| &body.policies)
            .map(marker);
        let all: std::collections::BTreeSet<u64> = all.collect();
        assert_eq!(all.len(), 1, "a batch mixes two versions: {all:?}");
        calls += 1;
    }
    calls
}

#[tokio::test(flavor = "multi_thread")]
async fn no_reply_mixes_versions_while_files_change() {
    let running = start(|_| {}).await;
    let done = Arc::new(AtomicBool::new(false));
    let callers: Vec<_> = (0..4)
        .map(|_| tokio::spawn(call_until(running.policies(), Arc::clone(&done))))
        .collect();
    for n in 2..=40 {
        put(&running, "policies.yaml", &policies(n));
        tokio::time::sleep(Duration::from_millis(70)).await;
    }
    until(&running, 40).await;
    done.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(caller.await.unwrap() > 10);
    }
    let generation = running
        .get(by_path(PATH))
        .await
        .unwrap()
        .version
        .unwrap()
        .generation;
    assert!(
        generation > 4,
        "too few changes were published: {generation}"
    );
    running.stop().await;
}
