//! A server in this process on a temporary directory of manifests.

use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use entail::api::v1;
use entail::app::{AppError, Inputs, ServeSettings, serve};
use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use entail_client::stubs::policy_insight_service_client::PolicyInsightServiceClient;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// A path with effective policies of both kinds.
pub const PATH: &str = "gateways/default/gw/listeners/http/routes/HTTPRoute/default/r/rules/#0";

const WORLD: &str = "
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: any
  listeners: [{name: http, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec:
  parentRefs: [{name: gw}]
  rules: [{backendRefs: [{name: s, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: s}
spec: {ports: [{port: 80}]}
";

/// Two policies of two kinds with the same field `marker`.
pub fn policies(marker: u64) -> String {
    let policy = |kind: &str| {
        format!(
            "---\napiVersion: p.example/v1\nkind: {kind}\nmetadata: {{name: p}}\nspec:\n  targetRefs: \
             [{{group: gateway.networking.k8s.io, kind: Gateway, name: gw}}]\n  defaults: {{marker: {marker}}}\n"
        )
    };
    policy("APolicy") + &policy("BPolicy")
}

fn profiles() -> String {
    let profile = |kind: &str| {
        format!(
            "---\napiVersion: entail.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {{name: {}}}\nspec:\n  \
             policy: {{group: p.example, kind: {kind}}}\n  effectiveTarget: RouteRule\n  strategies: \
             [PatchDefaults]\n",
            kind.to_lowercase()
        )
    };
    profile("APolicy") + &profile("BPolicy")
}

/// A `GetEffectivePoliciesRequest` whose path may be invalid UTF-8.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RawLookUp {
    #[prost(bytes = "vec", tag = "1")]
    pub path: Vec<u8>,
}

/// A server that is starting.
pub struct Starting {
    folder: TempDir,
    bound: oneshot::Receiver<(String, Option<String>)>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), AppError>>,
}

/// A server that listens, and a connection to it.
pub struct Running {
    folder: TempDir,
    pub address: String,
    pub health_address: Option<String>,
    pub stop: oneshot::Sender<()>,
    pub task: JoinHandle<Result<(), AppError>>,
    channel: Channel,
}

/// Creates a directory of manifests, profiles and policies.
pub fn world() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("world.yaml", WORLD.to_owned()),
        ("profiles.yaml", profiles()),
        ("policies.yaml", policies(1)),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// Starts a server on a free port. Awaiting it waits until it is SERVING.
pub fn start(adjust: impl FnOnce(&mut ServeSettings)) -> Starting {
    let folder = world();
    let mut settings = ServeSettings {
        inputs: Inputs {
            manifests: vec![folder.path().to_owned()],
            ..Inputs::default()
        },
        listen: vec!["127.0.0.1:0".to_owned()],
        ..ServeSettings::default()
    };
    adjust(&mut settings);
    let (sender, bound) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(serve(
        settings,
        move |addresses| {
            let first = addresses.all[0].to_string();
            let health = addresses.health.as_ref().map(ToString::to_string);
            sender.send((first, health)).unwrap();
        },
        async move { drop(stopped.await) },
    ));
    Starting {
        folder,
        bound,
        stop,
        task,
    }
}

/// Starts a server on an address that another one used before.
pub fn start_at(address: &str) -> Starting {
    let address = address.to_owned();
    start(move |settings| settings.listen = vec![address])
}

impl Starting {
    /// Waits until the server listens.
    pub async fn await_bound(self) -> Running {
        let (address, health_address) = self.bound.await.unwrap();
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        Running {
            channel: endpoint.connect().await.unwrap(),
            folder: self.folder,
            address,
            health_address,
            stop: self.stop,
            task: self.task,
        }
    }

    /// Waits for the error with which the server stops.
    pub async fn error(self) -> AppError {
        self.task.await.unwrap().unwrap_err()
    }
}

impl IntoFuture for Starting {
    type Output = Running;
    type IntoFuture = Pin<Box<dyn Future<Output = Running> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let running = self.await_bound().await;
            running.until_serving().await;
            running
        })
    }
}

impl Running {
    pub fn manifests(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub async fn channel(&self) -> Channel {
        self.channel.clone()
    }

    pub fn policies(&self) -> EffectivePolicyServiceClient<Channel> {
        EffectivePolicyServiceClient::new(self.channel.clone())
    }

    pub fn insight(&self) -> PolicyInsightServiceClient<Channel> {
        PolicyInsightServiceClient::new(self.channel.clone())
    }

    pub async fn get(
        &self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, Status> {
        let reply = self.policies().get_effective_policies(request).await?;
        Ok(reply.into_inner())
    }

    pub async fn health(&self, address: &str, service: &str) -> bool {
        let (address, service) = (address.to_owned(), service.to_owned());
        let health = tokio::task::spawn_blocking(move || {
            entail::cli::health(
                &address,
                &entail_client::ClientTls::default(),
                &service,
                Duration::from_secs(5),
            )
        });
        health.await.unwrap().unwrap()
    }

    pub async fn until_serving(&self) {
        for _ in 0..200 {
            if self.health(&self.address, "").await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("not SERVING within 5 s");
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(8), self.task).await;
        ended.expect("the server does not stop").unwrap().unwrap();
    }
}

pub fn by_path(path: &str) -> v1::GetEffectivePoliciesRequest {
    let path = v1::get_effective_policies_request::Target::Path(path.to_owned());
    v1::GetEffectivePoliciesRequest {
        target: Some(path),
        ..v1::GetEffectivePoliciesRequest::default()
    }
}

pub fn batch_of<'p>(
    paths: impl IntoIterator<Item = &'p str>,
) -> v1::BatchGetEffectivePoliciesRequest {
    v1::BatchGetEffectivePoliciesRequest {
        requests: paths.into_iter().map(by_path).collect(),
        kinds: Vec::new(),
    }
}

impl Running {
    /// Sends a look-up without checking that the path is UTF-8.
    pub async fn get_raw(
        &self,
        request: RawLookUp,
    ) -> Result<v1::GetEffectivePoliciesResponse, Status> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.unwrap();
        let method = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
        let codec =
            tonic_prost::ProstCodec::<RawLookUp, v1::GetEffectivePoliciesResponse>::default();
        let path = tonic::codegen::http::uri::PathAndQuery::from_static(method);
        let reply = client
            .unary(tonic::Request::new(request), path, codec)
            .await?;
        Ok(reply.into_inner())
    }
}
