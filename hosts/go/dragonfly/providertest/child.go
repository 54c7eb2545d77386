package providertest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cherrygrove/hosts/go/dragonfly/internal/smalldisk"
)

// program is what a child process does. A program that is to be killed says
// "ready" and waits; another one returns.
type program func(m Maker, dir string, ready func()) error

// programs are the programs of the cases, by name.
var programs = map[string]program{
	"save": saveProgram,
	"full": fullProgram,
}

// Variables of the environment that make a test binary a child.
const (
	envProgram = "PROVIDERTEST_PROGRAM"
	envMaker   = "PROVIDERTEST_MAKER"
	envDir     = "PROVIDERTEST_DIR"
)

// Main runs the tests of a package, or the program of a case if this process
// was started for one. The makers have the names that Run is given.
func Main(m *testing.M, makers map[string]Maker) {
	name := os.Getenv(envProgram)
	if name == "" {
		os.Exit(m.Run())
	}
	maker, ok := makers[os.Getenv(envMaker)]
	run, known := programs[name]
	if !ok || !known {
		fmt.Fprintf(os.Stderr, "no program %q for %q\n", name, os.Getenv(envMaker))
		os.Exit(2)
	}
	ready := func() {
		fmt.Println("ready")
		select {} // until this process is killed
	}
	if err := run(maker, os.Getenv(envDir), ready); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child returns the command of a program.
func (c *C) child(name, dir string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		c.Fatalf("name of this program: %v", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envProgram+"="+name, envMaker+"="+c.name, envDir+"="+dir)
	return cmd
}

// runUntilReady runs a program until it says "ready", and then kills it.
func (c *C) runUntilReady(name, dir string) {
	cmd := c.child(name, dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.Fatalf("pipe: %v", err)
	}
	if err := cmd.Start(); err != nil {
		c.Fatalf("start child: %v", err)
	}
	watch := time.AfterFunc(limit/2, func() { _ = cmd.Process.Kill() })
	defer watch.Stop()
	ready := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			ready = true
			break
		}
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	if !ready {
		c.Fatalf("child %s did not get ready: %s", name, stderr.String())
	}
}

// runAlone runs a program to its end in a mount namespace of its own.
func (c *C) runAlone(name, dir string) {
	cmd := c.child(name, dir)
	cmd.SysProcAttr = smalldisk.Attr()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		c.Skipf("no mount namespace: %v", err)
	}
	watch := time.AfterFunc(limit/2, func() { _ = cmd.Process.Kill() })
	defer watch.Stop()
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && strings.Contains(out.String(), smalldisk.ErrNone.Error()) {
			c.Skipf("%s", strings.TrimSpace(out.String()))
		}
		c.Fatalf("%v: %s", err, strings.TrimSpace(out.String()))
	}
}
