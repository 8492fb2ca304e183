// Package pathname parses path names. It does not allocate, except for errors.
//
//	gatewayclasses/{name} | namespaces/{name}
//	gateways/{ns}/{name}[/listenersets/{ns}/{name}][/listeners/{listener}
//	  [/routes/{Kind}/{ns}/{name}/rules/{rule}]...[/routes/{Kind}/{ns}/{name}
//	  [/rules/{rule}[/backends/{Kind}/{ns}/{name}[/ports/{port}]]]]]
//	mesh/{clientNamespace}/services/{ns}/{name}[/ports/{port}][/routes/...]
package pathname

import (
	"fmt"
	"strconv"
	"strings"
)

// Levels that a path can end at.
const (
	GatewayClass = "GatewayClass"
	Namespace    = "Namespace"
	Gateway      = "Gateway"
	ListenerSet  = "ListenerSet"
	Listener     = "Listener"
	Route        = "Route"
	RouteRule    = "RouteRule"
	Backend      = "Backend"
	BackendPort  = "BackendPort"
)

const (
	maxLength      = 8192
	maxDelegations = 8
)

// Name is a parsed path name.
type Name struct {
	// Level that the path ends at. A mesh root has the level of a Gateway, and its port that of a Listener.
	Level string
	// The rules, from the root down.
	rules [maxDelegations + 1]Rule
	count int
}

// Rule is the position of the name or index of a rule in a path name.
type Rule struct {
	// Start and End are byte offsets.
	Start, End int
	// Index of the rule; -1 for a rule that is named.
	Index int64
}

// Rules returns the rules of the path, from the root down.
func (n *Name) Rules() []Rule { return n.rules[:n.count] }

// SyntaxError reports why a text is not a path name.
type SyntaxError struct {
	// Offset is the number of bytes before the part that is not expected.
	Offset  int
	Message string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Message, e.Offset) }

// IsLevel reports whether a text is the name of a level.
func IsLevel(text string) bool {
	switch text {
	case GatewayClass, Namespace, Gateway, ListenerSet, Listener, Route, RouteRule, Backend, BackendPort:
		return true
	}
	return false
}

// Covers reports whether a path is the path that prefix names, or is below it.
func Covers(prefix, path string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// Parse parses a path name.
func Parse(text string) (Name, error) {
	var name Name
	if len(text) > maxLength {
		return name, &SyntaxError{maxLength, "path name is longer than 8192 bytes"}
	}
	p := parser{text: text}
	switch {
	case p.keyword("gatewayclasses"):
		name.Level = GatewayClass
		p.name()
	case p.keyword("namespaces"):
		name.Level = Namespace
		p.name()
	case p.keyword("gateways"):
		p.gateway(&name)
	case p.keyword("mesh"):
		p.mesh(&name)
	default:
		p.fail(p.at, "expected `gateways`, `mesh`, `gatewayclasses` or `namespaces`")
	}
	if p.message == "" && p.at <= len(text) {
		p.fail(p.at, "unexpected part; levels cannot be skipped or repeated")
	}
	if p.message != "" {
		return Name{}, &SyntaxError{min(p.offset, len(text)), p.message}
	}
	return name, nil
}

// parser is a cursor over the parts between slashes. After a failure it does not advance.
type parser struct {
	text string
	// Offset of the next part; more than the length of the text if there is none.
	at int
	// The first failure.
	offset  int
	message string
}

func (p *parser) fail(offset int, message string) {
	if p.message == "" {
		p.offset, p.message = offset, message
	}
}

// peek returns the next part, and whether there is one.
func (p *parser) peek() (string, bool) {
	if p.message != "" || p.at > len(p.text) {
		return "", false
	}
	rest := p.text[p.at:]
	if slash := strings.IndexByte(rest, '/'); slash >= 0 {
		rest = rest[:slash]
	}
	return rest, true
}

// keyword consumes the next part if it equals word.
func (p *parser) keyword(word string) bool {
	part, ok := p.peek()
	if !ok || part != word {
		return false
	}
	p.at += len(part) + 1
	return true
}

// name consumes a part that is not empty.
func (p *parser) name() string {
	part, ok := p.peek()
	switch {
	case !ok:
		p.fail(p.at, "path name ends too early")
	case part == "":
		p.fail(p.at, "empty part")
	default:
		p.at += len(part) + 1
	}
	return part
}

func (p *parser) names(count int) {
	for range count {
		p.name()
	}
}

// number parses the canonical spelling of a number: a path has one name.
func number(text string, bits int) (uint64, bool) {
	if text == "" || text[0] == '+' || (text[0] == '0' && text != "0") {
		return 0, false
	}
	value, err := strconv.ParseUint(text, 10, bits)
	return value, err == nil
}

func (p *parser) port() {
	start := p.at
	if value, ok := number(p.name(), 16); !ok || value == 0 {
		p.fail(start, "expected a port number from 1 to 65535")
	}
}

func (p *parser) gateway(name *Name) {
	name.Level = Gateway
	p.names(2)
	if p.keyword("listenersets") {
		name.Level = ListenerSet
		p.names(2)
	}
	if p.keyword("listeners") {
		name.Level = Listener
		p.name()
		p.belowRoot(name)
	}
}

func (p *parser) mesh(name *Name) {
	name.Level = Gateway
	p.name()
	if p.message == "" && !p.keyword("services") {
		p.fail(p.at, "expected `services`")
	}
	p.names(2)
	if p.keyword("ports") {
		name.Level = Listener
		p.port()
	}
	p.belowRoot(name)
}

func (p *parser) belowRoot(name *Name) {
	for {
		next := p.at
		if !p.keyword("routes") {
			break
		}
		if name.count > maxDelegations {
			p.fail(next, "more than 8 rules delegate")
			return
		}
		name.Level = Route
		p.names(3)
		if !p.keyword("rules") {
			return
		}
		name.Level = RouteRule
		p.rule(name)
	}
	if name.Level != RouteRule || !p.keyword("backends") {
		return
	}
	name.Level = Backend
	p.names(3)
	if p.keyword("ports") {
		name.Level = BackendPort
		p.port()
	}
}

func (p *parser) rule(name *Name) {
	start := p.at
	text := p.name()
	rule := Rule{Start: start, End: start + len(text), Index: -1}
	if digits, ok := strings.CutPrefix(text, "#"); ok {
		value, ok := number(digits, 32)
		if !ok {
			p.fail(start, "expected a rule index such as `#0`")
		}
		rule.Index = int64(value)
	}
	name.rules[name.count] = rule
	name.count++
}
