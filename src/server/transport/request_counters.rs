//! Requests by service and code, counted without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderValue};
use tonic::Code;

/// The codes of gRPC, in order.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum RpcService {
    /// Effective policies, for data planes.
    Policies,
    /// Answers for people.
    Insight,
    /// Requests that Envoy asks about.
    Envoy,
    /// Health.
    Health,
    /// Reflection, and what is no service of ours.
    Other,
}

/// How many requests were answered, by service and code. A stream counts by how it begins.
#[derive(Debug, Default)]
pub struct RequestCounters {
    counts: [[AtomicU64; CODES.len()]; RpcService::ALL.len()],
}

impl RpcService {
    const ALL: [Self; 5] = [
        Self::Policies,
        Self::Insight,
        Self::Envoy,
        Self::Health,
        Self::Other,
    ];

    /// The service that a URL's path names.
    pub fn of(path: &str) -> Self {
        match path.split('/').nth(1) {
            Some("entail.v1.EffectivePolicyService") => Self::Policies,
            Some("entail.v1.PolicyInsightService") => Self::Insight,
            Some("envoy.service.auth.v3.Authorization") => Self::Envoy,
            Some("grpc.health.v1.Health") => Self::Health,
            _ => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Policies => "policies",
            Self::Insight => "insight",
            Self::Envoy => "envoy",
            Self::Health => "health",
            Self::Other => "other",
        }
    }
}

impl RequestCounters {
    /// Takes note of an answer.
    pub(in crate::server) fn record(&self, service: RpcService, code: Code) {
        let counts = self.counts.get(service as usize);
        if let Some(count) = counts.and_then(|counts| counts.get(code as usize)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// All that happened: service, code, how often.
    pub fn counts(&self) -> Vec<(&'static str, &'static str, u64)> {
        let services = RpcService::ALL.iter().zip(&self.counts);
        let counts = services.flat_map(|(service, counts)| {
            let codes = CODES.iter().zip(counts);
            codes.map(|(code, count)| (service.name(), *code, count.load(Ordering::Relaxed)))
        });
        counts.filter(|(_, _, count)| *count > 0).collect()
    }
}

/// The code that a reply's headers tell: replies without a message have it there.
pub(in crate::server) fn code(headers: &HeaderMap) -> Code {
    let code = headers.get("grpc-status").map(HeaderValue::as_bytes);
    code.map_or(Code::Ok, Code::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_service_and_code() {
        let request_counters = RequestCounters::default();
        let path = "/entail.v1.EffectivePolicyService/GetEffectivePolicies";
        request_counters.record(RpcService::of(path), Code::Ok);
        request_counters.record(RpcService::of(path), Code::NotFound);
        request_counters.record(RpcService::of("/grpc.health.v1.Health/Check"), Code::Ok);
        request_counters.record(RpcService::of("nonsense"), Code::Unauthenticated);
        let told = [
            ("policies", "OK", 1),
            ("policies", "NOT_FOUND", 1),
            ("health", "OK", 1),
            ("other", "UNAUTHENTICATED", 1),
        ];
        assert_eq!(request_counters.counts(), told);
    }

    #[test]
    fn codes_have_their_numbers() {
        for (number, name) in CODES.iter().enumerate() {
            let code = Code::from_i32(i32::try_from(number).unwrap());
            let debug = format!("{code:?}").to_uppercase();
            assert_eq!(debug, name.replace('_', ""), "{number}");
        }
    }
}
