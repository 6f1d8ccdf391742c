package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"
)

// file is one file of a package. Its path is relative to a prefix, as /usr/local.
type file struct {
	path string
	data []byte
	mode int64
}

// archive packs files below a directory, in the order given, into a compressed tar. Each directory
// comes before what it has, and all is of root and of one time.
func archive(directory string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := tar.NewWriter(z)
	made := make(map[string]bool)
	var mkdir func(name string) error
	mkdir = func(name string) error {
		if name == "." || made[name] {
			return nil
		}
		made[name] = true
		if err := mkdir(path.Dir(name)); err != nil {
			return err
		}
		return t.WriteHeader(&tar.Header{
			Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755, ModTime: at, Uname: "root",
			Gname: "root",
		})
	}
	for _, f := range files {
		name := path.Join(directory, f.path)
		if err := mkdir(path.Dir(name)); err != nil {
			return nil, err
		}
		h := &tar.Header{Name: name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Uname: "root", Gname: "root"}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := cmp.Or(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// compress is gzip -n.
func compress(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(data)
	err = cmp.Or(err, z.Close())
	return b.Bytes(), err
}

// writeChecksums writes SHA256SUMS, which sha256sum --check reads.
func writeChecksums(directory string) error {
	entries, err := os.ReadDir(directory) // in order
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(directory, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(directory, "SHA256SUMS"), sums.Bytes(), 0o644)
}
