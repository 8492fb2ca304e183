//! Words that are in most objects, which encoded values name by number.

use std::sync::LazyLock;

use hashbrown::HashMap;

/// Sorted for readers. Only the memory of the process has these numbers, so words can be added.
#[rustfmt::skip]
pub(super) const WORDS: [&str; 193] = [
    "Accepted", "All", "Cluster", "ClusterIP", "DELETE", "Enforced", "Exact", "ExtensionRef", "False", "GET",
    "GRPCRoute", "Gateway", "GatewayClass", "HEAD", "HTTP", "HTTPRoute", "HTTPS", "IPv4", "ListenerSet",
    "Namespace", "None", "OPTIONS", "PATCH", "POST", "PUT", "Passthrough", "PathPrefix", "Programmed",
    "ReferenceGrant", "RegularExpression", "RequestHeaderModifier", "RequestMirror", "RequestRedirect",
    "ResolvedRefs", "ResponseHeaderModifier", "Same", "Selector", "Service", "ServiceImport", "SingleStack",
    "TCP", "TCPRoute", "TLS", "TLSRoute", "Terminate", "True", "UDP", "UDPRoute", "URLRewrite", "action",
    "actions", "add", "addresses", "allowedRoutes", "ancestorRef", "ancestors", "annotations", "apiVersion",
    "app", "app.kubernetes.io/name", "appProtocol", "attachedRoutes", "attempts", "backendRef", "backendRefs",
    "backendRequest", "certificateRefs", "clusterIP", "clusterIPs", "condition", "conditions", "config",
    "controller", "controllerName", "counters", "creationTimestamp", "default", "default-backend", "defaults",
    "deletionTimestamp", "enabled", "exclude", "expression", "extensionRef", "externalTrafficPolicy",
    "filters", "finalizers", "from", "gateway.networking.k8s.io", "gateway.networking.k8s.io/v1",
    "gateway.networking.k8s.io/v1alpha2", "gateway.networking.k8s.io/v1beta1", "gatewayClassName",
    "generation", "group", "headers", "host", "hostname", "hostnames", "hosts", "http", "https", "include",
    "infrastructure", "internalTrafficPolicy", "interval", "ipFamilies", "ipFamilyPolicy", "key", "keys",
    "kind", "kinds", "kubernetes.io/metadata.name", "labels", "lastTransitionTime", "limit", "limits",
    "listeners", "loadBalancer", "match", "matchExpressions", "matchLabels", "matches", "message", "metadata",
    "method", "mode", "name", "namespace", "namespaces", "nodePort", "observedGeneration", "operator",
    "overrides", "ownerReferences", "parametersRef", "parentRef", "parentRefs", "parents", "path", "port",
    "ports", "predicate", "protocol", "queryParams", "rates", "reason", "remove", "replaceFullPath",
    "replacePrefixMatch", "request", "requestHeaderModifier", "requestMirror", "requestRedirect", "requests",
    "response", "responseHeaderModifier", "retry", "rule", "rules", "scheme", "sectionName", "selector",
    "service", "sessionAffinity", "set", "spec", "status", "statusCode", "strategy", "supportedKinds",
    "targetPort", "targetRef", "targetRefs", "targetSelectors", "timeout", "timeouts", "tls", "to", "type",
    "uid", "unit", "urlRewrite", "v1", "v1alpha1", "v1alpha2", "v1alpha3", "v1beta1", "value", "values",
    "weight", "when", "window",
];

/// The number of a word that is in the list. Each text and each name of a field of each object is looked for.
pub(super) fn number(text: &str) -> Option<u64> {
    static NUMBERS: LazyLock<HashMap<&str, u64>> =
        LazyLock::new(|| WORDS.into_iter().zip(0..).collect());
    NUMBERS.get(text).copied()
}

/// The word with a number.
pub(super) fn word(number: u64) -> Option<&'static str> {
    WORDS.get(usize::try_from(number).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_has_a_number() {
        assert!(WORDS.is_sorted());
        for (text, expected) in WORDS.iter().zip(0..) {
            assert_eq!(number(text), Some(expected));
            assert_eq!(word(expected), Some(*text));
        }
        assert_eq!(number("no-such-word"), None);
        assert_eq!(word(WORDS.len() as u64), None);
    }
}
