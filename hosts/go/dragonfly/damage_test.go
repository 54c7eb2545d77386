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

// Damage looks for a byte of the world's files without which this column, and
// no other, cannot be read.
func (maker) Damage(dir string, pos world.ChunkPos, dim world.Dimension) error {
	candidates, err := dataFiles(dir)
	if err != nil {
		return err
	}
	tries := 0
	for _, c := range candidates {
		for at := c.size / 8; at < c.size; at += max(97, c.size/400) {
			tries++
			f := flip{c.name, at}
			probe := dir + " probe"
			if err := os.CopyFS(probe, os.DirFS(dir)); err != nil {
				return err
			}
			err := f.do(probe)
			hit := err == nil && onlyDamaged(probe, pos, dim)
			if e := os.RemoveAll(probe); err == nil {
				err = e
			}
			if err != nil {
				return err
			}
			if hit {
				flips.Store(dir, f)
				return f.do(dir)
			}
		}
	}
	return fmt.Errorf("none of %d bytes is one that damages this column alone", tries)
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

// onlyDamaged says whether a column is damaged and all others can be read.
func onlyDamaged(dir string, pos world.ChunkPos, dim world.Dimension) bool {
	p, err := Open(dir, Config{Log: quiet})
	if err != nil {
		return false
	}
	defer p.Close()
	p.SetBlockRegistry(world.DefaultBlockRegistry)
	if _, err := p.LoadColumn(pos, dim); !errors.Is(err, cherrygrove.Damaged) {
		return false
	}
	id, err := p.dimension(dim)
	if err != nil {
		return false
	}
	for at, err := range p.w.Columns(id) {
		if err != nil {
			return false
		}
		other := world.ChunkPos{int32(at.X), int32(at.Z)}
		if _, err := p.LoadColumn(other, dim); err != nil && other != pos {
			return false
		}
	}
	return true
}

// Stored returns the column as it is after the damage is undone in a copy: if
// any byte of it was written since, the byte that was changed is elsewhere.
func (maker) Stored(dir string, pos world.ChunkPos, dim world.Dimension) ([]byte, error) {
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
	col, err := p.LoadColumn(pos, dim)
	if err != nil {
		return nil, err
	}
	d := chunk.Encode(col.Chunk, chunk.NetworkEncoding)
	return append(bytes.Join(d.SubChunks, nil), d.Biomes...), nil
}
