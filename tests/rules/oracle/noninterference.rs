//! Objects that a caller may not see are answered as if they did not exist: replies are the same, byte for byte, in a
//! world without them, or with others in their place.
//!
//! What acts on the paths that a caller sees is part of the answers there. So two worlds are compared only if the
//! explanations of these paths, and the policies attached on them, are equal in both.

use std::collections::BTreeSet;
use std::fmt::Debug;

use entail::api::v1;
use entail::app::change_world;
use entail::insight::{
    AccessScope, Budget, Failure, FailureCode, ObjectVisibility, SourceProblems, Visibility,
    check_assertions, explain, get_topology, list_affected, list_findings, list_paths,
    list_policies, preview_change, server_status, visible_part,
};
use entail::snapshot::Snapshot;
use entail::source::manifests::{Problem, ProblemKind, read_objects};
use entail_core::model::{GroupKind, ObjectKey, Outcome};
use serde_json::{Value, json};

use super::follow::version;
use super::rng::Rng;
use super::support::{entail_of, objects_of};
use super::worlds::World;

/// Callers of each world.
const CALLERS: u64 = 2;
/// Other worlds for each caller.
const OTHERS: usize = 4;
const SALT: u64 = 0x0B5E_55ED_0C0F_FEE5;

/// Assertions that a caller may write: of what they read, some is hidden.
const ASSERTIONS: &str = "
{apiVersion: entail.dev/v1alpha1, kind: EffectivePolicyAssertion, metadata: {name: x, namespace: a}, spec: {
  policies: {p: P0.oracle.example.com}, paths: {level: Backend, namespaces: {matchLabels: {color: red}}},
  expect: {cel: \"backend.kind == 'Service' && !has(backend.labels.color)\"},
  except: [{object: gateway/shop/gw0, reason: r}, {object: service/a/s0, reason: r}]}}
---
{apiVersion: entail.dev/v1alpha1, kind: EffectivePolicyAssertion, metadata: {name: x, namespace: shop}, spec: {
  policies: {p: P1.oracle.example.com}, expect: {cel: \"size(p) > 0 && route.name != namespace.name\"}}}
---
{apiVersion: entail.dev/v1alpha1, kind: ClusterEffectivePolicyAssertion, metadata: {name: x}, spec: {
  policies: {p: P0.oracle.example.com}, paths: {gateways: {matchLabels: {color: red}}},
  expect: {cel: \"size(p) > 0\"}}}
---
{apiVersion: entail.dev/v1alpha1, kind: ClusterEffectivePolicyAssertion, metadata: {name: y}, spec: {
  policies: {p: P0.oracle.example.com}, paths: {hostnames: ['*.com'], level: Listener},
  expect: {cel: \"has(gateway.labels.color) || listener.port == 80\"}}}
---
{apiVersion: entail.dev/v1alpha1, kind: ClusterEffectivePolicyAssertion, metadata: {name: z}, spec: {
  policies: {p: P1.oracle.example.com}, paths: {level: Backend},
  expect: {cel: \"has(backend.labels.color) || has(namespace.labels.color)\"}}}
";

/// What a caller may see: some namespaces, kinds, and single objects.
struct Rights {
    namespaces: Vec<&'static str>,
    kinds: Vec<&'static str>,
    salt: u64,
    chance: u64,
}

impl Rights {
    fn random(rng: &mut Rng) -> Self {
        let kinds = [
            "Gateway",
            "GatewayClass",
            "HTTPRoute",
            "Service",
            "Namespace",
        ];
        Self {
            namespaces: rng.some(&["a-b", "a", "shop"], 35),
            kinds: rng.some(&kinds, 20),
            salt: rng.next(),
            chance: rng.below(60) as u64,
        }
    }

    /// Depends on the name alone, so that it is the same in every world.
    fn may_get(&self, key: &ObjectKey) -> bool {
        let text = format!("{key}");
        let mut hash = self.salt;
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
        self.namespaces.contains(&&*key.namespace)
            || self.kinds.contains(&&*key.kind.kind)
            || (hash >> 20) % 100 < self.chance
    }
}

/// The differences of a world.
pub fn compared(world: &World) -> Vec<String> {
    let documents = world.documents();
    let whole = Snapshot::build(entail_of(&documents), version());
    let mut rng = Rng::new(world.seed ^ SALT);
    let mut wrong = Vec::new();
    for caller in 0..CALLERS {
        let rights = Rights::random(&mut rng);
        let visibility = ObjectVisibility(|key: &ObjectKey| rights.may_get(key));
        let names = names_of(&documents);
        let promised = promised(&whole, &visibility);
        let told = replies(&whole, &visibility, &names);
        for number in 0..OTHERS {
            let (other, what) = changed(&documents, (&whole, &rights), number, &mut rng);
            if what.is_empty() {
                continue;
            }
            let other = Snapshot::build(entail_of(&other), version());
            if self::promised(&other, &visibility) != promised {
                continue;
            }
            let others = replies(&other, &visibility, &names);
            let differ = told.iter().zip(&others).find(|(a, b)| a != b);
            if let Some(((about, before), (_, after))) = differ {
                let seed = world.seed;
                wrong.push(format!(
                    "seed {seed}, caller {caller}, {what}: {about}\n{}",
                    first_difference(before, after)
                ));
            }
        }
    }
    wrong
}

fn first_difference(before: &str, after: &str) -> String {
    let same = before
        .bytes()
        .zip(after.bytes())
        .take_while(|(a, b)| a == b);
    let at = same.count().saturating_sub(160);
    let cut = |text: &str| text.chars().skip(at).take(500).collect::<String>();
    format!("with    ...{}\nwithout ...{}", cut(before), cut(after))
}

/// The name of each object, as requests have it.
fn names_of(documents: &[Value]) -> Vec<String> {
    let keys = documents
        .iter()
        .flat_map(objects_of)
        .map(|object| object.key);
    let names = keys.map(|key| match &*key.namespace {
        "" => format!("{}/{}", key.kind, key.name),
        namespace => format!("{}/{namespace}/{}", key.kind, key.name),
    });
    names.collect()
}

/// The documents that may differ for a caller: of hidden objects on which nothing depends that the caller sees.
fn hidden_documents(documents: &[Value], whole: &Snapshot, rights: &Rights) -> Vec<usize> {
    // Definitions hold for visible objects, too.
    let stays = ["PolicyProfile", "CustomResourceDefinition"];
    // So do labels of Namespaces, for the objects in them.
    let namespaces: BTreeSet<String> = documents
        .iter()
        .flat_map(objects_of)
        .filter(|object| rights.may_get(&object.key))
        .map(|object| object.key.namespace.to_string())
        .collect();
    let holds = |document: &Value| {
        let name = document["metadata"]["name"].as_str().unwrap();
        document["kind"] == "Namespace" && namespaces.contains(name)
    };
    let labels: Vec<&Value> = documents.iter().map(|d| &d["metadata"]["labels"]).collect();
    // Gateways that labels name serve the Services that have these labels.
    let is_waypoint = |document: &Value| {
        let name = &document["metadata"]["name"];
        let mut values = labels.iter().filter_map(|l| l.as_object()).flatten();
        document["kind"] == "Gateway" && values.any(|(_, value)| value == name)
    };
    // So do Namespaces by their labels, for the Services in them.
    let naming = namespaces_with_waypoint(documents, whole, rights);
    let names_waypoint = |document: &Value| {
        let name = document["metadata"]["name"].as_str().unwrap();
        document["kind"] == "Namespace" && naming.contains(name)
    };
    // A visible policy tells whether an object exists that it refers to.
    let referring: Vec<String> = documents.iter().filter_map(references_of).collect();
    let is_named = |document: &Value| {
        let name = format!("\"name\":{}", document["metadata"]["name"]);
        referring.iter().any(|text| text.contains(&name))
    };
    // So does it of a grant that it needs.
    let crossing: BTreeSet<&str> = documents
        .iter()
        .flat_map(namespaces_of_references)
        .collect();
    let is_needed = |document: &Value| {
        let namespace = document["metadata"]["namespace"].as_str();
        document["kind"] == "ReferenceGrant" && namespace.is_some_and(|ns| crossing.contains(ns))
    };
    let is_hidden = |document: &&Value| {
        let kind = document["kind"].as_str().unwrap();
        let mut objects = objects_of(document).into_iter();
        !stays.contains(&kind)
            && !holds(document)
            && !is_waypoint(document)
            && !names_waypoint(document)
            && !is_named(document)
            && !is_needed(document)
            && objects.all(|o| !rights.may_get(&o.key) && !is_conflicted(whole, &o.key))
    };
    (0..documents.len())
        .filter(|at| is_hidden(&&documents[*at]))
        .collect()
}

/// The Namespaces with labels that name a Gateway, if a visible path goes through a Service in them. The Gateway then
/// counts as visible, with policies or without, because it is the waypoint of a visible path.
fn namespaces_with_waypoint(
    documents: &[Value],
    whole: &Snapshot,
    rights: &Rights,
) -> BTreeSet<String> {
    let visibility = ObjectVisibility(|key: &ObjectKey| rights.may_get(key));
    let all = v1::ListPathsRequest {
        page_size: 10_000,
        ..Default::default()
    };
    let paths = list_paths(whole, &all, &visibility).unwrap().paths;
    let is_gateway = |value: &Value| {
        let mut gateways = documents.iter().filter(|d| d["kind"] == "Gateway");
        gateways.any(|gateway| gateway["metadata"]["name"] == *value)
    };
    let has_label = |document: &&Value| {
        let labels = document["metadata"]["labels"].as_object();
        let mut labels = labels.into_iter().flatten();
        labels.any(|(_, value)| is_gateway(value))
    };
    let namespaces = documents.iter().filter(|d| d["kind"] == "Namespace");
    let names = namespaces
        .filter(has_label)
        .map(|d| d["metadata"]["name"].as_str().unwrap().to_owned());
    let is_above = |name: &String| {
        let services = ["services", "Service"].map(|part| format!("/{part}/{name}/"));
        let goes_through = |path: &String| services.iter().any(|service| path.contains(service));
        paths.iter().any(goes_through)
    };
    names.filter(is_above).collect()
}

/// Another world, and how it differs: hidden objects are missing, or have another name or other labels.
fn changed(
    documents: &[Value],
    (whole, rights): (&Snapshot, &Rights),
    number: usize,
    rng: &mut Rng,
) -> (Vec<Value>, String) {
    let hidden = hidden_documents(documents, whole, rights);
    let some: BTreeSet<usize> = match number {
        0 if !hidden.is_empty() => [rng.choose(&hidden)].into(),
        0 => BTreeSet::new(),
        1 => rng.some(&hidden, 30).into_iter().collect(),
        2 => rng.some(&hidden, 70).into_iter().collect(),
        _ => rng.some(&hidden, 30).into_iter().collect(),
    };
    let mut what = Vec::new();
    let mut other = Vec::new();
    for (at, document) in documents.iter().enumerate() {
        if !some.contains(&at) {
            other.push(document.clone());
            continue;
        }
        let name = document["metadata"]["name"].as_str().unwrap();
        what.push(format!("{}/{name}", document["kind"].as_str().unwrap()));
        if number == 3 {
            let mut renamed = document.clone();
            renamed["metadata"]["name"] = json!(format!("{name}-other"));
            let keys = objects_of(&renamed);
            if keys.iter().all(|object| !rights.may_get(&object.key)) {
                other.push(renamed);
            }
        }
    }
    let verb = if number == 3 { "renamed" } else { "without" };
    match what.is_empty() {
        true => (other, String::new()),
        false => (other, format!("{verb} {}", what.join(", "))),
    }
}

/// The fields of a policy that can refer to objects, beside its targets, as text.
fn references_of(document: &Value) -> Option<String> {
    let mut spec = document["spec"].as_object()?.clone();
    let is_policy = super::objects::group_of(document) == super::profiles::GROUP;
    spec.retain(|field, _| !field.starts_with("target"));
    is_policy.then(|| Value::Object(spec).to_string())
}

/// The other namespaces to which the spec of an object refers.
fn namespaces_of_references(document: &Value) -> Vec<&str> {
    let own = document["metadata"]["namespace"].as_str();
    let (mut names, mut pending) = (Vec::new(), vec![&document["spec"]]);
    while let Some(value) = pending.pop() {
        let is_namespace = value["kind"] == "Namespace";
        names.extend(value[if is_namespace { "name" } else { "namespace" }].as_str());
        pending.extend(value.as_object().into_iter().flat_map(|map| map.values()));
        pending.extend(value.as_array().into_iter().flatten());
    }
    names.retain(|name| Some(*name) != own);
    names
}

/// Whether a policy lost a conflict. It acts on the policies that it conflicts with, which name it.
fn is_conflicted(whole: &Snapshot, key: &ObjectKey) -> bool {
    let kinds = whole.world().kinds().iter();
    let references = kinds.filter_map(|kind| kind.attached(kind.policy(key)?));
    let mut references = references.flat_map(|attached| &attached.references);
    references
        .any(|r| r.outcome == Outcome::Conflicted || !r.message.is_empty() && !r.nodes.is_empty())
}

/// What a caller is supposed to see: the explanations of the visible paths, and what is attached on them.
fn promised(snapshot: &Snapshot, visibility: &dyn Visibility) -> Vec<String> {
    let all = AccessScope::default();
    let whole = v1::GetTopologyRequest {
        page_size: 10_000,
        ..Default::default()
    };
    let paths = list_paths(snapshot, &v1::ListPathsRequest::default(), visibility);
    let paths = paths.unwrap().paths;
    let mut promised = vec![format!(
        "{:?}",
        get_topology(snapshot, &whole, visibility).unwrap()
    )];
    for name in paths {
        let request = v1::ExplainRequest {
            name,
            ..Default::default()
        };
        let reply = explain(snapshot, &request, &all).unwrap();
        promised.push(format!("{:?}", reply.paths));
    }
    promised
}

/// The replies to all questions of a caller, as the server gives them.
fn replies(
    whole: &Snapshot,
    visibility: &dyn Visibility,
    names: &[String],
) -> Vec<(String, String)> {
    let part = visible_part(whole, visibility).unwrap();
    let part = part.as_ref().unwrap_or(whole);
    let mut told = Vec::new();
    let mut tell = |about: String, reply: &dyn Debug| told.push((about, format!("{reply:?}")));
    let mut paths = v1::ListPathsRequest {
        page_size: 7,
        ..Default::default()
    };
    let ask = |page_token| {
        paths.page_token = page_token;
        list_paths(whole, &paths, visibility).unwrap()
    };
    for page in each_page(ask, |page| &page.next_page_token) {
        tell("paths".to_owned(), &page);
    }
    let mut policies = v1::ListPoliciesRequest {
        page_size: 2,
        ..Default::default()
    };
    let ask = |page_token| {
        policies.page_token = page_token;
        list_policies(part, &policies, visibility).unwrap()
    };
    for page in each_page(ask, |page| &page.next_page_token) {
        tell("policies".to_owned(), &page);
    }
    tell("findings".to_owned(), &pages(part, visibility));
    tell("topology".to_owned(), &topology_pages(whole, visibility));
    let problems = SourceProblems::default();
    tell(
        "status".to_owned(),
        &server_status(whole, &problems, visibility),
    );
    of_names((part, whole), visibility, names, &mut tell);
    let first = names.iter().step_by(5).map(|name| vec![name.clone()]);
    for deletes in first {
        let about = format!("deletes {deletes:?}");
        let request = v1::PreviewChangeRequest {
            deletes,
            ..Default::default()
        };
        let reply = preview_change(part, &request, change_world, visibility);
        tell(about, &reply);
    }
    let request = v1::CheckAssertionsRequest {
        manifests: ASSERTIONS.to_owned(),
        date: "2026-06-01".to_owned(),
        ..Default::default()
    };
    let reply = check_assertions(part, &request, change_world, visibility);
    tell("assertions".to_owned(), &reply);
    told
}

/// The replies about each name.
fn of_names(
    (part, whole): (&Snapshot, &Snapshot),
    visibility: &dyn Visibility,
    names: &[String],
    tell: &mut dyn FnMut(String, &dyn Debug),
) {
    for name in names {
        use v1::list_affected_request::Subject;
        for subject in [Subject::Object(name.clone()), Subject::Policy(name.clone())] {
            let request = v1::ListAffectedRequest {
                subject: Some(subject.clone()),
                ..Default::default()
            };
            let reply = list_affected(part, &request, visibility);
            tell(format!("{subject:?}"), &reply);
        }
        let request = v1::ExplainRequest {
            name: name.clone(),
            ..Default::default()
        };
        tell(
            format!("explain {name}"),
            &explanation_pages(whole, &request, visibility),
        );
        let request = v1::ListPathsRequest {
            name: name.clone(),
            ..Default::default()
        };
        tell(
            format!("paths {name}"),
            &list_paths(whole, &request, visibility),
        );
    }
}

/// All pages from the first one on.
fn each_page<P>(mut ask: impl FnMut(String) -> P, next: impl Fn(&P) -> &str) -> Vec<P> {
    let mut pages = vec![ask(String::new())];
    while let Some(token) = pages.last().map(&next).filter(|token| !token.is_empty()) {
        let page = ask(token.to_owned());
        pages.push(page);
    }
    pages
}

/// All findings, after a check that small pages have the same.
fn pages(part: &Snapshot, visibility: &dyn Visibility) -> Vec<v1::Finding> {
    let mut request = v1::ListFindingsRequest::default();
    let whole = list_findings(part, &request, visibility).unwrap().findings;
    request.page_size = 2;
    let ask = |page_token| {
        request.page_token = page_token;
        list_findings(part, &request, visibility).unwrap()
    };
    let pages = each_page(ask, |page| &page.next_page_token);
    let found: Vec<_> = pages.into_iter().flat_map(|page| page.findings).collect();
    assert_eq!(found, whole);
    whole
}

/// The topology, after a check that small pages have the same.
fn topology_pages(whole: &Snapshot, visibility: &dyn Visibility) -> v1::GetTopologyResponse {
    let mut request = v1::GetTopologyRequest {
        page_size: 10_000,
        ..Default::default()
    };
    let all = get_topology(whole, &request, visibility).unwrap();
    request.page_size = 3;
    let ask = |page_token| {
        request.page_token = page_token;
        get_topology(whole, &request, visibility).unwrap()
    };
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for page in each_page(ask, |page| &page.next_page_token) {
        nodes.extend(page.nodes);
        let known = |id: u32| (id as usize) < nodes.len();
        assert!(page.edges.iter().all(|e| known(e.from) && known(e.to)));
        edges.extend(page.edges);
    }
    assert_eq!(nodes, all.nodes);
    edges.sort_by_key(|edge| (edge.from, edge.to));
    let mut expected = all.edges.clone();
    expected.sort_by_key(|edge| (edge.from, edge.to));
    assert_eq!(edges, expected);
    all
}

/// An explanation, after a check that small pages have the same.
fn explanation_pages(
    whole: &Snapshot,
    request: &v1::ExplainRequest,
    visibility: &dyn Visibility,
) -> Result<v1::ExplainResponse, Failure> {
    let all = explain(whole, request, visibility)?;
    assert_eq!(all.next_page_token, "");
    let mut request = request.clone();
    request.page_size = 1;
    let ask = |page_token| {
        request.page_token = page_token;
        explain(whole, &request, visibility).unwrap()
    };
    let pages = each_page(ask, |page| &page.next_page_token);
    assert!(pages.iter().all(|page| page.paths.len() <= 1));
    let paths: Vec<_> = pages.into_iter().flat_map(|page| page.paths).collect();
    assert_eq!(paths, all.paths);
    Ok(all)
}

/// Worlds that once told what they hide.
const TOLD: [u64; 42] = [
    9_000_541, 9_000_748, 9_001_384, 9_001_388, 9_001_522, 9_001_532, 9_001_799, 9_001_856,
    9_002_089, 9_002_446, 9_002_594, 9_003_315, 9_003_947, 20_000_163, 20_000_189, 20_000_259,
    20_001_110, 20_001_207, 20_001_898, 20_002_670, 20_002_927, 20_003_093, 20_003_124, 20_003_154,
    20_003_186, 60_000_267, 60_001_580, 60_003_330, 80_000_530, 80_002_361, 80_008_373, 80_011_445,
    80_013_862, 80_015_813, 80_016_582, 80_018_417, 80_006_039, 80_015_122, 80_007_942, 80_008_955,
    80_016_018, 91_000_753,
];
const TOLD_LATER: [u64; 3] = [181_000_465, 181_004_358, 181_005_351];

#[test]
fn worlds_that_once_told_what_they_hide_do_not() {
    let seeds = TOLD.iter().chain(&TOLD_LATER);
    let found: Vec<String> = seeds
        .flat_map(|&seed| compared(&World::new(seed)))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

/// A kind that no Route changes, one that does not follow delegation, and the objects that the cases share.
const SHARED: &str = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: above}
spec: {policy: {group: p.example, kind: Above}, class: Inherited, effectiveTarget: Gateway, targets: null, controllers: []}
---
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: below}
spec:
  policy: {group: p.example, kind: Below}
  class: Inherited
  effectiveTarget: BackendPort
  targets: null
  controllers: []
  mesh: true
  delegation: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: gc}
spec: {controllerName: CONTROLLER}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: a}
spec:
  gatewayClassName: gc
  listeners: [{name: http, port: 80, protocol: HTTP}, {name: tcp, port: 81, protocol: TCP}]
---
apiVersion: v1
kind: Service
metadata: {name: svc, namespace: a}
spec: {ports: [{port: 80}]}
---
apiVersion: p.example/v1
kind: Below
metadata: {name: p, namespace: a}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}], defaults: {x: 1}}
---
apiVersion: p.example/v1
kind: Above
metadata: {name: p, namespace: a}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}], defaults: {x: 1}}
---
";

/// The documents of a text, beside the shared ones.
fn documents_of(text: &str, controller: &str) -> Vec<Value> {
    let shared = SHARED.replace("CONTROLLER", controller);
    let parsed = read_objects(&format!("{shared}{text}"), "case");
    let is_unread = |problem: &&Problem| problem.kind != ProblemKind::WrongType;
    assert_eq!(parsed.problems.iter().find(is_unread), None);
    let objects = parsed.objects.into_iter();
    objects.map(|read| read.object.body.value()).collect()
}

/// Checks that callers who do not see the objects with some names get the same replies in a world without them.
fn assert_hidden(documents: &[Value], hidden: &[&str]) {
    let mut others = documents.to_vec();
    others.retain(|document| !hidden.contains(&document["metadata"]["name"].as_str().unwrap()));
    assert!(others.len() < documents.len());
    assert_same_replies(documents, &others, hidden);
}

/// Checks that callers who do not see the objects with some names get the same replies in two worlds.
fn assert_same_replies(documents: &[Value], others: &[Value], hidden: &[&str]) {
    let visibility = ObjectVisibility(|key: &ObjectKey| !hidden.contains(&&*key.name));
    let [with, without] =
        [documents, others].map(|documents| Snapshot::build(entail_of(documents), version()));
    assert_eq!(
        promised(&with, &visibility),
        promised(&without, &visibility)
    );
    let names = names_of(documents);
    let [with, without] = [&with, &without].map(|snapshot| replies(snapshot, &visibility, &names));
    for (with, without) in with.iter().zip(&without) {
        assert_eq!(with, without);
    }
}

#[test]
fn a_hidden_route_that_a_rule_delegates_to_does_not_exist() {
    // The path ends at the rule: below a Gateway because the kind does not follow, in the mesh because no kind does.
    let rule = "{backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: child}]}";
    let child = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: child, namespace: a}
spec: {rules: [{backendRefs: [{name: svc, port: 80}]}]}
";
    for parent in [
        "{name: gw, sectionName: http}",
        "{group: '', kind: Service, name: svc}",
    ] {
        let text = format!(
            "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: r, namespace: a}}
spec: {{parentRefs: [{parent}], rules: [{rule}]}}
---{child}"
        );
        assert_hidden(&documents_of(&text, "example.com/one"), &["child"]);
        let unfollowed = text.replace(
            &format!("rules: [{rule}]"),
            &format!("rules: [{{}}, {rule}]"),
        );
        let mut documents = documents_of(&unfollowed, "example.com/one");
        for document in &mut documents {
            if document["metadata"]["name"] == "below" {
                document["spec"]["delegation"] = json!({"prefer": "NotFollowed"});
            }
        }
        assert_hidden(&documents, &["child"]);
    }
}

#[test]
fn a_hidden_gateway_does_not_exist_for_a_route_that_lost_its_listener() {
    let route = |name: &str, day: u8| {
        format!(
            "
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TCPRoute
metadata: {{name: {name}, namespace: a, creationTimestamp: 2026-01-0{day}T00:00:00Z}}
spec: {{parentRefs: [{{name: gw, sectionName: tcp}}], rules: [{{backendRefs: [{{name: svc, port: 80}}]}}]}}
---"
        )
    };
    let text = route("older", 1) + &route("newer", 2);
    let documents = documents_of(&text, "gateway.envoyproxy.io/gatewayclass-controller");
    assert_hidden(&documents, &["gw", "older"]);
    // Where the listener is visible, the Route that has it may have any name.
    let on_rival = "
apiVersion: p.example/v1
kind: Above
metadata: {name: on-rival, namespace: a}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: TCPRoute, name: older}], defaults: {x: 1}}
";
    let [documents, others] = ["older", "other"].map(|name| {
        let text = route(name, 1) + &route("newer", 2) + on_rival;
        documents_of(&text, "gateway.envoyproxy.io/gatewayclass-controller")
    });
    assert_same_replies(&documents, &others, &["older", "other"]);
}

