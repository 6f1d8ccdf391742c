package lifecycle

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// driver carries actions of a machine out, as far as tests want: it keeps requests until a
// test answers them.
type driver struct {
	t       *testing.T
	m       *Machine
	now     protocol.Time
	asks    []Ask
	actions []Action // other than Ask, since the last look
	nonce   uint64
}

// self is the process of a driver.
var self = membership.Member{Identity: "a", Address: "a:1", Nonce: 1, Version: 5}

func drive(t *testing.T, change func(*Config)) *driver {
	d := &driver{t: t, now: 1, nonce: 100}
	c := Config{Self: self, Seeds: []string{"s:1"}, Durable: true, Speaks: func(v uint16) error {
		if v > 5 {
			return errors.New("not spoken")
		}
		return nil
	}, NewNonce: func() uint64 { d.nonce++; return d.nonce }}
	if change != nil {
		change(&c)
	}
	d.m = New(c)
	d.m.Start(d.now)
	d.settle()
	return d
}

// settle takes all actions. After that, the machine waits: its deadline is in the future.
func (d *driver) settle() {
	d.t.Helper()
	for range 10_000 {
		switch a := d.m.Next(d.now).(type) {
		case nil:
			if due := d.m.Deadline(); due <= d.now {
				d.t.Fatalf("the deadline %d is over at %d, and there is nothing to do", due, d.now)
			}
			return
		case Ask:
			if a.Address == "" || a.Address == d.m.self.Address {
				d.t.Fatalf("it asks %q", a.Address)
			}
			d.asks = append(d.asks, a)
		default:
			d.actions = append(d.actions, a)
		}
	}
	d.t.Fatal("the actions do not end")
}

// pass lets time pass, from deadline to deadline.
func (d *driver) pass(until protocol.Time) {
	d.t.Helper()
	for d.m.Deadline() <= until {
		d.now = max(d.now, d.m.Deadline())
		d.settle()
	}
	d.now = until
	d.settle()
}

// take returns the actions since the last look, by their types.
func (d *driver) take() string {
	text := ""
	for _, a := range d.actions {
		text += fmt.Sprintf("%T ", a)
	}
	d.actions = nil
	return text
}

// expect complains unless these are the actions since the last look.
func (d *driver) expect(what, want string) {
	d.t.Helper()
	if got := d.take(); got != want {
		d.t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// pending returns the requests of a kind that wait for a reply, and takes them.
func pending[R control.Request](d *driver) (found []Ask) {
	var rest []Ask
	for _, a := range d.asks {
		if _, ok := a.Request.(R); ok {
			found = append(found, a)
		} else {
			rest = append(rest, a)
		}
	}
	d.asks = rest
	return found
}

func addresses(asks []Ask) (list []string) {
	for _, a := range asks {
		list = append(list, a.Address)
	}
	return list
}

// reply answers a request.
func (d *driver) reply(a Ask, r Reply) {
	d.t.Helper()
	d.m.Replied(d.now, a.Token, r)
	d.m.Replied(d.now, a.Token, r) // twice is once
	d.settle()
}

// introduce has the process at an address introduce itself.
func (d *driver) introduce(address string, i control.Introduction) {
	d.t.Helper()
	for range 1000 {
		asked := pending[control.Introduce](d)
		for k, a := range asked {
			if a.Address == address {
				d.asks = append(d.asks, asked[k+1:]...)
				d.reply(a, Reply{Body: i.Encode(nil)})
				return
			}
			d.reply(a, Reply{Err: errors.New("silent")})
		}
		d.pass(min(d.m.Deadline(), d.now+second))
	}
	d.t.Fatalf("%s is not asked", address)
}

const second = 1000 * millisecond

// named returns a member, whose address is its name.
func named(rank protocol.Rank, name string, incarnation, nonce uint64) membership.Member {
	return membership.Member{
		Rank: rank, Identity: name, Address: name + ":1", Incarnation: incarnation, Nonce: nonce,
		Version: 5,
	}
}

// viewOf returns a view of members.
func viewOf(number uint64, members ...membership.Member) membership.View {
	return membership.View{Number: number, Version: 5, Slots: 9, Members: membership.MembersOf(members...)}
}

// three is a view in which the process of the driver has the place 0, with a nonce.
func three(number, nonce uint64) membership.View {
	return viewOf(number, named(0, "a", 1, nonce), named(1, "b", 1, 11), named(2, "c", 1, 12))
}

// place returns the place of the process in a view.
func place(v membership.View) *membership.SavedVote {
	return membership.NewSavedVote(*v.Members.At(0), v, membership.Decisions{})
}

// restartedDriver is that of a process that holds a place in view 7.
func restartedDriver(t *testing.T) *driver {
	d := drive(t, func(c *Config) { c.Place = place(three(7, 50)) })
	d.expect("a place on the disk", "lifecycle.Hold ")
	return d
}

// of is the introduction of a process.
func of(id string, role control.Role, v *membership.View, nonces ...uint64) control.Introduction {
	i := control.Introduction{Contact: control.Contact{ID: id, Address: id + ":1"}, Role: role, View: v}
	for _, n := range nonces {
		i.Marks = append(i.Marks, control.Mark(id, n))
	}
	return i
}
