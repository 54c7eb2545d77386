package cherrygrove

// #include <cherrygrove.h>
import "C"

import (
	"bytes"
	"iter"
)

// Entity returns an entity and its version: ErrAbsent if the world does not
// have it. With a nil binding its kind is a number of the world.
func (w *World) Entity(b *Binding, id ID) (Entity, uint64, error) {
	var h C.cg_handle
	var v *C.cg_entity
	var version C.uint64_t
	e := newError()
	if err := e.result(C.cg_entity_get(w.h.c(), b.c(), id.c(), &h, &v, &version, e.c())); err != nil {
		return Entity{}, 0, err
	}
	defer C.cg_release(h)
	n := goEntity(v)
	n.NBT = bytes.Clone(n.NBT)
	return n, uint64(version), nil
}

// EntityComponent returns a component of an entity, ErrAbsent if the world does
// not have the entity or the entity not the component.
func (w *World) EntityComponent(id ID, component uint64) ([]byte, error) {
	var h C.cg_handle
	var v *C.cg_entity
	e := newError()
	if err := e.result(C.cg_entity_get(w.h.c(), 0, id.c(), &h, &v, nil, e.c())); err != nil {
		return nil, err
	}
	defer C.cg_release(h)
	var out C.cg_bytes
	e = newError()
	if err := e.result(C.cg_entity_component(h, C.uint64_t(component), &out, e.c())); err != nil {
		return nil, err
	}
	return append([]byte{}, borrowed(out)...), nil
}

// Property returns a property, ErrAbsent if there is none.
func (w *World) Property(name string) ([]byte, error) {
	var h C.cg_handle
	e := newError()
	if err := e.result(C.cg_property_get(w.h.c(), str(name), &h, e.c())); err != nil {
		return nil, err
	}
	return text(h)
}

// Object returns an object and its version, ErrAbsent if there is none.
func (w *World) Object(key []byte) ([]byte, int64, error) {
	var h C.cg_handle
	var version C.int64_t
	e := newError()
	if err := e.result(C.cg_object_get(w.h.c(), lend(key), &h, &version, e.c())); err != nil {
		return nil, 0, err
	}
	b, err := text(h)
	return b, int64(version), err
}

// Record returns a record, ErrAbsent if there is none.
func (w *World) Record(id ID) (Record, error) {
	var h C.cg_handle
	var v *C.cg_record
	e := newError()
	if err := e.result(C.cg_record_get(w.h.c(), id.c(), &h, &v, e.c())); err != nil {
		return Record{}, err
	}
	defer C.cg_release(h)
	return goRecord(v), nil
}

func goRecord(v *C.cg_record) Record {
	return Record{goID(v.id), goString(v.kind), uint32(v.dimension), goPos(v.block),
		[3]float32{float32(v.fraction[0]), float32(v.fraction[1]), float32(v.fraction[2])}, int64(v.timestamp),
		bytes.Clone(borrowed(v.bytes))}
}

// Value is a named value: an object or a property.
type Value struct {
	Key, Bytes []byte
	Version    int64
}

// Objects returns the objects whose keys begin with a prefix.
func (w *World) Objects(prefix []byte) iter.Seq2[Value, error] {
	return rows(func(h *C.cg_handle, e *C.cg_error) C.int { return C.cg_object_list(w.h.c(), lend(prefix), h, e) }, goValue)
}

// Properties returns the properties whose names begin with a prefix.
func (w *World) Properties(prefix string) iter.Seq2[Value, error] {
	return rows(func(h *C.cg_handle, e *C.cg_error) C.int { return C.cg_property_list(w.h.c(), str(prefix), h, e) }, goValue)
}

// Records returns the records in a box of blocks.
func (w *World) Records(dimension uint32, blocks Box) iter.Seq2[Record, error] {
	box := blocks.c()
	return rows(func(h *C.cg_handle, e *C.cg_error) C.int {
		return C.cg_records_in(w.h.c(), C.uint32_t(dimension), &box, h, e)
	}, func(r *C.cg_row) Record { return goRecord(&r.record) })
}

// Detached returns the entities that belong to no chunk, such as players.
// Those of kinds that the binding does not have are left out.
func (w *World) Detached(b *Binding) iter.Seq2[Entity, error] {
	return rows(func(h *C.cg_handle, e *C.cg_error) C.int { return C.cg_entities_detached(w.h.c(), b.c(), h, e) },
		func(r *C.cg_row) Entity {
			n := goEntity(&r.entity)
			n.NBT = bytes.Clone(n.NBT)
			return n
		})
}

func goValue(r *C.cg_row) Value {
	return Value{bytes.Clone(borrowed(r.key)), bytes.Clone(borrowed(r.bytes)), int64(r.version)}
}

// rows iterates over a cursor.
func rows[T any](open func(*C.cg_handle, *C.cg_error) C.int, read func(*C.cg_row) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var h C.cg_handle
		e := newError()
		if err := e.result(open(&h, e.c())); err != nil {
			yield(none, err)
			return
		}
		defer C.cg_release(h)
		out := make([]C.cg_row, 64)
		for {
			var n C.size_t
			e := newError()
			if err := e.result(C.cg_cursor_next(h, &out[0], C.size_t(len(out)), &n, e.c())); err != nil {
				yield(none, err)
				return
			}
			if n == 0 {
				return
			}
			for i := range out[:n] {
				if !yield(read(&out[i]), nil) {
					return
				}
			}
		}
	}
}
