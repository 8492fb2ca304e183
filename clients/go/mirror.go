package entail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/connectivity"
	"google.golang.org/protobuf/proto"

	entailv1 "entail.dev/clients/go/entail/v1"
	"entail.dev/clients/go/internal/pathname"
)

// ErrMirrorClosed is the error of a [Status] after the mirror, its context or its client has ended.
var ErrMirrorClosed = errors.New("entail: the mirror is closed")

// Selection is what a [Mirror] copies. The zero value selects everything.
type Selection struct {
	// Prefixes selects paths that are one of these, or below one. A prefix that is not a path yet may become one.
	Prefixes []string
	// Levels selects paths that end at one of these levels, such as RouteRule.
	Levels []string
	// Kinds selects policy kinds, each as Kind.group.
	Kinds []string
}

// MirrorOption is an option of [NewMirror] and [NewCompiledMirror].
type MirrorOption func(*mirrorSettings)

type mirrorSettings struct {
	timeout    time.Duration
	maxBackoff time.Duration
}

// WithMessageTimeout sets the time without a message after which the mirror opens a new stream, by default 30 s. It must
// exceed the 10 s after which a server sends a message even if nothing changes.
func WithMessageTimeout(timeout time.Duration) MirrorOption {
	return func(settings *mirrorSettings) { settings.timeout = timeout }
}

// WithMaxBackoff sets the longest delay between attempts to open a stream, by default 5 s. The first delay is a
// hundredth of it, and each further one twice as long, less up to a fifth.
func WithMaxBackoff(delay time.Duration) MirrorOption {
	return func(settings *mirrorSettings) { settings.maxBackoff = delay }
}

// Mirror is a copy of the effective policies of some paths, which a watch stream keeps up to date. Look-ups read the
// copy: they do no I/O, do not lock, and do not allocate. All methods may be called at the same time.
//
// T is the type of the answers: [*EffectivePolicies], or the result of the function of [NewCompiledMirror].
//
// While the server is unreachable, the last copy stays in use without a time limit, and the mirror reconnects with
// exponential backoff. [Mirror.Status] and [Mirror.Age] report how old the copy is.
type Mirror[T any] struct {
	client    *Client
	selection Selection
	settings  mirrorSettings
	current   atomic.Pointer[mirrorState[T]]
	ready     chan struct{}
	// Fires with every change of the state, and with those that are more than a heartbeat.
	updated, changed broadcast
	cancel           context.CancelFunc
	done             chan struct{}

	// Used by the goroutine of the mirror alone.
	decoder     *decoder[T]
	resumeToken string
}

// mirrorState is what a mirror publishes. It does not change.
type mirrorState[T any] struct {
	snapshot  *Snapshot[T]
	connected bool
	updatedAt time.Time
	err       error
}

// Status is the state of the connection of a [Mirror], and of its last update.
type Status struct {
	// Connected reports whether the watch stream is open and has sent a complete update.
	Connected bool
	// Ready reports whether there was a complete update since the start.
	Ready bool
	// UpdatedAt is when the last complete update arrived; also one without changes, which the server sends at least
	// every 10 seconds.
	UpdatedAt time.Time
	// SnapshotInfo is that of the last update.
	SnapshotInfo
	// Err is why the mirror is not connected. It is nil before the first attempt has ended.
	Err error
}

// NewMirror creates a mirror and starts to watch the server of a client. The server need not be reachable yet: use
// [Mirror.WaitReady] to wait for the first copy. The mirror ends with the context, or with [Mirror.Close].
//
// It fails if a prefix or a level is malformed.
func NewMirror(
	ctx context.Context, client *Client, selection Selection, options ...MirrorOption,
) (*Mirror[*EffectivePolicies], error) {
	identity := func(policies *EffectivePolicies) *EffectivePolicies { return policies }
	return NewCompiledMirror(ctx, client, selection, identity, options...)
}

