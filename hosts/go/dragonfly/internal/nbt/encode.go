// Package nbt writes and reads little-endian NBT, with the Go types of
// gophertunnel's package of this name. A store cannot use that one:
//
//   - It writes the keys of a map in any order, so a column that did not change
//     has other bytes at each save. This one writes them in ascending order.
//   - A value that has no NBT costs the whole compound: nil panics, a channel is
//     an error, and after a list of several types the bytes cannot be read.
//     This one leaves such a value out and names it.
//   - It cannot read back a compound with more than 512 lists of numbers.
//   - It allocates what a list claims as its length, up to 2^31 elements. This
//     one allocates a small multiple of the bytes that are there.
//
// TestGophertunnel shows the first three.
package nbt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/sandertv/gophertunnel/minecraft/nbt"
)

// Tags.
const (
	tagEnd byte = iota
	tagByte
	tagShort
	tagInt
	tagLong
	tagFloat
	tagDouble
	tagByteArray
	tagString
	tagList
	tagCompound
	tagIntArray
	tagLongArray
	tagNone byte = 255
)

// maxDepth is the depth that gophertunnel's decoder takes.
const maxDepth = 512

// maxString is the length that gophertunnel's decoder takes.
const maxString = math.MaxInt16

// Append appends a compound without a name to b. The error joins what was left
// out because it has no NBT; the bytes are sound all the same.
func Append(b []byte, m map[string]any) ([]byte, error) {
	e := encoder{buf: append(b, tagCompound, 0, 0)}
	e.compound(m, 1)
	return e.buf, errors.Join(e.left...)
}

// encoder writes to buf and notes what it leaves out.
type encoder struct {
	buf  []byte
	keys []string
	left []error
}

// leave notes that the value at the current place is left out.
func (e *encoder) leave(why string) {
	path := ""
	for _, k := range e.keys {
		path += "/" + k
	}
	e.left = append(e.left, fmt.Errorf("%s: %s", path, why))
}

// compound writes the entries of a compound and its end.
func (e *encoder) compound(m map[string]any, depth int) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		e.keys = append(e.keys, k)
		v := m[k]
		tag := tagOf(v)
		start := len(e.buf)
		switch {
		case len(k) > maxString:
			e.leave("the key is too long")
		case tag == tagNone:
			e.leave(fmt.Sprintf("%T is no NBT", v))
		default:
			e.buf = append(e.buf, tag)
			e.text(k)
			if !e.value(v, tag, depth) {
				e.buf = e.buf[:start]
			}
		}
		e.keys = e.keys[:len(e.keys)-1]
	}
	e.buf = append(e.buf, tagEnd)
}

func (e *encoder) text(s string) {
	e.buf = binary.LittleEndian.AppendUint16(e.buf, uint16(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *encoder) int(n int) { e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(n)) }

// value writes the payload of a value; false if it is left out.
func (e *encoder) value(v any, tag byte, depth int) bool {
	switch v := v.(type) {
	case uint8:
		e.buf = append(e.buf, v)
	case bool:
		if v {
			e.buf = append(e.buf, 1)
		} else {
			e.buf = append(e.buf, 0)
		}
	case int16:
		e.buf = binary.LittleEndian.AppendUint16(e.buf, uint16(v))
	case int32:
		e.buf = binary.LittleEndian.AppendUint32(e.buf, uint32(v))
	case int64:
		e.buf = binary.LittleEndian.AppendUint64(e.buf, uint64(v))
	case float32:
		e.buf = binary.LittleEndian.AppendUint32(e.buf, math.Float32bits(v))
	case float64:
		e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(v))
	case string:
		if len(v) > maxString {
			e.leave(fmt.Sprintf("a text of %d bytes", len(v)))
			return false
		}
		e.text(v)
	case map[string]any:
		if depth >= maxDepth {
			e.leave("too deep")
			return false
		}
		e.compound(v, depth+1)
	default:
		return e.reflected(reflect.ValueOf(v), tag, depth)
	}
	return true
}

// reflected writes what value has no type for.
func (e *encoder) reflected(v reflect.Value, tag byte, depth int) bool {
	switch tag {
	case tagByteArray, tagIntArray, tagLongArray:
		e.int(v.Len())
		for i := range v.Len() {
			e.value(v.Index(i).Interface(), 0, depth)
		}
		return true
	case tagList:
		return e.list(v, depth)
	}
	switch v.Kind() {
	case reflect.Map:
		m := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			m[it.Key().String()] = it.Value().Interface()
		}
		return e.value(m, tagCompound, depth)
	case reflect.Pointer:
		return e.value(v.Elem().Interface(), tag, depth)
	case reflect.Struct:
		b, err := nbt.MarshalEncoding(v.Interface(), nbt.LittleEndian)
		if err != nil {
			e.leave(err.Error())
			return false
		}
		m, err := Read(b)
		if err != nil {
			e.leave(err.Error())
			return false
		}
		return e.value(m, tagCompound, depth)
	case reflect.Bool:
		return e.value(v.Bool(), tag, depth)
	case reflect.Uint8:
		return e.value(uint8(v.Uint()), tag, depth)
	case reflect.Int16:
		return e.value(int16(v.Int()), tag, depth)
	case reflect.Int32:
		return e.value(int32(v.Int()), tag, depth)
	case reflect.Int64:
		return e.value(v.Int(), tag, depth)
	case reflect.Float32:
		return e.value(float32(v.Float()), tag, depth)
	case reflect.Float64:
		return e.value(v.Float(), tag, depth)
	default:
		return e.value(v.String(), tag, depth)
	}
}

// list writes a list. One whose elements are of several types, or that has an
// element without NBT, is left out.
func (e *encoder) list(v reflect.Value, depth int) bool {
	if depth >= maxDepth {
		e.leave("too deep")
		return false
	}
	of := tagByte // of an empty list
	for i := range v.Len() {
		t := tagOf(v.Index(i).Interface())
		if i == 0 {
			of = t
		}
		if t == tagNone || t != of {
			e.leave(fmt.Sprintf("element %d of the list is %T", i, v.Index(i).Interface()))
			return false
		}
	}
	e.buf = append(e.buf, of)
	e.int(v.Len())
	for i := range v.Len() {
		if !e.value(v.Index(i).Interface(), of, depth+1) {
			return false
		}
	}
	return true
}

// tagOf returns the tag of a value, tagNone if it has none.
func tagOf(v any) byte {
	switch v.(type) {
	case nil:
		return tagNone
	case uint8, bool:
		return tagByte
	case int16:
		return tagShort
	case int32:
		return tagInt
	case int64:
		return tagLong
	case float32:
		return tagFloat
	case float64:
		return tagDouble
	case string:
		return tagString
	case map[string]any:
		return tagCompound
	}
	t := reflect.TypeOf(v)
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8:
		return tagByte
	case reflect.Int16:
		return tagShort
	case reflect.Int32:
		return tagInt
	case reflect.Int64:
		return tagLong
	case reflect.Float32:
		return tagFloat
	case reflect.Float64:
		return tagDouble
	case reflect.String:
		return tagString
	case reflect.Struct:
		return tagCompound
	case reflect.Slice:
		return tagList
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			return tagCompound
		}
	case reflect.Pointer:
		if p := reflect.ValueOf(v); !p.IsNil() {
			return tagOf(p.Elem().Interface())
		}
	case reflect.Array:
		switch t.Elem().Kind() {
		case reflect.Uint8:
			return tagByteArray
		case reflect.Int32:
			return tagIntArray
		case reflect.Int64:
			return tagLongArray
		}
	}
	return tagNone
}
