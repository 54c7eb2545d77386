// Command cgdragonfly copies worlds between dragonfly's own provider and
// CherryGrove.
//
//	cgdragonfly import [-players DIR] MCDB WORLD
//	cgdragonfly export [-players DIR] WORLD MCDB
//
// It ends with 0 if the copy is whole, with 3 if something was missed, which it
// names, and with 1 if it failed.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/cherrygrove/hosts/go/dragonfly"
	_ "github.com/df-mc/dragonfly/server" // registers blocks, items, biomes and entities
)

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	flags := flag.NewFlagSet("cgdragonfly", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "cgdragonfly import [-players DIR] MCDB WORLD\ncgdragonfly export [-players DIR] WORLD MCDB")
		flags.PrintDefaults()
	}
	players := flags.String("players", "", "the `directory` of dragonfly's player database, which is beside the world")
	if len(args) == 0 {
		flags.Usage()
		return 2
	}
	if err := flags.Parse(args[1:]); err != nil {
		return 2
	}
	if flags.NArg() != 2 {
		flags.Usage()
		return 2
	}
	from, to := flags.Arg(0), flags.Arg(1)
	var report *dragonfly.Report
	var err error
	switch args[0] {
	case "import":
		report, err = dragonfly.Import(from, *players, to, dragonfly.Config{})
	case "export":
		report, err = dragonfly.Export(from, to, *players, dragonfly.Config{})
	default:
		flags.Usage()
		return 2
	}
	if report != nil {
		fmt.Println(report)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	case len(report.Missed) > 0:
		return 3
	}
	return 0
}
