//! Asks a server bytes that a caller sent as the message of a request. The first byte of an input
//! selects the method.
//!
//! What prost decodes is answered as the library answers it, twice the same. Pages add up to the whole
//! list, replies and errors are bounded, and the fast path replies as the services behind it.

use std::sync::LazyLock;

use entail::api::envoy::check_response::HttpResponse;
use entail::api::envoy::{CheckRequest, CheckResponse};
use entail::api::{path_only_request, v1};
use entail::app::change_world;
use entail::insight::{
    AccessScope, Failure, SourceProblems, batch, explain, get, get_stored, get_topology,
    list_affected, list_findings, list_paths, list_policies, preview_change, resolve_request,
    server_status,
};
use entail::server::Limits;
use entail::snapshot::Snapshot;
use prost::Message;
use v1::get_effective_policies_request::Target;

use super::server::{FuzzServer, GET, Reply, framed};

static SERVER: LazyLock<FuzzServer> = LazyLock::new(|| FuzzServer::start(Limits::default()));

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
/// Maximum size of an error: its fixed text, and a name of 300 bytes twice.
const MAX_ERROR: usize = 1_024;
/// Maximum size of a page, and of the rest of its reply beside names of the request.
const MAX_PAGE: usize = 2 * 1024 * 1024 + 64 * 1024;

/// What the library answers.
#[derive(Clone, Debug, PartialEq)]
enum Expected {
    /// prost cannot decode the message.
    Malformed,
    Failure(Failure),
    /// An encoded message.
    Reply(Vec<u8>),
}

/// Checks one input.
pub fn check(input: &[u8]) {
    let Some((method, message)) = input.split_first() else {
        return;
    };
    let policies = |name| format!("/entail.v1.EffectivePolicyService/{name}");
    let insight = |name| format!("/entail.v1.PolicyInsightService/{name}");
    let snapshot = &*SERVER.snapshot;
    let all = &AccessScope::default();
    match method % 14 {
        0 => {
            fast_path(snapshot, message);
            let expected = ask(message, |request| get(snapshot, request, all));
            compare(GET, message, &expected);
        }
        1 => raw_look_up(message),
        2 => {
            let expected = ask(message, |request| batch(snapshot, request, all));
            compare(&policies("BatchGetEffectivePolicies"), message, &expected);
        }
        3 => {
            let expected = ask(message, |request| resolve_request(snapshot, request, all));
            compare(&policies("ResolveRequest"), message, &expected);
        }
        4 => envoy(message),
        5 => {
            let expected = pages(message, |request| explain(snapshot, request, all));
            compare(&insight("Explain"), message, &expected);
        }
        6 => {
            let expected = ask(message, |request| {
                preview_change(snapshot, request, change_world, all)
            });
            compare(&insight("PreviewChange"), message, &expected);
        }
        7 => {
            let expected = pages(message, |request| get_topology(snapshot, request, all));
            compare(&insight("GetTopology"), message, &expected);
        }
        8 => {
            let problems = SourceProblems::default();
            let status =
                |_: &v1::GetServerStatusRequest| Ok(server_status(snapshot, &problems, all));
            compare(&insight("GetServerStatus"), message, &ask(message, status));
        }
        method => list(method, message),
    }
}

/// Checks a request for a list.
fn list(method: u8, message: &[u8]) {
    let snapshot = &*SERVER.snapshot;
    let all = &AccessScope::default();
    let (name, expected) = match method {
        9 | 10 => {
            let list = |request: &_| list_paths(snapshot, request, all);
            ("ListPaths", pages(message, list))
        }
        11 => {
            let list = |request: &_| list_policies(snapshot, request, all);
            ("ListPolicies", pages(message, list))
        }
        12 => {
            let list = |request: &_| list_affected(snapshot, request, all);
            ("ListAffected", pages(message, list))
        }
        _ => {
            let list = |request: &_| list_findings(snapshot, request, all);
            ("ListFindings", pages(message, list))
        }
    };
    let method = format!("/entail.v1.PolicyInsightService/{name}");
    compare(&method, message, &expected);
}

/// Asks the library twice.
fn ask<R: Message + Default, M: Message>(
    message: &[u8],
    query: impl Fn(&R) -> Result<M, Failure>,
) -> Expected {
    let Ok(request) = R::decode(message) else {
        return Expected::Malformed;
    };
    let [once, again] = [(); 2].map(|()| match query(&request) {
        Ok(reply) => Expected::Reply(reply.encode_to_vec()),
        Err(failure) => Expected::Failure(failure),
    });
    assert_eq!(once, again, "the same request, another reply");
    match &once {
        Expected::Reply(reply) => {
            // A batch of n bytes has at most n / 2 paths, each with an error. A reply repeats kinds.
            let most = MAX_PAGE + 2 * message.len() + message.len() / 2 * MAX_ERROR;
            assert!(reply.len() <= most, "{} bytes", reply.len());
        }
        Expected::Failure(failure) => {
            let length = failure.message.len() + failure.nearest.len();
            assert!(length <= MAX_ERROR, "an error of {length} bytes: {failure}");
        }
        Expected::Malformed => {}
    }
    once
}

