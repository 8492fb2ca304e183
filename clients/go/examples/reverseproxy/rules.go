package main

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// rule is a rule of a route.
type rule struct {
	prefix  string
	name    string // HTTPRoute/NAMESPACE/NAME/rules/RULE
	path    string // path name of the rule, for look-ups in the mirror
	backend *url.URL
	bucket  *bucket // token bucket of the rate limit; all prefixes of a rule share it
}

// table is the routing table. A controller would configure it; this example reads it from flags.
type table []*rule

func (t *table) String() string { return "" }

// Set parses the value of a flag.
func (t *table) Set(text string) error {
	prefix, rest, hasRule := strings.Cut(text, "=")
	name, target, hasTarget := strings.Cut(rest, "@")
	if !hasRule || !hasTarget || !strings.HasPrefix(prefix, "/") {
		return fmt.Errorf("%q is not PREFIX=HTTPRoute/NAMESPACE/NAME/rules/RULE@URL", text)
	}
	if parts := strings.Split(name, "/"); len(parts) != 5 || parts[3] != "rules" || slices.Contains(parts, "") {
		return fmt.Errorf("%q is not HTTPRoute/NAMESPACE/NAME/rules/RULE", name)
	}
	backend, err := url.Parse(target)
	if err != nil || backend.Scheme != "http" || backend.Host == "" {
		return fmt.Errorf("%q does not begin with http://HOST", target)
	}
	*t = append(*t, &rule{prefix: strings.TrimRight(prefix, "/"), name: name, backend: backend})
	return nil
}

// prepare sets the paths of the rules below a listener, and sorts them by decreasing length of the prefix.
func (t table) prepare(listener string) {
	buckets := map[string]*bucket{}
	for _, rule := range t {
		if buckets[rule.name] == nil {
			buckets[rule.name] = &bucket{}
		}
		rule.bucket, rule.path = buckets[rule.name], listener+"/routes/"+rule.name
	}
	slices.SortStableFunc(t, func(a, b *rule) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
}

// find returns the rule that matches a request path; nil if there is none.
func (t table) find(path string) *rule {
	for _, rule := range t {
		if below, ok := strings.CutPrefix(path, rule.prefix); ok && (below == "" || below[0] == '/') {
			return rule
		}
	}
	return nil
}

// isUnambiguous reports whether proxy and backend interpret a path, as it was sent, in the same way. A backend that
// normalizes /cart/%2e%2e/cart/pay or //cart/pay to /cart/pay could otherwise be reached without the rate limit of the
// rule of /cart/pay.
func isUnambiguous(path string) bool {
	lower := strings.ToLower(path)
	for _, text := range []string{"//", `\`, "%2f", "%5c", "%2e"} {
		if strings.Contains(lower, text) {
			return false
		}
	}
	isDots := func(segment string) bool { return segment == "." || segment == ".." }
	return strings.HasPrefix(path, "/") && !slices.ContainsFunc(strings.Split(path, "/"), isDots)
}
