//! What the API server says of others: whose a token is, and what that account may get. Answers are
//! remembered for a while, so that a question of many parts is not many questions.

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
use super::kind_watch::error_chain;
use entail_core::model::{GroupKind, groups};

/// How long the server may take for one answer.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer counts: a right that is taken away is gone that much later.
const CACHE_TTL: Duration = Duration::from_secs(30);
/// Answers that are remembered.
const MAX_CACHED_TOKENS: usize = 1_024;
const MAX_CACHED_ACCESS: usize = 65_536;
/// Tokens that are asked about at once.
const MAX_CONCURRENT_TOKEN_REVIEWS: usize = 8;

/// The names under which kinds are served.
#[derive(Clone, Debug, Default)]
pub(super) struct ResourceNames(Arc<RwLock<BTreeMap<GroupKind, String>>>);

/// Reviews of tokens and of rights.
#[derive(Clone)]
pub struct ReviewClient {
    client: Client,
    resources: ResourceNames,
    /// By the digest of a token: whose it is. Those that are no good are apart: as many as there
    /// are, they push out none that is.
    tokens: Arc<TtlCache<TokenDigest, Arc<AuthenticatedUser>>>,
    rejected_tokens: Arc<TtlCache<TokenDigest, ()>>,
    /// One permit a token that is asked about.
    token_review_permits: Arc<Semaphore>,
    rights: Arc<TtlCache<AccessKey, bool>>,
}

/// An account of the cluster.
#[derive(Debug)]
pub struct AuthenticatedUser {
    info: UserInfo,
    /// Of the token that it showed: what it was found to be allowed is remembered by that.
    digest: TokenDigest,
}

/// Tokens themselves are not kept.
type TokenDigest = [u8; 32];

/// Whose right, to what: kind, namespace and name.
type AccessKey = (TokenDigest, Option<GroupKind>, String, String);

/// Answers with the time until which they count.
#[derive(Debug)]
struct TtlCache<K, V> {
    most: usize,
    known: Mutex<BTreeMap<K, (Instant, V)>>,
}

impl ResourceNames {
    /// Takes note of what is served.
    pub fn update(&self, served: &BTreeMap<GroupKind, ApiResource>) {
        let names = served.iter();
        let names = names.map(|(kind, resource)| (kind.clone(), resource.plural.clone()));
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.extend(names);
    }

    /// The group and the name under which a kind is served, if it is.
    ///
    /// # Errors
    /// Nothing is known yet.
    fn of(&self, kind: &GroupKind) -> Result<Option<(String, String)>, String> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if known.is_empty() {
            return Err("it is not known yet what the server serves".to_owned());
        }
        let standard = |name: &str| GroupKind::new(groups::GATEWAY, name);
        // XListenerSet counts as ListenerSet, which has another name where it is the only one.
        let other = (*kind == standard("ListenerSet"))
            .then(|| GroupKind::new(groups::GATEWAY_X, "XListenerSet"));
        let served = known.get_key_value(kind);
        let served = served.or_else(|| known.get_key_value(other.as_ref()?));
        Ok(served.map(|(kind, name)| (kind.group.to_string(), name.clone())))
    }
}

