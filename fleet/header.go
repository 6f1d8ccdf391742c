package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/header"
)

// headerOf returns the header that ctx has, or why it cannot be sent: a zone of an older protocol
// version would refuse the message.
func (f *Fleet) headerOf(ctx context.Context) (header.Encoded, error) {
	h, err := header.Of(ctx)
	if flaw := new(header.Error); errors.As(err, &flaw) {
		return "", &pleach.HeaderError{Key: flaw.Key, Reason: flaw.Reason}
	}
	if h == "" {
		return "", nil
	}
	if v := f.zone.View().Version; v < pleach.HeaderVersion {
		return "", f.tooOld(f.config.Zone, v)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.machine.Summaries() {
		if s.Zone != f.config.Zone && s.Version < pleach.HeaderVersion {
			return "", f.tooOld(s.Zone, max(int(s.Version), pleach.HeaderVersion-1))
		}
	}
	return h, nil
}

func (f *Fleet) tooOld(zone string, version int) error {
	return fmt.Errorf("fleet: zone %q: %w", zone, &pleach.VersionError{
		What: "a message with a header", Group: version, Min: pleach.HeaderVersion, Max: f.zone.Self().Version,
	})
}
