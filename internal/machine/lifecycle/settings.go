package lifecycle

// A process compares its settings with those of a member before it asks that member to let it
// join, and with those of each candidate before it asks to begin a group together. Both sides
// compare, so a group begins only with candidates that agree. A process of a build that does
// not know the request refuses it; then the settings are not compared.

import (
	"github.com/pleach-go/pleach/internal/machine/control"
	"github.com/pleach-go/pleach/internal/machine/founding"
)

// settings is the outcome of comparing settings.
type settings struct {
	agreed map[string]bool             // candidates, by address, whose settings were compared
	held   map[string]founding.Request // requests that wait for the settings of an address
	differ *control.Difference         // from those of another candidate; nil: none is known

	sends    int    // the longest message that the group sends; 0: unknown
	sendsFor string // the ID of a member that can receive no longer one
}

// askSettings asks a process for its settings.
func (m *Machine) askSettings(address string) {
	from := control.Contact{ID: m.self.Identity, Address: m.self.Address}
	m.ask(address, control.Compare{From: from, Settings: m.config.Settings}, askTimeout)
}

// askFounding sends a request to another candidate, once their settings were compared.
func (m *Machine) askFounding(address string, r *founding.Request) {
	s := &m.settings
	if len(m.config.Settings) == 0 || s.agreed[address] {
		m.ask(address, control.Founding{Request: *r}, askTimeout)
		return
	}
	if s.held == nil {
		s.held, s.agreed = make(map[string]founding.Request), make(map[string]bool)
	}
	s.held[address] = *r
	m.askSettings(address)
}

// compared takes the settings of another process, and sends the request that waits for them.
func (m *Machine) compared(address string, r Reply) {
	var differ *control.Difference
	if r.Err == nil {
		differ = m.compare(address, r.Body)
	}
	if request, ok := m.settings.held[address]; ok {
		delete(m.settings.held, address)
		m.comparedCandidate(address, &request, r, differ)
		return
	}
	j := &m.joiner
	if !j.active || j.targets[j.next] != address {
		return
	}
	if differ != nil {
		m.joinReplied(address, Reply{Err: differ, Permanent: true, Final: true})
		return
	}
	j.compared, j.due = address, m.now // without settings, the member refuses on its own, or is of an older build
}

// compare compares the settings that a process has replied. What cannot be read is unknown.
func (m *Machine) compare(address string, body []byte) *control.Difference {
	theirs, err := control.DecodeSettings(body)
	if err != nil {
		return nil
	}
	if sends, id, ok := theirs.Sends(); ok {
		m.settings.sends, m.settings.sendsFor = sends, id
	}
	return m.config.Settings.Compare(theirs, address)
}

// comparedCandidate continues with a candidate whose settings are alike, or unknown.
func (m *Machine) comparedCandidate(address string, request *founding.Request, r Reply, differ *control.Difference) {
	switch {
	case m.founder == nil:
	case differ != nil:
		m.settings.differ = differ
		m.founder.HandleFailure(m.now, address, false)
	case r.Err != nil && !r.Final:
		m.foundingReplied(address, r)
	default:
		m.settings.agreed[address] = true
		if d := m.settings.differ; d != nil && d.ID == address {
			m.settings.differ = nil
		}
		m.ask(address, control.Founding{Request: *request}, askTimeout)
	}
}
