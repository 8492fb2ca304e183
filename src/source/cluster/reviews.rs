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
use super::kind::chain;
use entail_core::model::{GroupKind, groups};

/// How long the server may take for one answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an answer counts: a right that is taken away is gone that much later.
const REMEMBERED: Duration = Duration::from_secs(30);
/// Answers that are remembered.
const TOKENS: usize = 1_024;
const RIGHTS: usize = 65_536;
/// Tokens that are asked about at once.
const ASKED: usize = 8;

/// The names under which kinds are served.
#[derive(Clone, Debug, Default)]
pub(super) struct Resources(Arc<RwLock<BTreeMap<GroupKind, String>>>);

/// Reviews of tokens and of rights.
#[derive(Clone)]
pub struct Reviewer {
    client: Client,
    resources: Resources,
    /// By the digest of a token: whose it is. Those that are no good are apart: as many as there
    /// are, they push out none that is.
    tokens: Arc<Remembered<TokenDigest, Arc<User>>>,
    strange: Arc<Remembered<TokenDigest, ()>>,
    /// One permit a token that is asked about.
    asking: Arc<Semaphore>,
    rights: Arc<Remembered<RightKey, bool>>,
}

/// An account of the cluster.
#[derive(Debug)]
pub struct User {
    info: UserInfo,
    /// Of the token that it showed: what it was found to be allowed is remembered by that.
    digest: TokenDigest,
}

/// Tokens themselves are not kept.
type TokenDigest = [u8; 32];

/// Whose right, to what: kind, namespace and name.
type RightKey = (TokenDigest, Option<GroupKind>, String, String);

/// Answers with the time until which they count.
#[derive(Debug)]
struct Remembered<K, V> {
    most: usize,
    known: Mutex<BTreeMap<K, (Instant, V)>>,
}

impl Resources {
    /// Takes note of what is served.
    pub fn tell(&self, served: &BTreeMap<GroupKind, ApiResource>) {
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

impl Reviewer {
    /// Asks the server of a cluster.
    pub fn of(cluster: &Cluster) -> Self {
        Self {
            client: cluster.client.clone(),
            resources: cluster.resources.clone(),
            tokens: Arc::new(Remembered::new(TOKENS)),
            strange: Arc::new(Remembered::new(TOKENS)),
            asking: Arc::new(Semaphore::new(ASKED)),
            rights: Arc::new(Remembered::new(RIGHTS)),
        }
    }

    /// The account of a token; none if it is no good.
    ///
    /// # Errors
    /// The server does not say.
    pub async fn user(&self, token: &str) -> Result<Option<Arc<User>>, String> {
        let digest: TokenDigest = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.tokens.get(&digest) {
            return Ok(Some(known));
        }
        if self.strange.get(&digest).is_some() {
            return Ok(None);
        }
        let _turn = self
            .asking
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
            self.strange.keep(digest, ());
            return Ok(None);
        };
        let user = Arc::new(User { info, digest });
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
        user: &User,
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
        match timeout(PATIENCE, api.create(&PostParams::default(), &review)).await {
            Ok(told) => told.map_err(|error| chain(&error)),
            Err(_) => Err("it does not answer in time".to_owned()),
        }
    }
}

impl std::fmt::Debug for Reviewer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reviewer").finish_non_exhaustive()
    }
}

impl<K: Ord, V: Clone> Remembered<K, V> {
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
        known.insert(key, (now + REMEMBERED, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_remembered_up_to_a_number() {
        let remembered = Remembered::new(2);
        for key in 0..2 {
            remembered.keep(key, key + 10);
        }
        assert_eq!(remembered.get(&1), Some(11));
        remembered.keep(2, 12);
        assert_eq!((remembered.get(&1), remembered.get(&2)), (None, Some(12)));
    }

    #[test]
    fn what_is_not_served_is_told_from_what_is_not_known() {
        let resources = Resources::default();
        let kind = GroupKind::parse("HTTPRoute.gateway.networking.k8s.io");
        assert!(resources.of(&kind).is_err());
        let gvk = kube::core::GroupVersionKind::gvk(&kind.group, "v1", &kind.kind);
        let served = ApiResource::from_gvk_with_plural(&gvk, "httproutes");
        resources.tell(&BTreeMap::from([(kind.clone(), served)]));
        let named = (kind.group.to_string(), "httproutes".to_owned());
        assert_eq!(resources.of(&kind), Ok(Some(named)));
        assert_eq!(resources.of(&GroupKind::parse("A.x")), Ok(None));
    }
}
