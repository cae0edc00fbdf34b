package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

func setup() object {
	start := time.Now()
	spread(*nodes, func(i int) {
		call("POST", "/api/v1/nodes", node(i))
		call("PATCH", "/api/v1/nodes/"+nodeName(i)+"/status", object{"status": node(i)["status"]})
	})
	// the namespace of controllers' leases
	createNamespace("ovn-kubernetes", nil)
	for i := range *namespaces {
		createNamespace(namespace(i), object{"idx": strconv.Itoa(i)})
	}
	return object{"seconds": time.Since(start).Seconds()}
}

func createNamespace(name string, labels object) {
	meta := object{"name": name, "labels": labels}
	call("POST", "/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
}

func objects() object {
	start := time.Now()
	if *in != "" {
		createNamespace(*in, nil)
	}
	spread(*services, func(i int) {
		call("POST", "/api/v1/namespaces/"+namespace(i)+"/services", service(i))
		call("POST", "/apis/discovery.k8s.io/v1/namespaces/"+namespace(i)+"/endpointslices", slice(i))
	})
	spread(*policies, func(i int) {
		call("POST", "/apis/networking.k8s.io/v1/namespaces/"+namespace(i)+"/networkpolicies", policy(i))
	})
	spread(*pods, func(i int) { call("POST", podsOf(*first+i), pod(*first+i)) })
	return object{"seconds": time.Since(start).Seconds()}
}

// cold waits until everything exists, both ports and annotations.
func cold() object {
	start := began()
	var lock sync.Mutex
	annotated := map[string]bool{}
	watchAnnotated("", func(port string, _ time.Time) {
		lock.Lock()
		annotated[port] = true
		lock.Unlock()
	})
	n := watchNorthbound()
	var northbound float64
	await(func() (string, bool) {
		have, lbs, groups := n.count("Logical_Switch_Port"), n.count("Load_Balancer"), n.count("Port_Group")
		written := have >= *pods && lbs >= *services && groups >= *policies
		if written && northbound == 0 {
			northbound = time.Since(start).Seconds()
		}
		lock.Lock()
		defer lock.Unlock()
		missing := fmt.Sprintf("%d ports, %d annotations, %d load balancers, %d policies", have, len(annotated), lbs, groups)
		return missing, written && len(annotated) >= *pods
	})
	return object{"northbound_seconds": northbound, "seconds": time.Since(start).Seconds()}
}

func add() object {
	n := watchNorthbound()
	var lock sync.Mutex
	annotated, posted := map[string]time.Time{}, map[string]time.Time{}
	var answers []float64
	// ignore existing pods
	watchAnnotated("?limit=1", func(port string, at time.Time) {
		lock.Lock()
		defer lock.Unlock()
		if _, ok := annotated[port]; !ok {
			annotated[port] = at
		}
	})
	start, clock := time.Now(), began()
	spread(*pods, func(i int) {
		if *rate > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(float64(i) / *rate * float64(time.Second)))))
		}
		asked := time.Now()
		call("POST", podsOf(*first+i), pod(*first+i))
		lock.Lock()
		defer lock.Unlock()
		posted[portName(*first+i)] = time.Now()
		answers = append(answers, milliseconds(asked, time.Now()))
	})
	await(func() (string, bool) {
		lock.Lock()
		defer lock.Unlock()
		wired, all := n.when(n.wired, posted)
		noted, both := n.when(annotated, posted)
		return fmt.Sprintf("%d ports, %d annotations", len(wired), len(noted)), all && both
	})
	lock.Lock()
	defer lock.Unlock()
	wired, _ := n.when(n.wired, posted)
	noted, _ := n.when(annotated, posted)
	latest := func(times map[string]time.Time) time.Time {
		return slices.MaxFunc(append(slices.Collect(maps.Values(times)), start), time.Time.Compare)
	}
	last, posts := latest(noted), latest(posted)
	if latest(wired).After(last) {
		last = latest(wired)
	}
	return object{
		"posting_seconds": posts.Sub(start).Seconds(), "port_after_posting_seconds": max(0, latest(wired).Sub(posts).Seconds()),
		"pods_per_second": float64(len(posted)) / last.Sub(start).Seconds(),
		"since_clock":     last.Sub(clock).Seconds(),
		"port_ms":         distribution(posted, wired), "annotation_ms": distribution(posted, noted), "post_ms": quantiles(answers),
	}
}

