package subprocess

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxTail bounds how much of a log is read for its last lines.
const maxTail = 64 << 10

// Tail returns the last lines of a log file, none from before the offset.
func Tail(file string, offset int64, lines int) ([]string, error) {
	log, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the log's size: %w", err)
	}
	begin := max(offset, info.Size()-maxTail, 0)
	content, err := io.ReadAll(io.NewSectionReader(log, begin, maxTail))
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	text := strings.TrimRight(string(content), "\n")
	if text == "" {
		return nil, nil
	}
	all := strings.Split(text, "\n")
	return all[max(0, len(all)-lines):], nil
}
