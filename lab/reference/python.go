package main

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"
)

//go:embed python.py
var pythonScript string

// pythonPage is the reference of the Python package, from its source: it is not imported.
func pythonPage(root string) (string, error) {
	out, err := exec.Command("python3", "-c", pythonScript, filepath.Join(root, "bindings/python/pleach")).Output()
	if err != nil {
		return "", fmt.Errorf("python3: %w", err)
	}
	return string(out), nil
}
