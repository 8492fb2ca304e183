//! Holds callers to what a cluster lets them get.

use std::sync::Arc;

use crate::serve::{Account, Reviewing, Reviews, Right};
use crate::source::cluster::{Cluster, Reviewer, User};

/// Asks a cluster.
#[derive(Debug)]
struct OfCluster(Reviewer);

/// An account, and whom to ask of it.
#[derive(Debug)]
struct OfUser {
    reviewer: Reviewer,
    user: Arc<User>,
}

/// Reviews by a cluster.
pub(super) fn of(cluster: &Cluster) -> Arc<dyn Reviews> {
    Arc::new(OfCluster(Reviewer::of(cluster)))
}

impl Reviews for OfCluster {
    fn account(&self, token: &str) -> Reviewing<'_, Option<Arc<dyn Account>>> {
        let token = token.to_owned();
        Box::pin(async move {
            let user = self.0.user(&token).await?;
            Ok(user.map(|user| {
                let reviewer = self.0.clone();
                Arc::new(OfUser { reviewer, user }) as Arc<dyn Account>
            }))
        })
    }
}

impl Account for OfUser {
    fn may_get(&self, right: Right) -> Reviewing<'_, bool> {
        Box::pin(async move {
            let of = (&*right.namespace, &*right.name);
            let reviewer = &self.reviewer;
            reviewer.may_get(&self.user, right.kind.as_ref(), of).await
        })
    }
}
