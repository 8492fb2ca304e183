//! The identity of a cluster: the UID of its Namespace `kube-system`. The URL of the API server does not identify a
//! cluster, because pods of different clusters use the same URL.

use std::time::Duration;

use serde_json::Value;

use super::Cluster;

/// URL path of the Namespace whose UID identifies the cluster.
const PATH: &str = "/api/v1/namespaces/kube-system";
/// Timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(2);

impl Cluster {
    /// Returns the UID of the cluster. The API server is asked until it has responded once.
    ///
    /// # Errors
    /// Returns why the UID is not known: the API server does not respond, or denies access.
    pub async fn uid(&self) -> Result<&str, String> {
        let uid = self.uid.get_or_try_init(|| async {
            let request = http::Request::get(PATH).body(Vec::new());
            let namespace = self.request(request, TIMEOUT).await?;
            let uid = namespace.pointer("/metadata/uid").and_then(Value::as_str);
            let uid = uid.filter(|uid| !uid.is_empty());
            uid.map(str::to_owned)
                .ok_or_else(|| "the Namespace `kube-system` has no UID".to_owned())
        });
        uid.await.map(String::as_str)
    }
}
