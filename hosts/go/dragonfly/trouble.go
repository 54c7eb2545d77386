package dragonfly

import (
	"fmt"
	"sync"
	"time"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/world"
)

// report logs an error that dragonfly has no way to learn, and tells OnTrouble.
func (p *Provider) report(err error) {
	p.conf.Log.Error(err.Error())
	if p.conf.OnTrouble != nil {
		p.conf.OnTrouble(err)
	}
}

// Metrics that are watched: what the disk did not take yet, and what the world
// refused for good after it was accepted.
const (
	heldMetric    = "held_submissions_count"
	refusedMetric = "refused_submissions_count"
)

// trouble watches a world and passes on the log of the library.
type trouble struct {
	p    *Provider
	end  chan struct{}
	done sync.WaitGroup

	mu   sync.Mutex
	told map[string]time.Time // damage that was reported
}

// watch starts to watch.
func watch(p *Provider) *trouble {
	t := &trouble{p: p, end: make(chan struct{}), told: map[string]time.Time{}}
	t.done.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var before state
		for {
			select {
			case <-t.end:
				return
			case <-tick.C:
				t.passLog()
				before = t.check(before)
			}
		}
	})
	return t
}

// stop ends the watch.
func (t *trouble) stop() {
	close(t.end)
	t.done.Wait()
	t.passLog()
}

// logMu lets one goroutine of the process read the log, which is one for all
// worlds.
var logMu sync.Mutex

// passLog passes the lines of the library's log on.
func (t *trouble) passLog() {
	logMu.Lock()
	defer logMu.Unlock()
	for {
		line, ok := cherrygrove.NextLogLine()
		if !ok {
			return
		}
		switch line.Level {
		case 1:
			t.p.conf.Log.Error(line.Text)
		case 2:
			t.p.conf.Log.Warn(line.Text)
		default:
			t.p.conf.Log.Debug(line.Text)
		}
	}
}

// state is what was seen of a world.
type state struct{ held, refused uint64 }

// check reports when submissions begin to be held or are refused, and logs when
// none is held any more.
func (t *trouble) check(before state) state {
	m, err := t.p.w.Metrics()
	if err != nil {
		return before
	}
	now := state{m[heldMetric], m[refusedMetric]}
	switch {
	case now.held > 0 && before.held == 0:
		t.p.report(fmt.Errorf("the disk takes nothing: %d columns and players are held in memory until it does", now.held))
	case now.held == 0 && before.held > 0:
		t.p.conf.Log.Info("the disk takes writes again: nothing is held any more")
	}
	if now.refused > before.refused {
		t.p.report(fmt.Errorf("the world refused %d columns or players for good; the log says why", now.refused-before.refused))
	}
	return now
}

// damaged reports a damaged column, once in a minute.
func (t *trouble) damaged(pos world.ChunkPos, dim world.Dimension, err error) {
	key := fmt.Sprint(pos, dim)
	now := time.Now()
	t.mu.Lock()
	last, again := t.told[key]
	again = again && now.Sub(last) < time.Minute
	if !again {
		if len(t.told) > 10_000 {
			clear(t.told)
		}
		t.told[key] = now
	}
	t.mu.Unlock()
	if !again {
		t.p.report(fmt.Errorf("column %d %d of the %v is damaged: %w", pos[0], pos[1], dim, err))
	}
}
