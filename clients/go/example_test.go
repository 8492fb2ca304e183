package entail_test

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	entail "entail.dev/clients/go"
	entailv1 "entail.dev/clients/go/entail/v1"
	"entail.dev/clients/go/internal/servertest"
)

// address of the server of the examples, such as unix:/run/entail/entail.sock or 127.0.0.1:50051.
var address string

//go:embed testdata/world.yaml
var exampleWorld string

func TestMain(m *testing.M) {
	var main servertest.Main
	server := servertest.Start(&main, map[string]string{"world.yaml": exampleWorld})
	address = server.Address()
	code := m.Run()
	main.Close()
	if leak := servertest.LeakedGoroutine(); leak != "" && code == 0 {
		fmt.Fprintf(os.Stderr, "a goroutine is left after all tests:\n%s\n", leak)
		code = 1
	}
	if main.Failed() {
		code = 1
	}
	os.Exit(code)
}

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := entail.Dial(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	mirror, err := entail.NewMirror(ctx, client, entail.Selection{
		Prefixes: []string{"gateways/shop/web"},
		Levels:   []string{"RouteRule"},
		Kinds:    []string{"TimeoutPolicy.example.com"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer mirror.Close()
	if err := mirror.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}

	// For each request, from the copy in memory:
	snapshot := mirror.Snapshot()
	policies, err := snapshot.LookUp("gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/pay")
	switch {
	case err != nil:
		fmt.Println("reject the request:", err)
	case !snapshot.IsKnown("TimeoutPolicy.example.com"),
		policies.Policy("TimeoutPolicy.example.com").GetUnknown() != nil:
		fmt.Println("reject the request: there may be a policy")
	default:
		fmt.Println(policies.Policy("TimeoutPolicy.example.com").GetSpecJson())
	}
	// Output: {"idle":"1m","request":"30s"}
}

func ExampleClient_Get() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := entail.Dial(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	request := entail.Request{Path: "gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/pay"}
	reply, err := client.Get(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	for _, policy := range reply.Policies {
		fmt.Println(policy.GetKind(), policy.GetSpecJson())
		for _, origin := range policy.GetOrigins() {
			fmt.Println(" ", origin.GetUnit(), "is set by", origin.GetPolicies()[0].GetName())
		}
	}

	// The same again: policies that the caller holds are left out.
	request.IfNoneMatch = reply.ETag
	reply, err = client.Get(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("not modified:", reply.NotModified)
	// Output:
	// TimeoutPolicy {"idle":"1m","request":"30s"}
	//   idle is set by everywhere
	//   request is set by pay
	// not modified: true
}

func ExampleClient_BatchGet() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := entail.Dial(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	const rules = "gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/"
	requests := []entail.Request{{Path: rules + "look"}, {Path: rules + "sell"}}
	batch, err := client.BatchGet(ctx, requests, "TimeoutPolicy.example.com")
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range batch.Results {
		if result.Err != nil {
			fmt.Println("no such path")
			continue
		}
		fmt.Println(result.Policy("TimeoutPolicy.example.com").GetSpecJson())
	}
	// Output:
	// {"idle":"1m","request":"10s"}
	// no such path
}

func ExampleError() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := entail.Dial(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Get(ctx, entail.Request{Path: "gateways/shop/web/listeners/https"})
	var failure *entail.Error
	switch {
	case err == nil:
		fmt.Println("found")
	case errors.As(err, &failure) && failure.Code == codes.NotFound:
		fmt.Printf("%s; the nearest path is %s\n", failure.Reason, failure.Nearest)
	case entail.IsRetryable(err):
		fmt.Println("try again later")
	default:
		fmt.Println(err)
	}
	// Output: ListenerNotFound; the nearest path is gateways/shop/web
}

// Each distinct answer is parsed once, when it arrives.
func ExampleNewCompiledMirror() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := entail.Dial(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	type timeout struct {
		request time.Duration
		err     error
	}
	compile := func(answer *entail.EffectivePolicies) timeout {
		policy := answer.Policy("TimeoutPolicy.example.com")
		if policy == nil {
			return timeout{}
		}
		var spec struct{ Request string }
		if err := json.Unmarshal([]byte(policy.GetSpecJson()), &spec); err != nil {
			return timeout{err: err}
		}
		request, err := time.ParseDuration(spec.Request)
		return timeout{request, err}
	}
	selection := entail.Selection{Levels: []string{"RouteRule"}, Kinds: []string{"TimeoutPolicy.example.com"}}
	mirror, err := entail.NewCompiledMirror(ctx, client, selection, compile)
	if err != nil {
		log.Fatal(err)
	}
	defer mirror.Close()
	if err := mirror.WaitReady(ctx); err != nil {
		log.Fatal(err)
	}
	// A rule without a name has its index.
	answer, ok := mirror.Get("gateways/shop/web/listeners/http/routes/HTTPRoute/shop/search/rules/#0")
	fmt.Println(answer.request, answer.err, ok)
	// Output: 10s <nil> true
}

// The generated clients have the methods that Client has not.
func ExampleClient_Policies() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := entail.Dial(address)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	reply, err := client.Policies().ResolveRequest(ctx, &entailv1.ResolveRequestRequest{
		Host: "shop.example.com", Path: "/cart/pay", Gateway: "shop/web",
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, resolved := range reply.GetResolved() {
		fmt.Println(resolved.GetPath())
	}
	// Output: gateways/shop/web/listeners/http/routes/HTTPRoute/shop/cart/rules/pay
}
