// Package cube has the positions that cg-compare's programs use.
package cube

type Pos [3]int

type Range [2]int
