package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"
)

// northbound watches the few rows that show a controller's progress.
type northbound struct {
	sync.Mutex
	rows  map[string]string    // names of counted rows, by uuid
	wired map[string]time.Time // ports with addresses: when first seen
	gone  map[string]time.Time // deleted ports: when
	sets  map[string]set       // address sets, by uuid
	// marked addresses behind load balancers: when first seen
	behind map[string]time.Time
}

type set struct {
	owner string
	size  int
}

// marked matches the addresses of changes, see change.
var marked = regexp.MustCompile(`10\.131\.\d+\.\d+`)

func watchNorthbound() *northbound {
	connection, err := net.Dial("unix", *nb)
	check(err)
	send := func(message object) { check(json.NewEncoder(connection).Encode(message)) }
	n := &northbound{
		rows: map[string]string{}, wired: map[string]time.Time{}, gone: map[string]time.Time{}, sets: map[string]set{},
		behind: map[string]time.Time{},
	}
	columns := func(names ...string) []object { return []object{{"columns": names}} }
	tables := object{
		"Logical_Switch_Port": columns("name", "addresses"),
		"Load_Balancer":       columns("name", "vips"),
		"Port_Group":          columns("name", "external_ids"),
	}
	if *times > 0 {
		tables["Address_Set"] = columns("name", "external_ids", "addresses")
	}
	send(object{"method": "monitor", "id": 1, "params": []any{"OVN_Northbound", nil, tables}})
	messages := json.NewDecoder(connection)
	ready := make(chan bool)
	go func() {
		for {
			var message struct {
				Method        string
				ID            any
				Params        []json.RawMessage
				Result, Error json.RawMessage
			}
			check(messages.Decode(&message))
			switch {
			case message.Method == "echo":
				send(object{"id": message.ID, "result": message.Params, "error": nil})
			case message.Method == "update":
				n.take(message.Params[1], time.Now())
			case message.Result != nil:
				n.take(message.Result, time.Now())
				close(ready)
			default:
				check(fmt.Errorf("monitor the northbound database: %s", message.Error))
			}
		}
	}()
	<-ready
	return n
}

func (n *northbound) take(text []byte, now time.Time) {
	var tables map[string]map[string]struct{ New map[string]json.RawMessage }
	check(json.Unmarshal(text, &tables))
	n.Lock()
	defer n.Unlock()
	for table, rows := range tables {
		for uuid, row := range rows {
			if row.New == nil {
				n.drop(uuid, now)
				continue
			}
			var name string
			check(json.Unmarshal(row.New["name"], &name))
			switch table {
			case "Logical_Switch_Port":
				// a pod's port, once it is usable
				if bytes.Equal(row.New["addresses"], []byte(`["set",[]]`)) || !strings.HasPrefix(name, "load-") {
					continue
				}
				if _, ok := n.wired[name]; !ok {
					n.wired[name] = now
				}
			case "Load_Balancer":
				for _, address := range marked.FindAll(row.New["vips"], -1) {
					if _, ok := n.behind[string(address)]; !ok {
						n.behind[string(address)] = now
					}
				}
				// one service may have several
				name, _, _ = strings.Cut(strings.TrimPrefix(name, "Service_load-"), "_")
			case "Address_Set":
				// a single address has no set around it; several are in ["set",[…]]
				var many []any
				size := 1
				if json.Unmarshal(row.New["addresses"], &many) == nil {
					size = len(many[1].([]any))
				}
				n.sets[uuid] = set{string(row.New["external_ids"]), size}
				continue
			case "Port_Group":
				if !bytes.Contains(row.New["external_ids"], []byte(`["k8s.ovn.org/owner-type","NetworkPolicy"]`)) {
					continue
				}
			}
			n.rows[uuid] = table + " " + name
		}
	}
}

func (n *northbound) drop(uuid string, now time.Time) {
	delete(n.sets, uuid)
	table, name, _ := strings.Cut(n.rows[uuid], " ")
	delete(n.rows, uuid)
	if table == "Logical_Switch_Port" {
		delete(n.wired, name)
		n.gone[name] = now
	}
}

// letIn returns how many addresses are in the sets of a selector.
func (n *northbound) letIn(selector string) int {
	n.Lock()
	defer n.Unlock()
	size := 0
	for _, set := range n.sets {
		if strings.Contains(set.owner, selector) {
			size += set.size
		}
	}
	return size
}

// count returns how many different names of a table there are.
func (n *northbound) count(table string) int {
	n.Lock()
	defer n.Unlock()
	names := map[string]bool{}
	for _, row := range n.rows {
		if strings.HasPrefix(row, table+" ") {
			names[row] = true
		}
	}
	return len(names)
}

// when returns the times at which these names appeared in `seen`, and whether all did.
func (n *northbound) when(seen map[string]time.Time, names map[string]time.Time) (map[string]time.Time, bool) {
	n.Lock()
	defer n.Unlock()
	at := map[string]time.Time{}
	for name := range names {
		if t, ok := seen[name]; ok {
			at[name] = t
		}
	}
	return at, len(at) == len(names)
}
