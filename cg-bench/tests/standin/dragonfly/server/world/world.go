// Package world has the places and blocks that cg-compare's programs use.
package world

import "github.com/df-mc/dragonfly/server/block/cube"

type ChunkPos [2]int32

type Dimension interface{ Range() cube.Range }

type overworld struct{}

func (overworld) Range() cube.Range { return cube.Range{-64, 319} }

var Overworld Dimension = overworld{}

type Block any

func Blocks() []Block { return make([]Block, 256) }
