package group_test

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// textState is a state of one text, which may have a version.
type textState struct {
	mu   sync.Mutex
	text string
}

func (s *textState) Snapshot(w io.Writer) error {
	_, err := io.WriteString(w, s.get())
	return err
}

func (s *textState) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = string(b)
	return err
}

func (s *textState) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

type versionedState struct {
	*textState
	version uint64
}

func (s versionedState) OfferState() uint64 { return s.version }

// Case 65: members that begin a group together with different states all begin with one of them:
// the one with the highest version, or that of the lowest rank.
func TestFoundersBeginWithOneState(t *testing.T) {
	for name, c := range map[string]struct {
		versions []uint64 // nil: the states have none
		data     bool
		want     string
	}{
		"without versions":           {nil, false, "a"},
		"without versions, DataDir":  {nil, true, "a"},
		"the highest version wins":   {[]uint64{1, 5, 0}, false, "b"},
		"of equal ones, the lowest":  {[]uint64{1, 4, 4}, false, "b"},
		"the highest, with DataDir":  {[]uint64{0, 1, 7}, true, "c"},
		"all with the same version":  {[]uint64{3, 3, 3}, false, "a"},
		"the highest is the largest": {[]uint64{^uint64(0), 1, 2}, false, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := within(t, 30*time.Second)
			addresses := testutil.FreeAddresses(t, 3)
			states := make([]*textState, 3)
			groups := make([]*pleach.Group, 3)
			var joining sync.WaitGroup
			for i, id := range []string{"a", "b", "c"} {
				states[i] = &textState{text: id}
				config := pleach.Config{ID: id, Expect: 3, Listen: addresses[i], State: states[i]}
				if c.versions != nil {
					config.State = versionedState{states[i], c.versions[i]}
				}
				if c.data {
					config.Recovery.DataDir = t.TempDir()
				}
				joining.Go(func() {
					var err error
					groups[i], err = pleach.Join(ctx, config, addresses...)
					if err != nil {
						t.Error(err)
					}
				})
			}
			joining.Wait()
			if t.Failed() {
				return
			}
			for _, g := range groups {
				defer g.Abort()
				go func() {
					for range g.Messages(ctx) {
					}
				}()
			}
			for i, state := range states {
				testutil.Eventually(t, fmt.Sprintf("member %d has state %q", i, c.want),
					func() bool { return state.get() == c.want },
					func() any { return state.get() })
			}
		})
	}
}
