//! [`RemoteBackend`]: a [`QueryBackend`] that calls a running server.

use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, TimeoutExpired};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::api::v1;
use crate::insight::{Failure, FailureCode, QueryBackend, QueryError};
use entail_client::failure::{TlsFailure, code_name, root_cause};
use entail_client::stubs::effective_policy_service_client::EffectivePolicyServiceClient;
use entail_client::stubs::policy_insight_service_client::PolicyInsightServiceClient;
use entail_client::{ClientTls, ConnectError, MAX_REPLY_BYTES};

/// A connection to a running server.
#[derive(Debug)]
pub struct RemoteBackend {
    address: String,
    runtime: Runtime,
    channel: Channel,
    policies: EffectivePolicyServiceClient<Channel>,
    insight: PolicyInsightServiceClient<InterceptedService<Channel, BearerToken>>,
}

/// Adds a bearer token, if there is one, to the requests to PolicyInsightService.
#[derive(Clone, Debug, Default)]
struct BearerToken(Option<MetadataValue<Ascii>>);

impl RemoteBackend {
    /// Connects to a server: `host:port`, `http://host:port`, `https://host:port` or `unix:PATH`.
    /// `timeout` limits the connection attempt, and each request.
    ///
    /// # Errors
    /// The address is malformed, a certificate is invalid, or the connection fails.
    pub fn connect(address: &str, tls: &ClientTls, timeout: Duration) -> Result<Self, QueryError> {
        let runtime = runtime()?;
        let channel = runtime.block_on(connect(address, tls, timeout))?;
        Ok(Self {
            address: address.to_owned(),
            policies: EffectivePolicyServiceClient::new(channel.clone())
                .max_decoding_message_size(MAX_REPLY_BYTES),
            insight: insight(&channel, BearerToken::default()),
            channel,
            runtime,
        })
    }

    /// Sends the bearer token in a file with requests to PolicyInsightService.
    ///
    /// # Errors
    /// The file contains no token, or the connection is neither over TLS, to a loopback address, nor
    /// to a Unix socket: others could read the token.
    pub fn with_token(mut self, file: &Path) -> Result<Self, QueryError> {
        let failure = |why: String| QueryError::Unreachable(format!("{}: {why}", file.display()));
        if !is_private(&self.address) {
            return Err(failure(format!(
                "refusing to send the token to {} without TLS: use `https://`",
                self.address
            )));
        }
        let text = std::fs::read_to_string(file).map_err(|error| failure(error.to_string()))?;
        let token = text.trim();
        let header = format!("Bearer {token}").parse();
        let mut header: MetadataValue<Ascii> = header
            .ok()
            .filter(|_| !token.is_empty() && !token.contains(char::is_whitespace))
            .ok_or_else(|| failure("the file contains no token".to_owned()))?;
        header.set_sensitive(true);
        self.insight = insight(&self.channel, BearerToken(Some(header)));
        Ok(self)
    }

    fn wait<T>(
        &self,
        reply: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, QueryError> {
        match self.runtime.block_on(reply) {
            Ok(reply) => Ok(reply.into_inner()),
            Err(status) => Err(query_error(&self.address, &status)),
        }
    }
}

impl Interceptor for BearerToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(header) = &self.0 {
            let metadata = request.metadata_mut();
            metadata.insert("authorization", header.clone());
        }
        Ok(request)
    }
}

fn insight(
    channel: &Channel,
    bearer: BearerToken,
) -> PolicyInsightServiceClient<InterceptedService<Channel, BearerToken>> {
    PolicyInsightServiceClient::with_interceptor(channel.clone(), bearer)
        .max_decoding_message_size(MAX_REPLY_BYTES)
}

/// Whether others cannot read what is sent to an address: TLS, a Unix socket, or loopback.
fn is_private(address: &str) -> bool {
    if address.starts_with("https://") || address.starts_with("unix:") {
        return true;
    }
    let authority = address.strip_prefix("http://").unwrap_or(address);
    let authority: Option<http::uri::Authority> = authority.trim_end_matches('/').parse().ok();
    authority.is_some_and(|authority| {
        let host = authority.host().trim_matches(['[', ']']);
        let is_loopback = |ip: IpAddr| ip.to_canonical().is_loopback();
        host == "localhost" || host.parse().is_ok_and(is_loopback)
    })
}

