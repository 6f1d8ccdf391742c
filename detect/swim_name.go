package detect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/protocol"
)

// nodeName is what a process is called among memberlist's nodes. As it contains
// the incarnation, a process that takes a dead one's place is a new node: it has
// no quarrel over the old one's address, and inherits no suspicion.
func nodeName(rank protocol.Rank, incarnation uint64) string {
	return strconv.FormatInt(int64(rank), 10) + "@" + strconv.FormatUint(incarnation, 10)
}

// parseName is the reverse. It takes only what nodeName makes, because names
// come from outside.
func parseName(name string) (protocol.Rank, uint64, error) {
	before, after, _ := strings.Cut(name, "@")
	rank, err1 := strconv.ParseInt(before, 10, 64)
	incarnation, err2 := strconv.ParseUint(after, 10, 64)
	if err1 != nil || err2 != nil || rank < 0 || incarnation == 0 || nodeName(protocol.Rank(rank), incarnation) != name {
		return protocol.NoRank, 0, fmt.Errorf("node %.64q is no member: want rank@incarnation", name)
	}
	return protocol.Rank(rank), incarnation, nil
}

// membersOnly keeps out of the list what is no member.
type membersOnly struct{}

// NotifyAlive refuses nodes with other names.
func (membersOnly) NotifyAlive(n *memberlist.Node) error {
	_, _, err := parseName(n.Name)
	return err
}
