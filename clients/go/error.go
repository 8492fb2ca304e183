package entail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	entailv1 "entail.dev/clients/go/entail/v1"
)

// Domain of the reasons in google.rpc.ErrorInfo.
const errorDomain = "entail.dev"

// Trailer with the milliseconds after which a call may be repeated (gRFC A6).
const pushbackTrailer = "grpc-retry-pushback-ms"

// Error is why a call, or the look-up of a single path in a batch, failed. Get it with errors.As:
//
//	var failure *entail.Error
//	if errors.As(err, &failure) && failure.Code == codes.NotFound { ... }
//
// All calls over the connection of a [Client] return it, also those of [Client.Policies] and [Client.Insight].
type Error struct {
	// Code is the code of gRPC. NotFound means that the path does not exist, never that it has no policies.
	Code codes.Code
	// Reason is the stable reason; empty if the server sent none, or if the error is not the server's.
	Reason Reason
	// Nearest is the longest prefix of the path that exists; empty if none does, or if the error is not about a path.
	Nearest string
	// Message is for people and may change.
	Message string
	// RetryAfter is the time to wait before the call is repeated. It is 0 if the server sent none, and negative if the
	// server asks not to repeat the call.
	RetryAfter time.Duration
	// TLS is why client and server did not agree on a TLS connection; 0 if that is not the cause.
	TLS TLSFailure

	cause error
	grpc  *status.Status
}

// Reason is a stable reason of an [Error]. A server of a later version may send others.
type Reason string

// Reasons why a path name has no answer. The first step of the path that fails decides.
const (
	ReasonNotAPath                   Reason = "NotAPath"
	ReasonNoTarget                   Reason = "NoTarget"
	ReasonGatewayClassNotFound       Reason = "GatewayClassNotFound"
	ReasonNamespaceNotFound          Reason = "NamespaceNotFound"
	ReasonGatewayNotFound            Reason = "GatewayNotFound"
	ReasonListenerSetNotFound        Reason = "ListenerSetNotFound"
	ReasonListenerSetNotAllowed      Reason = "ListenerSetNotAllowed"
	ReasonListenerNotFound           Reason = "ListenerNotFound"
	ReasonRouteNotFound              Reason = "RouteNotFound"
	ReasonNoMatchingParent           Reason = "NoMatchingParent"
	ReasonDelegationNotFollowed      Reason = "DelegationNotFollowed"
	ReasonChildRouteHasHostnames     Reason = "ChildRouteHasHostnames"
	ReasonNotAllowedByListeners      Reason = "NotAllowedByListeners"
	ReasonNoMatchingListenerHostname Reason = "NoMatchingListenerHostname"
	ReasonRouteNotServed             Reason = "RouteNotServed"
	ReasonRuleNotFound               Reason = "RuleNotFound"
	ReasonBackendNotFound            Reason = "BackendNotFound"
	ReasonRefNotPermitted            Reason = "RefNotPermitted"
	ReasonPortNotFound               Reason = "PortNotFound"
)

// Reasons why a request is refused.
const (
	ReasonTooManyPaths      Reason = "TooManyPaths"
	ReasonTooMany           Reason = "TooMany"
	ReasonNotALevel         Reason = "NotALevel"
	ReasonNotAName          Reason = "NotAName"
	ReasonNotAnObject       Reason = "NotAnObject"
	ReasonNotAUnit          Reason = "NotAUnit"
	ReasonNoSubject         Reason = "NoSubject"
	ReasonNotAHost          Reason = "NotAHost"
	ReasonNotARequestPath   Reason = "NotARequestPath"
	ReasonAmbiguousPath     Reason = "AmbiguousPath"
	ReasonNotAPort          Reason = "NotAPort"
	ReasonRequestTooLarge   Reason = "RequestTooLarge"
	ReasonNotADialect       Reason = "NotADialect"
	ReasonNotARule          Reason = "NotARule"
	ReasonGatewayAndService Reason = "GatewayAndService"
	ReasonNoGateway         Reason = "NoGateway"
	ReasonPageSize          Reason = "PageSize"
	ReasonPageToken         Reason = "PageToken"
	ReasonKindNotFound      Reason = "KindNotFound"
	ReasonObjectNotFound    Reason = "ObjectNotFound"
	ReasonSectionNotFound   Reason = "SectionNotFound"
	ReasonNotOnAPath        Reason = "NotOnAPath"
	ReasonNotFound          Reason = "NotFound"
	// ReasonSnapshotChanged means that a page token belongs to another snapshot: start the listing again.
	ReasonSnapshotChanged Reason = "SnapshotChanged"
)

