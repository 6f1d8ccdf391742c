// Command packages builds what a release has, into a directory: a tarball for each platform, a
// .deb for those with Linux, a list of the modules in each binary (SBOM), and checksums.
//
//	go run ./lab/packages --out dist
//
// The same commit gives the same bytes: paths are trimmed, and every time is that of the
// commit. It needs Go and git, and no tools for packages.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "dist", "`directory` for the packages")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64",
		"`os/arch`,… to build for")
	flag.Parse()
	b, err := describe()
	if err == nil {
		b.trim = true
		err = b.packageIn(*out, strings.Split(*platforms, ","))
	}
	if err != nil {
		log.Fatal("packages: ", err)
	}
}

// packageIn fills a directory, and needs another one for a while.
func (b *build) packageIn(out string, platforms []string) error {
	work, err := os.MkdirTemp("", "pleach-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	return b.packageAll(out, work, platforms)
}

// packageAll fills the directory, which must not have other files: checksums are of all of it.
func (b *build) packageAll(out, work string, platforms []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("%s must be empty", out))
	}
	host, err := b.compile(work, platform{runtime.GOOS, runtime.GOARCH})
	if err != nil {
		return err
	}
	texts, err := b.texts(host, work)
	if err != nil {
		return err
	}
	for _, name := range platforms {
		p, err := parsePlatform(name)
		if err == nil {
			err = b.packageOne(out, work, p, texts)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return writeChecksums(out)
}

// packageOne makes the packages of one platform.
func (b *build) packageOne(out, work string, p platform, texts []file) error {
	binary, err := b.compile(work, p)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("pleach_%s_%s_%s", b.number(), p.os, p.arch)
	save := func(extension string, content []byte, err error) error {
		if err != nil {
			return err
		}
		log.Print(name + extension)
		return os.WriteFile(filepath.Join(out, name+extension), content, 0o644)
	}
	licences, err := b.licences(binary)
	if err != nil {
		return err
	}
	files := append([]file{{path: "bin/pleach" + p.extension(), data: data, mode: 0o755}}, append(licences, texts...)...)
	content, err := archive(name, files, b.time)
	if err := save(".tar.gz", content, err); err != nil {
		return err
	}
	content, err = modules(binary, b.version)
	if err := save(".cdx.json", content, err); err != nil || p.os != "linux" {
		return err
	}
	content, err = b.deb(p, files)
	return save(".deb", content, err)
}
