//! Access reviews: restricts replies to the objects that the caller may `get` in the cluster.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use tokio::runtime::Handle;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::insight::{AccessScope, Coverage, Visibility};
use crate::server::access::peer::Peer;
use entail_core::model::{GroupKind, ObjectKey, PathName, Root, groups};

/// Maximum number of access reviews for single objects per request; further objects are treated as
/// not permitted. Reviews for whole namespaces and kinds do not count.
const MAX_OBJECT_REVIEWS: usize = 256;
/// Maximum time that one request waits for access reviews, because it occupies a thread meanwhile.
const MAX_REVIEW_TIME: Duration = Duration::from_secs(10);

/// The future of a review. The error is the reason why there is no answer.
pub type ReviewFuture<'r, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'r>>;

/// Authenticates bearer tokens, as the TokenReview API of a cluster does.
pub trait TokenAuthenticator: Debug + Send + Sync {
    /// Returns the account of a token, or `None` if the token is not valid.
    fn account(&self, token: &str) -> ReviewFuture<'_, Option<Arc<dyn Authorizer>>>;
}

/// Authorizes an account, as the SubjectAccessReview API of a cluster does.
pub trait Authorizer: Debug + Send + Sync {
    /// Reports whether the account may `get` the resources with these attributes.
    fn may_get(&self, attributes: ResourceAttributes) -> ReviewFuture<'_, bool>;
}

/// The resources of an access review: a single object, a namespace, a kind, or everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceAttributes {
    /// The kind; all kinds if `None`.
    pub kind: Option<GroupKind>,
    /// The namespace; all namespaces if empty. Also empty for cluster-scoped objects.
    pub namespace: String,
    /// The name; all objects if empty.
    pub name: String,
}

/// What a caller may see in one request: the scope of its access rule, restricted to what its
/// account may get in the cluster.
#[derive(Debug)]
pub(in crate::server) struct CallerVisibility {
    scope: Arc<AccessScope>,
    /// The account of the caller; `None` if no reviews are required.
    account: Option<Arc<dyn Authorizer>>,
    runtime: Handle,
    reviews: Mutex<ReviewCache>,
}

/// The reviews of one request.
#[derive(Debug, Default)]
struct ReviewCache {
    results: HashMap<ResourceAttributes, bool>,
    /// Number of reviews for single objects.
    object_reviews: usize,
    /// Total time spent waiting.
    waited: Duration,
    /// Why a review failed, if one did.
    failure: Option<String>,
}

impl CallerVisibility {
    /// Authenticates the caller of a request. Callers over a Unix socket need no token, because the
    /// mode of the socket's file controls access.
    ///
    /// # Errors
    /// Returns UNAUTHENTICATED if the token is missing or not valid, and UNAVAILABLE if it cannot
    /// be reviewed.
    pub async fn of_request(
        reviews: Option<&Arc<dyn TokenAuthenticator>>,
        peer: &Peer,
        metadata: &MetadataMap,
    ) -> Result<Self, Status> {
        let account = match reviews.filter(|_| !peer.is_unix_socket()) {
            Some(reviews) => Some(account(reviews, metadata).await?),
            None => None,
        };
        Ok(Self {
            scope: peer.scope(),
            account,
            runtime: Handle::current(),
            reviews: Mutex::default(),
        })
    }

    /// Returns UNAVAILABLE if any access review failed: the reply could then lack objects that the
    /// caller may see.
    pub fn check(&self) -> Result<(), Status> {
        match &self.reviews().failure {
            None => Ok(()),
            Some(why) => Err(unavailable(why)),
        }
    }

    fn reviews(&self) -> MutexGuard<'_, ReviewCache> {
        self.reviews.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports whether the account may get some resources, with at most one review for equal
    /// attributes. Blocks on the cluster, so it must run on a blocking thread.
    fn review(&self, account: &Arc<dyn Authorizer>, attributes: ResourceAttributes) -> bool {
        let mut reviews = self.reviews();
        if let Some(is_allowed) = reviews.results.get(&attributes) {
            return *is_allowed;
        }
        if reviews.failure.is_some() {
            return false;
        }
        if !attributes.name.is_empty() {
            if reviews.object_reviews >= MAX_OBJECT_REVIEWS {
                return false;
            }
            reviews.object_reviews += 1;
        }
        if reviews.waited > MAX_REVIEW_TIME {
            let why = "the request needs too many access reviews: name an object or a path";
            reviews.failure = Some(why.to_owned());
            return false;
        }
        let started = Instant::now();
        let result = self.runtime.block_on(account.may_get(attributes.clone()));
        reviews.waited += started.elapsed();
        let is_allowed = result.unwrap_or_else(|why| {
            reviews.failure = Some(why);
            false
        });
        reviews.results.insert(attributes, is_allowed);
        is_allowed
    }

