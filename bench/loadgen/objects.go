package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

func nodeName(i int) string { return fmt.Sprintf("node-%03d", i) }
func podName(i int) string  { return fmt.Sprintf("pod-%05d", i) }
func portName(i int) string { return namespace(i) + "_" + podName(i) }
func tier(i int) string     { return []string{"web", "api", "db"}[i%3] }
func podsOf(i int) string   { return "/api/v1/namespaces/" + namespace(i) + "/pods" }

// node has the annotations that its agent would have written.
func node(i int) object {
	name, low, high := nodeName(i), i%250+2, i/250
	ip, mac := fmt.Sprintf("172.18.%d.%d", high, low), fmt.Sprintf("02:42:ac:12:%02x:%02x", high, low)
	gateway, err := json.Marshal(object{"default": object{
		"mode": "shared", "bridge-id": "br-ex", "interface-id": "br-ex_" + name, "mac-address": mac,
		"ip-addresses": []string{ip + "/16"}, "ip-address": ip + "/16",
		"next-hops": []string{"172.18.255.1"}, "next-hop": "172.18.255.1", "node-port-enable": "true", "vlan-id": "0",
	}})
	check(err)
	now := time.Now().UTC().Format(time.RFC3339)
	return object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{"name": name, "labels": object{"kubernetes.io/hostname": name}, "annotations": object{
			"k8s.ovn.org/node-chassis-id":              fmt.Sprintf("c0ffee00-0000-4000-8000-%012d", i),
			"k8s.ovn.org/l3-gateway-config":            string(gateway),
			"k8s.ovn.org/node-mgmt-port-mac-addresses": fmt.Sprintf(`{"default":"0e:00:00:00:%02x:%02x"}`, high, low),
			"k8s.ovn.org/node-primary-ifaddr":          fmt.Sprintf(`{"ipv4":"%s/16"}`, ip),
			"k8s.ovn.org/host-cidrs":                   fmt.Sprintf(`["%s/16"]`, ip),
			"k8s.ovn.org/node-encap-ips":               fmt.Sprintf(`["%s"]`, ip),
			"k8s.ovn.org/node-masquerade-subnet":       `{"ipv4":"169.254.169.0/29","ipv6":"fd69::/125"}`,
			"k8s.ovn.org/zone-name":                    "global",
		}},
		"status": object{
			"addresses": []object{{"type": "InternalIP", "address": ip}, {"type": "Hostname", "address": name}},
			"conditions": []object{{
				"type": "Ready", "status": "True", "reason": "Loadgen", "lastHeartbeatTime": now, "lastTransitionTime": now,
			}},
		},
	}
}

func pod(i int) object {
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": podName(i), "labels": object{"app": app(i), "tier": tier(i)}},
		"spec": object{
			"nodeName": nodeName(i % *nodes), "automountServiceAccountToken": false, "terminationGracePeriodSeconds": 0,
			"containers": []object{{"name": "c", "image": "pause"}},
		},
	}
}

func namespace(i int) string {
	if *in != "" {
		return *in
	}
	return fmt.Sprintf("load-%02d", i%*namespaces)
}

func app(i int) string {
	if *in != "" {
		return *in
	}
	return fmt.Sprintf("app-%d", i%50)
}

func service(i int) object {
	port := object{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}
	spec := object{
		"type": "ClusterIP", "clusterIP": fmt.Sprintf("10.96.%d.%d", 10+i/250, i%250+1),
		"selector": object{"app": app(i)}, "ports": []object{port},
	}
	if i%10 == 9 {
		spec["type"], port["nodePort"] = "NodePort", 30000+i%2768
	}
	return object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": serviceName(i)}, "spec": spec}
}

func serviceName(i int) string { return fmt.Sprintf("svc-%04d", i) }

func slice(i int) object {
	var all []object
	for k := range *endpoints {
		n := (i**endpoints + k) % 4000
		all = append(all, object{
			"addresses": []string{fmt.Sprintf("10.128.%d.%d", 100+n/250, n%250+3)}, "nodeName": nodeName(k % *nodes),
			"conditions": object{"ready": true, "serving": true, "terminating": false},
		})
	}
	return object{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
		"metadata": object{"name": serviceName(i) + "-x", "labels": object{
			"kubernetes.io/service-name":             serviceName(i),
			"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
		}},
		"endpoints": all, "ports": []object{{"name": "http", "port": 8080, "protocol": "TCP"}},
	}
}

func policy(i int) object {
	selects := func(labels object) object { return object{"podSelector": object{"matchLabels": labels}} }
	block := object{"cidr": fmt.Sprintf("192.0.%d.0/24", i%250), "except": []string{fmt.Sprintf("192.0.%d.128/25", i%250)}}
	neighbours := object{"namespaceSelector": object{"matchLabels": object{"idx": strconv.Itoa(i % *namespaces)}}}
	return object{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
		"metadata": object{"name": fmt.Sprintf("np-%04d", i)},
		"spec": object{
			"podSelector": object{"matchLabels": object{"app": app(i)}}, "policyTypes": []string{"Ingress", "Egress"},
			"ingress": []object{{
				"from":  []object{selects(object{"tier": tier(i)}), neighbours},
				"ports": []object{{"protocol": "TCP", "port": 8080}, {"protocol": "TCP", "port": 9090}},
			}},
			"egress": []object{
				{"to": []object{{"ipBlock": block}}, "ports": []object{{"protocol": "UDP", "port": 53}}},
				{"to": []object{selects(object{"tier": "db"})}},
			},
		},
	}
}

// letsIn allows pods of namespaces with that label.
func letsIn(label, value string) object {
	from := object{
		"namespaceSelector": object{"matchLabels": object{label: value}},
		"podSelector":       object{"matchExpressions": []object{{"key": "app", "operator": "Exists"}}},
	}
	return object{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": object{"name": "lets-in"},
		"spec": object{"podSelector": object{}, "ingress": []object{{"from": []object{from}}}},
	}
}
