package main

import (
	"bytes"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/envoyproxy/gateway/internal/gatewayapi"
	"github.com/envoyproxy/gateway/internal/ir"
)

// reply is what a translation gives.
type reply struct {
	Refused   []refusal  `json:"refused"`
	Policies  []policy   `json:"policies"`
	Rules     []rule     `json:"rules"`
	Listeners []listener `json:"listeners"`

	names names
}

// policy is the status of a policy.
type policy struct {
	Kind      string                         `json:"kind"`
	Namespace string                         `json:"namespace"`
	Name      string                         `json:"name"`
	Ancestors []gwapiv1.PolicyAncestorStatus `json:"ancestors"`
}

// rule is the intermediate representation of a route's rule on a listener.
type rule struct {
	Gateway  string `json:"gateway"`
	Listener string `json:"listener"`
	Route    string `json:"route"`
	Rule     string `json:"rule"`
	IR       []any  `json:"ir"`
}

// listener is the intermediate representation of a listener without its routes.
type listener struct {
	Gateway  string `json:"gateway"`
	Listener string `json:"listener"`
	IR       any    `json:"ir"`
}

func newReply() *reply {
	return &reply{Refused: []refusal{}, Policies: []policy{}, Rules: []rule{}, Listeners: []listener{}}
}

func (r *reply) add(result *gatewayapi.TranslateResult) {
	for _, one := range result.ClientTrafficPolicies {
		r.addPolicy("ClientTrafficPolicy", one, &one.Status)
	}
	for _, one := range result.BackendTrafficPolicies {
		r.addPolicy("BackendTrafficPolicy", one, &one.Status)
	}
	for _, one := range result.SecurityPolicies {
		r.addPolicy("SecurityPolicy", one, &one.Status)
	}
	for _, one := range result.EnvoyExtensionPolicies {
		r.addPolicy("EnvoyExtensionPolicy", one, &one.Status)
	}
	for _, one := range result.EnvoyPatchPolicies {
		r.addPolicy("EnvoyPatchPolicy", one, &one.Status)
	}
	for _, one := range result.BackendTLSPolicies {
		r.addPolicy("BackendTLSPolicy", one, &one.Status)
	}
	for gateway, xds := range result.XdsIR {
		for _, one := range xds.HTTP {
			bare := *one
			bare.Routes = nil
			r.Listeners = append(r.Listeners, listener{Gateway: gateway, Listener: one.Name, IR: r.names.generic(&bare)})
			for _, route := range one.Routes {
				r.addRule(gateway, one.Name, route.Name, effective(route))
			}
		}
		for _, one := range xds.TCP {
			bare := *one
			bare.Routes = nil
			r.Listeners = append(r.Listeners, listener{Gateway: gateway, Listener: one.Name, IR: r.names.generic(&bare)})
			for _, route := range one.Routes {
				r.addRule(gateway, one.Name, destinationName(route.Name, route.Destination), route)
			}
		}
		for _, one := range xds.UDP {
			bare := *one
			bare.Route = nil
			r.Listeners = append(r.Listeners, listener{Gateway: gateway, Listener: one.Name, IR: r.names.generic(&bare)})
			if one.Route != nil {
				r.addRule(gateway, one.Name, destinationName(one.Route.Name, one.Route.Destination), one.Route)
			}
		}
	}
}

func (r *reply) addPolicy(kind string, one client.Object, status *gwapiv1.PolicyStatus) {
	ancestors := status.Ancestors
	if ancestors == nil {
		ancestors = []gwapiv1.PolicyAncestorStatus{}
	}
	for index := range r.Policies {
		known := &r.Policies[index]
		if known.Kind == kind && known.Namespace == one.GetNamespace() && known.Name == one.GetName() {
			known.Ancestors = append(known.Ancestors, ancestors...)
			return
		}
	}
	r.Policies = append(r.Policies, policy{kind, one.GetNamespace(), one.GetName(), ancestors})
}

// destinationName returns the name that has the index of the rule.
func destinationName(name string, destination *ir.RouteDestination) string {
	if destination != nil {
		return destination.Name
	}
	return name
}

// addRule adds a route of the representation to the rule that its name tells:
// KIND/NAMESPACE/NAME/rule/INDEX, and more.
func (r *reply) addRule(gateway, listener, name string, route any) {
	parts := strings.Split(name, "/")
	if len(parts) < 3 {
		return
	}
	index := "0"
	if len(parts) > 4 && parts[3] == "rule" && parts[4] != "-1" {
		index = parts[4]
	}
	owner := strings.Join(parts[:3], "/")
	value := r.names.generic(route)
	for at := range r.Rules {
		known := &r.Rules[at]
		if known.Gateway == gateway && known.Listener == listener && known.Route == owner && known.Rule == index {
			known.IR = append(known.IR, value)
			return
		}
	}
	r.Rules = append(r.Rules, rule{gateway, listener, owner, index, []any{value}})
}

