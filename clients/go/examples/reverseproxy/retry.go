package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// retry are the retry settings of a rule. The zero value is no retries.
type retry struct {
	// Maximum number of retries after the first attempt.
	retries uint32
	// Statuses of responses after which to retry.
	statuses map[int]bool
	// Whether to retry if the connection to the backend fails, and if the backend resets it or does not respond in time.
	onConnectFailure, onReset bool
	// Timeout of an attempt, up to the response headers; none if 0.
	timeout time.Duration
	// Maximum delay before the first retry, which doubles with each further one, and its upper bound.
	baseInterval, maxInterval time.Duration
}

// retrySpecification is the `retry` field of the spec. Unknown fields can only add retries, so they are ignored. The
// defaults are those of the CRD, which the API server applies and manifests lack.
type retrySpecification struct {
	NumRetries *uint32 `json:"numRetries"`
	RetryOn    *struct {
		Triggers        []string `json:"triggers"`
		HTTPStatusCodes []int    `json:"httpStatusCodes"`
	} `json:"retryOn"`
	PerRetry struct {
		Timeout string `json:"timeout"`
		BackOff struct {
			BaseInterval string `json:"baseInterval"`
			MaxInterval  string `json:"maxInterval"`
		} `json:"backOff"`
	} `json:"perRetry"`
}

func (s *retrySpecification) compile() (retry, error) {
	if s == nil {
		return retry{}, nil
	}
	r := retry{retries: 2, statuses: map[int]bool{}}
	if s.NumRetries != nil {
		r.retries = *s.NumRetries
	}
	var err error
	duration := func(text string, otherwise time.Duration) time.Duration {
		if text == "" {
			return otherwise
		}
		// Durations of the Gateway API are durations of Go.
		value, parseErr := time.ParseDuration(text)
		if err == nil && (parseErr != nil || value < 0) {
			err = fmt.Errorf("%q is not a duration", text)
		}
		return value
	}
	r.timeout = duration(s.PerRetry.Timeout, 0)
	r.baseInterval = duration(s.PerRetry.BackOff.BaseInterval, 25*time.Millisecond)
	r.maxInterval = duration(s.PerRetry.BackOff.MaxInterval, 10*r.baseInterval)
	if s.RetryOn == nil {
		r.onConnectFailure, r.statuses[503] = true, true
		return r, err
	}
	for _, trigger := range s.RetryOn.Triggers {
		r.addTrigger(trigger, s.RetryOn.HTTPStatusCodes)
	}
	return r, err
}

// addTrigger adds a trigger. Triggers of gRPC and HTTP/2 are ignored: this proxy implements neither.
func (r *retry) addTrigger(trigger string, codes []int) {
	first, last := 0, -1
	switch trigger {
	case "5xx":
		first, last = 500, 599
	case "gateway-error":
		first, last = 502, 504
	case "retriable-4xx":
		first, last = 409, 409
	case "retriable-status-codes":
		for _, code := range codes {
			r.statuses[code] = true
		}
	}
	for code := first; code <= last; code++ {
		r.statuses[code] = true
	}
	r.onReset = r.onReset || trigger == "5xx" || trigger == "gateway-error" || trigger == "reset"
	r.onConnectFailure = r.onConnectFailure || r.onReset || trigger == "connect-failure"
}

var errAttemptTimeout = errors.New("the backend does not respond in time")

// shouldRetry reports whether to retry after the outcome of an attempt.
func (r *retry) shouldRetry(response *http.Response, err error) bool {
	var failure *net.OpError
	switch {
	case err == nil:
		return r.statuses[response.StatusCode]
	case errors.As(err, &failure) && failure.Op == "dial":
		return r.onConnectFailure
	default:
		return r.onReset
	}
}

// delay returns the delay before a retry: a random time below an exponentially growing bound, so that clients do not
// retry at the same time.
func (r *retry) delay(number uint32) time.Duration {
	bound := r.baseInterval
	for ; number > 1 && bound < r.maxInterval; number-- {
		bound *= 2
	}
	return time.Duration(rand.Float64() * float64(min(bound, r.maxInterval)))
}

// retryKey is the key of the retry settings in the context of a request.
type retryKey struct{}

// retrier sends requests with the retries of their context.
type retrier struct{ transport http.RoundTripper }

// attemptsError is the failure of the last attempt.
type attemptsError struct {
	retries uint32
	err     error
}

func (e *attemptsError) Error() string { return fmt.Sprintf("after %d retries: %v", e.retries, e.err) }
func (e *attemptsError) Unwrap() error { return e.err }

// RoundTrip sends a request. A body that may be sent again has GetBody.
func (t retrier) RoundTrip(request *http.Request) (*http.Response, error) {
	settings, _ := request.Context().Value(retryKey{}).(*retry)
	if settings == nil {
		settings = &retry{}
	}
	allowed := settings.retries
	if request.GetBody == nil {
		allowed = 0
	}
	for number := uint32(0); ; number++ {
		response, err := t.attempt(request, settings)
		if number >= allowed || request.Context().Err() != nil || !settings.shouldRetry(response, err) {
			if err != nil {
				return nil, &attemptsError{number, err}
			}
			response.Header.Set(retriesHeader, strconv.FormatUint(uint64(number), 10))
			return response, nil
		}
		if err == nil {
			// So that the connection is used again. Its error would be that of the connection.
			_, _ = io.CopyN(io.Discard, response.Body, maxBuffered)
			_ = response.Body.Close()
		}
		select {
		case <-time.After(settings.delay(number + 1)):
		case <-request.Context().Done():
			return nil, &attemptsError{number, request.Context().Err()}
		}
	}
}

// attempt sends a request once. The timeout ends with the response headers.
func (t retrier) attempt(request *http.Request, settings *retry) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context())
	attempt := request.WithContext(ctx)
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			cancel(nil)
			return nil, err
		}
		attempt.Body = body
	}
	stop := func() bool { return true }
	if settings.timeout > 0 {
		stop = time.AfterFunc(settings.timeout, func() { cancel(errAttemptTimeout) }).Stop
	}
	response, err := t.transport.RoundTrip(attempt)
	stop()
	if err != nil {
		if context.Cause(ctx) == errAttemptTimeout {
			err = errAttemptTimeout
		}
		cancel(nil)
		return nil, err
	}
	response.Body = cancelBody{response.Body, cancel}
	return response, nil
}

// cancelBody ends the context of an attempt with its body.
type cancelBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b cancelBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// buffer reads the body of a request that may be retried, so that it can be sent again.
//
// A proxy must not retry a request that is not idempotent (RFC 9110, 9.2.2), even if the policy allows it: POST is
// retried only with an idempotency-key. Only bodies of a known, small size are buffered.
func buffer(request *http.Request, settings *retry) error {
	isRepeatable := request.Header.Get("Idempotency-Key") != ""
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		isRepeatable = true
	}
	if settings.retries == 0 || !isRepeatable || request.ContentLength < 0 || request.ContentLength > maxBuffered {
		return nil
	}
	data, err := io.ReadAll(request.Body)
	if err != nil {
		return err
	}
	request.GetBody = func() (io.ReadCloser, error) {
		if len(data) == 0 {
			return http.NoBody, nil
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	return nil
}