const ROUTE: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: a}
spec: {parentRefs: [{name: gw, sectionName: http}], rules: [{backendRefs: [{name: svc, port: 80}]}]}
---";

#[test]
fn a_hidden_object_does_not_tell_that_objects_of_its_kind_are_known() {
    // The first policy acts on a visible path and names a hidden object; the other one names an object beside it.
    let text = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: referring}
spec:
  policy: {group: p.example, kind: Referring}
  preset: direct
  targets: null
  controllers: []
  references: [{path: ref, group: '', kind: ConfigMap}]
---
apiVersion: p.example/v1
kind: Referring
metadata: {name: on-path, namespace: a}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}], ref: {name: cm}}
---
apiVersion: p.example/v1
kind: Referring
metadata: {name: elsewhere, namespace: a}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: gone}], ref: {name: gone}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cm, namespace: a}
";
    let documents = documents_of(&(ROUTE.to_owned() + text), "example.com/one");
    assert_hidden(&documents, &["cm"]);
}

#[test]
fn a_hidden_class_of_a_waypoint_does_not_exist_where_nothing_depends_on_it() {
    let text = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: waypoints}
spec:
  policy: {group: p.example, kind: AtWaypoint}
  class: Inherited
  effectiveTarget: BackendPort
  targets: null
  controllers: []
  mesh: true
  waypoints: {label: way, controllers: [example.com/two]}
  status: {ancestor: None}
