package main

import (
	"encoding/json"
	"fmt"
	"net"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/envoyproxy/gateway/internal/ir"
	"github.com/envoyproxy/gateway/internal/xds/types"
)

const (
	hcmFilter    = "envoy.filters.network.http_connection_manager"
	routerFilter = "envoy.filters.http.router"
	// noRule is the name of the Envoy route that takes what no rule takes.
	noRule = "none"
)

// proxyReply is what an Envoy needs to serve the world.
type proxyReply struct {
	// Bootstrap is the static configuration of Envoy.
	Bootstrap json.RawMessage `json:"bootstrap"`
	Listeners []proxyListener `json:"listeners"`
}

// proxyListener is a port of a Gateway.
type proxyListener struct {
	// Gateway is namespace/name.
	Gateway string `json:"gateway"`
	// Port is that of the Gateway's listeners.
	Port uint32 `json:"port"`
	// Address is where Envoy listens.
	Address string `json:"address"`
}

// proxy makes a static configuration of the listeners and routes that Envoy Gateway configures for
// the world, without TLS. Each rule answers with its name, and with the path that Envoy matched.
// Listeners are at asked.Address, from the port asked.Port.
func (j *judge) proxy(asked *request) (any, error) {
	address := net.ParseIP(asked.Address)
	if address == nil || !address.IsLoopback() {
		return nil, fmt.Errorf("%q is no loopback address", asked.Address)
	}
	reply := &proxyReply{Listeners: []proxyListener{}}
	bootstrap := &bootstrapv3.Bootstrap{StaticResources: &bootstrapv3.Bootstrap_StaticResources{}}
	port := asked.Port
	err := j.eachProxy(func(gateway string, world *ir.Xds, table *types.ResourceVersionTable) error {
		// Envoy's port differs from that of the Gateway where that is privileged.
		ports := map[uint32]uint32{}
		for _, listener := range world.HTTP {
			ports[listener.Port] = listener.ExternalPort
		}
		routes := map[string]*routev3.RouteConfiguration{}
		for _, one := range table.XdsResources[resourcev3.RouteType] {
			if config, ok := one.(*routev3.RouteConfiguration); ok {
				routes[config.Name] = config
			}
		}
		for _, one := range table.XdsResources[resourcev3.ListenerType] {
			listener, ok := one.(*listenerv3.Listener)
			if !ok || ports[listener.GetAddress().GetSocketAddress().GetPortValue()] == 0 {
				continue
			}
			static, err := staticListener(listener, routes, asked.Address, port)
			if err != nil {
				return err
			}
			if static == nil {
				continue
			}
			bootstrap.StaticResources.Listeners = append(bootstrap.StaticResources.Listeners, static)
			reply.Listeners = append(reply.Listeners, proxyListener{
				Gateway: gateway,
				Port:    ports[listener.GetAddress().GetSocketAddress().GetPortValue()],
				Address: fmt.Sprintf("%s:%d", asked.Address, port),
			})
			port++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(bootstrap)
	reply.Bootstrap = text
	return reply, err
}

// staticListener returns the listener with its routes in place and without other filters, or nil if
// it does not speak HTTP without TLS.
func staticListener(
	listener *listenerv3.Listener, routes map[string]*routev3.RouteConfiguration, address string, port uint32,
) (*listenerv3.Listener, error) {
	for _, filter := range listener.GetDefaultFilterChain().GetFilters() {
		manager := &hcmv3.HttpConnectionManager{}
		if filter.GetTypedConfig() == nil || filter.GetTypedConfig().UnmarshalTo(manager) != nil {
			continue
		}
		config := routes[manager.GetRds().GetRouteConfigName()]
		if config == nil {
			return nil, fmt.Errorf("no route configuration %s", manager.GetRds().GetRouteConfigName())
		}
		router, err := anypb.New(&routerv3.Router{})
		if err != nil {
			return nil, err
		}
		manager.AccessLog, manager.Tracing = nil, nil
		manager.HttpFilters = []*hcmv3.HttpFilter{{
			Name: routerFilter, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: router},
		}}
		manager.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: answering(config)}
		typed, err := anypb.New(manager)
		if err != nil {
			return nil, err
		}
		return &listenerv3.Listener{
			Name: listener.Name,
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
			}}},
			FilterChains: []*listenerv3.FilterChain{{
				Filters: []*listenerv3.Filter{{
					Name: hcmFilter, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: typed},
				}},
			}},
		}, nil
	}
	return nil, nil
}

// answering returns the route configuration with routes that answer with their own name.
func answering(config *routev3.RouteConfiguration) *routev3.RouteConfiguration {
	made := proto.Clone(config).(*routev3.RouteConfiguration)
	made.ResponseHeadersToAdd = []*corev3.HeaderValueOption{{
		Header: &corev3.HeaderValue{Key: "x-matched-path", Value: "%REQ(:PATH)%"},
	}}
	everything := false
	for _, host := range made.VirtualHosts {
		host.TypedPerFilterConfig = nil
		for _, route := range host.Routes {
			answerWithName(route)
		}
		host.Routes = append(host.Routes, unmatched())
		for _, domain := range host.Domains {
			everything = everything || domain == "*"
		}
	}
	if !everything {
		made.VirtualHosts = append(made.VirtualHosts, &routev3.VirtualHost{
			Name: noRule, Domains: []string{"*"}, Routes: []*routev3.Route{unmatched()},
		})
	}
	return made
}

// unmatched returns a route for what no rule takes: with its path in the response, unlike Envoy's own
// response.
func unmatched() *routev3.Route {
	route := &routev3.Route{
		Name:  noRule,
		Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
	}
	answerWithName(route)
	return route
}

// answerWithName makes a route respond with its name.
func answerWithName(route *routev3.Route) {
	route.Action = &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
		Status: 200,
		Body:   &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: route.Name}},
	}}
	route.TypedPerFilterConfig, route.Tracing = nil, nil
	route.RequestHeadersToAdd, route.RequestHeadersToRemove = nil, nil
	route.ResponseHeadersToAdd, route.ResponseHeadersToRemove = nil, nil
}
