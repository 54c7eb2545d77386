package nbt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// errShort says that the bytes end before the value.
var errShort = errors.New("the NBT ends early")

// Read reads a compound. It takes no more memory than a small multiple of b.
func Read(b []byte) (map[string]any, error) {
	d := decoder{buf: b}
	if tag := d.byte(); tag != tagCompound && d.err == nil {
		return nil, fmt.Errorf("the NBT begins with tag %d and not with a compound", tag)
	}
	d.text()
	m := d.compound(1)
	if d.err != nil {
		return nil, fmt.Errorf("NBT, at byte %d of %d: %w", len(b)-len(d.buf), len(b), d.err)
	}
	return m, nil
}

// decoder reads from the front of buf until it meets an error.
type decoder struct {
	buf []byte
	err error
}

// take returns the next n bytes; of none if they are not there.
func (d *decoder) take(n int) []byte {
	if d.err != nil || n < 0 || n > len(d.buf) {
		d.fail(errShort)
		return nil
	}
	b := d.buf[:n]
	d.buf = d.buf[n:]
	return b
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) short() uint16 {
	if b := d.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (d *decoder) int() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) long() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) text() string { return string(d.take(int(d.short()))) }

// count reads a length of elements of at least size bytes each.
func (d *decoder) count(size int) int {
	n := int(d.int())
	if n < 0 || n > len(d.buf)/max(size, 1) {
		d.fail(errShort)
		return 0
	}
	return n
}

func (d *decoder) compound(depth int) map[string]any {
	m := map[string]any{}
	if depth > maxDepth {
		d.fail(errors.New("it is too deep"))
	}
	for d.err == nil {
		tag := d.byte()
		if tag == tagEnd {
			break
		}
		k := d.text()
		m[k] = d.value(tag, depth)
	}
	return m
}

func (d *decoder) value(tag byte, depth int) any {
	switch tag {
	case tagByte:
		return d.byte()
	case tagShort:
		return int16(d.short())
	case tagInt:
		return d.int()
	case tagLong:
		return d.long()
	case tagFloat:
		return math.Float32frombits(uint32(d.int()))
	case tagDouble:
		return math.Float64frombits(uint64(d.long()))
	case tagString:
		return d.text()
	case tagCompound:
		return d.compound(depth + 1)
	case tagList:
		return d.list(depth + 1)
	case tagByteArray:
		return array(d.take(d.count(1)))
	case tagIntArray:
		return array(many(d, d.count(4), (*decoder).int))
	case tagLongArray:
		return array(many(d, d.count(8), (*decoder).long))
	}
	d.fail(fmt.Errorf("there is no tag %d", tag))
	return nil
}

// many reads n values.
func many[T any](d *decoder, n int, read func(*decoder) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = read(d)
	}
	return out
}

// array returns an array of the length of a slice, as gophertunnel has it.
func array[T any](s []T) any {
	a := reflect.New(reflect.ArrayOf(len(s), reflect.TypeFor[T]())).Elem()
	reflect.Copy(a, reflect.ValueOf(s))
	return a.Interface()
}

// least is the least length of a payload by its tag.
var least = [...]int{tagByte: 1, tagShort: 2, tagInt: 4, tagLong: 8, tagFloat: 4, tagDouble: 8, tagByteArray: 4,
	tagString: 2, tagList: 5, tagCompound: 1, tagIntArray: 4, tagLongArray: 4}

func (d *decoder) list(depth int) any {
	if depth > maxDepth {
		d.fail(errors.New("it is too deep"))
		return nil
	}
	tag := d.byte()
	if int(tag) >= len(least) {
		d.fail(fmt.Errorf("there is no tag %d", tag))
		return nil
	}
	n := d.count(least[tag])
	switch {
	case n == 0:
		return []any{}
	case tag == tagEnd:
		d.fail(errors.New("a list of nothing has a length"))
		return nil
	case tag == tagByte:
		return append([]byte{}, d.take(n)...)
	case tag == tagInt:
		return many(d, n, (*decoder).int)
	case tag == tagLong:
		return many(d, n, (*decoder).long)
	}
	out := make([]any, 0, min(n, 1024))
	for range n {
		if d.err != nil {
			return nil
		}
		out = append(out, d.value(tag, depth))
	}
	return out
}
