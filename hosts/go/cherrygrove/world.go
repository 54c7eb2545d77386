package cherrygrove

// #include <cherrygrove.h>
import "C"

import (
	"runtime"
	"time"
	"unsafe"
)

// Mode says how a world is opened.
type Mode uint32

// How a world is opened.
const (
	MustExist    Mode = C.CG_OPEN
	Create       Mode = C.CG_CREATE // the directory must be missing or empty
	OpenOrCreate Mode = C.CG_OPEN_OR_CREATE
	OpenReadOnly Mode = C.CG_OPEN_READ_ONLY
)

// Durability says when a commit returns, and what it survives.
type Durability uint32

// When a commit returns. Default is Balanced for a world, and for a commit
// what its world has.
const (
	Default   Durability = C.CG_DEFAULT
	Fast      Durability = C.CG_FAST       // accepted; a kill may take the newest commits, each whole
	Balanced  Durability = C.CG_BALANCED   // accepted, and synced within about a second
	Process   Durability = C.CG_PROCESS    // survives a killed process
	Safe      Durability = C.CG_SAFE       // survives a power cut
	SafeBatch Durability = C.CG_SAFE_BATCH // as Safe, with one sync for callers at the same time
)

// Options are how a world is opened. The zero value opens one that is there.
type Options struct {
	Mode       Mode
	Durability Durability
	Partial    bool // columns with damaged chunks are loaded with the placeholder in these
	CacheBytes uint64
	QueueBytes uint64
	MinFree    uint64 // bytes that stay free on the disk; 0 is a twentieth, at most 1 GiB
	HeldBytes  uint64 // memory for what was submitted and the disk does not take; 0 is 256 MiB
	Group      time.Duration
	Game       string // "java", "bedrock" or a word of the host; a world is of one game
	Signature  string
	Manifests  []string // packs in JSON
}

// with calls f with the options as the library has them.
func (o *Options) with(f func(*C.cg_options) error) error {
	if o == nil {
		o = &Options{}
	}
	c := new(C.cg_options)
	c.struct_size = C.uint32_t(unsafe.Sizeof(*c))
	c.mode, c.durability = C.uint32_t(o.Mode), C.uint32_t(o.Durability)
	if o.Partial {
		c.on_damage = C.CG_PARTIAL
	}
	c.cache_bytes, c.queue_bytes = C.uint64_t(o.CacheBytes), C.uint64_t(o.QueueBytes)
	c.min_free_bytes, c.held_bytes = C.uint64_t(o.MinFree), C.uint64_t(o.HeldBytes)
	c.group_ms = C.uint32_t(o.Group / time.Millisecond)
	var pin runtime.Pinner
	defer pin.Unpin()
	c.game, c.signature = pinStr(&pin, o.Game), pinStr(&pin, o.Signature)
	if len(o.Manifests) > 0 {
		list := make([]C.cg_str, len(o.Manifests))
		for i, m := range o.Manifests {
			list[i] = pinStr(&pin, m)
		}
		pin.Pin(&list[0])
		c.manifests, c.manifest_count = &list[0], C.size_t(len(list))
	}
	return f(c)
}

// pinStr lends a string within a struct to one call.
func pinStr(pin *runtime.Pinner, s string) C.cg_str {
	if s != "" {
		pin.Pin(unsafe.StringData(s))
	}
	return str(s)
}

// World is an open world.
type World struct{ h *handle }

// Open opens a world in a directory. A nil Options is the zero value. The
// error is of kind Busy if another process has the world.
func Open(path string, options *Options) (*World, error) {
	if err := checkABI(); err != nil {
		return nil, err
	}
	var h C.cg_handle
	err := options.with(func(o *C.cg_options) error {
		e := newError()
		return e.result(C.cg_world_open(str(path), o, &h, e.c()))
	})
	if err != nil {
		return nil, err
	}
	return &World{own(h, "world "+path)}, nil
}

// Plan returns what opening a world would change, a line for each change.
func Plan(path string, options *Options) (string, error) {
	var h C.cg_handle
	err := options.with(func(o *C.cg_options) error {
		e := newError()
		return e.result(C.cg_world_plan(str(path), o, &h, e.c()))
	})
	if err != nil {
		return "", err
	}
	b, err := text(h)
	return string(b), err
}

// Close writes all that was accepted, syncs, and releases the world. The error
// says what could not be written, which is lost then. A second Close is an
// error of kind Closed.
func (w *World) Close() error {
	h := w.h.take()
	if h == 0 {
		return closedError("world")
	}
	e := newError()
	return e.result(C.cg_world_close(h, e.c()))
}

