package config

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pleach-go/pleach"
	"github.com/pleach-go/pleach/internal/driver/admission"
)

// GroupConfig returns the config of the group. The version is that of the agent, which
// tells it in its meta.
func (c *Config) GroupConfig(version string) (pleach.Config, error) {
	g := pleach.Config{
		Group: c.GroupName(), Listen: c.Listen, Advertise: c.Advertise, ID: c.ID, FailureDomain: c.FailureDomain,
		Expect: c.Expect, Observer: c.Observer, Recovery: pleach.Recovery{DataDir: c.DataDir}, Detection: pleach.Detection{
			HeartbeatInterval: c.HeartbeatInterval,
			SuspicionTimeout:  c.SuspicionTimeout,
		},
	}
	var err error
	g.Arbiter, err = newArbiter(c.Arbiter)
	if err != nil {
		return g, err
	}
	g.Meta, err = c.Meta(version)
	if err != nil {
		return g, err
	}
	if c.SecretFile != "" {
		if _, err := admission.ReadSecrets(c.SecretFile); err != nil {
			return g, fmt.Errorf("secret-file: %w", err)
		}
		g.Security.SecretFile = c.SecretFile
	}
	if c.TLSCA != "" {
		g.Security.TLS, err = pleach.TLSFiles(c.TLSCert, c.TLSKey, c.TLSCA)
		if err != nil {
			return g, fmt.Errorf("tls-ca, tls-cert and tls-key: %w", err)
		}
		g.Security.HostCertificates, g.Security.DenyFile = c.TLSHostCertificates, c.DenyFile
	}
	if g.ID == "" && c.DataDir != "" {
		g.ID, err = keptID(c.DataDir)
	}
	return g, err
}

// CertificateEnd returns when the certificate of a group's config expires. It is zero without
// TLS. A file that was replaced counts within a second.
func CertificateEnd(g *pleach.Config) time.Time { return admission.Expiry(g.Security.TLS) }

// VersionTag is the tag in which an agent tells its version.
const VersionTag = "pleach"

// Meta writes the tags as the others get them: key=value, with spaces between.
func (c *Config) Meta(version string) (string, error) {
	tags := maps.Clone(c.Tags)
	if version != "" {
		if tags == nil {
			tags = make(map[string]string)
		}
		tags[VersionTag] = version
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		part := key + "=" + tags[key]
		if key == "" || strings.Contains(key, "=") || strings.ContainsFunc(part, func(r rune) bool { return r <= ' ' }) {
			return "", fmt.Errorf("tags: %q must have a key, and no spaces", part)
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " "), nil
}

// Protected reports whether the group has a secret or TLS.
func (c *Config) Protected() bool { return c.SecretFile != "" || c.TLSCA != "" }

// Tags reads the tags of a member from its meta. A meta that is no tags has none.
func Tags(meta string) map[string]string {
	tags := make(map[string]string)
	for part := range strings.FieldsSeq(meta) {
		if key, value, ok := strings.Cut(part, "="); ok {
			tags[key] = value
		}
	}
	return tags
}

// WithPrivateDataDir returns the settings with the data directory that the agent uses: a private
// one, if DataDir is a volume that all users can write to. It is checked before anything is
// written to it.
func (c *Config) WithPrivateDataDir() (*Config, error) {
	if c.DataDir == "" {
		return c, nil
	}
	dir, err := admission.PrivateDir(c.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data-dir: %w", err)
	}
	private := *c
	private.DataDir = dir
	return &private, nil
}

// keptID returns the name of this member, which its data directory keeps: an agent that is
// started again at another address is still the same member.
func keptID(dir string) (string, error) {
	file := filepath.Join(dir, "id")
	id, err := readLine(file)
	if !errors.Is(err, fs.ErrNotExist) {
		return string(id), err
	}
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	name := host + "-" + strings.ToLower(rand.Text()[:6])
	return name, os.WriteFile(file, []byte(name+"\n"), 0o600)
}

// Token reads the token of the API. If the file does not exist, it is made.
func (c *Config) Token() (string, error) {
	token, err := ReadToken(c.TokenFile)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	token = rand.Text()
	return token, os.WriteFile(c.TokenFile, []byte(token+"\n"), 0o600)
}

// ReadToken reads a token from its file.
func ReadToken(file string) (string, error) {
	token, err := readSecretLine(file)
	if err != nil {
		return "", fmt.Errorf("token-file: %w", err)
	}
	return string(token), nil
}

// readSecretLine is readLine for a file that only its owner may read.
func readSecretLine(file string) ([]byte, error) {
	if err := admission.CheckFile(file); err != nil {
		return nil, err
	}
	return readLine(file)
}

// readLine reads a file that has one line. A line break at the end is not part of it.
func readLine(file string) ([]byte, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b = bytes.TrimRight(b, "\r\n")
	if len(b) == 0 {
		return nil, fmt.Errorf("%s is empty", file)
	}
	return b, nil
}
