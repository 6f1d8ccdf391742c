package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Images are made by hand: one static program in an archive as docker save writes it.
const (
	pleachImage = "localhost/pleach:1"
	testImage   = "localhost/test:1" // this program: sandboxes and traffic
)

// importImages gives all nodes the images.
func (c *cluster) importImages(ctx context.Context) error {
	for image, entry := range map[string][]string{
		pleachImage: {"/usr/bin/pleach"},
		testImage:   {"/usr/bin/kubernetes", "pause"},
	} {
		archive, err := imageOf(image, c.program(filepath.Base(entry[0])), entry)
		if err != nil {
			return err
		}
		file := c.path(filepath.Base(entry[0]) + ".tar")
		if err := os.WriteFile(file, archive, 0o644); err != nil {
			return err
		}
		for i := 1; i <= nodes; i++ {
			if _, err := c.containers(ctx, i, "images", "import", file); err != nil {
				return err
			}
		}
	}
	return nil
}

// imageOf returns an image with a program at entry[0].
func imageOf(name, program string, entry []string) ([]byte, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("%w: build it first, as make cluster does", err)
	}
	layer, err := tarOf(
		file{"tmp", nil, tar.TypeDir, 0o1777}, file{"usr", nil, tar.TypeDir, 0o755}, file{"usr/bin", nil, tar.TypeDir, 0o755},
		file{entry[0][1:], binary, tar.TypeReg, 0o755})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": entry, "User": "65532:65532"},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	})
	if err != nil {
		return nil, err
	}
	configFile := digest(config)[len("sha256:"):] + ".json"
	manifest, err := json.Marshal([]any{map[string]any{
		"Config": configFile, "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return nil, err
	}
	return tarOf(file{configFile, config, tar.TypeReg, 0o644}, file{"layer.tar", layer, tar.TypeReg, 0o644},
		file{"manifest.json", manifest, tar.TypeReg, 0o644})
}

func digest(data []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(data)) }

// file is a file of an archive.
type file struct {
	name string
	data []byte
	kind byte
	mode int64
}

func tarOf(files ...file) ([]byte, error) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Typeflag: f.kind, Mode: f.mode, Size: int64(len(f.data))}
		if err := t.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.Copy(t, bytes.NewReader(f.data)); err != nil {
			return nil, err
		}
	}
	err := t.Close()
	return b.Bytes(), err
}
