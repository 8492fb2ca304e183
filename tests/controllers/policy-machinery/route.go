package main

import (
	"fmt"
	"strings"

	"github.com/kuadrant/policy-machinery/machinery"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// route is what HTTPRoutes and GRPCRoutes have in common.
type route struct {
	kind, namespace, name string
	// rule is the index of the rule at the end of the path.
	rule      int
	parents   []gwapiv1.ParentReference
	hostnames []gwapiv1.Hostname
	statuses  []gwapiv1.RouteParentStatus
}

// routeOf reads the route and the rule of a path.
func routeOf(object, rule machinery.Targetable) route {
	switch object := object.(type) {
	case *machinery.HTTPRoute:
		names := make([]*gwapiv1.SectionName, len(object.Spec.Rules))
		for index := range object.Spec.Rules {
			names[index] = object.Spec.Rules[index].Name
		}
		return route{
			"HTTPRoute", object.Namespace, object.Name, ruleIndex(names, rule.(*machinery.HTTPRouteRule).Name),
			object.Spec.ParentRefs, object.Spec.Hostnames, object.Status.Parents,
		}
	case *machinery.GRPCRoute:
		names := make([]*gwapiv1.SectionName, len(object.Spec.Rules))
		for index := range object.Spec.Rules {
			names[index] = object.Spec.Rules[index].Name
		}
		return route{
			"GRPCRoute", object.Namespace, object.Name, ruleIndex(names, rule.(*machinery.GRPCRouteRule).Name),
			object.Spec.ParentRefs, object.Spec.Hostnames, object.Status.Parents,
		}
	default:
		panic(fmt.Sprintf("%T is no route", object))
	}
}

// ruleIndex finds a rule by the name that the library gives to it. Of two rules of one name the topology keeps the last.
func ruleIndex(names []*gwapiv1.SectionName, name gwapiv1.SectionName) int {
	for index := len(names) - 1; index >= 0; index-- {
		generated := gwapiv1.SectionName(fmt.Sprintf("rule-%d", index+1))
		if ptr.Deref(names[index], generated) == name {
			return index
		}
	}
	panic(fmt.Sprintf("no rule has the name %s", name))
}

// isParent reports whether a reference names the Gateway of a path.
func (p *requestPath) isParent(ref gwapiv1.ParentReference) bool {
	return ptr.Deref(ref.Group, gwapiv1.GroupName) == gwapiv1.GroupName &&
		ptr.Deref(ref.Kind, "Gateway") == "Gateway" &&
		string(ptr.Deref(ref.Namespace, gwapiv1.Namespace(p.route.namespace))) == p.gateway.Namespace &&
		string(ref.Name) == p.gateway.Name
}

// listenerHostname is the hostname of the listener, or `*`.
func (p *requestPath) listenerHostname() gwapiv1.Hostname { return ptr.Deref(p.listener.Hostname, "*") }

// hostnames returns the hostnames for which the operator configures the path: those of the route that lie within the
// hostname of the listener, or that of the listener if the route has none.
func (p *requestPath) hostnames() []gwapiv1.Hostname {
	if len(p.route.hostnames) == 0 {
		return []gwapiv1.Hostname{p.listenerHostname()}
	}
	var within []gwapiv1.Hostname
	for _, hostname := range p.route.hostnames {
		if liesWithin(hostname, p.listenerHostname()) {
			within = append(within, hostname)
		}
	}
	return within
}

// widerHostname reports whether the route has a hostname that holds that of the listener and more.
func (p *requestPath) widerHostname() bool {
	for _, hostname := range p.route.hostnames {
		if !liesWithin(hostname, p.listenerHostname()) && liesWithin(p.listenerHostname(), hostname) {
			return true
		}
	}
	return false
}

// liesWithin reports whether every host of one name is a host of the other.
func liesWithin(inner, outer gwapiv1.Hostname) bool {
	suffix, wild := strings.CutPrefix(string(outer), "*")
	if !wild {
		return inner == outer
	}
	return strings.HasSuffix(strings.TrimPrefix(string(inner), "*"), suffix)
}

// ready reports whether the status of a policy takes the path into account, by the statuses that the controller of the
// gateway wrote. Of several parentRefs of an HTTPRoute to one Gateway only the first counts.
func (p *requestPath) ready() bool {
	programmed := false
	for _, status := range p.gateway.Status.Listeners {
		if status.Name == p.listener.Name {
			programmed = meta.IsStatusConditionTrue(status.Conditions, string(gwapiv1.ListenerConditionProgrammed))
			break
		}
	}
	if !programmed {
		return false
	}
	for _, status := range p.route.statuses {
		if status.ControllerName != p.class.Spec.ControllerName || !p.isParent(status.ParentRef) {
			continue
		}
		if p.route.kind == "GRPCRoute" && !p.isSection(status.ParentRef) {
			continue
		}
		return meta.IsStatusConditionTrue(status.Conditions, string(gwapiv1.RouteConditionAccepted))
	}
	return false
}

// isSection reports whether a reference covers the listener of the path.
func (p *requestPath) isSection(ref gwapiv1.ParentReference) bool {
	return ptr.Deref(ref.SectionName, p.listener.Name) == p.listener.Name &&
		ptr.Deref(ref.Port, p.listener.Port) == p.listener.Port
}
