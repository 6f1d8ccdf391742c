package admission

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestCheckFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing")
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := CheckFile(file); err != nil {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o602: false} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckFile(file); (err == nil) != want {
			t.Errorf("%04o: %v", mode, err)
		}
		if err := CheckWriters(file); (err == nil) != (mode&0o002 == 0) {
			t.Errorf("writers of %04o: %v", mode, err)
		}
	}
}
