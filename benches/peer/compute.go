package main

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/kuadrant/policy-machinery/machinery"
	"github.com/samber/lo"
)

// variant selects optional work of the library, to measure its cost, and whether paths are enumerated
// by one walk instead of by the search of the library.
type variant struct {
	services, loopCheck, walk bool
}

// answer is a path and its effective policy; nil if no policy is attached on the path.
type answer struct {
	path   []machinery.Targetable
	policy *TestPolicy
}

// outcome contains all answers and the duration of each step.
type outcome struct {
	answers                []answer
	topology, paths, merge time.Duration
}

// compute runs the three steps.
func compute(w *world, v variant) (outcome, error) {
	start := time.Now()
	topology, err := build(w, v)
	if err != nil {
		return outcome{}, err
	}
	built := time.Now()
	paths := enumerate(topology, v.walk)
	enumerated := time.Now()
	answers := make([]answer, len(paths))
	for i, path := range paths {
		answers[i] = answer{path: path, policy: effective(path)}
	}
	merged := time.Now()
	return outcome{
		answers:  answers,
		topology: built.Sub(start),
		paths:    enumerated.Sub(built),
		merge:    merged.Sub(enumerated),
	}, nil
}

// build creates the topology with the options of the library's own controller, without GRPCRoutes,
// which the world does not contain.
func build(w *world, v variant) (*machinery.Topology, error) {
	options := []machinery.GatewayAPITopologyOptionsFunc{
		machinery.WithGatewayClasses(w.class),
		machinery.WithGateways(w.gateways...),
		machinery.WithHTTPRoutes(w.routes...),
		machinery.ExpandGatewayListeners(),
		machinery.ExpandHTTPRouteRules(),
		machinery.WithGatewayAPITopologyPolicies(lo.Map(w.policies, func(p *TestPolicy, _ int) machinery.Policy {
			return p
		})...),
	}
	if v.services {
		options = append(options, machinery.WithServices(w.services...), machinery.ExpandServicePorts())
	}
	if !v.loopCheck {
		options = append(options, machinery.AllowTopologyLoops())
	}
	topology, err := machinery.NewGatewayAPITopology(options...)
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	return topology, nil
}

// enumerate searches the paths from each class to each rule, one pair at a time, as controllers that
// use the library do.
func enumerate(topology *machinery.Topology, walk bool) [][]machinery.Targetable {
	targetables := topology.Targetables()
	classes := targetables.Items(isA[*machinery.GatewayClass])
	var paths [][]machinery.Targetable
	if walk {
		for _, class := range classes {
			paths = walkDown(topology, []machinery.Targetable{class}, paths)
		}
		return paths
	}
	rules := targetables.Items(isA[*machinery.HTTPRouteRule])
	for _, class := range classes {
		for _, rule := range rules {
			paths = append(paths, targetables.Paths(class, rule)...)
		}
	}
	return paths
}

// walkDown finds the same paths by visiting each node once per path. No known controller does this; it
// separates the cost of the library's search from that of its graph.
func walkDown(topology *machinery.Topology, path []machinery.Targetable, paths [][]machinery.Targetable) [][]machinery.Targetable {
	last := path[len(path)-1]
	if isA[*machinery.HTTPRouteRule](last) {
		return append(paths, slices.Clone(path))
	}
	for _, child := range topology.Targetables().Children(last) {
		paths = walkDown(topology, append(path, child), paths)
	}
	return paths
}

func isA[T machinery.Object](object machinery.Object) bool {
	_, ok := object.(T)
	return ok
}

// effective merges the policies of a path from the most specific to the least specific.
func effective(path []machinery.Targetable) *TestPolicy {
	policies := policiesOn(path)
	if len(policies) == 0 {
		return nil
	}
	// The most specific policy is first merged with itself, which does not change its rules and sets
	// their origins.
	last := policies[len(policies)-1]
	folded := lo.ReduceRight(policies, func(below, policy machinery.Policy, _ int) machinery.Policy {
		return below.Merge(policy)
	}, last)
	return folded.(*TestPolicy)
}

// policiesOn returns the policies of a path from the least to the most specific; on one node by age.
func policiesOn(path []machinery.Targetable) []machinery.Policy {
	return lo.FlatMap(path, func(node machinery.Targetable, _ int) []machinery.Policy {
		policies := lo.Filter(node.Policies(), func(p machinery.Policy, _ int) bool {
			_, ok := p.(*TestPolicy)
			return ok
		})
		sort.SliceStable(policies, func(i, j int) bool {
			a, b := policies[i].(*TestPolicy), policies[j].(*TestPolicy)
			return a.CreationTimestamp.Before(&b.CreationTimestamp)
		})
		return policies
	})
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}