---
apiVersion: v1
kind: Service
metadata: {name: meshed, namespace: a, labels: {way: waypoint}}
spec: {ports: [{port: 80}]}
---
apiVersion: p.example/v1
kind: AtWaypoint
metadata: {name: p, namespace: a}
spec: {targetRefs: [{group: '', kind: Service, name: meshed}], defaults: {x: 1}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: waypoint, namespace: a}
spec: {gatewayClassName: hidden, listeners: []}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: hidden}
spec: {controllerName: example.com/two}
---
apiVersion: p.example/v1
kind: Above
metadata: {name: on-class, namespace: a}
spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: GatewayClass, name: hidden}], defaults: {x: 1}}
";
    let documents = documents_of(text, "example.com/one");
    assert_class_of_waypoint_is_absent(&documents);
}

#[test]
fn hidden_policies_above_all_paths_do_not_exist_for_a_caller_without_paths() {
    let text = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: everywhere}
spec:
  policy: {group: p.example, kind: Everywhere}
  class: Inherited
  effectiveTarget: Gateway
  targets: null
  controllers: []
  attach: [namespace]
  rootNamespace: a
  sameTarget: RejectNewer
---
apiVersion: p.example/v1
kind: Everywhere
metadata: {name: older, namespace: a, creationTimestamp: 2026-01-01T00:00:00Z}
spec: {defaults: {x: 1}}
---
apiVersion: p.example/v1
kind: Everywhere
metadata: {name: newer, namespace: a, creationTimestamp: 2026-01-02T00:00:00Z}
spec: {defaults: {x: 1}}
";
    let documents = documents_of(text, "example.com/one");
    assert_hidden(&documents, &["gc", "gw", "svc", "a", "older"]);
}

