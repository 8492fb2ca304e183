package main

import (
	"encoding/json"
	"fmt"

	"github.com/kuadrant/policy-machinery/machinery"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// objects are the objects of a world that Kuadrant watches. It passes over the others, ListenerSets among them.
type objects struct {
	classes    []*gwapiv1.GatewayClass
	gateways   []*gwapiv1.Gateway
	httpRoutes []*gwapiv1.HTTPRoute
	grpcRoutes []*gwapiv1.GRPCRoute
	services   []*core.Service
	policies   []*policy
	// issuers holds `Kind/namespace/name` of the issuers of cert-manager.
	issuers map[string]bool
}

// readObjects decodes the objects of a world.
func readObjects(documents []json.RawMessage) (*objects, error) {
	read := &objects{issuers: map[string]bool{}}
	for _, document := range documents {
		if err := read.add(document); err != nil {
			return nil, err
		}
	}
	return read, nil
}

func (o *objects) add(document json.RawMessage) error {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return err
	}
	var err error
	switch head.Kind {
	case "GatewayClass":
		o.classes, err = decode(o.classes, document)
	case "Gateway":
		o.gateways, err = decode(o.gateways, document)
	case "HTTPRoute":
		o.httpRoutes, err = decode(o.httpRoutes, document)
	case "GRPCRoute":
		o.grpcRoutes, err = decode(o.grpcRoutes, document)
	case "Service":
		o.services, err = decode(o.services, document)
	case "Issuer", "ClusterIssuer":
		o.issuers[issuerKey(head.Kind, head.Namespace, head.Name)] = true
	default:
		if kind, ok := policyKinds[head.GroupVersionKind().GroupKind()]; ok {
			var read *policy
			if read, err = readPolicy(kind, document); err == nil {
				o.policies = append(o.policies, read)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s/%s: %w", head.Kind, head.Namespace, head.Name, err)
	}
	return nil
}

// decode appends a decoded object to a list.
func decode[T any](list []*T, document json.RawMessage) ([]*T, error) {
	object := new(T)
	if err := json.Unmarshal(document, object); err != nil {
		return list, err
	}
	return append(list, object), nil
}

func issuerKey(kind, namespace, name string) string {
	if kind == "ClusterIssuer" {
		namespace = ""
	}
	return kind + "/" + namespace + "/" + name
}

// topology builds the topology with the options that the library's controller gives to it.
func (o *objects) topology() (*machinery.Topology, error) {
	policies := make([]machinery.Policy, 0, len(o.policies))
	for _, policy := range o.policies {
		policies = append(policies, policy)
	}
	return machinery.NewGatewayAPITopology(
		machinery.WithGatewayClasses(o.classes...),
		machinery.WithGateways(o.gateways...),
		machinery.WithHTTPRoutes(o.httpRoutes...),
		machinery.WithGRPCRoutes(o.grpcRoutes...),
		machinery.WithServices(o.services...),
		machinery.ExpandGatewayListeners(),
		machinery.ExpandHTTPRouteRules(),
		machinery.ExpandGRPCRouteRules(),
		machinery.ExpandServicePorts(),
		machinery.WithGatewayAPITopologyPolicies(policies...),
	)
}
