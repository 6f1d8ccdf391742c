package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pleach-go/pleach"
)

// metrics are all metrics. The dashboard in deploy/grafana shows them.
var metrics = []metric{
	{
		name: "member_info", help: "Names this member.",
		kind: prometheus.GaugeValue, labels: []string{"rank", "id"}, values: info,
	},
	gauge("member", "1 while this process is a member of the group.",
		func(s *pleach.Status) float64 { return truth(s.Ended == "") }),

	// The group.
	gauge("members", "Members of the current view.",
		func(s *pleach.Status) float64 { return float64(s.Members) }),
	gauge("members_suspected", "Members of the current view that cannot be reached.",
		func(s *pleach.Status) float64 { return float64(len(s.Suspects)) }),
	gauge("quorum", "1 while enough members are reachable to decide the next view.",
		func(s *pleach.Status) float64 { return truth(s.Quorum.OK) }),
	gauge("quorum_reachable_members", "Voters that are reachable, this member included if it votes.",
		func(s *pleach.Status) float64 { return float64(s.Quorum.Reachable) }),
	gauge("quorum_needed_members", "Voters that have to be reachable.",
		func(s *pleach.Status) float64 { return float64(s.Quorum.Needed) }),
	gauge("view_number", "Number of the current view: the same at all members.",
		func(s *pleach.Status) float64 { return float64(s.View) }),
	gauge("view_installed_timestamp_seconds", "When this member installed the current view, in Unix time.", viewTime),
	counter("views_installed_total", "Views that this member has installed since it became one.",
		func(s *pleach.Status) uint64 { return s.Stats.Views }),

	gauge("certificate_expires_timestamp_seconds", "When this process's certificate expires, in Unix time. 0 without TLS.",
		func(s *pleach.Status) float64 { return float64(max(0, s.CertificateExpires.Unix())) }),

	// Messages.
	counter("messages_broadcast_total", "Messages that this member has broadcast.",
		func(s *pleach.Status) uint64 { return s.Stats.Broadcast }),
	counter("messages_broadcast_bytes_total", "Bytes of the messages that this member has broadcast.",
		func(s *pleach.Status) uint64 { return s.Stats.BroadcastBytes }),
	counter("messages_received_total", "Broadcasts of others that the program has received.",
		func(s *pleach.Status) uint64 { return s.Stats.Delivered }),
	counter("messages_received_bytes_total", "Bytes of the broadcasts that the program has received.",
		func(s *pleach.Status) uint64 { return s.Stats.DeliveredBytes }),
	{
		name: "propagation_seconds", help: "Time from a broadcast of this member until all others had acknowledged it: " +
			"of one broadcast at a time, and only if the program waits for receipts.",
		delays: func(s *pleach.Status) *pleach.Propagation { return &s.Stats.Propagation },
	},

	// Segments, of which a message has one or more.
	{
		name: "segments_sent_total", help: "Segments sent: along the tree, to members whose parent is down, and on request.",
		kind: prometheus.CounterValue, labels: []string{"path"}, values: segmentsSent,
	},
	counter("segments_duplicate_total", "Segments received twice.",
		func(s *pleach.Status) uint64 { return s.Stats.Duplicates }),
	counter("segments_early_total", "Segments received by correction before the tree brought them.",
		func(s *pleach.Status) uint64 { return s.Stats.Early }),
	counter("segments_lost_total", "Segments given up: this member was too slow or cut off.",
		func(s *pleach.Status) uint64 { return s.Stats.Lost }),
	counter("segments_refused_total", "Segments not taken because the inbox was full.",
		func(s *pleach.Status) uint64 { return s.Stats.Refused }),
	counter("correction_offers_total", "Correction messages sent.",
		func(s *pleach.Status) uint64 { return s.Stats.Offers }),
	counter("repair_requests_total", "Requests for repair sent.",
		func(s *pleach.Status) uint64 { return s.Stats.Requests }),
	gauge("correction_delay_seconds", "How long delayed correction waits at present.",
		func(s *pleach.Status) float64 { return s.Stats.CorrectionDelay.Seconds() }),

	// The network, all protocols together.
	counter("frames_sent_total", "Frames sent, heartbeats included.",
		func(s *pleach.Status) uint64 { return s.Stats.FramesSent }),
	counter("sent_bytes_total", "Bytes of the frames sent.",
		func(s *pleach.Status) uint64 { return s.Stats.BytesSent }),
	counter("frames_received_total", "Frames received, heartbeats included.",
		func(s *pleach.Status) uint64 { return s.Stats.FramesReceived }),
	counter("received_bytes_total", "Bytes of the frames received.",
		func(s *pleach.Status) uint64 { return s.Stats.BytesReceived }),
	gauge("peers_connected", "Members that this one is connected to.",
		ofPeers(func(sum float64, p *pleach.PeerStatus) float64 { return sum + truth(p.Connected) })),
	gauge("peers_stalled", "Members that do not answer the polls of flow control.",
		ofPeers(func(sum float64, p *pleach.PeerStatus) float64 { return sum + truth(p.Stalled) })),

	// What waits.
	gauge("inbox_messages", "Messages that wait for the program.",
		func(s *pleach.Status) float64 { return float64(s.Queues.InboxMessages) }),
	gauge("stuck_consumers",
		"Queues whose messages have waited for Limits.SlowTimeout while the program has processed none of them.",
		func(s *pleach.Status) float64 { return float64(len(s.Stuck)) }),
	gauge("inbox_bytes", "Bytes that wait for the program.",
		func(s *pleach.Status) float64 { return float64(s.Queues.InboxBytes) }),
	gauge("outbox_bytes", "Bytes that wait to be sent.",
		func(s *pleach.Status) float64 { return float64(s.Queues.OutboxBytes) }),
	gauge("in_flight_bytes", "Bytes that are sent, and that some member may not have yet.",
		func(s *pleach.Status) float64 { return float64(s.Queues.InFlightBytes) }),
	gauge("queued_bytes", "Bytes that wait because a connection does not take them, of all peers together.",
		ofPeers(func(sum float64, p *pleach.PeerStatus) float64 { return sum + float64(p.QueuedBytes) })),
	gauge("unread_bytes", "Bytes sent to single members that their programs have not received yet.",
		ofPeers(func(sum float64, p *pleach.PeerStatus) float64 { return sum + float64(p.UnreadBytes) })),
	gauge("lag_segments", "Segments of this member's broadcasts that the slowest of those it feeds may not have yet.",
		ofPeers(func(most float64, p *pleach.PeerStatus) float64 { return max(most, float64(p.Lag)) })),
	gauge("missing_segments", "Segments of others' broadcasts that this member lacks.",
		ofPeers(func(sum float64, p *pleach.PeerStatus) float64 { return sum + float64(p.Missing) })),
}

// viewTime returns when the current view was installed. After the end of a membership it is
// not known.
func viewTime(s *pleach.Status) float64 {
	if len(s.History) == 0 {
		return 0
	}
	return float64(s.History[len(s.History)-1].Time.UnixMilli()) / 1000
}

// ofPeers combines a value of all peers.
func ofPeers(add func(so float64, p *pleach.PeerStatus) float64) func(*pleach.Status) float64 {
	return func(s *pleach.Status) (value float64) {
		for i := range s.Peers {
			value = add(value, &s.Peers[i])
		}
		return value
	}
}
