//! Where Envoy Gateway puts the fields of its policies, as of version 1.9.1 (`internal/xds/translator`).

use super::convert::Convert::{
    self, Block, CommaSet, Commas, Duration, Flag, NotFlag, Number, NumberUnless, OneOf, Owned,
    Presence, Quantity, Seconds, Shape, Text,
};
use super::rows::ConfigPart::{Cluster, Listener, Manager, Route};
use super::rows::{KindRows, Row};
use super::shapes;

/// The API group.
const GROUP: &str = "gateway.envoyproxy.io";

/// The kinds that can be compared.
pub(super) const KINDS: &[KindRows] = &[
    KindRows {
        group: GROUP,
        kind: "BackendTrafficPolicy",
        at_listener: false,
        implied: &["healthCheck.active.type", "rateLimit.type"],
        rows: BACKEND_TRAFFIC,
    },
    KindRows {
        group: GROUP,
        kind: "ClientTrafficPolicy",
        at_listener: true,
        implied: &[],
        rows: CLIENT_TRAFFIC,
    },
    KindRows {
        group: GROUP,
        kind: "EnvoyExtensionPolicy",
        at_listener: false,
        implied: &[],
        rows: EXTENSION,
    },
    KindRows {
        group: GROUP,
        kind: "SecurityPolicy",
        at_listener: false,
        implied: &[],
        rows: SECURITY,
    },
];

/// The names of the load balancers of clusters.
const BALANCERS: Convert = OneOf(&[
    (
        "LeastRequest",
        "envoy.load_balancing_policies.least_request",
    ),
    ("RoundRobin", "envoy.load_balancing_policies.round_robin"),
    ("Random", "envoy.load_balancing_policies.random"),
    ("ConsistentHash", "envoy.load_balancing_policies.maglev"),
    (
        "BackendUtilization",
        "envoy.load_balancing_policies.client_side_weighted_round_robin",
    ),
]);

const OWN_TIMEOUT: &str = "a rule's own `timeouts` wins over policies";
const OWN_RETRY: &str = "a rule's own `retry` wins over policies";
const OWN_CORS: &str = "a rule's own CORS filter wins over policies";
const CRD: &[&str] = &["1024"];

