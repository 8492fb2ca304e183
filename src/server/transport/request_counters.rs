//! Counters and latency histograms of requests, updated without a lock or an allocation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tonic::Code;

use crate::server::admission::limits::PROBE_REQUEST_BYTES;
use crate::server::transport::executor::Priority;
use entail_client::failure::CODES;

/// The methods with a histogram of their own, by service. Each service has one named `other` for
/// methods that it does not have, so that clients cannot create metrics.
const METHODS: [(RpcService, &str); 21] = [
    (RpcService::Policies, "GetEffectivePolicies"),
    (RpcService::Policies, "BatchGetEffectivePolicies"),
    (RpcService::Policies, "WatchEffectivePolicies"),
    (RpcService::Policies, "ResolveRequest"),
    (RpcService::Policies, OTHER),
    (RpcService::Insight, "Explain"),
    (RpcService::Insight, "ListPolicies"),
    (RpcService::Insight, "ListAffected"),
    (RpcService::Insight, "PreviewChange"),
    (RpcService::Insight, "ListFindings"),
    (RpcService::Insight, "CheckAssertions"),
    (RpcService::Insight, "GetTopology"),
    (RpcService::Insight, "ListPaths"),
    (RpcService::Insight, "GetServerStatus"),
    (RpcService::Insight, OTHER),
    (RpcService::Envoy, "Check"),
    (RpcService::Envoy, OTHER),
    (RpcService::Health, "Check"),
    (RpcService::Health, "Watch"),
    (RpcService::Health, OTHER),
    (RpcService::Other, OTHER),
];
const OTHER: &str = "other";
/// Maximum length of the messages that ask about one path or open a stream, in bytes: they are decoded beside look-ups.
const SMALL_MESSAGE: usize = 512 * 1024;

/// Upper bounds of the histogram buckets, in nanoseconds: from a look-up on the fast path (10 µs)
/// to the timeouts of the server. The last bucket has no bound.
const BOUNDS: [u64; 19] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    10_000_000_000,
    60_000_000_000,
];

/// The gRPC service of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum RpcService {
    /// `EffectivePolicyService`.
    Policies,
    /// `PolicyInsightService`.
    Insight,
    /// `envoy.service.auth.v3.Authorization`.
    Envoy,
    /// `grpc.health.v1.Health`.
    Health,
    /// Reflection and unknown services.
    Other,
}

/// The gRPC method of a request: an index into [`METHODS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct RpcMethod(usize);

/// Counts of answered requests by service and code, and their latencies by service and method. A
/// stream counts once, with the code and the latency of its start.
#[derive(Debug, Default)]
pub struct RequestCounters {
    counts: [[AtomicU64; CODES.len()]; RpcService::ALL.len()],
    latencies: [LatencyHistogram; METHODS.len()],
}

/// The latencies of one kind of requests.
#[derive(Debug, Default)]
pub(in crate::server) struct LatencyHistogram {
    /// Requests by bucket, not cumulative.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    /// Sum of all latencies, in nanoseconds.
    sum: AtomicU64,
}

/// The latencies of the requests to one method.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestDurations {
    /// Short name of the service, such as `policies`.
    pub service: &'static str,
    /// Name of the method, or `other`.
    pub method: &'static str,
    /// Sum of all latencies, in seconds.
    pub sum: f64,
    /// Upper bound of each bucket in seconds, and the number of requests in it, not cumulative. The
    /// bound of the last bucket is `f64::INFINITY`.
    pub buckets: Vec<(f64, u64)>,
}

impl RpcService {
    const ALL: [Self; 5] = [
        Self::Policies,
        Self::Insight,
        Self::Envoy,
        Self::Health,
        Self::Other,
    ];

    /// Returns the service of a request path `/{service}/{method}`.
    fn of(path: &str) -> Self {
        match path.split('/').nth(1) {
            Some("entail.v1.EffectivePolicyService") => Self::Policies,
            Some("entail.v1.PolicyInsightService") => Self::Insight,
            Some("envoy.service.auth.v3.Authorization") => Self::Envoy,
            Some("grpc.health.v1.Health") => Self::Health,
            _ => Self::Other,
        }
    }

