//! Access reviews of the API server: TokenReview to authenticate clients, SubjectAccessReview to
//! authorize them. Results are cached, because one gRPC request can need many reviews.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::core::ApiResource;
use kube::{Api, Client};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Cluster;
use super::errors::error_chain;
use entail_core::model::GroupKind;

/// Timeout of one review.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a result is cached: revoked access takes effect after at most this time.
const CACHE_TTL: Duration = Duration::from_secs(30);
/// Maximum number of cached TokenReviews, for valid and for invalid tokens each.
const MAX_CACHED_TOKENS: usize = 1_024;
/// Maximum number of cached SubjectAccessReviews.
const MAX_CACHED_ACCESS: usize = 65_536;
/// For how long a token that was valid once has permits of its own.
const KNOWN_TTL: Duration = Duration::from_secs(3_600);
/// Maximum number of concurrent TokenReviews, of tokens that were valid and of others each.
const MAX_CONCURRENT_TOKEN_REVIEWS: usize = 8;
/// How long a TokenReview waits for others.
const MAX_REVIEW_WAIT: Duration = Duration::from_secs(2);

/// The resource names of the served kinds, as discovery found them.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceNames(Arc<RwLock<BTreeMap<GroupKind, String>>>);

/// Sends access reviews and caches their results. Clones share the caches.
#[derive(Clone)]
pub struct ReviewClient {
    client: Client,
    resources: ResourceNames,
    /// Users by the digest of their token.
    tokens: Arc<TtlCache<TokenDigest, Arc<AuthenticatedUser>>>,
    /// Invalid tokens. They have their own cache, so that they cannot evict valid ones.
    rejected_tokens: Arc<TtlCache<TokenDigest, ()>>,
    /// Tokens that were valid once. A flood of others does not keep them from being reviewed again.
    known_tokens: Arc<TtlCache<TokenDigest, ()>>,
    /// One permit per TokenReview in flight, of a token that was valid once.
    known_permits: Arc<Semaphore>,
    /// Those of all other tokens.
    other_permits: Arc<Semaphore>,
    access: Arc<TtlCache<AccessKey, bool>>,
}

/// A user that the cluster authenticated by a token.
#[derive(Debug)]
pub struct AuthenticatedUser {
    info: UserInfo,
    /// Digest of the token; part of the cache key of access reviews.
    digest: TokenDigest,
}

/// API group and name of a resource.
type ResourceName = (String, String);

/// SHA-256 of a token; the tokens themselves are not stored.
type TokenDigest = [u8; 32];

/// Token, kind, namespace and name of an access review.
type AccessKey = (TokenDigest, Option<GroupKind>, String, String);

/// What the API server says about access.
struct AccessDecision {
    is_allowed: bool,
    /// Whether a denial may be cached: one with an evaluation error, such as a missing role, may be temporary.
    is_final: bool,
}

/// A bounded cache whose entries expire.
#[derive(Debug)]
struct TtlCache<K, V> {
    capacity: usize,
    time_to_live: Duration,
    entries: Mutex<BTreeMap<K, (Instant, V)>>,
}

impl ResourceNames {
    /// Adds the served resources.
    pub fn update(&self, served: &BTreeMap<GroupKind, ApiResource>) {
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // After a migration, the right to ListenerSets alone is enough.
        names.retain(|kind, _| {
            served.contains_key(kind) || !served.contains_key(&kind.clone().canonical())
        });
        let served = served.iter();
        names.extend(served.map(|(kind, resource)| (kind.clone(), resource.plural.clone())));
    }

    /// Returns the API groups and resource names of a kind. Objects of kind XListenerSet are stored as ListenerSets:
    /// while both are served, it is not known which one an object is, and both are named. Empty if none is served.
    ///
    /// # Errors
    /// Returns an error if discovery has not finished.
    fn of(&self, kind: &GroupKind) -> Result<Vec<ResourceName>, String> {
        let names = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if names.is_empty() {
            return Err("API discovery has not finished".to_owned());
        }
        let served = names
            .iter()
            .filter(|(own, _)| (*own).clone().canonical() == *kind);
        Ok(served
            .map(|(kind, name)| (kind.group.to_string(), name.clone()))
            .collect())
    }
}

