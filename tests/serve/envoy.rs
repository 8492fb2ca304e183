//! The external authorization service for Envoy.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use entail::api::envoy::check_response::HttpResponse;
use entail::api::envoy::{AttributeContext, CheckRequest, CheckResponse, attribute_context};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::follow::put;
use super::server::{PATH, Running, start};
use super::stalled::{metric, sized, start_large};

/// Starts a server with settings for Envoy.
async fn start_with(settings: &str) -> Running {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), settings).unwrap();
    let path = file.path().to_owned();
    let running = start(move |settings| settings.envoy = Some(path)).await;
    drop(file);
    running
}

/// A `Check` call for a request to `example.com`.
pub fn check_request(path: &str, headers: &[(&str, &str)]) -> CheckRequest {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let http = attribute_context::HttpRequest {
        method: "GET".to_owned(),
        headers: headers.collect(),
        path: path.to_owned(),
        host: "example.com".to_owned(),
        protocol: "HTTP/1.1".to_owned(),
    };
    CheckRequest {
        attributes: Some(AttributeContext {
            request: Some(attribute_context::Request { http: Some(http) }),
            ..Default::default()
        }),
    }
}

/// A `Check` call whose context extension names the path.
pub fn check_request_of_path(path: &str) -> CheckRequest {
    let mut request = check_request("/", &[]);
    let attributes = request.attributes.as_mut().unwrap();
    attributes
        .context_extensions
        .insert("entail.path".to_owned(), path.to_owned());
    request
}

