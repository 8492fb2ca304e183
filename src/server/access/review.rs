//! Access reviews: restricts replies to the objects that the caller may `get` in the cluster.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hashbrown::HashMap;
use tokio::runtime::Handle;
use tonic::Status;
use tonic::metadata::MetadataMap;

use crate::insight::{AccessScope, Budget, Coverage, ObjectVisibility, Visibility};
use crate::server::access::peer::Peer;
use entail_core::model::{GroupKind, ObjectKey};

/// Maximum number of access reviews for single objects per request; further objects are treated as
/// not permitted. Reviews for whole namespaces and kinds do not count.
const MAX_OBJECT_REVIEWS: usize = 256;
/// Maximum time that one request waits for access reviews, because it occupies a thread meanwhile.
const MAX_REVIEW_TIME: Duration = Duration::from_secs(10);
/// Number of reviews of one request that the cluster is asked at the same time.
const REVIEWS_AT_ONCE: usize = 16;

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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
    /// Ends when the caller is gone.
    budget: Arc<Budget>,
}

/// The reviews of one request.
#[derive(Debug, Default)]
struct ReviewCache {
    results: HashMap<ResourceAttributes, bool>,
    /// Number of reviews for single objects.
    object_reviews: usize,
    /// Whether single objects were left unchecked.
    is_truncated: bool,
    /// Total time spent waiting.
    waited: Duration,
    /// Why a review failed, if one did.
    failure: Option<String>,
}

impl ReviewCache {
    /// Reports whether no more is asked, because a review failed or all of them took too long.
    fn has_failed(&mut self) -> bool {
        if self.failure.is_none() && self.waited > MAX_REVIEW_TIME {
            let why = "the request needs too many access reviews: name an object or a path";
            self.failure = Some(why.to_owned());
        }
        self.failure.is_some()
    }
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
            budget: Arc::default(),
        })
    }

    /// Returns the budget of the request, to end it when the caller is gone.
    pub fn shared_budget(&self) -> Arc<Budget> {
        Arc::clone(&self.budget)
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
        if let Some(is_allowed) = self.reviews().results.get(&attributes) {
            return *is_allowed;
        }
        if !attributes.name.is_empty() {
            let mut reviews = self.reviews();
            if reviews.object_reviews >= MAX_OBJECT_REVIEWS {
                reviews.is_truncated = true;
                return false;
            }
            reviews.object_reviews += 1;
        }
        self.review_all(account, vec![attributes.clone()]);
        let result = self.reviews().results.get(&attributes).copied();
        result.unwrap_or(false)
    }

    /// Reviews attributes that have no result yet, several at once, and without a lock while the cluster answers.
    fn review_all(&self, account: &Arc<dyn Authorizer>, mut attributes: Vec<ResourceAttributes>) {
        {
            let mut reviews = self.reviews();
            if reviews.has_failed() {
                return;
            }
            attributes.retain(|one| !reviews.results.contains_key(one));
        }
        for some in attributes.chunks(REVIEWS_AT_ONCE) {
            if !self.budget.step() {
                return;
            }
            let started = Instant::now();
            let asked = some.iter().map(|one| account.may_get(one.clone()));
            let results = self.runtime.block_on(join_all(asked));
            let mut reviews = self.reviews();
            reviews.waited += started.elapsed();
            for (one, result) in some.iter().zip(results) {
                match result {
                    Ok(is_allowed) => {
                        reviews.results.insert(one.clone(), is_allowed);
                    }
                    Err(why) => reviews.failure = Some(why),
                }
            }
            if reviews.has_failed() {
                return;
            }
        }
    }

    /// Whether the account may get all objects with some attributes; false before they are reviewed.
    fn is_allowed(&self, attributes: &ResourceAttributes) -> bool {
        self.reviews().results.get(attributes) == Some(&true)
    }

    /// Reports whether the account may get an object. Reviews the widest attributes first: there
    /// are few of them, and a positive result covers many objects.
    fn may_get(&self, key: &ObjectKey) -> bool {
        let Some(account) = &self.account else {
            return true;
        };
        let [all, kind, namespace, object] = attributes_of(key);
        self.review(account, all)
            || self.review(account, kind)
            || (!key.namespace.is_empty() && self.review(account, namespace))
            || self.review(account, object)
    }

    /// The paths of objects that the account may get.
    fn of_objects(&self) -> ObjectVisibility<impl Fn(&ObjectKey) -> bool + '_> {
        ObjectVisibility(|key: &ObjectKey| self.may_get(key))
    }
}

impl Visibility for CallerVisibility {
    fn is_unrestricted(&self) -> bool {
        let has_all = |account| self.review(account, ResourceAttributes::default());
        self.scope.is_unrestricted() && self.account.as_ref().is_none_or(has_all)
    }

    fn includes_path(&self, name: &str) -> bool {
        self.scope.has_path(name)
            && (self.account.is_none() || self.of_objects().includes_path(name))
    }

    fn coverage(&self, name: &str, delegates: bool) -> Coverage {
        match self.scope.coverage(name, delegates) {
            Coverage::All if self.account.is_none() => Coverage::All,
            Coverage::All => self.of_objects().coverage(name, delegates),
            other => other,
        }
    }

    fn includes_kind(&self, kind: &GroupKind) -> bool {
        self.scope.has_kind(kind)
    }

    fn includes_object(&self, key: &ObjectKey) -> bool {
        self.scope.includes_object(key) && self.may_get(key)
    }

    fn prepare(&self, objects: &[ObjectKey]) {
        let Some(account) = &self.account else {
            return;
        };
        let mut left: Vec<[ResourceAttributes; 4]> = objects
            .iter()
            .filter(|key| self.scope.includes_object(key))
            .map(attributes_of)
            .collect();
        for width in 0..3 {
            let asked: BTreeSet<&ResourceAttributes> =
                left.iter().filter_map(|of| of.get(width)).collect();
            let asked = asked.into_iter().cloned().collect();
            self.review_all(account, asked);
            left.retain(|of| of.get(width).is_some_and(|one| !self.is_allowed(one)));
        }
        let mut asked = Vec::new();
        {
            let mut reviews = self.reviews();
            for [.., object] in left {
                if reviews.results.contains_key(&object) {
                    continue;
                }
                if reviews.object_reviews >= MAX_OBJECT_REVIEWS {
                    reviews.is_truncated = true;
                    break;
                }
                reviews.object_reviews += 1;
                asked.push(object);
            }
        }
        self.review_all(account, asked);
    }

    fn is_truncated(&self) -> bool {
        self.reviews().is_truncated
    }

    fn budget(&self) -> &Budget {
        &self.budget
    }
}

/// The attributes of the reviews that can permit an object, the widest first: everything, its kind, its kind in its
/// namespace, and the object itself.
fn attributes_of(key: &ObjectKey) -> [ResourceAttributes; 4] {
    let attributes = |namespace: &str, name: &str| ResourceAttributes {
        kind: Some(key.kind.clone()),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    [
        ResourceAttributes::default(),
        attributes("", ""),
        attributes(&key.namespace, ""),
        attributes(&key.namespace, &key.name),
    ]
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
            budget: Arc::default(),
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
        assert!(
            visibility.is_truncated(),
            "the reply says that it is not all"
        );
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
}