    /// Reports whether the account may get an object. Reviews the widest attributes first: there
    /// are few of them, and a positive result covers many objects.
    fn may_get(&self, key: &ObjectKey) -> bool {
        let Some(account) = &self.account else {
            return true;
        };
        let attributes = |namespace: &str, name: &str| ResourceAttributes {
            kind: Some(key.kind.clone()),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.review(account, ResourceAttributes::default())
            || self.review(account, attributes("", ""))
            || (!key.namespace.is_empty() && self.review(account, attributes(&key.namespace, "")))
            || self.review(account, attributes(&key.namespace, &key.name))
    }
}

impl Visibility for CallerVisibility {
    fn is_unrestricted(&self) -> bool {
        let has_all = |account| self.review(account, ResourceAttributes::default());
        self.scope.is_unrestricted() && self.account.as_ref().is_none_or(has_all)
    }

    fn includes_path(&self, name: &str) -> bool {
        self.scope.has_path(name)
            && (self.account.is_none() || object_of(name).is_some_and(|key| self.may_get(&key)))
    }

    fn coverage(&self, name: &str) -> Coverage {
        let covered = self.scope.coverage(name);
        let is_below_route = || match PathName::parse(name) {
            Ok(PathName::Traffic(walk)) => walk.route.is_some(),
            _ => false,
        };
        match covered {
            Coverage::Nothing => Coverage::Nothing,
            // Whoever may get a route may see everything below it.
            Coverage::All if self.account.is_none() => Coverage::All,
            Coverage::All if is_below_route() => match self.includes_path(name) {
                true => Coverage::All,
                false => Coverage::Nothing,
            },
            Coverage::All | Coverage::Part => Coverage::Part,
        }
    }

    fn includes_kind(&self, kind: &GroupKind) -> bool {
        self.scope.has_kind(kind)
    }

    fn includes_object(&self, key: &ObjectKey) -> bool {
        self.scope.includes_object(key) && self.may_get(key)
    }
}

/// Returns the object whose `get` permission covers a path: the route of a path that has one, since
/// whoever may get a route may see its effective policies down to the backends; otherwise the
/// ListenerSet or the root.
fn object_of(path: &str) -> Option<ObjectKey> {
    let gateway = |kind| GroupKind::new(groups::GATEWAY, kind);
    let core = |kind| GroupKind::new(groups::CORE, kind);
    let traffic = match PathName::parse(path).ok()? {
        PathName::GatewayClass(name) => {
            return Some(ObjectKey::new(gateway("GatewayClass"), "", name));
        }
        PathName::Namespace(name) => return Some(ObjectKey::new(core("Namespace"), "", name)),
        PathName::Traffic(traffic) => traffic,
    };
    if let Some(route) = traffic.route {
        let kind = GroupKind::parse_short(route.kind);
        return Some(ObjectKey::new(kind, route.namespace, route.name));
    }
    if let Some(set) = traffic.listener_set {
        return Some(ObjectKey::new(
            gateway("ListenerSet"),
            set.namespace,
            set.name,
        ));
    }
    Some(match traffic.root {
        Root::Gateway { namespace, name } => ObjectKey::new(gateway("Gateway"), namespace, name),
        Root::Mesh {
            namespace, name, ..
        } => ObjectKey::new(core("Service"), namespace, name),
    })
}

/// Returns the account of the bearer token of a request.
///
/// # Errors
/// Returns UNAUTHENTICATED if the token is missing or not valid, and UNAVAILABLE if it cannot be
/// reviewed.
async fn account(
    reviews: &Arc<dyn TokenAuthenticator>,
    metadata: &MetadataMap,
) -> Result<Arc<dyn Authorizer>, Status> {
    let header = metadata.get("authorization");
    let header = header.and_then(|value| value.to_str().ok());
    let token = header.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        let token = token.trim();
        (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
    });
    let token = token.ok_or_else(|| {
        Status::unauthenticated(
            "this server requires a token of the cluster: send it as `authorization: Bearer TOKEN` \
             (`--token-file` of the commands)",
        )
    })?;
    let account = reviews.account(token).await;
    let account = account.map_err(|why| unavailable(&why))?;
    account.ok_or_else(|| Status::unauthenticated("the cluster did not accept the token"))
}

