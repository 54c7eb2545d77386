package dragonfly

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cherrygrove/hosts/go/cherrygrove"
	"github.com/df-mc/dragonfly/server/world"
	"github.com/df-mc/dragonfly/server/world/chunk"
)

// flip is a byte of a file that was changed.
type flip struct {
	file string
	at   int64
}

// flips are the damage of the worlds of the tests, by directory.
var flips sync.Map

// do changes the byte, or changes it back.
func (f flip) do(dir string) error {
	file, err := os.OpenFile(filepath.Join(dir, f.file), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	var b [1]byte
	if _, err := file.ReadAt(b[:], f.at); err != nil {
		return err
	}
	b[0] ^= 0x10
	_, err = file.WriteAt(b[:], f.at)
	return err
}

// Damage looks for a byte of the world's files without which this column
// cannot be read, and the sound one can.
func (maker) Damage(dir string, pos, sound world.ChunkPos) error {
	f, err := findFlip(dir, Config{Log: quiet}, func(p *Provider) bool {
		_, err := p.LoadColumn(pos, world.Overworld)
		_, other := p.LoadColumn(sound, world.Overworld)
		return errors.Is(err, cherrygrove.Damaged) && other == nil
	})
	if err != nil {
		return err
	}
	flips.Store(dir, f)
	return f.do(dir)
}

// findFlip looks for a byte of the world's files whose change does the damage
// that is looked for.
func findFlip(dir string, conf Config, is func(*Provider) bool) (flip, error) {
	candidates, err := dataFiles(dir)
	if err != nil {
		return flip{}, err
	}
	tries := 0
	for _, c := range candidates {
		for at := c.size / 64; at < c.size; at += max(97, c.size/32) {
			f := flip{c.name, at}
			hit, opens, err := f.probe(dir, conf, is)
			if hit || err != nil {
				return f, err
			}
			if tries++; !opens {
				break // a file without which there is no world
			}
		}
	}
	return flip{}, fmt.Errorf("none of %d bytes does this damage alone", tries)
}

// probe changes the byte in a copy of the world: whether it does the damage,
// and whether the world can be opened.
func (f flip) probe(dir string, conf Config, is func(*Provider) bool) (hit, opens bool, err error) {
	probe := dir + " probe"
	if err := os.CopyFS(probe, os.DirFS(dir)); err != nil {
		return false, false, err
	}
	defer os.RemoveAll(probe)
	if err := f.do(probe); err != nil {
		return false, false, err
	}
	p, err := Open(probe, conf)
	if err != nil {
		return false, false, nil
	}
	defer p.Close()
	p.SetBlockRegistry(world.DefaultBlockRegistry)
	return is(p), true, nil
}

// dataFile is a file of the store that may hold columns.
type dataFile struct {
	name string
	size int64
}

// dataFiles lists these files, largest first.
func dataFiles(dir string) (out []dataFile, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !(strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")) {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out = append(out, dataFile{name, info.Size()})
		}
		return err
	})
	slices.SortFunc(out, func(a, b dataFile) int { return int(b.size - a.size) })
	return out, err
}

// Stored returns the column as it is after the damage is undone in a copy: if
// any byte of it was written since, the byte that was changed is elsewhere.
func (maker) Stored(dir string, pos world.ChunkPos) ([]byte, error) {
	f, ok := flips.Load(dir)
	if !ok {
		return nil, errors.New("the world was not damaged")
	}
	mended := dir + " mended"
	if err := os.CopyFS(mended, os.DirFS(dir)); err != nil {
		return nil, err
	}
	defer os.RemoveAll(mended)
	if err := f.(flip).do(mended); err != nil {
		return nil, err
	}
	p, err := Open(mended, Config{Log: quiet})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	p.SetBlockRegistry(world.DefaultBlockRegistry)
	col, err := p.LoadColumn(pos, world.Overworld)
	if err != nil {
		return nil, err
	}
	d := chunk.Encode(col.Chunk, chunk.NetworkEncoding)
	return append(bytes.Join(d.SubChunks, nil), d.Biomes...), nil
}