#[test]
fn a_hidden_policy_above_all_paths_that_no_answer_names_does_not_exist() {
    // Its controller rejects it, and no visible path reaches the effective level, where answers name such policies.
    let text = "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: everywhere}
spec:
  policy: {group: p.example, kind: Everywhere}
  class: Inherited
  effectiveTarget: Route
  targets: null
  controllers: []
  attach: [namespace]
  rootNamespace: root
  trustStatus: true
---
apiVersion: p.example/v1
kind: Everywhere
metadata: {name: rejected, namespace: root, generation: 1}
spec: {defaults: {x: 1}}
status: {ancestors: [{conditions: [{type: Accepted, status: 'False', reason: TooBad, observedGeneration: 1}]}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: root}
";
    let documents = documents_of(text, "example.com/one");
    assert_hidden(&documents, &["rejected"]);
    // A preview that deletes the Namespace leaves nothing in it.
    let visibility = ObjectVisibility(|key: &ObjectKey| &*key.name != "rejected");
    let whole = Snapshot::build(entail_of(&documents), version());
    let part = visible_part(&whole, &visibility).unwrap().unwrap();
    let request = v1::PreviewChangeRequest {
        deletes: vec!["Namespace/root".to_owned()],
        ..Default::default()
    };
    let reply = preview_change(&part, &request, change_world, &visibility).unwrap();
    assert_eq!(reply.paths_removed, ["namespaces/root"]);
    // Where a visible path reaches the effective level, answers name the policy.
    let documents = documents_of(&(ROUTE.to_owned() + text), "example.com/one");
    let whole = Snapshot::build(entail_of(&documents), version());
    let part = visible_part(&whole, &visibility).unwrap();
    let part = part.as_ref().unwrap_or(&whole);
    let reply = preview_change(part, &request, change_world, &visibility).unwrap();
    assert_eq!(reply.paths_removed, [""; 0]);
    assert_eq!(promised(part, &visibility), promised(&whole, &visibility));
}

#[test]
fn a_hidden_class_of_a_waypoint_does_not_exist_for_a_policy_that_no_answer_names() {
    // The policy is invalid because it has both fields, and no visible path reaches the effective level.
    let text = "
apiVersion: v1
kind: Service
metadata: {name: meshed, namespace: a, labels: {way: waypoint}}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: waypoint, namespace: a}
spec: {gatewayClassName: hidden, listeners: []}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: hidden}
spec: {controllerName: example.com/two}
---
apiVersion: p.example/v1
kind: AtWaypoint
metadata: {name: invalid, namespace: a}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: gone}
  targetRefs: [{group: gateway.networking.k8s.io, kind: GatewayClass, name: hidden}]
  defaults: {x: 1}
