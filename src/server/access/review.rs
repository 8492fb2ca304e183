//! Callers who see what a cluster lets them get.

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

/// Rights to single objects that are asked for in one question; more are not looked for. A right to
/// a whole namespace costs one.
const MAX_OBJECT_REVIEWS: usize = 256;
/// How long rights may be asked for in one question. It holds up others meanwhile.
const MAX_REVIEW_TIME: Duration = Duration::from_secs(10);

/// What is waited for; why there is no answer, if so.
pub type ReviewFuture<'r, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'r>>;

/// Knows whose tokens are whose, as a cluster does.
pub trait TokenAuthenticator: Debug + Send + Sync {
    /// The account of a token; none if it is no good.
    fn account(&self, token: &str) -> ReviewFuture<'_, Option<Arc<dyn Authorizer>>>;
}

/// An account of a cluster.
pub trait Authorizer: Debug + Send + Sync {
    /// Whether it may `get` an object; all of a namespace without a name, those of all namespaces
    /// without either, and everything without a kind.
    fn may_get(&self, right: ResourceAttributes) -> ReviewFuture<'_, bool>;
}

/// What somebody may get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceAttributes {
    /// The kind; all if there is none.
    pub kind: Option<GroupKind>,
    /// The namespace; all if empty, which an object without a namespace has, too.
    pub namespace: String,
    /// The name; all if empty.
    pub name: String,
}

/// What a caller sees: what its row allows, and of that what its account may get.
#[derive(Debug)]
pub(in crate::server) struct CallerVisibility {
    scope: Arc<AccessScope>,
    /// None if nothing is asked of it.
    account: Option<Arc<dyn Authorizer>>,
    runtime: Handle,
    reviews: Mutex<ReviewCache>,
}

/// What was found out for one question.
#[derive(Debug, Default)]
struct ReviewCache {
    rights: HashMap<ResourceAttributes, bool>,
    single: usize,
    /// How long was waited for them.
    waited: Duration,
    /// Why something could not be found out.
    failed: Option<String>,
}

impl CallerVisibility {
    /// What a caller sees. Who comes by a Unix socket shows no token: the file's mode says who may.
    ///
    /// # Errors
    /// It has no token, or none that is good; or nobody can say.
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

    /// Whether all that had to be known was: an answer that lacks something for want of an answer of
    /// the cluster is none.
    pub fn check(&self) -> Result<(), Status> {
        match &self.reviews().failed {
            None => Ok(()),
            Some(why) => Err(unavailable(why)),
        }
    }

    fn reviews(&self) -> MutexGuard<'_, ReviewCache> {
        self.reviews.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the account may get something. Waits for the cluster, so only on a thread that may.
    fn has(&self, account: &Arc<dyn Authorizer>, right: ResourceAttributes) -> bool {
        let mut reviews = self.reviews();
        if let Some(known) = reviews.rights.get(&right) {
            return *known;
        }
        if reviews.failed.is_some() {
            return false;
        }
        if !right.name.is_empty() {
            if reviews.single >= MAX_OBJECT_REVIEWS {
                return false;
            }
            reviews.single += 1;
        }
        if reviews.waited > MAX_REVIEW_TIME {
            let why = "there is too much to ask: name an object, or a path";
            reviews.failed = Some(why.to_owned());
            return false;
        }
        let began = Instant::now();
        let may = self.runtime.block_on(account.may_get(right.clone()));
        reviews.waited += began.elapsed();
        let may = may.unwrap_or_else(|why| {
            reviews.failed = Some(why);
            false
        });
        reviews.rights.insert(right, may);
        may
    }

