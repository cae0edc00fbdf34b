package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const podNetworks = "k8s.ovn.org/pod-networks"

var client = &http.Client{Transport: &http.Transport{
	// a cluster that lives for minutes, on the loopback of its own namespace
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 64,
}}

func request(method, path string, body any) *http.Request {
	text, err := json.Marshal(body)
	check(err)
	r, err := http.NewRequest(method, *server+path, bytes.NewReader(text))
	check(err)
	r.Header.Set("Authorization", "Bearer "+os.Getenv("LOADGEN_TOKEN"))
	r.Header.Set("Content-Type", "application/json")
	if method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	return r
}

// call succeeds or ends the program: a load with gaps measures nothing.
func call(method, path string, body any) []byte {
	var problem error
	for range 5 {
		answer, err := client.Do(request(method, path, body))
		if err == nil {
			text, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err == nil && (answer.StatusCode < 300 || answer.StatusCode == http.StatusConflict) {
				return text
			}
			problem = fmt.Errorf("%s %s: %s %s", method, path, answer.Status, text)
		} else {
			problem = err
		}
		time.Sleep(300 * time.Millisecond)
	}
	check(problem)
	return nil
}

// spread does n things with limited concurrency.
func spread(n int, do func(i int)) {
	var group sync.WaitGroup
	numbers := make(chan int)
	for range *workers {
		group.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	group.Wait()
}

// annotatedNow returns the ports of listed pods that already have their annotation, and the version of the list.
func annotatedNow(query string) (map[string]bool, string) {
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct{ Metadata metadata }
	}
	check(json.Unmarshal(call("GET", "/api/v1/pods"+query, nil), &list))
	ports := map[string]bool{}
	for _, pod := range list.Items {
		if pod.Metadata.Annotations[podNetworks] != "" {
			ports[pod.Metadata.Namespace+"_"+pod.Metadata.Name] = true
		}
	}
	return ports, list.Metadata.ResourceVersion
}

type metadata struct {
	Name, Namespace, ResourceVersion string
	Annotations                      map[string]string
}

// watchAnnotated reports when each pod, by the name of its port, is seen with its annotation: first those of the
// list that `query` requests, then all that change.
func watchAnnotated(query string, seen func(port string, at time.Time)) {
	before, version := annotatedNow(query)
	for port := range before {
		seen(port, time.Now())
	}
	open := func() *json.Decoder {
		for {
			path := "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=" + version
			if answer, err := client.Do(request("GET", path, nil)); err == nil && answer.StatusCode == http.StatusOK {
				return json.NewDecoder(answer.Body)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	go func() {
		for events := open(); ; events = open() {
			for {
				var event struct {
					Type   string
					Object struct{ Metadata metadata }
				}
				// the API server drops slow watchers; continue from the last version seen
				if err := events.Decode(&event); err != nil || event.Type == "ERROR" {
					break
				}
				meta := event.Object.Metadata
				version = meta.ResourceVersion
				if meta.Annotations[podNetworks] != "" {
					seen(meta.Namespace+"_"+meta.Name, time.Now())
				}
			}
		}
	}()
}