";
    let kind = kind_with_waypoints("AtWaypoint", "[Gateway]", "{label: way}");
    let targets = "targets: [{group: gateway.networking.k8s.io, kind: GatewayClass}]";
    let text = kind.replace("targets: null", targets) + text;
    let documents = documents_of(&text, "example.com/one");
    assert_class_of_waypoint_is_absent(&documents);
}

/// Asserts that a caller who may not see the GatewayClass of a waypoint gets the replies of a world without it.
fn assert_class_of_waypoint_is_absent(documents: &[Value]) {
    let is_class = |document: &&Value| {
        document["kind"] == "GatewayClass" && document["metadata"]["name"] == "hidden"
    };
    let others: Vec<Value> = documents.iter().filter(|d| !is_class(d)).cloned().collect();
    assert_same_replies(documents, &others, &["waypoint", "hidden"]);
}

/// A kind that has waypoints, with settings of its own.
fn kind_with_waypoints(kind: &str, namespace_reaches: &str, waypoints: &str) -> String {
    format!(
        "
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {{name: {kind}}}
spec:
  policy: {{group: p.example, kind: {kind}}}
  class: Inherited
  effectiveTarget: BackendPort
  targets: null
  controllers: []
  mesh: true
  sameTarget: RejectNewer
  status: {{ancestor: None}}
  namespaceReaches: {namespace_reaches}
  waypoints: {waypoints}
---"
    )
}