impl QueryBackend for RemoteBackend {
    fn get(
        &mut self,
        request: v1::GetEffectivePoliciesRequest,
    ) -> Result<v1::GetEffectivePoliciesResponse, QueryError> {
        let mut client = self.policies.clone();
        self.wait(client.get_effective_policies(request))
    }

    fn resolve(
        &mut self,
        request: v1::ResolveRequestRequest,
    ) -> Result<v1::ResolveRequestResponse, QueryError> {
        let mut client = self.policies.clone();
        self.wait(client.resolve_request(request))
    }

    fn explain(&mut self, request: v1::ExplainRequest) -> Result<v1::ExplainResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.explain(request))
    }

    fn list_paths(
        &mut self,
        request: v1::ListPathsRequest,
    ) -> Result<v1::ListPathsResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.list_paths(request))
    }

    fn list_policies(
        &mut self,
        request: v1::ListPoliciesRequest,
    ) -> Result<v1::ListPoliciesResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.list_policies(request))
    }

    fn list_affected(
        &mut self,
        request: v1::ListAffectedRequest,
    ) -> Result<v1::ListAffectedResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.list_affected(request))
    }

    fn preview_change(
        &mut self,
        request: v1::PreviewChangeRequest,
    ) -> Result<v1::PreviewChangeResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.preview_change(request))
    }

    fn list_findings(
        &mut self,
        request: v1::ListFindingsRequest,
    ) -> Result<v1::ListFindingsResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.list_findings(request))
    }

    fn check_assertions(
        &mut self,
        request: v1::CheckAssertionsRequest,
    ) -> Result<v1::CheckAssertionsResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.check_assertions(request))
    }

    fn get_topology(
        &mut self,
        request: v1::GetTopologyRequest,
    ) -> Result<v1::GetTopologyResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.get_topology(request))
    }

    fn server_status(&mut self) -> Result<v1::GetServerStatusResponse, QueryError> {
        let mut client = self.insight.clone();
        self.wait(client.get_server_status(v1::GetServerStatusRequest {}))
    }
}

/// Checks the health of a service of a server; `""` is the server as a whole. Returns whether it is
/// SERVING.
///
/// # Errors
/// The server does not answer within `timeout`, or has no such service.
pub fn health(
    address: &str,
    tls: &ClientTls,
    service: &str,
    timeout: Duration,
) -> Result<bool, QueryError> {
    let check = async {
        let channel = connect(address, tls, timeout).await?;
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        let reply = HealthClient::new(channel).check(request).await;
        let reply = reply.map_err(|status| match status.code() {
            Code::NotFound => QueryError::Failure(Failure {
                code: FailureCode::NotFound,
                reason: "ServiceNotFound".to_owned(),
                message: format!("the server at {address} has no health service `{service}`"),
                nearest: String::new(),
            }),
            _ => query_error(address, &status),
        })?;
        Ok(reply.into_inner().status() == ServingStatus::Serving)
    };
    runtime()?.block_on(async {
        match tokio::time::timeout(timeout, check).await {
            Ok(result) => result,
            Err(_) => Err(QueryError::Unreachable(format!(
                "the server at {address} does not answer within {} s",
                timeout.as_secs_f32()
            ))),
        }
    })
}

fn runtime() -> Result<Runtime, QueryError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            QueryError::Unreachable(format!("failed to start the client runtime: {error}"))
        })
}

async fn connect(address: &str, tls: &ClientTls, timeout: Duration) -> Result<Channel, QueryError> {
    let endpoint = entail_client::endpoint(address, tls)?
        .connect_timeout(timeout)
        .timeout(timeout);
    let connected = endpoint.connect().await;
    connected.map_err(|error| match TlsFailure::of(&error) {
        Some(failure) => QueryError::Unreachable(tls_message(address, &failure)),
        None => ConnectError::of(&error, address).into(),
    })
}

impl From<ConnectError> for QueryError {
    fn from(error: ConnectError) -> Self {
        QueryError::Unreachable(error.to_string())
    }
}

/// Converts a gRPC status to an error with a message that names the server.
fn query_error(address: &str, status: &Status) -> QueryError {
    let code = match status.code() {
        Code::InvalidArgument => FailureCode::InvalidArgument,
        Code::NotFound => FailureCode::NotFound,
        Code::Aborted => FailureCode::Aborted,
        code => return QueryError::Unreachable(unreachable_message(address, code, status)),
    };
    let info = status.get_details_error_info();
    let nearest = info
        .as_ref()
        .and_then(|info| info.metadata.get("nearest").cloned());
    QueryError::Failure(Failure {
        code,
        nearest: nearest.unwrap_or_default(),
        reason: info.map(|info| info.reason).unwrap_or_default(),
        message: status.message().to_owned(),
    })
}

