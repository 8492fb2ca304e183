package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1b1 "sigs.k8s.io/gateway-api/apis/v1beta1"
	"sigs.k8s.io/yaml"

	egv1a1 "github.com/envoyproxy/gateway/api/v1alpha1"
	"github.com/envoyproxy/gateway/internal/envoygateway"
	"github.com/envoyproxy/gateway/internal/gatewayapi/resource"
)

// object is an object of the world: as a value, and as the type that the translator reads.
type object struct {
	content any
	typed   client.Object
	// class is set for an EnvoyProxy that belongs to the GatewayClass.
	class bool
}

// forClass marks, in the objects of a test input, the EnvoyProxy that belongs to the GatewayClass.
const forClass = "judge/envoy-proxy-of-class"

// policyKinds are the kinds that a request can replace.
var policyKinds = map[string]bool{
	"ClientTrafficPolicy": true, "BackendTrafficPolicy": true, "SecurityPolicy": true,
	"EnvoyExtensionPolicy": true, "BackendTLSPolicy": true,
}

func isPolicy(one object) bool {
	return policyKinds[one.typed.GetObjectKind().GroupVersionKind().Kind]
}

// title names an object in messages.
func title(document json.RawMessage) string {
	var meta metav1.PartialObjectMetadata
	_ = json.Unmarshal(document, &meta)
	return fmt.Sprintf("%s/%s/%s", meta.Kind, meta.Namespace, meta.Name)
}

// readObject reads an object as the API server would: with the defaults of its CRD, and without
// unknown fields.
func readObject(document json.RawMessage, defaults, validate bool) (object, error) {
	var content map[string]any
	// Integers stay integers, as the rules of CRDs need them.
	if err := utiljson.Unmarshal(document, &content); err != nil {
		return object{}, err
	}
	generic := &unstructured.Unstructured{Object: content}
	kind := generic.GroupVersionKind()
	definition, err := crdOf(kind)
	if err != nil {
		return object{}, err
	}
	if definition != nil && defaults {
		definition.setDefaults(content)
	}
	if definition != nil && validate {
		if err := definition.validate(content); err != nil {
			return object{}, err
		}
	}
	made, err := envoygateway.GetScheme().New(kind)
	if err != nil {
		return object{}, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(generic.Object, made, true); err != nil {
		return object{}, err
	}
	typed, ok := made.(client.Object)
	if !ok {
		return object{}, fmt.Errorf("%s is no object", kind)
	}
	class := generic.GetAnnotations()[forClass] != ""
	return object{content: generic.Object, typed: typed, class: class}, nil
}

// resourcesOf collects the objects that the provider of Envoy Gateway would give to the translator
// for one GatewayClass.
func resourcesOf(objects []object, class *gwapiv1.GatewayClass, named bool) (*resource.Resources, error) {
	all := resource.NewResources()
	all.GatewayClass = class
	lists := reflect.ValueOf(all).Elem()
	gateways := map[string]bool{}
	for _, one := range objects {
		if gateway, ok := one.typed.(*gwapiv1.Gateway); ok && string(gateway.Spec.GatewayClassName) == class.Name {
			gateways[gateway.Namespace+"/"+gateway.Name] = true
		}
	}
	for _, one := range objects {
		// A translation changes statuses and must not change the world.
		typed := one.typed.DeepCopyObject()
		if named {
			nameRules(typed)
		}
		switch value := typed.(type) {
		case *gwapiv1.GatewayClass:
			continue
		case *gwapiv1.ListenerSet:
			namespace := value.Namespace
			if value.Spec.ParentRef.Namespace != nil {
				namespace = string(*value.Spec.ParentRef.Namespace)
			}
			if !gateways[namespace+"/"+string(value.Spec.ParentRef.Name)] {
				continue
			}
		case *egv1a1.EnvoyProxy:
			if one.class {
				all.EnvoyProxyForGatewayClass = value
				continue
			}
		case *egv1a1.HTTPRouteFilter:
			all.HTTPRouteFilters = append(all.HTTPRouteFilters, value)
			continue
		case *gwapiv1.ReferenceGrant:
			grant := &gwapiv1b1.ReferenceGrant{TypeMeta: value.TypeMeta, ObjectMeta: value.ObjectMeta, Spec: value.Spec}
			all.ReferenceGrants = append(all.ReferenceGrants, grant)
			continue
		case *corev1.Service:
			if value.Spec.ClusterIP == "" {
				value.Spec.ClusterIP = "10.0.0.1"
			}
		}
		if !place(lists, typed) {
			return nil, fmt.Errorf("the translator reads no %T", typed)
		}
	}
	all.Sort()
	return all, nil
}

// nameRules gives a name to each rule without one, so that a policy can target it alone.
func nameRules(typed runtime.Object) {
	set := func(index int, name **gwapiv1.SectionName) {
		if *name == nil {
			made := gwapiv1.SectionName(fmt.Sprintf("judge-rule-%d", index))
			*name = &made
		}
	}
	switch route := typed.(type) {
	case *gwapiv1.HTTPRoute:
		for index := range route.Spec.Rules {
			set(index, &route.Spec.Rules[index].Name)
		}
	case *gwapiv1.GRPCRoute:
		for index := range route.Spec.Rules {
			set(index, &route.Spec.Rules[index].Name)
		}
	case *gwapiv1.TLSRoute:
		for index := range route.Spec.Rules {
			set(index, &route.Spec.Rules[index].Name)
		}
	case *gwapiv1.TCPRoute:
		for index := range route.Spec.Rules {
			set(index, &route.Spec.Rules[index].Name)
		}
	case *gwapiv1.UDPRoute:
		for index := range route.Spec.Rules {
			set(index, &route.Spec.Rules[index].Name)
		}
	}
}

// place appends an object to the list of its type.
func place(lists reflect.Value, typed runtime.Object) bool {
	value := reflect.ValueOf(typed)
	for index := range lists.NumField() {
		list := lists.Field(index)
		if list.Kind() == reflect.Slice && list.Type().Elem() == value.Type() {
			list.Set(reflect.Append(list, value))
			return true
		}
	}
	return false
}

// goldenObjects returns the objects of a test input of the module, with those that its test adds.
func goldenObjects(name string) ([]json.RawMessage, settings, error) {
	read := &resource.Resources{}
	for _, file := range []string{name + ".in.yaml", filepath.Join("base", "base.yaml")} {
		text, err := os.ReadFile(filepath.Join(testdata(), file))
		if err != nil {
			return nil, settings{}, err
		}
		part := &resource.Resources{}
		if err := yaml.Unmarshal(text, part); err != nil {
			return nil, settings{}, err
		}
		if file == name+".in.yaml" {
			read = part
		} else {
			read.Secrets = append(read.Secrets, part.Secrets...)
		}
	}
	if read.GatewayClass == nil {
		read.GatewayClass = &gwapiv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "envoy-gateway-class"}}
	}
	read.GatewayClass.Spec.ControllerName = egv1a1.GatewayControllerName
	if read.EnvoyProxyForGatewayClass != nil {
		proxy := read.EnvoyProxyForGatewayClass
		if proxy.Annotations == nil {
			proxy.Annotations = map[string]string{}
		}
		proxy.Annotations[forClass] = "true"
	}
	addFixtures(read, strings.Contains(name, "enable-zone-discovery"))
	documents, err := flatten(read)
	return documents, goldenSettings(name), err
}