impl ReviewClient {
    /// Creates a client that sends reviews to the API server of `cluster`.
    pub fn of(cluster: &Cluster) -> Self {
        Self {
            client: cluster.client.clone(),
            resources: cluster.resources.clone(),
            tokens: Arc::new(TtlCache::new(MAX_CACHED_TOKENS, CACHE_TTL)),
            rejected_tokens: Arc::new(TtlCache::new(MAX_CACHED_TOKENS, CACHE_TTL)),
            known_tokens: Arc::new(TtlCache::new(MAX_CACHED_TOKENS, KNOWN_TTL)),
            known_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_TOKEN_REVIEWS)),
            other_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_TOKEN_REVIEWS)),
            access: Arc::new(TtlCache::new(MAX_CACHED_ACCESS, CACHE_TTL)),
        }
    }

    /// Authenticates a token; returns `None` if it is invalid.
    ///
    /// # Errors
    /// Returns an error if the review fails, or if too many reviews are in flight for long.
    pub async fn user(&self, token: &str) -> Result<Option<Arc<AuthenticatedUser>>, String> {
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        if let Some(user) = self.tokens.get(&digest) {
            return Ok(Some(user));
        }
        if self.rejected_tokens.get(&digest).is_some() {
            return Ok(None);
        }
        let permits = match self.known_tokens.get(&digest) {
            Some(()) => &self.known_permits,
            None => &self.other_permits,
        };
        let _permit = timeout(MAX_REVIEW_WAIT, permits.acquire())
            .await
            .map_err(|_| "too many concurrent token reviews: retry".to_owned())?;
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let status = self.post(review).await?.status.unwrap_or_default();
        let info = status.user.filter(|_| status.authenticated == Some(true));
        // An API server that cannot authenticate a token answers as for an invalid token.
        let Some(info) = info else {
            self.rejected_tokens.insert(digest, ());
            return Ok(None);
        };
        let user = Arc::new(AuthenticatedUser { info, digest });
        self.tokens.insert(digest, Arc::clone(&user));
        self.known_tokens.insert(digest, ());
        Ok(Some(user))
    }

    /// Reports whether a user may `get` an object. Without a name: all objects of the kind in the
    /// namespace; without a namespace as well: in all namespaces; without a kind: all objects. While ListenerSets and
    /// XListenerSets are served, both rights are needed for either.
    ///
    /// # Errors
    /// Returns an error if the review fails, or if discovery has not finished.
    pub async fn may_get(
        &self,
        user: &AuthenticatedUser,
        kind: Option<&GroupKind>,
        (namespace, name): (&str, &str),
    ) -> Result<bool, String> {
        let key = (
            user.digest,
            kind.cloned(),
            namespace.to_owned(),
            name.to_owned(),
        );
        if let Some(is_allowed) = self.access.get(&key) {
            return Ok(is_allowed);
        }
        let resources = match kind {
            None => vec![("*".to_owned(), "*".to_owned())],
            Some(kind) => self.resources.of(kind)?,
        };
        // A kind that is not served has no objects to get.
        let (mut is_allowed, mut is_final) = (!resources.is_empty(), !resources.is_empty());
        for resource in resources {
            let review = self.review(user, resource, (namespace, name)).await?;
            is_allowed &= review.is_allowed;
            is_final &= review.is_final;
        }
        if is_allowed || is_final {
            self.access.insert(key, is_allowed);
        }
        Ok(is_allowed)
    }

    /// Asks whether a user may `get` objects of a resource.
    async fn review(
        &self,
        user: &AuthenticatedUser,
        (group, resource): ResourceName,
        (namespace, name): (&str, &str),
    ) -> Result<AccessDecision, String> {
        let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attributes = ResourceAttributes {
            verb: Some("get".to_owned()),
            group: Some(group),
            resource: Some(resource),
            namespace: non_empty(namespace),
            name: non_empty(name),
            ..ResourceAttributes::default()
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                resource_attributes: Some(attributes),
                user: user.info.username.clone(),
                uid: user.info.uid.clone(),
                groups: user.info.groups.clone(),
                extra: user.info.extra.clone(),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let status = self.post(review).await?.status.unwrap_or_default();
        Ok(AccessDecision {
            is_allowed: status.allowed && status.denied != Some(true),
            is_final: status.evaluation_error.is_none_or(|error| error.is_empty()),
        })
    }

    async fn post<R>(&self, review: R) -> Result<R, String>
    where
        R: kube::Resource<DynamicType = ()>,
        R: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let api: Api<R> = Api::all(self.client.clone());
        match timeout(REVIEW_TIMEOUT, api.create(&PostParams::default(), &review)).await {
            Ok(result) => result.map_err(|error| error_chain(&error)),
            Err(_) => Err("the API server did not respond in time".to_owned()),
        }
    }
}

