package entail

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomWorld is a set of manifests that changes at random.
type randomWorld struct {
	random  *rand.Rand
	step    int
	objects map[string]string // manifests by key
	created int
	broken  bool // whether a profile contradicts itself
}

const randomProfile = `
apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: %s.example.com}
spec:
  policy: {group: example.com, kind: %s}
  class: %s
  targets:
  - {group: "", kind: Namespace}
  - {group: gateway.networking.k8s.io, kind: Gateway}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute}
  - {group: "", kind: Service}
  effectiveTarget: %s
  rules: {path: spec, defaults: [defaults], overrides: [overrides]}
  strategies: [AtomicDefaults, AtomicOverrides, PatchDefaults, PatchOverrides]
  strategy: {field: strategy, values: {atomic: Atomic, merge: Patch}}
  sameTarget: Established
  empty: Transparent
`

const randomBase = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: example}
spec: {controllerName: example.com/gateway}
---
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
apiVersion: v1
kind: Namespace
metadata: {name: b}
---
apiVersion: v1
kind: Namespace
metadata: {name: c}
---
apiVersion: v1
kind: Service
metadata: {name: s0, namespace: a}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: s1, namespace: a}
spec: {ports: [{port: 80}, {port: 81}]}
---
apiVersion: v1
kind: Service
metadata: {name: s0, namespace: b}
spec: {ports: [{port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw0, namespace: a}
spec:
  gatewayClassName: example
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: local, port: 81, protocol: HTTP}
`

// Kinds of random policies.
var randomKinds = []string{"TimeoutPolicy", "RetryPolicy"}

func newRandomWorld(seed uint64) *randomWorld {
	world := &randomWorld{random: rand.New(rand.NewPCG(seed, 0)), objects: map[string]string{}}
	for range 8 {
		world.addPolicy()
	}
	for range 3 {
		world.addRoute()
	}
	return world
}

// manifests returns all manifests. They contain the rule [randomWorld.marker], so that it is known when a server has read
// them.
func (w *randomWorld) manifests() string {
	class := "Inherited"
	if w.broken {
		class = "Direct"
	}
	texts := []string{
		fmt.Sprintf(randomProfile, "timeoutpolicies", "TimeoutPolicy", "Inherited", "RouteRule"),
		fmt.Sprintf(randomProfile, "retrypolicies", "RetryPolicy", class, "Backend"),
		randomBase,
		fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: marker, namespace: a}
spec: {parentRefs: [{name: gw0}], rules: [{name: step-%d}]}
`, w.step),
	}
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		texts = append(texts, w.objects[key])
	}
	return strings.Join(texts, "---")
}

func (w *randomWorld) marker() string {
	return fmt.Sprintf("gateways/a/gw0/listeners/http/routes/HTTPRoute/a/marker/rules/step-%d", w.step)
}

// change changes, creates or deletes some objects, and describes what it did.
func (w *randomWorld) change() string {
	w.step++
	var done []string
	for range 1 + w.random.IntN(3) {
		done = append(done, w.changeOne())
	}
	return strings.Join(done, ", ")
}

func (w *randomWorld) changeOne() string {
	switch n := w.random.IntN(20); {
	case n < 6:
		return "add " + w.addPolicy()
	case n < 9:
		return "add " + w.addRoute()
	case n < 12:
		return "change " + w.replace("policy", w.policy)
	case n < 15:
		return "change " + w.replace("route", w.route)
	case n < 18:
		key := w.any("")
		delete(w.objects, key)
		return "delete " + key
	case n < 19:
		if _, ok := w.objects["gateway"]; ok {
			delete(w.objects, "gateway")
			return "delete a gateway"
		}
		w.objects["gateway"] = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw1, namespace: b}
spec:
  gatewayClassName: example
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
`
		return "add a gateway"
	default:
		w.broken = !w.broken
		return fmt.Sprintf("broken profile: %v", w.broken)
	}
}

// any returns the key of an object; empty if there is none.
func (w *randomWorld) any(prefix string) string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return pick(w.random, keys...)
}

func (w *randomWorld) replace(prefix string, generate func(name string) string) string {
	key := w.any(prefix)
	if key != "" {
		w.objects[key] = generate(key)
	}
	return key
}

func (w *randomWorld) addPolicy() string {
	w.created++
	key := fmt.Sprintf("policy-%d", w.created)
	w.objects[key] = w.policy(key)
	return key
}

func (w *randomWorld) addRoute() string {
	// Few names, so that policies find them, and so that a route returns after it was deleted.
	key := fmt.Sprintf("route-%d", w.random.IntN(5))
	w.objects[key] = w.route(key)
	return key
}

func (w *randomWorld) policy(name string) string {
	namespace := pick(w.random, "a", "a", "b")
	route := fmt.Sprintf("route-%d", w.random.IntN(5))
	target := pick(w.random,
		"{group: gateway.networking.k8s.io, kind: Gateway, name: gw0}",
		"{group: gateway.networking.k8s.io, kind: Gateway, name: gw0, sectionName: local}",
		"{group: gateway.networking.k8s.io, kind: Gateway, name: gw1}",
		"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: "+route+"}",
		"{group: gateway.networking.k8s.io, kind: HTTPRoute, name: "+route+", sectionName: one}",
		`{group: "", kind: Service, name: s0}`,
		`{group: "", kind: Namespace, name: `+namespace+`}`,
	)
	return fmt.Sprintf(`
apiVersion: example.com/v1
kind: %s
metadata: {name: %s, namespace: %s}
spec:
  targetRefs: [%s]
  %s: {strategy: %s, %s: %d}
`, pick(w.random, randomKinds...), name, namespace, target, pick(w.random, "defaults", "overrides"),
		pick(w.random, "atomic", "merge"), pick(w.random, "x", "y"), w.random.IntN(3))
}

func (w *randomWorld) route(name string) string {
	namespace := pick(w.random, "a", "a", "b", "c")
	parent := pick(w.random,
		"{name: gw0, namespace: a}",
		"{name: gw0, namespace: a, sectionName: http}",
		"{name: gw1, namespace: b}",
		`{group: "", kind: Service, name: s0, namespace: a}`,
		`{group: "", kind: Service, name: s1, namespace: a, port: 80}`,
	)
	rules := ""
	for i := range 1 + w.random.IntN(3) {
		ruleName := pick(w.random, "", "", fmt.Sprintf(", name: n%d", i), ", name: one")
		if strings.Contains(rules, "one") && ruleName == ", name: one" {
			ruleName = "" // names are unique
		}
		backend := fmt.Sprintf("{name: s%d, namespace: %s, port: 80}", w.random.IntN(2), pick(w.random, "a", "b"))
		rules += fmt.Sprintf("  - {backendRefs: [%s]%s}\n", backend, ruleName)
	}
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %s, namespace: %s}
spec:
  parentRefs: [%s]
  rules:
%s`, name, namespace, parent, rules)
}

func pick[T any](random *rand.Rand, choices ...T) T { return choices[random.IntN(len(choices))] }
