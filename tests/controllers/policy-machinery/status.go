package main

import (
	"slices"

	"github.com/kuadrant/policy-machinery/machinery"
)

// policyStatus is the status that the operator writes to a policy.
type policyStatus struct {
	Kind   string `json:"kind"`
	Policy string `json:"policy"`
	// Accepted is the reason of the condition Accepted.
	Accepted string `json:"accepted"`
	// Enforced is one of the words below; empty for policies without the condition and for kinds without merge.
	Enforced string `json:"enforced"`
	// OverriddenBy is set with Overridden.
	OverriddenBy []string `json:"overridden_by"`
	// Ready is the number of paths that the status takes into account.
	Ready int `json:"ready"`
}

// The words for the condition Enforced.
const (
	fullyEnforced  = "Fully"
	partlyEnforced = "Partly"
	overridden     = "Overridden"
	noRoutes       = "NoRoutes"
	// partlyRefused is False for a policy that lost some of its rules.
	partlyRefused = "PartlyRefused"
	// outOfSync is False because the operator does not configure a gateway that the policy has rules on.
	outOfSync = "OutOfSync"
)

// statuses computes the status of every policy that is not being deleted.
func statuses(topology *machinery.Topology, objects *objects, set *effectiveSet) []policyStatus {
	found := []policyStatus{}
	for _, policy := range objects.policies {
		if !notDeleted(policy) {
			continue
		}
		status := policyStatus{
			Kind: policy.kind.name, Policy: policy.id(), Accepted: acceptance(topology, objects, policy),
		}
		if status.Accepted == accepted && slices.Contains(mergedKinds, policy.kind) {
			set.enforcement(policy, &status)
		}
		found = append(found, status)
	}
	return found
}

// enforcement finds the rules of a policy in the effective policies of its paths.
func (s *effectiveSet) enforcement(subject *policy, status *policyStatus) {
	var overriding []string
	var gateways []*requestPath
	lost := false
	for _, effective := range s.configuration().effective[subject.kind] {
		path := effective.path
		self := policiesOn(path, subject.kind, func(other *policy) bool { return other == subject })
		// The operator checks hostnames before it looks at statuses, except for TokenRateLimitPolicy.
		skipped := subject.kind != tokenRateLimitPolicy && len(path.hostnames()) == 0
		if len(self) == 0 || skipped || !path.ready() {
			continue
		}
		status.Ready++
		for key := range subject.rules {
			rule, ok := effective.policy.rules[key]
			switch {
			case ok && rule.Source == subject.id():
				gateways = append(gateways, path)
				continue
			case ok:
				overriding = append(overriding, rule.Source)
			case subject.kind == tokenRateLimitPolicy:
				for _, attached := range effective.attached {
					overriding = append(overriding, attached.id())
				}
			default:
				overriding = append(overriding, effective.sources()...)
			}
			lost = true
		}
	}
	foreign := slices.ContainsFunc(gateways, func(path *requestPath) bool {
		return !slices.Contains(gatewayControllers, string(path.class.Spec.ControllerName))
	})
	switch {
	case len(gateways) == 0 && !lost:
		status.Enforced = noRoutes
	case len(gateways) == 0:
		slices.Sort(overriding)
		status.Enforced, status.OverriddenBy = overridden, slices.Compact(overriding)
	case lost && subject.kind == tokenRateLimitPolicy:
		status.Enforced = partlyRefused
	case foreign:
		status.Enforced = outOfSync
	case lost:
		status.Enforced = partlyEnforced
	default:
		status.Enforced = fullyEnforced
	}
}
