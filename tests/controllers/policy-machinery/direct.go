package main

import (
	"encoding/json"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/kuadrant/policy-machinery/machinery"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// listenerAnswer is what applies to one listener.
type listenerAnswer struct {
	Gateway  string `json:"gateway"`
	Listener string `json:"listener"`
	Kind     string `json:"kind"`
	// Policies are the accepted policies that cover the listener.
	Policies []string `json:"policies"`
	// Passed is why the operator passes over the listener; empty if it does not.
	Passed string `json:"passed"`
}

// directAnswers finds the policies of the direct kinds on each listener.
func directAnswers(topology *machinery.Topology, objects *objects) []listenerAnswer {
	answers := []listenerAnswer{}
	for _, target := range topology.Targetables().Items(isA[*machinery.Listener]) {
		listener := target.(*machinery.Listener)
		for _, kind := range directKinds {
			covering := ofKind(listener.Policies(), kind)
			if len(covering) == 0 {
				covering = ofKind(listener.Gateway.Policies(), kind)
			}
			answer := listenerAnswer{
				Gateway:  listener.Gateway.Namespace + "/" + listener.Gateway.Name,
				Listener: string(listener.Name), Kind: kind.name, Policies: []string{},
				Passed: passedOver(listener, kind),
			}
			for _, policy := range covering {
				if notDeleted(policy) && acceptance(topology, objects, policy) == accepted {
					answer.Policies = append(answer.Policies, policy.id())
				}
			}
			slices.Sort(answer.Policies)
			answers = append(answers, answer)
		}
	}
	slices.SortFunc(answers, func(a, b listenerAnswer) int {
		return strings.Compare(a.Gateway+"#"+a.Listener+"#"+a.Kind, b.Gateway+"#"+b.Listener+"#"+b.Kind)
	})
	return answers
}

func ofKind(policies []machinery.Policy, kind *policyKind) []*policy {
	var found []*policy
	for _, attached := range policies {
		if policy := attached.(*policy); policy.kind == kind {
			found = append(found, policy)
		}
	}
	return found
}

// passedOver returns why a kind does nothing on a listener.
func passedOver(listener *machinery.Listener, kind *policyKind) string {
	switch {
	case listener.Hostname == nil || *listener.Hostname == "":
		return "no-hostname"
	case kind == dnsPolicy:
		return ""
	case listener.TLS == nil || len(listener.TLS.CertificateRefs) == 0:
		return "no-certificate"
	case listener.TLS.Mode == nil || *listener.TLS.Mode != gwapiv1.TLSModeTerminate:
		return "not-terminated"
	default:
		return ""
	}
}

// The words for the acceptance of a policy.
const (
	accepted       = "Accepted"
	targetNotFound = "TargetNotFound"
	conflicted     = "Conflicted"
	invalid        = "Invalid"
)

// acceptance returns the reason of the condition Accepted.
func acceptance(topology *machinery.Topology, objects *objects, policy *policy) string {
	if len(topology.Targetables().Children(policy)) == 0 {
		return targetNotFound
	}
	if !slices.Contains(directKinds, policy.kind) {
		return accepted
	}
	for _, other := range objects.policies {
		if other != policy && other.kind == policy.kind && notDeleted(other) &&
			other.CreationTimestamp.Before(&policy.CreationTimestamp) &&
			reflect.DeepEqual(other.GetTargetRefs(), policy.GetTargetRefs()) {
			return conflicted
		}
	}
	if !policy.valid(objects) {
		return invalid
	}
	return accepted
}

// valid checks what the operator checks beside references: the networks of a DNSPolicy, and the issuer of a TLSPolicy.
func (p *policy) valid(objects *objects) bool {
	switch p.kind {
	case dnsPolicy:
		var addresses []string
		if err := json.Unmarshal(orNull(p.spec["excludeAddresses"]), &addresses); err != nil {
			return false
		}
		return !slices.ContainsFunc(addresses, func(address string) bool {
			_, _, err := net.ParseCIDR(address)
			return strings.Contains(address, "/") && err != nil
		})
	case tlsPolicy:
		var issuer struct{ Kind, Name string }
		if err := json.Unmarshal(orNull(p.spec["issuerRef"]), &issuer); err != nil {
			return false
		}
		if issuer.Kind == "" {
			issuer.Kind = "Issuer"
		}
		return objects.issuers[issuerKey(issuer.Kind, p.Namespace, issuer.Name)]
	default:
		return true
	}
}
