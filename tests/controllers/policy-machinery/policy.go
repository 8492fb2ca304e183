package main

import (
	"encoding/json"
	"strings"

	"github.com/kuadrant/policy-machinery/controller"
	"github.com/kuadrant/policy-machinery/machinery"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwapiv1alpha2 "sigs.k8s.io/gateway-api/apis/v1alpha2"
)

// policyKind describes where a kind of Kuadrant keeps its rules.
type policyKind struct {
	name string
	// maps are the dotted paths of maps whose entries are one rule each. Empty for kinds that are not merged.
	maps []string
	// single are the dotted paths of fields that are one rule each.
	single []string
	// required is the field without which a policy counts as empty under atomic defaults.
	required string
	// httpOnly is set if the operator computes the kind on rules of HTTPRoutes alone.
	httpOnly bool
}

var (
	authPolicy = &policyKind{
		name: "AuthPolicy",
		maps: []string{
			"patterns", "rules.authentication", "rules.metadata", "rules.authorization",
			"rules.response.success.headers", "rules.response.success.filters", "rules.callbacks",
		},
		single:   []string{"when", "rules.response.unauthenticated", "rules.response.unauthorized"},
		required: "rules",
	}
	rateLimitPolicy = &policyKind{
		name: "RateLimitPolicy", maps: []string{"limits"}, single: []string{"when"}, required: "limits",
	}
	tokenRateLimitPolicy = &policyKind{
		name: "TokenRateLimitPolicy", maps: []string{"limits"}, single: []string{"when"}, required: "limits",
		httpOnly: true,
	}
	dnsPolicy = &policyKind{name: "DNSPolicy"}
	tlsPolicy = &policyKind{name: "TLSPolicy"}

	// policyKinds finds a kind by its group and name.
	policyKinds = map[schema.GroupKind]*policyKind{}
	// mergedKinds are the inherited kinds, in the order in which the operator adds them to a configuration.
	mergedKinds = []*policyKind{authPolicy, rateLimitPolicy, tokenRateLimitPolicy}
	// directKinds are the kinds that apply to listeners.
	directKinds = []*policyKind{dnsPolicy, tlsPolicy}
)

func init() {
	for _, kinds := range [][]*policyKind{mergedKinds, directKinds} {
		for _, kind := range kinds {
			policyKinds[schema.GroupKind{Group: "kuadrant.io", Kind: kind.name}] = kind
		}
	}
}

// rule is one rule with the policy that set it.
type rule struct {
	Value  json.RawMessage `json:"value"`
	Source string          `json:"source"`
}

// policy is a policy of any kind of Kuadrant.
type policy struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	kind     *policyKind
	target   gwapiv1alpha2.LocalPolicyTargetReferenceWithSectionName
	strategy machinery.MergeStrategy
	// rules holds the rules by their place: the dotted path of a field, or that of a map, `#` and the name of the entry.
	rules map[string]rule
	// spec is the specification without the reference.
	spec map[string]json.RawMessage
}

var (
	_ machinery.Policy  = &policy{}
	_ controller.Object = &policy{}
)

// GetLocator implements [machinery.Object].
func (p *policy) GetLocator() string { return machinery.LocatorFromObject(p) }

// GetTargetRefs implements [machinery.Policy].
func (p *policy) GetTargetRefs() []machinery.PolicyTargetReference {
	return []machinery.PolicyTargetReference{machinery.LocalPolicyTargetReferenceWithSectionName{
		LocalPolicyTargetReferenceWithSectionName: p.target,
		PolicyNamespace: p.Namespace,
	}}
}

// GetMergeStrategy implements [machinery.Policy].
func (p *policy) GetMergeStrategy() machinery.MergeStrategy { return p.strategy }

// Merge joins this policy with a less specific one by the strategy of that one.
func (p *policy) Merge(other machinery.Policy) machinery.Policy {
	source, ok := other.(*policy)
	if !ok || source.kind != p.kind {
		return p
	}
	return source.strategy(source, p)
}

// DeepCopyObject implements [runtime.Object].
func (p *policy) DeepCopyObject() runtime.Object { return p.withRules(p.rules) }

// withRules copies the policy with other rules.
func (p *policy) withRules(rules map[string]rule) *policy {
	dup := *p
	dup.rules = make(map[string]rule, len(rules))
	for key, rule := range rules {
		dup.rules[key] = rule
	}
	return &dup
}

// empty reports whether an atomic default of less specific policies applies in place of this policy.
func (p *policy) empty() bool {
	for key := range p.rules {
		if first, _, _ := strings.Cut(strings.ReplaceAll(key, "#", "."), "."); first == p.kind.required {
			return false
		}
	}
	return true
}

// id is `namespace/name`.
func (p *policy) id() string { return p.Namespace + "/" + p.Name }

// readPolicy decodes a policy.
func readPolicy(kind *policyKind, document json.RawMessage) (*policy, error) {
	read := &policy{kind: kind, strategy: machinery.DefaultMergeStrategy}
	var parts struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ObjectMeta          `json:"metadata"`
		Spec            map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(document, &parts); err != nil {
		return nil, err
	}
	read.TypeMeta, read.ObjectMeta, read.spec = parts.TypeMeta, parts.Metadata, parts.Spec
	if err := json.Unmarshal(parts.Spec["targetRef"], &read.target); err != nil {
		return nil, err
	}
	delete(read.spec, "targetRef")
	if len(kind.maps) == 0 {
		return read, nil
	}
	return read, read.readRules()
}

// readRules takes the rules from the block of the policy that has them.
func (p *policy) readRules() error {
	block := p.spec
	p.strategy = atomicDefaults
	for _, name := range []string{"defaults", "overrides"} {
		raw, ok := p.spec[name]
		if !ok {
			continue
		}
		block = map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &block); err != nil {
			return err
		}
		var chosen string
		if err := json.Unmarshal(orNull(block["strategy"]), &chosen); err != nil {
			return err
		}
		p.strategy = strategyOf(name, chosen)
		break
	}
	p.rules = map[string]rule{}
	for _, path := range p.kind.single {
		if value, ok := field(block, path); ok {
			p.rules[path] = rule{Value: value, Source: p.id()}
		}
	}
	for _, path := range p.kind.maps {
		value, ok := field(block, path)
		if !ok {
			continue
		}
		entries := map[string]json.RawMessage{}
		if err := json.Unmarshal(value, &entries); err != nil {
			return err
		}
		for name, entry := range entries {
			p.rules[path+"#"+name] = rule{Value: entry, Source: p.id()}
		}
	}
	return nil
}

// field finds the value at a dotted path.
func field(block map[string]json.RawMessage, path string) (json.RawMessage, bool) {
	first, rest, nested := strings.Cut(path, ".")
	value, ok := block[first]
	if !ok || !nested {
		return value, ok
	}
	inner := map[string]json.RawMessage{}
	if err := json.Unmarshal(value, &inner); err != nil {
		return nil, false
	}
	return field(inner, rest)
}

func orNull(value json.RawMessage) json.RawMessage {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}
