package main

import "github.com/kuadrant/policy-machinery/machinery"

// The strategies of the operator. In each, `source` is the less specific policy, which dictates the strategy, and
// `target` is what the more specific ones came to.

// strategyOf returns the strategy of a block. Anything but `merge` is atomic.
func strategyOf(block, chosen string) machinery.MergeStrategy {
	switch {
	case block == "defaults" && chosen == "merge":
		return ruleDefaults
	case block == "overrides" && chosen == "merge":
		return ruleOverrides
	case block == "overrides":
		return atomicOverrides
	default:
		return atomicDefaults
	}
}

// atomicDefaults takes the source only if the target has no rules.
func atomicDefaults(source, target machinery.Policy) machinery.Policy {
	if !target.(*policy).empty() {
		return target
	}
	return source
}

// atomicOverrides takes the source alone.
func atomicOverrides(source, _ machinery.Policy) machinery.Policy { return source }

// ruleDefaults adds the rules of the source that the target lacks.
func ruleDefaults(source, target machinery.Policy) machinery.Policy {
	return union(target.(*policy), source.(*policy), target.(*policy))
}

// ruleOverrides sets the rules of the source and keeps the others of the target.
func ruleOverrides(source, target machinery.Policy) machinery.Policy {
	return union(source.(*policy), target.(*policy), target.(*policy))
}

// union joins the rules of two policies, of which the first wins. The rest of the policy is that of the third.
func union(first, second, rest *policy) *policy {
	joined := rest.withRules(second.rules)
	for key, rule := range first.rules {
		joined.rules[key] = rule
	}
	return joined
}