// Flush writes all that was accepted, and syncs.
func (w *World) Flush() error {
	e := newError()
	return e.result(C.cg_world_flush(w.h.c(), e.c()))
}

// Resume makes a world writable again after the disk was full or failed.
func (w *World) Resume() error {
	e := newError()
	return e.result(C.cg_world_resume(w.h.c(), e.c()))
}

// Info is what a world is.
type Info struct {
	ReadOnly        bool
	ID, Incarnation ID
	LastCommit      uint64
	Durability      Durability
}

// Info returns what the world is.
func (w *World) Info() (Info, error) {
	var out C.cg_world_info
	out.struct_size = C.uint32_t(unsafe.Sizeof(out))
	e := newError()
	err := e.result(C.cg_world_info_of(w.h.c(), &out, e.c()))
	return Info{out.read_only != 0, goID(out.id), goID(out.incarnation), uint64(out.last_commit), Durability(out.durability)}, err
}

func goID(id [16]C.uint8_t) ID { return *(*ID)(unsafe.Pointer(&id)) }

// Checkpoint copies the world as it is now into a new directory. Without
// copied, files are linked where the file system allows it.
func (w *World) Checkpoint(dir string, copied bool) error {
	e := newError()
	return e.result(C.cg_world_checkpoint(w.h.c(), str(dir), boolInt(copied), e.c()))
}

// Verify checks rows and references, with deep all values, and returns JSON:
// {"problems":[…],"rows":n}.
func (w *World) Verify(deep bool) ([]byte, error) {
	var h C.cg_handle
	e := newError()
	if err := e.result(C.cg_world_verify(w.h.c(), boolInt(deep), &h, e.c())); err != nil {
		return nil, err
	}
	return text(h)
}

func boolInt(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// Usage is what a world takes, in bytes.
type Usage struct{ OnDisk, Memory, Free uint64 }

// Usage returns what the world takes.
func (w *World) Usage() (Usage, error) {
	var out C.cg_usage
	out.struct_size = C.uint32_t(unsafe.Sizeof(out))
	e := newError()
	err := e.result(C.cg_world_usage(w.h.c(), &out, e.c()))
	return Usage{uint64(out.bytes_on_disk), uint64(out.memory_bytes), uint64(out.free_bytes)}, err
}

// PlayerAt is where a player is, in blocks.
type PlayerAt struct {
	Dimension uint32
	Block     Pos
}

// TickReport is what a tick did.
type TickReport struct {
	Idle                          bool
	ChunksMoved, ChunksPrefetched uint64
}

// Tick moves chunks between tiers for about the budget. It is to be called
// once a tick of the game; now never goes back.
func (w *World) Tick(now int64, players []PlayerAt, budget time.Duration) (TickReport, error) {
	list := make([]C.cg_player_at, len(players))
	for i, p := range players {
		list[i] = C.cg_player_at{dimension: C.uint32_t(p.Dimension), block: p.Block.c()}
	}
	var out C.cg_tick_report
	out.struct_size = C.uint32_t(unsafe.Sizeof(out))
	e := newError()
	err := e.result(C.cg_tick(w.h.c(), C.int64_t(now), unsafe.SliceData(list), C.size_t(len(list)),
		C.uint32_t(budget/time.Microsecond), &out, e.c()))
	return TickReport{out.is_idle != 0, uint64(out.chunks_moved), uint64(out.chunks_prefetched)}, err
}

// Pin keeps chunks in the hot tier until it is closed.
type Pin struct{ h *handle }

// KeepLoaded keeps a box of chunks in the hot tier.
func (w *World) KeepLoaded(dimension uint32, chunks Box) (*Pin, error) {
	var h C.cg_handle
	box := chunks.c()
	e := newError()
	if err := e.result(C.cg_keep_loaded(w.h.c(), C.uint32_t(dimension), &box, &h, e.c())); err != nil {
		return nil, err
	}
	return &Pin{own(h, "pin")}, nil
}

// Close ends the pin.
func (p *Pin) Close() { p.h.release() }

// Metrics returns the counters of the world by name; a name ends with its unit.
func (w *World) Metrics() (map[string]uint64, error) {
	n := C.cg_metric_count()
	values := make([]C.uint64_t, n)
	e := newError()
	if err := e.result(C.cg_metrics(w.h.c(), unsafe.SliceData(values), n, e.c())); err != nil {
		return nil, err
	}
	out := make(map[string]uint64, n)
	for i, v := range values {
		out[goString(C.cg_metric_name(C.size_t(i)))] = uint64(v)
	}
	return out, nil
}
