package tcp

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pleach-go/pleach/internal/test/testutil"
	"github.com/pleach-go/pleach/protocol"
)

// Each side proves its first secret, and accepts all that it has: so two members in neighboring
// steps of a rotation connect, in both directions, and others do not.
func TestSecretsAreReplacedInSteps(t *testing.T) {
	const older, newer = "the secret of last year", "the secret of this year"
	steps := [][]string{{older}, {older, newer}, {newer, older}, {newer}}
	ca := testutil.NewCA(t)
	for _, tls := range []bool{false, true} {
		for dialing, ours := range steps {
			for accepting, theirs := range steps {
				want := ours[0] == theirs[0] || len(theirs) == 2
				t.Run(fmt.Sprintf("TLS %v, from step %d to step %d", tls, dialing, accepting), func(t *testing.T) {
					listeners, addresses := listen(t, 2)
					with := func(rank int, secrets []string) *member {
						c := Config{Addresses: addresses, Rank: protocol.Rank(rank), Listener: listeners[rank]}
						c.Secrets = func() (all [][]byte) {
							for _, s := range secrets {
								all = append(all, []byte(s))
							}
							return all
						}
						if tls {
							c.TLS = ca.Config(t, ca)
						}
						return start(t, c)
					}
					m := []*member{with(0, ours), with(1, theirs)}
					mustSend(t, m[0], 1, []byte("a"))
					eventually(t, "an answer", func() bool {
						if want {
							return len(m[1].received(0)) == 1
						}
						return errors.Is(m[0].lastCause(1), ErrSecret)
					})
				})
			}
		}
	}
}