// flatten returns all objects of the resources, each with its apiVersion and kind.
func flatten(read *resource.Resources) ([]json.RawMessage, error) {
	var documents []json.RawMessage
	lists := reflect.ValueOf(read).Elem()
	for index := range lists.NumField() {
		field := lists.Field(index)
		values := []reflect.Value{field}
		if field.Kind() == reflect.Slice {
			values = values[:0]
			for item := range field.Len() {
				values = append(values, field.Index(item))
			}
		}
		for _, value := range values {
			if value.Kind() == reflect.Struct {
				value = value.Addr()
			}
			typed, ok := value.Interface().(client.Object)
			if !ok || value.IsNil() {
				continue
			}
			if err := setKind(typed); err != nil {
				return nil, err
			}
			text, err := json.Marshal(typed)
			if err != nil {
				return nil, err
			}
			documents = append(documents, text)
		}
	}
	return documents, nil
}

// setKind writes the apiVersion and kind that the scheme has for a type.
func setKind(typed client.Object) error {
	if _, ok := typed.(*unstructured.Unstructured); ok {
		return nil
	}
	kinds, _, err := envoygateway.GetScheme().ObjectKinds(typed)
	if err != nil {
		return fmt.Errorf("%T: %w", typed, err)
	}
	typed.GetObjectKind().SetGroupVersionKind(kinds[0])
	return nil
}

// addFixtures adds the Services and Namespaces that the test of the module adds to each input.
func addFixtures(read *resource.Resources, zones bool) {
	web := []corev1.ServicePort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}
	all := append(web, []corev1.ServicePort{
		{Name: "https", Port: 8443, Protocol: corev1.ProtocolTCP},
		{Name: "tcp", Port: 8163, Protocol: corev1.ProtocolTCP},
		{Name: "udp", Port: 8162, Protocol: corev1.ProtocolUDP},
	}...)
	for number := 1; number <= 4; number++ {
		addService(read, "default", fmt.Sprintf("service-%d", number), "7.7.7.7", all, zones)
	}
	addService(read, "default", "mirror-service", "7.6.5.4", web, false)
	grpc := "grpc"
	addService(read, "monitoring", "otel-collector", "8.7.6.5", []corev1.ServicePort{
		{Name: "grpc", Port: 4317, Protocol: corev1.ProtocolTCP, AppProtocol: &grpc},
		{Name: "zipkin", Port: 9411, Protocol: corev1.ProtocolTCP},
	}, false)
	for _, name := range []string{"envoy-gateway", "default"} {
		read.Namespaces = append(read.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
}

func addService(read *resource.Resources, namespace, name, address string, ports []corev1.ServicePort, zones bool) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: "1.1.1.1", Ports: ports},
	}
	if zones {
		near := "PreferClose"
		service.Spec.TrafficDistribution = &near
	}
	ready := true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{discoveryv1.LabelServiceName: name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{address},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		}},
	}
	for index := range ports {
		port := &ports[index]
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol})
	}
	read.Services = append(read.Services, service)
	read.EndpointSlices = append(read.EndpointSlices, slice)
}
