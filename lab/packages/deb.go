package main

import (
	"bytes"
	"crypto/md5" // a .deb has a list of these, against broken disks
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// deb makes a package for Debian: an ar archive of a version number, a tar with what dpkg
// must know, and a tar with the files (deb(5)). The command is static, so it depends on
// nothing.
func (b *build) deb(p platform, files []file) ([]byte, error) {
	installed, err := debFiles(files)
	if err != nil {
		return nil, err
	}
	about, err := b.debControl(p, installed)
	if err != nil {
		return nil, err
	}
	control, err := archive("", about, b.time)
	if err != nil {
		return nil, err
	}
	data, err := archive("", installed, b.time)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	appendMember(&out, "debian-binary", []byte("2.0\n"), b.time)
	appendMember(&out, "control.tar.gz", control, b.time)
	appendMember(&out, "data.tar.gz", data, b.time)
	return out.Bytes(), nil
}

// appendMember appends a file to an ar archive.
func appendMember(out *bytes.Buffer, name string, data []byte, at time.Time) {
	fmt.Fprintf(out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", name, at.Unix(), 0, 0, 0o100644, len(data))
	out.Write(data)
	if len(data)%2 == 1 {
		out.WriteByte('\n')
	}
}

// debFiles puts files where Debian has them. Settings are in /etc, and manual pages
// compressed.
func debFiles(files []file) (installed []file, err error) {
	for _, f := range files {
		switch {
		case strings.HasPrefix(f.path, "etc/"):
		case strings.HasPrefix(f.path, "share/man/"):
			f.path = "usr/" + f.path + ".gz"
			f.data, err = compress(f.data)
			if err != nil {
				return nil, err
			}
		case strings.HasPrefix(f.path, "share/zsh/"):
			f.path = "usr/share/zsh/vendor-completions/" + path.Base(f.path)
		default:
			f.path = "usr/" + f.path
		}
		installed = append(installed, f)
	}
	return installed, nil
}

// debControl returns the files that tell dpkg about the package.
func (b *build) debControl(p platform, installed []file) ([]file, error) {
	var sums, settings bytes.Buffer
	size := 0
	for _, f := range installed {
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.path)
		if strings.HasPrefix(f.path, "etc/") {
			fmt.Fprintln(&settings, "/"+f.path)
		}
		size += len(f.data)
	}
	control := fmt.Sprintf(`Package: pleach
Version: %s
Architecture: %s
Maintainer: The Pleach Authors <https://github.com/pleach-go/pleach>
Installed-Size: %d
Section: net
Priority: optional
Homepage: https://github.com/pleach-go/pleach
Description: group communication that finishes although members die
 An agent on each host is a member of a group: programs in any language
 broadcast, send and query through it. The command also joins and
 inspects such groups.
`, b.debVersion(), debArchitecture(p), (size+1023)/1024)
	files := []file{
		{path: "control", data: []byte(control), mode: 0o644},
		{path: "md5sums", data: sums.Bytes(), mode: 0o644},
		{path: "conffiles", data: settings.Bytes(), mode: 0o644},
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		data, err := os.ReadFile(filepath.Join(b.root, "deploy", "debian", script))
		if err != nil {
			return nil, err
		}
		files = append(files, file{path: script, data: data, mode: 0o755})
	}
	return files, nil
}

// debVersion sorts as the version does: Debian takes what follows a tilde for earlier.
func (b *build) debVersion() string { return strings.ReplaceAll(b.number(), "-", "~") }

// debArchitecture is Debian's name.
func debArchitecture(p platform) string {
	if p.arch == "386" {
		return "i386"
	}
	return p.arch
}
