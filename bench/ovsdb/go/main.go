// Measures the Go client libovsdb in the same way as the Rust clients:
// libovsdb-bench monitor SOCKET | txn SOCKET COUNT WINDOW. Prints one line RESULT key=value.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"

	"bench/nbdb"

	"github.com/go-logr/logr"
	"github.com/ovn-org/libovsdb/client"
	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	mode, socket := os.Args[1], os.Args[2]
	ctx := context.Background()
	c := connect(ctx, socket)
	if mode == "monitor" {
		rows := 0
		for _, table := range c.Cache().Tables() {
			rows += c.Cache().Table(table).Len()
		}
		fmt.Printf("RESULT rows=%d\n", rows)
		return
	}
	count, err := strconv.Atoi(os.Args[3])
	must(err)
	window, err := strconv.Atoi(os.Args[4])
	must(err)
	transactions(ctx, c, count, window)
}

// connect monitors everything, with indexes by owner id and name.
func connect(ctx context.Context, socket string) client.Client {
	dbm, err := nbdb.FullDatabaseModel()
	must(err)
	owner := []model.ClientIndex{{Columns: []model.ColumnKey{{Column: "external_ids", Key: "k8s.ovn.org/id"}}}}
	name := []model.ClientIndex{{Columns: []model.ColumnKey{{Column: "name"}}}}
	dbm.SetIndexes(map[string][]model.ClientIndex{
		"ACL": owner, "Port_Group": owner, "Load_Balancer": name, "Logical_Switch": name,
	})
	log := logr.Discard()
	c, err := client.NewOVSDBClient(dbm, client.WithEndpoint("unix:"+socket), client.WithLogger(&log))
	must(err)
	must(c.Connect(ctx))
	_, err = c.MonitorAll(ctx)
	must(err)
	return c
}

func transactions(ctx context.Context, c client.Client, count, window int) {
	var switches []nbdb.LogicalSwitch
	must(c.List(ctx, &switches))
	sort.Slice(switches, func(i, j int) bool { return switches[i].UUID < switches[j].UUID })
	times := make([]time.Duration, count)
	next := make(chan int, count)
	for i := range count {
		next <- i
	}
	close(next)
	start := time.Now()
	var lanes sync.WaitGroup
	for range window {
		lanes.Go(func() {
			for i := range next {
				begun := time.Now()
				addPort(ctx, c, i, switches[i%len(switches)].UUID)
				times[i] = time.Since(begun)
			}
		})
	}
	lanes.Wait()
	total := time.Since(start)
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	fmt.Printf("RESULT rate=%.0f p50=%d p99=%d\n", float64(count)/total.Seconds(),
		times[count/2].Microseconds(), times[count*99/100].Microseconds())
}

func addPort(ctx context.Context, c client.Client, i int, switchUUID string) {
	port := &nbdb.LogicalSwitchPort{
		UUID:         "new",
		Name:         fmt.Sprintf("bench-%d-%d", os.Getpid(), i),
		Addresses:    []string{"0a:58:0a:80:00:05 10.128.0.5"},
		PortSecurity: []string{"0a:58:0a:80:00:05 10.128.0.5"},
		ExternalIDs:  map[string]string{"namespace": "bench", "pod": "true"},
		Options: map[string]string{
			"requested-chassis": "node-0001", "iface-id-ver": "5f1c9f5e-7a0b-4c58-9b1e-000000000001",
		},
	}
	ops, err := c.Create(port)
	must(err)
	sw := &nbdb.LogicalSwitch{UUID: switchUUID}
	plug, err := c.Where(sw).Mutate(sw, model.Mutation{
		Field: &sw.Ports, Mutator: ovsdb.MutateOperationInsert, Value: []string{"new"},
	})
	must(err)
	ops = append(ops, plug...)
	results, err := c.Transact(ctx, ops...)
	must(err)
	_, err = ovsdb.CheckOperationResults(results, ops)
	must(err)
}
