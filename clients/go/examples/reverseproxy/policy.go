package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	entail "entail.dev/clients/go"
)

// kind is the policy kind that this proxy applies. Its profile is built into entail.
const kind = "BackendTrafficPolicy.gateway.envoyproxy.io"

// policy is the effective policy of a rule: the parts of the kind that this proxy applies.
type policy struct {
	retry retry
	limit limit // the zero value is no limit
}

// compiled is a compiled answer. Rules with equal answers share one, and a changed answer is a new one. It therefore
// contains only settings; counters belong to the rule (bucket).
type compiled struct {
	policy *policy
	// Why the policy cannot be applied. Requests are rejected then, not forwarded without it.
	err error
}

// specification are the fields of the spec that this example applies. A complete proxy would also apply timeouts,
// circuit breakers and so on.
type specification struct {
	Retry     *retrySpecification `json:"retry"`
	RateLimit json.RawMessage     `json:"rateLimit"`
}

type limitSpecification struct {
	Type  string `json:"type"`
	Local struct {
		Rules []struct {
			Limit struct {
				Requests uint32 `json:"requests"`
				Unit     string `json:"unit"`
			} `json:"limit"`
		} `json:"rules"`
	} `json:"local"`
}

var units = map[string]time.Duration{
	"Second": time.Second,
	"Minute": time.Minute,
	"Hour":   time.Hour,
	"Day":    24 * time.Hour,
	"Month":  30 * 24 * time.Hour,
	"Year":   365 * 24 * time.Hour,
}

// compile compiles an answer. The mirror calls it once for each distinct answer, so that an error is logged once.
func compile(answer *entail.EffectivePolicies) compiled {
	policy, err := parse(answer)
	if err != nil {
		slog.Error("a policy cannot be applied", "etag", answer.ETag, "error", err)
	}
	return compiled{policy, err}
}

func parse(answer *entail.EffectivePolicies) (*policy, error) {
	// Without an entry there is no policy, provided that the state of the kind is known, which the proxy checks for each
	// request.
	entry := answer.Policy(kind)
	if entry == nil {
		return &policy{}, nil
	}
	// An invalid policy has an unknown intent: fail closed, as Envoy Gateway does. After a conflict the older policy
	// applies.
	for _, rejected := range entry.GetRejected() {
		if rejected.GetReason() == "Invalid" {
			name := rejected.GetPolicy()
			return nil, fmt.Errorf("%s/%s: %s", name.GetNamespace(), name.GetName(), rejected.GetMessage())
		}
	}
	if entry.GetNotComputed() != "" {
		return nil, errors.New(entry.GetNotComputed())
	}
	if unknown := entry.GetUnknown(); unknown != nil {
		return nil, fmt.Errorf("%s: %s", unknown.GetReason(), unknown.GetMessage())
	}
	if entry.SpecJson == nil {
		return &policy{}, nil
	}
	var spec specification
	if err := json.Unmarshal([]byte(entry.GetSpecJson()), &spec); err != nil {
		return nil, err
	}
	retry, err := spec.Retry.compile()
	if err != nil {
		return nil, err
	}
	limit, err := parseLimit(spec.RateLimit)
	if err != nil {
		return nil, err
	}
	return &policy{retry, limit}, nil
}

func parseLimit(text json.RawMessage) (limit, error) {
	if len(text) == 0 {
		return limit{}, nil
	}
	var spec limitSpecification
	decoder := json.NewDecoder(bytes.NewReader(text))
	// An unknown field may make a limit stricter (`global`, `clientSelectors`, `cost`): such a spec is rejected, not
	// applied in part.
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&spec); err != nil {
		return limit{}, err
	}
	switch {
	case spec.Type != "" && spec.Type != "Local":
		return limit{}, fmt.Errorf("this proxy does not support rate limits of type %s", spec.Type)
	case len(spec.Local.Rules) == 0:
		return limit{}, nil
	case len(spec.Local.Rules) > 1:
		return limit{}, errors.New("this proxy supports one rate limit per rule")
	}
	rule := spec.Local.Rules[0].Limit
	per, ok := units[rule.Unit]
	if !ok {
		return limit{}, fmt.Errorf("%q is not a unit of rate limits", rule.Unit)
	}
	return limit{rule.Requests, per}, nil
}