// effective returns a route without what its own fields replace. The translator to xDS prefers the
// retries, the request timeout and the CORS settings of the route to those of policies.
func effective(route *ir.HTTPRoute) *ir.HTTPRoute {
	changed := route.DeepCopy()
	if changed.Retry != nil && changed.Traffic != nil {
		changed.Traffic.Retry = nil
	}
	if changed.CORS != nil && changed.Security != nil {
		changed.Security.CORS = nil
	}
	if changed.Timeout != nil && changed.Traffic != nil && changed.Traffic.Timeout != nil && changed.Traffic.Timeout.HTTP != nil {
		changed.Traffic.Timeout.HTTP.RequestTimeout = nil
	}
	return changed
}

// policyName matches the names of policies in names that the translator makes. They are replaced,
// because a replay gives another name to the same policy.
var policyName = regexp.MustCompile(`\b((?:security|backendtraffic|clienttraffic|envoyextension|backendtls)policy)/[^/]+/[^/]+`)

// names matches the names of the policies of a translation.
type names struct{ policies *regexp.Regexp }

// namesOf collects the policies of the world.
func namesOf(objects []object) names {
	var all []string
	for _, one := range objects {
		if isPolicy(one) {
			all = append(all, regexp.QuoteMeta(one.typed.GetNamespace()+"/"+one.typed.GetName()))
		}
	}
	if len(all) == 0 {
		return names{}
	}
	return names{regexp.MustCompile(`(^|/)(?:` + strings.Join(all, "|") + `)($|/)`)}
}

// without returns a name that the translator made, without the policy that it is made from.
func (n names) without(text string) string {
	text = policyName.ReplaceAllString(text, "$1")
	if n.policies != nil {
		text = n.policies.ReplaceAllString(text, "${1}POLICY$2")
	}
	return text
}

// generic turns a value of the representation into maps, lists and scalars. Secret bytes, which the
// representation hides in its own JSON, become their checksums.
func (n names) generic(value any) any {
	return n.encode(reflect.ValueOf(value))
}

var secretType = reflect.TypeOf(ir.PrivateBytes{})

func (n names) encode(value reflect.Value) any {
	if !value.IsValid() {
		return nil
	}
	if value.Type() == secretType {
		sum := sha256.Sum256(value.Bytes())
		return "sha256:" + hex.EncodeToString(sum[:8])
	}
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return nil
		}
		if _, ok := value.Interface().(json.Marshaler); ok {
			return plain(value.Interface())
		}
		return n.encode(value.Elem())
	case reflect.Struct:
		if _, ok := value.Interface().(json.Marshaler); ok {
			return plain(value.Interface())
		}
		if _, ok := value.Interface().(encoding.TextMarshaler); ok {
			return plain(value.Interface())
		}
		fields := map[string]any{}
		n.encodeStruct(value, fields)
		return fields
	case reflect.Slice, reflect.Array:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return plain(value.Interface())
		}
		items := make([]any, 0, value.Len())
		for index := range value.Len() {
			items = append(items, n.encode(value.Index(index)))
		}
		return items
	case reflect.Map:
		fields := map[string]any{}
		for _, key := range value.MapKeys() {
			fields[n.without(key.String())] = n.encode(value.MapIndex(key))
		}
		return fields
	case reflect.String:
		return n.without(value.String())
	}
	return plain(value.Interface())
}

func (n names) encodeStruct(value reflect.Value, fields map[string]any) {
	kind := value.Type()
	for index := range kind.NumField() {
		field := kind.Field(index)
		if !field.IsExported() {
			continue
		}
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if name == "-" {
			continue
		}
		inner := value.Field(index)
		if name == "" && (field.Anonymous || strings.Contains(options, "inline")) {
			if inner.Kind() == reflect.Pointer {
				if inner.IsNil() {
					continue
				}
				inner = inner.Elem()
			}
			n.encodeStruct(inner, fields)
			continue
		}
		if name == "" {
			name = field.Name
		}
		if strings.Contains(options, "omitempty") && inner.IsZero() {
			continue
		}
		if isName(value, kind.Name(), name) {
			continue
		}
		fields[name] = n.encode(inner)
	}
}

// isName returns whether a field holds a name that differs in a replay on purpose: that of a policy
// or of a rule, or one that is made of them.
func isName(value reflect.Value, kind, field string) bool {
	switch kind {
	case "ResourceMetadata":
		owner := value.FieldByName("Kind").String()
		return field == "policies" || field == "sectionName" || policyKinds[owner] && (field == "name" || field == "namespace")
	case "TLSCACertificate":
		return field == "name"
	case "OIDC":
		return field == "cookieSuffix"
	}
	return false
}

// plain encodes a value by its own JSON.
func plain(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil {
		return err.Error()
	}
	return decoded
}