/// A policy that was created on a day of the month.
fn dated_policy(kind: &str, target: &str, name: &str, day: u8) -> String {
    format!(
        "
apiVersion: p.example/v1
kind: {kind}
metadata: {{name: {name}, namespace: b, creationTimestamp: 2026-01-0{day}T00:00:00Z}}
spec: {{targetRefs: [{target}], defaults: {{x: 1}}}}
---"
    )
}

#[test]
fn a_hidden_policy_at_a_waypoint_of_another_kind_does_not_exist() {
    let far = "{way: waypoint, way-ns: b}";
    let gateway = "{group: gateway.networking.k8s.io, kind: Gateway, name: waypoint}";
    let namespace = "{group: '', kind: Namespace, name: b}";
    for (kind, own, inherited, target) in [
        // To this kind, the label names a Gateway in the namespace of the Service.
        ("Near", far, "{}", gateway),
        // Policies of Namespaces do not reach Gateways.
        ("Far", far, "{}", namespace),
        // The labels of the Service count, not those of its Namespace.
        ("Far", "{way: other}", far, gateway),
    ] {
        let objects = format!(
            "
apiVersion: v1
kind: Service
metadata: {{name: meshed, namespace: c, labels: {own}}}
spec: {{ports: [{{port: 80}}]}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: c, labels: {inherited}}}
---
apiVersion: v1
kind: Namespace
metadata: {{name: b}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: waypoint, namespace: b}}
spec: {{gatewayClassName: gc, listeners: []}}
"
        );
        let text = [
            kind_with_waypoints("Near", "[Gateway]", "{label: way}"),
            kind_with_waypoints("Far", "[Route]", "{label: way, namespaceLabel: way-ns}"),
            dated_policy(kind, target, "older", 1),
            dated_policy(kind, target, "newer", 2),
            objects,
        ];
        let documents = documents_of(&text.concat(), "example.com/one");
        let mut others = documents.clone();
        others.retain(|document| document["metadata"]["name"] != "older");
        assert_same_replies(&documents, &others, &["waypoint", "b", "older"]);
    }
}