// TLSFailure is why a server and its client did not agree on a TLS connection.
type TLSFailure int

const (
	// ClientCertificateMissing means that the server requires a client certificate and got none.
	ClientCertificateMissing TLSFailure = iota + 1
	// ClientCertificateRejected means that the server did not accept the client certificate.
	ClientCertificateRejected
	// UnknownServerCA means that no CA that the client knows has signed the certificate of the server.
	UnknownServerCA
	// InvalidServerCertificate means that the server certificate is not valid for another reason, such as its name.
	InvalidServerCertificate
	// NotTLS means that the server does not speak TLS at this port.
	NotTLS
	// OtherTLSAlert means that the server ended the handshake with another alert.
	OtherTLSAlert
)

func (f TLSFailure) String() string {
	switch f {
	case ClientCertificateMissing:
		return "the server requires a client certificate"
	case ClientCertificateRejected:
		return "the server rejected the client certificate"
	case UnknownServerCA:
		return "the certificate of the server is not signed by a known CA"
	case InvalidServerCertificate:
		return "the certificate of the server is not valid"
	case NotTLS:
		return "the server does not speak TLS at this port"
	case OtherTLSAlert:
		return "the server ended the handshake"
	}
	return "none"
}

// Error returns the code, the reason and the message.
func (e *Error) Error() string {
	var text strings.Builder
	text.WriteString("entail: ")
	text.WriteString(e.Code.String())
	if e.Reason != "" {
		fmt.Fprintf(&text, " (%s)", e.Reason)
	}
	if e.TLS != 0 {
		fmt.Fprintf(&text, ": TLS: %s", e.TLS)
	}
	text.WriteString(": ")
	text.WriteString(e.Message)
	return text.String()
}

// Unwrap returns the error of the context if it ended the call, so that errors.Is(err, context.Canceled) works.
func (e *Error) Unwrap() error { return e.cause }

// GRPCStatus returns the status that the call returned, for status.FromError.
func (e *Error) GRPCStatus() *status.Status {
	if e.grpc != nil {
		return e.grpc
	}
	return status.New(e.Code, e.Message)
}

// Retryable reports whether the same call may succeed later: the server is not available, or it is busy and said when
// to call again. Wait at least RetryAfter.
func (e *Error) Retryable() bool {
	if e.RetryAfter < 0 || e.TLS != 0 {
		return false
	}
	return e.Code == codes.Unavailable || e.Code == codes.ResourceExhausted && e.RetryAfter > 0
}

// IsRetryable reports whether the call that returned err may succeed later; see [Error.Retryable].
func IsRetryable(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Retryable()
}

// newError converts the error of a call.
func newError(ctx context.Context, err error, trailer metadata.MD) error {
	var known *Error
	if errors.As(err, &known) {
		return err
	}
	state, ok := status.FromError(err)
	if !ok {
		return &Error{Code: codes.Unknown, Message: err.Error(), cause: err}
	}
	failure := &Error{Code: state.Code(), Message: state.Message(), grpc: state}
	switch state.Code() {
	case codes.Canceled, codes.DeadlineExceeded:
		failure.cause = ctx.Err()
	case codes.Unavailable:
		failure.TLS = tlsFailure(state.Message())
	}
	for _, detail := range state.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == errorDomain {
			failure.Reason = Reason(info.GetReason())
			failure.Nearest = info.GetMetadata()["nearest"]
		}
	}
	if values := trailer.Get(pushbackTrailer); len(values) == 1 {
		failure.RetryAfter = pushback(values[0])
	}
	return failure
}