    /// Returns the value of the label `service`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::Insight => "insight",
            Self::Envoy => "envoy",
            Self::Health => "health",
            Self::Other => "other",
        }
    }
}

impl RpcMethod {
    /// `GetEffectivePolicies`, known without a search for the fast path.
    pub const GET: Self = Self(0);
    /// A method of an unknown service.
    pub const UNKNOWN: Self = Self(METHODS.len() - 1);

    /// Returns the method of a request path `/{service}/{method}`.
    pub fn of(path: &str) -> Self {
        let service = RpcService::of(path);
        let method = path.split('/').nth(2).unwrap_or_default();
        // The entry `other` is the last one of its service.
        let position = METHODS.iter().position(|(entry_service, name)| {
            *entry_service == service && (*name == method || *name == OTHER)
        });
        Self(position.unwrap_or(METHODS.len() - 1))
    }

    /// Returns the service of the method.
    pub fn service(self) -> RpcService {
        METHODS
            .get(self.0)
            .map_or(RpcService::Other, |(service, _)| *service)
    }

    /// Reports whether the method is a stream that ends only with its caller.
    pub fn is_watch(self) -> bool {
        matches!(self.name(), "WatchEffectivePolicies" | "Watch")
    }

    /// Reports whether a reply may have several messages; also of unknown methods.
    pub fn is_stream(self) -> bool {
        self.is_watch() || self.service() == RpcService::Other
    }

    /// Says how urgent a request is that is not answered at once.
    pub fn priority(self) -> Priority {
        match (self.service(), self.name()) {
            (RpcService::Insight | RpcService::Other, _) | (_, "BatchGetEffectivePolicies") => {
                Priority::Low
            }
            _ => Priority::Usual,
        }
    }

    /// Returns the maximum length of a message, in bytes, where `limit` is that of any.
    pub fn max_message(self, limit: usize) -> usize {
        match (self.service(), self.name()) {
            (RpcService::Health, _) => limit.min(PROBE_REQUEST_BYTES),
            (RpcService::Policies, "BatchGetEffectivePolicies") => limit,
            (RpcService::Policies, _) => limit.min(SMALL_MESSAGE),
            _ => limit,
        }
    }

    /// Returns the value of the label `method`.
    pub fn name(self) -> &'static str {
        METHODS.get(self.0).map_or(OTHER, |(_, name)| *name)
    }
}

