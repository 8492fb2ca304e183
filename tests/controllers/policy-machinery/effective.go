package main

import (
	"slices"
	"sort"
	"strings"

	"github.com/kuadrant/policy-machinery/controller"
	"github.com/kuadrant/policy-machinery/machinery"
)

// pathAnswer is the effective policy of one kind on one path.
type pathAnswer struct {
	pathKey
	Kind string `json:"kind"`
	// Rules are the rules of the effective policy by their place, as in [policy].
	Rules map[string]rule `json:"rules"`
	// Attached are the policies of the kind on the path, from the least to the most specific.
	Attached []string `json:"attached"`
	// Unconfigured lists why the operator configures the gateway otherwise than the effective policy has it.
	Unconfigured []string `json:"unconfigured"`
}

// pathKey names a path down to a rule.
type pathKey struct {
	Gateway   string `json:"gateway"`
	Listener  string `json:"listener"`
	RouteKind string `json:"route_kind"`
	Route     string `json:"route"`
	Rule      int    `json:"rule"`
}

// requestPath is one path of the topology from a GatewayClass to a rule.
type requestPath struct {
	nodes    []machinery.Targetable
	class    *machinery.GatewayClass
	gateway  *machinery.Gateway
	listener *machinery.Listener
	route    route
}

// effective is an effective policy with the path that it is for.
type effective struct {
	path     *requestPath
	policy   *policy
	attached []*policy
}

// sources are the policies that the rules come from.
func (e *effective) sources() []string {
	var sources []string
	for _, rule := range e.policy.rules {
		sources = append(sources, rule.Source)
	}
	slices.Sort(sources)
	return slices.Compact(sources)
}

// effectiveSet holds the effective policies of all paths.
type effectiveSet struct {
	paths  []*requestPath
	byKind map[*policyKind][]*effective
}

// effectivePolicies computes the effective policy of each merged kind on each path.
func effectivePolicies(topology *machinery.Topology) *effectiveSet {
	set := &effectiveSet{paths: requestPaths(topology), byKind: map[*policyKind][]*effective{}}
	for _, kind := range mergedKinds {
		for _, path := range set.paths {
			if kind.httpOnly && path.route.kind != "HTTPRoute" {
				continue
			}
			if policy := effectiveOn(path, kind); policy != nil {
				attached := policiesOn(path, kind, notDeleted)
				set.byKind[kind] = append(set.byKind[kind], &effective{path, policy, attached})
			}
		}
	}
	return set
}

// effectiveOn merges the policies of a kind on a path, from the most to the least specific.
func effectiveOn(path *requestPath, kind *policyKind) *policy {
	policies := policiesOn(path, kind, notDeleted)
	if len(policies) == 0 {
		return nil
	}
	var merged machinery.Policy = policies[len(policies)-1]
	for _, policy := range slices.Backward(policies) {
		merged = merged.Merge(policy)
	}
	return merged.(*policy)
}

// policiesOn returns the policies of a kind that are attached to a path, from the least to the most specific. On one
// target they are in the order of the library.
func policiesOn(path *requestPath, kind *policyKind, keep func(*policy) bool) []*policy {
	var found []*policy
	for _, node := range path.nodes {
		var here []controller.Object
		for _, attached := range node.Policies() {
			if policy := attached.(*policy); policy.kind == kind && keep(policy) {
				here = append(here, policy)
			}
		}
		sort.Sort(controller.ObjectsByCreationTimestamp(here))
		for _, object := range here {
			found = append(found, object.(*policy))
		}
	}
	return found
}

// notDeleted reports whether a policy is not being deleted. The operator passes over the others.
func notDeleted(p *policy) bool { return p.DeletionTimestamp == nil }

// requestPaths returns the paths from every GatewayClass to every rule of an HTTPRoute or a GRPCRoute.
func requestPaths(topology *machinery.Topology) []*requestPath {
	var paths []*requestPath
	targetables := topology.Targetables()
	for _, class := range targetables.Items(isA[*machinery.GatewayClass]) {
		for _, rule := range targetables.Items(isRule) {
			for _, nodes := range targetables.Paths(class, rule) {
				paths = append(paths, &requestPath{
					nodes:    nodes,
					class:    nodes[0].(*machinery.GatewayClass),
					gateway:  nodes[1].(*machinery.Gateway),
					listener: nodes[2].(*machinery.Listener),
					route:    routeOf(nodes[3], nodes[4]),
				})
			}
		}
	}
	slices.SortFunc(paths, func(a, b *requestPath) int { return strings.Compare(a.locators(), b.locators()) })
	// Two parentRefs of a route may name the same listener.
	return slices.CompactFunc(paths, func(a, b *requestPath) bool { return a.locators() == b.locators() })
}

func isA[T machinery.Object](object machinery.Object) bool {
	_, ok := object.(T)
	return ok
}

func isRule(object machinery.Object) bool {
	return isA[*machinery.HTTPRouteRule](object) || isA[*machinery.GRPCRouteRule](object)
}

// locators is a text that distinguishes a path from every other.
func (p *requestPath) locators() string {
	var parts []string
	for _, node := range p.nodes {
		parts = append(parts, node.GetLocator())
	}
	return strings.Join(parts, "|")
}

// id is the key under which the operator keeps what it computed for the path. It holds no kinds.
func (p *requestPath) id() string {
	var parts []string
	for _, node := range p.nodes {
		parts = append(parts, node.GetNamespace()+"/"+node.GetName())
	}
	return strings.Join(parts, "|")
}

func (p *requestPath) key() pathKey {
	return pathKey{
		Gateway:   p.gateway.GetNamespace() + "/" + p.gateway.GetName(),
		Listener:  string(p.listener.Name),
		RouteKind: p.route.kind,
		Route:     p.route.namespace + "/" + p.route.name,
		Rule:      p.route.rule,
	}
}

// answers returns the effective policies in a form for the other side.
func (s *effectiveSet) answers() []pathAnswer {
	config := s.configuration()
	answers := []pathAnswer{}
	for _, kind := range mergedKinds {
		for _, effective := range s.byKind[kind] {
			answer := pathAnswer{
				pathKey: effective.path.key(), Kind: kind.name, Rules: effective.policy.rules,
				Unconfigured: config.reasons(kind, effective),
			}
			for _, policy := range effective.attached {
				answer.Attached = append(answer.Attached, policy.id())
			}
			answers = append(answers, answer)
		}
	}
	return answers
}
