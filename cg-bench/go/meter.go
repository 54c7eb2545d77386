package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// meter times calls, and counts what the process wrote and used meanwhile, as that of cg-compare does.
type meter struct {
	written  uint64
	resident uint64
	calls    []time.Duration
	spent    time.Duration
	units    uint64
}

func begin() *meter {
	// Without the right to it, the peak is that of the whole process.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return &meter{written: field("/proc/self/io", "wchar:"), resident: 1024 * field("/proc/self/status", "VmRSS:")}
}

func (m *meter) forgetWrites() { m.written = field("/proc/self/io", "wchar:") }

func (m *meter) call(work func() error) error {
	begun := time.Now()
	err := work()
	spent := time.Since(begun)
	m.calls = append(m.calls, spent)
	m.spent += spent
	m.units++
	return err
}

func (m *meter) work(units uint64, work func() error) error {
	begun := time.Now()
	err := work()
	m.spent += time.Since(begun)
	m.units += units
	return err
}

func (m *meter) end(dir string) (*figures, error) {
	if m.units == 0 {
		return nil, fmt.Errorf("nothing was measured")
	}
	f := &figures{Value: float64(m.spent.Nanoseconds()) / float64(m.units), Units: m.units}
	f.Written = field("/proc/self/io", "wchar:") - m.written
	f.Peak = 1024*field("/proc/self/status", "VmHWM:") - m.resident
	if len(m.calls) > 0 {
		slices.Sort(m.calls)
		at := func(share float64) uint64 { return uint64(m.calls[int(share*float64(len(m.calls)-1))]) }
		f.Latency = &latency{P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: at(1)}
	}
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			f.Disk += uint64(info.Size())
		}
		return err
	})
	return f, err
}

// field reads a number of a file of the system; 0 where there is none.
func field(path, name string) uint64 {
	file, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if rest, found := strings.CutPrefix(lines.Text(), name); found {
			fields := strings.Fields(rest)
			if len(fields) > 0 {
				number, _ := strconv.ParseUint(fields[0], 10, 64)
				return number
			}
		}
	}
	return 0
}