impl RequestCounters {
    /// Records an answered request.
    ///
    /// Costs three relaxed additions and a search among 19 bounds, some 10 ns without contention;
    /// with the two clock reads of the caller about 60 ns.
    pub(in crate::server) fn record(&self, method: RpcMethod, code: Code, latency: Duration) {
        let counts = self.counts.get(method.service() as usize);
        if let Some(count) = counts.and_then(|counts| counts.get(code as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(histogram) = self.latencies.get(method.0) {
            histogram.observe(latency);
        }
    }

    /// Returns the counts that are not zero: service, code, number of requests.
    pub fn counts(&self) -> Vec<(&'static str, &'static str, u64)> {
        let services = RpcService::ALL.iter().zip(&self.counts);
        let counts = services.flat_map(|(service, counts)| {
            let codes = CODES.iter().zip(counts);
            codes.map(|(code, count)| (service.name(), *code, count.load(Ordering::Relaxed)))
        });
        counts.filter(|(_, _, count)| *count > 0).collect()
    }

    /// Returns the latencies of the methods that have been called.
    pub fn durations(&self) -> Vec<RequestDurations> {
        let methods = METHODS.iter().zip(&self.latencies);
        let durations = methods.map(|(&(service, method), histogram)| RequestDurations {
            service: service.name(),
            method,
            sum: histogram.sum(),
            buckets: histogram.buckets(),
        });
        durations
            .filter(|durations| durations.count() > 0)
            .collect()
    }
}

impl RequestDurations {
    /// Returns the number of requests.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }
}

impl LatencyHistogram {
    pub fn observe(&self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS.partition_point(|bound| *bound < nanos);
        if let Some(count) = self.buckets.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }

    /// The sum of all latencies, in seconds.
    pub fn sum(&self) -> f64 {
        Duration::from_nanos(self.sum.load(Ordering::Relaxed)).as_secs_f64()
    }

    /// The upper bound of each bucket in seconds, and the number of requests in it.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS
            .iter()
            .map(|nanos| Duration::from_nanos(*nanos).as_secs_f64());
        let counts = self.buckets.iter();
        bounds
            .chain([f64::INFINITY])
            .zip(counts.map(|count| count.load(Ordering::Relaxed)))
            .collect()
    }
}

/// Returns the gRPC code in the headers of a reply, where replies without a message have it; OK for
/// replies with a message.
pub(in crate::server) fn code(headers: &HeaderMap) -> Code {
    let code = headers.get("grpc-status").map(HeaderValue::as_bytes);
    code.map_or(Code::Ok, Code::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";

    #[test]
    fn requests_are_counted_by_service_and_code() {
        let request_counters = RequestCounters::default();
        let record = |path, code| {
            request_counters.record(RpcMethod::of(path), code, Duration::from_micros(7));
        };
        record(GET, Code::Ok);
        record(GET, Code::NotFound);
        record("/grpc.health.v1.Health/Check", Code::Ok);
        record("nonsense", Code::Unauthenticated);
        let expected = [
            ("policies", "OK", 1),
            ("policies", "NOT_FOUND", 1),
            ("health", "OK", 1),
            ("other", "UNAUTHENTICATED", 1),
        ];
        assert_eq!(request_counters.counts(), expected);
    }

    #[test]
    fn every_method_of_the_api_has_a_histogram() {
        assert_eq!(RpcMethod::of(GET), RpcMethod::GET);
        for service in ["EffectivePolicyService", "PolicyInsightService"] {
            let set = crate::api::descriptors(false);
            let set: prost_types::FileDescriptorSet = prost::Message::decode(&*set).unwrap();
            let services = set.file.iter().flat_map(|file| &file.service);
            let declared = services.filter(|declared| declared.name() == service);
            let methods: Vec<_> = declared.flat_map(|declared| &declared.method).collect();
            assert!(!methods.is_empty());
            for method in methods {
                let path = format!("/entail.v1.{service}/{}", method.name());
                assert_eq!(RpcMethod::of(&path).name(), method.name());
            }
        }
    }

    #[test]
    fn unknown_methods_share_one_histogram_per_service() {
        for (path, service) in [
            ("/entail.v1.EffectivePolicyService/Nope", "policies"),
            ("/entail.v1.PolicyInsightService/Check", "insight"),
            ("/envoy.service.auth.v3.Authorization/", "envoy"),
            ("/grpc.health.v1.Health", "health"),
            ("/nobody/GetEffectivePolicies", "other"),
            ("", "other"),
        ] {
            let method = RpcMethod::of(path);
            assert_eq!((method.service().name(), method.name()), (service, OTHER));
        }
    }

    #[test]
    fn a_latency_is_counted_in_the_bucket_of_its_upper_bound() {
        let request_counters = RequestCounters::default();
        let latencies = [
            Duration::ZERO,
            Duration::from_micros(10),
            Duration::from_nanos(10_001),
            Duration::from_millis(1),
            Duration::from_secs(3600),
        ];
        for latency in latencies {
            request_counters.record(RpcMethod::GET, Code::Ok, latency);
        }
        let durations = request_counters.durations();
        assert_eq!(durations.len(), 1);
        let durations = &durations[0];
        assert_eq!(
            (durations.service, durations.method),
            ("policies", "GetEffectivePolicies")
        );
        let filled: Vec<_> = durations.buckets.iter().filter(|b| b.1 > 0).collect();
        let expected = [
            (0.000_01, 2),
            (0.000_025, 1),
            (0.001, 1),
            (f64::INFINITY, 1),
        ];
        assert_eq!(filled, expected.iter().collect::<Vec<_>>());
        assert_eq!(durations.count(), 5);
        assert!((durations.sum - 3_600.001_020_001).abs() < 1e-9);
    }

    #[test]
    fn the_bounds_are_sorted() {
        assert!(BOUNDS.is_sorted());
    }
}
