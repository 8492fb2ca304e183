//! The request that Envoy asks about.

use serde_json::{Value as Json, json};

use crate::api::envoy::AttributeContext;
use crate::api::v1;

/// What is asked to match a request.
///
/// # Errors
/// Why it cannot be matched.
pub(in crate::server) fn resolve_request_message(
    attributes: &AttributeContext,
    gateway: Option<(String, String)>,
    listener: Option<String>,
) -> Result<v1::ResolveRequestRequest, String> {
    let http = attributes
        .request
        .as_ref()
        .and_then(|request| request.http.as_ref());
    let http = http.ok_or_else(|| "it is no request of HTTP".to_owned())?;
    // Envoy keeps the dot of the root, and looks for such a host.
    let host = http.host.split(':').next().unwrap_or_default();
    if host.ends_with('.') {
        return Err(format!(
            "its host ends with a dot, which Envoy keeps: `{host}`"
        ));
    }
    let content = http.headers.get("content-type");
    let is_grpc = content.is_some_and(|content| content.starts_with("application/grpc"));
    let protocol = match is_grpc {
        true => v1::resolve_request_request::Protocol::Grpc,
        false => v1::resolve_request_request::Protocol::Http,
    };
    #[allow(
        clippy::iter_over_hash_type,
        reason = "names of headers are looked up alone"
    )]
    let headers = http.headers.iter().map(|(name, value)| v1::RequestHeader {
        name: name.clone(),
        value: value.clone(),
    });
    Ok(v1::ResolveRequestRequest {
        protocol: protocol.into(),
        gateway: gateway
            .map(|(ns, name)| format!("{ns}/{name}"))
            .unwrap_or_default(),
        listener: listener.unwrap_or_default(),
        host: http.host.clone(),
        method: http.method.clone(),
        path: http.path.clone(),
        // As Envoy compares them.
        raw_query: true,
        headers: headers.collect(),
        ..Default::default()
    })
}

/// A request, as rules see it.
pub(in crate::server) fn request_value(attributes: &AttributeContext) -> Json {
    let http = attributes
        .request
        .as_ref()
        .and_then(|request| request.http.clone());
    let http = http.unwrap_or_default();
    #[allow(clippy::iter_over_hash_type, reason = "a JSON object sorts its keys")]
    let headers: serde_json::Map<String, Json> = http
        .headers
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    json!({
        "method": http.method,
        "path": http.path,
        "host": http.host,
        "protocol": http.protocol,
        "headers": headers,
    })
}
