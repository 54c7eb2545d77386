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
	"syscall"
	"time"
)

// meter times calls, and counts what the process wrote and used meanwhile, as that of cg-compare does.
type meter struct {
	before    transfer
	resident  uint64
	calls     []time.Duration
	spent     time.Duration
	processor time.Duration
	units     uint64
	// begun is when the first call began.
	begun time.Time
}

// transfer has the bytes of all calls of the system that write and read.
type transfer struct{ written, read uint64 }

func transferred() transfer {
	return transfer{field("/proc/self/io", "wchar:"), field("/proc/self/io", "rchar:")}
}

// processor is the time that all threads have used.
func processor() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func begin() *meter {
	// Without the right to it, the peak is that of the whole process.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	return &meter{before: transferred(), resident: 1024 * field("/proc/self/status", "VmRSS:")}
}

// apart does what is not measured: what is written and read meanwhile does not count.
func (m *meter) apart(work func() error) error {
	begun := transferred()
	err := work()
	now := transferred()
	m.before.written += now.written - begun.written
	m.before.read += now.read - begun.read
	return err
}

func (m *meter) call(work func() error) error {
	before := m.spent
	err := m.work(1, work)
	m.calls = append(m.calls, m.spent-before)
	return err
}

func (m *meter) work(units uint64, work func() error) error {
	used := processor()
	begun := time.Now()
	if m.begun.IsZero() {
		m.begun = begun
	}
	err := work()
	m.spent += time.Since(begun)
	m.processor += processor() - used
	m.units += units
	return err
}

// isEnough tells whether repetitions have gone on for long enough, or take too long beside what is timed.
func (m *meter) isEnough(enough time.Duration) bool {
	return m.spent > enough || !m.begun.IsZero() && time.Since(m.begun) > 8*enough
}

func (m *meter) end(dir string) (*figures, error) {
	if m.units == 0 {
		return nil, fmt.Errorf("nothing was measured")
	}
	f := &figures{Value: float64(m.spent.Nanoseconds()) / float64(m.units), Units: m.units}
	now := transferred()
	f.Written = now.written - m.before.written
	f.Effort = &effort{Processor: float64(m.processor.Nanoseconds()) / float64(m.units), Read: now.read - m.before.read}
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
