package node

import "github.com/pleach-go/pleach/protocol"

// What a node has exchanged with its peers, for people that look after a group. It is
// counted here because all frames of all protocols pass here, and because a protocol need
// not know it.

// Traffic counts frames and their bytes.
type Traffic struct {
	FramesSent, BytesSent         uint64
	FramesReceived, BytesReceived uint64
}

// Peer is what a node knows of a peer.
type Peer struct {
	Traffic
	Connected bool
	// Heard is when the last frame or connection from the peer arrived. If zero, none
	// ever did.
	Heard protocol.Time
}

// traffic is the state of all peers, under the node's lock.
type traffic struct {
	total Traffic
	peers map[protocol.Rank]*Peer

	// The peers of the last frames: in a burst, they are those of the next ones.
	from, to         *Peer
	fromRank, toRank protocol.Rank
}

// peer returns the state of a peer.
func (t *traffic) peer(r protocol.Rank) *Peer {
	p := t.peers[r]
	if p == nil {
		p = &Peer{}
		t.peers[r] = p
	}
	return p
}

// received counts a frame of a peer.
func (t *traffic) received(now protocol.Time, from protocol.Rank, bytes int) {
	if t.from == nil || t.fromRank != from {
		t.from, t.fromRank = t.peer(from), from
	}
	t.from.Heard = now
	t.from.FramesReceived++
	t.from.BytesReceived += uint64(bytes)
	t.total.FramesReceived++
	t.total.BytesReceived += uint64(bytes)
}

// sent counts a frame to a peer.
func (t *traffic) sent(to protocol.Rank, bytes int) {
	if t.to == nil || t.toRank != to {
		t.to, t.toRank = t.peer(to), to
	}
	t.to.FramesSent++
	t.to.BytesSent += uint64(bytes)
	t.total.FramesSent++
	t.total.BytesSent += uint64(bytes)
}

// connected notes that a peer is connected, or is not any more.
func (t *traffic) connected(now protocol.Time, peer protocol.Rank, up bool) {
	p := t.peer(peer)
	p.Connected = up
	if up {
		p.Heard = now
	}
}

// Traffic returns what was exchanged with all peers. It is called within Do.
func (n *Node) Traffic() Traffic { return n.traffic.total }

// Peer returns what is known of a peer. It is called within Do.
func (n *Node) Peer(r protocol.Rank) Peer {
	if p := n.traffic.peers[r]; p != nil {
		return *p
	}
	return Peer{}
}

// Forget forgets a peer: another process may get its rank. It is called within Do.
func (n *Node) Forget(r protocol.Rank) {
	delete(n.traffic.peers, r)
	n.traffic.from, n.traffic.to = nil, nil
}