// NewCompiledMirror creates a mirror whose look-ups return the result of compile for an answer. It is called once for
// each distinct answer, when the answer arrives: parse policies there, and not when they are applied. It must not change
// the answer. Paths with equal answers share the result, and a changed answer has a new one.
func NewCompiledMirror[T any](
	ctx context.Context, client *Client, selection Selection, compile func(*EffectivePolicies) T,
	options ...MirrorOption,
) (*Mirror[T], error) {
	selector := &selector{prefixes: slices.Clone(selection.Prefixes), levels: map[string]bool{}}
	for _, prefix := range selection.Prefixes {
		if _, err := pathname.Parse(prefix); err != nil {
			return nil, fmt.Errorf("entail: malformed prefix %q: %w", prefix, err)
		}
	}
	for _, level := range selection.Levels {
		if !pathname.IsLevel(level) {
			return nil, fmt.Errorf("entail: %q is not a level", level)
		}
		selector.levels[level] = true
	}
	settings := mirrorSettings{timeout: connectionTimeout, maxBackoff: maxBackoff}
	for _, option := range options {
		option(&settings)
	}
	ctx, cancel := context.WithCancel(ctx)
	mirror := &Mirror[T]{
		client: client,
		selection: Selection{
			Prefixes: selector.prefixes,
			Levels:   slices.Clone(selection.Levels),
			Kinds:    slices.Clone(selection.Kinds),
		},
		settings: settings,
		ready:    make(chan struct{}),
		cancel:   cancel,
		done:     make(chan struct{}),
		decoder:  newDecoder(selector, compile),
	}
	mirror.current.Store(&mirrorState[T]{snapshot: mirror.decoder.snapshot})
	go mirror.run(ctx)
	return mirror, nil
}

// Close ends the mirror and waits until its goroutine has ended. The last copy stays readable. Close always returns nil.
func (m *Mirror[T]) Close() error {
	m.cancel()
	<-m.done
	return nil
}

// Get returns the answer of a path, and whether there is one.
func (m *Mirror[T]) Get(path string) (T, bool) { return m.Snapshot().Get(path) }

// LookUp returns the answer of a path, or [ErrNotReady], [ErrNotSelected] or [ErrPathNotFound].
//
// To fail closed if the state of a kind is not known, use [Mirror.Snapshot]: its answers and states are of one update.
func (m *Mirror[T]) LookUp(path string) (T, error) { return m.Snapshot().LookUp(path) }

// Snapshot returns the copy. It is empty before the first update.
func (m *Mirror[T]) Snapshot() *Snapshot[T] { return m.current.Load().snapshot }

// Ready returns a channel that is closed by the first complete update.
func (m *Mirror[T]) Ready() <-chan struct{} { return m.ready }

// WaitReady waits for the first complete update. It returns an error if the context or the mirror ends before; the
// error contains why the mirror is not connected.
func (m *Mirror[T]) WaitReady(ctx context.Context) error {
	_, err := m.WaitFor(ctx, func(status Status) bool { return status.Ready })
	return err
}

// WaitFor waits until isEnough returns true for the [Status], and returns it. It returns an error if the context or the
// mirror ends before; the error contains why the mirror is not connected.
func (m *Mirror[T]) WaitFor(ctx context.Context, isEnough func(Status) bool) (Status, error) {
	for {
		updated := m.updated.wait()
		status := m.Status()
		if isEnough(status) {
			return status, nil
		}
		if errors.Is(status.Err, ErrMirrorClosed) {
			return status, status.Err
		}
		select {
		case <-updated:
		case <-ctx.Done():
			if status.Err != nil {
				return status, fmt.Errorf("%w; the mirror is not connected: %w", ctx.Err(), status.Err)
			}
			return status, ctx.Err()
		}
	}
}

// Changed returns a channel that is closed when paths, answers, the version, the states of kinds or the state of the
// connection change, but not by updates without changes. Get the channel before you read what you wait for:
//
//	for {
//		changed := mirror.Changed()
//		apply(mirror.Snapshot())
//		select {
//		case <-changed:
//		case <-ctx.Done():
//			return
//		}
//	}
func (m *Mirror[T]) Changed() <-chan struct{} { return m.changed.wait() }

// Status returns the state of the connection and of the last update.
func (m *Mirror[T]) Status() Status {
	state := m.current.Load()
	return Status{
		Connected:    state.connected,
		Ready:        state.snapshot.ready,
		UpdatedAt:    state.updatedAt,
		SnapshotInfo: state.snapshot.info,
		Err:          state.err,
	}
}

// Connected reports whether the watch stream is open and has sent a complete update. It does not allocate.
func (m *Mirror[T]) Connected() bool { return m.current.Load().connected }

// Age returns the time since the server last confirmed the copy, and whether it ever did. While the mirror is connected,
// that is about 10 s at most. The sources of the server may be older: see SyncedAt of the [Status].
func (m *Mirror[T]) Age() (time.Duration, bool) {
	at := m.current.Load().updatedAt
	if at.IsZero() {
		return 0, false
	}
	return time.Since(at), true
}

