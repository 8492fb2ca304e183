//! External authorization for an Envoy whose access rule has prefixes or kinds.

use entail::api::envoy::check_response::HttpResponse;
use entail::api::envoy::{CheckRequest, CheckResponse};
use tonic::Code;
use tonic::transport::Channel;

use super::envoy::{check_at, check_request, check_request_of_path, denial, metadata_values};
use super::scope::{FAR, RulesServer, renamed, shown};
use super::server::PATH;

/// Starts a server with settings for Envoy and the shared access rules.
async fn start_with(settings: &str) -> RulesServer {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), settings).unwrap();
    let path = file.path().to_owned();
    let server = RulesServer::shared(move |settings| settings.envoy = Some(path)).await;
    drop(file);
    server
}

/// Calls `Check`, with the name of the Envoy route if there is one.
async fn check(channel: &Channel, message: CheckRequest, route: Option<&str>) -> CheckResponse {
    let metadata: Vec<_> = route
        .map(|name| ("x-entail-route", name))
        .into_iter()
        .collect();
    check_at(channel.clone(), message, &metadata).await.unwrap()
}

/// A `Check` call for a request to a host.
fn request_to(host: &str, path: &str) -> CheckRequest {
    let mut message = check_request(path, &[]);
    let attributes = message.attributes.as_mut().unwrap();
    let request = attributes.request.as_mut().unwrap();
    host.clone_into(&mut request.http.as_mut().unwrap().host);
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_out_of_scope_is_denied_as_if_it_did_not_exist() {
    for settings in ["", "failOpen: [NotFound]"] {
        let server = start_with(settings).await;
        let (own, all) = server.beside_all("gw.test").await;
        let denied = settings.is_empty().then(|| (503, "NotFound".to_owned()));
        for path in [
            "gateways/default/gw2",
            FAR,
            "gateways/default/gw2/listeners/none",
        ] {
            let reply = check(&own, check_request_of_path(path), None).await;
            assert_eq!(denial(&reply), denied, "{path}");
            assert!(metadata_values(&reply)["entail/failures"].starts_with("NotFound: "));
            let absent = check_request_of_path(&path.replace("gw2", "gwx"));
            let expected = check(&all, absent.clone(), None).await;
            assert_eq!(shown(&reply), renamed(&expected, "gwx", "gw2"));
            let absent = check(&own, absent, None).await;
            assert_eq!(shown(&absent), shown(&expected));
        }
        let passed = check(&own, check_request_of_path(PATH), None).await;
        assert_eq!(denial(&passed), None);
        let expected = check(&all, check_request_of_path(PATH), None).await;
        assert_eq!(shown(&passed), shown(&expected));
        assert_eq!(metadata_values(&passed)["entail/path"], PATH);
        assert_eq!(
            denial(&check(&all, check_request_of_path(FAR), None).await),
            None
        );
        server.tls.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_out_of_scope_are_not_found_and_not_ambiguous() {
    let server = start_with("dialects: [istio]").await;
    let (own, all) = server.beside_all("gw.test").await;
    let request = || check_request("/", &[]);
    assert_eq!(
        denial(&check(&all, request(), Some("default.far.0")).await),
        None
    );
    let reply = check(&own, request(), Some("default.far.0")).await;
    assert_eq!(denial(&reply), Some((503, "NotFound".to_owned())));
    let expected = check(&all, request(), Some("default.fax.0")).await;
    assert_eq!(shown(&reply), renamed(&expected, "fax", "far"));
    // The route is attached to two Gateways with different answers; this caller sees one of them.
    let unrestricted = check(&all, request(), Some("default.both.0")).await;
    assert_eq!(
        denial(&unrestricted),
        Some((503, "Unidentified".to_owned()))
    );
    let reply = check(&own, request(), Some("default.both.0")).await;
    assert_eq!(denial(&reply), None, "{reply:?}");
    assert_eq!(
        metadata_values(&reply)["entail/policies/APolicy.p.example/spec/marker"],
        "1"
    );
    assert!(!shown(&reply).contains("gw2"), "{reply:?}");
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_match_only_rules_in_scope() {
    let server = start_with("match: true").await;
    let (own, all) = server.beside_all("gw.test").await;
    let unrestricted = check(&all, request_to("two.example", "/"), None).await;
    assert_eq!(
        denial(&unrestricted),
        Some((503, "Unidentified".to_owned()))
    );
    let reply = check(&own, request_to("two.example", "/"), None).await;
    assert_eq!(denial(&reply), None, "{reply:?}");
    assert_eq!(metadata_values(&reply)["entail/path"], PATH);
    server.tls.stop().await;

    let server = start_with("match: true\ngateway: default/gw2").await;
    let (own, all) = server.beside_all("gw.test").await;
    assert_eq!(
        denial(&check(&all, request_to("two.example", "/"), None).await),
        None
    );
    let reply = check(&own, request_to("two.example", "/"), None).await;
    assert_eq!(denial(&reply), Some((503, "NotFound".to_owned())));
    assert!(!shown(&reply).contains("HTTPRoute"), "{reply:?}");
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_out_of_scope_are_not_in_metadata_or_headers() {
    let settings = "headers:\n- {name: x-a, kind: APolicy.p.example, value: marker}\n\
                    - {name: x-b, kind: BPolicy.p.example, value: marker}\n";
    let server = start_with(settings).await;
    let own = server.caller("a.test").await;
    let reply = check(&own, check_request_of_path(PATH), None).await;
    assert_eq!(denial(&reply), None);
    let metadata = metadata_values(&reply);
    assert_eq!(
        metadata["entail/policies/APolicy.p.example/spec/marker"],
        "1"
    );
    assert!(!shown(&metadata).contains("BPolicy"), "{metadata:?}");
    let Some(HttpResponse::OkResponse(ok)) = &reply.http_response else {
        panic!("denied")
    };
    let headers: Vec<_> = ok
        .headers
        .iter()
        .flat_map(|header| &header.header)
        .collect();
    let headers: Vec<_> = headers.iter().map(|h| (&*h.key, &*h.value)).collect();
    assert_eq!(headers, [("x-a", "1")]);
    assert_eq!(ok.headers_to_remove, ["x-b"]);

    // A rule with only an unknown kind permits no kind, not every kind.
    let stranger = server.caller("x.test").await;
    let reply = check(&stranger, check_request_of_path(PATH), None).await;
    let spec = shown(&reply);
    assert!(
        !spec.contains("BPolicy.p") && !spec.contains("APolicy.p"),
        "{spec}"
    );
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selected_kind_out_of_scope_counts_as_unknown() {
    let settings = "kinds: [APolicy.p.example, BPolicy.p.example]\n\
                    headers: [{name: x-b, kind: BPolicy.p.example, value: marker}]\n";
    let server = start_with(settings).await;
    let (own, all) = server.beside_all("a.test").await;
    let unrestricted = check(&all, check_request_of_path(PATH), None).await;
    assert!(
        shown(&metadata_values(&unrestricted)).contains("BPolicy"),
        "{unrestricted:?}"
    );
    let reply = check(&own, check_request_of_path(PATH), None).await;
    assert_eq!(denial(&reply), Some((503, "Incomplete".to_owned())));
    let metadata = metadata_values(&reply);
    assert!(
        !shown(&metadata).contains("policies/BPolicy"),
        "{metadata:?}"
    );
    server.tls.stop().await;
}

/// Otherwise a deny rule about such a kind would never be true, and the request would be allowed.
#[tokio::test(flavor = "multi_thread")]
async fn deny_rules_about_kinds_out_of_scope_fail_closed() {
    let deny = "deny:\n- {name: b, when: '\"BPolicy.p.example\" in policies', status: 451}\n";
    let server = start_with(deny).await;
    let (own, all) = server.beside_all("a.test").await;
    let unrestricted = check(&all, check_request_of_path(PATH), None).await;
    assert_eq!(denial(&unrestricted), Some((451, "b".to_owned())));
    let reply = check(&own, check_request_of_path(PATH), None).await;
    assert_eq!(denial(&reply), Some((503, "Incomplete".to_owned())));
    server.tls.stop().await;
    // With only kinds in scope selected, the rule can be evaluated.
    let server = start_with(&format!("kinds: [APolicy.p.example]\n{deny}")).await;
    let own = server.caller("a.test").await;
    assert_eq!(
        denial(&check(&own, check_request_of_path(PATH), None).await),
        None
    );
    server.tls.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_without_service_envoy_denies_check() {
    let server = start_with("").await;
    let own = server.caller("deep.test").await;
    let refused = check_at(own, check_request_of_path(PATH), &[])
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    server.tls.stop().await;
}
