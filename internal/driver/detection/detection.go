package detection

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/pleach-go/pleach/detect"
	"github.com/pleach-go/pleach/internal/machine/membership"
	"github.com/pleach-go/pleach/protocol"
)

// Config is what detectors need to know.
type Config struct {
	Self   membership.Member
	Group  string
	Secret []byte // the group's; nil: there is none
	// StartTimeout is how long the others may take to start. Listening says that all of them
	// have inherited their sockets.
	StartTimeout time.Duration
	Listening    bool
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
	Detectors    []detect.Detector // those of the program
}

// Detection finds dead members: by connections, by heartbeats, and by the detectors of the
// program. A nil Detection finds none.
type Detection struct {
	self        protocol.Rank
	group       string
	secrets     [][]byte // those that the detectors know
	detector    detect.Detector
	connections *detect.Connections
	silent      *detect.Tracker // the members that heartbeats find silent
}

// NewDetection returns detectors that watch no member yet.
func NewDetection(c *Config) *Detection {
	d := &Detection{
		self: c.Self.Rank, group: c.Group, secrets: [][]byte{c.Secret}, silent: detect.NewTracker(),
		connections: detect.NewConnections(detect.ConnectionsConfig{
			StartTimeout: c.StartTimeout, Listening: c.Listening,
			Dial: c.Dial,
		}),
	}
	d.detector = detect.All(append([]detect.Detector{d.connections, d.silent}, c.Detectors...)...)
	if a, ok := d.detector.(detect.MemberAware); ok {
		a.SetMember(detect.Member{
			Rank: c.Self.Rank, Incarnation: c.Self.Incarnation, Address: c.Self.Address, Group: c.Group,
			Key: keyOf(c.Group, c.Secret),
		})
	}
	return d
}

// keyOf returns the key of detectors: a process that learns it has not learned the secret.
func keyOf(group string, secret []byte) []byte {
	if len(secret) == 0 {
		return nil
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "pleach detectors of "+group, sha256.Size)
	if err != nil { // of a length that there is not
		panic(err)
	}
	return key
}

// SetSecrets has the detectors use the group's secrets, the first to protect what they say. Calls
// must not be concurrent.
func (d *Detection) SetSecrets(secrets [][]byte) {
	if slices.EqualFunc(d.secrets, secrets, bytes.Equal) {
		return
	}
	d.secrets = secrets
	var keys [][]byte
	for _, secret := range secrets {
		keys = append(keys, keyOf(d.group, secret))
	}
	if r, ok := d.detector.(detect.KeyRotator); ok {
		r.SetKeys(keys)
	}
}

// Start begins to report, and to watch the members of a view at their addresses.
func (d *Detection) Start(v *membership.View, address func(*membership.Member) string,
	report func(detect.Report),
) error {
	if err := d.detector.Start(report); err != nil {
		return fmt.Errorf("detector: %w", err)
	}
	d.Watch(v, address)
	return nil
}

// Watch watches the members of a view at their addresses.
func (d *Detection) Watch(v *membership.View, address func(*membership.Member) string) {
	d.detector.Watch(Peers(v, d.self, address))
}

// Rest watches no member any more.
func (d *Detection) Rest() { d.detector.Watch(detect.PeerList(nil)) }

// Watcher returns what passes on the findings of the transport.
func (d *Detection) Watcher(removed func(view uint64, holder *membership.Member),
	early func(peer protocol.Rank),
) *Watcher {
	return &Watcher{d.connections, removed, early}
}

// Silence takes a report of the heartbeats.
func (d *Detection) Silence(r protocol.Rank, silent bool) {
	switch peer, ok := d.silent.Watched(r); {
	case ok && silent:
		d.silent.Suspect(peer, detect.ErrSilent, nil)
	case ok:
		d.silent.Trust(peer)
	}
}

// Close stops all detectors.
func (d *Detection) Close() error {
	if d == nil {
		return nil
	}
	return d.detector.Close()
}
