package pathname

import (
	"errors"
	"strings"
	"testing"
)

const delegating = "gateways/ns/gw/listeners/l" +
	"/routes/HTTPRoute/rules/rules/rules/#0/routes/HTTPRoute/b/c/rules/x/routes/G/b/d/rules/#12"

func TestParse(t *testing.T) {
	for text, level := range map[string]string{
		"gatewayclasses/example":                                       GatewayClass,
		"namespaces/ns":                                                Namespace,
		"gateways/ns/gw":                                               Gateway,
		"gateways/ns/gw/listenersets/ns/ls":                            ListenerSet,
		"gateways/ns/gw/listenersets/ns/ls/listeners/x":                Listener,
		"gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r":          Route,
		"gateways/ns/gw/listeners/http/routes/HTTPRoute/ns/r/rules/#0": RouteRule,
		"mesh/*/services/ns/svc":                                       Gateway,
		"mesh/*/services/ns/svc/ports/80":                              Listener,
		"mesh/team/services/ns/svc/ports/80/routes/HTTPRoute/ns/r":     Route,
		delegating:                                     RouteRule,
		delegating + "/backends/Service/ns/s":          Backend,
		delegating + "/backends/Service/ns/s/ports/80": BackendPort,
	} {
		name, err := Parse(text)
		if err != nil || name.Level != level {
			t.Errorf("%s: %s, %v; want %s", text, name.Level, err, level)
		}
	}
}

func TestRules(t *testing.T) {
	name, err := Parse(delegating)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	var indexes []int64
	for _, rule := range name.Rules() {
		texts = append(texts, delegating[rule.Start:rule.End])
		indexes = append(indexes, rule.Index)
	}
	if got := strings.Join(texts, " "); got != "#0 x #12" {
		t.Errorf("rules: %s", got)
	}
	if len(indexes) != 3 || indexes[0] != 0 || indexes[1] != -1 || indexes[2] != 12 {
		t.Errorf("indexes: %v", indexes)
	}
}

func TestSyntaxErrors(t *testing.T) {
	const below = "/routes/HTTPRoute/a/b/rules/#0"
	tooDeep := "gateways/ns/gw/listeners/l" + strings.Repeat(below, 9)
	for text, offset := range map[string]int{
		"":                                     0,
		"/":                                    0,
		"gateways":                             8,
		"gateways//gw":                         9,
		"gateways/ns/gw/":                      15,
		"gateways/ns/gw/routes/HTTPRoute/ns/r": 15,
		"gateways/ns/gw/listeners/":            25,
		"gateways/ns/gw/listeners/l/routes/HTTPRoute/ns/r/rules/#x":  55,
		"gateways/ns/gw/listeners/l/routes/HTTPRoute/ns/r/rules/#00": 55,
		"gateways/ns/gw/listeners/l/backends/Service/ns/s":           27,
		"mesh/*/services/ns/svc/ports/080":                           29,
		"mesh/*/services/ns/svc/ports/70000":                         29,
		"mesh/*/gateways/ns/svc":                                     7,
		"namespaces/a/b":                                             13,
		"pods/a":                                                     0,
		tooDeep + "/routes/HTTPRoute/a/b":                            len(tooDeep) + 1,
		strings.Repeat("gateways/", 1200):                            8192,
	} {
		_, err := Parse(text)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != offset {
			t.Errorf("%.80q: %v; want offset %d", text, err, offset)
		}
	}
}

func TestCovers(t *testing.T) {
	for path, want := range map[string]bool{
		"gateways/a/gw": true, "gateways/a/gw/listeners/x": true, "gateways/a/gw2": false, "gateways/a": false,
	} {
		if Covers("gateways/a/gw", path) != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	if count := testing.AllocsPerRun(100, func() { _, _ = Parse(delegating) }); count != 0 {
		t.Errorf("%v allocations", count)
	}
}

// FuzzParse checks that no text makes the parser panic, and that the rules of a name are within it.
func FuzzParse(f *testing.F) {
	f.Add(delegating)
	f.Add("mesh/*/services/ns/svc/ports/80")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := Parse(text)
		if err != nil {
			return
		}
		for _, rule := range name.Rules() {
			if part := text[rule.Start:rule.End]; part == "" || strings.Contains(part, "/") {
				t.Errorf("%q: rule %q", text, part)
			}
		}
	})
}