fn unavailable(why: &str) -> Status {
    Status::unavailable(format!(
        "the cluster did not complete the access reviews of the caller: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster that allows some attributes and records the reviews.
    #[derive(Debug, Default)]
    struct Fake {
        allowed: Vec<ResourceAttributes>,
        reviewed: Mutex<Vec<ResourceAttributes>>,
        is_unavailable: bool,
    }

    impl Authorizer for Arc<Fake> {
        fn may_get(&self, attributes: ResourceAttributes) -> ReviewFuture<'_, bool> {
            self.reviewed.lock().unwrap().push(attributes.clone());
            let result = match self.is_unavailable {
                true => Err("connection refused".to_owned()),
                false => Ok(self.allowed.contains(&attributes)),
            };
            Box::pin(std::future::ready(result))
        }
    }

    /// The visibility of a caller with an account of the cluster.
    fn visibility(fake: &Arc<Fake>, runtime: &tokio::runtime::Runtime) -> CallerVisibility {
        CallerVisibility {
            scope: Arc::default(),
            account: Some(Arc::new(Arc::clone(fake))),
            runtime: runtime.handle().clone(),
            reviews: Mutex::default(),
        }
    }

    fn attributes(kind: &str, namespace: &str, name: &str) -> ResourceAttributes {
        ResourceAttributes {
            kind: Some(GroupKind::parse(kind)),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_widest_attributes_are_reviewed_first_and_each_once() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let fake = Arc::new(Fake {
            allowed: vec![attributes("A.x", "n", "")],
            ..Fake::default()
        });
        let visibility = visibility(&fake, &runtime);
        let key =
            |namespace: &str, name: &str| ObjectKey::new(GroupKind::parse("A.x"), namespace, name);
        for _ in 0..3 {
            assert!(visibility.includes_object(&key("n", "a")));
            assert!(visibility.includes_object(&key("n", "b")));
            assert!(!visibility.includes_object(&key("m", "a")) && !visibility.is_unrestricted());
        }
        let reviewed = fake.reviewed.lock().unwrap().clone();
        let expected = [
            ResourceAttributes::default(),
            attributes("A.x", "", ""),
            attributes("A.x", "n", ""),
            attributes("A.x", "m", ""),
            attributes("A.x", "m", "a"),
        ];
        assert_eq!(reviewed, expected);
        assert!(visibility.check().is_ok());
    }

    #[test]
    fn reviews_of_single_objects_are_bounded() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let fake = Arc::new(Fake::default());
        let visibility = visibility(&fake, &runtime);
        for at in 0..2 * MAX_OBJECT_REVIEWS {
            let key = ObjectKey::new(GroupKind::parse("A.x"), "n", &*format!("o{at}"));
            assert!(!visibility.includes_object(&key));
        }
        let reviewed = fake.reviewed.lock().unwrap().len();
        assert_eq!(reviewed, MAX_OBJECT_REVIEWS + 3);
        assert!(visibility.check().is_ok());
    }

    #[test]
    fn a_failed_review_makes_the_request_fail() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let fake = Arc::new(Fake {
            is_unavailable: true,
            ..Fake::default()
        });
        let visibility = visibility(&fake, &runtime);
        assert!(!visibility.includes_path("gateways/a/gw"));
        assert!(!visibility.includes_path("gateways/b/gw"));
        // There are no further reviews after a failure.
        assert_eq!(fake.reviewed.lock().unwrap().len(), 1);
        let why = visibility.check().unwrap_err();
        assert_eq!(why.code(), tonic::Code::Unavailable);
        assert!(why.message().contains("connection refused"), "{why}");
    }

    #[test]
    fn the_permission_for_a_path_is_that_of_its_last_object_that_is_not_a_backend() {
        for (path, object) in [
            ("gatewayclasses/c", "GatewayClass/c"),
            ("namespaces/n", "Namespace/n"),
            ("gateways/a/gw", "Gateway/a/gw"),
            ("gateways/a/gw/listeners/l", "Gateway/a/gw"),
            (
                "gateways/a/gw/listenersets/b/s/listeners/l",
                "ListenerSet/b/s",
            ),
            (
                "gateways/a/gw/listeners/l/routes/GRPCRoute/b/r/rules/#0/backends/Service/c/s/ports/80",
                "GRPCRoute/b/r",
            ),
            ("mesh/*/services/a/s", "Service/a/s"),
            ("mesh/b/services/a/s/routes/HTTPRoute/b/r", "HTTPRoute/b/r"),
        ] {
            let key = object_of(path).unwrap();
            assert_eq!(key.to_string(), object, "{path}");
        }
        assert!(object_of("gateways/a").is_none());
    }
}
