package swim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/memberlist"

	"github.com/pleach-go/pleach/protocol"
)

// nodeName is the name of a process in memberlist. It contains the incarnation, so
// a process that takes over the rank of a dead one is a new node: it does not
// conflict with the old node's address, and does not inherit its suspicion.
func nodeName(rank protocol.Rank, incarnation uint64) string {
	return strconv.FormatInt(int64(rank), 10) + "@" + strconv.FormatUint(incarnation, 10)
}

// parseName is the inverse of nodeName. It accepts only what nodeName returns,
// because names come from the network.
func parseName(name string) (protocol.Rank, uint64, error) {
	before, after, _ := strings.Cut(name, "@")
	rank, err1 := strconv.ParseInt(before, 10, 64)
	incarnation, err2 := strconv.ParseUint(after, 10, 64)
	if err1 != nil || err2 != nil || rank < 0 || incarnation == 0 || nodeName(protocol.Rank(rank), incarnation) != name {
		return protocol.NoRank, 0, fmt.Errorf("node %.64q is not a member: want rank@incarnation", name)
	}
	return protocol.Rank(rank), incarnation, nil
}

// membersOnly rejects nodes that are not members.
type membersOnly struct{}

// NotifyAlive implements memberlist.AliveDelegate.
func (membersOnly) NotifyAlive(n *memberlist.Node) error {
	_, _, err := parseName(n.Name)
	return err
}
