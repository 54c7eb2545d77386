package nbt

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sandertv/gophertunnel/minecraft/nbt"
)

// sample has a value of each type that dragonfly gives.
func sample() map[string]any {
	return map[string]any{
		"b": uint8(3), "t": true, "s": int16(-3), "i": int32(7), "l": int64(math.MinInt64), "f": float32(1.5), "d": -0.25,
		"text": "grüße\x00\xff", "ba": [3]byte{1, 2, 3}, "ia": [2]int32{-1, 9}, "la": [1]int64{5}, "f3": []float32{1, 2, 3},
		"bl": []byte{1, 2}, "il": []int32{1}, "ll": []int64{2}, "strings": []string{"x", "y"}, "any": []any{"a", "b"},
		"none": []any{}, "maps": []map[string]any{{"k": int32(1)}, {}}, "m": map[string]any{"m": map[string]any{"x": uint8(0)}},
		"lists": []any{[]any{int32(1), int32(2)}, []any{}},
	}
}

// TestAsGophertunnel demands that its decoder reads what Append writes, and
// that Read gives what its decoder gives.
func TestAsGophertunnel(t *testing.T) {
	b, err := Append(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	var theirs map[string]any
	if err := nbt.UnmarshalEncoding(b, &theirs, nbt.LittleEndian); err != nil {
		t.Fatal(err)
	}
	ours, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(ours, theirs) {
		t.Errorf("ours\n%#v\ntheirs\n%#v", ours, theirs)
	}
	for range 20 {
		if again, _ := Append(nil, sample()); !bytes.Equal(again, b) {
			t.Fatal("equal values have other bytes")
		}
	}
	back, err := Append(nil, ours)
	if err != nil || !bytes.Equal(back, b) {
		t.Errorf("what was read has other bytes: %v", err)
	}
}

// TestGophertunnel demands of gophertunnel's package the faults that the
// comment of this one names. Where it fails, this one may not be needed.
func TestGophertunnel(t *testing.T) {
	orders := map[string]bool{}
	for range 100 {
		b, err := nbt.MarshalEncoding(sample(), nbt.LittleEndian)
		if err != nil {
			t.Fatal(err)
		}
		orders[string(b)] = true
	}
	if len(orders) == 1 {
		t.Error("it writes keys in one order")
	}
	if _, err := nbt.MarshalEncoding(map[string]any{"good": int32(1), "bad": make(chan int)}, nbt.LittleEndian); err == nil {
		t.Error("it leaves out what has no NBT")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = nbt.MarshalEncoding(map[string]any{"good": int32(1), "bad": nil}, nbt.LittleEndian)
		t.Error("it does not panic at nil")
	}()
	var theirs map[string]any
	mixed, err := nbt.MarshalEncoding(map[string]any{"list": []any{int32(1), "two"}}, nbt.LittleEndian)
	if err != nil || nbt.UnmarshalEncoding(mixed, &theirs, nbt.LittleEndian) == nil {
		t.Errorf("a list of several types: %v, read as %v", err, theirs)
	}
	lists := map[string]any{}
	for i := range 600 {
		lists[fmt.Sprint(i)] = map[string]any{"of": []int32{1}}
	}
	b, err := Append(nil, lists)
	if err != nil {
		t.Fatal(err)
	}
	if err := nbt.UnmarshalEncoding(b, &theirs, nbt.LittleEndian); err == nil {
		t.Error("it reads 600 lists of numbers")
	}
	if ours, err := Read(b); err != nil || len(ours) != 600 {
		t.Errorf("600 lists of numbers: %d, %v", len(ours), err)
	}
}

// TestLeftOut demands that what has no NBT costs itself alone.
func TestLeftOut(t *testing.T) {
	deep := map[string]any{}
	for range 600 {
		deep = map[string]any{"in": deep}
	}
	b, err := Append([]byte{9}, map[string]any{
		"a": int32(1), "nil": nil, "chan": make(chan int), "mixed": []any{int32(1), "x"}, "text": strings.Repeat("x", 40000),
		"in": map[string]any{"bad": func() {}, "good": "yes"}, "deep": deep, "z": "end", "list": []any{nil},
	})
	if err == nil {
		t.Fatal("nothing was reported")
	}
	for _, want := range []string{"/nil:", "/chan:", "/mixed:", "/text:", "/in/bad:", "/list:", "too deep"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	if b[0] != 9 {
		t.Error("it does not append")
	}
	m, err := Read(b[1:])
	if err != nil {
		t.Fatal(err)
	}
	delete(m, "deep")
	if want := map[string]any{"a": int32(1), "in": map[string]any{"good": "yes"}, "z": "end"}; !reflect.DeepEqual(m, want) {
		t.Errorf("got %v", m)
	}
}

// TestLies demands an error, and neither a panic nor much memory, for NBT that
// is cut or changed.
func TestLies(t *testing.T) {
	b, _ := Append(nil, sample())
	for i := range b {
		if _, err := Read(b[:i]); err == nil {
			t.Errorf("cut at %d: no error", i)
		}
		for _, x := range []byte{0, 1, 0x7f, 0xff} {
			c := bytes.Clone(b)
			c[i] = x
			_, _ = Read(c)
		}
	}
	huge := []byte{tagCompound, 0, 0, tagList, 1, 0, 'x', tagEnd, 0xff, 0xff, 0xff, 0x7f}
	if _, err := Read(huge); err == nil {
		t.Error("a list of 2^31 nothings is read")
	}
	nested := append([]byte{tagCompound, 0, 0}, bytes.Repeat([]byte{tagCompound, 0, 0}, 100000)...)
	if _, err := Read(nested); err == nil {
		t.Error("a depth of 100,000 is read")
	}
}

func FuzzRead(f *testing.F) {
	b, _ := Append(nil, sample())
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(b)
		if err != nil {
			return
		}
		if _, err := Append(nil, m); err != nil && !strings.Contains(err.Error(), "text") && !strings.Contains(err.Error(), "long") && !strings.Contains(err.Error(), "deep") {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