impl ReviewClient {
    /// Asks the server of a cluster.
    pub fn of(cluster: &Cluster) -> Self {
        Self {
            client: cluster.client.clone(),
            resources: cluster.resources.clone(),
            tokens: Arc::new(TtlCache::new(MAX_CACHED_TOKENS)),
            rejected_tokens: Arc::new(TtlCache::new(MAX_CACHED_TOKENS)),
            token_review_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_TOKEN_REVIEWS)),
            rights: Arc::new(TtlCache::new(MAX_CACHED_ACCESS)),
        }
    }

    /// The account of a token; none if it is no good.
    ///
    /// # Errors
    /// The server does not say.
    pub async fn user(&self, token: &str) -> Result<Option<Arc<AuthenticatedUser>>, String> {
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.tokens.get(&digest) {
            return Ok(Some(known));
        }
        if self.rejected_tokens.get(&digest).is_some() {
            return Ok(None);
        }
        let _turn = self
            .token_review_permits
            .try_acquire()
            .map_err(|_| "too many tokens are asked about at once: try again".to_owned())?;
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let told = self.ask(review).await?.status.unwrap_or_default();
        let info = told.user.filter(|_| told.authenticated == Some(true));
        // A server that cannot say whose a token is answers as it does to one that is no good.
        let Some(info) = info else {
            self.rejected_tokens.keep(digest, ());
            return Ok(None);
        };
        let user = Arc::new(AuthenticatedUser { info, digest });
        self.tokens.keep(digest, Arc::clone(&user));
        Ok(Some(user))
    }

    /// Whether an account may `get` something: all of a kind in a namespace without a name, in all
    /// namespaces without either, and everything without a kind.
    ///
    /// # Errors
    /// The server does not say.
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
        if let Some(known) = self.rights.get(&key) {
            return Ok(known);
        }
        let (group, resource) = match kind {
            None => ("*".to_owned(), "*".to_owned()),
            Some(kind) => match self.resources.of(kind)? {
                Some(named) => named,
                // What is not served cannot be got.
                None => return Ok(false),
            },
        };
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let attributes = ResourceAttributes {
            verb: Some("get".to_owned()),
            group: Some(group),
            resource: Some(resource),
            namespace: some(namespace),
            name: some(name),
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
        let told = self.ask(review).await?.status.unwrap_or_default();
        let may = told.allowed && told.denied != Some(true);
        // Some roles cannot be looked at: it is no for now, and asked again.
        let is_sure = told.evaluation_error.is_none_or(|error| error.is_empty());
        if may || is_sure {
            self.rights.keep(key, may);
        }
        Ok(may)
    }

    async fn ask<R>(&self, review: R) -> Result<R, String>
    where
        R: kube::Resource<DynamicType = ()>,
        R: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        let api: Api<R> = Api::all(self.client.clone());
        match timeout(REVIEW_TIMEOUT, api.create(&PostParams::default(), &review)).await {
            Ok(told) => told.map_err(|error| error_chain(&error)),
            Err(_) => Err("it does not answer in time".to_owned()),
        }
    }
}

impl std::fmt::Debug for ReviewClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReviewClient").finish_non_exhaustive()
    }
}

impl<K: Ord, V: Clone> TtlCache<K, V> {
    fn new(most: usize) -> Self {
        Self {
            most,
            known: Mutex::default(),
        }
    }

    fn get(&self, key: &K) -> Option<V> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, value) = known.get(key)?;
        (*until > Instant::now()).then(|| value.clone())
    }

    fn keep(&self, key: K, value: V) {
        let now = Instant::now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.most {
            known.retain(|_, (until, _)| *until > now);
        }
        // Full of answers that count: there is more asked than is remembered.
        if known.len() >= self.most {
            known.clear();
        }
        known.insert(key, (now + CACHE_TTL, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_remembered_up_to_a_number() {
        let remembered = TtlCache::new(2);
        for key in 0..2 {
            remembered.keep(key, key + 10);
        }
        assert_eq!(remembered.get(&1), Some(11));
        remembered.keep(2, 12);
        assert_eq!((remembered.get(&1), remembered.get(&2)), (None, Some(12)));
    }

    #[test]
    fn what_is_not_served_is_told_from_what_is_not_known() {
        let resources = ResourceNames::default();
        let kind = GroupKind::parse("HTTPRoute.gateway.networking.k8s.io");
        assert!(resources.of(&kind).is_err());
        let gvk = kube::core::GroupVersionKind::gvk(&kind.group, "v1", &kind.kind);
        let served = ApiResource::from_gvk_with_plural(&gvk, "httproutes");
        resources.update(&BTreeMap::from([(kind.clone(), served)]));
        let named = (kind.group.to_string(), "httproutes".to_owned());
        assert_eq!(resources.of(&kind), Ok(Some(named)));
        assert_eq!(resources.of(&GroupKind::parse("A.x")), Ok(None));
    }
}
