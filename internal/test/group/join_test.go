package group_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/base/wire"
	"github.com/pleach-go/pleach/internal/driver/tcp"
	"github.com/pleach-go/pleach/internal/test/testutil"
)

// founder is a group of one, and its address.
func founder(t *testing.T, c pleach.Config) string {
	t.Helper()
	return member(t)(pleach.Create(t.Context(), c)).View().Leader().Address
}

// soon is a time in which a call that does not wait returns, also on a busy machine.
const soon = 4 * time.Second

// All processes may be given the same seeds: each skips its own address, whose socket
// accepts connections and answers none before it is a member.
func TestOwnAddressAmongTheSeedsIsSkipped(t *testing.T) {
	other := founder(t, pleach.Config{})
	for _, test := range []struct{ listen, seed string }{
		{"127.0.0.1", "127.0.0.1"},
		{"127.0.0.1", "localhost"},
		{"0.0.0.0", "127.0.0.1"},
		{"0.0.0.0", "localhost"},
	} {
		_, port, _ := net.SplitHostPort(testutil.FreeAddresses(t, 1)[0])
		c := pleach.Config{Listen: net.JoinHostPort(test.listen, port), Advertise: net.JoinHostPort("127.0.0.1", port)}
		began := time.Now()
		g := member(t)(pleach.Join(t.Context(), c, net.JoinHostPort(test.seed, port), other))
		if took := time.Since(began); took > soon {
			t.Errorf("%+v: %v", test, took)
		}
		_ = g.Close()
	}
	own := testutil.FreeAddresses(t, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := pleach.Join(ctx, pleach.Config{Listen: own}, own); !errors.As(err, new(*pleach.JoinError)) ||
		ctx.Err() != nil {
		t.Errorf("only its own address: %v", err)
	}
}

// A member refuses a candidate that no member could dial, with a reason.
func TestCandidateThatCannotBeDialedIsRefused(t *testing.T) {
	address := founder(t, pleach.Config{Group: "web"})
	for _, advertised := range []string{"0.0.0.0:7000", ":7000", "[::]:7000", "10.0.0.1:0", "10.0.0.1", ""} {
		request := []byte{2} // to join: ID, address, failure domain, meta, nonce, version, whether it replaces
		for _, text := range []string{"me", advertised, "", ""} {
			request = wire.AppendBytes(request, []byte(text))
		}
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		reply, err := tcp.Request(ctx, tcp.Config{Group: "web"}, address,
			wire.AppendUint8(wire.AppendUint16(wire.AppendUint64(request, 1), wire.Newest()), 0))
		cancel()
		if err != nil || len(reply) == 0 || reply[0] != 0 || !strings.Contains(string(reply), "cannot dial") {
			t.Errorf("%q: %q, %v", advertised, reply, err)
		}
	}
}

// An error that cannot get better is returned at once, although ctx would allow to wait.
func TestPermanentErrorsOfJoin(t *testing.T) {
	ca := testutil.NewCA(t)
	credentials := func(c testutil.Credentials) *tls.Config {
		config, err := c.TLS()
		if err != nil {
			t.Fatal(err)
		}
		return config
	}
	unsigned := testutil.NewCA(t).Issue(t)
	unsigned.CA = ca.Issue(t).CA
	plain := founder(t, pleach.Config{Group: "web"})
	secure := founder(t, pleach.Config{Group: "web", Security: pleach.Security{TLS: credentials(ca.Issue(t))}})
	for name, test := range map[string]struct {
		config pleach.Config
		seed   string
		is     func(error) bool
	}{
		"no port": {
			pleach.Config{Group: "web", Listen: plain},
			plain,
			func(err error) bool { return errors.Is(err, syscall.EADDRINUSE) },
		},
		"another group": {pleach.Config{Group: "mail"}, plain, func(err error) bool { return errors.Is(err, tcp.ErrHello) }},
		"another authority": {
			pleach.Config{Group: "web", Security: pleach.Security{TLS: credentials(testutil.NewCA(t).Issue(t))}},
			secure,
			func(err error) bool { return errors.As(err, new(*tls.CertificateVerificationError)) },
		},
		"certificate of another authority": {
			pleach.Config{Group: "web", Security: pleach.Security{TLS: credentials(unsigned)}},
			secure,
			func(err error) bool { return strings.Contains(err.Error(), "remote error: tls") },
		},
		"no authority": {
			pleach.Config{
				Group:    "web",
				Security: pleach.Security{TLS: &tls.Config{Certificates: credentials(ca.Issue(t)).Certificates}},
			},
			secure,
			func(error) bool { return true },
		},
		"no port in the seed": {
			pleach.Config{Group: "web"},
			"127.0.0.1", func(err error) bool { return errors.As(err, new(*net.AddrError)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			g, err := pleach.Join(ctx, test.config, test.seed)
			if err == nil {
				_ = g.Abort()
				t.Fatal("joined")
			}
			if took := time.Since(began); took > soon || !test.is(err) {
				t.Errorf("after %v: %v", took, err)
			}
			var failed *pleach.JoinError
			if name != "no port" && (!errors.As(err, &failed) || !failed.Permanent) {
				t.Errorf("not permanent: %v", err)
			}
		})
	}
}

// What may get better is tried again, and logged once for each cause.
func TestRetriesOfJoinAreLoggedOnce(t *testing.T) {
	var log testutil.LogBuffer
	seed := testutil.FreeAddresses(t, 1)[0]
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := pleach.Join(ctx, pleach.Config{Logger: log.Logger()}, seed)
	var failed *pleach.JoinError
	if !errors.As(err, &failed) || failed.Permanent || !errors.Is(err, context.DeadlineExceeded) ||
		!errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	if lines := log.Lines("retried", seed, "refused"); len(lines) != 1 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

// A process whose certificate does not name its address is told before it opens a
// socket. The others could not dial it.
func TestOwnCertificateIsChecked(t *testing.T) {
	ca := testutil.NewCA(t)
	config, err := ca.IssueFor(t, net.IPv4(192, 0, 2, 7)).TLS()
	if err != nil {
		t.Fatal(err)
	}
	address := testutil.FreeAddresses(t, 1)[0]
	host, _, _ := net.SplitHostPort(address)
	for name, call := range map[string]func(context.Context) (*pleach.Group, error){
		"Start": func(ctx context.Context) (*pleach.Group, error) {
			return pleach.Start(ctx, pleach.Config{Addresses: []string{address}, Security: pleach.Security{TLS: config}})
		},
		"Create": func(ctx context.Context) (*pleach.Group, error) {
			return pleach.Create(ctx, pleach.Config{Listen: address, Security: pleach.Security{TLS: config}})
		},
		"Join": func(ctx context.Context) (*pleach.Group, error) {
			return pleach.Join(ctx, pleach.Config{
				Listen: "0.0.0.0:0", Advertise: address,
				Security: pleach.Security{TLS: config},
			}, "127.0.0.1:1")
		},
		"no certificate": func(ctx context.Context) (*pleach.Group, error) {
			return pleach.Create(ctx,
				pleach.Config{Listen: address, Security: pleach.Security{TLS: &tls.Config{RootCAs: config.RootCAs}}})
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		g, err := call(ctx)
		cancel()
		if g != nil {
			_ = g.Abort()
		}
		var missing *pleach.CertificateError
		if !errors.As(err, &missing) || missing.Host != host {
			t.Errorf("%s: %v", name, err)
		} else if name != "no certificate" && !slices.Equal(missing.ValidFor, []string{"192.0.2.7"}) {
			t.Errorf("%s: valid for %v", name, missing.ValidFor)
		}
	}
	named := config.Clone()
	named.ServerName = "192.0.2.7" // all members dial by this name
	g, err := pleach.Create(t.Context(), pleach.Config{Listen: address, Security: pleach.Security{TLS: named}})
	if err != nil {
		t.Fatal(err)
	}
	_ = g.Abort()
}

// A seed that is itself about to join says so, and the other seeds are asked.
func TestSeedThatIsNoMemberYet(t *testing.T) {
	address := founder(t, pleach.Config{Group: "web"})
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := testutil.FreeAddresses(t, 1)[0]
	var joining sync.WaitGroup
	joining.Go(func() {
		_, _ = pleach.Join(ctx, pleach.Config{Group: "web", Listen: waiting}, silent.Addr().String())
	})
	defer joining.Wait()
	defer cancel()
	testutil.Eventually(t, "a process that waits", func() bool {
		c, err := net.Dial("tcp", waiting)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	began := time.Now()
	member(t)(pleach.Join(t.Context(), pleach.Config{Group: "web"}, waiting, address))
	if took := time.Since(began); took > soon {
		t.Errorf("took %v", took)
	}
}

// fullWhenBegun makes a data directory unwritable between the moment at which a process has found its
// group and its first vote: a member logs with its rank from then on.
type fullWhenBegun struct {
	slog.Handler
	full func()
}

func (f fullWhenBegun) WithAttrs([]slog.Attr) slog.Handler {
	f.full()
	return slog.DiscardHandler
}

// A process that cannot save its first vote is no member, and can try again when there is room.
func TestTriesAgainWhenDataDirHasRoom(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "member.new")
	full := fullWhenBegun{slog.DiscardHandler, func() {
		if err := os.MkdirAll(filepath.Join(blocked, "full"), 0o700); err != nil {
			t.Error(err)
		}
	}}
	if g, err := pleach.Create(t.Context(), pleach.Config{
		Recovery: pleach.Recovery{DataDir: dir},
		Logger:   slog.New(full),
	}); err == nil {
		_ = g.Abort()
		t.Fatal("a member that could not save its vote")
	}
	if err := os.RemoveAll(blocked); err != nil {
		t.Fatal(err)
	}
	g, err := pleach.Create(t.Context(), pleach.Config{Recovery: pleach.Recovery{DataDir: dir}})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// The error of a setting that names a file or a directory wraps its cause, so that a program can
// wait for room on a full disk.
func TestSettingErrorHasItsCause(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]struct {
		config pleach.Config
		cause  error
	}{
		"Recovery.DataDir": {
			pleach.Config{Recovery: pleach.Recovery{DataDir: filepath.Join(file, "dir")}},
			syscall.ENOTDIR,
		},
		"Security.SecretFile": {pleach.Config{Security: pleach.Security{SecretFile: file + "-absent"}}, fs.ErrNotExist},
	} {
		g, err := pleach.Create(t.Context(), c.config)
		if err == nil {
			_ = g.Abort()
		}
		var setting *pleach.ConfigError
		if !errors.As(err, &setting) || setting.Field != field || !errors.Is(err, c.cause) {
			t.Errorf("%s: %v, want a ConfigError that wraps %v", field, err, c.cause)
		}
	}
}
