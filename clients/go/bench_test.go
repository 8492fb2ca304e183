package entail

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// benchmarkMirror returns a mirror of a route with many rules, and the path of its last rule.
func benchmarkMirror(b *testing.B) (*Client, *Mirror[*EffectivePolicies], string) {
	b.Helper()
	server, client := connected(b)
	var manifests strings.Builder
	const routes, rules = 250, 16
	for route := range routes {
		fmt.Fprintf(&manifests, `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: many-%d, namespace: shop}
spec:
  parentRefs: [{name: web}]
  rules:
`, route)
		for rule := range rules {
			fmt.Fprintf(&manifests, "  - {name: rule-%d, matches: [{path: {type: PathPrefix, value: /%d}}]}\n", rule, rule)
		}
	}
	server.Write("many.yaml", manifests.String())
	mirror := followed(b, client, Selection{Levels: []string{"RouteRule"}})
	path := fmt.Sprintf("gateways/shop/web/listeners/http/routes/HTTPRoute/shop/many-%d/rules/rule-%d", routes-1, rules-1)
	waitFor(b, mirror, func(Status) bool {
		_, ok := mirror.Get(path)
		return ok
	})
	return client, mirror, path
}

func BenchmarkMirror(b *testing.B) {
	_, mirror, path := benchmarkMirror(b)
	byIndex := strings.Replace(path, "rule-", "#", 1)
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := mirror.Get(path); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("GetByIndex", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := mirror.Get(byIndex); !ok {
				b.Fatal("not found")
			}
		}
	})
	b.Run("GetParallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, ok := mirror.Get(path); !ok {
					b.Error("not found")
					return
				}
			}
		})
	})
	b.Run("LookUpMissing", func(b *testing.B) {
		missing := path + "x"
		b.ReportAllocs()
		for b.Loop() {
			if _, err := mirror.LookUp(missing); err != ErrPathNotFound {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkClient(b *testing.B) {
	client, _, path := benchmarkMirror(b)
	ctx := context.Background()
	b.Run("Get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.Get(ctx, Request{Path: path}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("BatchGet100", func(b *testing.B) {
		requests := make([]Request, 100)
		for i := range requests {
			requests[i].Path = path
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := client.BatchGet(ctx, requests); err != nil {
				b.Fatal(err)
			}
		}
	})
}
