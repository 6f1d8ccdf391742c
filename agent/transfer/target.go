package transfer

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// partSuffix ends the name of a partial file, which is that of the file with a dot before
// it.
const partSuffix = ".pleach-part"

// target is where a file goes. Its directory is open, so that what becomes of the path
// meanwhile does not matter. All access is relative to it, by [os.Root].
type target struct {
	folder   *os.Root
	name     string
	part     string
	verified func() // is called for each chunk that verify has read
}

// locate finds the directory of a target below the allowed ones, and the elements of the path
// from there.
func locate(allowed []string, dir string) (base string, elements []string, err error) {
	dir = filepath.FromSlash(dir)
	for _, base := range allowed {
		relative := dir
		if filepath.IsAbs(dir) {
			relative, err = filepath.Rel(base, dir)
			if err != nil {
				continue
			}
		}
		switch {
		case relative == ".":
			return base, nil, nil
		case filepath.IsLocal(relative):
			return base, strings.Split(relative, string(filepath.Separator)), nil
		}
	}
	if len(allowed) == 0 {
		return "", nil, errors.New("this member takes no files")
	}
	return "", nil, fmt.Errorf("this member takes no files in %s", dir)
}

// openTarget opens the directory of a target. It makes those below the allowed one that are
// not there, and follows no symbolic link.
func openTarget(base string, elements []string, name string) (*target, error) {
	folder, err := os.OpenRoot(base)
	if err != nil {
		return nil, err
	}
	for _, element := range elements {
		next, err := enter(folder, element)
		folder.Close()
		if err != nil {
			return nil, err
		}
		folder = next
	}
	return &target{folder: folder, name: name, part: "." + name + partSuffix, verified: func() {}}, nil
}

// enter opens a directory in a directory.
func enter(folder *os.Root, element string) (*os.Root, error) {
	if err := folder.Mkdir(element, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := folder.Lstat(element)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", filepath.Join(folder.Name(), element))
	}
	return folder.OpenRoot(element)
}

// has reports whether the file is there already, as the manifest has it.
func (t *target) has(m *manifest, stop <-chan struct{}) bool {
	info, err := t.folder.Lstat(t.name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != m.size {
		return false
	}
	file, err := t.folder.Open(t.name)
	if err != nil {
		return false
	}
	defer file.Close()
	lacks := fullSet(len(m.hashes))
	t.verify(file, m, &lacks, stop, true)
	return lacks.count == 0 && (info.Mode().Perm() == m.mode || file.Chmod(m.mode) == nil)
}

// openPart opens the partial file, and removes the chunks from lacks that it has.
func (t *target) openPart(m *manifest, lacks *set, stop <-chan struct{}) (*os.File, error) {
	if info, err := t.folder.Lstat(t.part); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", t.part)
	}
	file, err := t.folder.OpenFile(t.part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := t.preparePart(file, m, lacks, stop); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func (t *target) preparePart(file *os.File, m *manifest, lacks *set, stop <-chan struct{}) error {
	if err := awaitLock(file, stop); err != nil {
		return fmt.Errorf("another process receives it: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		t.verify(file, m, lacks, stop, false)
	}
	if free, known := freeSpace(file); known && int64(lacks.count)*m.chunk > free+m.chunk {
		return fmt.Errorf("%d bytes are free, and %d are to come", free, int64(lacks.count)*m.chunk)
	}
	return file.Truncate(m.size)
}

// verify removes the chunks from lacks that a file has. It ends when it is stopped, and at
// the first chunk that is not there if all should be.
func (t *target) verify(file io.ReaderAt, m *manifest, lacks *set, stop <-chan struct{}, all bool) {
	data := make([]byte, min(m.chunk, m.size))
	for i := range m.hashes {
		select {
		case <-stop:
			return
		default:
		}
		offset, length := m.span(i)
		n, _ := file.ReadAt(data[:length], offset)
		if n == length && sha256.Sum256(data[:n]) == m.hashes[i] {
			lacks.remove(i)
		} else if all {
			return
		}
		t.verified()
	}
}

// publish gives a complete file its name: it is on the disk before.
func (t *target) publish(file *os.File, m *manifest) error {
	if err := file.Chmod(m.mode); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := t.folder.Rename(t.part, t.name); err != nil {
		return err
	}
	folder, err := t.folder.Open(".")
	if err != nil {
		return err
	}
	defer folder.Close()
	_ = folder.Sync() // not every system can; the file is there, under either name
	return nil
}

// lockWait is how long the lock of a partial file is waited for.
const lockWait = 2 * time.Second

// awaitLock locks a file. A lock that this process has just given up may be held for a
// moment longer by a program that it is starting: between fork and exec, that has all of
// its descriptors.
func awaitLock(file *os.File, stop <-chan struct{}) error {
	timeout := time.After(lockWait)
	for {
		err := lock(file)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(lockWait / 100):
		case <-timeout:
			return err
		case <-stop:
			return err
		}
	}
}
