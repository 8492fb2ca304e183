package entail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	entailv1 "entail.dev/clients/go/entail/v1"
)

const (
	// MaxReplyBytes is the maximum size of a reply. The default of gRPC, 4 MiB, is too small for large batches.
	MaxReplyBytes = 64 << 20
	// MaxBatch is the maximum number of paths of [Client.BatchGet].
	MaxBatch = 10_000
)

// The delay between attempts to connect.
const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// Timeout of connecting, and time without a message after which a connection is checked.
const connectionTimeout = 30 * time.Second

// Client is a connection to a server. It reconnects when the connection is lost. All methods may be called at the same
// time.
type Client struct {
	address  string
	conn     *grpc.ClientConn
	policies entailv1.EffectivePolicyServiceClient
}

// Option is an option of [Dial].
type Option func(*dialSettings)

type dialSettings struct {
	tls     *TLS
	options []grpc.DialOption
}

// WithTLS sets the certificates for an address that begins with https://.
func WithTLS(files TLS) Option {
	return func(settings *dialSettings) { settings.tls = &files }
}

// WithDialOptions adds options of gRPC, such as interceptors for tracing. They override those of this package.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(settings *dialSettings) { settings.options = append(settings.options, options...) }
}

// Dial creates a client of the server at an address: host:port, http://host:port, https://host:port or unix:PATH.
//
// It does not connect: the first call does, and fails if that is not possible. Use [Client.Connect] to connect at once.
// Dial fails if the address is malformed, if a certificate cannot be used, or if certificates are set and the address
// does not begin with https://.
func Dial(address string, options ...Option) (*Client, error) {
	parsed, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	var settings dialSettings
	for _, option := range options {
		option(&settings)
	}
	var transport credentials.TransportCredentials = insecure.NewCredentials()
	var converter errorConverter
	switch {
	case parsed.secure:
		if settings.tls == nil {
			settings.tls = &TLS{}
		}
		reloading, err := newReloadingCredentials(*settings.tls)
		if err != nil {
			return nil, err
		}
		transport, converter.unauthenticated = reloading, reloading.state.renew
	case settings.tls != nil:
		return nil, fmt.Errorf("entail: %q is not a server address: certificates need `https://host:port`", address)
	}
	dialOptions := []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		// What the server sends, not an HTTP proxy or a record of DNS, decides.
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: firstBackoff, Multiplier: 2, Jitter: 0.2, MaxDelay: maxBackoff},
			MinConnectTimeout: connectionTimeout,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: connectionTimeout, Timeout: connectionTimeout, PermitWithoutStream: true,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxReplyBytes)),
		grpc.WithChainUnaryInterceptor(converter.unary),
		grpc.WithChainStreamInterceptor(converter.stream),
	}
	target := "dns:///" + parsed.host
	if parsed.socket != "" {
		target = "passthrough:///socket"
		dialOptions = append(dialOptions, grpc.WithAuthority("localhost"),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				var dialer net.Dialer
				return dialer.DialContext(ctx, "unix", parsed.socket)
			}))
	}
	conn, err := grpc.NewClient(target, append(dialOptions, settings.options...)...)
	if err != nil {
		return nil, fmt.Errorf("entail: %s: %w", address, err)
	}
	return &Client{
		address:  address,
		conn:     conn,
		policies: entailv1.NewEffectivePolicyServiceClient(conn),
	}, nil
}

// Connect connects to the server, and returns an error if that fails. The server may not have a snapshot yet.
//
// Calls connect by themselves. Use Connect to report a wrong address or certificate at the start of a program.
func (c *Client) Connect(ctx context.Context) error {
	// A server that rejects the certificate of its client says so at the first call.
	request := &grpc_health_v1.HealthCheckRequest{Service: "liveness"}
	_, err := grpc_health_v1.NewHealthClient(c.conn).Check(ctx, request)
	var failure *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure) && failure.TLS != 0:
		return fmt.Errorf("failed to connect to %s: %w", c.address, err)
	default:
		return fmt.Errorf("failed to connect to %s: %w; is `entail serve` running there?", c.address, err)
	}
}

// Close closes the connection. Calls in progress fail, and mirrors of the client end. Closing it again does nothing.
func (c *Client) Close() error {
	if err := c.conn.Close(); status.Code(err) != codes.Canceled {
		return err
	}
	return nil
}

// Policies returns the generated client of EffectivePolicyService, for what [Client] has no method, such as
// ResolveRequest.
func (c *Client) Policies() entailv1.EffectivePolicyServiceClient { return c.policies }