fn unreachable_message(address: &str, code: Code, status: &Status) -> String {
    // The message of an error of the transport is generic: its cause tells what happened.
    let message = match status.source() {
        Some(error) => match TlsFailure::of(error) {
            Some(failure) => return tls_message(address, &failure),
            None => root_cause(error),
        },
        None => status.message().to_owned(),
    };
    match code {
        Code::Unavailable => format!("the server at {address} is not available: {message}"),
        Code::Unimplemented => {
            format!(
                "the server at {address} is not an entail server, or has another version: {message}"
            )
        }
        _ if code == Code::DeadlineExceeded || status.source().is_some_and(is_timeout) => {
            format!("the server at {address} did not answer in time: {message}")
        }
        Code::ResourceExhausted | Code::OutOfRange => {
            format!("the server at {address} rejected the request because of its limits: {message}")
        }
        // The alert of a server that rejects the client can be lost, because the connection is closed at once.
        _ if status.source().is_some() && address.starts_with("https://") => {
            format!(
                "the connection to the server at {address} was closed ({message}): if the server requires \
                 a client certificate, set `--tls-cert` and `--tls-key` to one of its client CA"
            )
        }
        _ if status.source().is_some() => {
            format!(
                "the connection to the server at {address} failed: {message}; use `https://` if it \
                 serves with TLS"
            )
        }
        _ => format!(
            "the server at {address} failed ({}): {message}",
            code_name(code)
        ),
    }
}

/// Reports whether the timeout of the client is among the causes of an error.
fn is_timeout(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TimeoutExpired>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Describes a TLS connection that failed, with the options that help.
fn tls_message(address: &str, failure: &TlsFailure) -> String {
    let hint = match failure {
        failure if failure.concerns_client() => {
            "set `--tls-cert` and `--tls-key` to a certificate of its client CA"
        }
        TlsFailure::UnknownServerCa => "set `--tls-ca` to the CA of its certificate",
        TlsFailure::InvalidServerCertificate(_) => {
            "set `--tls-server-name` if its certificate has another name"
        }
        TlsFailure::NotTls => "use an address without `https://` if it serves without TLS",
        _ => "the log of the server tells more",
    };
    format!("the connection to {address} failed: {failure}; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_sent_only_where_others_cannot_read_them() {
        for (address, is_sent) in [
            ("https://entail.example:1", true),
            ("unix:/run/entail.sock", true),
            ("127.0.0.1:1", true),
            ("http://localhost:1", true),
            ("http://[::1]:1/", true),
            ("10.0.0.1:1", false),
            ("http://entail.example:1", false),
            ("localhost.example:1", false),
            ("127.0.0.1.example:1", false),
        ] {
            assert_eq!(is_private(address), is_sent, "{address}");
        }
    }

    #[test]
    fn a_late_answer_is_not_a_connection_that_ended() {
        let told = |address: &str, error: Box<dyn Error + Send + Sync>| {
            query_error(address, &Status::from_error(error)).to_string()
        };
        for address in ["https://a.example:1", "a.example:1"] {
            let late = told(address, Box::new(TimeoutExpired(())));
            assert!(late.contains("did not answer in time"), "{late}");
        }
        let io = |text: &str| Box::new(std::io::Error::other(text.to_owned()));
        let closed = told("https://a.example:1", io("connection closed"));
        assert!(closed.contains("--tls-cert"), "{closed}");
        let plain = told("a.example:1", io("connection closed"));
        assert!(plain.contains("use `https://`"), "{plain}");
        let alert = "received fatal alert: CertificateRequired";
        let required = told("https://a.example:1", io(alert));
        assert!(
            required.contains("requires a client certificate; set `--tls-cert`"),
            "{required}"
        );
    }

    #[test]
    fn an_unreachable_server_has_a_helpful_error() {
        let error =
            RemoteBackend::connect("127.0.0.1:1", &ClientTls::default(), Duration::from_secs(5))
                .map(drop)
                .unwrap_err()
                .to_string();
        assert!(error.contains("entail serve"), "{error}");
        let error = health(
            "unix:/nowhere",
            &ClientTls::default(),
            "",
            Duration::from_secs(1),
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("entail serve"), "{error}");
    }
}
