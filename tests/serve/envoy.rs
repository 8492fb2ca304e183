//! What Envoy is told when it asks about a request.

use std::collections::BTreeMap;
use std::time::Duration;

use entail::api::envoy::check_response::HttpResponse;
use entail::api::envoy::{AttributeContext, CheckRequest, CheckResponse, attribute_context};
use prost_types::value::Kind;
use prost_types::{Struct, Value};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::follow::put;
use super::server::{PATH, Running, start};

/// A server with some settings for Envoy.
async fn with(settings: &str) -> Running {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), settings).unwrap();
    let path = file.path().to_owned();
    let running = start(move |settings| settings.envoy = Some(path)).await;
    drop(file);
    running
}

pub fn about(path: &str, headers: &[(&str, &str)]) -> CheckRequest {
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

pub fn named(path: &str) -> CheckRequest {
    let mut request = about("/", &[]);
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

/// All texts of the metadata, by their place.
pub fn told(reply: &CheckResponse) -> BTreeMap<String, String> {
    fn walk(fields: &Struct, place: &str, found: &mut BTreeMap<String, String>) {
        for (name, value) in &fields.fields {
            let place = format!("{place}{name}");
            match &value.kind {
                Some(Kind::StructValue(inner)) => walk(inner, &format!("{place}/"), found),
                Some(Kind::ListValue(list)) => {
                    for value in &list.values {
                        found.insert(place.clone(), shown(value));
                    }
                }
                _ => drop(found.insert(place, shown(value))),
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(reply.dynamic_metadata.as_ref().unwrap(), "", &mut found);
    found
}

fn shown(value: &Value) -> String {
    match &value.kind {
        Some(Kind::StringValue(text)) => text.clone(),
        Some(Kind::NumberValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// The status of a denial, and why; none if the request passes.
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
async fn a_path_is_named_and_its_policies_are_told() {
    let settings = "kinds: [APolicy.p.example]\nheaders:\n- {name: X-Marker, kind: APolicy.p.example, value: marker}\n\
                    - {name: x-none, kind: APolicy.p.example, value: nothing}\n";
    let running = with(settings).await;
    let reply = check(&running, named(PATH), &[]).await.unwrap();
    assert_eq!(denial(&reply), None);
    let told = told(&reply);
    assert_eq!(told["entail/path"], PATH);
    assert_eq!(told["entail/policies/APolicy.p.example/spec/marker"], "1");
    assert_eq!(
        told["entail/policies/APolicy.p.example/json"],
        r#"{"marker":1}"#
    );
    assert!(
        !told.keys().any(|place| place.contains("BPolicy")),
        "{told:?}"
    );
    let Some(HttpResponse::OkResponse(ok)) = reply.http_response else {
        panic!("denied")
    };
    let header = ok.headers[0].header.clone().unwrap();
    assert_eq!((&*header.key, &*header.value), ("x-marker", "1"));
    assert_eq!(ok.headers_to_remove, ["x-none"]);

    let missing = check(&running, named("gateways/default/gw/listeners/none"), &[])
        .await
        .unwrap();
    assert_eq!(denial(&missing), Some((503, "NotFound".to_owned())));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_data_plane_says_of_a_route_is_found() {
    let running = with("dialects: [envoy-gateway, istio]\ngateway: default/gw").await;
    for name in ["httproute/default/r/rule/0/match/-1/*", "default.r.0"] {
        let reply = check(&running, about("/", &[]), &[("x-entail-route", name)])
            .await
            .unwrap();
        assert_eq!(denial(&reply), None, "{name}");
        assert_eq!(told(&reply)["entail/path"], PATH, "{name}");
    }
    // Where it comes in, as the virtual host says.
    let gateway =
        |name: &str| format!(r#"[{{"kind":"Gateway","namespace":"default","name":"{name}"}}]"#);
    for (host, denied) in [(gateway("gw"), None), (gateway("other"), Some("NotFound"))] {
        let metadata = [
            ("x-entail-route", "default.r.0"),
            ("x-entail-gateway", &*host),
        ];
        let reply = check(&running, about("/", &[]), &metadata).await.unwrap();
        assert_eq!(denial(&reply).map(|(_, why)| why).as_deref(), denied);
    }
    for name in ["httproute/default/r/rule/7/match/0/x", "default.none.0"] {
        let reply = check(&running, about("/", &[]), &[("x-entail-route", name)])
            .await
            .unwrap();
        assert_eq!(denial(&reply), Some((503, "NotFound".to_owned())), "{name}");
    }
    // Names that say nothing, and what a client says.
    let forged = about(
        "/",
        &[("x-entail-route", "default.r.0"), ("entail.path", PATH)],
    );
    for (message, metadata) in [
        (about("/", &[]), &[("x-entail-route", "vhost-7")][..]),
        (about("/", &[]), &[]),
        (forged, &[]),
    ] {
        let reply = check(&running, message, metadata).await.unwrap();
        assert_eq!(denial(&reply), Some((503, "Unidentified".to_owned())));
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_matched_only_where_that_is_switched_on() {
    let running = with("match: true").await;
    let reply = check(&running, about("/any?x=1", &[("x-env", "a")]), &[])
        .await
        .unwrap();
    assert_eq!(denial(&reply), None);
    assert_eq!(told(&reply)["entail/path"], PATH);
    for path in ["/a//b", "/a%2fb", "/../a", "*"] {
        let reply = check(&running, about(path, &[]), &[]).await.unwrap();
        assert_eq!(
            denial(&reply),
            Some((503, "Unidentified".to_owned())),
            "{path}"
        );
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_deny_and_troubles_fail_closed_unless_told_otherwise() {
    let rules = |more: &str| {
        format!(
            "kinds: [APolicy.p.example{more}]\ndeny:\n- {{name: marked, when: 'policies[\"APolicy.p.example\"].marker == 1 \
             && request.path == \"/closed\"', status: 451, body: closed}}\n- {{name: broken, when: 'policies.nothing.x'}}\n"
        )
    };
    let at = |path: &str| {
        let mut request = named(PATH);
        let attributes = request.attributes.as_mut().unwrap();
        attributes.request = about(path, &[]).attributes.unwrap().request;
        request
    };
    let closed = with(&rules("")).await;
    let reply = check(&closed, at("/closed"), &[]).await.unwrap();
    assert_eq!(denial(&reply), Some((451, "marked".to_owned())));
    assert_eq!(told(&reply)["entail/deniedBy"], "marked");
    let reply = check(&closed, at("/"), &[]).await.unwrap();
    assert_eq!(denial(&reply), Some((503, "RuleError".to_owned())));
    closed.stop().await;

    let open = with(&format!(
        "{}failOpen: [RuleError, Unidentified]\n",
        rules("")
    ))
    .await;
    let reply = check(&open, at("/"), &[]).await.unwrap();
    assert_eq!(denial(&reply), None);
    assert!(told(&reply)["entail/troubles"].starts_with("RuleError: rule `broken`"));
    let reply = check(&open, about("/", &[]), &[]).await.unwrap();
    assert_eq!(denial(&reply), None);
    open.stop().await;

    // A kind that nobody knows is not the same as no policy.
    let unknown = with(&rules(", Nobody.knows")).await;
    let reply = check(&unknown, at("/"), &[]).await.unwrap();
    assert_eq!(denial(&reply), Some((503, "Incomplete".to_owned())));
    unknown.stop().await;

    let small = with("metadata: {maxBytes: 10}").await;
    let reply = check(&small, named(PATH), &[]).await.unwrap();
    assert_eq!(denial(&reply), Some((503, "TooLarge".to_owned())));
    small.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_about_a_path_that_may_be_another_fails_closed() {
    let settings = "dialects: [istio]\ngateway: default/gw\ndeny:\n- {name: own, when: 'path == \"nowhere\"'}\n";
    let running = with(settings).await;
    let named = [("x-entail-route", "default.r.0")];
    let reply = check(&running, about("/", &[]), &named).await.unwrap();
    assert_eq!(denial(&reply), None);
    // The same holds at a second listener, so it is not known at which one the request came in.
    let file = running.manifests().join("world.yaml");
    let world = std::fs::read_to_string(file).unwrap();
    let one = "{name: http, port: 80, protocol: HTTP}";
    let two = format!("{one}, {{name: alt, port: 81, protocol: HTTP}}");
    put(&running, "world.yaml", &world.replace(one, &two));
    for attempt in 0.. {
        let reply = check(&running, about("/", &[]), &named).await.unwrap();
        if denial(&reply) == Some((503, "RuleError".to_owned())) {
            break;
        }
        assert!(attempt < 500, "{reply:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_settings_envoy_is_not_answered() {
    let running = start(|_| {}).await;
    let refused = check(&running, named(PATH), &[]).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
    running.stop().await;
}