// Insight returns the generated client of PolicyInsightService.
func (c *Client) Insight() entailv1.PolicyInsightServiceClient {
	return entailv1.NewPolicyInsightServiceClient(c.conn)
}

// Request names a path whose effective policies are looked up.
type Request struct {
	// Path is the name of the path, such as gateways/ns/gw/listeners/http.
	Path string
	// Ref is the path in parts. If it is set, Path is not used.
	Ref *entailv1.PathRef
	// IfNoneMatch is the etag of an answer that the caller holds. If it is current, the policies are left out.
	IfNoneMatch string
}

// Reply is the answer of [Client.Get].
type Reply struct {
	EffectivePolicies
	// NotModified reports whether the etag equals IfNoneMatch of the request. There are no policies then.
	NotModified bool
	SnapshotInfo
}

// BatchReply is the answer of [Client.BatchGet].
type BatchReply struct {
	// Results has one entry for each request, in the same order.
	Results []Result
	SnapshotInfo
}

// Result is the answer for one path of a batch. Results with equal policies share them.
type Result struct {
	EffectivePolicies
	// NotModified reports whether the etag equals IfNoneMatch of the request. There are no policies then.
	NotModified bool
	// Err is an [*Error] if the path has no answer.
	Err error
}

// Get returns the effective policies of one path. Only policies of kinds, each as Kind.group, are returned; those of all
// kinds if there are none. It does not retry.
//
// If the path does not exist, the error is an [*Error] with the code NotFound and a reason. A path without policies has
// an answer without entries; see [SnapshotInfo.IsKnown] for how to distinguish "no policy" from "not known".
func (c *Client) Get(ctx context.Context, request Request, kinds ...string) (*Reply, error) {
	message := request.message()
	message.Kinds = kinds
	reply, err := c.policies.GetEffectivePolicies(ctx, message)
	if err != nil {
		return nil, err
	}
	result := reply.GetResult()
	if result == nil {
		return nil, protocolError("the reply has no result")
	}
	if err := pathError(result.GetError()); err != nil {
		return nil, err
	}
	return &Reply{
		EffectivePolicies: EffectivePolicies{Policies: result.GetPolicies(), ETag: result.GetEtag()},
		NotModified:       result.GetNotModified(),
		SnapshotInfo:      newSnapshotInfo(reply),
	}, nil
}

// BatchGet returns the effective policies of at most [MaxBatch] paths, from one snapshot. Only policies of kinds, each
// as Kind.group, are returned; those of all kinds if there are none. It does not retry.
//
// A path that has no answer has an error in its result; the others are not affected. A larger batch fails with
// [ReasonTooManyPaths]: it is not split, because its parts could be from several snapshots.
func (c *Client) BatchGet(ctx context.Context, requests []Request, kinds ...string) (*BatchReply, error) {
	batch := &entailv1.BatchGetEffectivePoliciesRequest{
		Requests: make([]*entailv1.GetEffectivePoliciesRequest, len(requests)),
		Kinds:    kinds,
	}
	for i, request := range requests {
		batch.Requests[i] = request.message()
	}
	reply, err := c.policies.BatchGetEffectivePolicies(ctx, batch)
	if err != nil {
		return nil, err
	}
	if len(reply.GetResults()) != len(requests) {
		return nil, protocolError("%d results for %d requests", len(reply.GetResults()), len(requests))
	}
	results := make([]Result, len(requests))
	for i, result := range reply.GetResults() {
		results[i] = Result{
			EffectivePolicies: EffectivePolicies{ETag: result.GetEtag()},
			NotModified:       result.GetNotModified(),
			Err:               pathError(result.GetError()),
		}
		if results[i].Err != nil || results[i].NotModified {
			continue
		}
		// 0 is the index of a body, and not the same as no body.
		if result.Body == nil || uint64(result.GetBody()) >= uint64(len(reply.GetBodies())) {
			return nil, protocolError("result %d has no body", i)
		}
		results[i].Policies = reply.GetBodies()[result.GetBody()].GetPolicies()
	}
	return &BatchReply{Results: results, SnapshotInfo: newSnapshotInfo(reply)}, nil
}

func (r Request) message() *entailv1.GetEffectivePoliciesRequest {
	message := &entailv1.GetEffectivePoliciesRequest{IfNoneMatch: r.IfNoneMatch}
	switch {
	case r.Ref != nil:
		message.Target = &entailv1.GetEffectivePoliciesRequest_Ref{Ref: r.Ref}
	default:
		message.Target = &entailv1.GetEffectivePoliciesRequest_Path{Path: r.Path}
	}
	return message
}