/// Compares the reply of the server with the answer of the library.
fn compare(method: &str, message: &[u8], expected: &Expected) {
    let reply = SERVER.call(method, &[&framed(message)]);
    match expected {
        Expected::Malformed => assert_ne!(reply.code, 0, "{method} decodes what prost does not"),
        Expected::Failure(failure) => {
            let expected = Reply {
                code: failure.number(),
                message: failure.message.clone(),
                body: Vec::new(),
            };
            assert_eq!(reply, expected, "{method}");
        }
        Expected::Reply(message) => {
            assert_eq!(reply.code, 0, "{method}: {}", reply.message);
            assert!(reply.body == framed(message), "{method}: other bytes");
        }
    }
}

/// Checks that the fast path reads the message of a look-up as prost does, and finds the same answer.
fn fast_path(snapshot: &Snapshot, message: &[u8]) {
    let decoded = v1::GetEffectivePoliciesRequest::decode(message);
    let Some(path) = path_only_request(&framed(message)).map(str::to_owned) else {
        if let Ok(request) = decoded
            && let Some(Target::Path(path)) = &request.target
        {
            // Other encodings of the same request are handed over.
            let is_plain = by_path(path) == request && request.encode_to_vec() == message;
            assert!(!is_plain, "the fast path hands over a plain request");
        }
        return;
    };
    let request = by_path(&path);
    assert_eq!(decoded.as_ref(), Ok(&request));
    let slow = get(snapshot, &request, &AccessScope::default());
    match get_stored(snapshot, &path) {
        Some(stored) => {
            let slow = slow.map(|reply| reply.encode_to_vec());
            assert_eq!(Ok(stored.encode_to_vec()), slow);
        }
        None => assert!(slow.is_err(), "the fast path does not find `{path}`"),
    }
}

/// Sends bytes as the body of a look-up, whole and in two parts. Only the first may take the fast path.
fn raw_look_up(body: &[u8]) {
    let (head, rest) = body.split_at(body.len() / 2);
    if head.is_empty() {
        return;
    }
    if let Some(path) = path_only_request(body) {
        assert_eq!(
            v1::GetEffectivePoliciesRequest::decode(&body[5..]),
            Ok(by_path(path))
        );
    }
    let whole = SERVER.call(GET, &[body]);
    let parts = SERVER.call(GET, &[head, rest]);
    assert_eq!(whole, parts);
}

fn by_path(path: &str) -> v1::GetEffectivePoliciesRequest {
    v1::GetEffectivePoliciesRequest {
        target: Some(Target::Path(path.to_owned())),
        ..Default::default()
    }
}

/// Checks a request of Envoy: every one has a decision, twice the same.
fn envoy(message: &[u8]) {
    let frame = framed(message);
    let [once, again] = [(); 2].map(|()| SERVER.call(CHECK, &[&frame]));
    assert_eq!(once, again, "the same request, another decision");
    assert_eq!(once.code == 0, CheckRequest::decode(message).is_ok());
    if once.code != 0 {
        return;
    }
    let reply = CheckResponse::decode(&once.body[5..]).unwrap();
    let is_allowed = match reply.http_response.unwrap() {
        HttpResponse::OkResponse(_) => true,
        HttpResponse::DeniedResponse(denied) => {
            assert!(denied.status.is_some_and(|status| status.code >= 400));
            false
        }
    };
    assert_eq!(is_allowed, reply.status.unwrap().code == 0);
}

/// A request for a list, and its reply.
trait Listing: Message + Default + Clone {
    type Reply: Message;

    /// Returns the size of a page, and the token of its start.
    fn page(&mut self) -> (&mut i32, &mut String);

    /// Returns the entries of a page, and the token of the next one.
    fn entries(reply: &Self::Reply) -> (Vec<String>, &str);
}

/// Implements [`Listing`] by the fields with the entries.
macro_rules! listing {
    ($request:ident, $reply:ident, $($field:ident),+) => {
        impl Listing for v1::$request {
            type Reply = v1::$reply;

            fn page(&mut self) -> (&mut i32, &mut String) {
                (&mut self.page_size, &mut self.page_token)
            }

            fn entries(reply: &v1::$reply) -> (Vec<String>, &str) {
                let mut entries = Vec::new();
                $(entries.extend(reply.$field.iter().map(|entry| format!("{entry:?}")));)+
                (entries, &reply.next_page_token)
            }
        }
    };
}

listing!(ListPathsRequest, ListPathsResponse, paths);
listing!(ListPoliciesRequest, ListPoliciesResponse, policies);
listing!(
    ListAffectedRequest,
    ListAffectedResponse,
    policies,
    paths,
    objects
);
listing!(ListFindingsRequest, ListFindingsResponse, findings);
listing!(ExplainRequest, ExplainResponse, paths);
// Edges are between the nodes of several pages.
listing!(GetTopologyRequest, GetTopologyResponse, nodes);

/// Asks for a list. The pages that follow a reply make up the list from there on.
fn pages<R: Listing>(message: &[u8], query: impl Fn(&R) -> Result<R::Reply, Failure>) -> Expected {
    let expected = ask(message, &query);
    if let (Expected::Reply(_), Ok(mut request)) = (&expected, R::decode(message)) {
        let mut whole = request.clone();
        *whole.page().0 = 10_000;
        let whole = query(&whole).unwrap();
        let mut listed = Vec::new();
        loop {
            let page = query(&request).unwrap();
            let (entries, next) = R::entries(&page);
            let (_, token) = request.page();
            let advances = !entries.is_empty() && next != token;
            assert!(next.is_empty() || advances, "no progress at {next}");
            listed.extend(entries);
            if next.is_empty() {
                break;
            }
            *token = next.to_owned();
        }
        assert_eq!(R::entries(&whole), (listed, ""));
    }
    expected
}
