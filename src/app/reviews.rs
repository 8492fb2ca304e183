//! Authenticates and authorizes clients with access reviews of a cluster.

use std::sync::Arc;

use crate::server::{Authorizer, ResourceAttributes, ReviewFuture, TokenAuthenticator};
use crate::source::cluster::{AuthenticatedUser, Cluster, ReviewClient};

/// Authenticates tokens with TokenReviews of a cluster.
#[derive(Debug)]
struct ClusterReviews(ReviewClient);

/// Authorizes one user with SubjectAccessReviews of a cluster.
#[derive(Debug)]
struct ClusterAccount {
    reviewer: ReviewClient,
    user: Arc<AuthenticatedUser>,
}

/// Returns an authenticator that uses the access reviews of `cluster`.
pub(super) fn cluster_reviews(cluster: &Cluster) -> Arc<dyn TokenAuthenticator> {
    Arc::new(ClusterReviews(ReviewClient::of(cluster)))
}

impl TokenAuthenticator for ClusterReviews {
    fn account(&self, token: &str) -> ReviewFuture<'_, Option<Arc<dyn Authorizer>>> {
        let token = token.to_owned();
        Box::pin(async move {
            let user = self.0.user(&token).await?;
            Ok(user.map(|user| {
                let reviewer = self.0.clone();
                Arc::new(ClusterAccount { reviewer, user }) as Arc<dyn Authorizer>
            }))
        })
    }
}

impl Authorizer for ClusterAccount {
    fn may_get(&self, right: ResourceAttributes) -> ReviewFuture<'_, bool> {
        Box::pin(async move {
            let name = (&*right.namespace, &*right.name);
            let reviewer = &self.reviewer;
            reviewer
                .may_get(&self.user, right.kind.as_ref(), name)
                .await
        })
    }
}