    /// Whether the account may get an object, by whatever right: from the widest, of which there are
    /// few.
    fn may_get(&self, key: &ObjectKey) -> bool {
        let Some(account) = &self.account else {
            return true;
        };
        let right = |namespace: &str, name: &str| ResourceAttributes {
            kind: Some(key.kind.clone()),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        self.has(account, ResourceAttributes::default())
            || self.has(account, right("", ""))
            || (!key.namespace.is_empty() && self.has(account, right(&key.namespace, "")))
            || self.has(account, right(&key.namespace, &key.name))
    }
}

impl Visibility for CallerVisibility {
    fn is_unrestricted(&self) -> bool {
        let has_all = |account| self.has(account, ResourceAttributes::default());
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

/// The object that a path is about: who may get a route may see what holds on it, down to its
/// backends.
fn object_of(path: &str) -> Option<ObjectKey> {
    let gateway = |kind| GroupKind::new(groups::GATEWAY, kind);
    let core = |kind| GroupKind::new(groups::CORE, kind);
    let walk = match PathName::parse(path).ok()? {
        PathName::GatewayClass(name) => {
            return Some(ObjectKey::new(gateway("GatewayClass"), "", name));
        }
        PathName::Namespace(name) => return Some(ObjectKey::new(core("Namespace"), "", name)),
        PathName::Traffic(walk) => walk,
    };
    if let Some(route) = walk.route {
        let kind = GroupKind::parse_short(route.kind);
        return Some(ObjectKey::new(kind, route.namespace, route.name));
    }
    if let Some(set) = walk.listener_set {
        return Some(ObjectKey::new(
            gateway("ListenerSet"),
            set.namespace,
            set.name,
        ));
    }
    Some(match walk.root {
        Root::Gateway { namespace, name } => ObjectKey::new(gateway("Gateway"), namespace, name),
        Root::Mesh {
            namespace, name, ..
        } => ObjectKey::new(core("Service"), namespace, name),
    })
}

/// The account of a request's token.
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
            "this server tells callers what they may get in the cluster: send a token of the cluster as \
             `authorization: Bearer TOKEN` (`--token-file` of the commands)",
        )
    })?;
    let account = reviews.account(token).await;
    let account = account.map_err(|why| unavailable(&why))?;
    account.ok_or_else(|| Status::unauthenticated("the cluster does not know the token"))
}

fn unavailable(why: &str) -> Status {
    Status::unavailable(format!(
        "the cluster cannot say what the caller may get: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cluster that allows some rights and counts what it is asked.
    #[derive(Debug, Default)]
    struct Fake {
        allowed: Vec<ResourceAttributes>,
        asked: Mutex<Vec<ResourceAttributes>>,
        is_gone: bool,
    }

    impl Authorizer for Arc<Fake> {
        fn may_get(&self, right: ResourceAttributes) -> ReviewFuture<'_, bool> {
            self.asked.lock().unwrap().push(right.clone());
            let told = match self.is_gone {
                true => Err("gone".to_owned()),
                false => Ok(self.allowed.contains(&right)),
            };
            Box::pin(std::future::ready(told))
        }
    }

    /// What one sees whose account is of a cluster.
    fn seen(fake: &Arc<Fake>, runtime: &tokio::runtime::Runtime) -> CallerVisibility {
        CallerVisibility {
            scope: Arc::default(),
            account: Some(Arc::new(Arc::clone(fake))),
            runtime: runtime.handle().clone(),
            reviews: Mutex::default(),
        }
    }

    fn right(kind: &str, namespace: &str, name: &str) -> ResourceAttributes {
        ResourceAttributes {
            kind: Some(GroupKind::parse(kind)),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_widest_right_is_asked_for_first_and_each_once() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let fake = Arc::new(Fake {
            allowed: vec![right("A.x", "n", "")],
            ..Fake::default()
        });
        let seen = seen(&fake, &runtime);
        let key =
            |namespace: &str, name: &str| ObjectKey::new(GroupKind::parse("A.x"), namespace, name);
        for _ in 0..3 {
            assert!(seen.includes_object(&key("n", "a")) && seen.includes_object(&key("n", "b")));
            assert!(!seen.includes_object(&key("m", "a")) && !seen.is_unrestricted());
        }
        let asked = fake.asked.lock().unwrap().clone();
        let expected = [
            ResourceAttributes::default(),
            right("A.x", "", ""),
            right("A.x", "n", ""),
            right("A.x", "m", ""),
            right("A.x", "m", "a"),
        ];
        assert_eq!(asked, expected);
        assert!(seen.check().is_ok());
    }

    #[test]
    fn single_rights_are_asked_for_up_to_a_number() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let fake = Arc::new(Fake::default());
        let seen = seen(&fake, &runtime);
        for at in 0..2 * MAX_OBJECT_REVIEWS {
            let key = ObjectKey::new(GroupKind::parse("A.x"), "n", &*format!("o{at}"));
            assert!(!seen.includes_object(&key));
        }
        assert_eq!(fake.asked.lock().unwrap().len(), MAX_OBJECT_REVIEWS + 3);
        assert!(seen.check().is_ok());
    }

    #[test]
    fn what_nobody_says_is_no_answer() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let fake = Arc::new(Fake {
            is_gone: true,
            ..Fake::default()
        });
        let seen = seen(&fake, &runtime);
        assert!(!seen.includes_path("gateways/a/gw") && !seen.includes_path("gateways/b/gw"));
        // A cluster that is gone is asked once.
        assert_eq!(fake.asked.lock().unwrap().len(), 1);
        let why = seen.check().unwrap_err();
        assert_eq!(why.code(), tonic::Code::Unavailable);
        assert!(why.message().contains("gone"), "{why}");
    }

    #[test]
    fn a_path_is_about_its_last_object_that_is_no_backend() {
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
