// Package config has the settings of an agent. Every setting has one name in three places:
// the flag --data-dir, the variable PLEACH_DATA_DIR, and the key data-dir of the file. A
// flag counts before the variable, and the variable before the file.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pleach-go/pleach/agent/command"
	"github.com/pleach-go/pleach/agent/discover"
	"github.com/pleach-go/pleach/internal/driver/admission"
)

// Config has the settings of an agent.
type Config struct {
	// The group, and this member of it, as in [pleach.Config].
	Group         string   `yaml:"group"`
	Listen        string   `yaml:"listen"`
	Advertise     string   `yaml:"advertise"`
	ID            string   `yaml:"id"`
	FailureDomain string   `yaml:"failure-domain"`
	Seeds         []string `yaml:"seeds"`
	Expect        int      `yaml:"expect"`
	Observer      bool     `yaml:"observer"`
	Arbiter       string   `yaml:"arbiter"`
	DataDir       string   `yaml:"data-dir"`
	// Tags are what the agent tells the others about itself.
	Tags map[string]string `yaml:"tags"`

	Detection `yaml:",inline"`
	Fleet     `yaml:",inline"`
	Metrics   `yaml:",inline"`

	TLSCA   string `yaml:"tls-ca"`
	TLSCert string `yaml:"tls-cert"`
	TLSKey  string `yaml:"tls-key"`
	// TLSHostCertificates is [pleach.Security.HostCertificates].
	TLSHostCertificates bool `yaml:"tls-host-certificates"`
	// DenyFile is [pleach.Security.DenyFile].
	DenyFile   string `yaml:"deny-file"`
	SecretFile string `yaml:"secret-file"`

	// Socket is the path of the local API. API is a loopback address for it besides, and
	// TokenFile has the token that a client needs there. RightsFile has further tokens, and says what
	// they, and users and groups of this host, may do.
	Socket     string `yaml:"socket"`
	API        string `yaml:"api"`
	TokenFile  string `yaml:"token-file"`
	RightsFile string `yaml:"rights-file"`

	// FileDirs are the directories in which this agent takes the files of other members, as
	// absolute paths. If empty, it takes none.
	FileDirs []string `yaml:"file-dirs"`

	// The agent retains so many messages for subscribers, and so many bytes of them.
	RetainMessages int `yaml:"retain-messages"`
	RetainBytes    int `yaml:"retain-bytes"`

	Handlers []Handler `yaml:"handlers"`
}

// Detection is how members find out that another one hangs, as in [pleach.Config]. All agents of a
// group use the same.
type Detection struct {
	HeartbeatInterval time.Duration `yaml:"heartbeat-interval"`
	SuspicionTimeout  time.Duration `yaml:"suspicion-timeout"`
}

// Handler is a command that this agent runs: for each message of a topic, for each event of
// the group, or to answer a query.
type Handler struct {
	// On is the topic, and Event one of Events, or * for all. Query is the name of the query.
	// A handler has one of them.
	On    string       `yaml:"on"`
	Event string       `yaml:"event"`
	Query string       `yaml:"query"`
	Run   command.Line `yaml:"run"`
	// Timeout is how long the command may take. If zero, 30 s.
	Timeout time.Duration `yaml:"timeout"`
	// Concurrency is how many of it may run at a time. If zero, 1: the messages of a topic
	// are handled in order.
	Concurrency int `yaml:"concurrency"`
}

// AllTopics is the topic of a handler for every message, and the event of one for every event.
const AllTopics = "*"

// ReservedTopics begins the topics that agents use themselves.
const ReservedTopics = "pleach/"

// Events are the events of a group that handlers are run for.
var Events = []string{
	"member-join", "member-leave", "member-failed", "member-update", "quorum-lost", "quorum-regained",
	"keys-empty",
}

// Defaults of settings that are zero.
const (
	defaultRetainMessages = 10_000
	defaultRetainBytes    = 16 << 20
	defaultTimeout        = 30 * time.Second
	maxConcurrency        = 64
)

// Load puts the settings together. The file may be empty, for none. Overrides are the flags
// that are set, by name. An error names the setting and where it comes from.
func Load(file string, environ []string, overrides map[string]string) (*Config, error) {
	c := &Config{}
	if file != "" {
		if err := c.readFile(file); err != nil {
			return nil, err
		}
	}
	for _, s := range c.settings() {
		variable := Variable(s.name)
		if value, ok := lookup(environ, variable); ok {
			if err := s.set(value); err != nil {
				return nil, fmt.Errorf("%s: %w", variable, err)
			}
		}
		if value, ok := overrides[s.name]; ok {
			if err := s.set(value); err != nil {
				return nil, fmt.Errorf("--%s: %w", s.name, err)
			}
		}
	}
	c.setDefaults()
	return c, c.check()
}

