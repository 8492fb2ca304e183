package main

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/kuadrant/policy-machinery/machinery"
	"github.com/samber/lo"
)

// variant is what may be left out of the library's ordinary work, to see what it costs, and whether
// the paths come from one walk instead of the library's own search.
type variant struct {
	services, loopCheck, walk bool
}

// answer is one path and what is in effect at its end; no policy where none is on the path.
type answer struct {
	path   []machinery.Targetable
	policy *TestPolicy
}

// outcome is all answers, and how long each step took.
type outcome struct {
	answers                []answer
	topology, paths, merge time.Duration
}

// compute does the three steps. time.Now carries a monotonic reading, which is what Sub uses.
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

// build takes the options that the library's own controller builds its topology with, but for
// GRPCRoutes, of which there are none.
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

// enumerate asks for the paths from each class to each rule, one pair at a time, as controllers
// that are written with the library do.
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

// walkDown finds the same paths by visiting each node once a path. No controller is known to do it;
// it tells what the library's search costs beside its graph.
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

// effective folds the policies of a path from the most specific to the least.
func effective(path []machinery.Targetable) *TestPolicy {
	policies := policiesOn(path)
	if len(policies) == 0 {
		return nil
	}
	// The fold begins with the most specific policy and meets it once more: with itself it merges to
	// itself, and gains its origins that way.
	last := policies[len(policies)-1]
	folded := lo.ReduceRight(policies, func(below, policy machinery.Policy, _ int) machinery.Policy {
		return below.Merge(policy)
	}, last)
	return folded.(*TestPolicy)
}

// policiesOn is the policies of a path from the least specific to the most; on one node by age.
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