#[test]
fn a_hidden_backend_does_not_exist_where_a_path_names_it() {
    let route = ROUTE.replace(
        "{name: svc, port: 80}",
        "{group: other.example, kind: Bucket, namespace: b, name: bucket}",
    );
    let text = "
apiVersion: other.example/v1
kind: Bucket
metadata: {name: bucket, namespace: b}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: all, namespace: b}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: a}]
  to: [{group: other.example, kind: Bucket}]
---
apiVersion: p.example/v1
kind: Above
metadata: {name: on-namespace, namespace: b}
spec: {targetRefs: [{group: '', kind: Namespace, name: b}], defaults: {x: 1}}
---
apiVersion: p.example/v1
kind: Above
metadata: {name: on-bucket, namespace: b}
spec: {targetRefs: [{group: other.example, kind: Bucket, name: bucket}], defaults: {x: 1}}
";
    assert_hidden(
        &documents_of(&(route + text), "example.com/one"),
        &["bucket"],
    );
}

/// A caller who sees everything and goes away after some steps.
struct Leaving(Budget);

impl Visibility for Leaving {
    fn is_unrestricted(&self) -> bool {
        true
    }

    fn includes_path(&self, _: &str) -> bool {
        true
    }

    fn includes_kind(&self, _: &GroupKind) -> bool {
        true
    }

