package main

import (
	"sync"
	"time"
)

// limit is a rate limit. The zero value is no limit.
type limit struct {
	// Capacity of the bucket, which is refilled once per `per`.
	requests uint32
	per      time.Duration
}

// bucket is the token bucket of a rule. It belongs to the rule and not to the compiled answer: rules with equal answers
// share the answer but not the bucket, and an update must not refill the bucket.
type bucket struct {
	mu     sync.Mutex
	limit  limit
	tokens float64
	at     time.Time
}

// take takes a token, or returns the time until one is available. A bucket with another limit is replaced by a full one;
// other changes of the policy do not affect it.
func (b *bucket) take(limit limit) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if limit.per == 0 {
		b.limit = limit
		return 0
	}
	now := time.Now()
	full := float64(limit.requests)
	if b.limit == limit {
		b.tokens = min(full, b.tokens+full*now.Sub(b.at).Seconds()/limit.per.Seconds())
	} else {
		b.limit, b.tokens = limit, full
	}
	b.at = now
	switch {
	case b.tokens >= 1:
		b.tokens--
		return 0
	case limit.requests == 0:
		return limit.per // there is never a token: the time to wait is arbitrary
	default:
		return time.Duration((1 - b.tokens) / full * float64(limit.per))
	}
}