const flipped = "flip"

func flippable() object {
	createNamespace(*in, object{flipped: "off"})
	call("POST", "/apis/networking.k8s.io/v1/namespaces/load-00/networkpolicies", letsIn(flipped, "on"))
	return object{}
}

func flip() object {
	n := watchNorthbound()
	var seconds []float64
	for i := range *times {
		value, want := "on", *pods
		if i%2 == 1 {
			value, want = "off", 0
		}
		start := time.Now()
		call("PATCH", "/api/v1/namespaces/"+*in, object{"metadata": object{"labels": object{flipped: value}}})
		await(func() (string, bool) {
			have := n.letIn(flipped + ": on")
			return fmt.Sprintf("%d of %d addresses let in", have, want), have == want
		})
		seconds = append(seconds, milliseconds(start, time.Now()))
	}
	return object{"flip_ms": quantiles(seconds)}
}

// change replaces, in one service after the other, an endpoint with one that no other service has.
func change() object {
	n := watchNorthbound()
	var lock sync.Mutex
	changed := map[string]time.Time{}
	start := time.Now()
	spread(*changes, func(i int) {
		if *rate > 0 {
			time.Sleep(time.Until(start.Add(time.Duration(float64(i) / *rate * float64(time.Second)))))
		}
		service, address := i%*services, fmt.Sprintf("10.131.%d.%d", i/250, i%250+3)
		endpoints := slice(service)["endpoints"].([]object)
		endpoints[i%len(endpoints)]["addresses"] = []string{address}
		path := "/apis/discovery.k8s.io/v1/namespaces/" + namespace(service) + "/endpointslices/" + serviceName(service) + "-x"
		asked := time.Now()
		call("PATCH", path, object{"endpoints": endpoints})
		lock.Lock()
		defer lock.Unlock()
		changed[address] = asked
	})
	await(func() (string, bool) {
		seen, all := n.when(n.behind, changed)
		return fmt.Sprintf("%d of %d changes", len(seen), len(changed)), all
	})
	seen, _ := n.when(n.behind, changed)
	return object{"seconds": time.Since(start).Seconds(), "change_ms": distribution(changed, seen)}
}

func remove() object {
	n := watchNorthbound()
	var lock sync.Mutex
	deleted := map[string]time.Time{}
	start := time.Now()
	spread(*pods, func(i int) {
		call("DELETE", podsOf(*first+i)+"/"+podName(*first+i)+"?gracePeriodSeconds=0", nil)
		lock.Lock()
		defer lock.Unlock()
		deleted[portName(*first+i)] = time.Now()
	})
	await(func() (string, bool) {
		gone, all := n.when(n.gone, deleted)
		return fmt.Sprintf("%d of %d ports gone", len(gone), len(deleted)), all
	})
	gone, _ := n.when(n.gone, deleted)
	return object{"seconds": time.Since(start).Seconds(), "port_ms": distribution(deleted, gone)}
}

// patch makes the API requests that a controller has to make for all pods, and nothing else.
func patch() object {
	start := time.Now()
	// as long as a pod's annotation
	text := strings.Repeat("x", 430)
	spread(*pods, func(i int) {
		annotations := object{"metadata": object{"annotations": object{"loadgen/patch": text}}}
		call("PATCH", podsOf(*first+i)+"/"+podName(*first+i)+"/status", annotations)
	})
	return object{"seconds": time.Since(start).Seconds()}
}

// await polls until it is done, or ends the program and reports the progress.
func await(done func() (string, bool)) {
	deadline := time.Now().Add(*patience)
	for {
		state, ok := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			check(fmt.Errorf("gave up after %s with %s", *patience, state))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func milliseconds(from, to time.Time) float64 { return float64(to.Sub(from).Microseconds()) / 1000 }

func distribution(from, to map[string]time.Time) object {
	var all []float64
	for name, at := range to {
		all = append(all, milliseconds(from[name], at))
	}
	return quantiles(all)
}

func quantiles(all []float64) object {
	if len(all) == 0 {
		return object{}
	}
	slices.Sort(all)
	at := func(share float64) float64 { return all[int(share*float64(len(all)-1))] }
	return object{"p50": at(.5), "p90": at(.9), "p99": at(.99), "max": at(1)}
}
