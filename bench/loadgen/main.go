// loadgen puts load on a network controller for Kubernetes on OVN and measures times.
//
//	loadgen setup     nodes and namespaces
//	loadgen objects   services, policies and pods, not timed
//	loadgen cold      waits until the northbound database holds all of them
//	loadgen add       adds pods; time until each has a port and an annotation
//	loadgen flippable a namespace, and a policy that allows or blocks it by one of its labels
//	loadgen flip      toggles that label; time until its pods are allowed, or blocked
//	loadgen endpoints changes an endpoint of one service after the other; time until its load balancers have it
//	loadgen delete    deletes pods; time until the port of each is gone
//	loadgen patch     annotates pods itself: how fast the API server accepts that
//
// It treats all controllers alike: it knows the names that pods, ports and annotations have in every
// implementation, and looks only at the API server and the northbound database, from outside.
// Prints one line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

var (
	server     = flag.String("server", "", "URL of the API server; the token comes from $LOADGEN_TOKEN")
	nb         = flag.String("nb", "", "path of the northbound database's socket")
	nodes      = flag.Int("nodes", 20, "nodes")
	namespaces = flag.Int("namespaces", 10, "namespaces")
	services   = flag.Int("services", 0, "services")
	endpoints  = flag.Int("endpoints", 10, "endpoints of each service")
	policies   = flag.Int("policies", 0, "network policies")
	pods       = flag.Int("pods", 0, "pods")
	first      = flag.Int("first", 0, "number of the first pod")
	in         = flag.String("in", "", "namespace and app of all pods and policies (empty: they take turns)")
	times      = flag.Int("times", 0, "changes of the label")
	changes    = flag.Int("changes", 0, "changes of endpoints")
	rate       = flag.Float64("rate", 0, "pods or changes in a second (0: as fast as the workers can)")
	workers    = flag.Int("workers", 16, "requests at one time")
	since      = flag.Float64("since", 0, "when the clock started, seconds since 1970 (0: now)")
	patience   = flag.Duration("patience", 10*time.Minute, "give up after this")
)

type object = map[string]any

func main() {
	commands := map[string]func() object{
		"setup": setup, "objects": objects, "cold": cold, "add": add, "flippable": flippable, "flip": flip,
		"delete": remove, "patch": patch, "endpoints": change,
	}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: loadgen setup|objects|cold|add|endpoints|flippable|flip|delete|patch [flags]")
		os.Exit(2)
	}
	if err := flag.CommandLine.Parse(os.Args[2:]); err != nil {
		os.Exit(2)
	}
	line, err := json.Marshal(commands[os.Args[1]]())
	check(err)
	fmt.Println(string(line))
}

// began is the time when the measurement started.
func began() time.Time {
	if *since > 0 {
		return time.UnixMicro(int64(*since * 1e6))
	}
	return time.Now()
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadgen:", err)
		os.Exit(1)
	}
}
