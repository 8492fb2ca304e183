package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1alpha2 "sigs.k8s.io/gateway-api/apis/v1alpha2"
)

const (
	namespace = "default"
	className = "bench"
	// ruleKeys is the number of rule names, and keysEach the number of rules per policy: with half
	// of the names, two policies usually share some rules and differ in others.
	ruleKeys = 16
	keysEach = 8
)

// shape contains the number of objects of each kind.
type shape struct {
	gateways, listeners, routes, rules, policies int
}

// world contains all objects, as a controller has them after reading a cluster.
type world struct {
	class    *gwapiv1.GatewayClass
	gateways []*gwapiv1.Gateway
	routes   []*gwapiv1.HTTPRoute
	services []*core.Service
	policies []*TestPolicy
}

// target is a place for one policy.
type target struct {
	kind, name, section string
}

// form is one of the four ways in which a policy can offer its rules.
type form struct {
	overrides bool
	strategy  string
}

// clock returns creationTimestamps at intervals of one second, so that no two objects have the same.
type clock struct{ now time.Time }

func (c *clock) tick() metav1.Time {
	c.now = c.now.Add(time.Second)
	return metav1.NewTime(c.now)
}

func (c *clock) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: c.tick()}
}

// newWorld generates the world of a shape and seed; equal arguments give equal bytes.
func newWorld(s shape, seed uint64) (*world, error) {
	if s.gateways < 1 || s.listeners < 1 || s.routes < 1 || s.rules < 1 || s.policies < 0 {
		return nil, fmt.Errorf("gateways, listeners, routes and rules are at least 1: %+v", s)
	}
	c := &clock{now: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	w := &world{class: newClass(c)}
	for g := range s.gateways {
		w.gateways = append(w.gateways, newGateway(c, g, s.listeners))
	}
	for r := range s.routes {
		w.services = append(w.services, newService(c, routeName(r)))
		w.routes = append(w.routes, newRoute(c, r, s))
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	places, err := placesFor(rng, s)
	if err != nil {
		return nil, err
	}
	for i, place := range places {
		name := fmt.Sprintf("p%05d", i)
		w.policies = append(w.policies, newPolicy(rng, c.meta(name), place))
	}
	return w, nil
}

func gatewayName(g int) string  { return fmt.Sprintf("gw%d", g) }
func listenerName(l int) string { return fmt.Sprintf("l%d", l) }
func routeName(r int) string    { return fmt.Sprintf("route%05d", r) }
func ruleName(n int) string     { return fmt.Sprintf("r%d", n) }

func gatewayAPI(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gwapiv1.GroupVersion.String(), Kind: kind}
}

func newClass(c *clock) *gwapiv1.GatewayClass {
	return &gwapiv1.GatewayClass{
		TypeMeta:   gatewayAPI("GatewayClass"),
		ObjectMeta: metav1.ObjectMeta{Name: className, CreationTimestamp: c.tick()},
		Spec:       gwapiv1.GatewayClassSpec{ControllerName: "bench.example.com/controller"},
	}
}

func newGateway(c *clock, g, listeners int) *gwapiv1.Gateway {
	gateway := &gwapiv1.Gateway{
		TypeMeta:   gatewayAPI("Gateway"),
		ObjectMeta: c.meta(gatewayName(g)),
		Spec:       gwapiv1.GatewaySpec{GatewayClassName: className},
	}
	for l := range listeners {
		gateway.Spec.Listeners = append(gateway.Spec.Listeners, gwapiv1.Listener{
			Name:     gwapiv1.SectionName(listenerName(l)),
			Protocol: gwapiv1.HTTPProtocolType,
			Port:     gwapiv1.PortNumber(8000 + l),
		})
	}
	return gateway
}

func newService(c *clock, name string) *core.Service {
	return &core.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: c.meta(name),
		Spec:       core.ServiceSpec{Ports: []core.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
}

// newRoute attaches a route to one listener: routes are distributed over all listeners in turn.
func newRoute(c *clock, r int, s shape) *gwapiv1.HTTPRoute {
	slot := r % (s.gateways * s.listeners)
	listener := gwapiv1.SectionName(listenerName(slot % s.listeners))
	route := &gwapiv1.HTTPRoute{TypeMeta: gatewayAPI("HTTPRoute"), ObjectMeta: c.meta(routeName(r))}
	route.Spec.ParentRefs = []gwapiv1.ParentReference{{
		Name:        gwapiv1.ObjectName(gatewayName(slot / s.listeners)),
		SectionName: &listener,
	}}
	for n := range s.rules {
		route.Spec.Rules = append(route.Spec.Rules, newRule(r, n))
	}
	return route
}

func newRule(r, n int) gwapiv1.HTTPRouteRule {
	name, port := gwapiv1.SectionName(ruleName(n)), gwapiv1.PortNumber(80)
	prefix, path := gwapiv1.PathMatchPathPrefix, fmt.Sprintf("/%s/%s", routeName(r), ruleName(n))
	return gwapiv1.HTTPRouteRule{
		Name:    &name,
		Matches: []gwapiv1.HTTPRouteMatch{{Path: &gwapiv1.HTTPPathMatch{Type: &prefix, Value: &path}}},
		BackendRefs: []gwapiv1.HTTPBackendRef{{BackendRef: gwapiv1.BackendRef{
			BackendObjectReference: gwapiv1.BackendObjectReference{
				Name: gwapiv1.ObjectName(routeName(r)),
				Port: &port,
			},
		}}},
	}
}

// place is a target and how the policy on it offers its rules.
type place struct {
	target target
	form   form
}

// placesFor chooses targets from the four levels in turn until they are used up, so that the stacks of
// policies are as deep as possible.
func placesFor(rng *rand.Rand, s shape) ([]place, error) {
	levels := targets(s)
	all := 0
	for i, level := range levels {
		all += len(level)
		// One Gateway with an atomic override would make every answer below it the same.
		levels[i] = dealt(rng, level, i == 0)
	}
	if s.policies > all {
		return nil, fmt.Errorf("%d policies, but only %d targets", s.policies, all)
	}
	var places []place
	for len(places) < s.policies {
		for i, level := range levels {
			if len(level) > 0 && len(places) < s.policies {
				places = append(places, level[0])
				levels[i] = level[1:]
			}
		}
	}
	return places, nil
}

// targets lists Gateways, listeners, HTTPRoutes and rules.
func targets(s shape) [4][]place {
	var levels [4][]place
	put := func(level int, kind, name, section string) {
		levels[level] = append(levels[level], place{target: target{kind, name, section}})
	}
	for g := range s.gateways {
		put(0, "Gateway", gatewayName(g), "")
		for l := range s.listeners {
			put(1, "Gateway", gatewayName(g), listenerName(l))
		}
	}
	for r := range s.routes {
		put(2, "HTTPRoute", routeName(r), "")
		for n := range s.rules {
			put(3, "HTTPRoute", routeName(r), ruleName(n))
		}
	}
	return levels
}

// dealt shuffles the targets of a level and assigns forms: two thirds defaults and one third
// overrides, half of each merged and half atomic, exactly so for every six targets.
func dealt(rng *rand.Rand, level []place, fixed bool) []place {
	deck := []form{
		{false, merge}, {true, merge}, {false, atomic},
		{false, merge}, {true, atomic}, {false, atomic},
	}
	rng.Shuffle(len(level), func(i, j int) { level[i], level[j] = level[j], level[i] })
	for i := range level {
		if i%len(deck) == 0 && !fixed {
			rng.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		level[i].form = deck[i%len(deck)]
	}
	return level
}

func newPolicy(rng *rand.Rand, meta metav1.ObjectMeta, at place) *TestPolicy {
	policy := &TestPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: policyGroup + "/v1", Kind: policyKind},
		ObjectMeta: meta,
	}
	ref := &policy.Spec.TargetRef
	ref.Group, ref.Kind = gwapiv1.GroupName, gwapiv1alpha2.Kind(at.target.kind)
	ref.Name = gwapiv1.ObjectName(at.target.name)
	if at.target.section != "" {
		section := gwapiv1.SectionName(at.target.section)
		ref.SectionName = &section
	}
	block := &Block{Strategy: at.form.strategy, Rules: make(map[string]Rule, keysEach)}
	for _, key := range rng.Perm(ruleKeys)[:keysEach] {
		number := rng.IntN(1000)
		block.Rules[fmt.Sprintf("key%02d", key)] = Rule{N: int64(number), Value: fmt.Sprintf("%s-%d", meta.Name, number)}
	}
	if at.form.overrides {
		policy.Spec.Overrides = block
	} else {
		policy.Spec.Defaults = block
	}
	return policy
}