// Variable is the name of a setting in the environment.
func Variable(name string) string {
	return "PLEACH_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

func lookup(environ []string, variable string) (string, bool) {
	for _, e := range slices.Backward(environ) {
		if name, value, _ := strings.Cut(e, "="); name == variable {
			return value, true
		}
	}
	return "", false
}

// readFile reads the file. A key that is not known is an error: it would have no effect.
func (c *Config) readFile(file string) error {
	if err := admission.CheckWriters(file); err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Socket == "" {
		c.Socket = DefaultSocket()
	}
	if c.RetainMessages == 0 {
		c.RetainMessages = defaultRetainMessages
	}
	if c.RetainBytes == 0 {
		c.RetainBytes = defaultRetainBytes
	}
	if len(c.Seeds) == 0 {
		c.Seeds = c.Zones[c.Zone]
	}
	for i := range c.Handlers {
		h := &c.Handlers[i]
		if h.Timeout == 0 {
			h.Timeout = defaultTimeout
		}
		if h.Concurrency == 0 {
			h.Concurrency = 1
		}
	}
}

// check refuses settings that contradict each other. Those of the group are checked when
// the agent joins it.
func (c *Config) check() error {
	for _, seed := range c.Seeds {
		if err := discover.Check(seed); err != nil {
			return fmt.Errorf("seeds: %w", err)
		}
	}
	for _, dir := range c.FileDirs {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir {
			return fmt.Errorf("file-dirs has %q: write absolute paths", dir)
		}
	}
	files := []string{c.TLSCA, c.TLSCert, c.TLSKey}
	switch set := len(files) - len(slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f != "" })); {
	case set != 0 && set != len(files):
		return errors.New("tls-ca, tls-cert and tls-key belong together: set all of them or none")
	case c.DenyFile != "" && c.TLSCA == "":
		return errors.New("deny-file needs tls-ca, tls-cert and tls-key")
	case c.TLSHostCertificates && c.TLSCA == "":
		return errors.New("tls-host-certificates needs tls-ca, tls-cert and tls-key")
	case c.Expect < 0:
		return fmt.Errorf("expect is %d: write how many agents begin the group", c.Expect)
	case c.RetainMessages < 0 || c.RetainBytes < 0:
		return errors.New("retain-messages and retain-bytes must not be negative")
	case c.API != "" && c.TokenFile == "":
		return errors.New("api needs a token-file: every process of this host can dial it")
	case c.TokenFile != "" && c.API == "":
		return errors.New("token-file has no effect without api: the socket is protected by its file mode")
	}
	if err := errors.Join(c.checkAPI(), c.Fleet.check(), c.Metrics.check()); err != nil {
		return err
	}
	if _, err := c.Meta(""); err != nil {
		return err
	}
	for i := range c.Handlers {
		if err := c.Handlers[i].check(); err != nil {
			return fmt.Errorf("handlers: number %d: %w", i+1, err)
		}
	}
	return nil
}

// checkAPI allows loopback addresses only: the API is not encrypted.
func (c *Config) checkAPI() error {
	if c.API == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.API)
	if err != nil {
		return fmt.Errorf("api is %q: write host:port, as in 127.0.0.1:7070", c.API)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("api is %q: it is not encrypted, so only a loopback address is allowed, as 127.0.0.1:7070", c.API)
	}
	return nil
}

func (h *Handler) check() error {
	kinds := slices.DeleteFunc([]string{h.On, h.Event, h.Query}, func(name string) bool { return name == "" })
	switch {
	case len(kinds) != 1:
		return errors.New("write on: TOPIC (* for all topics), event: EVENT (* for all events) or query: NAME")
	case h.Event != "" && h.Event != AllTopics && !slices.Contains(Events, h.Event):
		return fmt.Errorf("event is %q: write one of %s, or * for all", h.Event, strings.Join(Events, ", "))
	case strings.HasPrefix(h.On, ReservedTopics):
		return fmt.Errorf("on is %q: topics that begin with %s are those of the agents", h.On, ReservedTopics)
	case h.Run.Empty():
		return errors.New("write run: COMMAND")
	case h.Timeout < 0:
		return fmt.Errorf("timeout is %v", h.Timeout)
	case h.Concurrency < 0 || h.Concurrency > maxConcurrency:
		return fmt.Errorf("concurrency is %d: write 1 to %d", h.Concurrency, maxConcurrency)
	}
	return nil
}
