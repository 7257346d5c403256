package transcript

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Why a file can no longer be followed.
var (
	// ErrRewritten: what was already read has changed or was cut off. The records given
	// out may no longer stand; a new Follow from the same offset gives those that do.
	// Both versions have code that takes a message out of the file in place, for
	// attempts that broke; it was never seen to run with retries and fallback off.
	ErrRewritten = errors.New("transcript: file was rewritten")

	// ErrReplaced: the path no longer leads to the file that was being read. The whole
	// lines that were in the old file have been given out.
	ErrReplaced = errors.New("transcript: file was removed or replaced")

	// ErrLineTooLong: a line exceeds Options.MaxLine.
	ErrLineTooLong = errors.New("transcript: line too long")
)

const (
	chunkSize  = 16 << 10
	markSize   = 1 << 10 // the last 200 bytes of all records are alike; their ids stand before
	keepBuffer = 1 << 20 // a buffer larger than this is not kept for the next line
)

// tail reads the whole lines of a growing file, each byte once. It belongs to one
// goroutine and never waits.
type tail struct {
	path    string
	maxLine int

	file *os.File // nil until the file exists
	info os.FileInfo
	pos  int64 // where file is read next

	// mark is the end of what was read up to pos. Every read takes it along, so that a
	// file changed under the reader is noticed even if it has grown past pos again.
	mark  []byte
	chunk []byte

	buf     []byte // the bytes before pos of which a part was not yet returned
	start   int    // where that part begins in buf
	scanned int    // buf[start:scanned] holds no newline
}

func newTail(path string, offset int64, maxLine int) *tail {
	return &tail{path: path, maxLine: maxLine, pos: offset, chunk: make([]byte, chunkSize)}
}

// next returns the next whole line without its newline, and the offset at which it
// begins. The line is valid until the next call. io.EOF says that there is none now, and
// that a later call may find one; every other error is final.
func (t *tail) next() (line []byte, at int64, err error) {
	for {
		at = t.offset()
		i := bytes.IndexByte(t.buf[t.scanned:], '\n')
		end := t.scanned + i
		if i < 0 {
			end = len(t.buf)
		}
		if end-t.start > t.maxLine {
			return nil, at, fmt.Errorf("%w: more than %d bytes at offset %d", ErrLineTooLong, t.maxLine, at)
		}
		if i >= 0 {
			line = t.buf[t.start:end]
			t.start, t.scanned = end+1, end+1
			return line, at, nil
		}
		t.scanned = end
		if err := t.fill(); err != nil {
			return nil, at, err
		}
	}
}

// offset is where the first line not yet returned begins.
func (t *tail) offset() int64 { return t.pos - int64(len(t.buf)-t.start) }

func (t *tail) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// fill reads more of the file into buf, or returns io.EOF if there is no more now.
func (t *tail) fill() error {
	if err := t.open(); err != nil {
		return err
	}
	n, err := t.file.ReadAt(t.chunk, t.pos-int64(len(t.mark)))
	if err != nil && err != io.EOF {
		return fmt.Errorf("transcript: read: %w", err)
	}
	if !bytes.HasPrefix(t.chunk[:n], t.mark) {
		return fmt.Errorf("%w before offset %d", ErrRewritten, t.pos)
	}
	fresh := t.chunk[len(t.mark):n]
	if len(fresh) == 0 {
		return t.checkPath()
	}
	t.compact()
	t.buf = append(t.buf, fresh...)
	t.pos += int64(len(fresh))
	t.mark = append(t.mark[:0], t.chunk[max(0, n-markSize):n]...)
	return nil
}

// open opens the file if it is not open. A file that does not exist yet is at its end.
func (t *tail) open() error {
	if t.file != nil {
		return nil
	}
	file, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("transcript: open: %w", err)
	}
	t.file = file
	if t.info, err = file.Stat(); err != nil {
		return fmt.Errorf("transcript: open: %w", err)
	}
	mark := make([]byte, min(markSize, t.pos))
	if _, err := file.ReadAt(mark, t.pos-int64(len(mark))); err == io.EOF {
		return fmt.Errorf("%w: shorter than %d bytes", ErrRewritten, t.pos)
	} else if err != nil {
		return fmt.Errorf("transcript: read: %w", err)
	}
	t.mark = mark
	return nil
}

// checkPath returns io.EOF if the path still leads to the open file.
func (t *tail) checkPath() error {
	info, err := os.Stat(t.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("transcript: stat: %w", err)
	}
	if err != nil || !os.SameFile(info, t.info) {
		return fmt.Errorf("%w at offset %d", ErrReplaced, t.pos)
	}
	return io.EOF
}

// compact drops what was returned from buf, and a buffer that one long line made large.
func (t *tail) compact() {
	rest := t.buf[t.start:]
	if cap(t.buf) > keepBuffer && len(rest) < chunkSize {
		t.buf = append([]byte(nil), rest...)
	} else if t.start > 0 {
		t.buf = t.buf[:copy(t.buf, rest)]
	}
	t.scanned -= t.start
	t.start = 0
}