async fn check(
    running: &Running,
    message: CheckRequest,
    metadata: &[(&'static str, &str)],
) -> Result<CheckResponse, Status> {
    check_at(running.channel().await, message, metadata).await
}

pub async fn check_at(
    channel: Channel,
    message: CheckRequest,
    metadata: &[(&'static str, &str)],
) -> Result<CheckResponse, Status> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await.unwrap();
    let method = "/envoy.service.auth.v3.Authorization/Check";
    let codec = tonic_prost::ProstCodec::<CheckRequest, CheckResponse>::default();
    let path = http::uri::PathAndQuery::from_static(method);
    let mut request = Request::new(message);
    for (name, value) in metadata {
        request.metadata_mut().insert(*name, value.parse().unwrap());
    }
    Ok(client.unary(request, path, codec).await?.into_inner())
}

/// The scalar values of the dynamic metadata, by their field path.
pub fn metadata_values(reply: &CheckResponse) -> BTreeMap<String, String> {
    fn collect(fields: &Struct, prefix: &str, values: &mut BTreeMap<String, String>) {
        for (name, value) in &fields.fields {
            let path = format!("{prefix}{name}");
            match &value.kind {
                Some(Kind::StructValue(inner)) => collect(inner, &format!("{path}/"), values),
                Some(Kind::ListValue(list)) => {
                    for value in &list.values {
                        values.insert(path.clone(), scalar(value));
                    }
                }
                _ => drop(values.insert(path, scalar(value))),
            }
        }
    }
    let mut values = BTreeMap::new();
    collect(reply.dynamic_metadata.as_ref().unwrap(), "", &mut values);
    values
}

fn scalar(value: &Value) -> String {
    match &value.kind {
        Some(Kind::StringValue(text)) => text.clone(),
        Some(Kind::NumberValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// The HTTP status and the reason of a denial; `None` if the request is allowed.
pub fn denial(reply: &CheckResponse) -> Option<(i32, String)> {
    let status = reply.status.as_ref().unwrap();
    match reply.http_response.as_ref().unwrap() {
        HttpResponse::OkResponse(_) => {
            assert_eq!(status.code, 0);
            None
        }
        HttpResponse::DeniedResponse(denied) => {
            assert_eq!(status.code, Code::PermissionDenied as i32);
            Some((denied.status.unwrap().code, status.message.clone()))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policies_of_a_named_path_are_returned() {
    let settings = "kinds: [APolicy.p.example]\nheaders:\n- {name: X-Marker, kind: APolicy.p.example, value: marker}\n\
                    - {name: x-none, kind: APolicy.p.example, value: nothing}\n";
    let running = start_with(settings).await;
    let reply = check(&running, check_request_of_path(PATH), &[])
        .await
        .unwrap();
    assert_eq!(denial(&reply), None);
    let metadata = metadata_values(&reply);
    assert_eq!(metadata["entail/path"], PATH);
    assert_eq!(
        metadata["entail/policies/APolicy.p.example/spec/marker"],
        "1"
    );
    assert_eq!(
        metadata["entail/policies/APolicy.p.example/json"],
        r#"{"marker":1}"#
    );
    assert!(
        !metadata.keys().any(|path| path.contains("BPolicy")),
        "{metadata:?}"
    );
    let Some(HttpResponse::OkResponse(ok)) = reply.http_response else {
        panic!("denied")
    };
    let header = ok.headers[0].header.clone().unwrap();
    assert_eq!((&*header.key, &*header.value), ("x-marker", "1"));
    assert_eq!(ok.headers_to_remove, ["x-none"]);

    let missing = check(
        &running,
        check_request_of_path("gateways/default/gw/listeners/none"),
        &[],
    )
    .await
    .unwrap();
    assert_eq!(denial(&missing), Some((503, "NotFound".to_owned())));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_identified_by_the_name_of_the_envoy_route() {
    let running = start_with("dialects: [envoy-gateway, istio]\ngateway: default/gw").await;
    for name in ["httproute/default/r/rule/0/match/-1/*", "default.r.0"] {
        let reply = check(
            &running,
            check_request("/", &[]),
            &[("x-entail-route", name)],
        )
        .await
        .unwrap();
        assert_eq!(denial(&reply), None, "{name}");
        assert_eq!(metadata_values(&reply)["entail/path"], PATH, "{name}");
    }
    // The Gateway is identified by the objects of the virtual host.
    let gateway =
        |name: &str| format!(r#"[{{"kind":"Gateway","namespace":"default","name":"{name}"}}]"#);
    for (objects, denied) in [(gateway("gw"), None), (gateway("other"), Some("NotFound"))] {
        let metadata = [
            ("x-entail-route", "default.r.0"),
            ("x-entail-gateway", &*objects),
        ];
        let reply = check(&running, check_request("/", &[]), &metadata)
            .await
            .unwrap();
        assert_eq!(denial(&reply).map(|(_, reason)| reason).as_deref(), denied);
    }
    for name in ["httproute/default/r/rule/7/match/0/x", "default.none.0"] {
        let reply = check(
            &running,
            check_request("/", &[]),
            &[("x-entail-route", name)],
        )
        .await
        .unwrap();
        assert_eq!(denial(&reply), Some((503, "NotFound".to_owned())), "{name}");
    }
    // Names that match no dialect do not identify a rule, and headers of the client are not used.
    let forged = check_request(
        "/",
        &[("x-entail-route", "default.r.0"), ("entail.path", PATH)],
    );
    for (message, metadata) in [
        (
            check_request("/", &[]),
            &[("x-entail-route", "vhost-7")][..],
        ),
        (check_request("/", &[]), &[]),
        (forged, &[]),
    ] {
        let reply = check(&running, message, metadata).await.unwrap();
        assert_eq!(denial(&reply), Some((503, "Unidentified".to_owned())));
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_matched_if_the_settings_enable_it() {
    let running = start_with("match: true").await;
    let reply = check(&running, check_request("/any?x=1", &[("x-env", "a")]), &[])
        .await
        .unwrap();
    assert_eq!(denial(&reply), None);
    assert_eq!(metadata_values(&reply)["entail/path"], PATH);
    // Envoy has normalized the path: `//` is what it matches.
    for path in ["/a%2fb", "/../a", "*"] {
        let reply = check(&running, check_request(path, &[]), &[])
            .await
            .unwrap();
        assert_eq!(
            denial(&reply),
            Some((503, "Unidentified".to_owned())),
            "{path}"
        );
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_deny_and_failures_fail_closed_by_default() {
    let rules = |more: &str| {
        format!(
            "kinds: [APolicy.p.example{more}]\ndeny:\n- {{name: marked, when: 'policies[\"APolicy.p.example\"].marker == 1 \
             && request.path == \"/closed\"', status: 451, body: closed}}\n- {{name: broken, when: 'policies.nothing.x'}}\n"
        )
    };
    let at = |path: &str| {
        let mut request = check_request_of_path(PATH);
        let attributes = request.attributes.as_mut().unwrap();
        attributes.request = check_request(path, &[]).attributes.unwrap().request;
        request
    };
    let closed = start_with(&rules("")).await;
    let reply = check(&closed, at("/closed"), &[]).await.unwrap();
    assert_eq!(denial(&reply), Some((451, "marked".to_owned())));
    assert_eq!(metadata_values(&reply)["entail/deniedBy"], "marked");
    let reply = check(&closed, at("/"), &[]).await.unwrap();
    assert_eq!(denial(&reply), Some((503, "RuleError".to_owned())));
    closed.stop().await;

    let open = start_with(&format!(
        "{}failOpen: [RuleError, Unidentified]\n",
        rules("")
    ))
    .await;
    let reply = check(&open, at("/"), &[]).await.unwrap();
    assert_eq!(denial(&reply), None);
    assert!(metadata_values(&reply)["entail/failures"].starts_with("RuleError: rule `broken`"));
    let reply = check(&open, check_request("/", &[]), &[]).await.unwrap();
    assert_eq!(denial(&reply), None);
    open.stop().await;

    // A kind without a profile is not the same as a kind without policies.
    let unknown = start_with(&rules(", Nobody.knows")).await;
    let reply = check(&unknown, at("/"), &[]).await.unwrap();
    assert_eq!(denial(&reply), Some((503, "Incomplete".to_owned())));
    unknown.stop().await;

    // Nor is a kind whose controller is not known on this path.
    let kinds = "kinds: [SecurityPolicy.gateway.envoyproxy.io]\n";
    let unknown = start_with(kinds).await;
    let reply = check(&unknown, at("/"), &[]).await.unwrap();
    assert_eq!(denial(&reply), None);
    put(
        &unknown,
        "security.yaml",
        "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {name: jwt}\nspec: {targetRefs: \
         [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}]}\n",
    );
    let mut denied = None;
    for _ in 0..1000 {
        denied = denial(&check(&unknown, at("/"), &[]).await.unwrap());
        if denied.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(denied, Some((503, "Incomplete".to_owned())));
    unknown.stop().await;

    let small = start_with("metadata: {maxBytes: 10}").await;
    let reply = check(&small, check_request_of_path(PATH), &[])
        .await
        .unwrap();
    assert_eq!(denial(&reply), Some((503, "TooLarge".to_owned())));
    small.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_take_many_steps_for_the_specs_of_a_tenant_fail_before_they_run() {
    let policy = r#"policies["APolicy.p.example"]"#;
    let running = start_with(&format!(
        "kinds: [APolicy.p.example]\ndeny:\n- {{name: banned, when: '{policy}.a.exists(x, x in {policy}.b)'}}\n"
    ))
    .await;
    let policies = |count: usize| {
        let numbers = |first: usize| (first..first + count).collect::<Vec<_>>();
        format!(
            "apiVersion: p.example/v1\nkind: APolicy\nmetadata: {{name: one}}\nspec: {{targetRefs: [{{group: \
             gateway.networking.k8s.io, kind: HTTPRoute, name: r}}], a: {:?}, b: {:?}}}\n",
            numbers(0),
            numbers(100_000)
        )
    };
    // The request that is denied for the steps; before, it took seconds.
    for (count, expected) in [(20, None), (4_000, Some((503, "RuleError".to_owned())))] {
        put(&running, "policies.yaml", &policies(count));
        let started = Instant::now();
        loop {
            let reply = check(&running, check_request_of_path(PATH), &[])
                .await
                .unwrap();
            let failure = metadata_values(&reply).remove("entail/failures");
            let has_steps = failure.is_some_and(|text| text.contains("steps for these values"));
            if denial(&reply) == expected && has_steps == expected.is_some() {
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(10), "{reply:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_about_an_ambiguous_path_fails_closed() {
    let settings = "dialects: [istio]\ngateway: default/gw\ndeny:\n- {name: own, when: 'path == \"nowhere\"'}\n";
    let running = start_with(settings).await;
    let metadata = [("x-entail-route", "default.r.0")];
    let reply = check(&running, check_request("/", &[]), &metadata)
        .await
        .unwrap();
    assert_eq!(denial(&reply), None);
    // A second listener has equal policies, so the listener of the request is unknown.
    let file = running.manifests().join("world.yaml");
    let world = std::fs::read_to_string(file).unwrap();
    let one = "{name: http, port: 80, protocol: HTTP}";
    let two = format!("{one}, {{name: alt, port: 81, protocol: HTTP}}");
    put(&running, "world.yaml", &world.replace(one, &two));
    for attempt in 0.. {
        let reply = check(&running, check_request("/", &[]), &metadata)
            .await
            .unwrap();
        if denial(&reply) == Some((503, "RuleError".to_owned())) {
            break;
        }
        assert!(attempt < 500, "{reply:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_for_envoy_is_disabled_without_settings() {
    let running = start(|_| {}).await;
    let error = check(&running, check_request_of_path(PATH), &[])
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_converted_once_and_not_for_each_request() {
    const CONVERSIONS: &str = "entail_envoy_conversions_total{}";
    let file = tempfile::NamedTempFile::new().unwrap();
    let rule = "policies[\"APolicy.p.example\"].marker == 9";
    let settings =
        format!("metadata: {{maxBytes: 300000}}\ndeny: [{{name: nine, when: '{rule}'}}]\n");
    std::fs::write(file.path(), settings).unwrap();
    let path = file.path().to_owned();
    let (running, admin) = start_large(move |settings| settings.envoy = Some(path)).await;
    // Waits until a request gets a result, and returns its metadata.
    let until = async |wanted: Option<&str>| {
        for _ in 0..500 {
            let reply = check(&running, check_request_of_path(PATH), &[]);
            let reply = reply.await.unwrap();
            if denial(&reply).map(|(_, by)| by).as_deref() == wanted {
                return metadata_values(&reply);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no request is answered with {wanted:?}");
    };
    // The first answer is too large to convert, which costs one look at its size.
    let failures = &until(Some("TooLarge")).await["entail/failures"];
    assert!(failures.contains("maximum 300000"), "{failures}");
    put(&running, "policies.yaml", &sized(1, 100_000));
    until(None).await;
    let before = metric(&admin, CONVERSIONS).await;
    assert_eq!(before, 2.0);
    // Requests at the same time and one after another.
    let calls = (0..20).map(|_| check(&running, check_request_of_path(PATH), &[]));
    for reply in futures_util::future::join_all(calls).await {
        assert_eq!(denial(&reply.unwrap()), None);
    }
    assert_eq!(metric(&admin, CONVERSIONS).await, before);
    put(&running, "policies.yaml", &sized(9, 100_000));
    until(Some("nine")).await;
    assert_eq!(metric(&admin, CONVERSIONS).await, before + 1.0);
    assert!(metric(&admin, "entail_envoy_too_large_total{}").await >= 1.0);
    running.stop().await;
}
