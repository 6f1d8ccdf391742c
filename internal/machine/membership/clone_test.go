package membership

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"reflect"
	"sync"
	"unsafe"

	"github.com/pleach-go/pleach/broadcast"
	"github.com/pleach-go/pleach/protocol"
)

// The explorer needs copies of machines and a number for each of their states. A
// walk over all fields gives both, and cannot forget one that is added later.

// shared are types that never change once made: they are not copied. Of a plan,
// whatever differs is in the commit that made it, so it is not looked at either.
var shared = map[reflect.Type]bool{
	reflect.TypeFor[*broadcast.Plan](): true,
	reflect.TypeFor[*value]():          true,
	reflect.TypeFor[*View]():           true,
	reflect.TypeFor[*frame]():          true,
	reflect.TypeFor[*memo]():           true,
}

// ignored are fields that do not change what a machine does.
var ignored = map[string]bool{
	"Machine.stats": true, "Machine.buffer": true, "Machine.history": true, "Machine.names": true, "Machine.memo": true,
	"testLog.thaws": true, "testLog.record": true,
	"acceptor.began": true, "suspicions.marked": true,
}

// deepCopy copies what a pointer points to, and all below.
func deepCopy[T any](p *T) *T {
	c := copier{}
	return c.copy(reflect.ValueOf(p)).Interface().(*T)
}

// copier remembers what it has copied, so that two pointers to one thing stay so.
type copier map[unsafe.Pointer]reflect.Value

func (c copier) copy(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || shared[v.Type()] {
			return v
		}
		if done, ok := c[v.UnsafePointer()]; ok {
			return done
		}
		fresh := reflect.New(v.Type().Elem())
		c[v.UnsafePointer()] = fresh
		fresh.Elem().Set(v.Elem())
		c.inPlace(fresh.Elem())
		return fresh
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		fresh := reflect.New(v.Type()).Elem()
		fresh.Set(c.copy(v.Elem()))
		return fresh
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		if !flat(v.Type().Elem()) {
			for i := range fresh.Len() {
				c.inPlace(fresh.Index(i))
			}
		}
		return fresh
	case reflect.Map:
		if v.Type() != reflect.TypeFor[map[string]protocol.Rank]() {
			panic("a machine with a map: copy it, and mind its order")
		}
		return reflect.ValueOf(maps.Clone(v.Interface().(map[string]protocol.Rank)))
	default:
		return v
	}
}

// inPlace replaces what a copied struct, or element, still shares.
func (c copier) inPlace(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[View]() || v.Type() == reflect.TypeFor[Members]() {
			return // never changed in place
		}
		for _, i := range fieldsOf(v.Type()).copied {
			c.inPlace(open(v.Field(i)))
		}
	case reflect.Array:
		for i := range v.Len() {
			c.inPlace(v.Index(i))
		}
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		v.Set(c.copy(v))
	}
}

// open makes an unexported field accessible.
func open(f reflect.Value) reflect.Value {
	return reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem()
}

// fields are which of a struct are to be copied on their own, and which to be
// hashed. Reflection would spend most of its time on finding that out anew.
type fields struct{ copied, hashed []int }

// known has the fields of each type, and flats whether it is flat. Schedules run beside each other.
var known, flats sync.Map

func fieldsOf(t reflect.Type) *fields {
	if f, ok := known.Load(t); ok {
		return f.(*fields)
	}
	f := &fields{}
	for i := range t.NumField() {
		if !flat(t.Field(i).Type) {
			f.copied = append(f.copied, i)
		}
		if !ignored[t.Name()+"."+t.Field(i).Name] {
			f.hashed = append(f.hashed, i)
		}
	}
	known.Store(t, f)
	return f
}

// flat reports whether a type holds nothing that copies would share. Strings do
// not change.
func flat(t reflect.Type) (is bool) {
	if is, ok := flats.Load(t); ok {
		return is.(bool)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map:
		is = false
	case reflect.Array:
		is = flat(t.Elem())
	case reflect.Struct:
		is = true
		for i := range t.NumField() {
			is = is && flat(t.Field(i).Type)
		}
	default:
		is = true
	}
	flats.Store(t, is)
	return is
}

// fingerprint is a number for all that p points to.
func fingerprint(seed maphash.Seed, p any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	hashInto(&h, reflect.ValueOf(p))
	return h.Sum64()
}

func hashInto(h *maphash.Hash, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.WriteByte(0)
			return
		}
		h.WriteByte(1)
		if v.Type() != reflect.TypeFor[*broadcast.Plan]() {
			hashInto(h, v.Elem())
		}
	case reflect.Slice:
		hashNumber(h, uint64(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			h.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			hashInto(h, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			hashInto(h, v.Index(i))
		}
	case reflect.Struct:
		t := v.Type()
		switch t {
		case reflect.TypeFor[Config]():
			return
		case reflect.TypeFor[View](): // the checker sees to it that its number says it all
			hashNumber(h, v.FieldByName("Number").Uint())
			return
		}
		for _, i := range fieldsOf(t).hashed {
			hashInto(h, v.Field(i))
		}
	case reflect.String:
		h.WriteString(v.String())
		h.WriteByte(0)
	case reflect.Bool:
		if v.Bool() {
			h.WriteByte(1)
		} else {
			h.WriteByte(0)
		}
	case reflect.Func:
	default:
		if v.CanInt() {
			hashNumber(h, uint64(v.Int()))
		} else if v.CanUint() {
			hashNumber(h, v.Uint())
		} else {
			panic(fmt.Sprint("cannot hash ", v.Type()))
		}
	}
}

func hashNumber(h *maphash.Hash, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h.Write(b[:])
}
