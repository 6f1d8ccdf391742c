package main

import (
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pleach-go/pleach/agent"
	"github.com/pleach-go/pleach/agent/cli"
	"github.com/pleach-go/pleach/agent/config"
)

// agentSettings are the flags of pleach agent, in the order of the help. Each of them is also
// a key of the file and a variable.
var agentSettings = []struct{ name, help string }{
	{"group", "`name` of the group, if it has one"},
	{"listen", "`host:port` that this member listens on (default a free port)"},
	{"advertise", "`host:port` that other members dial (default that of --listen)"},
	{"id", "`name` of this member across restarts (default one that --data-dir keeps, or its address)"},
	{"failure-domain", "failure `domain` of this member, such as its rack or zone"},
	{"zone", "`name` of this agent's zone, for a fleet of several sites"},
	{"zones", "seeds of the zones of the fleet: `zone=seed`,… (in the file, a list for each zone)"},
	{"backbone-listen", "`host:port` for the gateways of other zones, or :port on the host that this agent advertises (default a free port)"},
	{"backbone-advertise", "`host:port` that they dial (default that of --backbone-listen)"},
	{"delegates", "`number` of members of a zone that are gateways to other zones (default 3)"},
	{"keep-bytes", "`bytes` of messages that are kept for zones that were cut off (default 16777216)"},
	{"patience", "`time` for which a zone that is cut off is waited for when that is full (default 30s)"},
	{"tags", "`key=value`,… that describe this member to the others"},
	{"expect", "begin a group with this `number` of agents, started alike, if there is none yet; observers do not count"},
	{"observer", "`true` to be a member that does not count for the quorum, so that any number of them may fail at once"},
	{"arbiter", "`place` of the record that decides which half of the members continues: file:DIRECTORY, etcd:URL,… or kubernetes:[NAMESPACE/]LEASE, the same for all"},
	{"heartbeat-interval", "`time` between two heartbeats, the same for all (default 300ms)"},
	{"suspicion-timeout", "`time` without an answer after which a member is suspected, the same for all (default 1.5s)"},
	{"data-dir", "`directory` in which this member keeps its ID, its vote and its messages, so that it counts again and misses nothing after a restart"},
	{"tls-ca", "`file` with the certificate of the group's authority (PEM)"},
	{"tls-cert", "`file` with this process's certificate (PEM)"},
	{"tls-key", "`file` with the key of that certificate (PEM)"},
	{"deny-file", "`file` with certificates and members that are denied, one in each line: serial HEX, id ID or uri URI; followed like certificates"},
	{
		"tls-host-certificates",
		"`true` to accept certificates without a Pleach URI while a group changes to certificates with URIs, even if this process's own has one",
	},
	{"secret-file", "`file` with the group's secret, if it has one (at least 16 bytes)"},
	{"socket", "`path` of the Unix socket of the local API (default " + config.DefaultSocket() + ")"},
	{"api", "loopback `host:port` for the local API besides, with a token"},
	{"token-file", "`file` with that token; it is made if it is not there"},
	{"rights-file", "`file` that says what further tokens, and users and groups of this host, may do (default the socket's users may do all)"},
	{"metrics-listen", "`host:port` for Prometheus: metrics and probes alone, without a token"},
	{"metrics-tls-cert", "`file` with the certificate for it (PEM); without one, it is not encrypted"},
	{"metrics-tls-key", "`file` with the key of that certificate (PEM)"},
	{"metrics-hosts", "`names` by which clients reach it, with commas between, besides IP addresses and this host's name"},
	{"file-dirs", "`directories` in which this member takes the files of others (pleach cp), as absolute paths with commas between (default none)"},
	{"retain-messages", "`number` of messages that are retained for subscribers (default 10000)"},
	{"retain-bytes", "`bytes` of messages that are retained for subscribers (default 16777216)"},
}

