package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/kuadrant/policy-machinery/machinery"
	"sigs.k8s.io/yaml"
)

// documents is the maximum number per manifest, so that no limit of a parser affects a world.
const documents = 250

// profile is the PolicyProfile of TestPolicy, with the strategies of policy.go.
const profile = `apiVersion: entail.dev/v1alpha1
kind: PolicyProfile
metadata: {name: testpolicies.bench.example.com}
spec:
  preset: kuadrant
  policy: {group: bench.example.com, kind: TestPolicy}
  mesh: false
  targets:
  - {group: gateway.networking.k8s.io, kind: Gateway, sections: true}
  - {group: gateway.networking.k8s.io, kind: HTTPRoute, sections: true}
  effectiveTarget: RouteRule
  maxTargets: 1
  rules:
    path: spec
    defaults: [defaults]
    overrides: [overrides]
    bothBlocks: false
  strategies: [AtomicDefaults, AtomicOverrides, RuleDefaults, RuleOverrides]
  strategy:
    field: strategy
    values: {atomic: Atomic, merge: Rule}
  ruleMaps: [rules]
`

// describe returns one line per path, sorted, and the number of distinct answers.
func describe(answers []answer) ([]string, int, error) {
	lines := make([]string, 0, len(answers))
	distinct := make(map[string]struct{})
	for _, a := range answers {
		rules := map[string]Rule{}
		if a.policy != nil {
			rules = a.policy.block().Rules
		}
		// json sorts the keys of maps, so equal answers are equal texts.
		text, err := json.Marshal(rules)
		if err != nil {
			return nil, 0, fmt.Errorf("answer: %w", err)
		}
		name, err := pathName(a.path)
		if err != nil {
			return nil, 0, err
		}
		distinct[string(text)] = struct{}{}
		lines = append(lines, name+"\t"+string(text))
	}
	sort.Strings(lines)
	return lines, len(distinct), nil
}

// pathName returns the path name of entail, which does not contain the class.
func pathName(path []machinery.Targetable) (string, error) {
	if len(path) != 5 {
		return "", fmt.Errorf("a path of %d nodes instead of 5", len(path))
	}
	gateway, isGateway := path[1].(*machinery.Gateway)
	listener, isListener := path[2].(*machinery.Listener)
	route, isRoute := path[3].(*machinery.HTTPRoute)
	rule, isRule := path[4].(*machinery.HTTPRouteRule)
	if !isGateway || !isListener || !isRoute || !isRule {
		return "", fmt.Errorf("a path of other nodes than Gateway, listener, route and rule")
	}
	return fmt.Sprintf("gateways/%s/%s/listeners/%s/routes/HTTPRoute/%s/%s/rules/%s",
		gateway.Namespace, gateway.Name, listener.Name, route.Namespace, route.Name, rule.Name), nil
}

func writeLines(lines []string, file string) error {
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

// writeWorld writes the objects to a directory, and the profile next to it: entail reads all files of
// a directory of manifests.
func writeWorld(w *world, directory string) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	beside := filepath.Join(directory, "..", "profile.yaml")
	if err := os.WriteFile(beside, []byte(profile), 0o644); err != nil {
		return err
	}
	groups := []struct {
		name    string
		objects []any
	}{
		{"class", []any{w.class}},
		{"gateways", anys(w.gateways)},
		{"services", anys(w.services)},
		{"routes", anys(w.routes)},
		{"policies", anys(w.policies)},
	}
	for _, group := range groups {
		for part := 0; part*documents < len(group.objects); part++ {
			objects := group.objects[part*documents : min((part+1)*documents, len(group.objects))]
			file := filepath.Join(directory, fmt.Sprintf("%s-%03d.yaml", group.name, part))
			if err := writeObjects(objects, file); err != nil {
				return err
			}
		}
	}
	return nil
}

func anys[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}

func writeObjects(objects []any, file string) error {
	var text strings.Builder
	for _, object := range objects {
		document, err := toYAML(object)
		if err != nil {
			return err
		}
		text.WriteString("---\n")
		text.Write(document)
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// toYAML omits the empty status of typed objects.
func toYAML(object any) ([]byte, error) {
	raw, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	delete(fields, "status")
	return yaml.Marshal(fields)
}