impl std::fmt::Debug for ReviewClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReviewClient").finish_non_exhaustive()
    }
}

impl<K: Ord, V: Clone> TtlCache<K, V> {
    fn new(capacity: usize, time_to_live: Duration) -> Self {
        Self {
            capacity,
            time_to_live,
            entries: Mutex::default(),
        }
    }

    /// Returns the value of a key if it has not expired.
    fn get(&self, key: &K) -> Option<V> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let (expires_at, value) = entries.get(key)?;
        (*expires_at > Instant::now()).then(|| value.clone())
    }

    /// Inserts a value. A full cache drops its expired entries, or all entries if none has expired.
    fn insert(&self, key: K, value: V) {
        let now = Instant::now();
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity {
            entries.retain(|_, (expires_at, _)| *expires_at > now);
        }
        if entries.len() >= self.capacity {
            entries.clear();
        }
        entries.insert(key, (now + self.time_to_live, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded() {
        let cache = TtlCache::new(2, CACHE_TTL);
        for key in 0..2 {
            cache.insert(key, key + 10);
        }
        assert_eq!(cache.get(&1), Some(11));
        cache.insert(2, 12);
        assert_eq!((cache.get(&1), cache.get(&2)), (None, Some(12)));
    }

    #[test]
    fn an_unserved_kind_differs_from_missing_discovery() {
        let resources = ResourceNames::default();
        let kind = GroupKind::parse("HTTPRoute.gateway.networking.k8s.io");
        assert!(resources.of(&kind).is_err());
        resources.update(&served(&kind, "httproutes"));
        let resource = (kind.group.to_string(), "httproutes".to_owned());
        assert_eq!(resources.of(&kind), Ok(vec![resource]));
        assert_eq!(resources.of(&GroupKind::parse("A.x")), Ok(vec![]));
    }

    fn served(kind: &GroupKind, plural: &str) -> BTreeMap<GroupKind, ApiResource> {
        let gvk = kube::core::GroupVersionKind::gvk(&kind.group, "v1", &kind.kind);
        BTreeMap::from([(
            kind.clone(),
            ApiResource::from_gvk_with_plural(&gvk, plural),
        )])
    }

    #[test]
    fn a_listener_set_may_be_of_either_kind_while_both_are_served() {
        let resources = ResourceNames::default();
        let kind = GroupKind::parse("ListenerSet.gateway.networking.k8s.io");
        let experimental = GroupKind::parse("XListenerSet.gateway.networking.x-k8s.io");
        let name = |kind: &GroupKind, plural: &str| (kind.group.to_string(), plural.to_owned());
        resources.update(&served(&experimental, "xlistenersets"));
        let old = name(&experimental, "xlistenersets");
        assert_eq!(resources.of(&kind), Ok(vec![old.clone()]));
        let mut both = served(&kind, "listenersets");
        both.extend(served(&experimental, "xlistenersets"));
        resources.update(&both);
        let new = name(&kind, "listenersets");
        assert_eq!(resources.of(&kind), Ok(vec![new.clone(), old]));
        resources.update(&served(&kind, "listenersets"));
        assert_eq!(resources.of(&kind), Ok(vec![new]));
    }
}
