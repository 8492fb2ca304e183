package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/gatewayapi/resource"
	"github.com/envoyproxy/gateway/internal/ir"
	"github.com/envoyproxy/gateway/internal/logging"
	"github.com/envoyproxy/gateway/internal/xds/translator"
	"github.com/envoyproxy/gateway/internal/xds/types"
)

// xdsReply has what the proxy of each Gateway gets: JSON of each resource, by the short name of its type.
type xdsReply struct {
	Gateways map[string]map[string][]json.RawMessage `json:"gateways"`
}

// xdsTypes are the short names of the types of resources.
var xdsTypes = map[string]string{
	"lds": resourcev3.ListenerType,
	"cds": resourcev3.ClusterType,
	"rds": resourcev3.RouteType,
	"eds": resourcev3.EndpointType,
	"sds": resourcev3.SecretType,
}

// xds translates the world to the configuration of Envoys.
func (j *judge) xds() (any, error) {
	reply := &xdsReply{Gateways: map[string]map[string][]json.RawMessage{}}
	err := j.eachProxy(func(gateway string, _ *ir.Xds, table *types.ResourceVersionTable) error {
		all := map[string][]json.RawMessage{}
		for short, kind := range xdsTypes {
			all[short] = []json.RawMessage{}
			for _, one := range table.XdsResources[kind] {
				any, err := anypb.New(one)
				if err != nil {
					return err
				}
				text, err := protojson.Marshal(any)
				if err != nil {
					return err
				}
				all[short] = append(all[short], text)
			}
		}
		reply.Gateways[gateway] = all
		return nil
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// eachProxy translates the world, and calls visit for the proxy of each Gateway, in order of names, with the
// intermediate representation and the configuration that Envoy gets.
func (j *judge) eachProxy(visit func(gateway string, world *ir.Xds, table *types.ResourceVersionTable) error) error {
	for _, class := range classes(j.objects, j.controller) {
		resources, err := resourcesOf(j.objects, class, false)
		if err != nil {
			return err
		}
		// Errors of single objects are part of their statuses.
		result, _ := j.translator(class, resources).Translate(context.Background(), resources)
		if result == nil {
			return fmt.Errorf("no result for GatewayClass %s", class.Name)
		}
		for _, gateway := range sortedKeys(result.XdsIR) {
			world := result.XdsIR[gateway]
			table, err := (&translator.Translator{
				ControllerNamespace: "envoy-gateway-system",
				Logger:              logging.DefaultLogger(nothing{}, egv1a1.LogLevelError),
			}).Translate(context.Background(), world)
			if err != nil {
				return err
			}
			if err := visit(gateway, world, table); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedKeys(all resource.XdsIRMap) []string {
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
