// Measures a store that is written in Go: the same columns, workloads and counting as cg-compare.
//
// cg-compare writes the columns, builds a program for each subject in a folder of its own, and starts it for each
// measurement. The folders blaze and level have what one subject alone needs.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

// about is what a reader has to know of a subject; its names are those of cg-compare.
type about struct {
	Name       string `json:"name"`
	Role       string `json:"role"`
	Version    string `json:"version"`
	Durability string `json:"durability"`
	Options    string `json:"options"`
}

// latency has percentiles of single calls, in nanoseconds.
type latency struct {
	P50  uint64 `json:"p50"`
	P90  uint64 `json:"p90"`
	P99  uint64 `json:"p99"`
	P999 uint64 `json:"p999"`
	Max  uint64 `json:"max"`
}

// figures are those of one run of a workload.
type figures struct {
	Value    float64  `json:"value"`
	Units    uint64   `json:"units"`
	Latency  *latency `json:"latency"`
	Written  uint64   `json:"written_bytes"`
	Saved    uint64   `json:"saved_bytes"`
	Disk     uint64   `json:"disk_bytes"`
	Peak     uint64   `json:"peak_bytes"`
	Compared uint64   `json:"compared_columns"`
	Effort   *effort  `json:"effort"`
}

// effort is where the time went. What only one thread knows is not told: Go moves calls between threads.
type effort struct {
	Processor float64 `json:"processor_ns"`
	Waited    *uint64 `json:"waited_ns"`
	Sleeps    *uint64 `json:"sleeps"`
	Read      uint64  `json:"read_bytes"`
}

// task is what one process is told.
type task struct {
	workload string
	columns  *columns
	prepared string
	scratch  string
	count    int
	enough   time.Duration
	seed     uint64
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "go subjects:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) < 2 {
		return fmt.Errorf("about or measure is missing")
	}
	if os.Args[1] == "about" {
		return json.NewEncoder(os.Stdout).Encode(the.about())
	}
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	var t task
	name := flags.String("subject", "", "")
	flags.StringVar(&t.workload, "workload", "", "")
	file := flags.String("columns", "", "")
	flags.StringVar(&t.prepared, "prepared", "", "")
	flags.StringVar(&t.scratch, "scratch", "", "")
	flags.IntVar(&t.count, "count", 0, "")
	enough := flags.Int64("enough-ms", 0, "")
	flags.Uint64Var(&t.seed, "seed", 0, "")
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	t.enough = time.Duration(*enough) * time.Millisecond
	if the.about().Name != *name {
		return fmt.Errorf("no subject is called %q", *name)
	}
	read, err := readColumns(*file)
	if err != nil {
		return err
	}
	t.columns = read
	return json.NewEncoder(os.Stdout).Encode(t.outcome())
}

// outcome runs the task; its shape is that of the enum in cg-compare.
func (t *task) outcome() map[string]any {
	if t.workload == "" {
		if err := t.prepare(); err != nil {
			return map[string]any{"Failed": err.Error()}
		}
		return map[string]any{"NotApplicable": "prepared"}
	}
	work, found := workloads[t.workload]
	if !found {
		return map[string]any{"NotApplicable": "the program in Go does not have this workload"}
	}
	measured, err := work(t)
	if err != nil {
		return map[string]any{"Failed": err.Error()}
	}
	return map[string]any{"Measured": measured}
}
