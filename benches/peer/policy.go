package main

import (
	"maps"

	"github.com/kuadrant/policy-machinery/machinery"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapiv1alpha2 "sigs.k8s.io/gateway-api/apis/v1alpha2"
)

const (
	policyGroup = "bench.example.com"
	policyKind  = "TestPolicy"
	atomic      = "atomic"
	merge       = "merge"
)

// TestPolicy is an inherited policy with defaults or overrides, typed like the kind of a controller.
type TestPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TestPolicySpec `json:"spec"`
}

// TestPolicySpec has one of the two blocks.
type TestPolicySpec struct {
	TargetRef gwapiv1alpha2.LocalPolicyTargetReferenceWithSectionName `json:"targetRef"`
	Defaults  *Block                                                  `json:"defaults,omitempty"`
	Overrides *Block                                                  `json:"overrides,omitempty"`
}

// Block contains rules by name, and how they are merged with those of other policies.
type Block struct {
	Strategy string          `json:"strategy"`
	Rules    map[string]Rule `json:"rules"`
}

// Rule is one unit. Its fields are sorted by name, so that its JSON is canonical.
type Rule struct {
	N     int64  `json:"n"`
	Value string `json:"value"`
	// Source is the locator of the policy that set a merged rule. The answers of entail have origins,
	// so the comparison requires the same work here.
	Source string `json:"-"`
}

var _ machinery.Policy = &TestPolicy{}

// GetLocator returns the identity of the policy in the topology.
func (p *TestPolicy) GetLocator() string { return machinery.LocatorFromObject(p) }

// GetTargetRefs returns the targets of the policy.
func (p *TestPolicy) GetTargetRefs() []machinery.PolicyTargetReference {
	return []machinery.PolicyTargetReference{
		machinery.LocalPolicyTargetReferenceWithSectionName{
			LocalPolicyTargetReferenceWithSectionName: p.Spec.TargetRef,
			PolicyNamespace: p.Namespace,
		},
	}
}

// GetMergeStrategy returns how this policy is merged with more specific ones.
func (p *TestPolicy) GetMergeStrategy() machinery.MergeStrategy {
	overrides := p.Spec.Overrides != nil
	switch {
	case overrides && p.block().Strategy == merge:
		return mergedOverrides
	case overrides:
		return atomicOverrides
	case p.block().Strategy == merge:
		return mergedDefaults
	default:
		return atomicDefaults
	}
}

// Merge merges a less specific policy into this one, with the strategy of the less specific one.
func (p *TestPolicy) Merge(other machinery.Policy) machinery.Policy {
	source, ok := other.(*TestPolicy)
	if !ok {
		return p
	}
	return source.GetMergeStrategy()(source, p)
}

func (p *TestPolicy) block() *Block {
	if p.Spec.Overrides != nil {
		return p.Spec.Overrides
	}
	return p.Spec.Defaults
}

// deepCopy copies the policy as generated code does: the original belongs to the cache of a
// controller and must not change.
func (p *TestPolicy) deepCopy() *TestPolicy {
	dup := &TestPolicy{TypeMeta: p.TypeMeta}
	p.ObjectMeta.DeepCopyInto(&dup.ObjectMeta)
	p.Spec.TargetRef.DeepCopyInto(&dup.Spec.TargetRef)
	dup.Spec.Defaults = p.Spec.Defaults.deepCopy()
	dup.Spec.Overrides = p.Spec.Overrides.deepCopy()
	return dup
}

func (b *Block) deepCopy() *Block {
	if b == nil {
		return nil
	}
	return &Block{Strategy: b.Strategy, Rules: maps.Clone(b.Rules)}
}

// withRules returns a copy of the policy with other rules.
func (p *TestPolicy) withRules(rules map[string]Rule) *TestPolicy {
	dup := p.deepCopy()
	dup.block().Rules = rules
	return dup
}

// rules returns a copy of the rules with their origins; merged rules keep theirs.
func (p *TestPolicy) rules() map[string]Rule {
	locator := p.GetLocator()
	rules := make(map[string]Rule, len(p.block().Rules))
	for name, rule := range p.block().Rules {
		if rule.Source == "" {
			rule.Source = locator
		}
		rules[name] = rule
	}
	return rules
}

// joined returns all rules of winner, and the rules of loser with other names.
func joined(winner, loser *TestPolicy) map[string]Rule {
	rules := winner.rules()
	for name, rule := range loser.rules() {
		if _, taken := rules[name]; !taken {
			rules[name] = rule
		}
	}
	return rules
}

// In the four strategies, source is the less specific policy, and target the merged policies below it.

func atomicDefaults(source, target machinery.Policy) machinery.Policy {
	below := target.(*TestPolicy)
	if len(below.block().Rules) > 0 {
		return below.withRules(below.rules())
	}
	above := source.(*TestPolicy)
	return above.withRules(above.rules())
}

func atomicOverrides(source, _ machinery.Policy) machinery.Policy {
	above := source.(*TestPolicy)
	return above.withRules(above.rules())
}

func mergedDefaults(source, target machinery.Policy) machinery.Policy {
	above, below := source.(*TestPolicy), target.(*TestPolicy)
	return below.withRules(joined(below, above))
}

func mergedOverrides(source, target machinery.Policy) machinery.Policy {
	above, below := source.(*TestPolicy), target.(*TestPolicy)
	return below.withRules(joined(above, below))
}

var (
	_ machinery.MergeStrategy = atomicDefaults
	_ machinery.MergeStrategy = atomicOverrides
	_ machinery.MergeStrategy = mergedDefaults
	_ machinery.MergeStrategy = mergedOverrides
)
