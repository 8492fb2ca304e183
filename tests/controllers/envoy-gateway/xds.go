package main

import (
	"context"
	"encoding/json"
	"fmt"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/anypb"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/logging"
	"github.com/envoyproxy/gateway/internal/xds/translator"
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
	for _, class := range classes(j.objects, j.controller) {
		resources, err := resourcesOf(j.objects, class, false)
		if err != nil {
			return nil, err
		}
		// Errors of single objects are part of their statuses.
		result, _ := j.translator(class, resources).Translate(context.Background(), resources)
		if result == nil {
			return nil, fmt.Errorf("no result for GatewayClass %s", class.Name)
		}
		for gateway, world := range result.XdsIR {
			table, err := (&translator.Translator{
				ControllerNamespace: "envoy-gateway-system",
				Logger:              logging.DefaultLogger(nothing{}, egv1a1.LogLevelError),
			}).Translate(context.Background(), world)
			if err != nil {
				return nil, err
			}
			all := map[string][]json.RawMessage{}
			for short, kind := range xdsTypes {
				all[short] = []json.RawMessage{}
				for _, one := range table.XdsResources[kind] {
					any, err := anypb.New(one)
					if err != nil {
						return nil, err
					}
					text, err := protojson.Marshal(any)
					if err != nil {
						return nil, err
					}
					all[short] = append(all[short], text)
				}
			}
			reply.Gateways[gateway] = all
		}
	}
	return reply, nil
}