func newAgent() *cobra.Command {
	var file string
	var logJSON bool
	cmd := &cobra.Command{
		Use:   "agent [SEED...]",
		Short: "Run a member of a group for the programs of this host, in any language",
		Long: `Join a group, stay its member, and serve a local HTTP API on a Unix socket. Programs
in any language use it through curl or an HTTP library, and shells through pleach send,
listen, query and status. GET /v1/openapi.yaml describes it.

A seed is host:port, dns:NAME:PORT for all addresses of a name, dns:NAME for SRV records,
kubernetes:[NAMESPACE/]SERVICE:PORT for the EndpointSlices of a service, which the agent reads
with the service account of its pod, or exec:COMMAND for the lines that a command prints. All
but addresses are resolved again until the agent is a member, and while it has no quorum. With
--expect N, all agents are started alike, and N of them begin a group if there is none yet.

Every setting is a flag, a variable (PLEACH_DATA_DIR for --data-dir, PLEACH_SEEDS for the
seeds) or a key of the file (data-dir), in this order. Handlers are in the file only:

  handlers:
    - {on: deploy, run: /usr/local/bin/deploy}   # the message is its input
    - {query: load, run: cat /proc/loadavg}      # its output is the answer

With --zone and the seeds of other zones, groups at several sites are one fleet: pleach
send, listen, query and status have --fleet.

SIGTERM and Ctrl-C leave the group. SIGHUP reads handlers, tags, the token and rights again;
certificates are followed in any case. An agent runs no command that comes over the
network: only those of its own file.`,
		Example: `  pleach agent --expect 1 --listen 127.0.0.1:7000
  pleach agent --expect 3 --listen db1:7000 --data-dir /var/lib/pleach db1:7000 db2:7000 db3:7000
  pleach agent --config /etc/pleach/agent.yaml
  pleach agent dns:pleach.default.svc:7000 --listen 0.0.0.0:7000 --advertise $POD_IP:7000`,
		RunE: func(cmd *cobra.Command, seeds []string) error {
			load := loader(cmd, file, seeds)
			if _, err := load(); err != nil {
				return err // the caller's
			}
			return runAgent(cmd, load, logJSON)
		},
	}
	settingFlags(cmd, &file, &logJSON)
	return cmd
}

// settingFlags adds the flags of an agent that runs.
func settingFlags(cmd *cobra.Command, file *string, logJSON *bool) {
	f := cmd.Flags()
	f.StringVar(file, "config", os.Getenv("PLEACH_CONFIG"), "`file` with settings and handlers (YAML)")
	for _, s := range agentSettings {
		f.String(s.name, "", s.help)
	}
	f.BoolVar(logJSON, "json", false, "log JSON, an object on each line")
	f.SortFlags = false
}

// loader returns a function that puts the settings of a command together.
func loader(cmd *cobra.Command, file string, seeds []string) func() (*config.Config, error) {
	overrides := make(map[string]string)
	cmd.Flags().Visit(func(f *pflag.Flag) { overrides[f.Name] = f.Value.String() })
	if len(seeds) > 0 {
		overrides["seeds"] = strings.Join(seeds, "\n") + "\n"
	}
	return func() (*config.Config, error) { return config.Load(file, os.Environ(), overrides) }
}

func runAgent(cmd *cobra.Command, load func() (*config.Config, error), logJSON bool) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
	defer stop()
	log := newAgentLogger(cmd.ErrOrStderr(), logJSON)
	hangUps, reload := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangUps, syscall.SIGHUP)
	defer signal.Stop(hangUps)
	go func() {
		for {
			select {
			case <-hangUps:
				select {
				case reload <- struct{}{}:
				case <-ctx.Done():
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	saveMemory()
	err := agent.Run(ctx, agent.Options{
		Load: load, Reload: reload, Version: cli.VersionNumber(), Logger: log,
		Started: func(c *config.Config) { log.Info("serving", "socket", c.Socket, "api", c.API) },
		Joined:  giveMemoryBack,
	})
	if err != nil {
		return refused(err)
	}
	return nil
}

// newAgentLogger writes a line for each event, as JSON if that is asked for.
func newAgentLogger(w io.Writer, json bool) *slog.Logger {
	if json {
		return slog.New(slog.NewJSONHandler(w, nil))
	}
	return newLogger(w)
}
