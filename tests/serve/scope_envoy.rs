//! What Envoy is told where its row names prefixes or kinds.

use entail::api::envoy::check_response::HttpResponse;
use entail::api::envoy::{CheckRequest, CheckResponse};
use tonic::Code;
use tonic::transport::Channel;

use super::envoy::{about, check_at, denial, named, told};
use super::scope::{FAR, Rows, renamed, shown};
use super::server::PATH;

async fn with(settings: &str) -> Rows {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), settings).unwrap();
    let path = file.path().to_owned();
    let rows = Rows::shared(move |settings| settings.envoy = Some(path)).await;
    drop(file);
    rows
}

async fn ask(channel: &Channel, message: CheckRequest, route: Option<&str>) -> CheckResponse {
    let metadata: Vec<_> = route
        .map(|name| ("x-entail-route", name))
        .into_iter()
        .collect();
    check_at(channel.clone(), message, &metadata).await.unwrap()
}

/// A request to a host.
fn at(host: &str, path: &str) -> CheckRequest {
    let mut message = about(path, &[]);
    let attributes = message.attributes.as_mut().unwrap();
    let request = attributes.request.as_mut().unwrap();
    host.clone_into(&mut request.http.as_mut().unwrap().host);
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_out_of_scope_is_denied_as_one_that_is_none() {
    for settings in ["", "failOpen: [NotFound]"] {
        let rows = with(settings).await;
        let (own, all) = rows.beside_all("gw.test").await;
        let denied = settings.is_empty().then(|| (503, "NotFound".to_owned()));
        for path in [
            "gateways/default/gw2",
            FAR,
            "gateways/default/gw2/listeners/none",
        ] {
            let reply = ask(&own, named(path), None).await;
            assert_eq!(denial(&reply), denied, "{path}");
            assert!(told(&reply)["entail/troubles"].starts_with("NotFound: "));
            let absent = named(&path.replace("gw2", "gwx"));
            let expected = ask(&all, absent.clone(), None).await;
            assert_eq!(shown(&reply), renamed(&expected, "gwx", "gw2"));
            let absent = ask(&own, absent, None).await;
            assert_eq!(shown(&absent), shown(&expected));
        }
        let passed = ask(&own, named(PATH), None).await;
        assert_eq!(denial(&passed), None);
        let expected = ask(&all, named(PATH), None).await;
        assert_eq!(shown(&passed), shown(&expected));
        assert_eq!(told(&passed)["entail/path"], PATH);
        assert_eq!(denial(&ask(&all, named(FAR), None).await), None);
        rows.secured.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_out_of_scope_are_not_found_and_do_not_count() {
    let rows = with("dialects: [istio]").await;
    let (own, all) = rows.beside_all("gw.test").await;
    let none = || about("/", &[]);
    assert_eq!(
        denial(&ask(&all, none(), Some("default.far.0")).await),
        None
    );
    let reply = ask(&own, none(), Some("default.far.0")).await;
    assert_eq!(denial(&reply), Some((503, "NotFound".to_owned())));
    let expected = ask(&all, none(), Some("default.fax.0")).await;
    assert_eq!(shown(&reply), renamed(&expected, "fax", "far"));
    // It stands at two Gateways with two answers; one of them is not there for this caller.
    let wide = ask(&all, none(), Some("default.both.0")).await;
    assert_eq!(denial(&wide), Some((503, "Unidentified".to_owned())));
    let reply = ask(&own, none(), Some("default.both.0")).await;
    assert_eq!(denial(&reply), None, "{reply:?}");
    assert_eq!(
        told(&reply)["entail/policies/APolicy.p.example/spec/marker"],
        "1"
    );
    assert!(!shown(&reply).contains("gw2"), "{reply:?}");
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_matched_in_scope() {
    let rows = with("match: true").await;
    let (own, all) = rows.beside_all("gw.test").await;
    let wide = ask(&all, at("two.example", "/"), None).await;
    assert_eq!(denial(&wide), Some((503, "Unidentified".to_owned())));
    let reply = ask(&own, at("two.example", "/"), None).await;
    assert_eq!(denial(&reply), None, "{reply:?}");
    assert_eq!(told(&reply)["entail/path"], PATH);
    rows.secured.stop().await;

    let rows = with("match: true\ngateway: default/gw2").await;
    let (own, all) = rows.beside_all("gw.test").await;
    assert_eq!(denial(&ask(&all, at("two.example", "/"), None).await), None);
    let reply = ask(&own, at("two.example", "/"), None).await;
    assert_eq!(denial(&reply), Some((503, "NotFound".to_owned())));
    assert!(!shown(&reply).contains("HTTPRoute"), "{reply:?}");
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_out_of_scope_are_in_no_metadata_and_header() {
    let settings = "headers:\n- {name: x-a, kind: APolicy.p.example, value: marker}\n\
                    - {name: x-b, kind: BPolicy.p.example, value: marker}\n";
    let rows = with(settings).await;
    let own = rows.caller("a.test").await;
    let reply = ask(&own, named(PATH), None).await;
    assert_eq!(denial(&reply), None);
    let told = told(&reply);
    assert_eq!(told["entail/policies/APolicy.p.example/spec/marker"], "1");
    assert!(!shown(&told).contains("BPolicy"), "{told:?}");
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

    // A row of no kind that there is holds nothing, and not everything.
    let nobody = rows.caller("x.test").await;
    let reply = ask(&nobody, named(PATH), None).await;
    let spec = shown(&reply);
    assert!(
        !spec.contains("BPolicy.p") && !spec.contains("APolicy.p"),
        "{spec}"
    );
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chosen_kind_out_of_scope_is_one_of_which_nothing_is_known() {
    let settings = "kinds: [APolicy.p.example, BPolicy.p.example]\n\
                    headers: [{name: x-b, kind: BPolicy.p.example, value: marker}]\n";
    let rows = with(settings).await;
    let (own, all) = rows.beside_all("a.test").await;
    let wide = ask(&all, named(PATH), None).await;
    assert!(shown(&told(&wide)).contains("BPolicy"), "{wide:?}");
    let reply = ask(&own, named(PATH), None).await;
    assert_eq!(denial(&reply), Some((503, "Incomplete".to_owned())));
    let told = told(&reply);
    assert!(!shown(&told).contains("policies/BPolicy"), "{told:?}");
    rows.secured.stop().await;
}

/// A rule by such a kind would never be true, and what it is to deny would pass.
#[tokio::test(flavor = "multi_thread")]
async fn rules_by_kinds_out_of_scope_fail_closed() {
    let deny = "deny:\n- {name: b, when: '\"BPolicy.p.example\" in policies', status: 451}\n";
    let rows = with(deny).await;
    let (own, all) = rows.beside_all("a.test").await;
    let wide = ask(&all, named(PATH), None).await;
    assert_eq!(denial(&wide), Some((451, "b".to_owned())));
    let reply = ask(&own, named(PATH), None).await;
    assert_eq!(denial(&reply), Some((503, "Incomplete".to_owned())));
    rows.secured.stop().await;
    // Who chooses kinds that the row has is answered.
    let rows = with(&format!("kinds: [APolicy.p.example]\n{deny}")).await;
    let own = rows.caller("a.test").await;
    assert_eq!(denial(&ask(&own, named(PATH), None).await), None);
    rows.secured.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_without_envoy_is_not_answered_as_envoy() {
    let rows = with("").await;
    let own = rows.caller("deep.test").await;
    let refused = check_at(own, named(PATH), &[]).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    rows.secured.stop().await;
}
