package main

import (
	"reflect"
	"slices"

	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The reasons for which the operator configures a gateway otherwise than the effective policy of a path has it.
const (
	// The controller of the GatewayClass is none of those that the operator configures.
	reasonController = "controller"
	// No hostname of the route lies within that of the listener.
	reasonHostname = "hostname"
	// Some hostnames of the route lie within that of the listener, and another one holds it.
	reasonHostnamePart = "hostname-part"
	// A route of the other kind has the namespace and name of this one.
	reasonRouteName = "route-name"
	// Another listener of the gateway has the same hostname, and the configuration does not tell listeners apart.
	reasonSharedHost = "shared-host"
)

// gatewayControllers are the controllers whose gateways the operator configures, by default.
var gatewayControllers = []string{
	"istio.io/gateway-controller",
	"gateway.envoyproxy.io/gatewayclass-controller",
}

// configuration is what the operator keeps by the id of a path before it configures the gateways.
type configuration struct {
	// path is the path whose rule and hostnames are configured.
	path map[string]*requestPath
	// effective is the policy of each kind.
	effective map[*policyKind]map[string]*effective
}

// configuration applies the steps of the operator: paths of one id replace one another, those of GRPCRoutes the earlier
// ones, and the first kind that has the id sets the path.
func (s *effectiveSet) configuration() *configuration {
	config := &configuration{map[string]*requestPath{}, map[*policyKind]map[string]*effective{}}
	for _, kind := range mergedKinds {
		kept := map[string]*effective{}
		for _, routeKind := range []string{"HTTPRoute", "GRPCRoute"} {
			for _, effective := range s.byKind[kind] {
				if effective.path.route.kind == routeKind {
					kept[effective.path.id()] = effective
				}
			}
		}
		for id, effective := range kept {
			if _, ok := config.path[id]; !ok {
				config.path[id] = effective.path
			}
		}
		config.effective[kind] = kept
	}
	return config
}

// reasons lists why the configuration is not the effective policy.
func (c *configuration) reasons(kind *policyKind, answer *effective) []string {
	reasons := []string{}
	path, id := answer.path, answer.path.id()
	if !slices.Contains(gatewayControllers, string(path.class.Spec.ControllerName)) {
		reasons = append(reasons, reasonController)
	}
	if len(path.hostnames()) == 0 {
		reasons = append(reasons, reasonHostname)
	} else if path.widerHostname() {
		reasons = append(reasons, reasonHostnamePart)
	}
	if c.path[id] != path || c.effective[kind][id] != answer {
		reasons = append(reasons, reasonRouteName)
	}
	if c.sharesHost(kind, answer) {
		reasons = append(reasons, reasonSharedHost)
	}
	return reasons
}

// sharesHost reports whether the same rule has, on another listener of the gateway, the same hostname and other rules of
// the kind.
func (c *configuration) sharesHost(kind *policyKind, answer *effective) bool {
	for id, other := range c.path {
		if other == answer.path || other.gateway != answer.path.gateway || !sameRule(other, answer.path) {
			continue
		}
		shared := slices.ContainsFunc(other.hostnames(), func(hostname gwapiv1.Hostname) bool {
			return slices.Contains(answer.path.hostnames(), hostname)
		})
		if there := c.effective[kind][id]; shared && (there == nil || !reflect.DeepEqual(there.policy.rules, answer.policy.rules)) {
			return true
		}
	}
	return false
}

func sameRule(a, b *requestPath) bool {
	return a.nodes[len(a.nodes)-1] == b.nodes[len(b.nodes)-1]
}