// Kinds returns the kinds whose state was not COMPLETE in the last update. Do not change the entries.
func (m *Mirror[T]) Kinds() []*entailv1.KindState { return m.Snapshot().info.Kinds }

// run watches the server until the context or the client ends.
func (m *Mirror[T]) run(ctx context.Context) {
	defer close(m.done)
	defer m.cancel()
	backoff := m.settings.maxBackoff / 100
	for {
		hasUpdate, err := m.watch(ctx)
		if ctx.Err() != nil || m.client.conn.GetState() == connectivity.Shutdown {
			m.disconnected(ErrMirrorClosed)
			return
		}
		m.disconnected(err)
		if hasUpdate {
			backoff = m.settings.maxBackoff / 100
		}
		if isBack := m.pause(ctx, backoff, err); isBack {
			backoff = m.settings.maxBackoff / 100
		} else {
			backoff = min(2*backoff, m.settings.maxBackoff)
		}
	}
}

// watch opens one stream and reads it to its end. It reports whether the stream completed an update.
func (m *Mirror[T]) watch(ctx context.Context) (hasUpdate bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := m.settings.timeout
	silent := fmt.Errorf("entail: no message from the server within %s", timeout)
	timer := time.AfterFunc(timeout, func() { cancel(silent) })
	defer timer.Stop()
	// A cancelled stream returns the error of its context, and not why that was cancelled.
	cause := func(err error) error {
		if context.Cause(ctx) == silent {
			return silent
		}
		return err
	}
	stream, err := m.client.policies.WatchEffectivePolicies(ctx, &entailv1.WatchEffectivePoliciesRequest{
		Prefixes:    m.selection.Prefixes,
		Levels:      m.selection.Levels,
		Kinds:       m.selection.Kinds,
		ResumeToken: m.resumeToken,
	})
	if err != nil {
		return false, cause(err)
	}
	m.decoder.startStream()
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return hasUpdate, errors.New("entail: the server closed the stream")
		}
		if err != nil {
			return hasUpdate, cause(err)
		}
		timer.Reset(timeout)
		snapshot, isChanged, err := m.decoder.decode(message)
		if err != nil {
			m.resumeToken = ""
			return hasUpdate, err
		}
		if snapshot != nil {
			m.resumeToken = message.GetResumeToken()
			m.publish(snapshot, isChanged)
			hasUpdate = true
		}
	}
}

// publish makes an update visible.
func (m *Mirror[T]) publish(snapshot *Snapshot[T], isChanged bool) {
	previous := m.current.Load()
	m.current.Store(&mirrorState[T]{snapshot: snapshot, connected: true, updatedAt: time.Now()})
	if !previous.snapshot.ready {
		close(m.ready)
	}
	m.updated.fire()
	old, now := previous.snapshot.info, snapshot.info
	if isChanged || !previous.connected || old.Version != now.Version || !equalKinds(old.Kinds, now.Kinds) {
		m.changed.fire()
	}
}

// disconnected makes visible that the stream has ended.
func (m *Mirror[T]) disconnected(err error) {
	state := *m.current.Load()
	state.connected, state.err = false, err
	m.current.Store(&state)
	m.updated.fire()
	m.changed.fire()
}

// pause waits for a delay, or until the connection is back, and reports whether it is. It waits longer if the server asks
// for that.
func (m *Mirror[T]) pause(ctx context.Context, delay time.Duration, err error) bool {
	// Mirrors that lost the same server do not come back at the same time.
	delay -= time.Duration(rand.Float64() * float64(delay) / 5)
	var failure *Error
	if errors.As(err, &failure) {
		delay = max(delay, failure.RetryAfter)
	}
	ctx, cancel := context.WithTimeout(ctx, delay)
	defer cancel()
	conn := m.client.conn
	// A call can fail before the state of the connection says so: any state but READY may be that of a lost connection.
	state := conn.GetState()
	isLost := state != connectivity.Ready
	for isLost && conn.WaitForStateChange(ctx, state) {
		if state = conn.GetState(); state == connectivity.Ready || state == connectivity.Shutdown {
			return true
		}
	}
	<-ctx.Done()
	return false
}

func equalKinds(a, b []*entailv1.KindState) bool {
	return slices.EqualFunc(a, b, func(a, b *entailv1.KindState) bool { return proto.Equal(a, b) })
}

// broadcast wakes all that wait. The zero value is ready to use.
type broadcast struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// wait returns a channel that the next fire closes.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = make(chan struct{})
	}
	return b.waiting
}

func (b *broadcast) fire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting != nil {
		close(b.waiting)
		b.waiting = nil
	}
}
