package arbiter_test

import (
	"errors"
	"testing"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/contrib/arbiter"
	"github.com/pleach-go/pleach/contrib/arbiter/etcd"
	"github.com/pleach-go/pleach/contrib/arbiter/file"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// Of two members, whichever is left continues: with a store that answers, that is.
func TestEitherOfTwoContinues(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (*arbiter.Arbiter, error){
		"file": func(t *testing.T) (*arbiter.Arbiter, error) { return file.New(t.TempDir()) },
		"etcd": func(t *testing.T) (*arbiter.Arbiter, error) {
			return etcd.New(etcd.Config{Endpoints: []string{startEtcd(t)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			for dead := range 2 {
				pair := newPair(t, name+string(rune('0'+dead)), a)
				if err := pair[dead].Abort(); err != nil {
					t.Fatal(err)
				}
				testutil.Eventually(t, "the other one continues alone", func() bool {
					v := pair[1-dead].View()
					return v.Size() == 1 && v.Err == nil
				}, func() any { return pair[1-dead].Status() })
			}
		})
	}
}

// If the next view is granted to the other side, this one does not continue, and says why.
func TestRefusedSideStops(t *testing.T) {
	a, err := file.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair := newPair(t, "refused", a)
	v := pair[0].View()
	granted, err := a.Grant(t.Context(), pleach.ArbiterClaim{Group: "refused", View: v.Number + 1, Side: v.Members()[1:]})
	if !granted || err != nil {
		t.Fatalf("%v, %v", granted, err)
	}
	if err := pair[1].Abort(); err != nil {
		t.Fatal(err)
	}
	testutil.Eventually(t, "a refusal", func() bool {
		return errors.Is(pair[0].View().Err, pleach.ErrArbiterRefused)
	}, func() any { return pair[0].View().Err })
	if size := pair[0].View().Size(); size != 2 {
		t.Errorf("the refused side has a view of %d", size)
	}
}

// newPair returns two members, by rank.
func newPair(t *testing.T, name string, a pleach.Arbiter) (pair [2]*pleach.Group) {
	t.Helper()
	config := pleach.Config{Group: name, Listen: "127.0.0.1:0", Arbiter: a}
	var err error
	pair[0], err = pleach.Create(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pair[0].Abort() })
	pair[1], err = pleach.Join(t.Context(), config, pair[0].Self().Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pair[1].Abort() })
	testutil.Eventually(t, "two members", func() bool { return pair[0].Size() == 2 })
	return pair
}
