//! Assertions of a server: checked after each change, and on request.

use std::time::Duration;

use entail::api::v1;
use v1::assertion_result::Outcome;

use super::admin::{metrics_of, until_metric};
use super::server::{Running, policies, start};

const ASSERTION: &str = "---
apiVersion: entail.dev/v1alpha1
kind: ClusterEffectivePolicyAssertion
metadata: {name: small-markers}
spec:
  policies: {a: APolicy.p.example}
  expect: {cel: 'a.marker <= 5'}
";

async fn check(running: &Running, request: v1::CheckAssertionsRequest) -> v1::AssertionResult {
    let reply = running.insight().check_assertions(request).await.unwrap();
    let mut results = reply.into_inner().results;
    assert_eq!(results.len(), 1, "{results:?}");
    results.remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_checks_its_assertions_after_each_change() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("admin.sock");
    let admin = socket.clone();
    let running = start(|settings| settings.admin_socket = Some(admin)).await;
    let write = |file: &str, text: &str| {
        std::fs::write(running.manifests().join(file), text).unwrap();
    };
    let holds = |value: &str| {
        format!(
            "entail_assertion_holds{{assertion=\"ClusterEffectivePolicyAssertion.entail.dev/small-markers\"}} {value}"
        )
    };
    write("policies.yaml", &policies(1));
    write("assertions.yaml", ASSERTION);
    until_metric(&socket, &holds("1.0")).await;
    write("policies.yaml", &policies(7));
    until_metric(&socket, &holds("0.0")).await;
    let result = check(&running, v1::CheckAssertionsRequest::default()).await;
    assert_eq!(
        (result.outcome(), result.failed, result.paths),
        (Outcome::Failed, 1, 1)
    );
    assert!(
        result.failures[0].message.contains("{\"marker\":7}"),
        "{result:?}"
    );
    // What would be after a change is not what is.
    let request = v1::CheckAssertionsRequest {
        manifests: policies(2),
        ..Default::default()
    };
    assert_eq!(check(&running, request).await.outcome(), Outcome::Passed);
    until_metric(&socket, &holds("0.0")).await;
    let mut insight = running.insight();
    let findings = insight.list_findings(v1::ListFindingsRequest::default());
    let findings = findings.await.unwrap().into_inner().findings;
    assert!(
        findings.iter().any(|finding| finding.code == "E090"),
        "{findings:?}"
    );
    write("policies.yaml", &policies(3));
    until_metric(&socket, &holds("1.0")).await;
    std::fs::remove_file(running.manifests().join("assertions.yaml")).unwrap();
    for _ in 0..200 {
        if !metrics_of(&socket)
            .await
            .contains("entail_assertion_holds{")
        {
            running.stop().await;
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("a deleted assertion is still among the metrics");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_waits_is_told_when_the_results_differ() {
    let running = start(|_| {}).await;
    let write = |file: &str, text: &str| {
        std::fs::write(running.manifests().join(file), text).unwrap();
    };
    write("policies.yaml", &policies(7));
    write("assertions.yaml", ASSERTION);
    let all = v1::CheckAssertionsRequest::default;
    let mut insight = running.insight();
    for _ in 0..200 {
        let reply = insight.check_assertions(all()).await.unwrap().into_inner();
        if reply.results.iter().any(|result| result.failed == 1) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let request = v1::CheckAssertionsRequest::default();
    let etag = insight
        .check_assertions(request)
        .await
        .unwrap()
        .into_inner()
        .etag;
    let request = |wait_seconds| v1::CheckAssertionsRequest {
        if_none_match: etag.clone(),
        wait_seconds,
        ..Default::default()
    };
    let reply = insight
        .check_assertions(request(0))
        .await
        .unwrap()
        .into_inner();
    assert!(reply.not_modified && reply.results.is_empty() && reply.etag == etag);
    let mut waiting = running.insight();
    let request = request(30);
    let waiting = tokio::spawn(async move { waiting.check_assertions(request).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!waiting.is_finished());
    write("policies.yaml", &policies(8));
    let reply = waiting.await.unwrap().unwrap().into_inner();
    assert!(!reply.not_modified && reply.etag != etag);
    assert!(
        reply.results[0].failures[0]
            .message
            .contains("{\"marker\":8}")
    );
    let both = v1::CheckAssertionsRequest {
        manifests: policies(2),
        wait_seconds: 1,
        ..Default::default()
    };
    let refused = insight.check_assertions(both).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::InvalidArgument);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_with_mistakes_are_refused() {
    let running = start(|_| {}).await;
    std::fs::write(running.manifests().join("assertions.yaml"), ASSERTION).unwrap();
    let mut insight = running.insight();
    for (names, date, reason) in [
        (vec!["cepa/large-markers"], "", "not found: did you mean"),
        (vec!["cepa/x/y/z"], "", "neither a path"),
        (vec![], "soon", "not a date"),
    ] {
        let request = v1::CheckAssertionsRequest {
            names: names.into_iter().map(str::to_owned).collect(),
            date: date.to_owned(),
            manifests: ASSERTION.to_owned(),
            ..Default::default()
        };
        let refused = insight.check_assertions(request).await.unwrap_err();
        assert!(refused.message().contains(reason), "{refused:?}");
    }
    running.stop().await;
}