// pushback parses the value of a pushback trailer. Anything but a number of milliseconds forbids retries (gRFC A6).
func pushback(text string) time.Duration {
	milliseconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return -1
	}
	// An immediate retry is distinguished from a missing trailer.
	return max(time.Duration(milliseconds)*time.Millisecond, 1)
}

// pathError converts the error of a path; nil if there is none.
func pathError(err *entailv1.PathError) error {
	if err == nil {
		return nil
	}
	code := codes.Unknown
	if number := err.GetCode(); number > 0 && number <= int32(codes.Unauthenticated) {
		code = codes.Code(number)
	}
	return &Error{Code: code, Reason: Reason(err.GetReason()), Nearest: err.GetNearest(), Message: err.GetMessage()}
}

// protocolError returns the error of a reply that contradicts the protocol.
func protocolError(format string, values ...any) error {
	return &Error{Code: codes.Internal, Message: "protocol error: " + fmt.Sprintf(format, values...)}
}

// tlsFailure reads the message of a connection error: gRPC passes on no more of the cause.
func tlsFailure(message string) TLSFailure {
	if strings.Contains(message, "first record does not look like a TLS handshake") {
		return NotTLS
	}
	if strings.Contains(message, "failed to verify certificate: ") {
		// The second is of another CA with the same name.
		for _, text := range []string{"signed by unknown authority", "verification failure", "verification error"} {
			if strings.Contains(message, text) {
				return UnknownServerCA
			}
		}
		return InvalidServerCertificate
	}
	_, alert, ok := strings.Cut(message, "remote error: tls: ")
	if !ok {
		return 0
	}
	// Quotes and further text of gRPC follow.
	alert = strings.TrimRight(alert, "\"'")
	if strings.HasPrefix(alert, "certificate required") {
		return ClientCertificateMissing
	}
	for _, rejected := range []string{
		"bad certificate", "unsupported certificate", "revoked certificate", "expired certificate",
		"unknown certificate", "access denied", "error decrypting message",
	} {
		if strings.HasPrefix(alert, rejected) {
			return ClientCertificateRejected
		}
	}
	return OtherTLSAlert
}

// errorConverter makes the calls of a connection return an [Error].
type errorConverter struct {
	// Called if the server does not accept the certificate of the client, or the call has none; may be nil.
	unauthenticated func()
}

func (c errorConverter) convert(ctx context.Context, err error, trailer metadata.MD) error {
	converted := newError(ctx, err, trailer)
	if c.unauthenticated != nil && status.Code(converted) == codes.Unauthenticated {
		c.unauthenticated()
	}
	return converted
}

func (c errorConverter) unary(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	var trailer metadata.MD
	err := invoke(ctx, method, request, reply, conn, append(slices.Clip(options), grpc.Trailer(&trailer))...)
	if err == nil {
		return nil
	}
	return c.convert(ctx, err, trailer)
}

func (c errorConverter) stream(
	ctx context.Context, description *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, description, conn, method, options...)
	if err != nil {
		return nil, c.convert(ctx, err, nil)
	}
	return errorStream{stream, c}, nil
}

// errorStream is a stream that returns an [Error].
type errorStream struct {
	grpc.ClientStream
	converter errorConverter
}

func (s errorStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s.converter.convert(s.Context(), err, s.Trailer())
}

func (s errorStream) SendMsg(message any) error {
	err := s.ClientStream.SendMsg(message)
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return s.converter.convert(s.Context(), err, nil)
}
