//! Conversion of the request in a `Check` call.

use serde_json::{Value as Json, json};

use crate::api::envoy::AttributeContext;
use crate::api::v1;

/// Converts a request to a `ResolveRequestRequest`.
///
/// # Errors
/// Returns the reason why the request cannot be matched to a rule.
pub(in crate::server) fn resolve_request_message(
    attributes: &AttributeContext,
    gateway: Option<(String, String)>,
    listener: Option<String>,
) -> Result<v1::ResolveRequestRequest, String> {
    let http = attributes
        .request
        .as_ref()
        .and_then(|request| request.http.as_ref());
    let http = http.ok_or_else(|| "the request is not an HTTP request".to_owned())?;
    // Envoy does not remove the trailing dot and matches the host with it.
    let host = http.host.split(':').next().unwrap_or_default();
    if host.ends_with('.') {
        return Err(format!(
            "the host ends with a dot, which Envoy does not remove: `{host}`"
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
        reason = "header names are unique, so their order does not matter"
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
        // Envoy does not decode query parameters.
        raw_query: true,
        // Envoy asks after it accepted the request and normalized its path.
        normalized_path: true,
        headers: headers.collect(),
        ..Default::default()
    })
}

/// Returns the variable `request` of deny rules.
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