    fn includes_object(&self, _: &ObjectKey) -> bool {
        true
    }

    fn budget(&self) -> &Budget {
        &self.0
    }
}

#[test]
fn queries_stop_when_their_caller_is_gone() {
    let routes: Vec<Value> = (0..2_000)
        .map(|number| {
            json!({
                "apiVersion": "gateway.networking.k8s.io/v1", "kind": "TCPRoute",
                "metadata": {"name": format!("r{number}"), "namespace": "a"},
                "spec": {"parentRefs": [{"name": "gw"}], "rules": [{}]},
            })
        })
        .collect();
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": "gw", "namespace": "a"},
        "spec": {"gatewayClassName": "gc", "listeners": [{"name": "l", "port": 1, "protocol": "TCP"}]},
    });
    let documents: Vec<Value> = routes.into_iter().chain([gateway]).collect();
    let snapshot = Snapshot::build(entail_of(&documents), version());
    for steps in [1, 10, 100] {
        let gone = |ask: &dyn Fn(&dyn Visibility) -> Option<FailureCode>, about: &str| {
            let caller = Leaving(Budget::of_steps(steps));
            assert_eq!(
                ask(&caller),
                Some(FailureCode::Cancelled),
                "{about}: {steps}"
            );
            let late = caller.0.late_steps();
            assert!(late <= 10, "{about}: {late} steps after {steps}");
        };
        let all = v1::ListPathsRequest {
            page_size: 10_000,
            ..Default::default()
        };
        let code = |failure: Failure| failure.code;
        gone(&|v| list_paths(&snapshot, &all, v).err().map(code), "paths");
        let all = v1::ListFindingsRequest::default();
        gone(
            &|v| list_findings(&snapshot, &all, v).err().map(code),
            "findings",
        );
        let graph = v1::GetTopologyRequest::default();
        gone(
            &|v| get_topology(&snapshot, &graph, v).err().map(code),
            "topology",
        );
    }
}

#[test]
fn conflicts_between_many_routes_are_one_finding_each_and_pages_are_the_whole() {
    let routes = (0..300).map(|number| {
        json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "TCPRoute",
            "metadata": {"name": format!("r{number}"), "namespace": "a"},
            "spec": {"parentRefs": [{"name": "gw"}], "rules": [{}]},
        })
    });
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": "gw", "namespace": "a"},
        "spec": {"gatewayClassName": "gc", "listeners": [{"name": "l", "port": 1, "protocol": "TCP"}]},
    });
    let documents: Vec<Value> = routes.chain([gateway]).collect();
    let snapshot = Snapshot::build(entail_of(&documents), version());
    let found = pages(&snapshot, &AccessScope::default());
    let conflicts = found.iter().filter(|f| f.code == "E051" && f.count == 1);
    assert_eq!(conflicts.count(), 299);
    // A caller who sees two of the Routes learns of no others.
    let sees = |key: &ObjectKey| matches!(&*key.name, "r7" | "r8");
    let found = pages(&snapshot, &ObjectVisibility(sees));
    let messages: Vec<&str> = found.iter().map(|f| &*f.message).collect();
    let expected = "conflicts with `TCPRoute/a/r7` on `Gateway/a/gw#l`; at most one is served";
    assert_eq!(messages, [expected]);
}