#[rustfmt::skip] // One row for each field.
const BACKEND_TRAFFIC: &[Row] = &[
    Row::new("retry", Route, &["route", "retry_policy"], Block).hint(OWN_RETRY),
    Row::new("retry.numRetries", Route, &["route", "retry_policy", "num_retries"], Number).or(&["2"]),
    Row::new("retry.numAttemptsPerPriority", Route, &["route", "retry_policy", "retry_priority", "typed_config", "update_frequency"], NumberUnless(0)),
    Row::new("retry.retryOn.triggers", Route, &["route", "retry_policy", "retry_on"], CommaSet)
        .or(&["\"connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes\""]),
    Row::new("retry.retryOn.httpStatusCodes", Route, &["route", "retry_policy", "retriable_status_codes"], Shape(shapes::codes, shapes::codes)).or(&["[503]"]),
    Row::new("retry.perRetry.timeout", Route, &["route", "retry_policy", "per_try_timeout"], Duration),
    Row::new("retry.perRetry.backOff.baseInterval", Route, &["route", "retry_policy", "retry_back_off", "base_interval"], Duration),
    Row::new("retry.perRetry.backOff.maxInterval", Route, &["route", "retry_policy", "retry_back_off", "max_interval"], Duration),
    Row::new("timeout.http.requestTimeout", Route, &["route", "timeout"], Duration).hint(OWN_TIMEOUT),
    // Without it, Envoy Gateway derives one from the timeout of requests.
    Row::new("timeout.http.streamIdleTimeout", Route, &["route", "idle_timeout"], Duration).or_anything(),
    Row::new("timeout.http.maxStreamDuration", Route, &["route", "max_stream_duration", "max_stream_duration"], Duration),
    Row::new("timeout.http.connectionIdleTimeout", Cluster, &["typed_extension_protocol_options", HTTP, "common_http_protocol_options", "idle_timeout"], Duration),
    Row::new("timeout.http.maxConnectionDuration", Cluster, &["typed_extension_protocol_options", HTTP, "common_http_protocol_options", "max_connection_duration"], Duration),
    Row::new("timeout.tcp.connectTimeout", Cluster, &["connect_timeout"], Duration).or(&["\"10s\""]),
    Row::new("rateLimit.local", Route, &["typed_per_filter_config", LOCAL_LIMIT], Block),
    Row::new("rateLimit.local.rules", Route, &["typed_per_filter_config", LOCAL_LIMIT], Shape(shapes::local_limits_of_policy, shapes::local_limits_of_envoy))
        .or_anything().partly("the limits are compared, the selectors of clients are not"),
    Row::new("rateLimit.global", Route, &["typed_per_filter_config", "envoy.filters.http.ratelimit"], Presence),
    Row::new("faultInjection", Route, &["typed_per_filter_config", "envoy.filters.http.fault"], Presence),
    Row::new("requestBuffer.limit", Route, &["typed_per_filter_config", "envoy.filters.http.buffer", "buffer", "max_request_bytes"], Quantity),
    Row::new("loadBalancer.type", Cluster, &["load_balancing_policy", "policies", "0", "typed_extension_config", "name"], BALANCERS)
        .or(&["\"envoy.load_balancing_policies.least_request\""]),
    Row::new("loadBalancer.slowStart.window", Cluster, &["load_balancing_policy", "policies", "0", "typed_extension_config", "typed_config", "slow_start_config", "slow_start_window"], Duration),
    Row::new("loadBalancer.consistentHash.tableSize", Cluster, &["load_balancing_policy", "policies", "0", "typed_extension_config", "typed_config", "table_size"], Number).or(&["65537"]),
    Row::new("loadBalancer.consistentHash", Route, &["route", "hash_policy"], Shape(shapes::hash_of_policy, shapes::hash_of_envoy)),
    Row::new("circuitBreaker.maxConnections", Cluster, &["circuit_breakers", "thresholds", "0", "max_connections"], Number).or(CRD),
    Row::new("circuitBreaker.maxPendingRequests", Cluster, &["circuit_breakers", "thresholds", "0", "max_pending_requests"], Number).or(CRD),
    Row::new("circuitBreaker.maxParallelRequests", Cluster, &["circuit_breakers", "thresholds", "0", "max_requests"], Number).or(CRD),
    Row::new("circuitBreaker.maxParallelRetries", Cluster, &["circuit_breakers", "thresholds", "0", "max_retries"], Number).or(CRD),
    Row::new("circuitBreaker.maxRequestsPerConnection", Cluster, &["typed_extension_protocol_options", HTTP, "common_http_protocol_options", "max_requests_per_connection"], Number),
    Row::new("circuitBreaker.perEndpoint.maxConnections", Cluster, &["circuit_breakers", "per_host_thresholds", "0", "max_connections"], Number).or(CRD),
    Row::new("healthCheck.panicThreshold", Cluster, &["common_lb_config", "healthy_panic_threshold", "value"], NumberUnless(50)),
    Row::new("healthCheck.active", Cluster, &["health_checks", "0"], Block),
    Row::new("healthCheck.active.timeout", Cluster, &["health_checks", "0", "timeout"], Duration).or(&["\"1s\""]),
    Row::new("healthCheck.active.interval", Cluster, &["health_checks", "0", "interval"], Duration).or(&["\"3s\""]),
    Row::new("healthCheck.active.initialJitter", Cluster, &["health_checks", "0", "initial_jitter"], Duration),
    Row::new("healthCheck.active.unhealthyThreshold", Cluster, &["health_checks", "0", "unhealthy_threshold"], Number).or(&["3"]),
    Row::new("healthCheck.active.healthyThreshold", Cluster, &["health_checks", "0", "healthy_threshold"], Number).or(&["1"]),
    Row::new("healthCheck.active.http.path", Cluster, &["health_checks", "0", "http_health_check", "path"], Text),
    Row::new("healthCheck.active.http.method", Cluster, &["health_checks", "0", "http_health_check", "method"], Text).or(&["\"GET\""]),
    Row::new("healthCheck.active.http.hostname", Cluster, &["health_checks", "0", "http_health_check", "host"], Text).or_anything(),
    Row::new("healthCheck.active.http.expectedStatuses", Cluster, &["health_checks", "0", "http_health_check", "expected_statuses"], Shape(shapes::codes, shapes::codes_of_ranges)).or(STATUS_200),
    Row::new("healthCheck.active.http.retriableStatuses", Cluster, &["health_checks", "0", "http_health_check", "retriable_statuses"], Shape(shapes::codes, shapes::codes_of_ranges)),
    Row::new("healthCheck.active.grpc.service", Cluster, &["health_checks", "0", "grpc_health_check", "service_name"], Text),
    Row::new("healthCheck.passive", Cluster, &["outlier_detection"], Block),
    Row::new("healthCheck.passive.interval", Cluster, &["outlier_detection", "interval"], Duration).or(&["\"3s\""]),
    Row::new("healthCheck.passive.baseEjectionTime", Cluster, &["outlier_detection", "base_ejection_time"], Duration).or(&["\"30s\""]),
    Row::new("healthCheck.passive.maxEjectionPercent", Cluster, &["outlier_detection", "max_ejection_percent"], NumberUnless(0)).or(&["10"]),
    Row::new("healthCheck.passive.consecutive5XxErrors", Cluster, &["outlier_detection", "consecutive_5xx"], Number).or(&["5"]),
    Row::new("healthCheck.passive.consecutiveGatewayErrors", Cluster, &["outlier_detection", "consecutive_gateway_failure"], Number).or(&["0"]),
    Row::new("healthCheck.passive.consecutiveLocalOriginFailures", Cluster, &["outlier_detection", "consecutive_local_origin_failure"], Number).or(&["5"]),
    Row::new("healthCheck.passive.splitExternalLocalOriginErrors", Cluster, &["outlier_detection", "split_external_local_origin_errors"], Flag),
    Row::new("healthCheck.passive.failurePercentageThreshold", Cluster, &["outlier_detection", "failure_percentage_threshold"], Number),
    Row::new("healthCheck.passive.alwaysEjectOneEndpoint", Cluster, &["outlier_detection", "always_eject_one_host"], Flag),
    Row::new("connection.bufferLimit", Cluster, &["per_connection_buffer_limit_bytes"], Quantity).or(&["32768"]),
    Row::new("tcpKeepalive.probes", Cluster, &["upstream_connection_options", "tcp_keepalive", "keepalive_probes"], Number),
    Row::new("tcpKeepalive.idleTime", Cluster, &["upstream_connection_options", "tcp_keepalive", "keepalive_time"], Seconds),
    Row::new("tcpKeepalive.interval", Cluster, &["upstream_connection_options", "tcp_keepalive", "keepalive_interval"], Seconds),
];

