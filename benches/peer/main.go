// Command peer computes effective policies with the library policy-machinery, for comparison.
//
// It generates a world from a seed in memory and measures three steps separately: building the
// topology, enumerating the paths, and merging the policies of each path. It can also write the world
// as manifests and the answers as lines, so that another engine can compute the same.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// options are the arguments of one run.
type options struct {
	shape     shape
	seed      uint64
	answers   string
	manifests string
	variant   variant
}

// report is the line that a run prints.
type report struct {
	Paths      int     `json:"paths"`
	Policies   int     `json:"policies"`
	Distinct   int     `json:"distinct"`
	TopologyMs float64 `json:"topology_ms"`
	PathsMs    float64 `json:"paths_ms"`
	MergeMs    float64 `json:"merge_ms"`
	TotalMs    float64 `json:"total_ms"`
}

func main() {
	if err := run(parse()); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.IntVar(&o.shape.gateways, "gateways", 1, "Gateways")
	flag.IntVar(&o.shape.listeners, "listeners", 4, "listeners of each Gateway")
	flag.IntVar(&o.shape.routes, "routes", 25, "HTTPRoutes, each on one listener")
	flag.IntVar(&o.shape.rules, "rules", 4, "named rules of each HTTPRoute")
	flag.IntVar(&o.shape.policies, "policies", 40, "policies, at most one for each target")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the world")
	flag.StringVar(&o.answers, "answers", "", "file to write the answer of each path to")
	flag.StringVar(&o.manifests, "manifests", "", "directory to write the world to, and beside it profile.yaml")
	flag.BoolVar(&o.variant.services, "services", true, "put Services and their ports into the topology, as the library's controller does")
	flag.BoolVar(&o.variant.loopCheck, "loop-check", true, "let the library check the topology for loops, as it does by default")
	flag.BoolVar(&o.variant.walk, "walk", false, "find the paths by one walk instead of the library's search for each pair")
	flag.Parse()
	return o
}

func run(o options) error {
	w, err := newWorld(o.shape, o.seed)
	if err != nil {
		return err
	}
	if o.manifests != "" {
		if err := writeWorld(w, o.manifests); err != nil {
			return err
		}
	}
	result, err := compute(w, o.variant)
	if err != nil {
		return err
	}
	lines, distinct, err := describe(result.answers)
	if err != nil {
		return err
	}
	if o.answers != "" {
		if err := writeLines(lines, o.answers); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(report{
		Paths:      len(result.answers),
		Policies:   len(w.policies),
		Distinct:   distinct,
		TopologyMs: milliseconds(result.topology),
		PathsMs:    milliseconds(result.paths),
		MergeMs:    milliseconds(result.merge),
		TotalMs:    milliseconds(result.topology + result.paths + result.merge),
	})
}
