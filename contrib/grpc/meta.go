package pleachgrpc

import (
	"context"
	"slices"
	"strings"

	"github.com/pleach-go/pleach"
)

// A member's meta ([pleach.Member.Meta]) may have one line of this package among others:
//
//	grpc 10.0.0.1:50051
//	grpc 10.0.0.1:50051 draining
const (
	prefix   = "grpc "
	draining = " draining"
)

// WithAddress returns a meta that announces the address, host:port, at which this process serves
// gRPC. Other lines of the meta are kept. It is for Config.Meta, so that the address is in the first
// view that contains the process, and for [pleach.Group.SetMeta].
func WithAddress(meta, address string) string { return withLine(meta, prefix+address) }

// AddressOf returns the address at which a member serves gRPC, or false if it announces none or is
// draining.
func AddressOf(m pleach.Member) (address string, ok bool) {
	line := lineOf(m.Meta)
	if line == "" || strings.HasSuffix(line, draining) {
		return "", false
	}
	return strings.TrimPrefix(line, prefix), true
}

// Announce sets the address at which this process serves gRPC: see [WithAddress]. It blocks until a
// view has it. It must not run at the same time as another change of the meta.
func Announce(ctx context.Context, group *pleach.Group, address string) error {
	return group.SetMeta(ctx, WithAddress(group.Self().Meta, address))
}

// withDraining returns a meta that announces that the server ends soon.
func withDraining(meta string) string {
	line := lineOf(meta)
	if line == "" || strings.HasSuffix(line, draining) {
		return meta
	}
	return withLine(meta, line+draining)
}

// lineOf returns the line of this package, or "".
func lineOf(meta string) string {
	for line := range strings.Lines(meta) {
		if strings.HasPrefix(line, prefix) {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// withLine returns a meta with a line of this package in place of the previous one.
func withLine(meta, line string) string {
	var lines []string
	if meta != "" {
		lines = strings.Split(meta, "\n")
	}
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, prefix) })
	if i < 0 {
		lines = append(lines, line)
	} else {
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