const HTTP: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
const LOCAL_LIMIT: &str = "envoy.filters.http.local_ratelimit";
const CORS: &str = "envoy.filters.http.cors";
const RBAC: &str = "envoy.filters.http.rbac";
const FILTERS: &[&str] = &["typed_per_filter_config"];
const STATUS_200: &[&str] = &[r#"[{"start": "200", "end": "201"}]"#];

#[rustfmt::skip] // One row for each field.
const SECURITY: &[Row] = &[
    Row::new("cors", Route, &["typed_per_filter_config", CORS], Block).hint(OWN_CORS),
    Row::new("cors.allowOrigins", Route, &["typed_per_filter_config", CORS, "allow_origin_string_match"], Shape(shapes::origins_of_policy, shapes::origins_of_envoy)).hint(OWN_CORS),
    Row::new("cors.allowMethods", Route, &["typed_per_filter_config", CORS, "allow_methods"], Commas).hint(OWN_CORS),
    Row::new("cors.allowHeaders", Route, &["typed_per_filter_config", CORS, "allow_headers"], Commas).hint(OWN_CORS),
    Row::new("cors.exposeHeaders", Route, &["typed_per_filter_config", CORS, "expose_headers"], Commas).hint(OWN_CORS),
    Row::new("cors.maxAge", Route, &["typed_per_filter_config", CORS, "max_age"], Seconds).hint(OWN_CORS),
    Row::new("cors.allowCredentials", Route, &["typed_per_filter_config", CORS, "allow_credentials"], Flag).hint(OWN_CORS),
    Row::new("csrf", Route, &["typed_per_filter_config", "envoy.filters.http.csrf"], Presence),
    Row::new("basicAuth", Route, FILTERS, Owned("envoy.filters.http.basic_auth/")).partly("the users are not compared"),
    Row::new("jwt", Route, &["typed_per_filter_config", "envoy.filters.http.jwt_authn"], Presence),
    Row::new("oidc", Route, &["typed_per_filter_config", "envoy.filters.http.oauth2"], Presence),
    Row::new("apiKeyAuth", Route, &["typed_per_filter_config", "envoy.filters.http.api_key_auth"], Presence),
    Row::new("extAuth", Route, FILTERS, Owned("envoy.filters.http.ext_authz/")).partly("the service is not compared"),
    Row::new("authorization", Route, &["typed_per_filter_config", RBAC], Shape(shapes::actions_of_policy, shapes::actions_of_envoy))
        .partly("the actions are compared, the principals and operations are not"),
];

#[rustfmt::skip] // One row for each field.
const EXTENSION: &[Row] = &[
    Row::new("wasm", Route, FILTERS, Owned("envoy.filters.http.wasm/")).partly("the modules are not compared"),
    Row::new("extProc", Route, FILTERS, Owned("envoy.filters.http.ext_proc/")).partly("the services are not compared"),
    Row::new("lua", Route, FILTERS, Owned("envoy.filters.http.lua/")).partly("the scripts are not compared"),
    Row::new("dynamicModule", Route, FILTERS, Owned("envoy.filters.http.dynamic_modules/")).partly("the modules are not compared"),
];

#[rustfmt::skip] // One row for each field.
const CLIENT_TRAFFIC: &[Row] = &[
    Row::new("timeout.http.requestReceivedTimeout", Manager, &["request_timeout"], Duration),
    Row::new("timeout.http.requestHeadersReceivedTimeout", Manager, &["request_headers_timeout"], Duration),
    Row::new("timeout.http.idleTimeout", Manager, &["common_http_protocol_options", "idle_timeout"], Duration),
    Row::new("timeout.http.streamIdleTimeout", Manager, &["stream_idle_timeout"], Duration),
    Row::new("timeout.tcp.connectionInspectionTimeout", Listener, &["listener_filters_timeout"], Duration),
    Row::new("connection.bufferLimit", Listener, &["per_connection_buffer_limit_bytes"], Quantity).or(&["32768"]),
    Row::new("connection.maxAcceptPerSocketEvent", Listener, &["max_connections_to_accept_per_socket_event"], NumberUnless(0)).or(&["1"]),
    Row::new("connection.connectionLimit.maxConnectionDuration", Manager, &["common_http_protocol_options", "max_connection_duration"], Duration),
    Row::new("connection.connectionLimit.maxRequestsPerConnection", Manager, &["common_http_protocol_options", "max_requests_per_connection"], Number),
    Row::new("connection.connectionLimit.maxStreamDuration", Manager, &["common_http_protocol_options", "max_stream_duration"], Duration),
    Row::new("path.escapedSlashesAction", Manager, &["path_with_escaped_slashes_action"], OneOf(&[
        ("KeepUnchanged", "KEEP_UNCHANGED"), ("RejectRequest", "REJECT_REQUEST"),
        ("UnescapeAndRedirect", "UNESCAPE_AND_REDIRECT"), ("UnescapeAndForward", "UNESCAPE_AND_FORWARD"),
    ])).or(&["\"UNESCAPE_AND_REDIRECT\""]),
    Row::new("path.disableMergeSlashes", Manager, &["merge_slashes"], NotFlag).or(&["true"]),
    Row::new("headers.withUnderscoresAction", Manager, &["common_http_protocol_options", "headers_with_underscores_action"], OneOf(&[
        ("Allow", ""), ("RejectRequest", "REJECT_REQUEST"), ("DropHeader", "DROP_HEADER"),
    ])).or(&["\"REJECT_REQUEST\""]),
    Row::new("http1.enableTrailers", Manager, &["http_protocol_options", "enable_trailers"], Flag),
    Row::new("http2.maxConcurrentStreams", Manager, &["http2_protocol_options", "max_concurrent_streams"], Number).or(&["100"]),
    Row::new("http2.initialStreamWindowSize", Manager, &["http2_protocol_options", "initial_stream_window_size"], Quantity).or(&["65536"]),
    Row::new("http2.initialConnectionWindowSize", Manager, &["http2_protocol_options", "initial_connection_window_size"], Quantity).or(&["1048576"]),
];
